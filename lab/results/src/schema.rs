//! The JSON schema of result files, generated from their types.

use serde_json::Value;

use crate::Run;

/// Returns the schema (JSON Schema 2020-12). docs/reference/fwlab.schema.json has its text.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Run);
    schema.insert("title".to_string(), "Result of fwlab".into());
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use serde_json::json;

    const PATH: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fwlab.schema.json");

    fn published() -> Value {
        serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap()
    }

    /// Compares the published schema with the types. `UPDATE=1 cargo test -p fwlab-results schema`
    /// writes the file.
    #[test]
    fn the_published_schema_is_the_one_of_the_types() {
        if std::env::var_os("UPDATE").is_some() {
            let text = serde_json::to_string_pretty(&schema()).unwrap();
            std::fs::write(PATH, text + "\n").unwrap();
        }
        assert_eq!(published(), schema());
    }

    #[test]
    fn written_files_match_the_schema() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let run = serde_json::to_value(example::run()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&run).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");

        for (path, wrong) in [
            ("/mode", json!("fast")),
            ("/complete", json!("yes")),
            ("/systems/0/role", json!("hero")),
            ("/series/0/points/0/samples/0/value", json!(null)),
            ("/series/0/points/0/samples/0/round", json!(-1)),
        ] {
            let mut run = run.clone();
            *run.pointer_mut(path).unwrap() = wrong;
            assert!(!validator.is_valid(&run), "{path}");
        }
        let mut run = run;
        run.as_object_mut().unwrap().remove("environment");
        assert!(!validator.is_valid(&run));
    }
}

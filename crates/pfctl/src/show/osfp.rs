//! `-s osfp`: prints the operating systems that fingerprints can recognize.

use serde_json::{Value, json};

use skipstep_ruleset::fingerprint::{Fingerprints, Names};

const HEAD: &str = "Class\tVersion\tSubtype(subversion)\n-----\t-------\t-------------------\n";

/// Prints classes, versions and subtypes, each behind its parents; nothing without fingerprints.
pub fn text(fingerprints: &Fingerprints) -> String {
    if fingerprints.names.is_empty() {
        return String::new();
    }
    let mut text = HEAD.to_string();
    list(&fingerprints.names, "", &mut text);
    text
}

/// Prints the number of fingerprints for `-s all`; nothing without fingerprints.
pub fn count(fingerprints: &Fingerprints) -> String {
    match fingerprints.count {
        0 => String::new(),
        count => format!("{count} fingerprints loaded\n"),
    }
}

fn list(names: &Names, before: &str, text: &mut String) {
    for entry in names.values() {
        let line = format!("{before}{}\t", entry.name);
        text.push_str(&line);
        text.push('\n');
        list(&entry.below, &line, text);
    }
}

/// Returns the number of fingerprints, and nested objects of classes, versions and subtypes.
pub fn json(fingerprints: &Fingerprints) -> Value {
    fn level(names: &Names) -> Value {
        names.values().map(|entry| (entry.name.clone(), level(&entry.below))).collect()
    }
    json!({ "count": fingerprints.count, "names": level(&fingerprints.names) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_without_regard_to_case() {
        let line = |class, version, subtype| format!("1:1:1:1:.:{class}:{version}:{subtype}:x\n");
        let file = line("AMIGAOS", "3.9", "") + &line("AIX", "4.3", "2") + &line("Alteon", "", "");
        let fingerprints = Fingerprints::parse(&file).unwrap();
        assert_eq!(
            text(&fingerprints),
            HEAD.to_string()
                + "AIX\t\nAIX\t4.3\t\nAIX\t4.3\t2\t\nAlteon\t\nAMIGAOS\t\nAMIGAOS\t3.9\t\n"
        );
        assert_eq!(count(&fingerprints), "3 fingerprints loaded\n");
        assert_eq!(text(&Fingerprints::default()), "");
    }
}

//! `-S` and `-L`: states in a file, one JSON object a line. The first line has format, version and
//! rules. Each other line is a state, a [`SavedState`].

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use skipstep_kernel::Instance;
use skipstep_kernel::saved::SavedState;

use crate::output::replace_file;
use crate::views;

/// Name of the file format, in the first line.
// Differs from OpenBSD: linux.md, "State files"
const FORMAT: &str = "skipstep states";
/// Version of the file format; files of other versions are refused.
const VERSION: u32 = 1;

/// The first line of a file of states.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    format: String,
    version: u32,
    /// MD5 of the main rules, in hexadecimal. States keep their rules if the loaded rules have the
    /// same sum.
    rules: String,
}

impl Head {
    fn for_instance(instance: &Instance) -> Result<Head> {
        let rules = instance.loaded()?.ruleset.rules;
        let sum = views::checksum(&rules);
        let rules = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Head { format: FORMAT.into(), version: VERSION, rules })
    }
}

/// Writes all states to `file`, which is replaced in one step.
///
/// # Errors
/// Fails if no rules are loaded, if the states cannot be read, or if the file cannot be written.
pub fn store(instance: Option<&Instance>, file: &str) -> Result<()> {
    let Some(instance) = instance else { bail!("no rules are loaded: there are no states") };
    let mut text = serde_json::to_string(&Head::for_instance(instance)?)? + "\n";
    for state in instance.save_states()? {
        text += &serde_json::to_string(&state)?;
        text.push('\n');
    }
    // connections are private, so only the owner may read the file
    replace_file(Path::new(file), &text, None).with_context(|| file.to_owned())
}

/// Restores the states of `file`. States whose key is taken stay as they are.
///
/// # Errors
/// Fails if the file cannot be read or parsed, or if the kernel refuses to run the restoring
/// program.
pub fn load(instance: &Instance, file: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.to_owned())?;
    let (head, states) = read(&text).with_context(|| file.to_owned())?;
    let same_rules = head == Head::for_instance(instance)?;
    instance.restore_states(&states, same_rules)?;
    Ok(())
}

/// Parses a file of states into its first line and its states.
///
/// # Errors
/// Fails if the text is no file of states, has another version, or has an invalid line.
pub fn read(text: &str) -> Result<(Head, Vec<SavedState>)> {
    let mut lines = text.lines().zip(1..);
    let head = lines.next().and_then(|(line, _)| serde_json::from_str::<Head>(line).ok());
    let Some(head) = head.filter(|head| head.format == FORMAT) else {
        bail!("not a file of states");
    };
    if head.version != VERSION {
        bail!("written in version {} of the format, not {VERSION}", head.version);
    }
    let state =
        |(line, number)| serde_json::from_str(line).with_context(|| format!("line {number}"));
    Ok((head, lines.map(state).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const HEAD: &str = r#"{"format":"skipstep states","version":1,"rules":"00"}"#;

    #[test]
    fn a_file_is_replaced_and_its_neighbours_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, neighbour) =
            (folder.path().join("states.old"), folder.path().join("states.new"));
        for (path, text) in [(&file, "before"), (&neighbour, "of a neighbour")] {
            fs::write(path, text).unwrap();
        }
        replace_file(&file, "after", None).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&neighbour).unwrap(), "of a neighbour");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn other_files_and_versions_are_refused() {
        let message = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert_eq!(message(""), "not a file of states");
        assert_eq!(message("{}"), "not a file of states");
        let later = HEAD.replace(":1", ":2");
        assert_eq!(message(&later), "written in version 2 of the format, not 1");
        assert!(message(&format!("{HEAD}\n{{}}\n")).starts_with("line 2: missing field"));
        assert!(read(HEAD).unwrap().1.is_empty());
    }
}

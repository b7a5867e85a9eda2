//! `-S` and `-L`: states in a file, a JSON object a line. The first line tells what follows, and of
//! which rules; the others are a state each, as `skipstep_kernel::saved::SavedState` says.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use skipstep_kernel::saved::SavedState;
use skipstep_kernel::{Instance, private};

use crate::views;

/// What such a file is.
const FORMAT: &str = "skipstep states";
/// How its lines are to be read.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    format: String,
    version: u32,
    /// MD5 of the rules, in hexadecimal: states belong to rules of the same sum.
    rules: String,
}

impl Head {
    fn of(instance: &Instance) -> Result<Head> {
        let rules = instance.loaded()?.ruleset.rules;
        let sum = views::checksum(&rules);
        let rules = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Head { format: FORMAT.into(), version: VERSION, rules })
    }
}

/// Writes all states to `file`, in one piece.
pub fn store(instance: Option<&Instance>, file: &str) -> Result<()> {
    let Some(instance) = instance else { bail!("no rules are loaded: there are no states") };
    let mut text = serde_json::to_string(&Head::of(instance)?)? + "\n";
    for state in instance.save_states()? {
        text += &serde_json::to_string(&state)?;
        text.push('\n');
    }
    let unfinished = Path::new(file).with_extension("new");
    // who talks to whom is nobody's business
    private::new_file(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&unfinished, file))
        .with_context(|| file.to_owned())
}

/// Puts the states of `file` in place, but for those that are there.
pub fn load(instance: &Instance, file: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.to_owned())?;
    let (head, states) = read(&text).with_context(|| file.to_owned())?;
    let same_rules = head == Head::of(instance)?;
    instance.restore_states(&states, same_rules)?;
    Ok(())
}

/// Reads a file of states: its first line, and the states.
///
/// # Errors
/// The text is no such file, or of another version.
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
    use super::*;

    const HEAD: &str = r#"{"format":"skipstep states","version":1,"rules":"00"}"#;

    #[test]
    fn only_such_files_are_read() {
        let message = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert_eq!(message(""), "not a file of states");
        assert_eq!(message("{}"), "not a file of states");
        let later = HEAD.replace(":1", ":2");
        assert_eq!(message(&later), "written in version 2 of the format, not 1");
        assert!(message(&format!("{HEAD}\n{{}}\n")).starts_with("line 2: missing field"));
        assert!(read(HEAD).unwrap().1.is_empty());
    }
}

//! Findings: the results of checks, and their forms for people and programs.

use serde_json::{Value, json};

/// Columns of a line.
const COLUMNS: usize = 80;

/// Columns in front of the object: the level and two blanks.
const LEVEL_COLUMNS: usize = 6;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The check found no fault.
    Ok,
    /// The filter works, but could work better, or a check could not see its object.
    Warn,
    /// Packets are not filtered as the rules say, or will not be after the next boot.
    Fail,
}

impl Level {
    /// Returns the word at the beginning of the line.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "OK",
            Level::Warn => "WARN",
            Level::Fail => "FAIL",
        }
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Weight of the finding.
    pub level: Level,
    /// Name of the object: an interface, a limit, a setting.
    pub subject: String,
    /// The finding, without a full stop.
    pub text: String,
    /// Shell command that mends it; `None` if there is nothing to mend, or no such command.
    pub command: Option<String>,
    /// False if the check could not see its object.
    pub seen: bool,
}

impl Finding {
    fn new(level: Level, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { level, subject: subject.into(), text: text.into(), command: None, seen: true }
    }

    /// Makes a finding without a fault.
    pub fn ok(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding::new(Level::Ok, subject, text)
    }

    /// Makes a warning.
    pub fn warn(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding::new(Level::Warn, subject, text)
    }

    /// Makes a failure.
    pub fn fail(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding::new(Level::Fail, subject, text)
    }

    /// Makes a warning that the check could not see its object, for the reason `why`.
    pub fn unseen(subject: impl Into<String>, why: &str) -> Self {
        Finding { seen: false, ..Finding::warn(subject, format!("not seen: {why}")) }
    }

    /// Adds the command that mends it.
    pub fn mended_by(self, command: impl Into<String>) -> Self {
        Finding { command: Some(command.into()), ..self }
    }
}

/// Prints a paragraph of lines for each finding: level, subject and text, and then the command.
/// Only a word or a part of a command that is longer than a line exceeds [`COLUMNS`].
pub fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
    findings.iter().map(|finding| paragraph(finding, width)).collect()
}

/// Returns the lines of a finding. Subjects have `width` columns.
fn paragraph(finding: &Finding, width: usize) -> String {
    let Finding { level, subject, text, command, .. } = finding;
    let (subject, text) = (printable(subject), printable(text));
    let head = format!("{:<LEVEL_COLUMNS$}{subject:<width$}  ", level.word());
    let mut lines = filled(&head, text.split_whitespace());
    if let Some(command) = command {
        let command = printable(command);
        let head = format!("{:LEVEL_COLUMNS$}run: ", "");
        // a shell goes on reading after a line that ends with &&
        lines += &filled(&head, command.split_inclusive(" && ").map(str::trim_end));
    }
    lines
}

/// Replaces control characters: names of other programs and of their objects must not reach the
/// terminal as commands.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Returns lines of at most [`COLUMNS`] columns with the parts, separated by blanks. The first line
/// begins with `head`, and the others are indented by its width.
fn filled<'a>(head: &str, parts: impl Iterator<Item = &'a str>) -> String {
    let indent = head.chars().count();
    let (mut lines, mut column) = (head.to_owned(), indent);
    for part in parts {
        let width = part.chars().count();
        if column > indent && column + 1 + width > COLUMNS {
            lines += &format!("\n{:indent$}", "");
            column = indent;
        }
        if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines += part;
        column += width;
    }
    lines + "\n"
}

/// Returns a list with an object for each finding.
pub fn json(findings: &[Finding]) -> Value {
    findings
        .iter()
        .map(|Finding { level, subject, text, command, seen }| {
            json!({
                "level": level.word().to_lowercase(),
                "subject": subject,
                "finding": text,
                "command": command,
                "seen": seen,
            })
        })
        .collect()
}

/// Returns the exit status: 0 without faults, 1 with warnings, 2 with failures.
pub fn status(findings: &[Finding]) -> u8 {
    findings.iter().map(|finding| finding.level).max().map_or(0, |level| level as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Finding> {
        vec![
            Finding::ok("kernel", "Linux 6.18"),
            Finding::warn("log", "3 log records were lost").mended_by("pfctl -F info"),
            Finding::unseen("netfilter", "needs root"),
        ]
    }

    #[test]
    fn a_finding_is_followed_by_its_command() {
        let expected = "OK    kernel     Linux 6.18\n\
                        WARN  log        3 log records were lost\n      run: pfctl -F info\n\
                        WARN  netfilter  not seen: needs root\n";
        assert_eq!(text(&three()), expected);
        assert_eq!(text(&[Finding::ok("a", "x\u{1b}[2Jy\n")]), "OK    a  x?[2Jy?\n");
    }

    #[test]
    fn lines_are_broken_between_words_and_between_commands() {
        let word = "123456789";
        let long = Finding::warn("ä", [word; 9].join(" "));
        let command = [["true"; 8].join(" "), ["false"; 7].join(" ")].join(" && ");
        let expected = format!(
            "WARN  ä  {}\n         {word} {word}\n      run: {} &&\n           {}\n",
            [word; 7].join(" "),
            ["true"; 8].join(" "),
            ["false"; 7].join(" "),
        );
        assert_eq!(text(&[long.mended_by(command)]), expected);
        let name = "x".repeat(90);
        assert_eq!(text(&[Finding::ok("a", &name)]), format!("OK    a  {name}\n"));
    }

    #[test]
    fn json_has_all_fields() {
        let json = json(&three());
        assert_eq!(json[1]["level"], "warn");
        assert_eq!(json[1]["command"], "pfctl -F info");
        assert_eq!((&json[0]["command"], &json[2]["seen"]), (&Value::Null, &false.into()));
    }

    #[test]
    fn the_worst_finding_decides_the_status() {
        assert_eq!(status(&[]), 0);
        assert_eq!(status(&three()[..1]), 0);
        assert_eq!(status(&three()), 1);
        assert_eq!(status(&[Finding::fail("filter", "disabled"), Finding::ok("a", "b")]), 2);
    }
}

//! Published pf.confs. For each of them, `index.tsv` has OpenBSD 7.8's verdict, the dialect, and
//! the files, macros and names that it needs. The test supplies these.

use std::collections::BTreeSet;

use anyhow::Context;

use super::case::{Case, CaseResult};
use super::freebsd;
use super::lab::{Lab, ip};
use super::pfctl::Output;

/// A row of the index.
struct Row {
    dialect: String,
    needs: String,
    verdict: String,
    /// Line and text of OpenBSD 7.8's first error; `-` if it accepts the text.
    first_error: String,
}

impl Row {
    fn find(case: &Case) -> anyhow::Result<Row> {
        let path = case.folder().join("index.tsv");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let fields = text
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .find(|fields| fields[0] == case.stem)
            .with_context(|| format!("{}: no row {}", path.display(), case.stem))?;
        let field = |at: usize| fields.get(at).copied().unwrap_or_default().to_owned();
        let first_error = field(9);
        let first_error = first_error.split(" | ").next().unwrap_or_default().to_owned();
        Ok(Row { dialect: field(4), needs: field(7), verdict: field(8), first_error })
    }

    /// Returns the names after `what:` in the column of needs.
    fn needed(&self, what: &str) -> Vec<&str> {
        let groups = self.needs.split(';').filter_map(|group| group.trim().split_once(": "));
        groups
            .filter(|(name, _)| name.starts_with(what))
            .flat_map(|(_, names)| names.split(','))
            .map(str::trim)
            .collect()
    }

    /// Returns true if OpenBSD 7.8 accepts the text when its needs are met.
    fn is_accepted(&self) -> bool {
        self.verdict.starts_with("accept")
    }

    /// Compares the first error of a text that must not be accepted with OpenBSD 7.8's. OpenBSD's
    /// error may come earlier, at legacy syntax that is read here.
    fn compare(self, first: String) -> CaseResult {
        let line = |error: &str| error.split(':').next().and_then(|line| line.parse::<u32>().ok());
        if first == self.first_error {
            CaseResult::Passed
        } else if self.reads_legacy() && line(&first) >= line(&self.first_error) {
            let theirs = &self.first_error;
            CaseResult::Explained(format!("old syntax: `{first}`, on OpenBSD `{theirs}`"))
        } else {
            CaseResult::Different { expected: self.first_error, actual: first }
        }
    }

    /// Returns true if the dialect has statements that OpenBSD 7.8 no longer has, or never had.
    fn reads_legacy(&self) -> bool {
        self.is_legacy() || self.dialect == "macOS"
    }

    /// Returns true if the text is for FreeBSD's pf or for an old OpenBSD. Such a text must be
    /// accepted, with exceptions. macOS has statements of its own.
    fn is_legacy(&self) -> bool {
        ["old", "mixed", "common (FreeBSD)"].iter().any(|word| self.dialect.contains(word))
    }
}

/// Texts in legacy syntax that FreeBSD refuses, too, with reasons.
const REFUSED: [(&str, &str); 2] = [
    ("102", "`{ fill this in }` is for the reader to fill in"),
    ("106", "queues are named and defined nowhere"),
];

/// Returns line and text of the first error about the file itself.
fn first_error(stem: &str, messages: &str) -> String {
    let begin = format!("{stem}.conf:");
    let mut errors = messages.lines().filter(|line| !line.contains(": warning: "));
    errors.find_map(|line| line.strip_prefix(&begin)).unwrap_or_default().to_owned()
}

/// Runs a case: the text is printed as expected, or refused at a line where OpenBSD refuses it.
///
/// # Errors
/// Fails if a file of the case cannot be read, or if a program cannot run.
pub fn run(case: &Case, lab: &Lab) -> anyhow::Result<CaseResult> {
    let row = Row::find(case)?;
    let interfaces = make_interfaces(case, &row)?;
    let output = print(case, lab, &row);
    for interface in interfaces {
        ip(&format!("link delete {interface}"))?;
    }
    let output = output?;
    if !output.success {
        // a refused text must have an error with its line
        let told = output.stderr.contains(&format!("{}.conf:", case.stem));
        let refused = REFUSED.iter().any(|(number, _)| *number == case.stem);
        let shaper = freebsd::is_refused_kindly(&output.stderr);
        let must_load = row.is_accepted() || row.is_legacy() && !refused && !shaper;
        if !told || must_load {
            return Ok(CaseResult::Wrong(output.stderr));
        }
        return Ok(row.compare(first_error(&case.stem, &output.stderr)));
    }
    if !case.path("printed").exists() {
        return Ok(CaseResult::Passed);
    }
    Ok(CaseResult::compare(case.read("printed")?, output.stdout))
}

/// Prints a copy of the text whose files are in the lab.
fn print(case: &Case, lab: &Lab, row: &Row) -> anyhow::Result<Output> {
    let mut text = case.bytes("conf")?;
    for file in files(&text) {
        let path = lab.file(&file)?;
        text = replace(&text, format!("\"{file}\"").as_bytes(), format!("\"{path}\"").as_bytes());
    }
    let hosts = row.needed("names to resolve");
    let hosts: Vec<&str> = hosts.into_iter().filter(|name| !is_interface(bare(name))).collect();
    lab.add_hosts(&hosts)?;
    let name = format!("{}.conf", case.stem);
    lab.write(&name, &text)?;
    let mut arguments = vec!["-o", "none", "-nv", "-f", &name];
    let macros: Vec<String> = row
        .needed("undefined macros")
        .iter()
        .map(|name| format!("-D{name}={}", value(name)))
        .collect();
    arguments.extend(macros.iter().map(String::as_str));
    lab.pfctl_in_scratch()?.run(&arguments, "")
}

/// Returns a value for a macro that an included file would define. The value depends on the name.
fn value(name: &str) -> &'static str {
    match name.to_ascii_lowercase() {
        name if name.ends_with("_if") => "lo0",
        name if name.ends_with("v6") => "2001:db8::1",
        _ => "192.0.2.1",
    }
}

/// Returns the files that `text` names: tables, included files, anchors, fingerprints.
fn files(text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let quoted = text.split('"').filter(|word| word.starts_with('/') && !word.contains('\n'));
    quoted.map(str::to_owned).collect()
}

/// Returns the interface of a name like `em1:network`.
fn bare(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Replaces each `old` in `text` by `new`. The text need not be UTF-8.
fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    result.extend_from_slice(rest);
    result
}

/// Interfaces that a text needs and the index does not list, by number of the text.
const UNTOLD: [(&str, &str); 5] =
    [("016", "em0"), ("032", "athn0"), ("032", "em0"), ("048", "em0"), ("100", "igb5")];

/// Creates the interfaces whose addresses a text needs, and returns their names.
fn make_interfaces(case: &Case, row: &Row) -> anyhow::Result<Vec<String>> {
    let told = row.needed("names to resolve");
    let untold = UNTOLD.iter().filter(|(number, _)| *number == case.stem).map(|(_, name)| *name);
    let names: BTreeSet<&str> = told
        .iter()
        .map(|name| bare(name))
        .filter(|name| is_interface(name))
        .chain(untold)
        .collect();
    for (at, name) in names.iter().enumerate() {
        ip(&format!("link add {name} type bridge"))?;
        ip(&format!("address add 10.77.{at}.1/24 brd + dev {name}"))?;
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns true for names like `em0`, but not for host names, nor for `lo0`, which exists.
fn is_interface(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_digit()) && !name.contains('.') && name != "lo0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_in_quotes() {
        let text = b"table <t> file \"/a\"\nload anchor x \\\nfrom \"/b/c\" # \"x\"";
        assert_eq!(files(text).into_iter().collect::<Vec<_>>(), ["/a", "/b/c"]);
    }

    #[test]
    fn paths_are_replaced_wherever_they_stand() {
        assert_eq!(replace(b"a /x b /x\xff", b"/x", b"/y/x"), b"a /y/x b /y/x\xff");
    }

    #[test]
    fn interfaces_have_a_number_and_no_dot() {
        assert!(is_interface("vether1"));
        assert!(!is_interface("www.example.org") && !is_interface("lo0") && !is_interface("wg"));
    }
}

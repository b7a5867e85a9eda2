//! A regression case, its kinds and its results.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::lab::Lab;
use super::{freebsd, openbsd, realworld, table};

/// The command that a case runs, and the output that it compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    Pf,
    SelfPf,
    PfFail,
    PfOpt,
    PfSimple,
    PfLoad,
    PfOptimize,
    PfLoadAnchors,
    PfCommand,
    PfCommandFail,
    PfSetup,
    Pfr,
    FreeBsd,
    FreeBsdFail,
    RealWorld,
}

impl CaseKind {
    pub const ALL: [CaseKind; 15] = [
        CaseKind::Pf,
        CaseKind::SelfPf,
        CaseKind::PfFail,
        CaseKind::PfOpt,
        CaseKind::PfSimple,
        CaseKind::PfCommand,
        CaseKind::PfCommandFail,
        CaseKind::PfSetup,
        CaseKind::PfLoad,
        CaseKind::PfOptimize,
        CaseKind::PfLoadAnchors,
        CaseKind::Pfr,
        CaseKind::FreeBsd,
        CaseKind::FreeBsdFail,
        CaseKind::RealWorld,
    ];

    /// Returns the name of the kind in the project that the cases come from.
    pub fn name(self) -> &'static str {
        match self {
            CaseKind::Pf => "pf",
            CaseKind::SelfPf => "selfpf",
            CaseKind::PfFail => "pfail",
            CaseKind::PfOpt => "pfopt",
            CaseKind::PfSimple => "pfsimple",
            CaseKind::PfLoad => "pfload",
            CaseKind::PfOptimize => "pfoptimize",
            CaseKind::PfLoadAnchors => "pfloadanchors",
            CaseKind::PfCommand => "pfcmd",
            CaseKind::PfCommandFail => "pfcmdfail",
            CaseKind::PfSetup => "pfsetup",
            CaseKind::Pfr => "pfr",
            CaseKind::FreeBsd => "freebsd",
            CaseKind::FreeBsdFail => "freebsdfail",
            CaseKind::RealWorld => "realworld",
        }
    }

    /// Returns the folder of the cases.
    pub fn folder(self) -> &'static str {
        match self {
            CaseKind::FreeBsd | CaseKind::FreeBsdFail => "freebsd",
            CaseKind::RealWorld => "realworld",
            _ => "openbsd",
        }
    }

    /// Returns the prefix of the number in file names, and the extension of the file that every
    /// case has.
    fn files(self) -> (&'static str, &'static str) {
        match self {
            CaseKind::Pf | CaseKind::SelfPf => ("pf", "ok"),
            CaseKind::PfFail => ("pfail", "ok"),
            CaseKind::PfOpt => ("pfopt", "ok"),
            CaseKind::PfSimple => ("pfsimple", "in"),
            CaseKind::PfLoad => ("pf", "loaded"),
            CaseKind::PfOptimize => ("pf", "optimized"),
            CaseKind::PfLoadAnchors => ("pf", "one"),
            CaseKind::PfCommand => ("pfcmd", "in"),
            CaseKind::PfCommandFail => ("pfcmdfail", "ok"),
            CaseKind::PfSetup => ("pfsetup", "in"),
            CaseKind::Pfr => ("pfr", "ok"),
            CaseKind::FreeBsd => ("pf", "in"),
            CaseKind::FreeBsdFail => ("pf", "fail"),
            CaseKind::RealWorld => ("", "conf"),
        }
    }

    /// Finds the cases of this kind in `folder`, in order of their numbers.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn find(self, folder: &Path) -> anyhow::Result<Vec<Case>> {
        let (prefix, ending) = self.files();
        let mut cases = Vec::new();
        for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
            let name = entry?.file_name();
            let case = name.to_str().and_then(|name| {
                let (stem, rest) = name.split_once('.')?;
                let number = stem.strip_prefix(prefix)?.parse().ok()?;
                (rest == ending).then_some((number, stem))
            });
            let Some((number, stem)) = case else { continue };
            let case = Case { kind: self, number, stem: stem.into(), folder: folder.into() };
            if self.has(&case) {
                cases.push(case);
            }
        }
        cases.sort_by_key(|case| case.number);
        Ok(cases)
    }

    /// Returns true if the case is of this kind. Cases of two kinds can share files; another file
    /// tells them apart.
    fn has(self, case: &Case) -> bool {
        let there = |ending| case.path(ending).exists();
        match self {
            // a case with this file loads anchors from files
            CaseKind::Pf | CaseKind::SelfPf => !there("one"),
            CaseKind::FreeBsd => !there("fail"),
            _ => true,
        }
    }
}

/// A case, made of files with a common stem.
#[derive(Debug, Clone)]
pub struct Case {
    pub kind: CaseKind,
    /// The file names up to the dot.
    pub stem: String,
    pub number: u32,
    folder: PathBuf,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.name(), self.number)
    }
}

impl Case {
    /// Returns the path of the file with this extension.
    pub fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.stem))
    }

    /// Returns the folder of the case's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the file with this extension. Not every published text is UTF-8.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn bytes(&self, ending: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.path(ending);
        std::fs::read(&path).with_context(|| path.display().to_string())
    }

    /// Reads the file as [`Case::bytes`] does, and replaces bytes that are not UTF-8.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(&self, ending: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(ending)?).into_owned())
    }

    /// Runs the case.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if a program cannot run.
    pub fn run(&self, lab: &Lab) -> anyhow::Result<CaseResult> {
        match self.kind {
            CaseKind::Pf => openbsd::pf(self, lab),
            CaseKind::SelfPf => openbsd::selfpf(self, lab),
            CaseKind::PfFail => openbsd::pfail(self, lab),
            CaseKind::PfOpt => openbsd::pfopt(self, lab),
            CaseKind::PfSimple => openbsd::pfsimple(self, lab),
            CaseKind::PfLoad => openbsd::pfload(self, lab),
            CaseKind::PfOptimize => openbsd::pfoptimize(self, lab),
            CaseKind::PfLoadAnchors => openbsd::pfloadanchors(self, lab),
            CaseKind::PfCommand => openbsd::pfcmd(self, lab),
            CaseKind::PfCommandFail => openbsd::pfcmdfail(self, lab),
            CaseKind::PfSetup => openbsd::pfsetup(self, lab),
            CaseKind::Pfr => table::run(self, lab),
            CaseKind::FreeBsd => freebsd::accepted(self, lab),
            CaseKind::FreeBsdFail => freebsd::refused(self, lab),
            CaseKind::RealWorld => realworld::run(self, lab),
        }
    }
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    Passed,
    /// Passed with another output, for this reason.
    Explained(String),
    /// The output is not as expected.
    Different {
        expected: String,
        actual: String,
    },
    /// Any other failure.
    Wrong(String),
}

impl CaseResult {
    /// Returns `Passed` if the texts are equal.
    pub fn compare(expected: impl Into<String>, actual: impl Into<String>) -> CaseResult {
        let (expected, actual) = (expected.into(), actual.into());
        if expected == actual {
            CaseResult::Passed
        } else {
            CaseResult::Different { expected, actual }
        }
    }

    /// Returns true if the case has passed.
    pub fn is_good(&self) -> bool {
        matches!(self, CaseResult::Passed | CaseResult::Explained(_))
    }

    /// Formats one line about `case`.
    pub fn line(&self, case: &Case) -> String {
        match self {
            CaseResult::Passed => format!("ok     {case}"),
            CaseResult::Explained(reason) => format!("ok     {case}: {reason}"),
            CaseResult::Wrong(reason) => format!("not ok {case}: {}", first_line(reason)),
            CaseResult::Different { expected, actual } => {
                let (expected, actual) = first_difference(expected, actual);
                format!("not ok {case}: expected `{expected}`, got `{actual}`")
            }
        }
    }
}

/// Returns the first line that is not a warning.
fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.contains(": warning: ")).unwrap_or("")
}

/// Returns the first lines that differ; an empty text stands for the end.
fn first_difference<'a>(expected: &'a str, actual: &'a str) -> (&'a str, &'a str) {
    let (mut left, mut right) = (expected.lines(), actual.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return ("", ""),
            (left, right) if left == right => {}
            (left, right) => return (left.unwrap_or(""), right.unwrap_or("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_that_differ_are_returned() {
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), ("b", "c"));
        assert_eq!(first_difference("a\n", "a\nc\n"), ("", "c"));
    }

    #[test]
    fn cases_are_found_by_their_files() {
        let folder = std::env::temp_dir().join(format!("skipstep-cases-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["pf10.ok", "pf9.ok", "pf9.in", "pf11.ok", "pf11.one", "pfail1.ok", "README"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names = |kind: CaseKind| -> Vec<String> {
            kind.find(&folder).unwrap().iter().map(Case::to_string).collect()
        };
        assert_eq!(names(CaseKind::Pf), ["pf9", "pf10"]);
        assert_eq!(names(CaseKind::PfFail), ["pfail1"]);
        assert_eq!(names(CaseKind::PfLoadAnchors), ["pfloadanchors11"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

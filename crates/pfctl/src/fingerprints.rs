//! Fingerprints of operating systems: the file that `set fingerprints` names, or else /etc/pf.os, in
//! the format of OpenBSD's pf.os(5).

use std::collections::BTreeMap;

/// Where they are unless `set fingerprints` says something else.
pub const FILE: &str = "/etc/pf.os";

/// Fields of a line: window, TTL, DF, SYN size, options, class, version, subtype, description.
const FIELDS: usize = 9;

/// The names that fingerprints have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// How many there are; a range of versions counts as often as it has versions, and once more.
    pub count: usize,
    /// Class, version, subtype, each sorted without regard to case.
    pub names: Names,
}

/// Names by what they are sorted by, with those below them.
pub type Names = BTreeMap<String, Name>;

/// A name as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    /// Names below it.
    pub below: Names,
}

impl Fingerprints {
    /// Reads the text of a file. A line that is no fingerprint is an error with its number.
    pub fn parse(text: &str) -> Result<Fingerprints, String> {
        let mut fingerprints = Fingerprints::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.splitn(FIELDS, ':').map(str::trim).collect();
            if fields.len() != FIELDS || fields[5].is_empty() {
                return Err(format!("{}: not a fingerprint", at + 1));
            }
            // marks of other programs: `@` for what is no system, `*` for a guess
            let class = fields[5].trim_start_matches(['@', '*']);
            fingerprints.add(class, fields[6], fields[7]);
        }
        Ok(fingerprints)
    }

    fn add(&mut self, class: &str, version: &str, subtype: &str) {
        for version in expand(version) {
            for subtype in expand(subtype) {
                self.count += 1;
                let mut level = &mut self.names;
                for name in [class, &version, &subtype] {
                    if name.is_empty() {
                        break;
                    }
                    let entry = level.entry(name.to_lowercase()).or_default();
                    if entry.name.is_empty() {
                        entry.name = name.to_owned();
                    }
                    level = &mut entry.below;
                }
            }
        }
    }
}

/// `4.6-4.8`, `2-3`: the range itself, and each that is in it.
fn expand(text: &str) -> Vec<String> {
    let mut names = vec![text.to_owned()];
    if let Some((first, last)) = text.split_once('-') {
        let (major, first) = split_major(first);
        let (major_of_last, last) = split_major(last);
        let same = major_of_last.is_none() || major_of_last == major;
        if let (Some(first), Some(last), true) = (small(first), small(last), same) {
            let major = major.map(|major| format!("{major}.")).unwrap_or_default();
            names.extend((first..=last).map(|minor| format!("{major}{minor}")));
        }
    }
    names
}

/// `4.6`: 4 and 6. A major version is one digit.
fn split_major(text: &str) -> (Option<&str>, &str) {
    match text.split_once('.') {
        Some((major, minor)) if small(major).is_some() && major.len() == 1 => (Some(major), minor),
        _ => (None, text),
    }
}

/// A number of one or two digits.
fn small(text: &str) -> Option<u8> {
    let digits = text.len() <= 2 && text.chars().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_expanded() {
        assert_eq!(expand("4.6-4.8"), ["4.6-4.8", "4.6", "4.7", "4.8"]);
        assert_eq!(expand("2-3"), ["2-3", "2", "3"]);
        for one in ["", "B.10.20", "noRFC1323", "5.0-6.1", "98-SE"] {
            assert_eq!(expand(one), [one]);
        }
    }

    #[test]
    fn a_file_is_read() {
        let text = "# comment\n45046:64:0:44:M*:AIX:4.3::AIX 4.3\n\
                    16384:64:1:60:M*,N:AIX:4.3:2-3:AIX 4.3.2 and 4.3.3\n";
        let fingerprints = Fingerprints::parse(text).unwrap();
        assert_eq!(fingerprints.count, 4);
        let versions = &fingerprints.names["aix"].below["4.3"].below;
        assert_eq!(versions.keys().collect::<Vec<_>>(), ["2", "2-3", "3"]);
        assert_eq!(Fingerprints::parse("a:b\n"), Err("1: not a fingerprint".into()));
    }
}

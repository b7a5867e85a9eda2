//! Fingerprints of operating systems: the file of `set fingerprints` (default /etc/pf.os) in the
//! format of OpenBSD's pf.os(5), and the `os` criterion of rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Path of the file of fingerprints without `set fingerprints`.
pub const FILE: &str = "/etc/pf.os";

/// Fields of a line: window, TTL, DF, SYN size, options, class, version, subtype, description.
const FIELDS: usize = 9;

/// The project's own fingerprints, which `make install` copies to [`FILE`].
// Differs from OpenBSD: linux.md, "Fingerprints"
pub const BUILT_IN: &str = include_str!("../../../packaging/pf.os");

/// Bytes by which an IPv6 header is longer than an IPv4 header.
const LONGER_HEADER: u16 = 20;

/// A criterion for a number in a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Measure {
    /// `*`: any number.
    Any,
    /// `n`: exactly this number.
    Exactly(u16),
    /// `%n`: a multiple of this number.
    MultipleOf(u16),
}

/// The criterion for the window of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Window {
    /// A criterion for the window itself.
    Measure(Measure),
    /// `Sn`: this many times the MSS.
    Segments(u16),
    /// `Tn`: this many times the MTU.
    Packets(u16),
}

/// OpenBSD's codes of TCP options in [`Signature::options`].
pub mod option_code {
    /// `N`: no operation.
    pub const NOP: u64 = 0;
    /// `W`: window scale.
    pub const WINDOW_SCALE: u64 = 1;
    /// `M`: maximum segment size.
    pub const MSS: u64 = 2;
    /// `S`: selective acknowledgment permitted.
    pub const SACK: u64 = 3;
    /// `T`: timestamp.
    pub const TIMESTAMP: u64 = 4;
    /// Number of bits of a code.
    pub const BITS: u32 = 3;
}

/// The properties of the SYNs of an operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// Criterion for the window.
    pub window: Window,
    /// TTL with which the system sends.
    pub ttl: u8,
    /// True if the don't-fragment bit must be set, false if it must be clear.
    pub df: bool,
    /// Criterion for the length of the packet in bytes.
    pub size: Measure,
    /// TCP options as [`option_code`]s, 3 bits each, the first option in the highest bits.
    pub options: u64,
    /// Number of codes in `options`.
    pub option_count: u8,
    /// True if the timestamp must be 0.
    pub zero_timestamp: bool,
    /// Criterion for the MSS in bytes.
    pub mss: Measure,
    /// Criterion for the window scale.
    pub scale: Measure,
}

/// An operating system, named as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct System {
    /// Class, version and subtype. Version and subtype may be empty.
    pub names: [String; 3],
}

/// A signature with the systems that send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The properties of the SYNs.
    pub signature: Signature,
    /// The systems with these properties.
    pub systems: Vec<System>,
}

/// The meaning of `os "name"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsMatch {
    /// `unknown`: matches SYNs without a fingerprint.
    Unknown,
    /// Matches SYNs of one of the systems with these names.
    System(System),
    /// Matches nothing, because no fingerprint has this name.
    Nothing,
}

impl OsMatch {
    /// True if the criterion matches a packet whose fingerprint is `found`; `None` if no
    /// fingerprint matches the packet.
    pub fn admits(&self, found: Option<&Fingerprint>) -> bool {
        match self {
            OsMatch::Unknown => found.is_none(),
            OsMatch::Nothing => false,
            OsMatch::System(wanted) => found.is_some_and(|found| {
                found.systems.iter().any(|system| {
                    let names = wanted.names.iter().zip(&system.names);
                    names.into_iter().all(|(wanted, name)| {
                        wanted.is_empty() || wanted.eq_ignore_ascii_case(name)
                    })
                })
            }),
        }
    }
}

/// The contents of a file of fingerprints.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// Fingerprints in the order of the file: the first that matches a SYN counts. A fingerprint
    /// with DF and an exact size appears twice, the second time with the size that it has over
    /// IPv6.
    pub all: Vec<Fingerprint>,
    /// Number of fingerprints as pfctl counts them. A range of versions or subtypes counts once,
    /// and once more for each of its members.
    pub count: usize,
    /// Tree of class, version and subtype.
    pub names: Names,
}

/// Names by their lower-case form.
pub type Names = BTreeMap<String, Name>;

/// A name with the names below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Name as the file first writes it.
    pub name: String,
    /// Versions below a class, subtypes below a version.
    pub below: Names,
}

impl Fingerprints {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// Fails at the first line that is not a fingerprint. The error names the line number, from 1.
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
            let signature =
                signature(&fields).ok_or_else(|| format!("{}: not a fingerprint", at + 1))?;
            // marks of p0f: `@` for a program that is no system, `*` for a guess
            let class = fields[5].trim_start_matches(['@', '*']);
            fingerprints.add(signature, class, fields[6], fields[7]);
        }
        Ok(fingerprints)
    }

    /// Returns the meaning of a name in a rule: a class, class and version, or class, version and
    /// subtype. Case does not matter.
    pub fn os_match(&self, name: &str) -> OsMatch {
        if name.eq_ignore_ascii_case("unknown") {
            return OsMatch::Unknown;
        }
        let lower = name.to_lowercase();
        let system = |names: [&str; 3]| OsMatch::System(System { names: names.map(str::to_owned) });
        if self.names.contains_key(&lower) {
            return system([&lower, "", ""]);
        }
        let Some((class, rest)) = lower.split_once(' ') else {
            return OsMatch::Nothing;
        };
        let Some(versions) = self.names.get(class).map(|class| &class.below) else {
            return OsMatch::Nothing;
        };
        if versions.contains_key(rest) {
            return system([class, rest, ""]);
        }
        for (version, below) in versions {
            let subtype =
                rest.strip_prefix(version.as_str()).and_then(|rest| rest.strip_prefix(' '));
            if let Some(subtype) = subtype.filter(|subtype| below.below.contains_key(*subtype)) {
                return system([class, version, subtype]);
            }
        }
        OsMatch::Nothing
    }

    /// Adds a system to the fingerprint of a signature, or a new fingerprint.
    fn add_system(&mut self, signature: Signature, system: &System) {
        match self.all.iter_mut().find(|known| known.signature == signature) {
            Some(known) => known.systems.push(system.clone()),
            None => self.all.push(Fingerprint { signature, systems: vec![system.clone()] }),
        }
    }

    fn add(&mut self, signature: Signature, class: &str, version: &str, subtype: &str) {
        for version in expand(version) {
            for subtype in expand(subtype) {
                self.count += 1;
                let names = [class, &version, &subtype].map(str::to_owned);
                let system = System { names };
                self.add_system(signature, &system);
                if let (true, Measure::Exactly(size)) = (signature.df, signature.size) {
                    let size = Measure::Exactly(size.saturating_add(LONGER_HEADER));
                    self.add_system(Signature { size, ..signature }, &system);
                }
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

/// Parses the first five fields of a line. `None` if one is invalid.
fn signature(fields: &[&str]) -> Option<Signature> {
    let window = match fields[0].as_bytes().first()? {
        b'S' => Window::Segments(fields[0][1..].parse().ok()?),
        b'T' => Window::Packets(fields[0][1..].parse().ok()?),
        _ => Window::Measure(measure(fields[0])?),
    };
    let df = match fields[2] {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let mut signature = Signature {
        window,
        ttl: fields[1].parse().ok()?,
        df,
        size: measure(fields[3])?,
        options: 0,
        option_count: 0,
        zero_timestamp: false,
        mss: Measure::Any,
        scale: Measure::Any,
    };
    let options = fields[4].split(',').map(str::trim);
    for option in options.filter(|_| fields[4] != ".") {
        let code = match (option.as_bytes().first()?, &option[1..]) {
            (b'N', "") => option_code::NOP,
            (b'S', "") => option_code::SACK,
            (b'T', rest @ ("" | "0")) => {
                signature.zero_timestamp |= rest == "0";
                option_code::TIMESTAMP
            }
            (b'M', number) => {
                signature.mss = measure(number)?;
                option_code::MSS
            }
            (b'W', number) => {
                signature.scale = measure(number)?;
                option_code::WINDOW_SCALE
            }
            _ => return None,
        };
        signature.options = signature.options << option_code::BITS | code;
        signature.option_count += 1;
    }
    Some(signature)
}

/// Parses `n`, `%n` or `*`.
fn measure(text: &str) -> Option<Measure> {
    match text.strip_prefix('%') {
        Some(number) => Some(Measure::MultipleOf(number.parse().ok().filter(|n| *n != 0)?)),
        None if text == "*" => Some(Measure::Any),
        None => text.parse().ok().map(Measure::Exactly),
    }
}

/// Returns the text, followed by each number in the range if it is one: `4.6-4.8`, `2-3`.
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

/// Splits `4.6` into 4 and 6. A major version has one digit.
fn split_major(text: &str) -> (Option<&str>, &str) {
    match text.split_once('.') {
        Some((major, minor)) if small(major).is_some() && major.len() == 1 => (Some(major), minor),
        _ => (None, text),
    }
}

/// Parses a number of one or two digits.
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
        for (line, text) in [
            (1, "a:b\n"),
            (1, "S:64:1:60:M*:A:::x"),
            (2, "\n1:64:2:60:M*:A:::x"),
            (1, "1:64:1:60:M%0:A:::x"),
            (1, "1:64:1:60:Q:A:::x"),
            (1, "%:64:1:60:.:A:::x"),
        ] {
            assert_eq!(
                Fingerprints::parse(text),
                Err(format!("{line}: not a fingerprint")),
                "{text}"
            );
        }
    }

    #[test]
    fn names_in_rules_mean_systems() {
        let fingerprints =
            Fingerprints::parse("1:64:1:60:N:Windows:XP:SP1:x\n2:64:1:60:.:Linux:2.6::y\n")
                .unwrap();
        let system = |names: [&str; 3]| OsMatch::System(System { names: names.map(str::to_owned) });
        for (name, wanted) in [
            ("Unknown", OsMatch::Unknown),
            ("WINDOWS", system(["windows", "", ""])),
            ("Windows xp", system(["windows", "xp", ""])),
            ("Windows XP SP1", system(["windows", "xp", "sp1"])),
            ("Linux 2.6", system(["linux", "2.6", ""])),
            ("Linux 2.4", OsMatch::Nothing),
            ("Linux 2.6 x", OsMatch::Nothing),
            ("Plan9", OsMatch::Nothing),
        ] {
            assert_eq!(fingerprints.os_match(name), wanted, "{name}");
        }
        assert!(system(["windows", "xp", ""]).admits(fingerprints.all.first()));
        assert!(!system(["linux", "", ""]).admits(fingerprints.all.first()));
        assert!(!OsMatch::Unknown.admits(fingerprints.all.first()));
        assert!(OsMatch::Unknown.admits(None));
        assert!(!OsMatch::Nothing.admits(None));
    }

    #[test]
    fn built_in_fingerprints_distinguish_systems() {
        let fingerprints = Fingerprints::parse(BUILT_IN).unwrap();
        let classes: Vec<&str> =
            fingerprints.names.values().map(|class| class.name.as_str()).collect();
        assert_eq!(classes, ["FreeBSD", "Linux", "MacOS", "OpenBSD", "Windows"]);
        for fingerprint in &fingerprints.all {
            let class = &fingerprint.systems[0].names[0];
            assert!(fingerprint.systems.iter().all(|s| s.names[0] == *class), "{fingerprint:?}");
        }
    }
}

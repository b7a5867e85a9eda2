//! Checks of skipstepd and of the units that load rules at boot.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use skipstep_kernel::daemon_runs;

use super::finding::Finding;
use super::{FILE, Filter, Inputs, Words, has_systemd, output_of};

const DAEMON: &str = "skipstepd";
const SUBJECT: &str = "units";

/// Units that have to be enabled.
const ENABLED: [&str; 3] = ["skipstepd.service", "skipstep-boot.service", "skipstep-rules.service"];

/// Unit that closes a host whose filter cannot start.
const CLOSED: &str = "skipstep-closed.service";

/// The processes and units of skipstep.
pub struct Facts {
    /// skipstepd of this filter.
    daemon: Daemon,
    /// Units of systemd; `None` if systemd does not run, or if the filter is not that of the host.
    units: Option<BTreeMap<String, Unit>>,
    /// True if the filter is that of the host, and systemd does not run.
    lacks_systemd: bool,
    /// True if the file that the units load exists.
    has_file: bool,
}

/// The daemon of the filter. It is known by its devices, which it has while there is a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    /// It runs.
    Runs,
    /// It does not run, though there is a filter.
    Missing,
    /// It has no devices, and this user cannot see if there is a filter.
    Hidden,
    /// There is no filter.
    Idle,
}

/// A unit of systemd.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    /// True if its file is installed.
    is_installed: bool,
    /// `active`, `inactive`, `failed` …
    active: String,
    /// `enabled`, `disabled`, `static` …
    enabled: String,
}

/// Reads the facts.
///
/// # Errors
/// Fails if rtnetlink refuses to list the interfaces.
pub fn collect(inputs: &Inputs) -> Result<Facts> {
    let daemon = match (daemon_runs()?, &inputs.filter) {
        (true, _) => Daemon::Runs,
        (false, Filter::Open(_)) => Daemon::Missing,
        (false, Filter::Hidden) => Daemon::Hidden,
        (false, Filter::Absent | Filter::Broken(_)) => Daemon::Idle,
    };
    let has_systemd = has_systemd();
    Ok(Facts {
        daemon,
        units: if has_systemd && inputs.is_main() { read_units() } else { None },
        lacks_systemd: !has_systemd && inputs.is_main(),
        has_file: Path::new(FILE).exists(),
    })
}

fn read_units() -> Option<BTreeMap<String, Unit>> {
    let properties = "--property=Id,LoadState,ActiveState,UnitFileState";
    let arguments: Vec<&str> =
        ["show", properties].into_iter().chain(ENABLED).chain([CLOSED]).collect();
    output_of("systemctl", &arguments).map(|text| units(&text))
}

/// Parses the output of `systemctl show`: a paragraph for each unit, a line for each property.
fn units(text: &str) -> BTreeMap<String, Unit> {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    let unit = |paragraph: &str| {
        let lines = paragraph.lines().filter_map(|line| line.split_once('='));
        let values: BTreeMap<&str, &str> = lines.collect();
        let value = |name: &str| values.get(name).copied().unwrap_or_default().to_owned();
        let is_installed = value("LoadState") == "loaded";
        let unit =
            Unit { is_installed, active: value("ActiveState"), enabled: value("UnitFileState") };
        (value("Id"), unit)
    };
    paragraphs.map(unit).collect()
}

/// Judges the facts.
pub fn judge(facts: &Facts, words: &Words) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has_unit = facts.units.as_ref().is_some_and(|units| is_installed(units, ENABLED[0]));
    match facts.daemon {
        Daemon::Runs => findings.push(Finding::ok(DAEMON, "runs")),
        Daemon::Missing => {
            let text = "does not run: no log, new interfaces stay closed, fragments and delayed \
                        packets are dropped";
            let start =
                if has_unit { "systemctl enable --now skipstepd" } else { &*words.skipstepd };
            findings.push(Finding::fail(DAEMON, text).mended_by(start));
        }
        Daemon::Hidden => {
            let why = "it has no devices, so it does not run, or there is no filter";
            let command = format!("sudo {} doctor", words.pfctl);
            findings.push(Finding::unseen(DAEMON, why).mended_by(command));
        }
        Daemon::Idle => {}
    }
    if facts.lacks_systemd {
        let text = "systemd does not run here: another service has to load the rules at boot";
        findings.push(Finding::ok(SUBJECT, text));
    }
    let Some(units) = &facts.units else { return findings };
    if !has_unit {
        let text = "not installed: no rules are loaded at boot";
        findings.push(Finding::warn(SUBJECT, text).mended_by("make install"));
        return findings;
    }
    if !facts.has_file {
        let text = format!("{FILE} does not exist, so no rules are loaded at boot");
        findings.push(Finding::fail(SUBJECT, text));
    }
    let faults: Vec<Finding> = units.iter().filter_map(|(id, unit)| fault(id, unit)).collect();
    if faults.is_empty() && facts.has_file {
        findings.push(Finding::ok(SUBJECT, "rules are loaded at boot"));
    }
    findings.extend(faults);
    findings
}

fn is_installed(units: &BTreeMap<String, Unit>, id: &str) -> bool {
    units.get(id).is_some_and(|unit| unit.is_installed)
}

/// Returns the fault of a unit.
fn fault(id: &str, unit: &Unit) -> Option<Finding> {
    let name = id.trim_end_matches(".service");
    if !unit.is_installed {
        let effect = match id {
            CLOSED => "a host whose filter cannot start is open",
            _ => "it does not start at boot",
        };
        let text = format!("{name} is not installed: {effect}");
        return Some(Finding::warn(SUBJECT, text).mended_by("make install"));
    }
    if id == CLOSED {
        return None; // skipstep-boot and skipstep-rules start it
    }
    if unit.active == "failed" {
        let text = format!("{name} has failed: `journalctl -u {name}` shows the reason");
        let restart = format!("systemctl restart {name}");
        return Some(Finding::fail(SUBJECT, text).mended_by(restart));
    }
    let text = format!("{name} is {}, so it does not start at boot", unit.enabled);
    let enable = format!("systemctl enable {name}");
    (unit.enabled != "enabled").then(|| Finding::warn(SUBJECT, text).mended_by(enable))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const SHOWN: &str = "Id=skipstepd.service\nLoadState=loaded\nActiveState=active\n\
        UnitFileState=enabled\n\nId=skipstep-boot.service\nLoadState=loaded\nActiveState=active\n\
        UnitFileState=disabled\n\nId=skipstep-rules.service\nLoadState=loaded\n\
        ActiveState=failed\nUnitFileState=enabled\n\nId=skipstep-closed.service\n\
        LoadState=not-found\nActiveState=inactive\nUnitFileState=\n";

    fn facts(daemon: Daemon, units: Option<BTreeMap<String, Unit>>) -> Facts {
        Facts { daemon, units, lacks_systemd: false, has_file: true }
    }

    /// Returns level and command of each finding.
    fn commands(facts: &Facts) -> Vec<(Level, Option<String>)> {
        let findings = judge(facts, &Words::usual()).into_iter();
        findings.map(|finding| (finding.level, finding.command)).collect()
    }

    #[test]
    fn a_daemon_that_does_not_run_fails() {
        let start = |command: &str| (Level::Fail, Some(command.to_owned()));
        assert_eq!(commands(&facts(Daemon::Missing, None)), [start("skipstepd")]);
        let units = units(SHOWN);
        let command = "systemctl enable --now skipstepd";
        assert_eq!(commands(&facts(Daemon::Missing, Some(units)))[0], start(command));
        assert_eq!(commands(&facts(Daemon::Runs, None)), [(Level::Ok, None)]);
        assert!(commands(&facts(Daemon::Idle, None)).is_empty());
        let hidden = judge(&facts(Daemon::Hidden, None), &Words::usual());
        assert!(!hidden[0].seen);
        let other_init = Facts { lacks_systemd: true, ..facts(Daemon::Idle, None) };
        assert_eq!(commands(&other_init), [(Level::Ok, None)]);
    }

    #[test]
    fn each_fault_of_a_unit_is_reported() {
        let expected = [
            (Level::Warn, "systemctl enable skipstep-boot"),
            (Level::Warn, "make install"),
            (Level::Fail, "systemctl restart skipstep-rules"),
        ];
        let found = commands(&facts(Daemon::Idle, Some(units(SHOWN))));
        assert_eq!(found, expected.map(|(level, command)| (level, Some(command.to_owned()))));
    }

    #[test]
    fn a_unit_that_is_not_installed_is_no_disabled_unit() {
        let mut units = units(SHOWN);
        let missing =
            Unit { is_installed: false, active: "inactive".to_owned(), enabled: String::new() };
        units.insert("skipstep-boot.service".to_owned(), missing);
        let findings = judge(&facts(Daemon::Idle, Some(units)), &Words::usual());
        let text = "skipstep-boot is not installed: it does not start at boot";
        assert!(findings.iter().any(|finding| finding.text == text), "{findings:?}");
    }

    #[test]
    fn units_that_load_rules_are_well() {
        let unit = |enabled: &str| Unit {
            is_installed: true,
            active: "active".to_owned(),
            enabled: enabled.to_owned(),
        };
        let enabled = ENABLED.map(|id| (id.to_owned(), unit("enabled")));
        let all: BTreeMap<_, _> =
            enabled.into_iter().chain([(CLOSED.to_owned(), unit("static"))]).collect();
        assert_eq!(commands(&facts(Daemon::Idle, Some(all.clone()))), [(Level::Ok, None)]);
        let without_file = Facts { has_file: false, ..facts(Daemon::Idle, Some(all)) };
        assert_eq!(commands(&without_file), [(Level::Fail, None)]);
        let none = facts(Daemon::Idle, Some(BTreeMap::new()));
        assert_eq!(commands(&none), [(Level::Warn, Some("make install".to_owned()))]);
    }
}

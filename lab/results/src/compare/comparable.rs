//! The checks of two runs before a comparison.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde_json::Value;

use crate::Run;

/// Number of differing fields of an object that a message names.
const MOST_FIELDS: usize = 3;

/// Refuses runs whose figures have different meanings. Returns all reasons.
pub(super) fn check(before: &Run, after: &Run) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    let mut same = |what: &str, earlier: &dyn std::fmt::Display, later: &dyn std::fmt::Display| {
        let (earlier, later) = (earlier.to_string(), later.to_string());
        if earlier != later {
            reasons.push(format!("{what}: {earlier} before, {later} after"));
        }
    };
    same("mode", &before.mode.name(), &after.mode.name());
    let machines = [&before.environment, &after.environment];
    same("architecture", &machines[0].architecture, &machines[1].architecture);
    same("processor", &machines[0].cpu.model, &machines[1].cpu.model);
    same("processors", &machines[0].cpu.online, &machines[1].cpu.online);
    same("agents", &before.agents.len(), &after.agents.len());
    for (earlier, later) in before.agents.iter().zip(&after.agents) {
        let machines = [&earlier.environment.cpu, &later.environment.cpu];
        let end = format!("the {}'s", earlier.end);
        same(&format!("{end} processor"), &machines[0].model, &machines[1].model);
        same(&format!("{end} processors"), &machines[0].online, &machines[1].online);
    }
    for earlier in &before.topologies {
        if let Some(later) = after.topologies.iter().find(|later| later.name == earlier.name) {
            reasons.extend(differences(&format!("topology {}", earlier.name), earlier, later));
        }
    }
    for earlier in &before.series {
        if let Some(later) = after.series.iter().find(|later| later.title == earlier.title) {
            reasons.extend(differences(
                &format!("{}: load", earlier.title),
                &earlier.load,
                &later.load,
            ));
            let quantity = format!("{}: quantity", earlier.title);
            reasons.extend(differences(&quantity, &earlier.quantity, &later.quantity));
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Returns the fields in which two values differ.
fn differences<T: serde::Serialize + Debug>(what: &str, earlier: &T, later: &T) -> Vec<String> {
    // A value that was read from JSON can be written as JSON.
    let (Ok(Value::Object(earlier)), Ok(Value::Object(later))) =
        (serde_json::to_value(earlier), serde_json::to_value(later))
    else {
        return Vec::new();
    };
    let separator = if what.starts_with("topology") { ":" } else { "," };
    earlier
        .iter()
        .filter(|(field, value)| *field != "description" && later.get(*field) != Some(value))
        .map(|(field, value)| {
            format!("{what}{separator} {field}: {}", change(value, &later[field]))
        })
        .collect()
}

/// Returns both values. Of two objects it returns the fields that differ, [`MOST_FIELDS`] at most.
fn change(earlier: &Value, later: &Value) -> String {
    let (Value::Object(before), Value::Object(after)) = (earlier, later) else {
        return format!("{earlier} before, {later} after");
    };
    let shown = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes: Vec<String> = names
        .into_iter()
        .map(|name| (name, before.get(name), after.get(name)))
        .filter(|(_, one, other)| one != other)
        .map(|(name, one, other)| format!("{name} {} before, {} after", shown(one), shown(other)))
        .collect();
    let more = changes.len().saturating_sub(MOST_FIELDS);
    changes.truncate(MOST_FIELDS);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    changes.join("; ")
}

/// Returns notes on differences that permit a comparison, but may explain its result.
pub(super) fn notes(before: &Run, after: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let [earlier, later] = [&before.environment, &after.environment];
    if earlier.kernel != later.kernel {
        notes.push(format!("kernel: {} before, {} after", earlier.kernel, later.kernel));
    }
    for (earlier, later) in before.agents.iter().zip(&after.agents) {
        let kernels = [&earlier.environment.kernel, &later.environment.kernel];
        if kernels[0] != kernels[1] {
            notes.push(format!(
                "the {}'s kernel: {} before, {} after",
                earlier.end, kernels[0], kernels[1]
            ));
        }
    }
    for (program, version) in &earlier.programs {
        if let Some(other) = later.programs.get(program).filter(|other| *other != version) {
            notes.push(format!("{program}: {version} before, {other} after"));
        }
    }
    for (name, value) in &earlier.sysctls {
        if let Some(other) = later.sysctls.get(name).filter(|other| *other != value) {
            notes.push(format!("{name}: {value} before, {other} after"));
        }
    }
    if earlier.mitigations != later.mitigations {
        notes.push("the mitigations of CPU vulnerabilities differ".to_string());
    }
    if earlier.boot.is_some() && earlier.boot == later.boot {
        notes.push(
            "both runs are of the same boot: effects of its memory layout do not show as noise"
                .to_string(),
        );
    }
    for (which, run) in [("earlier", before), ("later", after)] {
        if let Some(why) = run.incomplete_because.as_ref().filter(|_| !run.complete) {
            notes.push(format!("the {which} run is not complete: {why}"));
        }
        if let Some(steal) = run.environment.steal.filter(|steal| *steal >= 1.0) {
            notes
                .push(format!("{steal:.1} % of the {which} run's time was stolen by other guests"));
        }
    }
    for series in &before.series {
        if !after.series.iter().any(|other| other.title == series.title) {
            notes.push(format!("only the earlier run has: {}", series.title));
        }
    }
    for series in &after.series {
        if !before.series.iter().any(|other| other.title == series.title) {
            notes.push(format!("only the later run has: {}", series.title));
        }
    }
    notes
}

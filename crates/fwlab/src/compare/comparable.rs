//! The checks of two runs before a comparison.

use std::fmt::Debug;

use serde_json::Value;

use crate::results::Run;

/// Refuses runs whose figures have different meanings. Returns all reasons.
pub(super) fn check(before: &Run, after: &Run) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    let mut same = |what: &str, old: &dyn std::fmt::Display, new: &dyn std::fmt::Display| {
        let (old, new) = (old.to_string(), new.to_string());
        if old != new {
            reasons.push(format!("{what}: {old} against {new}"));
        }
    };
    same("mode", &before.mode.name(), &after.mode.name());
    let machines = [&before.environment, &after.environment];
    same("architecture", &machines[0].architecture, &machines[1].architecture);
    same("processor", &machines[0].cpu.model, &machines[1].cpu.model);
    same("processors", &machines[0].cpu.online, &machines[1].cpu.online);
    same("agents", &before.agents.len(), &after.agents.len());
    for (old, new) in before.agents.iter().zip(&after.agents) {
        let machines = [&old.environment.cpu, &new.environment.cpu];
        let end = format!("the {}'s", old.end);
        same(&format!("{end} processor"), &machines[0].model, &machines[1].model);
        same(&format!("{end} processors"), &machines[0].online, &machines[1].online);
    }
    for old in &before.topologies {
        if let Some(new) = after.topologies.iter().find(|new| new.name == old.name) {
            reasons.extend(differences(&format!("topology {}", old.name), old, new));
        }
    }
    for old in &before.series {
        if let Some(new) = after.series.iter().find(|new| new.title == old.title) {
            reasons.extend(differences(&format!("{}: load", old.title), &old.load, &new.load));
            let quantity = format!("{}: quantity", old.title);
            reasons.extend(differences(&quantity, &old.quantity, &new.quantity));
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Returns the fields in which two values differ.
fn differences<T: serde::Serialize + Debug>(what: &str, old: &T, new: &T) -> Vec<String> {
    // A value that was read from JSON can be written as JSON.
    let (Ok(Value::Object(old)), Ok(Value::Object(new))) =
        (serde_json::to_value(old), serde_json::to_value(new))
    else {
        return Vec::new();
    };
    let separator = if what.starts_with("topology") { ":" } else { "," };
    old.iter()
        .filter(|(field, value)| *field != "description" && new.get(*field) != Some(value))
        .map(|(field, value)| format!("{what}{separator} {field}: {value} against {}", new[field]))
        .collect()
}

/// Returns notes on differences that permit a comparison, but may explain its result.
pub(super) fn notes(before: &Run, after: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let [old, new] = [&before.environment, &after.environment];
    if old.kernel != new.kernel {
        notes.push(format!("kernel: {} against {}", old.kernel, new.kernel));
    }
    for (old, new) in before.agents.iter().zip(&after.agents) {
        let kernels = [&old.environment.kernel, &new.environment.kernel];
        if kernels[0] != kernels[1] {
            notes.push(format!("the {}'s kernel: {} against {}", old.end, kernels[0], kernels[1]));
        }
    }
    for (program, version) in &old.programs {
        if let Some(other) = new.programs.get(program).filter(|other| *other != version) {
            notes.push(format!("{program}: {version} against {other}"));
        }
    }
    for (name, value) in &old.sysctls {
        if let Some(other) = new.sysctls.get(name).filter(|other| *other != value) {
            notes.push(format!("{name}: {value} against {other}"));
        }
    }
    if old.mitigations != new.mitigations {
        notes.push("the answers to faults of the processor differ".to_string());
    }
    if old.boot.is_some() && old.boot == new.boot {
        notes.push(
            "both are of one start of the machine, and share what it was unlucky with".to_string(),
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

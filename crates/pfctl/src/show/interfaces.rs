//! `-s Interfaces`: prints interfaces, groups, and names that occur in rules only.

use serde_json::{Value, json};
use skipstep_kernel::report::Hook;

use super::{Detail, Traffic, cleared_line, traffic_line};

/// Counters of an interface: `[inet, inet6][in, out][pass, block]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// Name of the interface.
    pub name: String,
    /// Packets and bytes by family, direction and verdict.
    pub traffic: [[[Traffic; 2]; 2]; 2],
}

/// An interface or a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceView {
    /// Name and counters; a group's counters are zero.
    pub statistics: InterfaceTraffic,
    /// True if `set skip on` names the interface.
    pub skip: bool,
    /// Hook of the filter on the interface; `None` if the filter does not know the interface.
    pub hook: Option<Hook>,
    /// Time of the last clearing, in seconds since 1970.
    pub cleared: i64,
    /// Number of states bound to the interface; floating states count for `all`.
    pub states: u64,
    /// Number of references in rules.
    pub rules: u64,
}

impl InterfaceView {
    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.statistics.name
    }
}

/// Prints the interfaces, which must be sorted by name. `filter` selects one by name.
pub fn text(interfaces: &[InterfaceView], filter: Option<&str>, detail: Detail) -> String {
    selected(interfaces, filter).map(|interface| block(interface, detail)).collect()
}

fn selected<'a>(
    interfaces: &'a [InterfaceView],
    filter: Option<&'a str>,
) -> impl Iterator<Item = &'a InterfaceView> {
    interfaces.iter().filter(move |interface| filter.is_none_or(|name| name == interface.name()))
}

fn block(interface: &InterfaceView, detail: Detail) -> String {
    let mut text = interface.name().to_string();
    if detail.verbose() && interface.skip {
        text += " (skip)";
    }
    if detail.verbose() && matches!(interface.hook, Some(Hook::Unattached { .. })) {
        text += " (unattached)";
    }
    text.push('\n');
    if !detail.very_verbose() {
        return text;
    }
    text += &cleared_line(interface.cleared);
    text += &format!(
        "\tReferences:  [ States:  {:<18} Rules: {:<18} ]\n",
        interface.states, interface.rules
    );
    // Differs from OpenBSD: linux.md, "Hooks of interfaces"
    // OpenBSD's text has no such line, so it is left out while the filter is attached nowhere
    if let Some(hook) = interface.hook.as_ref().filter(|hook| **hook != Hook::None) {
        text += &format!("\tHook:        {}\n", hook_text(hook));
    }
    for (family, version) in interface.statistics.traffic.iter().zip([4, 6]) {
        for (verdicts, direction) in family.iter().zip(["In", "Out"]) {
            for (&traffic, verdict) in verdicts.iter().zip(["Pass", "Block"]) {
                text += &traffic_line(&format!("{direction}{version}/{verdict}:"), traffic);
            }
        }
    }
    text
}

/// Returns a list with an object for each interface. `filter` selects one by name.
pub fn json(interfaces: &[InterfaceView], filter: Option<&str>) -> Value {
    selected(interfaces, filter)
        .map(|interface| {
            json!({
                "name": interface.name(),
                "skip": interface.skip,
                "hook": interface.hook.as_ref().map(hook_text),
                "cleared": interface.cleared,
                "states": interface.states,
                "rules": interface.rules,
                "traffic": traffic_json(&interface.statistics.traffic),
            })
        })
        .collect()
}

/// Describes the hook of an interface.
pub fn hook_text(hook: &Hook) -> String {
    match hook {
        Hook::None => "none".to_owned(),
        Hook::Unattached { guarded: true } => {
            "none: unattached, the guard drops its packets".to_owned()
        }
        Hook::Unattached { guarded: false } => "none: unattached, its packets pass".to_owned(),
        Hook::Tc { without_xdp: None } => "tc".to_owned(),
        Hook::Tc { without_xdp: Some(why) } => format!("tc; no XDP: {why}"),
        Hook::Xdp => "XDP and tc".to_owned(),
    }
}

/// Returns an object with packets and bytes by family, direction and verdict.
pub fn traffic_json(traffic: &[[[Traffic; 2]; 2]; 2]) -> Value {
    let cell = |traffic: Traffic| json!({ "packets": traffic.packets, "bytes": traffic.bytes });
    let direction =
        |verdicts: [Traffic; 2]| json!({ "pass": cell(verdicts[0]), "block": cell(verdicts[1]) });
    let family = |directions: [[Traffic; 2]; 2]| json!({ "in": direction(directions[0]), "out": direction(directions[1]) });
    json!({ "inet": family(traffic[0]), "inet6": family(traffic[1]) })
}

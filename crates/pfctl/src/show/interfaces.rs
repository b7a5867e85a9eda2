//! `-s Interfaces`: interfaces and groups, and the names that only rules know.

use serde_json::{Value, json};
use skipstep_kernel::report::Hook;

use super::{Detail, Traffic, cleared_line, traffic_line};

/// Statistics of an interface: `[inet, inet6][in, out][pass, block]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// Name.
    pub name: String,
    /// Packets and bytes.
    pub traffic: [[[Traffic; 2]; 2]; 2],
}

/// An interface or a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceView {
    /// Name and statistics; a group has none of its own.
    pub statistics: InterfaceTraffic,
    /// `set skip on`
    pub skip: bool,
    /// Where the filter sees its packets, if it is one that the filter knows.
    pub hook: Option<Hook>,
    /// Wall-clock second at which the statistics began.
    pub cleared: i64,
    /// States bound to it; floating ones belong to `all`.
    pub states: u64,
    /// Places in rules that name it.
    pub rules: u64,
}

impl InterfaceView {
    fn name(&self) -> &str {
        &self.statistics.name
    }
}

/// The interfaces, which must be sorted by name; only one if `filter` is given.
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
    // OpenBSD's text has no such line, so there is none while nothing is attached
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

/// A list with an object for each interface.
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

fn hook_text(hook: &Hook) -> String {
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

/// An object with packets and bytes by family, direction and verdict.
pub fn traffic_json(traffic: &[[[Traffic; 2]; 2]; 2]) -> Value {
    let cell = |traffic: Traffic| json!({ "packets": traffic.packets, "bytes": traffic.bytes });
    let direction =
        |verdicts: [Traffic; 2]| json!({ "pass": cell(verdicts[0]), "block": cell(verdicts[1]) });
    let family = |directions: [[Traffic; 2]; 2]| json!({ "in": direction(directions[0]), "out": direction(directions[1]) });
    json!({ "inet": family(traffic[0]), "inet6": family(traffic[1]) })
}

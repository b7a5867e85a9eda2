//! The observable fate of a packet under one of the rule sets.

use serde_json::json;
use skipstep_model::{Decision, Draw, Fate, Firewall, Verdict};
use skipstep_pfconf::print::state_options;
use skipstep_ruleset::{KeepKind, Rule, StateOptions, Timeout, Timeouts};
use skipstep_scenario::case::Arrival;
use skipstep_scenario::run::test_packet;
use skipstep_wire::{print, protocol};

use super::{Side, printed};

/// A packet's fate under one rule set.
#[derive(Debug, Clone)]
pub struct ObservedFate {
    decision: Decision,
    /// Words for verdict, answer, tag, priority, rewritten packet and log.
    fate: Vec<String>,
    /// Words for the properties of the state that the packet created; empty if it created none.
    state: Vec<String>,
}

impl ObservedFate {
    /// Sends `arrival` through a copy of `firewall`. The state table is empty, and random draws
    /// return `draw`.
    pub fn observe(firewall: &Firewall, arrival: &Arrival, draw: u32) -> ObservedFate {
        let mut firewall = firewall.clone();
        firewall.set_random(Draw::Bounded(draw));
        let fate = firewall.packet(&test_packet(arrival));
        let state = firewall.states().find(|state| Some(state.id) == fate.state);
        ObservedFate {
            fate: fate_words(&fate),
            state: state.map_or(Vec::new(), |state| {
                let on = state.interface.as_deref().unwrap_or("all");
                let mut words = vec![
                    format!("state on {on}"),
                    format!("state flags {}", state.flags()),
                    format!("state max-mss {}", state.actions.max_mss),
                ];
                if let Decision::Rule(id) = &fate.decision {
                    let rule = firewall.ruleset().rule(id);
                    let options = rule.and_then(|rule| rule.state.as_deref());
                    let defaults = &firewall.ruleset().options.timeouts;
                    words.extend(options.map(state_words).unwrap_or_default());
                    words.extend(lifetimes(options, defaults, state.protocol()));
                }
                words
            }),
            decision: fate.decision,
        }
    }

    /// True if a user can observe the difference.
    pub fn differs(&self, other: &ObservedFate) -> bool {
        self.fate != other.fate || self.state != other.state
    }

    /// Returns a key of the deciding rule, which groups examples by rule.
    pub fn decision(&self) -> String {
        format!("{:?}", self.decision)
    }

    /// Prints the fate and the deciding rule. Of the state, only properties that differ from
    /// `other` are printed.
    pub fn text(&self, side: &Side, other: &ObservedFate) -> String {
        let by = match (self.rule(side), &self.decision) {
            (Some(rule), _) => format!("by {}", side.location(rule)),
            (None, Decision::None) => "unfiltered".to_string(),
            (None, _) => "by default".to_string(),
        };
        let state =
            self.state.iter().filter(|word| !other.state.is_empty() && !other.state.contains(word));
        let words: Vec<&str> = self.fate.iter().chain(state).map(String::as_str).collect();
        format!("{} {by}", words.join(", "))
    }

    /// Returns an object with the fate, the state and the deciding rule.
    pub fn json(&self, side: &Side) -> serde_json::Value {
        json!({
            "fate": self.fate,
            "state": self.state,
            "rule": self.rule(side).map(|rule| json!({
                "place": side.location(rule),
                "text": printed(rule),
            })),
        })
    }

    fn rule<'a>(&self, side: &'a Side) -> Option<&'a Rule> {
        match &self.decision {
            Decision::Rule(id) => side.ruleset.rule(id),
            _ => None,
        }
    }
}

/// Returns the words of a rule's state options, timeouts excepted.
fn state_words(options: &StateOptions) -> Vec<String> {
    let kind = match options.kind {
        KeepKind::Keep => "keep state",
        KeepKind::Modulate => "modulate state",
        KeepKind::Synproxy => "synproxy state",
    };
    // `lifetimes` prints the timeouts that concern the state
    let options = StateOptions { timeouts: Vec::new(), ..options.clone() };
    let words = state_options(&options).into_iter().map(|option| format!("state ({option})"));
    std::iter::once(kind.to_string()).chain(words).collect()
}

/// Returns the timeouts of a state of `protocol`, in seconds, one for each phase of its life.
fn lifetimes(
    options: Option<&StateOptions>,
    defaults: &Timeouts,
    protocol: u8,
) -> impl Iterator<Item = String> {
    let class = match protocol {
        protocol::TCP => "tcp.",
        protocol::UDP => "udp.",
        protocol::ICMP | protocol::ICMP6 => "icmp.",
        _ => "other.",
    };
    let own = options.map_or(&[][..], |options| &options.timeouts);
    Timeout::ALL.into_iter().filter(move |timeout| timeout.name().starts_with(class)).map(
        move |timeout| {
            let said = own.iter().find(|(own, _)| *own == timeout).map(|(_, seconds)| *seconds);
            format!("{} {}", timeout.name(), said.unwrap_or_else(|| defaults.get(timeout)))
        },
    )
}

/// Returns the words of a fate, in the notation of scenario files.
fn fate_words(fate: &Fate) -> Vec<String> {
    let passes = fate.verdict == Verdict::Pass;
    let verdict = match fate.verdict {
        Verdict::Pass => "pass",
        Verdict::Drop => "block",
        Verdict::Consumed => "consumed",
    };
    let mut words = vec![verdict.to_string()];
    words.extend(fate.replies.iter().map(|reply| answer(reply)));
    if passes && fate.state.is_none() {
        words.push("no state".to_string());
    }
    words.extend(fate.carried.tag.as_ref().map(|tag| format!("tag {tag}")));
    words.extend((fate.carried.prio != 3).then(|| format!("prio {}", fate.carried.prio)));
    words.extend(fate.out.as_ref().map(|out| format!("out {}", print::line(out))));
    words.extend((!fate.log.is_empty()).then(|| "log".to_string()));
    words
}

/// Prints an answer of the firewall: a RST or an ICMP error.
fn answer(reply: &[u8]) -> String {
    let (protocol, header) = match reply {
        [first, ..] if first >> 4 == 4 => (reply.get(9), usize::from(first & 15) * 4),
        _ => (reply.get(6), 40),
    };
    match (protocol, reply.get(header..header + 2)) {
        (Some(&protocol::ICMP), Some([kind, code])) => format!("reply icmp {kind} code {code}"),
        (Some(&protocol::ICMP6), Some([kind, code])) => format!("reply icmp6 {kind} code {code}"),
        _ => "reply rst".to_string(),
    }
}

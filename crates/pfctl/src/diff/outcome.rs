//! What becomes of a packet under one of the rule sets, as far as somebody notices.

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
pub struct Outcome {
    decision: Decision,
    /// Verdict, answer, state, tag and so on.
    fate: Vec<String>,
    /// How the state is that it made.
    state: Vec<String>,
}

impl Outcome {
    /// Sends `arrival` through `firewall`, whose state table is empty, with random draws that
    /// return `draw`.
    pub fn of(firewall: &Firewall, arrival: &Arrival, draw: u32) -> Outcome {
        let mut firewall = firewall.clone();
        firewall.set_random(Draw::Bounded(draw));
        let fate = firewall.packet(&test_packet(arrival));
        let state = firewall.states().find(|state| Some(state.id) == fate.state);
        Outcome {
            fate: words(&fate),
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
                    words.extend(options.map(kept).unwrap_or_default());
                    words.extend(lifetimes(options, defaults, state.protocol()));
                }
                words
            }),
            decision: fate.decision,
        }
    }

    /// Whether somebody notices the difference.
    pub fn differs(&self, other: &Outcome) -> bool {
        self.fate != other.fate || self.state != other.state
    }

    /// What decides, to tell the rules apart that do.
    pub fn decision(&self) -> String {
        format!("{:?}", self.decision)
    }

    /// The fate and the rule that decided; of the state only what is not as in `other`.
    pub fn text(&self, side: &Side, other: &Outcome) -> String {
        let by = match (self.rule(side), &self.decision) {
            (Some(rule), _) => format!("by {}", side.place(rule)),
            (None, Decision::None) => "unfiltered".to_string(),
            (None, _) => "by default".to_string(),
        };
        let state =
            self.state.iter().filter(|word| !other.state.is_empty() && !other.state.contains(word));
        let words: Vec<&str> = self.fate.iter().chain(state).map(String::as_str).collect();
        format!("{} {by}", words.join(", "))
    }

    /// The same as an object.
    pub fn json(&self, side: &Side) -> serde_json::Value {
        json!({
            "fate": self.fate,
            "state": self.state,
            "rule": self.rule(side).map(|rule| json!({
                "place": side.place(rule),
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

/// What else the rule says of the states it makes.
fn kept(options: &StateOptions) -> Vec<String> {
    let kind = match options.kind {
        KeepKind::Keep => "keep state",
        KeepKind::Modulate => "modulate state",
        KeepKind::Synproxy => "synproxy state",
    };
    // of the timeouts, those that concern the state follow
    let options = StateOptions { timeouts: Vec::new(), ..options.clone() };
    let words = state_options(&options).into_iter().map(|option| format!("state ({option})"));
    std::iter::once(kind.to_string()).chain(words).collect()
}

/// How long a state of that protocol lives in each of its phases.
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

/// The fate in the words of scenario files.
fn words(fate: &Fate) -> Vec<String> {
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

/// An answer of the firewall: a RST or an ICMP error.
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

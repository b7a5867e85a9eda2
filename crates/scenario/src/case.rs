//! The contents of a scenario file: cases of rules and steps. docs/howto/scenarios.md has the
//! notation.

use skipstep_model::{Draw, LinkHeader, SocketOwner, TrialTime};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, RuleId};
use skipstep_views::TableEdit;

use crate::expect::Expectation;
use crate::host_change::HostChange;
use crate::kill::Target;
use crate::limiter::LimiterCheck;
use crate::packet::Packet;
use crate::traffic::TrafficCheck;

/// A scenario file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// Interfaces and routes; `None` is [`crate::host::standard`].
    pub host: Option<Host>,
    /// Cases, in order.
    pub cases: Vec<Case>,
}

/// A rule set and a sequence of steps. Every case starts with an empty firewall at second 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Case {
    /// Title of the case.
    pub title: Option<String>,
    /// The main rule set.
    pub rules: Rules,
    /// Files that the rules name, as name and text.
    pub files: Vec<(String, String)>,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

/// The text of a `rules` block.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Lines of pf.conf.
    pub text: String,
    /// For each line of `text`, its line number in the scenario file.
    pub lines: Vec<u32>,
}

/// Compares the text, not the line numbers.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A step of a case.
#[derive(Debug, Clone)]
pub struct Step {
    /// Line of the scenario file.
    pub line: u32,
    /// The action of the step.
    pub action: Action,
}

/// Compares the action, not the line number.
impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.action == other.action
    }
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A packet is filtered.
    Packet(Arrival, Expectation),
    /// The previous packet, which was inbound, is forwarded out of this interface.
    Forward(String, Expectation),
    /// Time passes, and expired states are removed.
    Wait {
        /// Number of seconds.
        seconds: u32,
        /// Numbers of the states that must expire; `None` is not compared.
        expired: Option<Vec<u32>>,
    },
    /// States with these numbers are removed. Numbers without a state are ignored.
    Kill(Vec<u32>),
    /// States that `pfctl -k` would select are removed.
    KillSelected(Target),
    /// The contents of a table change.
    Table(TableEdit),
    /// Rules are loaded into the anchor with this path; an empty path is the main rule set.
    Load(String, Rules),
    /// The next load or flush is on trial.
    Trial(TrialTime),
    /// The load on trial is confirmed.
    Confirm,
    /// The load on trial is undone.
    Revert,
    /// The rules of the anchor with this path are flushed; an empty path is the main rule set.
    Flush(String),
    /// The results of random draws are set.
    Random(Draw),
    /// The host changes.
    Host(HostChange),
    /// Counters are compared.
    Check(Check),
}

/// A packet, with its interface and everything it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Direction, as the firewall sees it.
    pub direction: Direction,
    /// Interface of the packet in this direction.
    pub interface: String,
    /// The packet.
    pub packet: Packet,
    /// Interface by which a forwarded packet arrived.
    pub received_on: Option<String>,
    /// Tag from an earlier hook.
    pub tag: Option<String>,
    /// Priority from an earlier hook.
    pub prio: Option<u8>,
    /// Queue from an earlier hook.
    pub queue: Option<String>,
    /// Delay from an earlier hook, in milliseconds.
    pub delay: Option<u16>,
    /// Owner of the packet's socket on this host.
    pub owner: Option<SocketOwner>,
    /// Link header in front of the packet.
    pub link: LinkHeader,
}

impl Arrival {
    /// Returns a packet that carries nothing.
    pub fn new(direction: Direction, interface: String, packet: Packet) -> Self {
        Arrival {
            direction,
            interface,
            packet,
            received_on: None,
            tag: None,
            prio: None,
            queue: None,
            delay: None,
            owner: None,
            link: LinkHeader::default(),
        }
    }
}

/// Expected counters. `None` is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Counters of a rule; `None` is the default rule.
    Rule(Option<RuleId>, RuleCheck),
    /// Counters of the whole firewall.
    Status(StatusCheck),
    /// Counters of a limiter.
    Limiter(LimiterCheck),
    /// Counters of an interface, a table or a table entry.
    Traffic(TrafficCheck),
}

/// Expected counters of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct RuleCheck {
    /// Compared only on evaluators that evaluate rules in pf's order, with skip steps.
    pub evaluations: Option<u64>,
    /// in, out
    pub packets: Option<[u64; 2]>,
    /// in, out
    pub bytes: Option<[u64; 2]>,
    pub states: Option<u64>,
    pub created: Option<u64>,
}

/// Expected counters of the whole firewall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct StatusCheck {
    pub states: Option<u64>,
    pub searches: Option<u64>,
    pub inserts: Option<u64>,
    pub removals: Option<u64>,
    /// Reason counters; reasons not listed are not compared.
    pub reasons: Vec<(skipstep_ruleset::Reason, u64)>,
}

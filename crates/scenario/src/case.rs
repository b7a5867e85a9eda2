//! A scenario file as data: cases of rules and steps. docs/scenarios.md has the notation.

use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, RuleId};

use crate::engine::{Draw, LinkHeader, SocketOwner, TableEdit};
use crate::expect::Expectation;
use crate::host_change::HostChange;
use crate::kill::Target;
use crate::limiter::LimiterCheck;
use crate::packet::Packet;
use crate::traffic::TrafficCheck;

/// A scenario file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// Interfaces and routes if the file gives them, else [`crate::host::standard`].
    pub host: Option<Host>,
    /// Its cases, in order.
    pub cases: Vec<Case>,
}

/// A rule set and what happens under it. Every case starts with an empty firewall at second 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Case {
    /// What the case shows.
    pub title: Option<String>,
    /// The pf.conf.
    pub rules: Rules,
    /// Files that it names: name and text.
    pub files: Vec<(String, String)>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// The text of a `rules` block.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Lines of pf.conf.
    pub text: String,
    /// For each line of `text` the line of the scenario file on which it stands.
    pub lines: Vec<u32>,
}

/// Where the lines stood does not matter.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub struct Step {
    /// Line of the scenario file.
    pub line: u32,
    /// What happens.
    pub action: Action,
}

/// Where a step stood does not matter.
impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.action == other.action
    }
}

/// What can happen in a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A packet meets the firewall.
    Packet(Arrival, Expectation),
    /// The previous packet, which came in, goes on: out of this interface.
    Forward(String, Expectation),
    /// Seconds pass; states whose time is up are removed.
    Wait {
        /// How many seconds.
        seconds: u32,
        /// Numbers of the states that must end, `None` if nothing is said about them.
        expired: Option<Vec<u32>>,
    },
    /// States with these numbers are killed, as far as they are there.
    Kill(Vec<u32>),
    /// States are killed as `pfctl -k` names them.
    KillMeant(Target),
    /// The contents of a table change.
    Table(TableEdit),
    /// Rules are loaded into the anchor with this path, which is empty for the main rule set.
    Load(String, Rules),
    /// The rules of the anchor with this path go, or those of the main rule set.
    Flush(String),
    /// What random draws return from now on.
    Random(Draw),
    /// Something about the host changes.
    Host(HostChange),
    /// Counters are looked at.
    Check(Check),
}

/// A packet where and how it meets the firewall.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Seen from the firewall.
    pub direction: Direction,
    /// Where it arrives or leaves.
    pub interface: String,
    /// The packet.
    pub packet: Packet,
    /// Where a forwarded packet had arrived.
    pub received_on: Option<String>,
    /// Tag it carries from an earlier pass.
    pub tag: Option<String>,
    /// Priority it carries from an earlier pass.
    pub prio: Option<u8>,
    /// Queue it carries from an earlier pass.
    pub queue: Option<String>,
    /// Delay it carries from an earlier pass, milliseconds.
    pub delay: Option<u16>,
    /// Who owns its socket on this host.
    pub owner: Option<SocketOwner>,
    /// Link header in front of it.
    pub link: LinkHeader,
}

impl Arrival {
    /// A packet that carries nothing.
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

/// A look at counters. Whatever is `None` is not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Of one rule; `None` is the default rule.
    Rule(Option<RuleId>, RuleCheck),
    /// Of the whole firewall.
    Status(StatusCheck),
    /// Of a limiter.
    Limiter(LimiterCheck),
    /// Of an interface, a table or an address.
    Traffic(TrafficCheck),
}

/// Counters of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RuleCheck {
    /// Compared for the evaluators that walk as pf does only.
    pub evaluations: Option<u64>,
    /// in, out
    pub packets: Option<[u64; 2]>,
    /// in, out
    pub bytes: Option<[u64; 2]>,
    pub states: Option<u64>,
    pub created: Option<u64>,
}

/// Counters of the whole firewall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StatusCheck {
    pub states: Option<u64>,
    pub searches: Option<u64>,
    pub inserts: Option<u64>,
    pub removals: Option<u64>,
    /// Some of the reason counters.
    pub reasons: Vec<(skipstep_ruleset::Reason, u64)>,
}

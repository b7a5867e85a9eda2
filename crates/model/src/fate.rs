//! What goes in and what comes out: a packet, and what became of it.

use std::net::IpAddr;

use skipstep_reassembly::Fragmentation;
use skipstep_ruleset::{Action, Direction, Reason, RuleId};

use crate::link::LinkHeader;
use crate::state::StateId;

/// A packet on its way through the firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Direction seen from the firewall.
    pub direction: Direction,
    /// Interface it arrives on or leaves by.
    pub interface: String,
    /// Bytes from the IP header on. What follows the length in an IPv4 header is cut off.
    pub bytes: Vec<u8>,
    /// Link header in front of those bytes.
    pub link: LinkHeader,
    /// Interface it once arrived on, for an outbound packet that is being forwarded.
    pub received_on: Option<String>,
    /// What an earlier pass of the firewall attached to it.
    pub carried: Carried,
    /// Who owns the socket of this host that sends it or is to get it; of TCP and UDP only.
    pub owner: Option<SocketOwner>,
}

/// Who owns a socket: effective ids of the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOwner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What a packet carries from the inbound to the outbound side.
///
/// PF also attaches the state that let the packet in, to find the outbound state without a search.
/// As long as nothing is translated the search finds the same, so the model does without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Tag, if any.
    pub tag: Option<String>,
    /// Priority, 3 by default.
    pub prio: u8,
    /// Routing table that knows its way, 0 for the main one.
    pub rtable: u32,
    /// In which fragments an IPv6 datagram came that was put together.
    pub fragmentation: Option<Fragmentation>,
    /// Queue it waits in when it leaves; `None` is the default queue of its interface.
    pub queue: Option<String>,
    /// Milliseconds that it waits before it leaves.
    pub delay: u16,
    /// It goes to a socket or a program of this host, whatever address it is for.
    pub diverted: Option<Diverted>,
}

/// To whom a packet is diverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diverted {
    /// `divert-to`: the one that the rule names.
    To,
    /// `divert-reply`: the one that has sent what it answers.
    Reply,
    /// `divert-packet`: the program at this port, which may write it back. Then it goes on from
    /// here, and carries nothing.
    Packet(u16),
}

impl Default for Carried {
    fn default() -> Self {
        Carried {
            tag: None,
            prio: 3,
            rtable: 0,
            fragmentation: None,
            queue: None,
            delay: 0,
            diverted: None,
        }
    }
}

/// What became of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Passed, dropped or consumed.
    pub verdict: Verdict,
    /// What decided.
    pub decision: Decision,
    /// Number of the anchor rule that led to the deciding rule.
    pub anchor_rule: Option<u32>,
    /// The reason in the log.
    pub reason: Reason,
    /// The reasons counted by this packet, ascending; one that was counted twice stands here twice.
    pub counted: Vec<Reason>,
    /// State used or made.
    pub state: Option<StateId>,
    /// The packet as it goes on, if it passed and was changed.
    pub out: Option<Vec<u8>>,
    /// What the firewall sent in answer, from the IP header on.
    pub replies: Vec<Vec<u8>>,
    /// What goes on in its place, or beside it.
    pub forwarded: Vec<Forwarded>,
    /// What the packet carries afterwards; nothing if it was dropped.
    pub carried: Carried,
    /// Log records it caused.
    pub log: Vec<LogRecord>,
    /// States that had to go to make room for a new one with the same addresses and ports.
    pub removed: Vec<StateId>,
}

/// Outcome for the packet itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// goes on
    Pass,
    /// ends here
    Drop,
    /// is held, or something else is sent in its place
    Consumed,
}

/// A packet that goes on in the place of the one that was filtered, or beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// Where to.
    pub way: Way,
    /// From the IP header on.
    pub bytes: Vec<u8>,
}

/// Where a packet goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Where the routing table says.
    Forward,
    /// Out of an interface to a neighbour, whatever the routing table says.
    Route {
        /// The interface.
        interface: String,
        /// The neighbour.
        next_hop: IpAddr,
    },
}

/// What decided about a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// nothing: the interface is skipped
    None,
    /// no rule matched, or the packet was dropped before rules were asked
    Default,
    /// a rule, or the state that it made
    Rule(RuleId),
    /// a state whose rule is gone since a reload
    OrphanState,
}

/// A log record (pf-semantics section 18).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the rule in the record, `None` for the default rule and one that is gone.
    pub rule: Option<u32>,
    /// Number of the anchor rule in the record.
    pub anchor_rule: Option<u32>,
    /// Path of the anchor in the record: of the one that was walked when the record was made, the
    /// deciding rule's at the end of the walk; empty if no rules were asked.
    pub anchor: String,
    /// Reason in the record.
    pub reason: Reason,
    /// Action in the record: that of the rule; for the default rule block if there is a reason.
    pub action: Action,
    /// n of pflogN
    pub to: u8,
    /// The user whose socket it is about, if `log (user)` asks and there is one.
    pub uid: Option<u32>,
}

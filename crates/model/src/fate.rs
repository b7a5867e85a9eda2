//! The input and the result of the firewall: a packet and its fate.

use std::net::IpAddr;

use skipstep_reassembly::Fragmentation;
use skipstep_ruleset::{Action, Direction, Reason, RuleId};

use crate::key::StateId;
use crate::link::LinkHeader;

/// A packet on its way through the firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Direction seen from the firewall.
    pub direction: Direction,
    /// Name of the interface where it arrives or leaves.
    pub interface: String,
    /// Bytes from the IP header on, without bytes beyond the length in an IPv4 header.
    pub bytes: Vec<u8>,
    /// Link header in front of `bytes`.
    pub link: LinkHeader,
    /// Name of the interface where it arrived, for a forwarded packet on its way out.
    pub received_on: Option<String>,
    /// Metadata that an earlier pass of the firewall attached.
    pub carried: Carried,
    /// Owner of the local socket that sends or receives it; TCP and UDP only.
    pub owner: Option<SocketOwner>,
}

/// The owner of a socket: effective ids of the process that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOwner {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// Metadata that a packet carries from the inbound to the outbound side.
///
/// PF also attaches the state that let the packet in, to find the outbound state without a lookup.
/// Without translation a lookup finds the same state, so the model does without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Name of the packet's tag.
    pub tag: Option<String>,
    /// Priority, 0 to 7; 3 by default.
    pub prio: u8,
    /// Number of the routing table that routes it, 0 for the main table.
    pub rtable: u32,
    /// Sizes of the fragments that a reassembled IPv6 datagram came in.
    pub fragmentation: Option<Fragmentation>,
    /// Queue where it waits before it leaves; `None` is the default queue of its interface.
    pub queue: Option<String>,
    /// Milliseconds that it waits before it leaves.
    pub delay: u16,
    /// Local socket or program that gets the packet, whatever its destination address.
    pub diverted: Option<Diverted>,
}

/// The receiver of a diverted packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diverted {
    /// `divert-to`: the socket that the rule names.
    To,
    /// `divert-reply`: the socket that sent the packet which this one answers.
    Reply,
    /// `divert-packet`: the program at this port, which may write the packet back. Then the packet
    /// continues from here, without metadata.
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

/// The result for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Passed, dropped or consumed.
    pub verdict: Verdict,
    /// Source of the decision.
    pub decision: Decision,
    /// Number of the anchor rule that called the deciding rule.
    pub anchor_rule: Option<u32>,
    /// Reason in the log records.
    pub reason: Reason,
    /// Reasons counted by this packet, ascending; a reason counted twice is listed twice.
    pub counted: Vec<Reason>,
    /// State that was found or created.
    pub state: Option<StateId>,
    /// Bytes of the packet, if it passed and was changed.
    pub out: Option<Vec<u8>>,
    /// Answers of the firewall, each from the IP header on.
    pub replies: Vec<Vec<u8>>,
    /// Packets forwarded in its place, or in addition.
    pub forwarded: Vec<Forwarded>,
    /// Metadata after this pass; the default if the packet was dropped.
    pub carried: Carried,
    /// Log records of this packet.
    pub log: Vec<LogRecord>,
}

impl Fate {
    /// Returns the fate of a packet that neither a rule nor a state has judged.
    pub fn unjudged(verdict: Verdict, carried: Carried) -> Self {
        Fate {
            verdict,
            decision: Decision::None,
            anchor_rule: None,
            reason: Reason::Match,
            counted: Vec::new(),
            state: None,
            out: None,
            replies: Vec::new(),
            forwarded: Vec::new(),
            carried,
            log: Vec::new(),
        }
    }
}

/// The verdict on the packet itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet passes.
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet waits as a fragment, or another packet is sent in its place.
    Consumed,
}

/// A packet that is forwarded in place of the filtered packet, or in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// Route of the packet.
    pub route: ForwardRoute,
    /// Bytes from the IP header on.
    pub bytes: Vec<u8>,
}

/// The route of a forwarded packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardRoute {
    /// The route in the routing table.
    Forward,
    /// A fixed interface and next hop, whatever the routing table says.
    Route {
        /// Name of the interface.
        interface: String,
        /// Address of the next hop.
        next_hop: IpAddr,
    },
}

/// The source of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No decision: the interface is skipped.
    None,
    /// The default rule: no rule matched, or the packet was dropped before rule evaluation.
    Default,
    /// A rule, or the state that the rule created.
    Rule(RuleId),
    /// A state whose rule a reload has removed.
    OrphanState,
}

/// A log record (pf-semantics section 18).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the rule; `None` for the default rule and for orphaned rules.
    pub rule: Option<u32>,
    /// Number of the anchor rule that called the rule.
    pub anchor_rule: Option<u32>,
    /// Path of the anchor that was being evaluated at the time of the record; after the evaluation,
    /// of the deciding rule's anchor. Empty without rule evaluation.
    pub anchor: String,
    /// Reason of the packet.
    pub reason: Reason,
    /// Action of the rule; for the default rule, block if there is a reason.
    pub action: Action,
    /// Number N of pflogN.
    pub to: u8,
    /// User that owns the packet's socket, with `log (user)` and if there is a socket.
    pub uid: Option<u32>,
}

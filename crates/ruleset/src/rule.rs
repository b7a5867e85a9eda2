//! A resolved filter rule (pf-features sections 3 to 7).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::{Endpoint, Family, PortMatch};
use crate::anchor::AnchorCall;
use crate::options::Timeout;
use crate::queue::LimiterUse;
use crate::translation::{AfTo, Divert, Pool, Route};

/// Most labels that a rule may have.
pub const MOST_LABELS: usize = 5;

/// A filter rule. Fields are in the order in which pf evaluates and prints them. Large and rare
/// fields are boxed, because a rule set may have 100,000 rules. The default is `pass` without
/// criteria and without state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Position in the rule set, from 0.
    pub number: u32,
    /// Line in pf.conf, from 1; 0 for a generated rule.
    pub line: u32,
    /// The included file that contains the line; `None` for pf.conf itself.
    pub file: Option<Arc<str>>,
    /// The anchor that the rule calls. Such a rule does not decide.
    pub anchor: Option<Box<AnchorCall>>,
    /// The effect of the rule if it matches.
    pub action: Action,
    /// The answer of a block rule, or of a pass rule that cannot create its state.
    pub block_return: BlockReturn,
    /// `in` or `out`; `None` for both.
    pub direction: Option<Direction>,
    /// `log`: the options of logging; `None` if the rule does not log.
    pub log: Option<Log>,
    /// `quick`: evaluation ends if the rule matches.
    pub quick: bool,
    /// `on`: interface criterion; `None` for all interfaces.
    pub interface: Option<Not<InterfaceMatch>>,
    /// `inet` or `inet6`; `None` for both.
    pub family: Option<Family>,
    /// IP protocol number; `None` for all.
    pub protocol: Option<u8>,
    /// `from`: criterion for the source.
    pub source: Endpoint,
    /// `to`: criterion for the destination.
    pub destination: Endpoint,
    /// `os`, as pf prints the name.
    pub os: Option<String>,
    /// `user`: criterion for the user id of the socket.
    pub user: Option<Owner>,
    /// `group`: criterion for the group id of the socket.
    pub group: Option<Owner>,
    /// `received-on`: criterion for the interface where the packet came in.
    pub received_on: Option<Box<Not<InterfaceMatch>>>,
    /// `flags`; `None` for TCP segments with any flags.
    pub tcp_flags: Option<TcpFlags>,
    /// `icmp-type`, `icmp6-type`: criterion for ICMP type and code.
    pub icmp: Option<IcmpMatch>,
    /// `tos`: criterion for the TOS byte.
    pub tos: Option<u8>,
    /// `prio`: criterion for the priority of the packet, 0 to 7.
    pub prio: Option<u8>,
    /// `max-pkt-rate packets/seconds`: the rule does not match above this rate.
    pub max_pkt_rate: Option<(u32, u32)>,
    /// `max-pkt-size` of FreeBSD: length in bytes of the longest packet that the rule passes.
    pub max_pkt_size: Option<u16>,
    /// `state limiter`: the limiter that counts states of the rule.
    pub state_limiter: Option<LimiterUse>,
    /// `source limiter`: the limiter that counts states of the rule by source.
    pub source_limiter: Option<LimiterUse>,
    /// `set prio (normal, low delay)`: the second is for TOS lowdelay and for ACKs without data.
    pub set_prio: Option<(u8, u8)>,
    /// `set tos`: TOS byte to write into packets.
    pub set_tos: Option<u8>,
    /// `set queue (normal, low delay)`, as for `set_prio`.
    pub set_queue: Option<Box<(String, Option<String>)>>,
    /// `set delay`, in milliseconds.
    pub set_delay: Option<u16>,
    /// State options; `None` if the rule creates no state.
    pub state: Option<Box<StateOptions>>,
    /// `probability`, stored as in pf: as a fraction of 2^32 - 1.
    pub probability: Option<u32>,
    /// `fragment`: the rule matches fragments only.
    pub fragment: bool,
    /// `scrub (...)`: the options of normalization.
    pub scrub: Scrub,
    /// `allow-opts`: packets with IP options pass.
    pub allow_opts: bool,
    /// `label`, with macros replaced. FreeBSD's rules may have several.
    pub labels: Vec<String>,
    /// `ridentifier` of FreeBSD: a number by which tools identify the rule.
    pub ridentifier: Option<u32>,
    /// `once`: the rule expires after its first match.
    pub once: bool,
    /// `tag`: tag to set on packets.
    pub tag: Option<String>,
    /// `tagged`: criterion for the tag of the packet.
    pub tagged: Option<Box<Not<String>>>,
    /// `rtable`: number of the routing table for packets.
    pub rtable: Option<u32>,
    /// `divert-to`, `divert-reply` or `divert-packet`.
    pub divert: Option<Divert>,
    /// `af-to`: translation to the other address family.
    pub af_to: Option<Box<AfTo>>,
    /// `nat-to`: pool of new sources.
    pub nat: Option<Box<Pool>>,
    /// `rdr-to`: pool of new destinations.
    pub rdr: Option<Box<Pool>>,
    /// `route-to`, `reply-to` or `dup-to`.
    pub route: Option<Box<Route>>,
}

/// The effect of a rule that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Action {
    /// Pass the packet.
    #[default]
    Pass,
    /// Block the packet.
    Block,
    /// Set parameters, without a decision.
    Match,
}

/// Direction of a packet, as seen from the firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// Inbound.
    In,
    /// Outbound.
    Out,
}

impl Direction {
    /// Returns the other direction.
    pub fn opposite(self) -> Self {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

/// The answer to a blocked packet, with ICMP codes (pf-semantics section 11, block returns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum BlockReturn {
    /// `block drop`: no answer.
    #[default]
    Drop,
    /// `block return`: RST for TCP, ICMP port unreachable for other protocols.
    Return,
    /// `block return-rst [(ttl n)]`.
    Rst {
        /// TTL of the RST; 0 for the default TTL.
        ttl: u8,
    },
    /// `block return-icmp [(code, code6)]`, `block return-icmp6`.
    Icmp {
        /// ICMP type and code of the answer over IPv4.
        inet: (u8, u8),
        /// ICMPv6 type and code of the answer over IPv6.
        inet6: (u8, u8),
    },
}

/// `log (...)`: the options of logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Log {
    /// Log all packets, not only the packet that creates the state.
    pub all: bool,
    /// Log the later rules that match the packet, too.
    pub matches: bool,
    /// Log the owner of the socket.
    pub user: bool,
    /// Number of the pflog interface: n of `pflogN`.
    pub to: u8,
}

/// A criterion that may be negated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Not<T> {
    /// True if `!` precedes the criterion.
    pub negated: bool,
    /// The criterion without its negation.
    pub value: T,
}

/// The operand of `on` or `received-on`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterfaceMatch {
    /// `any`: all interfaces except loopback.
    Any,
    /// An interface or an interface group. The load decides between the two.
    Named(InterfaceName),
    /// `rdomain n`, for `on` only: all interfaces of the routing domain.
    Rdomain(u32),
}

/// Name of an interface or of an interface group.
pub type InterfaceName = String;

/// `flags set/mask`, with the bits of the TCP header (FIN is the lowest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TcpFlags {
    /// Flags of `mask` that must be set.
    pub set: u8,
    /// Flags that are compared.
    pub mask: u8,
}

/// `icmp-type type [code code]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IcmpMatch {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code; `None` for all.
    pub code: Option<u8>,
}

/// `user` or `group`: a criterion for the owner of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Operator, never `a:b`.
    pub op: PortMatch,
    /// First operand; `None` for `unknown`.
    pub low: Option<u32>,
    /// Second operand, equal to the first for operators with one operand.
    pub high: Option<u32>,
}

impl Owner {
    /// The id for packets without a local socket, which `unknown` matches.
    pub const UNKNOWN: u32 = u32::MAX;

    /// True if the criterion matches a socket's user or group id; `None` if there is no socket. A
    /// packet without a socket is neither below nor above any id.
    pub fn admits(&self, id: Option<u32>) -> bool {
        let low = self.low.unwrap_or(Self::UNKNOWN);
        let high = self.high.unwrap_or(Self::UNKNOWN);
        match (self.op, id.unwrap_or(Self::UNKNOWN)) {
            (PortMatch::Equal, id) => id == low,
            (PortMatch::NotEqual, id) => id != low,
            (_, Self::UNKNOWN) => false,
            (PortMatch::Less, id) => id < low,
            (PortMatch::LessEqual, id) => id <= low,
            (PortMatch::Greater, id) => id > low,
            (PortMatch::GreaterEqual, id) => id >= low,
            (PortMatch::Range, id) => id >= low && id <= high,
            (PortMatch::Inside, id) => id > low && id < high,
            (PortMatch::Outside, id) => id < low || id > high,
        }
    }
}

/// The kind of state that a rule creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum KeepKind {
    /// `keep state`: without changes to packets.
    #[default]
    Keep,
    /// `modulate state`: with random initial sequence numbers.
    Modulate,
    /// `synproxy state`: the firewall completes the handshake first.
    Synproxy,
}

/// The states that `source-track` counts for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceTrack {
    /// `rule`: those of the rule.
    Rule,
    /// `global`: those of all rules with `source-track global`.
    Global,
}

/// `overload <table> [flush [global]]`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overload {
    /// Name of the table to which the source is added.
    pub table: String,
    /// The states that are killed: those of this rule, or all of the source. `None` for no states.
    pub flush: Option<SourceTrack>,
}

/// `keep state (...)`. Absent options have the defaults of the rule set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct StateOptions {
    /// `keep`, `modulate` or `synproxy`.
    pub kind: KeepKind,
    /// `source-track`: the states that are counted by source.
    pub source_track: Option<SourceTrack>,
    /// `max-src-states`: most states of a source.
    pub max_src_states: Option<u32>,
    /// `max-src-conn`: most connections of a source with a completed handshake.
    pub max_src_conn: Option<u32>,
    /// `max-src-conn-rate connections/seconds`: most new connections of a source in a time.
    pub max_src_conn_rate: Option<(u32, u32)>,
    /// `max-src-nodes`: most sources with states of the rule.
    pub max_src_nodes: Option<u32>,
    /// `overload`: the treatment of sources that exceed a limit.
    pub overload: Option<Overload>,
    /// `pflow`: the states are exported as flow records.
    pub pflow: bool,
    /// `max`: most states of the rule.
    pub max: Option<u32>,
    /// `no-sync`: the states are not sent by pfsync.
    pub no_sync: bool,
    /// True for if-bound states, by the option or by `set state-policy`.
    pub if_bound: bool,
    /// `sloppy`: TCP sequence numbers are not checked.
    pub sloppy: bool,
    /// The rule's timeouts that are not 0, by class. A rule with `max` and without adaptive
    /// timeouts has here the adaptive timeouts that pf derives from `max`.
    pub timeouts: Vec<(Timeout, u32)>,
}

/// `scrub (...)`: the options of normalization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Scrub {
    /// `no-df`: clear the don't-fragment bit.
    pub no_df: bool,
    /// `random-id`: replace the IPv4 identification with a random value.
    pub random_id: bool,
    /// `min-ttl`: lowest TTL or hop limit.
    pub min_ttl: Option<u8>,
    /// `max-mss`: greatest MSS in bytes.
    pub max_mss: Option<u16>,
    /// `reassemble tcp`: stateful normalization of TCP.
    pub reassemble_tcp: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_small_enough_for_100_000_of_them() {
        assert!(size_of::<Rule>() <= 480, "{} bytes", size_of::<Rule>());
    }
}

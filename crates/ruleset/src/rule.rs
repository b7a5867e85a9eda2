//! One filter rule, fully resolved (pf-features sections 3 to 7).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::{Endpoint, Family, PortMatch};
use crate::anchor::AnchorCall;
use crate::options::Timeout;
use crate::queue::LimiterUse;
use crate::translation::{AfTo, Divert, Pool, Route};

/// Most labels of a rule.
pub const MOST_LABELS: usize = 5;

/// A filter rule. Fields stand in the order in which pf tests and prints them; what is large and
/// rare is boxed, for there may be 100,000 of them. The default is `pass`, without state, and looks
/// at nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Position in its rule set, from 0.
    pub number: u32,
    /// Line of the pf.conf it was written on, from 1; 0 if it was not written by anybody.
    pub line: u32,
    /// The included file that the line is in; `None` is the pf.conf itself.
    pub file: Option<Arc<str>>,
    /// The rule set this rule calls instead of deciding.
    pub anchor: Option<Box<AnchorCall>>,
    /// What the rule does when it decides.
    pub action: Action,
    /// How a block rule answers, and a pass rule that cannot make the state it asks for.
    pub block_return: BlockReturn,
    /// `in`, `out` or both.
    pub direction: Option<Direction>,
    /// `log`
    pub log: Option<Log>,
    /// `quick`
    pub quick: bool,
    /// `on`
    pub interface: Option<Not<InterfaceMatch>>,
    /// `inet`, `inet6`
    pub family: Option<Family>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// `from`
    pub source: Endpoint,
    /// `to`
    pub destination: Endpoint,
    /// `os`, as pf prints it
    pub os: Option<String>,
    /// `user`
    pub user: Option<Owner>,
    /// `group`
    pub group: Option<Owner>,
    /// `received-on`
    pub received_on: Option<Box<Not<InterfaceMatch>>>,
    /// `flags`; `None` does not look.
    pub tcp_flags: Option<TcpFlags>,
    /// `icmp-type`, `icmp6-type`
    pub icmp: Option<IcmpMatch>,
    /// `tos`
    pub tos: Option<u8>,
    /// `prio`
    pub prio: Option<u8>,
    /// `max-pkt-rate packets/seconds`
    pub max_pkt_rate: Option<(u32, u32)>,
    /// `max-pkt-size` of FreeBSD: longest packet that the rule lets pass
    pub max_pkt_size: Option<u16>,
    /// `state limiter`
    pub state_limiter: Option<LimiterUse>,
    /// `source limiter`
    pub source_limiter: Option<LimiterUse>,
    /// `set prio (ordinary, lowdelay)`
    pub set_prio: Option<(u8, u8)>,
    /// `set tos`
    pub set_tos: Option<u8>,
    /// `set queue (ordinary, lowdelay)`
    pub set_queue: Option<Box<(String, Option<String>)>>,
    /// `set delay`, milliseconds
    pub set_delay: Option<u16>,
    /// State options if the rule makes state.
    pub state: Option<Box<StateOptions>>,
    /// `probability`, as pf stores it: a fraction of 2^32 - 1.
    pub probability: Option<u32>,
    /// `fragment`
    pub fragment: bool,
    /// `scrub (...)`
    pub scrub: Scrub,
    /// `allow-opts`
    pub allow_opts: bool,
    /// `label`, macros already replaced; FreeBSD's rules can have several
    pub labels: Vec<String>,
    /// `ridentifier` of FreeBSD: a number that tools know the rule by
    pub ridentifier: Option<u32>,
    /// `once`
    pub once: bool,
    /// `tag`
    pub tag: Option<String>,
    /// `tagged`
    pub tagged: Option<Box<Not<String>>>,
    /// `rtable`
    pub rtable: Option<u32>,
    /// `divert-to` and its like
    pub divert: Option<Divert>,
    /// `af-to`
    pub af_to: Option<Box<AfTo>>,
    /// `nat-to`
    pub nat: Option<Box<Pool>>,
    /// `rdr-to`
    pub rdr: Option<Box<Pool>>,
    /// `route-to` and its like
    pub route: Option<Box<Route>>,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Action {
    /// let through
    #[default]
    Pass,
    /// stop
    Block,
    /// set parameters, decide nothing
    Match,
}

/// Direction of a packet seen from the firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// arriving
    In,
    /// leaving
    Out,
}

impl Direction {
    /// The other direction.
    pub fn opposite(self) -> Self {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

/// How a block rule answers, with the codes it would use (pf-semantics section 11, block returns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum BlockReturn {
    /// `block drop`: not at all
    #[default]
    Drop,
    /// `block return`: RST for TCP, port unreachable for the rest
    Return,
    /// `block return-rst [(ttl n)]`; 0 is the default TTL
    Rst {
        /// TTL of the RST
        ttl: u8,
    },
    /// `block return-icmp [(code, code6)]`, `block return-icmp6`; `(type, code)` for each family
    Icmp {
        /// ICMP type and code for IPv4
        inet: (u8, u8),
        /// ICMPv6 type and code for IPv6
        inet6: (u8, u8),
    },
}

/// `log (...)`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Log {
    /// every packet, not only the one that makes the state
    pub all: bool,
    /// later matching rules too
    pub matches: bool,
    /// owner of the socket
    pub user: bool,
    /// n of pflogN
    pub to: u8,
}

/// A criterion that may have a `!` in front.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Not<T> {
    /// `!`
    pub negated: bool,
    /// What is compared.
    pub value: T,
}

/// Operand of `on` and `received-on`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterfaceMatch {
    /// `any`: every interface but loopback
    Any,
    /// an interface or an interface group; which of the two is known when the rules are loaded
    Named(InterfaceName),
    /// `rdomain n`, of `on` only: every interface of that routing domain
    Rdomain(u32),
}

/// Name of an interface or of a group of interfaces.
pub type InterfaceName = String;

/// `flags set/mask` in the bits of the TCP header, FIN lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TcpFlags {
    /// must be set
    pub set: u8,
    /// among these
    pub mask: u8,
}

/// `icmp-type type [code code]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IcmpMatch {
    /// type
    pub kind: u8,
    /// code, any if `None`
    pub code: Option<u8>,
}

/// `user`, `group`: the owner of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// How to compare; never `a:b`.
    pub op: PortMatch,
    /// First operand; `None` is `unknown`.
    pub low: Option<u32>,
    /// Second operand; equal to the first for the unary operators.
    pub high: Option<u32>,
}

impl Owner {
    /// The id of who owns no socket here: what `unknown` means.
    pub const UNKNOWN: u32 = u32::MAX;

    /// Whether a socket's user or group meets the criterion; `None` if there is no socket. Nobody's
    /// packets are neither below nor above any id.
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

/// How a rule keeps state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum KeepKind {
    /// `keep state`
    #[default]
    Keep,
    /// `modulate state`: with better initial sequence numbers
    Modulate,
    /// `synproxy state`: shakes hands first
    Synproxy,
}

/// Whose states `source-track` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceTrack {
    /// `rule`
    Rule,
    /// `global`
    Global,
}

/// `overload <table> [flush [global]]`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overload {
    /// Table that the source is put in.
    pub table: String,
    /// Whose states end: those of this rule, or all of the source.
    pub flush: Option<SourceTrack>,
}

/// `keep state (...)`. Absent fields take the defaults of the rule set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct StateOptions {
    /// `keep`, `modulate`, `synproxy`
    pub kind: KeepKind,
    /// `source-track`
    pub source_track: Option<SourceTrack>,
    /// `max-src-states`
    pub max_src_states: Option<u32>,
    /// `max-src-conn`
    pub max_src_conn: Option<u32>,
    /// `max-src-conn-rate connections/seconds`
    pub max_src_conn_rate: Option<(u32, u32)>,
    /// `max-src-nodes`
    pub max_src_nodes: Option<u32>,
    /// `overload`
    pub overload: Option<Overload>,
    /// `pflow`
    pub pflow: bool,
    /// `max`
    pub max: Option<u32>,
    /// `no-sync`
    pub no_sync: bool,
    /// if-bound if true; what `set state-policy` or the option says
    pub if_bound: bool,
    /// `sloppy`
    pub sloppy: bool,
    /// timeouts of this rule that are not 0, by class; with `max` and without adaptive options the
    /// two adaptive ones that follow from it are here too
    pub timeouts: Vec<(Timeout, u32)>,
}

/// `scrub (...)`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Scrub {
    /// clear DF
    pub no_df: bool,
    /// random IP id
    pub random_id: bool,
    /// lowest TTL
    pub min_ttl: Option<u8>,
    /// highest MSS
    pub max_mss: Option<u16>,
    /// `reassemble tcp`
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

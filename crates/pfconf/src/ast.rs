//! The statements of a pf.conf. Names are resolved to numbers, and host specifications to
//! addresses; lists are not yet expanded.

mod legacy;
mod translation;

use std::net::IpAddr;
use std::sync::Arc;

use skipstep_ruleset::options::Optimization;
use skipstep_ruleset::rule::{IcmpMatch, InterfaceMatch, TcpFlags};
use skipstep_ruleset::{
    Action, BlockPolicy, BlockReturn, Direction, Evaluator, Family, FastForward, KeepKind, Limiter,
    LimiterUse, Log, Not, Overload, Owner, Ports, Queue, Scrub, SourceTrack, StatePolicy,
    Syncookies, Timeout, Unattached,
};

pub use legacy::LegacyStatement;
pub use translation::{Divert, Hop, Pool, PoolPorts, Translation};

use crate::token::Place;

/// A parsed statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Place of the first token.
    pub place: Place,
    /// The included file that contains the statement; `None` for the text itself.
    pub file: Option<Arc<str>>,
    /// The contents of the statement.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `name = value`. The lexer already has the macro.
    Macro {
        /// Name without `$`.
        name: String,
        /// Words of the value, separated by one space.
        value: String,
    },
    /// `set ...`, with one element for each setting of a list.
    Set(Vec<Setting>),
    /// `table <name> ...`
    Table(TableDefinition),
    /// `pass`, `block`, `match`
    Rule(Box<RuleStatement>),
    Antispoof(Antispoof),
    /// `include`: the next statements are those of the file.
    Include,
    /// `anchor ... {`: the next statements belong to the anchor.
    BeginAnchor {
        /// Name of the anchor; `None` for an unnamed one, whose name is generated.
        name: Option<String>,
    },
    /// `anchor`. For an anchor with braces, this statement follows its contents.
    Anchor(Box<AnchorStatement>),
    /// `load anchor name from "file"`
    LoadAnchor {
        /// Name, relative to the rule set of the statement.
        name: String,
        /// Path of the file with the rules.
        file: String,
    },
    /// `queue`, with one element for each interface.
    Queues(Vec<Queue>),
    /// `state limiter`, `source limiter`
    Limiter(Limiter),
    /// A legacy statement: `nat`, `rdr`, `binat` or `scrub`.
    Legacy(Box<LegacyStatement>),
}

/// A setting of a `set` statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// `timeout`: class, value, and its name as written.
    Timeout(Timeout, u32, String),
    /// `limit`: kind, value, and its name as written.
    Limit(Limit, u32, String),
    /// `optimization`: its name, and the name as written.
    Optimization(&'static str, String),
    /// `fingerprints`: path of the file.
    Fingerprints(String),
    /// `syncookies`; true if percentages were written.
    Syncookies(Syncookies, bool),
    RulesetOptimization(Optimization),
    BlockPolicy(BlockPolicy),
    StatePolicy(StatePolicy),
    StateDefaults(Vec<StateOption>),
    /// `loginterface`; `None` for `none`.
    Loginterface(Option<String>),
    /// `skip on`; empty for `none`.
    Skip(Vec<Not<InterfaceMatch>>),
    Reassemble {
        /// True for `yes`, false for `no`.
        on: bool,
        /// True for `yes no-df`.
        no_df: bool,
    },
    /// `evaluator`, a setting of skipstep.
    Evaluator(Evaluator),
    /// `fast-forward`, a setting of skipstep.
    FastForward(FastForward),
    /// `unattached`, a setting of skipstep.
    Unattached(Unattached),
    /// `xdp on`, a setting of skipstep; empty for `none`.
    Xdp(Vec<Not<InterfaceMatch>>),
    Hostid(u32),
    /// `debug`, as a syslog level.
    Debug(u8),
    /// `fail-policy` of FreeBSD
    FailPolicy(BlockPolicy),
    /// `keepcounters` of FreeBSD
    KeepCounters,
    /// `require-order` of FreeBSD
    RequireOrder(bool),
}

/// The limits that `set limit` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Limit {
    States,
    SrcNodes,
    Frags,
    Tables,
    TableEntries,
    PktdelayPkts,
    Anchors,
}

/// A `table` statement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableDefinition {
    /// Name without the angle brackets.
    pub name: String,
    pub persist: bool,
    /// `const`
    pub constant: bool,
    pub counters: bool,
    /// Lists and files in the order of the text.
    pub contents: Vec<TableContents>,
    /// True if a list or a file was written, even an empty one.
    pub initialized: bool,
}

/// Part of the contents of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableContents {
    /// A list in braces.
    List(Vec<Host>),
    /// `file "name"`
    File(String),
}

/// A `pass`, `block` or `match` statement.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleStatement {
    /// The action of the rule.
    pub action: Action,
    /// The answer of a block rule; `None` for that of `block-policy`.
    pub block_return: Option<BlockReturn>,
    /// `in` or `out`; `None` for both.
    pub direction: Option<Direction>,
    pub log: Option<Log>,
    pub quick: bool,
    /// `on`: a packet must match one of these; empty for all.
    pub interfaces: Vec<Not<InterfaceMatch>>,
    /// `inet` or `inet6`; `None` if neither is written.
    pub family: Option<Family>,
    /// `proto`: one of these protocols; empty for all.
    pub protocols: Vec<u8>,
    pub source: Peer,
    pub destination: Peer,
    /// `os`: one of these systems; empty for all.
    pub systems: Vec<String>,
    /// The options behind the hosts.
    pub options: FilterOptions,
}

/// `anchor "name" [in|out] [quick] [on ...] [af] [proto ...] [hosts] [options] [{ ... }]`
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorStatement {
    /// Name; `None` only for an anchor with braces.
    pub name: Option<String>,
    /// True if the rules of the anchor follow in braces.
    pub braces: bool,
    /// Criteria and options of the call. The action is `pass`.
    pub rule: RuleStatement,
}

/// The operand of `from` or `to`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Peer {
    /// Host specifications, of which one must match; empty for `any`.
    pub hosts: Vec<Host>,
    /// Port criteria, of which one must match; empty for all.
    pub ports: Vec<Ports>,
}

/// A resolved host specification.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// True if `!` precedes the address.
    pub negated: bool,
    /// The address without its negation.
    pub address: Address,
    /// Index of the interface of a link-local address; 0 for none.
    pub scope: u32,
    /// `weight` in a table or pool; 0 without `weight`.
    pub weight: u16,
}

/// The kinds of host specifications.
#[derive(Debug, Clone, PartialEq)]
pub enum Address {
    /// `any` as a member of a list or pool.
    Any,
    /// Address and prefix length. An IPv4 address may have a length up to 128, because pf reports
    /// that error only when it expands the rule.
    Net(IpAddr, u8),
    /// `low - high`, inclusive.
    Range(IpAddr, IpAddr),
    /// `<name>`
    Table(String),
    /// `(em0:network)/24`
    Dynamic {
        /// Interface and modifiers. The field `prefix` of the inner struct is not set.
        interface: skipstep_ruleset::address::DynamicAddress,
        /// Prefix length; 128 if none is written.
        prefix: u8,
    },
    NoRoute,
    UrpfFailed,
    /// `route "label"`
    RouteLabel(String),
}

impl Host {
    /// Returns a host without negation, scope and weight.
    pub fn new(address: Address) -> Self {
        Host { negated: false, address, scope: 0, weight: 0 }
    }

    /// Returns the address family; `None` if the specification has none.
    pub fn family(&self) -> Option<Family> {
        match self.address {
            Address::Net(address, _) | Address::Range(address, _) => {
                Some(Family::from_address(address))
            }
            _ => None,
        }
    }
}

/// The options of a rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FilterOptions {
    /// `user`: one of these must match; empty for all.
    pub users: Vec<Owner>,
    /// `group`: one of these must match; empty for all.
    pub groups: Vec<Owner>,
    /// `flags`. The inner `None` is `flags any`.
    pub flags: Option<Option<TcpFlags>>,
    /// `icmp-type`, `icmp6-type`: one of these must match. Each has its IP protocol number.
    pub icmp: Option<Vec<(u8, IcmpMatch)>>,
    pub prio: Option<u8>,
    pub tos: Option<u8>,
    /// `keep state`, `no state`
    pub keep: Option<Keep>,
    pub fragment: bool,
    pub allow_opts: bool,
    /// `label`. OpenBSD's rules have one at most.
    pub labels: Vec<String>,
    pub tag: Option<String>,
    pub tagged: Option<Box<Not<String>>>,
    /// `probability`, as a fraction of 2^32 - 1.
    pub probability: Option<u32>,
    pub scrub: Scrub,
    pub received_on: Option<Box<Not<InterfaceMatch>>>,
    pub set_prio: Option<(u8, u8)>,
    pub set_tos: Option<u8>,
    pub set_queue: Option<Box<(String, Option<String>)>>,
    /// `set delay`, in milliseconds.
    pub set_delay: Option<u16>,
    /// `max-pkt-rate packets/seconds`
    pub max_pkt_rate: Option<(u32, u32)>,
    pub state_limiter: Option<LimiterUse>,
    pub source_limiter: Option<LimiterUse>,
    pub once: bool,
    pub rtable: Option<u32>,
    /// `max-pkt-size` of FreeBSD, in bytes.
    pub max_pkt_size: Option<u16>,
    /// `ridentifier` of FreeBSD
    pub ridentifier: Option<u32>,
    /// `nat-to`, `rdr-to`, `af-to`, `route-to`, `divert-to` and similar options.
    pub translation: Translation,
}

/// The state keyword of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Keep {
    /// `no state`
    No,
    /// `keep state`, `modulate state`, `synproxy state`
    State(KeepKind, Vec<StateOption>),
}

/// An option of `keep state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateOption {
    Max(u32),
    NoSync,
    /// `source-track`. Without `rule` and `global` (`None`) other options decide.
    SourceTrack(Option<SourceTrack>),
    MaxSrcStates(u32),
    MaxSrcConn(u32),
    /// `max-src-conn-rate`
    MaxSrcConnRate(u32, u32),
    MaxSrcNodes(u32),
    Overload(Overload),
    Pflow,
    /// `if-bound`, `floating`
    Binding(StatePolicy),
    Sloppy,
    /// A timeout by name.
    Timeout(Timeout, u32),
}

impl FilterOptions {
    /// True if the rule has a state keyword without options in parentheses.
    pub fn awaits_state_options(&self) -> bool {
        matches!(&self.keep, Some(Keep::State(_, options)) if options.is_empty())
    }
}

/// An `antispoof` statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Antispoof {
    pub log: Option<Log>,
    pub quick: bool,
    /// Interfaces; true if the name was written in parentheses.
    pub interfaces: Vec<(String, bool)>,
    /// `inet` or `inet6`; `None` if neither is written.
    pub family: Option<Family>,
    /// `label`. FreeBSD's statements may have several.
    pub labels: Vec<String>,
    pub rtable: Option<u32>,
    /// `ridentifier` of FreeBSD.
    pub ridentifier: Option<u32>,
}

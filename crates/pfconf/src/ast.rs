//! What a pf.conf says, statement by statement, with names already turned into numbers and host
//! specifications into addresses, but lists not yet expanded.

mod old;
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

pub use old::OldStatement;
pub use translation::{Divert, Hop, Pool, PoolPorts, Translation};

use crate::token::Place;

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Where it begins.
    pub place: Place,
    /// The included file that it is in; `None` is the text itself.
    pub file: Option<Arc<str>>,
    /// What it says.
    pub kind: StatementKind,
}

/// Sorts of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `name = value`; the parser has noted the macro already.
    Macro {
        /// Name, without `$`.
        name: String,
        /// Words of the value, with one space between them.
        value: String,
    },
    /// `set ...`, one element for each setting of a list.
    Set(Vec<Setting>),
    /// `table <name> ...`
    Table(TableDefinition),
    /// `pass`, `block`, `match`
    Rule(Box<RuleStatement>),
    /// `antispoof`
    Antispoof(Antispoof),
    /// `include`: what follows comes from the file.
    Include,
    /// `anchor ... {`: what follows is in the anchor.
    BeginAnchor {
        /// Its name; unnamed ones get one.
        name: Option<String>,
    },
    /// `anchor`; of one with braces this comes at their end.
    Anchor(Box<AnchorStatement>),
    /// `load anchor name from "file"`
    LoadAnchor {
        /// Its name, relative to the rule set that the statement is in.
        name: String,
        /// The file.
        file: String,
    },
    /// `queue`, one for each interface
    Queues(Vec<Queue>),
    /// `state limiter`, `source limiter`
    Limiter(Limiter),
    /// `nat`, `scrub` and their like of old times.
    Old(Box<OldStatement>),
}

/// One setting of a `set` statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// `timeout`, with its name as written
    Timeout(Timeout, u32, String),
    /// `limit`, with its name as written
    Limit(Limit, u32, String),
    /// `optimization`, by name, and as written
    Optimization(&'static str, String),
    /// `fingerprints`: a file
    Fingerprints(String),
    /// `syncookies`, and whether percentages were given
    Syncookies(Syncookies, bool),
    /// `ruleset-optimization`
    RulesetOptimization(Optimization),
    /// `block-policy`
    BlockPolicy(BlockPolicy),
    /// `state-policy`
    StatePolicy(StatePolicy),
    /// `state-defaults`
    StateDefaults(Vec<StateOption>),
    /// `loginterface`, `None` for `none`
    Loginterface(Option<String>),
    /// `skip on`, empty for `none`
    Skip(Vec<Not<InterfaceMatch>>),
    /// `reassemble`
    Reassemble {
        /// `yes`
        on: bool,
        /// `no-df`
        no_df: bool,
    },
    /// `evaluator`, of skipstep only
    Evaluator(Evaluator),
    /// `fast-forward`, of skipstep only
    FastForward(FastForward),
    /// `unattached`, of skipstep only
    Unattached(Unattached),
    /// `xdp on`, of skipstep only, empty for `none`
    Xdp(Vec<Not<InterfaceMatch>>),
    /// `hostid`
    Hostid(u32),
    /// `debug`, as syslog counts
    Debug(u8),
    /// `fail-policy` of FreeBSD
    FailPolicy(BlockPolicy),
    /// `keepcounters` of FreeBSD
    KeepCounters,
    /// `require-order` of FreeBSD
    RequireOrder(bool),
}

/// What `set limit` can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Limit {
    States,
    SrcNodes,
    Frags,
    Tables,
    TableEntries,
    PktdelayPkts,
    Anchors,
}

/// `table <name> ...`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableDefinition {
    /// Name, without the angle brackets.
    pub name: String,
    /// `persist`
    pub persist: bool,
    /// `const`
    pub constant: bool,
    /// `counters`
    pub counters: bool,
    /// Lists and files in the order of writing.
    pub contents: Vec<TableContents>,
    /// There was a list or a file, if only an empty one.
    pub initialized: bool,
}

/// Part of the contents of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableContents {
    /// `{ ... }`
    List(Vec<Host>),
    /// `file "name"`
    File(String),
}

/// `pass`, `block` or `match`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleStatement {
    /// Which of the three.
    pub action: Action,
    /// How a block rule answers; as `block-policy` says if `None`.
    pub block_return: Option<BlockReturn>,
    /// `in`, `out`
    pub direction: Option<Direction>,
    /// `log`
    pub log: Option<Log>,
    /// `quick`
    pub quick: bool,
    /// `on`, one of them; empty for all
    pub interfaces: Vec<Not<InterfaceMatch>>,
    /// `inet`, `inet6`
    pub family: Option<Family>,
    /// `proto`, one of them; empty for all
    pub protocols: Vec<u8>,
    /// `from`
    pub source: Peer,
    /// `to`
    pub destination: Peer,
    /// `os`, one of them; empty for all
    pub systems: Vec<String>,
    /// What follows, in any order.
    pub options: FilterOptions,
}

/// `anchor "name" [in|out] [quick] [on ...] [af] [proto ...] [hosts] [options] [{ ... }]`
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorStatement {
    /// Its name; only one with braces can do without.
    pub name: Option<String>,
    /// The rules stand in braces.
    pub braces: bool,
    /// Which packets go there, and what else the options do; the action is `pass`.
    pub rule: RuleStatement,
}

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Peer {
    /// One of these; empty for `any`.
    pub hosts: Vec<Host>,
    /// One of these; empty for all.
    pub ports: Vec<Ports>,
}

/// A host specification, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// `!`
    pub negated: bool,
    /// What it is.
    pub address: Address,
    /// Index of the interface a link-local address belongs to, 0 for none.
    pub scope: u32,
    /// `weight` in a table or pool, 0 if there is none.
    pub weight: u16,
}

/// Sorts of host specifications.
#[derive(Debug, Clone, PartialEq)]
pub enum Address {
    /// `any` where a host must stand.
    Any,
    /// Address and prefix length. The length may be up to 128 for IPv4, which is an error that pf
    /// reports only when the rule is expanded.
    Net(IpAddr, u8),
    /// `low - high`
    Range(IpAddr, IpAddr),
    /// `<name>`
    Table(String),
    /// `(em0:network)/24`
    Dynamic {
        /// Interface and modifiers; the prefix is not set here.
        interface: skipstep_ruleset::address::DynamicAddress,
        /// Prefix length, 128 if none is given.
        prefix: u8,
    },
    /// `no-route`
    NoRoute,
    /// `urpf-failed`
    UrpfFailed,
    /// `route "label"`
    RouteLabel(String),
}

impl Host {
    /// A host that is nothing but its address.
    pub fn new(address: Address) -> Self {
        Host { negated: false, address, scope: 0, weight: 0 }
    }

    /// The address family, if the specification has one.
    pub fn family(&self) -> Option<Family> {
        match self.address {
            Address::Net(address, _) | Address::Range(address, _) => Some(Family::of(address)),
            _ => None,
        }
    }
}

/// The options of a rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FilterOptions {
    /// `user`, one of them; empty for all
    pub users: Vec<Owner>,
    /// `group`, one of them; empty for all
    pub groups: Vec<Owner>,
    /// `flags`; the inner `None` is `any`
    pub flags: Option<Option<TcpFlags>>,
    /// `icmp-type`, `icmp6-type`; one of these, with the protocol each belongs to
    pub icmp: Option<Vec<(u8, IcmpMatch)>>,
    /// `prio`
    pub prio: Option<u8>,
    /// `tos`
    pub tos: Option<u8>,
    /// `keep state`, `no state`
    pub keep: Option<Keep>,
    /// `fragment`
    pub fragment: bool,
    /// `allow-opts`
    pub allow_opts: bool,
    /// `label`
    pub labels: Vec<String>,
    /// `tag`
    pub tag: Option<String>,
    /// `tagged`
    pub tagged: Option<Box<Not<String>>>,
    /// `probability`, as a fraction of 2^32 - 1
    pub probability: Option<u32>,
    /// `scrub`
    pub scrub: Scrub,
    /// `received-on`
    pub received_on: Option<Box<Not<InterfaceMatch>>>,
    /// `set prio`
    pub set_prio: Option<(u8, u8)>,
    /// `set tos`
    pub set_tos: Option<u8>,
    /// `set queue`
    pub set_queue: Option<Box<(String, Option<String>)>>,
    /// `set delay`
    pub set_delay: Option<u16>,
    /// `max-pkt-rate packets/seconds`
    pub max_pkt_rate: Option<(u32, u32)>,
    /// `state limiter`
    pub state_limiter: Option<LimiterUse>,
    /// `source limiter`
    pub source_limiter: Option<LimiterUse>,
    /// `once`
    pub once: bool,
    /// `rtable`
    pub rtable: Option<u32>,
    /// `max-pkt-size` of FreeBSD
    pub max_pkt_size: Option<u16>,
    /// `ridentifier` of FreeBSD
    pub ridentifier: Option<u32>,
    /// `nat-to`, `route-to`, `divert-to` and their like
    pub translation: Translation,
}

/// Whether a rule makes state.
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
    /// `max`
    Max(u32),
    /// `no-sync`
    NoSync,
    /// `source-track`; without `rule` and `global` it is what other options make it
    SourceTrack(Option<SourceTrack>),
    /// `max-src-states`
    MaxSrcStates(u32),
    /// `max-src-conn`
    MaxSrcConn(u32),
    /// `max-src-conn-rate`
    MaxSrcConnRate(u32, u32),
    /// `max-src-nodes`
    MaxSrcNodes(u32),
    /// `overload`
    Overload(Overload),
    /// `pflow`
    Pflow,
    /// `if-bound`, `floating`
    Binding(StatePolicy),
    /// `sloppy`
    Sloppy,
    /// a timeout by name
    Timeout(Timeout, u32),
}

impl FilterOptions {
    /// Whether there was `keep state` or the like without options in parentheses.
    pub fn awaits_state_options(&self) -> bool {
        matches!(&self.keep, Some(Keep::State(_, options)) if options.is_empty())
    }
}

/// `antispoof`
#[derive(Debug, Clone, PartialEq)]
pub struct Antispoof {
    /// `log`
    pub log: Option<Log>,
    /// `quick`
    pub quick: bool,
    /// Interfaces, and whether each was written in parentheses.
    pub interfaces: Vec<(String, bool)>,
    /// `inet`, `inet6`
    pub family: Option<Family>,
    /// `label`: FreeBSD's rules can have several.
    pub labels: Vec<String>,
    /// `rtable`
    pub rtable: Option<u32>,
    /// `ridentifier`
    pub ridentifier: Option<u32>,
}

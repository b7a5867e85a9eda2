//! What `set` lines choose, with pf's defaults (pf-semantics section 1).

use serde::{Deserialize, Serialize};

/// Settings of a rule set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// `set timeout`, `set optimization`
    pub timeouts: Timeouts,
    /// `set limit`
    pub limits: Limits,
    /// `set block-policy`
    pub block_policy: BlockPolicy,
    /// `set fail-policy` of FreeBSD: what a pass rule does that cannot make its state.
    pub fail_policy: BlockPolicy,
    /// `set keepcounters` of FreeBSD: rules that stay the same keep their counters over a load.
    pub keep_counters: bool,
    /// `set state-policy`
    pub state_policy: StatePolicy,
    /// `set skip on`: interface and group names.
    pub skip: Vec<String>,
    /// `set loginterface`
    pub loginterface: Option<String>,
    /// `set reassemble`
    pub reassemble: bool,
    /// `set reassemble yes no-df`
    pub reassemble_no_df: bool,
    /// `set evaluator`, of skipstep only
    pub evaluator: Evaluator,
    /// `set fast-forward`, of skipstep only
    pub fast_forward: FastForward,
    /// `set unattached`, of skipstep only
    pub unattached: Unattached,
    /// `set xdp on`, of skipstep only: interface and group names.
    pub xdp: Vec<String>,
    /// `set hostid`
    pub hostid: Option<u32>,
    /// `set fingerprints`
    pub fingerprints: Option<String>,
    /// `set syncookies`
    pub syncookies: Syncookies,
    /// `set debug`, 0 (emerg) to 7 (debug) as syslog counts
    pub debug: u8,
    /// `set ruleset-optimization`. Of `set state-defaults`, which becomes part of every rule,
    /// nothing is left here.
    pub ruleset_optimization: Optimization,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            block_policy: BlockPolicy::Drop,
            fail_policy: BlockPolicy::Drop,
            keep_counters: false,
            state_policy: StatePolicy::Floating,
            skip: Vec::new(),
            loginterface: None,
            reassemble: true,
            reassemble_no_df: false,
            evaluator: Evaluator::default(),
            fast_forward: FastForward::default(),
            unattached: Unattached::default(),
            xdp: Vec::new(),
            hostid: None,
            fingerprints: None,
            syncookies: Syncookies::default(),
            debug: 3,
            ruleset_optimization: Optimization::default(),
        }
    }
}

/// Numbers of TCP states whose handshake is under way, for `set syncookies adaptive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncookieMarks {
    /// More than these: a flood.
    pub start: u32,
    /// Fewer than these: it is over.
    pub end: u32,
}

impl Options {
    /// The marks that the percentages make, of as many states as there may be; without any those
    /// that OpenBSD's kernel begins with.
    pub fn syncookie_marks(&self) -> SyncookieMarks {
        let (start, end, states) = match self.syncookies {
            Syncookies::Adaptive { start, end } => {
                (u16::from(start) * 10, u16::from(end) * 10, self.limits.states)
            }
            _ => (250, 125, Limits::default().states),
        };
        let share = |of_1000: u16| (u64::from(states) * u64::from(of_1000) / 1000) as u32;
        SyncookieMarks { start: share(start), end: share(end) }
    }
}

/// `set block-policy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockPolicy {
    /// say nothing
    Drop,
    /// RST or ICMP error
    Return,
}

/// `set state-policy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatePolicy {
    /// a state matches on the interface that made it
    IfBound,
    /// a state matches on every interface
    Floating,
}

/// `set ruleset-optimization`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Optimization {
    /// rules stay as written
    None,
    /// duplicates go, like rules become tables, the rest is ordered for skip steps
    #[default]
    Basic,
    /// and `quick` rules are ordered by how often they matched
    Profile,
}

/// `set syncookies`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Syncookies {
    /// no
    #[default]
    Never,
    /// every SYN is answered with one
    Always,
    /// while too many handshakes are under way; percentages of `set limit states`
    Adaptive {
        /// from here on
        start: u8,
        /// until there are only so many
        end: u8,
    },
}

/// `set evaluator`: how the data plane finds the deciding rule. The answer is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Evaluator {
    /// one rule after the other, as iptables does
    Linear,
    /// as pf does
    SkipSteps,
    /// trees find it among many
    #[default]
    Compiled,
}

/// `set unattached`: the fate of IP packets of an interface that the filter is not attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unattached {
    /// The guard drops them, and counts and logs the reason `unattached`.
    #[default]
    Block,
    /// Nobody judges them.
    Pass,
}

/// `set fast-forward`: whether packets of states that want nothing but to judge and count them go a
/// shorter way. The answer is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FastForward {
    /// through all of the filter, and all of the kernel
    No,
    /// past what has nothing to do with them
    #[default]
    Auto,
    /// past the netfilter rules of the host, too
    Yes,
}

/// `set limit`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// state table entries
    pub states: u32,
    /// tracked sources
    pub src_nodes: u32,
    /// fragments held
    pub frags: u32,
    /// tables
    pub tables: u32,
    /// addresses in all tables
    pub table_entries: u32,
    /// delayed packets
    pub pktdelay_pkts: u32,
    /// anchors
    pub anchors: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            states: 100_000,
            src_nodes: 10_000,
            frags: 16_384,
            tables: 1_000,
            table_entries: 200_000,
            pktdelay_pkts: 10_000,
            anchors: 512,
        }
    }
}

/// Timeout classes in the order of `enum pf_timeout` of bpf/abi.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Timeout {
    TcpFirst,
    TcpOpening,
    TcpEstablished,
    TcpClosing,
    TcpFinwait,
    TcpClosed,
    UdpFirst,
    UdpSingle,
    UdpMultiple,
    IcmpFirst,
    IcmpError,
    OtherFirst,
    OtherSingle,
    OtherMultiple,
    Frag,
    Interval,
    AdaptiveStart,
    AdaptiveEnd,
    SrcTrack,
    TcpTsdiff,
}

impl Timeout {
    /// How many there are.
    pub const COUNT: usize = 20;

    /// All of them, in order.
    pub const ALL: [Timeout; Self::COUNT] = [
        Timeout::TcpFirst,
        Timeout::TcpOpening,
        Timeout::TcpEstablished,
        Timeout::TcpClosing,
        Timeout::TcpFinwait,
        Timeout::TcpClosed,
        Timeout::UdpFirst,
        Timeout::UdpSingle,
        Timeout::UdpMultiple,
        Timeout::IcmpFirst,
        Timeout::IcmpError,
        Timeout::OtherFirst,
        Timeout::OtherSingle,
        Timeout::OtherMultiple,
        Timeout::Frag,
        Timeout::Interval,
        Timeout::AdaptiveStart,
        Timeout::AdaptiveEnd,
        Timeout::SrcTrack,
        Timeout::TcpTsdiff,
    ];

    /// The name in pf.conf and `pfctl -st`.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; Timeout::COUNT] = [
            "tcp.first",
            "tcp.opening",
            "tcp.established",
            "tcp.closing",
            "tcp.finwait",
            "tcp.closed",
            "udp.first",
            "udp.single",
            "udp.multiple",
            "icmp.first",
            "icmp.error",
            "other.first",
            "other.single",
            "other.multiple",
            "frag",
            "interval",
            "adaptive.start",
            "adaptive.end",
            "src.track",
            "tcp.tsdiff",
        ];
        NAMES[self as usize]
    }

    /// The timeout called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|timeout| timeout.name() == name)
    }
}

/// A value for every timeout class: seconds, but for the two adaptive ones, which count states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts(pub [u32; Timeout::COUNT]);

impl Timeouts {
    /// The value of one class.
    pub fn get(&self, timeout: Timeout) -> u32 {
        self.0[timeout as usize]
    }

    /// Changes the value of one class.
    pub fn set(&mut self, timeout: Timeout, value: u32) {
        self.0[timeout as usize] = value;
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts([
            120, 30, 86_400, 900, 45, 90, 60, 30, 60, 20, 10, 60, 30, 60, 60, 10, 60_000, 120_000,
            0, 30,
        ])
    }
}

//! Settings of the `set` statements, with pf's defaults (pf-semantics section 1).

use serde::{Deserialize, Serialize};

/// The settings of a rule set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// `set timeout`, `set optimization`
    pub timeouts: Timeouts,
    /// `set limit`: greatest numbers of states and other entries.
    pub limits: Limits,
    /// `set block-policy`: the answer of `block` rules that name none.
    pub block_policy: BlockPolicy,
    /// `set fail-policy` of FreeBSD: the answer of a pass rule that cannot create its state.
    pub fail_policy: BlockPolicy,
    /// `set keepcounters` of FreeBSD: rules that do not change keep their counters over a load.
    pub keep_counters: bool,
    /// `set state-policy`: the interfaces on which states match.
    pub state_policy: StatePolicy,
    /// `set skip on`: names of interfaces and groups.
    pub skip: Vec<String>,
    /// `set loginterface`: name of the interface or group with packet counters; `None` for none.
    pub loginterface: Option<String>,
    /// `set reassemble`: true if fragments are reassembled.
    pub reassemble: bool,
    /// `set reassemble yes no-df`: true if IPv4 fragments with the don't-fragment bit are
    /// reassembled, too, without that bit.
    pub reassemble_no_df: bool,
    /// `set evaluator`, a setting of skipstep.
    pub evaluator: Evaluator,
    /// `set fast-forward`, a setting of skipstep.
    pub fast_forward: FastForward,
    /// `set unattached`, a setting of skipstep.
    pub unattached: Unattached,
    /// `set xdp on`, a setting of skipstep: names of interfaces and groups.
    pub xdp: Vec<String>,
    /// `set hostid`: number of this host in states; `None` for a random one.
    pub hostid: Option<u32>,
    /// `set fingerprints`: path of the file; `None` for the default path.
    pub fingerprints: Option<String>,
    /// `set syncookies`: the use of SYN cookies.
    pub syncookies: Syncookies,
    /// `set debug`, as a syslog level from 0 (emerg) to 7 (debug).
    pub debug: u8,
    /// `set ruleset-optimization`. (`set state-defaults` is part of rules and has no field.)
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

/// Numbers of half-open TCP states at which `set syncookies adaptive` switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncookieMarks {
    /// Syncookies are sent if more states than this are half-open.
    pub start: u32,
    /// Syncookies end if fewer states than this are half-open.
    pub end: u32,
}

impl Options {
    /// Returns the thresholds for `set syncookies adaptive`, computed from its percentages and `set
    /// limit states`. Other settings have the thresholds with which OpenBSD's kernel begins.
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

/// `set block-policy`: the answer of a `block` rule that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockPolicy {
    /// Drop without an answer.
    Drop,
    /// Answer with an RST or an ICMP error.
    Return,
}

/// `set state-policy`: the interfaces on which a state matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatePolicy {
    /// A state matches on the interface that created it.
    IfBound,
    /// A state matches on all interfaces.
    Floating,
}

/// `set ruleset-optimization`: the steps of the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Optimization {
    /// Rules stay as written.
    None,
    /// Removes duplicates, makes tables of similar rules, orders the others for skip steps.
    #[default]
    Basic,
    /// As `Basic`, and `quick` rules are ordered by their number of matches.
    Profile,
}

/// `set syncookies`: the use of SYN cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Syncookies {
    /// No SYN cookies.
    #[default]
    Never,
    /// Each SYN is answered with a SYN cookie.
    Always,
    /// SYN cookies while many TCP states are half-open, in percent of `set limit states`.
    Adaptive {
        /// Percentage at which SYN cookies begin.
        start: u8,
        /// Percentage below which SYN cookies end.
        end: u8,
    },
}

/// `set evaluator`: the way to find the deciding rule, which is always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Evaluator {
    /// One rule after the other, as in iptables.
    Linear,
    /// Skip steps, as in pf.
    SkipSteps,
    /// Trees over superblocks, and skip steps for other rules.
    #[default]
    Compiled,
}

/// `set unattached`: the fate of IP packets on an interface without the filter's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unattached {
    /// The guard drops them, and counts and logs the reason `unattached`.
    #[default]
    Block,
    /// They pass without being filtered.
    Pass,
}

/// `set fast-forward`: the packets that may take the fast path. All values have the same verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FastForward {
    /// All packets take the slow path and the kernel's own forwarding.
    No,
    /// Packets take the fast path unless netfilter, IPsec or other programs need to see them.
    #[default]
    Auto,
    /// Packets take the fast path past the host's netfilter rules, too.
    Yes,
}

/// `set limit`: greatest numbers of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// States.
    pub states: u32,
    /// Source nodes.
    pub src_nodes: u32,
    /// Fragments that wait for reassembly.
    pub frags: u32,
    /// Tables.
    pub tables: u32,
    /// Addresses in all tables together.
    pub table_entries: u32,
    /// Packets delayed by `set delay`.
    pub pktdelay_pkts: u32,
    /// Anchors.
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

/// Timeout classes, in the order of `enum pf_timeout` of bpf/abi.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say all")]
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
    /// Number of timeout classes.
    pub const COUNT: usize = 20;

    /// All classes in order of their numbers.
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

    /// Returns the name in pf.conf and in the output of `pfctl -st`.
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

    /// Returns the timeout with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|timeout| timeout.name() == name)
    }
}

/// A value for each timeout class: seconds, or a number of states for the two adaptive classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts(pub [u32; Timeout::COUNT]);

impl Timeouts {
    /// Returns the value of a class.
    pub fn get(&self, timeout: Timeout) -> u32 {
        self.0[timeout as usize]
    }

    /// Sets the value of a class.
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

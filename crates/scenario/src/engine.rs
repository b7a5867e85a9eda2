//! What every evaluator can be asked, so that one test drives them all: the model, the BPF
//! programs under `BPF_PROG_TEST_RUN`, with the linear evaluator, with skip steps and with trees.

use std::net::IpAddr;

use ipnet::IpNet;

// What every evaluator says in the same words has the model's types.
pub use skipstep_model::{
    Admissions, Carried, Diverted, Draw, Edit, Forwarded, Hiding, InterfaceCounters, LinkHeader,
    NextHop, NodeKind, Packet as TestPacket, Peer as PeerView, RuleCounters, SocketOwner,
    TableCounters, TableEdit, TableTraffic, Verdict, VlanTag, Way,
};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{
    Direction, Family, Limiter, Reason, RuleId, RulesChange, Ruleset, TableName, Timeout,
};

/// An evaluator under test.
pub trait Engine {
    /// Short name for reports: `model`, `bpf-linear`, `bpf-skip-steps`, `bpf-compiled`.
    fn name(&self) -> &str;

    /// Replaces rules, settings and tables; empties the state table and all counters; sets the
    /// clock to 0 and everything random to 0.
    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String>;

    /// Puts other rules in force, as `pfctl -f`, `-a`, `-F rules` do: states, the clock and all
    /// else stay.
    fn change_rules(&mut self, change: &RulesChange) -> Result<(), String>;

    /// The host has changed to this while the rules stay, and those that follow its addresses
    /// follow.
    fn change_host(&mut self, host: &Host) -> Result<(), String>;

    /// Moves the clock and removes the states whose time is up, as pf's purge would.
    /// Returns the ids of the states removed, in ascending order.
    fn set_time(&mut self, seconds: u32) -> Vec<u64>;

    /// Sets what following random draws return.
    fn set_random(&mut self, draw: Draw);

    /// Whether the evaluator can be given this packet at all: a test of the kernel's programs has
    /// no way to make one of more than some 16,000 bytes.
    fn accepts(&self, _packet: &TestPacket) -> bool {
        true
    }

    /// Runs one packet through the firewall.
    fn packet(&mut self, packet: &TestPacket) -> Fate;

    /// Removes the states with these ids, as far as there are such.
    fn kill(&mut self, ids: &[u64]);

    /// The ids of the states that rules with this label made, be those gone or not.
    fn labelled(&mut self, label: &str) -> Vec<u64>;

    /// Changes the contents of a table; `false` if it cannot be changed so.
    fn edit_table(&mut self, edit: &TableEdit) -> bool;

    /// All states in order of creation.
    fn states(&mut self) -> Vec<StateView>;

    /// The sources that are tracked, in any order.
    fn sources(&mut self) -> Vec<SourceView>;

    /// The limiters in the order of their numbers, those of states first.
    fn limiters(&mut self) -> Vec<LimiterView>;

    /// Counters of a rule, `None` for the default rule.
    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters;

    /// Counters of the interface called `name`.
    fn interface_counters(&mut self, name: &str) -> InterfaceCounters;

    /// Counters of a table, but for how often it was asked, which depends on the walk.
    fn table_counters(&mut self, name: &TableName) -> TableCounters;

    /// Counters of the whole firewall.
    fn status(&mut self) -> Status;
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
    /// The reasons counted by this packet, ascending.
    pub counted: Vec<Reason>,
    /// State used or made.
    pub state: Option<u64>,
    /// The packet as it goes on, if it passed and was changed.
    pub out: Option<Vec<u8>>,
    /// What the firewall sent in answer, from the IP header on.
    pub replies: Vec<Vec<u8>>,
    /// What goes on in its place, or beside it.
    pub forwarded: Vec<Forwarded>,
    /// What the packet carries afterwards.
    pub carried: Carried,
    /// Log records it caused.
    pub log: Vec<LogView>,
}

/// What decided about a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// pf did not get as far: interface skipped
    None,
    /// no rule matched, or the packet was dropped before rules were asked
    Default,
    /// a rule, or the state that it made
    Rule(RuleId),
    /// a state whose rule is gone since a reload
    OrphanState,
}

/// A log record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogView {
    /// Number of the rule in the record, `None` for the default rule.
    pub rule: Option<u32>,
    /// Number of the anchor rule in the record.
    pub anchor_rule: Option<u32>,
    /// Path of the anchor in the record; empty for the main rule set, and for packets that a state
    /// passed, whichever rule made it.
    pub anchor: String,
    /// Reason in the record.
    pub reason: Reason,
    /// Whether it says pass or block; `None` is match.
    pub pass: Option<bool>,
    /// n of pflogN
    pub to: u8,
    /// User that `log (user)` found.
    pub uid: Option<u32>,
}

/// A state as tests compare and `pfctl -ss` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateView {
    /// Ascending in order of creation; tests compare their order, not their value.
    pub id: u64,
    /// IP protocol number.
    pub protocol: u8,
    /// Address family.
    pub family: Family,
    /// Direction of the packet that made it.
    pub direction: Direction,
    /// Interface it is bound to; `None` for all.
    pub interface: Option<String>,
    /// Routing domain of its packets.
    pub rdomain: u32,
    /// Rule that made it; `None` is the default rule or one that is gone.
    pub rule: Option<RuleId>,
    /// Number of the anchor rule that led to that rule; `None` also if it is gone.
    pub anchor_rule: Option<u32>,
    /// Key on the network's side: address and port, index 0 the source of inbound packets.
    pub wire: [(IpAddr, u16); 2],
    /// Key on the host's side.
    pub stack: [(IpAddr, u16); 2],
    /// The side that made it.
    pub src: PeerView,
    /// The other side.
    pub dst: PeerView,
    /// Class of timeout.
    pub timeout: Timeout,
    /// Second of creation.
    pub created_at: u32,
    /// Second at which it ends if nothing more comes.
    pub expires_at: u32,
    /// Packets with the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    /// OpenBSD's flag bits: 1 allow-opts, 2 sloppy, 4 pflow, 8 no-sync, 0x20 no-df, 0x40 set tos,
    /// 0x80 random-id, 0x200 set prio.
    pub flags: u16,
    /// Lowest TTL of its packets, 0 if not set.
    pub min_ttl: u8,
    /// Highest MSS, 0 if not set.
    pub max_mss: u16,
    /// Tag its packets get.
    pub tag: Option<String>,
    /// Sources count for it.
    pub tracked: bool,
    /// `route-to` and its like: who is next for its packets.
    pub route: Option<NextHop>,
}

/// A source that is tracked, as tests compare and `pfctl -sS` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Rule that tracks it; `None` if it is gone.
    pub rule: Option<RuleId>,
    /// What for.
    pub kind: NodeKind,
    /// Its address.
    pub source: IpAddr,
    /// The address that a pool gave it.
    pub chosen: Option<IpAddr>,
    /// States now.
    pub states: u32,
    /// TCP connections of these states that were established.
    pub connections: u32,
    /// Connections of late in thousandths, and the second of the last of them.
    pub rate: (u32, u32),
    /// Second of creation.
    pub created_at: u32,
    /// Second at which it goes if it has no states.
    pub expires_at: u32,
    /// Packets with the direction of their states, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
}

impl SourceView {
    /// In what order they are listed: by rule, kind and address.
    pub fn order(&self) -> impl Ord + use<> {
        let rule = self.rule.as_ref().map(|rule| (rule.anchor.clone(), rule.number));
        (rule, self.kind, self.source, self.created_at)
    }
}

/// A limiter, as tests compare and `pfctl -s` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterView {
    /// What was written of it.
    pub limiter: Limiter,
    /// States now.
    pub states: u32,
    /// What it did, of all sources together.
    pub counts: Admissions,
    /// Sources ever met.
    pub sources_made: u64,
    /// Packets refused by `entries`.
    pub sources_limited: u64,
    /// Packets refused because there was no memory for a source.
    pub sources_lost: u64,
    /// Its sources in the order of their addresses.
    pub sources: Vec<LimitedView>,
}

/// A source of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedView {
    /// The routing domain that its packets come from.
    pub rdomain: u32,
    /// What the mask leaves of its address.
    pub net: IpNet,
    /// States now.
    pub states: u32,
    /// What the limiter did with it.
    pub counts: Admissions,
}

/// Counters of the whole firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Current states.
    pub states: u64,
    /// Searches in the state table.
    pub searches: u64,
    /// States made.
    pub inserts: u64,
    /// States removed.
    pub removals: u64,
    /// Current source nodes.
    pub sources: u64,
    /// Searches among the source nodes.
    pub source_searches: u64,
    /// Source nodes made.
    pub source_inserts: u64,
    /// Source nodes removed.
    pub source_removals: u64,
    /// By reason.
    pub reasons: [u64; Reason::COUNT],
}

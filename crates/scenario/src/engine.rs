//! The interface of all evaluators, so that one test can drive each of them. They are the model,
//! and the BPF programs under `BPF_PROG_TEST_RUN`, with the linear evaluator, with skip steps and
//! with trees.

use std::net::IpAddr;

use ipnet::IpNet;

// Types that all evaluators share are the model's.
pub use skipstep_model::{
    Admissions, Carried, Diverted, Draw, Edit, ForwardRoute, Forwarded, Hiding, InterfaceCounters,
    LinkHeader, NextHop, NodeKind, Packet as TestPacket, Peer as PeerView, RuleCounters,
    SocketOwner, TableCounters, TableEdit, TableTraffic, Verdict, VlanTag,
};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{
    Direction, Family, Limiter, Reason, RuleId, RulesChange, Ruleset, TableName, Timeout,
};

/// An evaluator under test.
pub trait Engine {
    /// Short name for reports: `model`, `bpf-linear`, `bpf-skip-steps`, `bpf-compiled`.
    fn name(&self) -> &str;

    /// Replaces rules, settings and tables. Clears the state table and all counters, and sets the
    /// clock and all random draws to 0.
    ///
    /// # Errors
    /// Fails with a message if the evaluator refuses the rules.
    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String>;

    /// Changes the rules like `pfctl -f`, `-a` and `-F rules`. States, the clock and everything
    /// else stay.
    ///
    /// # Errors
    /// Fails with a message if the evaluator refuses the rules.
    fn change_rules(&mut self, change: &RulesChange) -> Result<(), String>;

    /// Replaces the host. The rules stay, and dynamic addresses follow the new host.
    ///
    /// # Errors
    /// Fails with a message if the evaluator cannot adopt the host.
    fn change_host(&mut self, host: &Host) -> Result<(), String>;

    /// Sets the clock and removes expired states, as pf's purge would. Returns the ids of the
    /// removed states, ascending.
    fn set_time(&mut self, seconds: u32) -> Vec<u64>;

    /// Sets the results of the following random draws.
    fn set_random(&mut self, draw: Draw);

    /// True if the evaluator can run the packet. A test run of the kernel's programs takes at most
    /// about 16,000 bytes.
    fn accepts(&self, _packet: &TestPacket) -> bool {
        true
    }

    /// Runs a packet through the firewall.
    fn packet(&mut self, packet: &TestPacket) -> Fate;

    /// Removes the states with these ids. Unknown ids are ignored.
    fn kill(&mut self, ids: &[u64]);

    /// Returns the ids of the states of rules with this label, orphaned rules included.
    fn labelled(&mut self, label: &str) -> Vec<u64>;

    /// Changes the contents of a table. Returns false if the change is not possible.
    fn edit_table(&mut self, edit: &TableEdit) -> bool;

    /// Returns all states in order of creation.
    fn states(&mut self) -> Vec<StateView>;

    /// Returns the tracked sources, in any order.
    fn sources(&mut self) -> Vec<SourceView>;

    /// Returns the limiters, state limiters first, ordered by number.
    fn limiters(&mut self) -> Vec<LimiterView>;

    /// Returns the counters of a rule, `None` for the default rule.
    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters;

    /// Returns the counters of an interface.
    fn interface_counters(&mut self, name: &str) -> InterfaceCounters;

    /// Returns the counters of a table, without the number of lookups, which depends on the
    /// evaluator.
    fn table_counters(&mut self, name: &TableName) -> TableCounters;

    /// Returns the counters of the whole firewall.
    fn status(&mut self) -> Status;
}

/// The fate of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Passed, dropped or consumed.
    pub verdict: Verdict,
    /// The origin of the verdict.
    pub decision: Decision,
    /// Number of the anchor rule that led to the deciding rule.
    pub anchor_rule: Option<u32>,
    /// Reason in the log.
    pub reason: Reason,
    /// Reasons that the packet counted, ascending.
    pub counted: Vec<Reason>,
    /// Id of the state that the packet used or created.
    pub state: Option<u64>,
    /// The packet as it leaves the firewall, if it passed and was changed.
    pub out: Option<Vec<u8>>,
    /// Packets that the firewall sent in answer, from the IP header on.
    pub replies: Vec<Vec<u8>>,
    /// Packets that are sent in place of the packet, or beside it.
    pub forwarded: Vec<Forwarded>,
    /// Metadata of the packet afterwards.
    pub carried: Carried,
    /// Log records of the packet.
    pub log: Vec<LogView>,
}

/// The origin of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// the interface is skipped, so pf did not filter
    None,
    /// no rule matched, or the packet was dropped before rules were evaluated
    Default,
    /// a rule, or a state of the rule
    Rule(RuleId),
    /// a state of an orphaned rule
    OrphanState,
}

/// A log record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogView {
    /// Number of the rule in the record, `None` for the default rule.
    pub rule: Option<u32>,
    /// Number of the anchor rule in the record.
    pub anchor_rule: Option<u32>,
    /// Path of the anchor in the record. Empty for the main rule set, and for packets that a state
    /// passed, whatever the rule.
    pub anchor: String,
    /// Reason in the record.
    pub reason: Reason,
    /// True for pass, false for block, `None` for match.
    pub pass: Option<bool>,
    /// Number N of pflogN.
    pub to: u8,
    /// User id that `log (user)` found.
    pub uid: Option<u32>,
}

/// A state, as tests compare it and `pfctl -ss` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateView {
    /// Id, ascending in order of creation. Tests compare the order, not the value.
    pub id: u64,
    /// IP protocol number.
    pub protocol: u8,
    /// Address family on the network's side.
    pub family: Family,
    /// Direction of the packet that created the state.
    pub direction: Direction,
    /// Interface that the state is bound to; `None` for all.
    pub interface: Option<String>,
    /// Routing domain of the state's packets.
    pub rdomain: u32,
    /// Rule that created the state; `None` is the default rule or an orphaned one.
    pub rule: Option<RuleId>,
    /// Number of the anchor rule that led to that rule; `None` also for an orphaned rule.
    pub anchor_rule: Option<u32>,
    /// Key on the network's side: addresses and ports; index 0 is the source of inbound packets.
    pub wire: [(IpAddr, u16); 2],
    /// Key on the host's side, in the same order.
    pub stack: [(IpAddr, u16); 2],
    /// Peer that created the state.
    pub src: PeerView,
    /// Other peer.
    pub dst: PeerView,
    /// Timeout that applies.
    pub timeout: Timeout,
    /// Time of creation, in seconds.
    pub created_at: u32,
    /// Time of expiry without further packets, in seconds.
    pub expires_at: u32,
    /// Packets in the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    /// OpenBSD's flag bits: 1 allow-opts, 2 sloppy, 4 pflow, 8 no-sync, 0x20 no-df, 0x40 set tos,
    /// 0x80 random-id, 0x200 set prio.
    pub flags: u16,
    /// Lowest TTL of the state's packets, 0 if not set.
    pub min_ttl: u8,
    /// Highest MSS of the state's packets, 0 if not set.
    pub max_mss: u16,
    /// Tag of the state's packets.
    pub tag: Option<String>,
    /// True if source nodes count the state.
    pub tracked: bool,
    /// Next hop of the state's packets by `route-to` and its like.
    pub route: Option<NextHop>,
}

/// A tracked source, as tests compare it and `pfctl -sS` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Rule that tracks the source; `None` for an orphaned rule.
    pub rule: Option<RuleId>,
    /// Purpose of the source node.
    pub kind: NodeKind,
    /// Address of the source.
    pub source: IpAddr,
    /// Address that a pool chose for the source.
    pub chosen: Option<IpAddr>,
    /// Current number of states.
    pub states: u32,
    /// Number of these states with an established TCP connection.
    pub connections: u32,
    /// Rate of recent connections, in thousandths, and the time of the last one, in seconds.
    pub rate: (u32, u32),
    /// Time of creation, in seconds.
    pub created_at: u32,
    /// Time of expiry if the source has no states, in seconds.
    pub expires_at: u32,
    /// Packets in the direction of their states, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
}

impl SourceView {
    /// Returns the key by which sources are sorted: rule, kind and address.
    pub fn order(&self) -> impl Ord + use<> {
        let rule = self.rule.as_ref().map(|rule| (rule.anchor.clone(), rule.number));
        (rule, self.kind, self.source, self.created_at)
    }
}

/// A limiter, as tests compare it and `pfctl -s` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterView {
    /// Definition of the limiter.
    pub limiter: Limiter,
    /// Current number of states.
    pub states: u32,
    /// Admitted and refused packets of all sources.
    pub counts: Admissions,
    /// Number of sources ever added.
    pub sources_made: u64,
    /// Number of packets refused by `entries`.
    pub sources_limited: u64,
    /// Number of packets refused because there was no memory for a source.
    pub sources_lost: u64,
    /// Sources of the limiter, sorted by address.
    pub sources: Vec<LimitedView>,
}

/// A source of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedView {
    /// Routing domain of the source's packets.
    pub rdomain: u32,
    /// Address of the source under the limiter's mask.
    pub net: IpNet,
    /// Current number of states.
    pub states: u32,
    /// Admitted and refused packets of the source.
    pub counts: Admissions,
}

/// Counters of the whole firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Current number of states.
    pub states: u64,
    /// Number of searches in the state table.
    pub searches: u64,
    /// Number of states created.
    pub inserts: u64,
    /// Number of states removed.
    pub removals: u64,
    /// Current number of source nodes.
    pub sources: u64,
    /// Number of searches for source nodes.
    pub source_searches: u64,
    /// Number of source nodes created.
    pub source_inserts: u64,
    /// Number of source nodes removed.
    pub source_removals: u64,
    /// Number of packets for each reason.
    pub reasons: [u64; Reason::COUNT],
}

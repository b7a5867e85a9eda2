//! Counters of rules, interfaces and the whole firewall.

use skipstep_ruleset::Reason;

/// Counters of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounters {
    /// Number of evaluations, as without skip steps.
    pub evaluations: u64,
    /// Packets: in, out.
    pub packets: [u64; 2],
    /// Bytes: in, out.
    pub bytes: [u64; 2],
    /// Number of states now; for a match rule, of the states that it applies to.
    pub states: u64,
    /// Number of states ever created; match rules count none.
    pub states_created: u64,
    /// `once`: true if the rule has matched its packet, so it matches no more.
    pub expired: bool,
}

impl RuleCounters {
    /// Adds the counters of another rule, for the sum of several rules.
    pub fn add(&mut self, other: &RuleCounters) {
        self.evaluations += other.evaluations;
        for way in 0..2 {
            self.packets[way] += other.packets[way];
            self.bytes[way] += other.bytes[way];
        }
        self.states += other.states;
        self.states_created += other.states_created;
    }
}

/// Counters of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterfaceCounters {
    /// Packets, `[inet, inet6][in, out][passed, blocked]`.
    pub packets: [[[u64; 2]; 2]; 2],
    /// Bytes, indexed in the same way.
    pub bytes: [[[u64; 2]; 2]; 2],
}

impl InterfaceCounters {
    /// Adds the counters of another interface, for the sum of a group.
    pub fn add(&mut self, other: &InterfaceCounters) {
        let ours = [&mut self.packets, &mut self.bytes];
        for (sum, more) in ours.into_iter().zip([&other.packets, &other.bytes]) {
            let sums = sum.as_flattened_mut().as_flattened_mut();
            sums.iter_mut().zip(more.as_flattened().as_flattened()).for_each(|(a, b)| *a += b);
        }
    }
}

/// Limits that count packets above them, in PF's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCounter {
    /// `max`
    States,
    /// `max-src-states`
    SourceStates,
    /// `max-src-nodes`
    SourceNodes,
    /// `max-src-conn`
    SourceConnections,
    /// `max-src-conn-rate`
    SourceConnectionRate,
    /// Sources added to an overload table, or already in it.
    OverloadTable,
    /// Flushes of the states of a source.
    OverloadFlush,
    /// Floods of SYNs detected.
    Synfloods,
    /// Syncookies sent.
    SyncookiesSent,
    /// Syncookies that came back and were valid.
    SyncookiesValid,
}

impl LimitCounter {
    /// Number of limits.
    pub const COUNT: usize = LimitCounter::SyncookiesValid as usize + 1;
}

/// Counters of the whole firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Number of states now.
    pub states: u64,
    /// Lookups in the state table.
    pub searches: u64,
    /// States created.
    pub inserts: u64,
    /// States removed.
    pub removals: u64,
    /// Number of source nodes now.
    pub sources: u64,
    /// Lookups among the source nodes.
    pub source_searches: u64,
    /// Source nodes created.
    pub source_inserts: u64,
    /// Source nodes removed.
    pub source_removals: u64,
    /// Packets above limits, by [`LimitCounter`].
    pub limits: [u64; LimitCounter::COUNT],
    /// Packets by reason.
    pub reasons: [u64; Reason::COUNT],
}

//! Counts of what happened to packets, which show a generator that tests too little.

use std::fmt;

use skipstep_model::Verdict;
use skipstep_scenario::observe::Observation;

/// Counts of packets and of other steps.
#[derive(Default, Clone, Copy)]
pub struct Coverage {
    pub packets: u64,
    pub reloads: u64,
    /// Trials of rules that have ended.
    pub trials: u64,
    pub host_changes: u64,
    passed: u64,
    by_state: u64,
    made_state: u64,
    answered: u64,
    changed: u64,
    logged: u64,
    in_anchor: u64,
    reasons: u32,
}

impl Coverage {
    /// Counts one packet.
    pub fn count(&mut self, observation: &Observation) {
        let fate = &observation.fate;
        self.packets += 1;
        self.passed += u64::from(fate.verdict == Verdict::Pass);
        self.made_state += u64::from(!observation.created.is_empty());
        self.by_state += u64::from(observation.state.is_some() && observation.created.is_empty());
        self.answered += u64::from(!fate.replies.is_empty());
        self.changed += u64::from(fate.out.is_some());
        self.logged += u64::from(!fate.log.is_empty());
        self.in_anchor += u64::from(fate.anchor_rule.is_some());
        self.reasons |= fate.counted.iter().fold(0, |bits, reason| bits | 1 << *reason as u32);
    }

    /// Adds the counts of another value.
    pub fn add(&mut self, other: &Coverage) {
        self.packets += other.packets;
        self.reloads += other.reloads;
        self.trials += other.trials;
        self.host_changes += other.host_changes;
        self.passed += other.passed;
        self.by_state += other.by_state;
        self.made_state += other.made_state;
        self.answered += other.answered;
        self.changed += other.changed;
        self.logged += other.logged;
        self.in_anchor += other.in_anchor;
        self.reasons |= other.reasons;
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |count: u64| count * 100 / self.packets.max(1);
        write!(
            f,
            "{}% passed, {}% made a state, {}% used one, {}% changed, {}% answered, {}% logged, {}% decided in an anchor, {} reasons counted, rules replaced {} times, {} trials ended, the host changed {} times",
            percent(self.passed),
            percent(self.made_state),
            percent(self.by_state),
            percent(self.changed),
            percent(self.answered),
            percent(self.logged),
            percent(self.in_anchor),
            self.reasons.count_ones(),
            self.reloads,
            self.trials,
            self.host_changes
        )
    }
}

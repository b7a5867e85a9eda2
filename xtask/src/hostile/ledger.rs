//! Counts of an evaluator's results for each packet, compared with the evaluator's counters.

use std::collections::BTreeMap;

use anyhow::ensure;
use skipstep_model::{Decision, Fate, Packet, Verdict};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Action, Reason, RuleId, Ruleset};
use skipstep_scenario::Engine;

/// An evaluator, and the expected values of its counters.
pub struct Ledger<'e> {
    engine: &'e mut dyn Engine,
    /// Numbers of passed and of blocked packets.
    interfaces: [u64; 2],
    reasons: [u64; Reason::COUNT],
    /// Numbers of passed and of blocked packets by rule; `None` is the default rule.
    rules: BTreeMap<Option<(String, u32)>, [u64; 2]>,
    states: BTreeMap<u64, u64>,
    /// Packets dropped without a counted reason, a log record or a state. There must be none.
    silent: Vec<String>,
}

impl<'e> Ledger<'e> {
    /// Starts with counters of zero. The evaluator must have counted no packet.
    pub fn new(engine: &'e mut dyn Engine) -> Self {
        Ledger {
            engine,
            interfaces: [0, 0],
            reasons: [0; Reason::COUNT],
            rules: BTreeMap::new(),
            states: BTreeMap::new(),
            silent: Vec::new(),
        }
    }

    /// Plays a packet, and adds its results to the counts.
    pub fn play(&mut self, packet: &Packet) -> Fate {
        let fate = self.engine.packet(packet);
        // a fragment that waits is counted when its datagram is complete
        if fate.verdict == Verdict::Consumed && fate.decision == Decision::None {
            return fate;
        }
        for reason in &fate.counted {
            self.reasons[*reason as usize] += 1;
        }
        self.interfaces[usize::from(fate.verdict != Verdict::Pass)] += 1;
        // a packet that cannot be translated to the other family was counted as passed before that
        // showed
        let given_up = fate.state.is_some() && fate.counted.contains(&Reason::Translate);
        let goes_on = fate.verdict == Verdict::Pass || !fate.forwarded.is_empty() || given_up;
        if goes_on && let Some(state) = fate.state {
            *self.states.entry(state).or_default() += 1;
        }
        let told = !fate.counted.is_empty() || !fate.log.is_empty() || fate.state.is_some();
        if fate.verdict == Verdict::Drop && !told {
            self.silent.push(skipstep_wire::print::line(&packet.bytes));
        }
        let rule = match &fate.decision {
            Decision::Rule(rule) => Some(Some((rule.anchor.clone(), rule.number))),
            Decision::Default => Some(None),
            _ => None,
        };
        if let Some(rule) = rule {
            self.rules.entry(rule).or_default()[usize::from(!goes_on)] += 1;
        }
        fate
    }

    /// Compares the counts with the evaluator's counters.
    ///
    /// # Errors
    /// Fails with the first difference.
    pub fn close(self, ruleset: &Ruleset, host: &Host) -> anyhow::Result<()> {
        ensure!(self.silent.is_empty(), "dropped for no reason: {:?}", self.silent);
        let mut interfaces = [0, 0];
        for interface in &host.interfaces {
            let counters = self.engine.interface_counters(&interface.name);
            for counts in counters.packets.as_flattened() {
                interfaces[0] += counts[0];
                interfaces[1] += counts[1];
            }
        }
        let expected = self.interfaces;
        ensure!(interfaces == expected, "interfaces: {interfaces:?}, expected {expected:?}");
        let reasons = self.engine.status().reasons;
        for reason in Reason::ALL {
            let (found, expected) = (reasons[reason as usize], self.reasons[reason as usize]);
            ensure!(found == expected, "{}: {found}, expected {expected}", reason.name());
        }
        let rules = ruleset.rules.iter().map(|rule| (Some(rule.number), rule.action));
        for (number, action) in rules.chain([(None, Action::Pass)]) {
            let id = number.map(RuleId::from);
            let key = number.map(|number| (String::new(), number));
            let [passed, blocked] = self.rules.get(&key).copied().unwrap_or_default();
            let expected = if action == Action::Block { blocked } else { passed };
            let [inbound, outbound] = self.engine.rule_counters(id.as_ref()).packets;
            let found = inbound + outbound;
            ensure!(found == expected, "rule {number:?}: {found}, expected {expected}");
        }
        for state in self.engine.states() {
            let expected = self.states.get(&state.id).copied().unwrap_or_default();
            let found = state.packets[0] + state.packets[1];
            ensure!(found == expected, "state {}: {found}, expected {expected}", state.id);
        }
        let states = self.engine.states().len() as u64;
        ensure!(states == self.engine.status().states, "states: {states}");
        Ok(())
    }
}

//! Loads on trial: the rule set before such a load is in force again after some time, unless the
//! load is confirmed.

use std::sync::Arc;

use skipstep_ruleset::{Next, Ruleset, Table, TableName};

use crate::Firewall;
use crate::key::StateId;
use crate::rulebook::Rulebook;
use crate::state::State;

/// The time of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTime {
    /// Seconds until the rule set before the load is in force again.
    pub seconds: u32,
    /// True if the states of rules that only the load has stay then.
    pub keeps_states: bool,
}

/// The rule set before a load on trial.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// Second when the rule set is in force again.
    until: u32,
    keeps_states: bool,
    rulebook: Arc<Rulebook>,
    ruleset: Arc<Ruleset>,
    /// Tables whose contents both rule sets share.
    shared: Vec<TableName>,
}

impl Firewall {
    /// Commits other rules as [`Firewall::replace_rules`] does, on trial. A second load on trial
    /// keeps the rule set before the first one.
    ///
    /// # Errors
    /// Fails, and changes nothing, as [`Firewall::replace_rules`] does.
    pub fn try_rules(&mut self, next: &Next, time: TrialTime) -> Result<(), String> {
        let (rulebook, ruleset) = (Arc::clone(&self.rulebook), Arc::clone(&self.ruleset));
        self.replace_rules(next)?;
        let before = self.trial.take();
        let (rulebook, ruleset) = before
            .as_ref()
            .map_or((rulebook, ruleset), |trial| (trial.rulebook.clone(), trial.ruleset.clone()));
        let is_shared = |(path, table): &(&str, &Table)| {
            let now = self.ruleset.tables_of(path).iter().find(|now| now.name == table.name);
            let known = |name| before.as_ref().is_none_or(|trial| trial.shared.contains(&name));
            now.is_some_and(|now| now.entries == table.entries)
                && known(TableName::new(path, &table.name))
        };
        let shared = ruleset.all_tables().filter(is_shared);
        let shared = shared.map(|(path, table)| TableName::new(path, &table.name)).collect();
        let (until, keeps_states) = (self.world.now + time.seconds, time.keeps_states);
        self.trial = Some(Trial { until, keeps_states, rulebook, ruleset, shared });
        Ok(())
    }

    /// Confirms the load on trial. Returns true if there was one.
    pub fn confirm_rules(&mut self) -> bool {
        self.trial.take().is_some()
    }

    /// Ends the trial at once. Returns the ids of the states that end, or `None` without a trial.
    pub fn revert_rules(&mut self) -> Option<Vec<StateId>> {
        let trial = self.trial.take()?;
        Some(self.go_back(trial))
    }

    /// Ends the trial if its time is over. Returns the ids of the states that end.
    pub(crate) fn go_back_if_due(&mut self) -> Vec<StateId> {
        let now = self.world.now;
        let trial = self.trial.take_if(|trial| trial.until <= now);
        trial.map_or_else(Vec::new, |trial| self.go_back(trial))
    }

    fn go_back(&mut self, trial: Trial) -> Vec<StateId> {
        let mut ruleset = Arc::unwrap_or_clone(trial.ruleset);
        for name in &trial.shared {
            let now = self.ruleset.tables_of(&name.anchor).iter();
            let now = now.clone().find(|table| table.name == name.name).cloned();
            let tables = match name.anchor.as_str() {
                "" => &mut ruleset.tables,
                path => &mut ruleset.anchors.entry(path.to_owned()).or_default().tables,
            };
            let kept = tables.iter_mut().find(|table| table.name == name.name);
            if let Some((kept, now)) = kept.zip(now) {
                kept.entries = now.entries;
            }
        }
        let ended: Vec<State> = self
            .states
            .iter()
            .filter(|state| !trial.keeps_states && is_new(&self.rulebook, &trial.rulebook, state))
            .cloned()
            .collect();
        for state in &ended {
            self.remove(state);
        }
        Arc::make_mut(&mut self.rulebook).go_back_to(&trial.rulebook);
        self.counters.make_room(self.rulebook.len());
        let (limit, timeout) = Self::fragment_limits(&ruleset.options);
        self.fragments.configure(limit, timeout);
        self.forget_tables(&ruleset);
        self.ruleset = Arc::new(ruleset);
        ended.iter().filter(|state| !state.unlinked).map(|state| state.id).collect()
    }
}

/// True if only the load on trial has the rule of a state.
fn is_new(now: &Rulebook, before: &Rulebook, state: &State) -> bool {
    let rule = now.at(state.rule);
    state.rule >= before.len() && !before.in_force().any(|known| known.has_same_contents(rule))
}

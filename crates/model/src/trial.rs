//! Loads on trial: the rule set before such a load is in force again after some time, unless the
//! load is confirmed.

use std::sync::Arc;

use skipstep_ruleset::table::has_same_entries;
use skipstep_ruleset::{Next, Ruleset, Table, TableName};

use crate::Firewall;
use crate::key::StateId;
use crate::reload::table;
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
    pub ruleset: Arc<Ruleset>,
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
        let before = self.trial.clone();
        if before.is_none() {
            self.counters.begin_trial(&self.ruleset);
        }
        self.trial = Some(match &before {
            // commands may have changed shared tables since
            Some(trial) => Trial { ruleset: Arc::new(self.before(trial)), ..trial.clone() },
            None => Trial {
                until: 0,
                keeps_states: false,
                rulebook: Arc::clone(&self.rulebook),
                ruleset: Arc::clone(&self.ruleset),
                shared: self.ruleset.all_tables().map(|(path, t)| name_of(path, t)).collect(),
            },
        });
        if let Err(reason) = self.replace_rules(next) {
            if before.is_none() {
                self.counters.end_trial();
            }
            self.trial = before;
            return Err(reason);
        }
        let (now, rules) = (self.world.now, &self.ruleset);
        if let Some(trial) = &mut self.trial {
            (trial.until, trial.keeps_states) = (now + time.seconds, time.keeps_states);
            let kept = &trial.ruleset;
            trial.shared.retain(|name| {
                let both = table(rules, name).zip(table(kept, name));
                both.is_some_and(|(now, kept)| has_same_entries(&now.entries, &kept.entries))
            });
        }
        Ok(())
    }

    /// Confirms the load on trial. Returns true if there was one.
    pub fn confirm_rules(&mut self) -> bool {
        let Some(trial) = self.trial.take() else { return false };
        let (before, now) = (self.before(&trial), Arc::clone(&self.ruleset));
        self.counters.end_trial();
        self.forget_tables(&before, &now);
        true
    }

    /// Ends the trial at once, and removes the states that end with it or have expired. Returns
    /// their ids, or `None` without a trial.
    pub fn revert_rules(&mut self) -> Option<Vec<StateId>> {
        let trial = self.trial.take()?;
        let ended = self.go_back(trial);
        Some(self.expire(&ended))
    }

    /// Ends the trial if its time is over. Returns the ids of the states that end with it.
    pub(crate) fn go_back_if_due(&mut self) -> Vec<StateId> {
        let now = self.world.now;
        let trial = self.trial.take_if(|trial| trial.until <= now);
        trial.map_or_else(Vec::new, |trial| self.go_back(trial))
    }

    /// Returns the rule set before a trial, with the present contents of the tables that both rule
    /// sets share.
    fn before(&self, trial: &Trial) -> Ruleset {
        let mut ruleset = (*trial.ruleset).clone();
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
        ruleset
    }

    /// Puts the rules before the trial in force. Returns the ids of the states that end.
    fn go_back(&mut self, trial: Trial) -> Vec<StateId> {
        let ruleset = self.before(&trial);
        let ends =
            |state: &&State| !trial.keeps_states && is_new(&self.rulebook, &trial.rulebook, state);
        let ended = self.states.iter().filter(ends).map(|state| state.id).collect();
        Arc::make_mut(&mut self.rulebook).go_back_to(&trial.rulebook);
        self.counters.make_room(self.rulebook.len());
        let (limit, timeout) = Self::fragment_limits(&ruleset.options);
        self.fragments.configure(limit, timeout);
        self.replace_limiters(&ruleset, false);
        self.counters.end_trial();
        let loser = std::mem::replace(&mut self.ruleset, Arc::new(ruleset.clone()));
        self.forget_tables(&loser, &ruleset);
        ended
    }
}

fn name_of(path: &str, table: &Table) -> TableName {
    TableName::new(path, &table.name)
}

/// True if only the load on trial has the rule of a state.
fn is_new(now: &Rulebook, before: &Rulebook, state: &State) -> bool {
    let rule = now.at(state.rule);
    state.rule >= before.len() && !before.in_force().any(|known| known.has_same_contents(rule))
}

//! Loads of rules while packets flow. A load replaces all rules by others or by nearly the same, or
//! replaces or flushes those of an anchor.

use fastrand::Rng;
use skipstep_model::TrialTime;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{RulesChange, Ruleset};
use skipstep_scenario::case::{Action, Case, Rules};

use super::generate::{is_comparable, without_mistakes};
use super::pool::{Pool, one_in, pick};
use super::rules;

/// One of this many cases has loads of rules.
const CASES: u32 = 3;
/// Average number of steps between two loads in such a case.
const STEPS: u32 = 80;

/// Draws the loads of one case.
pub struct Reloads {
    /// True if the case has loads.
    any: bool,
    /// Draws a whole text of rules.
    text: fn(&mut Rng, &mut Pool) -> String,
    /// The text of the main rule set at its last load.
    main: String,
    files: Vec<(String, String)>,
}

impl Reloads {
    pub fn new(rng: &mut Rng, case: &Case, text: fn(&mut Rng, &mut Pool) -> String) -> Self {
        let (main, files) = (case.rules.text.clone(), case.files.clone());
        Reloads { any: one_in(rng, CASES), text, main, files }
    }

    /// Draws the beginning of a trial for some steps, or the end of one. `in_force` are the present
    /// rules. The model removes limiters when a load on trial does, and the data plane when the
    /// trial ends, so rules with limiters are not followed by a trial.
    pub fn trial(&self, rng: &mut Rng, in_force: &Ruleset, is_on_trial: bool) -> Option<Action> {
        if !self.any || !in_force.limiters.is_empty() || !one_in(rng, STEPS) {
            return None;
        }
        if !is_on_trial || one_in(rng, 3) {
            let (seconds, keeps_states) = (rng.u32(1..60), one_in(rng, 4));
            return Some(Action::Trial(TrialTime { seconds, keeps_states }));
        }
        Some(if one_in(rng, 2) { Action::Confirm } else { Action::Revert })
    }

    /// Draws a load for some steps. `in_force` are the present rules.
    pub fn step(
        &self,
        rng: &mut Rng,
        pool: &mut Pool,
        in_force: &Ruleset,
        host: &Host,
    ) -> Option<Action> {
        if !self.any || !one_in(rng, STEPS) {
            return None;
        }
        let anchors = anchors(in_force);
        match rng.u8(..8) {
            0 if one_in(rng, 3) => Some(Action::Flush(String::new())),
            0 | 1 if !anchors.is_empty() => Some(Action::Flush(pick(rng, &anchors))),
            2..5 if !anchors.is_empty() => {
                let path = pick(rng, &anchors);
                let text = anchor(rng, pool);
                self.load(path, text, in_force, host)
            }
            5 | 6 => {
                let text = self.altered(rng, pool);
                self.load(String::new(), text, in_force, host)
            }
            _ => {
                pool.tables.clear();
                pool.limiters.clear();
                let text = (self.text)(rng, pool);
                pool.files.truncate(self.files.len());
                self.load(String::new(), text, in_force, host)
            }
        }
    }

    /// Records a load or flush that was played.
    pub fn done(&mut self, action: &Action) {
        match action {
            Action::Load(path, rules) if path.is_empty() => self.main.clone_from(&rules.text),
            Action::Flush(path) if path.is_empty() => self.main.clear(),
            _ => {}
        }
    }

    fn load(&self, path: String, text: String, in_force: &Ruleset, host: &Host) -> Option<Action> {
        let rules = Rules { text, lines: Vec::new() };
        let mut case = Case { rules, files: self.files.clone(), ..Case::default() };
        let ruleset = without_mistakes(&mut case, &path, host)?;
        let change = RulesChange::Load(path.clone(), Box::new(ruleset));
        let fits = is_comparable(&change.next(in_force).ruleset, host);
        (fits && case.files == self.files).then_some(Action::Load(path, case.rules))
    }

    /// Returns the main rule set with some lines removed and some rules added.
    fn altered(&self, rng: &mut Rng, pool: &mut Pool) -> String {
        let mut lines = Vec::new();
        for line in self.main.lines() {
            let is_brace = line.ends_with('{') || line == "}";
            if is_brace || !one_in(rng, 8) {
                lines.push(line.to_owned());
            }
            if lines.last().is_some_and(|line| rules::is_filter_rule(line)) && one_in(rng, 10) {
                lines.push(rules::filter_rule(rng, pool));
            }
        }
        lines.join("\n") + "\n"
    }
}

/// Returns the anchors that rules call, and some anchors below wildcards.
fn anchors(ruleset: &Ruleset) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for (_, rule) in ruleset.every_rule() {
        let Some(call) = rule.anchor.as_ref().filter(|call| !call.path.contains('_')) else {
            continue;
        };
        let below = ["x", "a1"].map(|name| format!("{}/{name}", call.path));
        paths.push(call.path.clone());
        paths.extend(below.into_iter().filter(|_| call.wildcard));
    }
    paths.sort();
    paths.dedup();
    paths.retain(|path| !path.is_empty());
    paths
}

/// Draws the text of an anchor.
fn anchor(rng: &mut Rng, pool: &mut Pool) -> String {
    let mut lines = Vec::new();
    if one_in(rng, 3) {
        let known = pool.tables.first().cloned().unwrap_or_else(|| "t0".to_owned());
        lines.push(rules::table_called(rng, pool, &known));
    }
    lines.extend((0..rng.usize(..5)).map(|_| rules::filter_rule(rng, pool)));
    lines.join("\n") + "\n"
}

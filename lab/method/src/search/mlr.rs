//! MLRsearch (RFC 9971): a search for several goals at once, with short trials before long ones.
//!
//! A goal gives the length of trials, and the share of them that may lose more than a given ratio.
//! All trials at a load together make the load a lower bound (good enough for the goal), an upper
//! bound (not good enough), or undecided. [`Goal::classify`] is the arithmetic of the RFC's
//! appendix A. The result of a goal is its relevant upper bound, which is the smallest, and its
//! relevant lower bound, which is the largest below that. The third part is the conditional
//! throughput at the lower bound.
//!
//! The RFC leaves the controller open. This controller goes through the goals, and for each goal
//! through trial durations from the shortest to the goal's own. It repeats trials at a load until
//! the load is classified, and then selects the next load. While a bound is missing, it moves
//! outwards in growing steps. With both bounds, it takes their geometric mean, until the bounds are
//! as close as the goal wants. Every trial counts for every goal.

use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// A search goal of RFC 9971.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// The name in reports.
    pub name: String,
    /// Goal Final Trial Duration: seconds of a full-length trial.
    pub final_duration: f64,
    /// Goal Duration Sum: seconds of full-length trials that are enough for a decision.
    pub duration_sum: f64,
    /// Goal Loss Ratio: a trial with a larger loss is a high-loss trial.
    pub loss_ratio: f64,
    /// Goal Exceed Ratio: the largest share of the time that high-loss trials may take.
    pub exceed_ratio: f64,
    /// Goal Width: the largest distance of the bounds, as a share of the upper one.
    pub width: f64,
    /// Goal Initial Trial Duration: seconds of the first trials.
    pub initial_duration: f64,
}

/// The classification of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Good enough for the goal.
    Lower,
    /// Not good enough for the goal.
    Upper,
    /// Not decided yet.
    Undecided,
}

/// A trial as the classification sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Length of the trial in seconds.
    pub duration: f64,
    /// Share of the frames that was lost, from 0 to 1.
    pub loss: f64,
}

impl Goal {
    /// Returns the goal of RFC 2544: 60 s without loss.
    pub fn rfc2544() -> Goal {
        Goal::new("RFC 2544", 60.0, 60.0, 0.0, 0.0)
    }

    /// Returns the goal of ETSI GS NFV-TST 009: one of two trials of 60 s may have losses.
    pub fn tst009() -> Goal {
        Goal::new("TST 009", 60.0, 120.0, 0.0, 0.5)
    }

    fn new(
        name: &str,
        final_duration: f64,
        duration_sum: f64,
        loss_ratio: f64,
        exceed_ratio: f64,
    ) -> Goal {
        Goal {
            name: name.to_string(),
            final_duration,
            duration_sum,
            loss_ratio,
            exceed_ratio,
            width: 0.005,
            initial_duration: 1.0,
        }
    }

    /// Classifies a load by its trials (appendix A of the RFC).
    pub fn classify(&self, trials: &[Measured]) -> Class {
        let sum = |full_length: bool, high_loss: bool| -> f64 {
            let wanted = |trial: &&Measured| {
                (trial.duration >= self.final_duration) == full_length
                    && (trial.loss > self.loss_ratio) == high_loss
            };
            trials.iter().filter(wanted).map(|trial| trial.duration).sum()
        };
        let full_low = sum(true, false);
        let balancing = sum(false, false) * self.exceed_ratio / (1.0 - self.exceed_ratio);
        let high = sum(true, true) + (sum(false, true) - balancing).max(0.0);
        let whole = (full_low + high).max(self.duration_sum);
        let allowed = whole * self.exceed_ratio;
        let pessimistic_is_lower = whole - full_low <= allowed;
        let optimistic_is_lower = high <= allowed;
        match (pessimistic_is_lower, optimistic_is_lower) {
            (true, true) => Class::Lower,
            (false, false) => Class::Upper,
            _ => Class::Undecided,
        }
    }

    /// Returns the conditional throughput of a load (appendix B of the RFC). This is the rate
    /// forwarded in the trial at the quantile of the goal's exceed ratio.
    pub fn conditional_throughput(&self, load: f64, trials: &[Measured]) -> f64 {
        let mut full: Vec<&Measured> =
            trials.iter().filter(|trial| trial.duration >= self.final_duration).collect();
        full.sort_by(|one, other| one.loss.total_cmp(&other.loss));
        let sum: f64 = full.iter().map(|trial| trial.duration).sum();
        let mut remaining = sum.max(self.duration_sum) * (1.0 - self.exceed_ratio);
        let mut loss = None;
        for trial in full {
            if loss.is_some() && remaining <= 0.0 {
                break;
            }
            loss = Some(trial.loss);
            remaining -= trial.duration;
        }
        // Time that was not measured counts as lost.
        let loss = if remaining > 0.0 { 1.0 } else { loss.unwrap_or(1.0) };
        load * (1.0 - loss)
    }

    /// Returns the goal for shorter trials, with proportionally less total time.
    fn shortened(&self, duration: f64) -> Goal {
        let share = duration / self.final_duration;
        Goal { final_duration: duration, duration_sum: self.duration_sum * share, ..self.clone() }
    }
}

/// The result of a goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// The largest load that is good enough. None if even the smallest load is not.
    pub lower: Option<f64>,
    /// The smallest load that is not good enough. None if even the largest load is.
    pub upper: Option<f64>,
    /// The rate forwarded at the lower bound in the deciding trial, in frames a second.
    pub conditional_throughput: Option<f64>,
}

/// The limits of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Least frames a second.
    pub least: f64,
    /// Most frames a second.
    pub most: f64,
}

/// Searches for all goals.
///
/// # Errors
/// Fails if a trial fails, if the search has too many trials, or if no frame came through at all.
pub fn search(
    runner: &mut TrialRunner,
    range: Range,
    goals: &[Goal],
) -> Result<Vec<GoalResult>, Failure> {
    let mut search = Search { runner, range, loads: Vec::new() };
    for goal in goals {
        for duration in durations(goal) {
            search.narrow(&goal.shortened(duration), duration)?;
        }
    }
    if search.runner.records.iter().all(|record| record.received == 0) {
        return Err(Failure::Nothing(range.least));
    }
    Ok(goals.iter().map(|goal| search.result(goal)).collect())
}

/// Returns the trial durations, from about the first to the final one, each four times the
/// previous.
fn durations(goal: &Goal) -> Vec<f64> {
    let mut durations = vec![goal.final_duration];
    let mut duration = goal.final_duration / 4.0;
    while duration >= goal.initial_duration {
        durations.insert(0, duration);
        duration /= 4.0;
    }
    durations
}

struct Search<'b, 'm> {
    runner: &'b mut TrialRunner<'m>,
    range: Range,
    /// Loads in ascending order, with their trials.
    loads: Vec<(f64, Vec<Measured>)>,
}

impl Search<'_, '_> {
    /// Tries loads until both bounds of a goal are known and close enough.
    fn narrow(&mut self, goal: &Goal, duration: f64) -> Result<(), Failure> {
        let mut steps = 0;
        let mut next = self.first(duration)?;
        loop {
            self.decide(goal, next, duration)?;
            let (lower, upper) = self.bounds(goal);
            next = match (lower, upper) {
                (Some(lower), Some(upper)) if self.close(goal, lower, upper) => return Ok(()),
                (Some(lower), Some(upper)) => whole((lower * upper).sqrt()),
                (Some(lower), None) if lower >= self.range.most => return Ok(()),
                (Some(lower), None) => {
                    steps += 1;
                    // An upper bound of shorter trials may be nearer than the step.
                    let outwards = lower / (1.0 - stretch(goal, steps));
                    self.known_above(lower)
                        .unwrap_or(f64::MAX)
                        .min(whole(outwards))
                        .min(self.range.most)
                }
                (None, Some(upper)) if upper <= self.range.least => return Ok(()),
                (None, Some(upper)) => {
                    steps += 1;
                    whole(upper * (1.0 - stretch(goal, steps))).max(self.range.least)
                }
                // Cannot happen: the last load has just been classified as one of the two.
                (None, None) => return Ok(()),
            };
        }
    }

    /// Returns the first load of a duration: a load that passed shorter trials, or else the rate
    /// that is forwarded at the highest load.
    fn first(&mut self, duration: f64) -> Result<f64, Failure> {
        if let Some((load, _)) = self.loads.iter().rev().find(|(_, trials)| {
            trials.iter().any(|trial| trial.loss == 0.0)
                && trials.iter().all(|trial| trial.loss < 0.01)
        }) {
            return Ok(*load);
        }
        let loss = self.measure(self.range.most, duration)?;
        Ok(whole(self.range.most * (1.0 - loss)).max(self.range.least))
    }

    /// Repeats trials at a load until the goal classifies it. The latest moment is when the
    /// full-length trials add up to the goal's duration sum.
    fn decide(&mut self, goal: &Goal, load: f64, duration: f64) -> Result<(), Failure> {
        while goal.classify(self.trials(load)) == Class::Undecided {
            self.measure(load, duration)?;
        }
        Ok(())
    }

    fn measure(&mut self, load: f64, duration: f64) -> Result<f64, Failure> {
        let loss = self.runner.steady(load, duration)?.0.loss;
        let measured = Measured { duration, loss };
        match self.loads.binary_search_by(|(other, _)| other.total_cmp(&load)) {
            Ok(index) => self.loads[index].1.push(measured),
            Err(index) => self.loads.insert(index, (load, vec![measured])),
        }
        Ok(loss)
    }

    fn trials(&self, load: f64) -> &[Measured] {
        let index = self.loads.binary_search_by(|(other, _)| other.total_cmp(&load));
        index.map_or(&[], |index| &self.loads[index].1)
    }

    /// Returns the relevant lower and upper bound.
    fn bounds(&self, goal: &Goal) -> (Option<f64>, Option<f64>) {
        let is = |class| move |(_, trials): &&(f64, Vec<Measured>)| goal.classify(trials) == class;
        let upper = self.loads.iter().find(is(Class::Upper)).map(|(load, _)| *load);
        let below = |(load, _): &&(f64, Vec<Measured>)| upper.is_none_or(|upper| *load < upper);
        let lower = self.loads.iter().filter(below).rfind(is(Class::Lower)).map(|(load, _)| *load);
        (lower, upper)
    }

    /// Returns the smallest tried load above another.
    fn known_above(&self, load: f64) -> Option<f64> {
        self.loads.iter().map(|(other, _)| *other).find(|other| *other > load)
    }

    fn close(&self, goal: &Goal, lower: f64, upper: f64) -> bool {
        upper - lower <= goal.width * upper || upper - lower <= 1.0
    }

    fn result(&self, goal: &Goal) -> GoalResult {
        let (lower, upper) = self.bounds(goal);
        let throughput = lower.map(|load| goal.conditional_throughput(load, self.trials(load)));
        GoalResult { goal: goal.clone(), lower, upper, conditional_throughput: throughput }
    }
}

/// Returns the width of the next step outwards, as a share of the load. The width doubles each
/// time.
fn stretch(goal: &Goal, steps: i32) -> f64 {
    (goal.width * 2_f64.powi(steps - 1)).min(0.75)
}

/// Rounds to whole frames a second, and at least 1.
fn whole(load: f64) -> f64 {
    load.round().max(1.0)
}

/// Returns the deviations from the RFC.
pub fn conformance(setting: &Setting, goals: &[Goal]) -> Conformance {
    let has = |wanted: &Goal| {
        goals.iter().any(|goal| {
            goal.final_duration >= wanted.final_duration
                && goal.duration_sum >= wanted.duration_sum
                && goal.loss_ratio <= wanted.loss_ratio
                && goal.exceed_ratio <= wanted.exceed_ratio
        })
    };
    Conformance::but_for(vec![
        setting.missing_wire(),
        (!has(&Goal::rfc2544()))
            .then_some("no goal is as strict as that of RFC 2544 with 60 s trials"),
        (!has(&Goal::tst009()))
            .then_some("no goal is as strict as that of TST 009 with 60 s trials"),
        setting.missing_waits(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of the RFC: trials at one load, as four goals classify them at six times.
    /// The RFC's tables call the load a lower bound for the last goal at the last two times. The
    /// exceed ratios there are 42.9 % and 27.3 %, and 20 % are allowed. The RFC's code does not
    /// call it so, nor does this code.
    #[test]
    fn the_example_of_the_rfc() {
        let of = |final_duration, duration_sum, loss_ratio, exceed_ratio| {
            Goal::new("", final_duration, duration_sum, loss_ratio, exceed_ratio)
        };
        let goals = [
            Goal::rfc2544(),
            Goal::tst009(),
            of(1.0, 120.0, 0.005, 0.5),
            of(60.0, 60.0, 0.005, 0.2),
        ];
        let added = [
            (59, 1.0, 0.0),
            (1, 1.0, 0.01),
            (59, 1.0, 0.01),
            (1, 1.0, 0.0),
            (1, 60.0, 0.001),
            (1, 60.0, 0.0),
        ];
        use Class::{Lower as L, Undecided as U, Upper as H};
        let expected =
            [[U, U, U, U], [H, U, U, U], [H, U, U, H], [H, U, L, H], [H, U, L, H], [H, L, L, H]];
        let mut trials = Vec::new();
        for ((count, duration, loss), expected) in added.into_iter().zip(expected) {
            trials.extend(vec![Measured { duration, loss }; count]);
            assert_eq!(goals.each_ref().map(|goal| goal.classify(&trials)), expected);
        }
        assert_eq!(goals[1].conditional_throughput(1e6, &trials), 1e6);
        assert_eq!(goals[2].conditional_throughput(1e6, &trials), 1e6);
        // The goal needs 80 % of 120 s. The trials of 60 s without loss exceed that only together
        // with the next trial.
        assert!((goals[3].conditional_throughput(1e6, &trials) - 999_000.0).abs() < 1e-6);
    }

    #[test]
    fn without_trials_a_load_is_undecided() {
        assert_eq!(Goal::rfc2544().classify(&[]), Class::Undecided);
        assert_eq!(Goal::tst009().conditional_throughput(1e6, &[]), 0.0);
    }

    #[test]
    fn durations_grow_to_the_goals() {
        assert_eq!(durations(&Goal::rfc2544()), [3.75, 15.0, 60.0]);
        let short = Goal { final_duration: 1.0, ..Goal::rfc2544() };
        assert_eq!(durations(&short), [1.0]);
    }
}

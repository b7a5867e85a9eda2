//! MLRsearch, RFC 9971: several goals in one search, with short trials before long ones.
//!
//! A goal says how long trials are and how many of them may lose more than how much. All trials at
//! a load together make it a lower bound (good enough for the goal), an upper bound (not good
//! enough), or leave it undecided; appendix A of the RFC has the arithmetic, [`Goal::classify`] is
//! that. The result of a goal is its relevant upper bound, the smallest there is; its relevant
//! lower bound, the largest below that; and the conditional throughput there.
//!
//! The controller (which the RFC leaves open) goes through the goals one after the other, and for
//! each through trial durations from the shortest to the goal's own. A load is tried until it is
//! classified, then the next one is: outwards in growing steps as long as a bound is missing, then
//! between the bounds, in the middle of their logarithms, until they are as close as the goal
//! wants. Every trial counts for every goal.

use serde::Serialize;

use super::{Bench, Conformance, Failure, Setting};

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goal {
    /// For people.
    pub name: String,
    /// Goal Final Trial Duration: seconds of a full-length trial.
    pub final_duration: f64,
    /// Goal Duration Sum: seconds of full-length trials that decide.
    pub duration_sum: f64,
    /// Goal Loss Ratio: a trial that loses more is a high-loss one.
    pub loss_ratio: f64,
    /// Goal Exceed Ratio: how much of the time may be of high-loss trials.
    pub exceed_ratio: f64,
    /// Goal Width: how far apart the bounds may be, as a share of the upper one.
    pub width: f64,
    /// Goal Initial Trial Duration: seconds of the first trials.
    pub initial_duration: f64,
}

/// What the trials at a load make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Good enough.
    Lower,
    /// Not good enough.
    Upper,
    /// Not known yet.
    Undecided,
}

/// A trial as a goal sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Seconds.
    pub duration: f64,
    /// Share that was lost.
    pub loss: f64,
}

impl Goal {
    /// What RFC 2544 asks for.
    pub fn rfc2544() -> Goal {
        Goal::new("RFC 2544", 60.0, 60.0, 0.0, 0.0)
    }

    /// What ETSI GS NFV-TST 009 asks for: one of two trials may lose something.
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

    /// Appendix A of the RFC.
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

    /// Appendix B: what is forwarded at a load in the trial at the quantile that the goal allows to
    /// exceed.
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

    /// The same goal with shorter trials, and so many seconds less of them.
    fn shortened(&self, duration: f64) -> Goal {
        let share = duration / self.final_duration;
        Goal { final_duration: duration, duration_sum: self.duration_sum * share, ..self.clone() }
    }
}

/// What came of a goal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// The largest load that is good enough; none if even the least is not.
    pub lower: Option<f64>,
    /// The smallest load that is not; none if the most that is offered is good enough.
    pub upper: Option<f64>,
    /// What is forwarded at the lower bound in the trial that decides.
    pub conditional_throughput: Option<f64>,
}

/// Loads between which is searched.
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
/// A trial failed, or there is no end to it.
pub fn search(bench: &mut Bench, range: Range, goals: &[Goal]) -> Result<Vec<GoalResult>, Failure> {
    let mut search = Search { bench, range, loads: Vec::new() };
    for goal in goals {
        for duration in durations(goal) {
            search.narrow(&goal.shortened(duration), duration)?;
        }
    }
    if search.bench.records.iter().all(|record| record.received == 0) {
        return Err(Failure::Nothing(range.least));
    }
    Ok(goals.iter().map(|goal| search.result(goal)).collect())
}

/// From the first to the final duration in steps of about four.
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
    bench: &'b mut Bench<'m>,
    range: Range,
    /// Loads, ascending, with their trials.
    loads: Vec<(f64, Vec<Measured>)>,
}

impl Search<'_, '_> {
    /// Tries loads until the bounds of a goal are known and close.
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
                    // A shorter trial's upper bound may do, if it lies in the way.
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
                // What was tried has just been classified: one of the two is known.
                (None, None) => return Ok(()),
            };
        }
    }

    /// The load to begin with: a lower bound of the duration before, or what comes of the most.
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

    /// Tries a load until the goal knows what to make of it. It does at the latest when the seconds
    /// of full-length trials are as many as the goal wants.
    fn decide(&mut self, goal: &Goal, load: f64, duration: f64) -> Result<(), Failure> {
        while goal.classify(self.trials(load)) == Class::Undecided {
            self.measure(load, duration)?;
        }
        Ok(())
    }

    fn measure(&mut self, load: f64, duration: f64) -> Result<f64, Failure> {
        let loss = self.bench.steady(load, duration)?.0.loss;
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

    /// Relevant lower and upper bound.
    fn bounds(&self, goal: &Goal) -> (Option<f64>, Option<f64>) {
        let is = |class| move |(_, trials): &&(f64, Vec<Measured>)| goal.classify(trials) == class;
        let upper = self.loads.iter().find(is(Class::Upper)).map(|(load, _)| *load);
        let below = |(load, _): &&(f64, Vec<Measured>)| upper.is_none_or(|upper| *load < upper);
        let lower = self.loads.iter().filter(below).rfind(is(Class::Lower)).map(|(load, _)| *load);
        (lower, upper)
    }

    /// The smallest load above another that was tried.
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

/// How far the next step outwards goes, as a share: twice as far each time.
fn stretch(goal: &Goal, steps: i32) -> f64 {
    (goal.width * 2_f64.powi(steps - 1)).min(0.75)
}

/// A number of frames a second without a fraction.
fn whole(load: f64) -> f64 {
    load.round().max(1.0)
}

/// What is missing to claim the RFC.
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

    /// The example of the RFC: trials at one load, and what four goals make of them at six times.
    /// Its tables call the load a lower bound for the last goal at the last two times, with exceed
    /// ratios of 42.9 % and 27.3 % where 20 % may be; its code does not, and neither does this.
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
        // The 60 s without loss are more than the 80 % of 120 s that are asked for only with the
        // next.
        assert!((goals[3].conditional_throughput(1e6, &trials) - 999_000.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_measured_says_nothing() {
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

//! Rounds: each system has one trial in each, in an order that is drawn anew, so that what happens
//! to the machine meanwhile happens to all. A trial that was disturbed is done again, and every
//! repeat is written down.

use crate::interrupt::{Interrupt, Interrupted};
use crate::results::{Counts, Latency, Repeat, Sample};

/// A trial that was disturbed is repeated so often at most; then its value stands, and is called
/// doubtful.
const REPEATS: usize = 3;

/// What a trial gave.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Why it is not to be believed, if it is not.
    pub why: Option<String>,
    /// What became of the frames.
    pub counts: Option<Counts>,
    /// How long they took.
    pub latency: Option<Latency>,
}

/// A system that can be measured again and again.
pub trait Subject {
    /// What samples call it.
    fn id(&self) -> &str;

    /// Measures it once.
    ///
    /// # Errors
    /// It cannot be measured, or a signal came.
    fn trial(&mut self) -> anyhow::Result<Measured>;
}

/// Does `rounds` rounds. `after` gets each round's samples, and how many rounds are done.
///
/// # Errors
/// A signal came, or a system cannot be measured; rounds that were done are with `after`.
pub fn run(
    subjects: &mut [Box<dyn Subject + '_>],
    rounds: u32,
    seed: u64,
    interrupt: &Interrupt,
    mut after: impl FnMut(Vec<Sample>, u32) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for round in 0..rounds {
        random.shuffle(&mut order);
        let mut samples = Vec::with_capacity(order.len());
        for (position, &index) in order.iter().enumerate() {
            if interrupt.came() {
                after(samples, round)?;
                return Err(Interrupted.into());
            }
            samples.push(sample(&mut *subjects[index], round, position as u32)?);
        }
        after(samples, round + 1)?;
    }
    Ok(())
}

fn sample(subject: &mut dyn Subject, round: u32, position: u32) -> anyhow::Result<Sample> {
    let mut repeats = Vec::new();
    let measured = loop {
        let measured = subject.trial()?;
        match &measured.why {
            Some(why) if repeats.len() < REPEATS => {
                repeats.push(Repeat { value: measured.value, why: why.clone() });
            }
            _ => break measured,
        }
    };
    let Measured { value, why, counts, latency } = measured;
    let sample = Sample::new(round, position, subject.id(), value);
    Ok(Sample { repeats, doubtful: why, counts, latency, ..sample })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake {
        id: &'static str,
        disturbed: usize,
        trials: f64,
    }

    impl Subject for Fake {
        fn id(&self) -> &str {
            self.id
        }

        fn trial(&mut self) -> anyhow::Result<Measured> {
            self.trials += 1.0;
            let why = (self.trials <= self.disturbed as f64).then(|| "noise".to_owned());
            Ok(Measured { value: self.trials, why, counts: None, latency: None })
        }
    }

    fn measure(disturbed: usize, rounds: u32, seed: u64) -> Vec<Sample> {
        let fake =
            |id, disturbed| -> Box<dyn Subject> { Box::new(Fake { id, disturbed, trials: 0.0 }) };
        let mut subjects = [fake("a", disturbed), fake("b", 0), fake("c", 0)];
        let mut all = Vec::new();
        let interrupt = Interrupt::watch().unwrap();
        run(&mut subjects, rounds, seed, &interrupt, |samples, _| {
            all.extend(samples);
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn every_system_has_a_sample_in_every_round_in_an_order_that_changes() {
        let samples = measure(0, 20, 7);
        assert_eq!(samples.len(), 60);
        let order = |round: u32| -> Vec<&str> {
            let of_round = samples.iter().filter(|sample| sample.round == round);
            of_round.map(|sample| sample.system.as_str()).collect()
        };
        for round in 0..20 {
            let mut systems = order(round);
            systems.sort_unstable();
            assert_eq!(systems, ["a", "b", "c"]);
        }
        assert!((1..20).any(|round| order(round) != order(0)));
        assert_eq!(samples, measure(0, 20, 7), "the seed decides");
    }

    #[test]
    fn a_disturbed_trial_is_repeated_and_written_down() {
        let samples = measure(2, 1, 1);
        let sample = samples.iter().find(|sample| sample.system == "a").unwrap();
        assert_eq!((sample.value, sample.repeats.len()), (3.0, 2));
        assert_eq!(sample.doubtful, None);
        let samples = measure(9, 1, 1);
        let sample = samples.iter().find(|sample| sample.system == "a").unwrap();
        assert_eq!((sample.value, sample.repeats.len()), (4.0, 3));
        assert_eq!(sample.doubtful.as_deref(), Some("noise"));
    }
}

//! Rounds of trials: in each round every system has one trial, in a new random order, so
//! disturbances of the machine affect all systems alike. A disturbed trial is repeated, and every
//! repeat is recorded.

use fwlab_net::interrupt::{Interrupt, Interrupted};
use fwlab_results::{Counts, Latency, Repeat, Sample};

/// The most repeats of a disturbed trial. If the last repeat is disturbed too, its value counts,
/// and is marked doubtful.
const REPEATS: usize = 3;

/// The result of a trial.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The measured value, in the unit of the series.
    pub value: f64,
    /// The reason for which the value is doubtful. None if nothing disturbed the trial.
    pub doubt: Option<String>,
    /// The number of frames sent, received, lost and so on. None if the trial counted none.
    pub counts: Option<Counts>,
    /// The latencies of the frames. None if the trial measured none.
    pub latency: Option<Latency>,
}

/// A system that can be measured again and again.
pub trait Subject {
    /// Returns the id of the system in samples.
    fn id(&self) -> &str;

    /// Measures the system once.
    ///
    /// # Errors
    /// Fails if the system cannot be measured, or if a signal came.
    fn trial(&mut self) -> anyhow::Result<Measured>;
}

/// Measures all subjects in `rounds` rounds. Calls `after` with the samples of each round, and with
/// the number of complete rounds.
///
/// # Errors
/// Fails if a signal came, if a system cannot be measured, or if `after` fails. `after` has had the
/// samples of all complete rounds. After a signal between two trials, it gets those of the
/// incomplete round too.
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
        match &measured.doubt {
            Some(why) if repeats.len() < REPEATS => {
                repeats.push(Repeat { value: measured.value, why: why.clone() });
            }
            _ => break measured,
        }
    };
    let Measured { value, doubt: why, counts, latency } = measured;
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
            Ok(Measured { value: self.trials, doubt: why, counts: None, latency: None })
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

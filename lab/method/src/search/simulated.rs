//! A simulated device with known behaviour: for tests of searches, and for users who want to watch
//! a search.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_results::Latency;

use super::{Besides, Connections, Gap, Measurer, Order, Phase, Trial};

/// Number of frames that the device buffers when more arrive than it forwards.
const BUFFER: f64 = 1000.0;

/// Latency of an idle device in nanoseconds.
const QUICKEST: f64 = 10_000.0;

/// Seconds for which a reset device is away.
const AWAY: f64 = 0.25;

/// Seconds from the end of an overload to the last lost frame, as if queues took so long.
const RECOVERY: f64 = 0.125;

/// The forwarding behaviour of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curve {
    /// Forwards all frames up to this rate a second, and no more above.
    Knee(f64),
    /// Forwards all frames up to this rate a second. Above, the lost share grows linearly, up to
    /// all frames at ten times the rate.
    Slope(f64),
    /// A knee; but in one of five trials a thousandth of the frames is lost at any rate above a
    /// tenth of the knee.
    Noise(f64),
    /// Forwards no frames.
    Drop,
    /// Forwards each frame twice.
    Reflect,
    /// A knee at a million frames a second, until the device dies in the trial of this number.
    Die(usize),
}

impl FromStr for Curve {
    type Err = String;

    fn from_str(text: &str) -> Result<Curve, String> {
        let (name, number) = text.split_once(':').unwrap_or((text, ""));
        let number = match number {
            "" => None,
            _ => Some(number.parse::<f64>().ok().filter(|n| (1.0..=1e12).contains(n)).ok_or_else(
                || format!("{number} is not a number of frames a second, or of trials"),
            )?),
        };
        match (name, number) {
            ("knee", rate) => Ok(Curve::Knee(rate.unwrap_or(1e6))),
            ("slope", rate) => Ok(Curve::Slope(rate.unwrap_or(1e6))),
            ("noise", rate) => Ok(Curve::Noise(rate.unwrap_or(1e6))),
            ("drop", None) => Ok(Curve::Drop),
            ("reflect", None) => Ok(Curve::Reflect),
            ("die", trial) => Ok(Curve::Die(trial.unwrap_or(3.0) as usize)),
            _ => {
                Err("must be knee, slope or noise, each with an optional :RATE, drop, reflect, or \
                     die:TRIAL"
                    .to_string())
            }
        }
    }
}

/// Writes the curve as `--simulate` takes it.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Curve::Knee(rate) => write!(f, "knee:{rate}"),
            Curve::Slope(rate) => write!(f, "slope:{rate}"),
            Curve::Noise(rate) => write!(f, "noise:{rate}"),
            Curve::Drop => f.write_str("drop"),
            Curve::Reflect => f.write_str("reflect"),
            Curve::Die(trial) => write!(f, "die:{trial}"),
        }
    }
}

/// The device, with a clock of its own.
#[derive(Debug, Clone)]
pub struct Simulated {
    curve: Curve,
    random: fastrand::Rng,
    trials: usize,
    /// Seconds that all trials and pauses would have taken.
    pub clock: f64,
}

impl Simulated {
    /// Makes a device. The seed is that of its noise.
    pub fn new(curve: Curve, seed: u64) -> Simulated {
        Simulated { curve, random: fastrand::Rng::with_seed(seed), trials: 0, clock: 0.0 }
    }

    /// Returns the frames that are forwarded in a phase.
    fn forwarded(&mut self, phase: &Phase) -> f64 {
        let frames = (phase.rate * phase.seconds).round().max(1.0);
        let knee = |capacity: f64| frames.min((capacity * phase.seconds + BUFFER).floor());
        match self.curve {
            Curve::Knee(capacity) => knee(capacity),
            Curve::Slope(start) => {
                let over = ((phase.rate - start) / (9.0 * start)).clamp(0.0, 1.0);
                (frames * (1.0 - over)).floor()
            }
            Curve::Noise(capacity) => {
                let unlucky = self.random.f64() < 0.2 && phase.rate > capacity / 10.0;
                let lost = if unlucky { (frames / 1000.0).ceil() } else { 0.0 };
                (knee(capacity) - lost).max(0.0)
            }
            Curve::Drop => 0.0,
            Curve::Reflect => frames * 2.0,
            Curve::Die(_) => knee(1e6),
        }
    }

    /// Returns the share of the time for which a rate keeps the device busy.
    fn busy(&self, rate: f64) -> f64 {
        let capacity = match self.curve {
            Curve::Knee(rate) | Curve::Slope(rate) | Curve::Noise(rate) => rate,
            Curve::Drop | Curve::Reflect | Curve::Die(_) => 1e6,
        };
        (rate / capacity).min(1.0)
    }

    /// Returns the most connections at once: as many as the frames that the device forwards in a
    /// second.
    fn table(&self) -> f64 {
        match self.curve {
            Curve::Knee(most) | Curve::Slope(most) | Curve::Noise(most) => most,
            Curve::Drop => 0.0,
            Curve::Reflect | Curve::Die(_) => 1e6,
        }
    }

    /// Returns latencies that grow as the rate approaches the device's limit, as in a queue.
    fn latency(&self, rate: f64, frames: u64) -> Latency {
        let busy = self.busy(rate).min(0.99);
        let steps = 1000;
        Latency::from_times((0..steps).map(|step| {
            let share = (f64::from(step) + 0.5) / f64::from(steps);
            let wait = -(1.0 - share).ln() * busy / (1.0 - busy) * 0.1;
            ((QUICKEST * (1.0 + wait)) as u64, frames.div_ceil(steps as u64))
        }))
    }
}

impl Measurer for Simulated {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        self.trials += 1;
        if matches!(self.curve, Curve::Die(trial) if trial == self.trials) {
            bail!("the device does not answer any more");
        }
        self.clock += order.phases.iter().map(|phase| phase.seconds).sum::<f64>();
        let mut trial = Trial::default();
        let mut overloaded = false;
        for (index, phase) in order.phases.iter().enumerate() {
            let sent = (phase.rate * phase.seconds).round().max(1.0) as u64;
            let received = match order.besides {
                Besides::Hold => (self.table() as u64).min(sent),
                _ => self.forwarded(phase) as u64,
            };
            trial.sent += sent;
            trial.received += received;
            if index + 1 == order.phases.len() {
                // An earlier overload causes losses for a while.
                trial.last_loss = overloaded.then_some(RECOVERY);
                trial.latency = self.latency(phase.rate, received);
                trial.busy = Some(self.busy(phase.rate));
            }
            overloaded |= received < sent;
        }
        if let Besides::Fragments(rate) = order.besides {
            let seconds = order.phases.iter().map(|phase| phase.seconds).sum::<f64>();
            let sent = (rate * seconds).round() as u64;
            let received = if self.curve == Curve::Drop { 0 } else { sent };
            let datagrams = Datagrams { sent, received };
            trial.connections = Some(Connections { datagrams, ..Connections::default() });
        }
        if let Besides::Flood(rate, pages) = order.besides {
            let seconds = order.phases.iter().map(|phase| phase.seconds).sum::<f64>();
            let sent = (rate * seconds).round() as u64;
            // the device passes a flood on up to its own limit
            let received = sent.min((self.table() * seconds) as u64);
            let flood = Flood { sent, received };
            let pages = trial.received * u64::from(pages.requests);
            trial.connections = Some(Connections { flood, pages, ..Connections::default() });
        }
        if let Besides::Forbidden(share) = order.besides {
            let forbidden = trial.sent * u64::from(share) / 100;
            trial.sent -= forbidden;
            trial.received = trial.received.min(trial.sent);
            // a device that forwards each frame twice filters nothing
            let leaked = if self.curve == Curve::Reflect { forbidden } else { 0 };
            trial.connections = Some(Connections { forbidden, leaked, ..Connections::default() });
        }
        if matches!(order.besides, Besides::Reset(_)) {
            let rate = order.phases.first().map_or(0.0, |phase| phase.rate);
            let frames = (rate * AWAY) as u64;
            let time = Duration::from_secs_f64(AWAY);
            trial.gap = Some(Gap { frames, time, ended: true });
            trial.received = trial.received.saturating_sub(frames);
        }
        Ok(trial)
    }

    fn wait(&mut self, seconds: f64) {
        self.clock += seconds;
    }

    fn reset(&self) -> Option<&str> {
        Some("the device is down for a quarter of a second")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_names() {
        assert_eq!("knee:5000".parse(), Ok(Curve::Knee(5000.0)));
        assert_eq!("slope".parse(), Ok(Curve::Slope(1e6)));
        assert_eq!("die:2".parse(), Ok(Curve::Die(2)));
        for wrong in ["", "bump", "knee:x", "drop:3", "knee:-1", "knee:inf"] {
            assert!(wrong.parse::<Curve>().is_err(), "{wrong}");
        }
    }
}

//! Searches between two other machines with frames: the agent of the client sends frames, and the
//! agent of the server counts them.

use std::time::Duration;

use anyhow::{Context, ensure};
use fwlab_agent::{Agents, Frames, Machine, Pair, Part, Reach, Tally};
use fwlab_load::raw::flood::Pace;
use fwlab_load::raw::load::Load;
use fwlab_load::wire::{Interfaces, NO_WAY};
use fwlab_net::interrupt::Interrupt;
use fwlab_net::topology::End;
use skipstep_kernel::lab::Progress;

use super::network::{pause, received};
use super::wire::pace_alone;
use super::{Measurer, Order, Site, Trial};
use crate::ceiling::USABLE_SHARE;

/// Number of frames that measure the generator's highest rate, and the longest time for them.
const CEILING: u64 = 1 << 18;
const CEILING_TIME: Duration = Duration::from_secs(10);

/// Two agents, and the interfaces between which the frames go.
pub(super) struct Apart {
    pair: Pair,
    pub machines: [Machine; 2],
    names: [String; 2],
    links: [[u8; 6]; 2],
    interrupt: Interrupt,
}

impl Apart {
    /// Connects to both agents.
    ///
    /// # Errors
    /// Fails if an agent is not reachable or has no such interface, or if the interfaces were not
    /// given.
    pub fn connect(
        agents: &Agents,
        interfaces: &Interfaces,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Apart> {
        let names = interfaces.names().context("--client-if and --server-if are missing")?;
        let mut pair = Pair::connect(agents, interrupt)?;
        let machines = pair.machines(names.clone().map(Reach::By))?;
        let links = interfaces.link_addresses([&machines[0].link, &machines[1].link])?;
        Ok(Apart { pair, machines, names, links, interrupt: interrupt.clone() })
    }

    /// Prepares both agents for frames of `load`.
    fn prepare(&mut self, load: &Load) -> anyhow::Result<()> {
        let [client, server] = self.names.clone();
        let frames = Frames {
            load: load.clone(),
            interface: client,
            links: self.links,
            addresses: [End::Client, End::Server].map(|end| end.address(load.ip)),
            pace: Pace::fast(CEILING),
        };
        let sink = Part::Sink { interface: server };
        self.pair.prepare(Part::Source(Box::new(frames)), sink, CEILING_TIME)
    }
}

impl Site for Apart {
    /// Returns a rate slightly below the highest that the first interface sends, in frames a
    /// second. Losses do not matter for this rate.
    fn most(&mut self, load: &Load) -> anyhow::Result<f64> {
        self.prepare(load)?;
        let [sent, counted] = self.pair.tallies()?;
        ensure!(
            counted.counts.received > 0,
            "none of {} frames came through: {NO_WAY}",
            sent.counts.sent
        );
        Ok((sent.rate() * USABLE_SHARE).floor())
    }

    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>> {
        self.prepare(load)?;
        Ok(Box::new(Between { apart: self }))
    }
}

/// The measurer of two prepared agents.
struct Between<'a> {
    apart: &'a mut Apart,
}

impl Measurer for Between<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let pace = pace_alone(order)?;
        let length = pace.length().context("a trial's length")?;
        self.apart.pair.pace(pace, length)?;
        let [sent, counted] = self.apart.pair.tallies()?;
        Ok(trial_of(&pace, &sent, &counted))
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.apart.interrupt);
    }
}

/// Combines the tallies of both agents to a trial. There is no latency, because the clocks differ.
/// The time of the last loss is by the sender's clock, whose times the frames carry.
fn trial_of(pace: &Pace, sent: &Tally, counted: &Tally) -> Trial {
    let order = pace.order();
    let progress = Progress {
        sent: sent.counts.sent,
        skipped: sent.counts.skipped,
        start: sent.start,
        last: sent.start + sent.time.as_nanos() as u64,
        ..Progress::default()
    };
    let last = counted.holes.last_lost(&order, &progress);
    let turn = Duration::from_nanos(order.due(order.turn));
    let frames = counted.counts.received + counted.counts.duplicated;
    Trial {
        sent: sent.counts.sent,
        received: received(sent.counts.sent, frames, counted.counts.duplicated),
        last_loss: last.and_then(|last| last.checked_sub(turn)).map(|after| after.as_secs_f64()),
        ..Trial::default()
    }
}

#[cfg(test)]
mod tests {
    use fwlab_load::raw::missing::Holes;
    use fwlab_net::placement::Disturbance;
    use fwlab_results::Counts;

    use super::*;

    fn tally(counts: Counts, start: u64, time: Duration, holes: Holes) -> Tally {
        Tally { counts, time, start, holes, disturbance: Disturbance::default() }
    }

    #[test]
    fn the_tallies_of_two_agents_are_combined() {
        // 1000 frames in a second, then 500 in another
        let second = Duration::from_secs(1);
        let pace = Pace::steady(1000.0, second).then(500.0, second);
        assert_eq!(pace.length(), Some(2 * second));
        let start = 7_000_000_000;
        let counts = Counts { sent: 1500, ..Counts::default() };
        let time = Duration::from_millis(1998);
        let sent = tally(counts, start, time, Holes::default());
        // the sink has another clock; frame 1250 did not come, 1251 did
        let hole_end = start + pace.order().due(1251);
        let holes = Holes { next: 1500, last: Some(1250), hole: 1250, hole_end };
        let counts = Counts { received: 1490, duplicated: 3, ..Counts::default() };
        let counted = tally(counts, 0, time, holes);
        let trial = trial_of(&pace, &sent, &counted);
        assert_eq!((trial.sent, trial.received, trial.latency.count()), (1500, 1490, 0));
        assert!((trial.last_loss.unwrap() - 0.5).abs() < 1e-3, "{trial:?}");
        // a receive count above the number of sent frames is reported unchanged
        let counts = Counts { received: 1500, duplicated: 3, ..Counts::default() };
        let counted = tally(counts, 0, time, Holes { next: 1500, ..Holes::default() });
        let trial = trial_of(&pace, &sent, &counted);
        assert_eq!((trial.received, trial.last_loss), (1503, None));
    }
}

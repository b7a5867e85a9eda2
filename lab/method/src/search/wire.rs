//! Searches between two interfaces of this machine.

use anyhow::{Context, ensure};
use fwlab_load::raw::flood::{Flood, Pace};
use fwlab_load::raw::load::Load;
use fwlab_load::wire::{NO_WAY, Wire};
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::topology::End;

use super::network::{frames_of, pace, pause};
use super::{Besides, Measurer, Order, Site, Trial};
use crate::ceiling::{self, USABLE_SHARE};

/// Number of frames that show if any come through.
const PROBE: u64 = 1 << 10;

/// Returns the pace of a trial of frames alone. Fails if the order asks for more.
pub(super) fn pace_alone(order: &Order) -> anyhow::Result<Pace> {
    ensure!(order.besides == Besides::Nothing, "a trial of frames has no other work");
    pace(order.phases)
}

/// Two interfaces of this machine.
pub(super) struct Here {
    pub wire: Wire,
    pub at: Placement,
    pub interrupt: Interrupt,
}

impl Here {
    fn measurer_of(&self, load: &Load) -> anyhow::Result<OnWire<'_>> {
        let flood = self.wire.flood(load, [End::Client, End::Server])?;
        Ok(OnWire { here: self, flood })
    }
}

impl Site for Here {
    /// Returns a rate slightly below the highest that the first interface sends, in frames a
    /// second. Losses do not matter for this rate.
    fn most(&mut self, load: &Load) -> anyhow::Result<f64> {
        let mut wire = self.measurer_of(load)?;
        wire.learn()?;
        let probe = wire.flood.trial(&Pace::fast(PROBE), self.at, &self.interrupt)?;
        ensure!(probe.counts.frames > 0, "none of {PROBE} frames came through: {NO_WAY}");
        let all = wire.flood.trial(&Pace::fast(ceiling::FRAMES), self.at, &self.interrupt)?;
        Ok((all.rate() * USABLE_SHARE).floor())
    }

    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>> {
        Ok(Box::new(self.measurer_of(load)?))
    }
}

/// Generator and sink at the two interfaces.
struct OnWire<'h> {
    here: &'h Here,
    flood: Flood<'static>,
}

impl Measurer for OnWire<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let pace = pace_alone(order)?;
        self.flood.trial(&pace, self.here.at, &self.here.interrupt).map(|trial| frames_of(&trial))
    }

    fn learn(&mut self) -> anyhow::Result<()> {
        let sender = self.here.wire.sender();
        self.flood.learn(sender, self.here.at).context("learning frames")
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.here.interrupt);
    }
}

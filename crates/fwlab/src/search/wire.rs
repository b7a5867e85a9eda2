//! Whatever is between two interfaces of this machine, for searches.

use anyhow::{Context, ensure};

use super::network::{BELIEVED, frames_of, pace, pause};
use super::{Besides, Measurer, Order, Place, Trial};
use crate::interrupt::Interrupt;
use crate::placement::Placement;
use crate::raw::flood::{Flood, Pace};
use crate::raw::load::Load;
use crate::topology::End;
use crate::wire::Wire;

/// Frames that show how fast the generator is.
const CEILING: u64 = 1 << 19;

/// Frames that show whether any come through.
const TASTE: u64 = 1 << 10;

/// What to do if none do.
pub(super) const NO_WAY: &str =
    "--next-link is who takes them, and the way to the server's network has to be known there";

/// How frames of a trial follow one another where nothing else is done.
pub(super) fn pace_alone(order: &Order) -> anyhow::Result<Pace> {
    ensure!(order.besides == Besides::Nothing, "frames are sent here, and nothing else is done");
    pace(order.phases)
}

/// Two interfaces.
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

impl Place for Here {
    /// What goes out by the first interface as fast as it goes, whatever becomes of it, and
    /// somewhat less.
    fn most(&mut self, load: &Load) -> anyhow::Result<f64> {
        let mut wire = self.measurer_of(load)?;
        wire.learn()?;
        let taste = wire.flood.trial(&Pace::fast(TASTE), self.at, &self.interrupt)?;
        ensure!(taste.counts.frames > 0, "none of {TASTE} frames came through: {NO_WAY}");
        let all = wire.flood.trial(&Pace::fast(CEILING), self.at, &self.interrupt)?;
        Ok((all.rate() * BELIEVED).floor())
    }

    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>> {
        Ok(Box::new(self.measurer_of(load)?))
    }
}

/// Generator and sink at them.
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

//! How trials are done, wherever their ends are.

use std::time::Duration;

use crate::napi;
use crate::placement::Placement;
use crate::raw::flood::Pace;
use crate::raw::load::Load;
use crate::results::Mode;
use crate::sockets::Talk;
use crate::topology::{End, Lab};

/// Frames of the first look at how fast a system is.
pub(super) const TASTE: u64 = 1 << 14;

/// How long sockets talk before anything is measured.
pub(super) const WARM: Duration = Duration::from_millis(20);

/// How trials are done.
pub(crate) struct Plan {
    pub at: Placement,
    /// Where the firewall is in queue mode.
    pub device_cpu: usize,
    pub load: Load,
    pub duration: Duration,
    pub rate: Option<f64>,
    pub mode: Mode,
    /// Where the load comes from, and where it goes to.
    pub ends: [End; 2],
    /// Whether every other frame goes the other way.
    pub both_ways: bool,
    /// What sockets do, if they and not the generator make the load.
    pub talk: Option<Talk>,
}

impl Plan {
    /// How frames follow one another, where a first look gave so many a second.
    pub(super) fn pace(&self, taste: f64) -> Pace {
        pace(self.rate, self.duration, taste)
    }

    /// Gives the firewall a CPU of its own, if it is to have one.
    pub(super) fn threads(&self, lab: &Lab, queue: bool) -> anyhow::Result<Vec<u32>> {
        match lab.device() {
            Some(device) if queue => {
                napi::give_threads(device, &self.ends.map(End::leg), self.device_cpu)
            }
            _ => Ok(Vec::new()),
        }
    }
}

pub(super) fn pace(rate: Option<f64>, duration: Duration, taste: f64) -> Pace {
    match rate {
        Some(rate) => Pace::steady(rate, duration),
        None => {
            let frames = taste * duration.as_secs_f64();
            Pace::fast((frames as u64).clamp(1000, i32::MAX as u64))
        }
    }
}

//! The plan of trials, wherever their ends are.

use std::time::Duration;

use fwlab_load::raw::flood::Pace;
use fwlab_load::raw::load::Load;
use fwlab_load::sockets::Talk;
use fwlab_net::napi;
use fwlab_net::placement::Placement;
use fwlab_net::topology::{End, Lab};
use fwlab_results::Mode;

/// Number of frames of the calibration, which measures the system's rate once.
pub(crate) const CALIBRATION: u64 = 1 << 14;

/// The time of sockets' traffic before the first trial.
pub(crate) const WARM: Duration = Duration::from_millis(20);

/// Bytes of the frames of a functional check. Frames of all kinds have room for their tag.
pub const CHECK_SIZE: usize = 128;

/// The plan of trials.
pub struct Plan {
    /// The CPU and priority of the load.
    pub at: Placement,
    /// The firewall's CPU in queue mode.
    pub device_cpu: usize,
    /// The frames of the generator.
    pub load: Load,
    /// The duration of a trial.
    pub duration: Duration,
    /// Frames a second. None for full speed.
    pub rate: Option<f64>,
    /// The mode.
    pub mode: Mode,
    /// Sender and receiver of the load.
    pub ends: [End; 2],
    /// True if every other frame goes the opposite way.
    pub both_ways: bool,
    /// The traffic of sockets. None if the generator makes the load.
    pub talk: Option<Talk>,
}

impl Plan {
    /// Returns the pace of a trial. `calibrated_rate` is in frames a second.
    pub(crate) fn pace(&self, calibrated_rate: f64) -> Pace {
        pace(self.rate, self.duration, calibrated_rate)
    }

    /// Moves the firewall's NAPI threads to a CPU of its own, in queue mode.
    pub(crate) fn threads(&self, lab: &Lab, queue: bool) -> anyhow::Result<Vec<u32>> {
        match lab.device() {
            Some(device) if queue => {
                napi::give_threads(device, &self.ends.map(End::leg), self.device_cpu)
            }
            _ => Ok(Vec::new()),
        }
    }
}

pub(crate) fn pace(rate: Option<f64>, duration: Duration, calibrated_rate: f64) -> Pace {
    match rate {
        Some(rate) => Pace::steady(rate, duration),
        None => {
            let frames = calibrated_rate * duration.as_secs_f64();
            Pace::fast((frames as u64).clamp(1000, i32::MAX as u64))
        }
    }
}

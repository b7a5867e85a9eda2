//! Searches for the limits of a device by trials, as the RFCs about benchmarking describe.
//!
//! A search knows its device only as a [`Measurer`]. So the tests run each search against a
//! simulated device with known behaviour.

mod apart;
mod attempts;
pub mod back_to_back;
mod command;
mod connections_apart;
pub mod filters;
pub mod frames;
pub mod hop_by_hop;
pub mod latency;
pub mod loss_rate;
pub mod mlr;
pub mod network;
pub mod recovery;
mod room;
pub mod simulated;
pub mod tcp;
mod tcp_network;
mod test;
pub mod throughput;
mod wire;
mod written;

use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_load::connections::{Pages, Setup};
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::load::Load;
pub use fwlab_load::raw::missing::Gap;
use fwlab_net::family::Family;
use fwlab_results::Latency;
use serde::Serialize;
use thiserror::Error;

pub use command::{Arguments, run};

use frames::Frames;

/// Frames, or attempts to connect, at a constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Frames or attempts a second.
    pub rate: f64,
    /// Length in seconds.
    pub seconds: f64,
}

/// The order of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order<'a> {
    /// The phases, one after the other without a pause.
    pub phases: &'a [Phase],
    /// Further work during the phases.
    pub besides: Besides,
}

/// Work of a trial beside sending at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Besides {
    /// No further work.
    Nothing,
    /// Resets the device this number of seconds after the first frame.
    Reset(f64),
    /// Keeps connections open until all are established.
    Hold,
    /// Establishes connections at this rate a second, and then tears them down at the rate of the
    /// phase.
    TearDown(f64),
    /// Makes this number of a hundred connections to a forbidden port.
    Forbidden(u32),
    /// Sends this number of fragmented datagrams a second.
    Fragments(f64),
    /// Sends this number of SYNs a second from unused addresses, while each connection fetches
    /// these pages.
    Flood(f64, Pages),
    /// Fetches these pages over each connection.
    Pages(Pages),
}

/// The result of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// Number of frames sent, or of connections attempted.
    pub sent: u64,
    /// Number of frames received, or of connections that were served.
    pub received: u64,
    /// Latencies of frames from the time each was due, or setup times of connections.
    pub latency: Latency,
    /// The time at which the last lost frame was sent, in seconds from the start of the last phase.
    /// None if no frame was lost.
    pub last_loss: Option<f64>,
    /// The longest time between two received frames with missing ones in between. None if there is
    /// no such gap.
    pub gap: Option<Gap>,
    /// Further counts of connections. None if the trial has none.
    pub connections: Option<Connections>,
    /// Share of the trial for which the device's own CPU was busy. None if it has none of its own.
    pub busy: Option<f64>,
}

/// Counts of a trial's connections beside those of attempted and served ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Connections {
    /// Attempts that became connections.
    pub established: u64,
    /// Forbidden attempts, which are not part of the attempted ones.
    pub forbidden: u64,
    /// Forbidden attempts that reached the server.
    pub leaked: u64,
    /// Setup times.
    pub setup: Setup,
    /// Fragmented datagrams.
    pub datagrams: Datagrams,
    /// SYNs of the flood.
    pub flood: Flood,
    /// Pages that were fetched in time.
    pub pages: u64,
    /// Transfer times of pages.
    pub fetched: Setup,
}

/// A device that a search can run trials on.
pub trait Measurer {
    /// Does a trial.
    ///
    /// # Errors
    /// Fails if the trial could not be completed.
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial>;

    /// Sends frames from which bridges in between learn the ports of the ends, if necessary.
    ///
    /// # Errors
    /// Fails if nothing can be sent.
    fn learn(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Waits for `seconds`, so that the device comes to rest.
    fn wait(&mut self, seconds: f64);

    /// Returns the description of a reset of the device. None if it cannot be reset.
    fn reset(&self) -> Option<&str> {
        None
    }

    /// Measures the highest rate of connections that can be attempted, in connections a second.
    /// Each fetches these pages. None if the rate does not depend on the pages.
    ///
    /// # Errors
    /// Fails if the rate cannot be measured.
    fn most(&mut self, _: Pages) -> anyhow::Result<Option<f64>> {
        Ok(None)
    }
}

/// A place where searches run with several kinds of frames.
trait Site {
    /// Returns the highest rate of such frames that can be offered here, in frames a second.
    fn most(&mut self, load: &Load) -> anyhow::Result<f64>;

    /// Returns a measurer for such frames.
    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>>;
}

/// The reason for which a search ended without a result.
#[derive(Debug, Error)]
pub enum Failure {
    /// A trial could not be completed: its number, and the reason.
    #[error("trial {0} failed: {1:#}")]
    Trial(usize, anyhow::Error),
    /// More frames came than were sent.
    #[error(
        "{received} frames arrived, but only {sent} were sent: the device reflects or duplicates \
         frames, so the loss is unknown"
    )]
    Reflected {
        /// Frames sent.
        sent: u64,
        /// Frames received.
        received: u64,
    },
    /// No frame came through, up to this rate.
    #[error("no frame came through, even at {0:.0} frames a second: the device drops everything")]
    Nothing(f64),
    /// The device loses frames at any rate, and this search runs at the throughput.
    #[error(
        "the device loses frames or connections at every rate: the test needs a throughput above 0"
    )]
    NoThroughput,
    /// No connection was established.
    #[error("no connection got its page, even at the lowest number and rate")]
    NoConnection,
    /// The device cannot be reset.
    #[error(
        "not applicable: the kernel alone forwards here, and it resets only with the whole machine"
    )]
    NoReset,
    /// No frame came between the reset and the end of the trial.
    #[error(
        "no frame came between the reset and the end of the trial: try longer trials (--seconds)"
    )]
    Away,
    /// The search ended after this number of trials.
    #[error("no result after {0} trials: the results of equal trials differ too much")]
    Endless(usize),
}

/// The pauses of a trial (RFC 2544 section 23): before the trial, after the last frame, and until
/// the next trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waits {
    /// Seconds after the learning frames.
    pub before: f64,
    /// Seconds for frames that are still under way.
    pub after: f64,
    /// Seconds until the next trial, for the device to rest.
    pub rest: f64,
}

impl Waits {
    /// The pauses of the RFC.
    pub const STANDARD: Waits = Waits { before: 2.0, after: 2.0, rest: 5.0 };

    /// No pauses.
    pub const NONE: Waits = Waits { before: 0.0, after: 0.0, rest: 0.0 };

    fn are_standard(&self) -> bool {
        let Waits { before, after, rest } = Waits::STANDARD;
        self.before >= before && self.after >= after && self.rest >= rest
    }
}

/// The record of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Frames a second, or attempts to connect, as ordered; with several phases, those of the
    /// first.
    pub rate: f64,
    /// Seconds of all phases together.
    pub seconds: f64,
    /// Frames to send, or connections to make, as ordered. Frames that the generator did not send
    /// count as lost.
    pub intended: u64,
    /// Frames received, or connections served.
    pub received: u64,
    /// Share of the intended frames or connections that was lost, from 0 to 1.
    pub loss: f64,
    /// Latencies of received frames. The JSON report omits them; result files have them.
    #[serde(skip)]
    pub latency: Latency,
}

/// The most trials of a search.
const MOST_TRIALS: usize = 5000;

/// The trials of a search, with their records.
pub struct TrialRunner<'m> {
    measurer: &'m mut dyn Measurer,
    waits: Waits,
    /// The records of all trials so far.
    pub records: Vec<Record>,
    /// A function that is called after each trial, with its number and its record.
    pub listener: Option<fn(usize, &Record)>,
    /// Further work of steady trials.
    pub besides: Besides,
}

impl<'m> TrialRunner<'m> {
    /// Makes a runner for a measurer.
    pub fn new(measurer: &'m mut dyn Measurer, waits: Waits) -> TrialRunner<'m> {
        let besides = Besides::Nothing;
        TrialRunner { measurer, waits, records: Vec::new(), listener: None, besides }
    }

    /// Returns the description of a reset of the device.
    ///
    /// # Errors
    /// Fails if the device cannot be reset.
    pub fn reset(&self) -> Result<&str, Failure> {
        self.measurer.reset().ok_or(Failure::NoReset)
    }

    /// Does a trial at one rate for some seconds.
    ///
    /// # Errors
    /// Fails as [`TrialRunner::run`] does.
    pub fn steady(&mut self, rate: f64, seconds: f64) -> Result<(Record, Trial), Failure> {
        let besides = self.besides;
        self.run(&Order { phases: &[Phase { rate, seconds }], besides })
    }

    /// Returns the highest rate of connections that can be attempted, in connections a second. Each
    /// fetches these pages. Returns `as_it_is` if the rate does not depend on the pages.
    ///
    /// # Errors
    /// Fails if the rate cannot be measured.
    pub fn most(&mut self, pages: Pages, as_it_is: f64) -> Result<f64, Failure> {
        let number = self.records.len() + 1;
        let most = self.measurer.most(pages).map_err(|error| Failure::Trial(number, error))?;
        Ok(most.unwrap_or(as_it_is))
    }

    /// Does a trial.
    ///
    /// # Errors
    /// Fails if the trial fails, if more frames came than were sent, or if the search has too many
    /// trials.
    pub fn run(&mut self, order: &Order) -> Result<(Record, Trial), Failure> {
        let number = self.records.len() + 1;
        if number > MOST_TRIALS {
            return Err(Failure::Endless(MOST_TRIALS));
        }
        self.measurer.learn().map_err(|error| Failure::Trial(number, error))?;
        self.measurer.wait(self.waits.before);
        let trial = self.measurer.trial(order).map_err(|error| Failure::Trial(number, error))?;
        self.measurer.wait(self.waits.after + self.waits.rest);
        if trial.received > trial.sent {
            return Err(Failure::Reflected { sent: trial.sent, received: trial.received });
        }
        let frames = |phase: &Phase| (phase.rate * phase.seconds).round().max(1.0);
        let forbidden = trial.connections.map_or(0, |known| known.forbidden);
        let intended = order.phases.iter().map(frames).sum::<f64>() as u64 - forbidden;
        let record = Record {
            rate: order.phases.first().map_or(0.0, |phase| phase.rate),
            seconds: order.phases.iter().map(|phase| phase.seconds).sum(),
            intended,
            received: trial.received,
            loss: intended.saturating_sub(trial.received) as f64 / intended.max(1) as f64,
            latency: trial.latency.clone(),
        };
        self.records.push(record.clone());
        if let Some(listener) = self.listener {
            listener(number, &record);
        }
        Ok((record, trial))
    }
}

/// The conformance of a result to a standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conformance {
    /// Conforms in every point.
    Conforms,
    /// Deviates in these points.
    Partial(Vec<String>),
    /// Does not conform, for this reason.
    Not(String),
}

impl Conformance {
    /// Makes a conformance with these deviations.
    fn but_for(missing: Vec<Option<&str>>) -> Conformance {
        let missing: Vec<String> = missing.into_iter().flatten().map(str::to_string).collect();
        if missing.is_empty() { Conformance::Conforms } else { Conformance::Partial(missing) }
    }

    /// Adds a deviation.
    fn and_but_for(self, missing: &str) -> Conformance {
        match self {
            Conformance::Conforms => Conformance::Partial(vec![missing.to_string()]),
            Conformance::Partial(mut points) => {
                points.push(missing.to_string());
                Conformance::Partial(points)
            }
            Conformance::Not(why) => Conformance::Not(why),
        }
    }
}

/// The kinds that a search covers, of those that standards require. A field is true if the search
/// covers all kinds of its sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Variety {
    /// The frame sizes of RFC 2544 section 9.1.
    pub sizes: bool,
    /// Destinations in one network, and in 256.
    pub networks: bool,
    /// IPv6 extension headers: without, with each alone, with a chain.
    pub extensions: bool,
    /// Several numbers of rules.
    pub rules: bool,
    /// Translated and untranslated addresses.
    pub nat: bool,
}

/// The properties of the laboratory that standards make requirements for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// True if frames go over physical network cards.
    pub wire: bool,
    /// True if somebody else chose the device's rules.
    pub foreign: bool,
    /// Bytes of a frame with its checksum.
    pub size: u32,
    /// True for IPv6 frames.
    pub ip6: bool,
    /// The extension headers of frames.
    pub extension: Extension,
    /// Number of networks from which destinations are drawn.
    pub networks: u32,
    /// True if bridges have learnt the ports of both ends before a trial begins.
    pub learns: bool,
    /// The kinds that the search covers one after the other.
    pub variety: Variety,
    /// The highest rate on offer, in frames or connections a second: the lower of link and client.
    pub most: f64,
    /// The pauses.
    pub waits: Waits,
}

impl Setting {
    /// Returns the frames a second of a link with this number of bits a second. Each frame has a
    /// preamble and a gap: 20 bytes.
    pub fn line_rate(bits: f64, size: u32) -> f64 {
        bits / (f64::from(size + 20) * 8.0)
    }

    /// Returns the kind of frames.
    fn frames(&self) -> Frames {
        let Setting { size, ip6, extension, networks, .. } = *self;
        let ip = if ip6 { Family::V6 } else { Family::V4 };
        Frames { size, ip, extension, networks }
    }

    /// Returns the bytes of the smallest frame with room for fwlab's tag.
    fn smallest(&self) -> u32 {
        frames::smallest(self.ip6, self.extension)
    }

    /// Adds the deviations from RFC 5180 if the search is over IPv6.
    fn over_ip6(&self, conformance: Conformance) -> Conformance {
        if !self.ip6 {
            return conformance;
        }
        let conformance = match self.variety {
            Variety { extensions: true, .. } => conformance,
            _ => {
                let what = match self.extension {
                    Extension::None => "without extension headers".to_owned(),
                    one => format!("with the extension headers {}", one.name()),
                };
                conformance.and_but_for(&format!(
                    "RFC 5180: only traffic {what}; section 5.3 asks for none, each alone and a \
                     chain (--extension all)"
                ))
            }
        };
        conformance.and_but_for(
            "RFC 5180: frames have at least 84 bytes, more with extension headers, instead of 64 \
             (section 5.1); all networks are parts of one prefix",
        )
    }

    fn missing_wire(&self) -> Option<&'static str> {
        (!self.wire).then_some("the link is virtual")
    }

    fn missing_waits(&self) -> Option<&'static str> {
        match (self.waits.are_standard(), self.learns) {
            (false, _) => Some("pauses between trials are shorter than in section 23"),
            (true, false) => Some("no learning frames before a trial (section 23)"),
            (true, true) => None,
        }
    }

    /// Section 12 requires destinations in 256 networks after a single pair; section 9.1 requires
    /// seven frame sizes.
    fn missing_variety(&self) -> Option<&'static str> {
        match (self.variety.sizes, self.variety.networks) {
            (true, true) => None,
            (true, false) => {
                Some("one set of addresses; section 12 asks for 256 networks, too (--networks all)")
            }
            (false, true) => Some("not all seven frame sizes of section 9.1 (--size all)"),
            (false, false) => Some(
                "one frame size and one set of addresses; section 9.1 asks for seven sizes (--size all), section 12 for \
                 256 networks (--networks all)",
            ),
        }
    }
}

#[cfg(test)]
mod tests;

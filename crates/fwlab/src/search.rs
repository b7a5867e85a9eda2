//! Searches: what a device can do, found by trials, as the RFCs about benchmarking say.
//!
//! They ask a [`Measurer`] for trials and know nothing else of it, so they are tested against a
//! simulated device whose answers are known.

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

use serde::Serialize;
use thiserror::Error;

pub use command::{Arguments, run};

use crate::connections::datagrams::Datagrams;
use crate::connections::flood::Flood;
use crate::connections::{Pages, Setup};
use crate::family::Family;
use crate::raw::extension::Extension;
use crate::raw::load::Load;
pub use crate::raw::missing::Gap;
use crate::results::Latency;
use frames::Frames;

/// Frames, or attempts to connect, at a constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Frames a second.
    pub rate: f64,
    /// Seconds.
    pub seconds: f64,
}

/// What a trial does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order<'a> {
    /// What is sent, one after the other without a pause.
    pub phases: &'a [Phase],
    /// What is done besides.
    pub besides: Besides,
}

/// What a trial does besides sending at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Besides {
    /// Nothing.
    Nothing,
    /// The device is reset so many seconds after the first frame.
    Reset(f64),
    /// Connections stay open until all of them are there.
    Hold,
    /// Connections are made so many a second, and then torn down at the rate.
    TearDown(f64),
    /// Of a hundred connections so many are such as a rule forbids.
    Forbidden(u32),
    /// So many datagrams a second are sent in fragments.
    Fragments(f64),
    /// So many SYNs a second are sent by nobody, while each connection fetches these.
    Flood(f64, Pages),
    /// Each connection fetches these.
    Pages(Pages),
}

/// What came of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// Frames that were sent, or connections attempted.
    pub sent: u64,
    /// Frames that came, or connections that got what they asked for.
    pub received: u64,
    /// How long they took, from when each was to be sent; or until connections were there.
    pub latency: Latency,
    /// When the last frame that did not come was sent, in seconds since the last phase began.
    pub last_loss: Option<f64>,
    /// The longest time between two frames that came, with others missing between them.
    pub gap: Option<Gap>,
    /// What else is known of connections.
    pub connections: Option<Connections>,
    /// Share of the trial that the device's CPU was busy, where it has one of its own.
    pub busy: Option<f64>,
}

/// What is known of a trial's connections, besides how many were attempted and got what they asked
/// for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Connections {
    /// Attempts that became connections.
    pub established: u64,
    /// Attempts that a rule forbids, which are not among those sent.
    pub forbidden: u64,
    /// Those of them that came as far as the server.
    pub leaked: u64,
    /// How long it took until they were there.
    pub setup: Setup,
    /// Datagrams in fragments.
    pub datagrams: Datagrams,
    /// SYNs of nobody.
    pub flood: Flood,
    /// Pages that were there in time.
    pub pages: u64,
    /// How long it took until a page was there that was asked for.
    pub fetched: Setup,
}

/// Runs trials on a device.
pub trait Measurer {
    /// Runs one.
    ///
    /// # Errors
    /// It could not be run to its end.
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial>;

    /// Shows devices on the way where the ends are, as far as they do not know.
    ///
    /// # Errors
    /// Nothing can be sent.
    fn learn(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Lets the device come to rest.
    fn wait(&mut self, seconds: f64);

    /// What a reset of the device is, in words; none if it has nothing to reset.
    fn reset(&self) -> Option<&str> {
        None
    }

    /// The most connections a second that can be attempted if each fetches these, where that
    /// depends on it.
    ///
    /// # Errors
    /// It cannot be found out.
    fn most(&mut self, _: Pages) -> anyhow::Result<Option<f64>> {
        Ok(None)
    }
}

/// Where searches are done with frames of one kind after the other.
trait Place {
    /// The most frames of a kind that are offered there, in a second.
    fn most(&mut self, load: &Load) -> anyhow::Result<f64>;

    /// Runs trials with frames of a kind.
    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>>;
}

/// Why a search ended without a result.
#[derive(Debug, Error)]
pub enum Failure {
    /// A trial could not be run to its end.
    #[error("trial {0} failed: {1:#}")]
    Trial(usize, anyhow::Error),
    /// More came than was sent.
    #[error(
        "{received} frames came of {sent} that were sent: something reflects or repeats them, and what is lost \
         cannot be told"
    )]
    Reflected {
        /// Frames sent.
        sent: u64,
        /// Frames that came.
        received: u64,
    },
    /// Nothing comes.
    #[error(
        "no frame came through, at {0:.0} frames a second neither: the device drops everything"
    )]
    Nothing(f64),
    /// Other searches begin at the throughput.
    #[error("something is lost at any rate: there is no throughput to measure this at")]
    NoThroughput,
    /// No connection is made.
    #[error("no connection got its page, with as few and as slowly as was tried neither")]
    NoConnection,
    /// There is nothing to reset.
    #[error(
        "not applicable: nothing but the kernel forwards here, and what can be reset of it is the whole machine"
    )]
    NoReset,
    /// Frames still do not come when the trial ends.
    #[error(
        "no frame came after the reset until the trial ended: longer trials (--seconds) may show when"
    )]
    Away,
    /// More trials than anybody would wait for.
    #[error("no result after {0} trials: the device answers too differently each time")]
    Endless(usize),
}

/// Pauses of a trial, RFC 2544 section 23: before it, after its last frame, and for the device to
/// rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waits {
    /// Seconds after the learning frames.
    pub before: f64,
    /// Seconds for frames that are still on their way.
    pub after: f64,
    /// Seconds until the next trial.
    pub rest: f64,
}

impl Waits {
    /// As the RFC has them.
    pub const STANDARD: Waits = Waits { before: 2.0, after: 2.0, rest: 5.0 };

    /// None.
    pub const NONE: Waits = Waits { before: 0.0, after: 0.0, rest: 0.0 };

    fn are_standard(&self) -> bool {
        let Waits { before, after, rest } = Waits::STANDARD;
        self.before >= before && self.after >= after && self.rest >= rest
    }
}

/// A trial that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Frames a second that were to be sent, or connections to be attempted; of several phases the
    /// first.
    pub rate: f64,
    /// Seconds, all phases together.
    pub seconds: f64,
    /// Frames that were to be sent, or connections to be made. What the generator did not send
    /// counts as lost.
    pub intended: u64,
    /// Frames that came, or connections over which something did.
    pub received: u64,
    /// Share of the intended frames that did not come.
    pub loss: f64,
    /// How long those that came took; a result file has it.
    #[serde(skip)]
    pub latency: Latency,
}

/// More trials than this are no search.
const MOST_TRIALS: usize = 5000;

/// Runs trials for a search and keeps what came of them.
pub struct Bench<'m> {
    measurer: &'m mut dyn Measurer,
    waits: Waits,
    /// The trials so far.
    pub records: Vec<Record>,
    /// Who is told of each trial.
    pub listener: Option<fn(usize, &Record)>,
    /// What a steady trial does besides.
    pub besides: Besides,
}

impl<'m> Bench<'m> {
    /// Around a measurer.
    pub fn new(measurer: &'m mut dyn Measurer, waits: Waits) -> Bench<'m> {
        let besides = Besides::Nothing;
        Bench { measurer, waits, records: Vec::new(), listener: None, besides }
    }

    /// What a reset of the device is.
    ///
    /// # Errors
    /// It has nothing to reset.
    pub fn reset(&self) -> Result<&str, Failure> {
        self.measurer.reset().ok_or(Failure::NoReset)
    }

    /// Frames at a rate for some seconds.
    ///
    /// # Errors
    /// The trial failed, or says nothing.
    pub fn steady(&mut self, rate: f64, seconds: f64) -> Result<(Record, Trial), Failure> {
        let besides = self.besides;
        self.run(&Order { phases: &[Phase { rate, seconds }], besides })
    }

    /// The most connections a second that can be attempted if each fetches these; as it is if that
    /// is all the same.
    ///
    /// # Errors
    /// It cannot be found out.
    pub fn most(&mut self, pages: Pages, as_it_is: f64) -> Result<f64, Failure> {
        let number = self.records.len() + 1;
        let most = self.measurer.most(pages).map_err(|error| Failure::Trial(number, error))?;
        Ok(most.unwrap_or(as_it_is))
    }

    /// Any trial.
    ///
    /// # Errors
    /// The trial failed, or says nothing.
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

/// How far a result is what a standard asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conformance {
    /// In every point.
    Conforms,
    /// But for these points.
    Partial(Vec<String>),
    /// Not at all, and why.
    Not(String),
}

impl Conformance {
    /// Conforms but for what is missing.
    fn but_for(missing: Vec<Option<&str>>) -> Conformance {
        let missing: Vec<String> = missing.into_iter().flatten().map(str::to_string).collect();
        if missing.is_empty() { Conformance::Conforms } else { Conformance::Partial(missing) }
    }

    /// The same with something else missing.
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

/// Of what standards ask for in several kinds, whether a search is done with each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Variety {
    /// Sizes of frames.
    pub sizes: bool,
    /// Destinations in one network, and in 256.
    pub networks: bool,
    /// Extension headers of IPv6: without, with each alone, with a chain.
    pub extensions: bool,
    /// Numbers of rules.
    pub rules: bool,
    /// Addresses that are translated, and such that are not.
    pub nat: bool,
}

/// What the laboratory is, as far as standards ask.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// Whether frames go over real network cards.
    pub wire: bool,
    /// Whether the device's rules are those of somebody else.
    pub foreign: bool,
    /// Bytes of a frame with its checksum.
    pub size: u32,
    /// Whether frames are those of IPv6.
    pub ip6: bool,
    /// Their extension headers.
    pub extension: Extension,
    /// Networks that their destinations are drawn from.
    pub networks: u32,
    /// Whether devices on the way have learnt where the ends are when a trial begins.
    pub learns: bool,
    /// What the search is done with one after the other.
    pub variety: Variety,
    /// The most frames a second that the link carries.
    pub most: f64,
    /// Pauses.
    pub waits: Waits,
}

impl Setting {
    /// Frames a second of a link of so many bits a second: each has a preamble and a gap.
    pub fn line_rate(bits: f64, size: u32) -> f64 {
        bits / (f64::from(size + 20) * 8.0)
    }

    /// The frames of it.
    fn frames(&self) -> Frames {
        let Setting { size, ip6, extension, networks, .. } = *self;
        let ip = if ip6 { Family::V6 } else { Family::V4 };
        Frames { size, ip, extension, networks }
    }

    /// Bytes of the smallest frame that has room for what the laboratory writes into it.
    fn smallest(&self) -> u32 {
        frames::smallest(self.ip6, self.extension)
    }

    /// What is still to be said if the search is one over IPv6.
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
                    "RFC 5180: only traffic {what} (section 5.3: without, with each alone and with a chain, see --extension all)"
                ))
            }
        };
        conformance.and_but_for(
            "RFC 5180: frames have 84 bytes at least, more with extension headers, and not 64 (section 5.1); networks \
             are parts of one prefix",
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

    /// Section 12 asks for addresses of 256 networks after one pair; section 9.1 for more sizes.
    fn missing_variety(&self) -> Option<&'static str> {
        match (self.variety.sizes, self.variety.networks) {
            (true, true) => None,
            (true, false) => Some(
                "one set of addresses; section 12 asks for 256 networks besides (--networks all)",
            ),
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

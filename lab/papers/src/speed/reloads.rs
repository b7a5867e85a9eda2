//! Packet loss during reloads: frames at a steady rate pass a host that loads two rule sets
//! alternately.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fwlab_load::raw::flood::Flood;
use fwlab_load::raw::sender::Pace;
use fwlab_method::rounds::{Measured, Subject};
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::rules::Rules;
use fwlab_net::system::skipstep;
use fwlab_net::topology::{End, Lab, Shape, Topology};
use fwlab_net::transport::Transport::Udp;
use fwlab_results::{Better, Quantity, Role, Series};

use crate::study::{Extent, Study};

/// The title of the series.
pub(super) const TITLE: &str = "Reloading rules";

/// The system that is reloaded, and the number of reloads in a trial.
pub(super) const SYSTEM: &str = "skipstep-compiled";
pub(super) const TIMES: u32 = 100;

/// Estimated seconds of a round.
pub(super) const ROUND: f64 = 5.0;

/// Number of reloads with `--smoke`.
const SMOKE: u32 = 10;

/// Frames per second.
const RATE: f64 = 100_000.0;

/// Interval between reloads. A trial lasts half as long again as its reloads need.
const EVERY: Duration = Duration::from_millis(40);

/// Number of rules in one rule set; the other has one more.
const COUNT: u32 = 500;

/// The loader that replaces the rules of a host.
struct Loader<'l> {
    device: &'l Host,
    files: [PathBuf; 2],
    at: Placement,
    times: u32,
}

impl Loader<'_> {
    /// Loads the files alternately until `time` is over. Returns the number of reloads.
    fn run(&self, time: Duration) -> anyhow::Result<u32> {
        let begin = Instant::now();
        for (done, file) in (0..self.times).zip(self.files.iter().cycle()) {
            thread::sleep((EVERY * done).saturating_sub(begin.elapsed()));
            if begin.elapsed() >= time {
                return Ok(done);
            }
            self.device.run(Command::new(skipstep::pfctl()).args(["-q", "-f"]).arg(file), "")?;
        }
        Ok(self.times)
    }
}

/// A trial: frames pass the host while its rules are replaced.
struct Reloads<'l> {
    loader: Loader<'l>,
    flood: Flood<'l>,
    at: Placement,
    interrupt: Interrupt,
}

impl Subject for Reloads<'_> {
    fn id(&self) -> &str {
        SYSTEM
    }

    fn trial(&mut self) -> anyhow::Result<Measured> {
        let Reloads { loader, flood, at, interrupt } = self;
        let time = EVERY * loader.times * 3 / 2;
        let loader = &*loader;
        let (trial, done) = thread::scope(|scope| {
            let reloads = scope.spawn(|| loader.at.run(|| loader.run(time)));
            let trial = flood.trial(&Pace::steady(RATE, time), *at, interrupt);
            (trial, reloads.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (trial, done) = (trial?, done??);
        let why = (done < loader.times)
            .then(|| format!("only {done} of {} reloads fitted into the trial", loader.times));
        let lost = trial.lost() as f64;
        Ok(Measured { value: lost, doubt: why, counts: Some(trial.tally()), latency: None })
    }
}

/// Measures the lost frames.
///
/// # Errors
/// Fails if the network cannot be made, if rules are refused, or if a signal arrives.
pub(super) fn measure(study: &mut Study) -> anyhow::Result<()> {
    let Some(system) = study.systems(&[SYSTEM]).pop() else { return Ok(()) };
    let [at, beside] = study.places()?;
    let shape = Shape { topology: Topology::Router, mtu: 1500, napi: true };
    let lab = Lab::new("reloads", shape)?;
    let device = lab.device().context("the router's host in the middle")?;
    let folder = tempfile::tempdir().context("folder for rule sets")?;
    let files = [COUNT, COUNT + 1].map(|count| folder.path().join(format!("{count}.conf")));
    for (file, count) in files.iter().zip(COUNT..) {
        let text = system.configuration(&rules(count));
        std::fs::write(file, &text).with_context(|| file.display().to_string())?;
    }
    system.install(device, &rules(COUNT), &system.configuration(&rules(COUNT)))?;
    let times = if study.extent == Extent::Smoke { SMOKE } else { TIMES };
    let described = fwlab_results::System::new(
        SYSTEM,
        system.label(),
        Role::Subject,
        "router",
        format!("{COUNT} rules, replaced {times} times"),
    );
    let flood = Flood::new(&lab, &super::load(Family::V4), End::Client, End::Server)?;
    let loader = Loader { device, files, at: beside, times };
    let interrupt = study.interrupt();
    let reloads: Box<dyn Subject + '_> = Box::new(Reloads { loader, flood, at, interrupt });
    study.measure_others(vec![described], &series(), times, ROUND, &mut [reloads])
}

fn rules(count: u32) -> Rules {
    let topology = Topology::Router;
    Rules { count, transport: Udp, family: Family::V4, to: End::Server, topology }
}

fn series() -> Series {
    Series {
        title: TITLE.to_owned(),
        load: fwlab_results::Load { kind: "frames".to_owned(), ..fwlab_results::Load::default() },
        quantity: Quantity {
            name: "frames lost".to_owned(),
            unit: "frames".to_owned(),
            better: Better::Lower,
            additive: false,
        },
        dimension: None,
        points: Vec::new(),
    }
}

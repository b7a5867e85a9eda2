//! A system in a network of its own, for searches. The mode is queue, in which a slow system loses
//! frames.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fwlab_load::raw::flood::{self, Flood, PROBE, Pace};
use fwlab_load::raw::load::Load;
use fwlab_net::family::Family;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::napi;
use fwlab_net::placement::{self, Placement};
use fwlab_net::rules::Rules;
use fwlab_net::system::System;
use fwlab_net::topology::{End, Lab, Shape, Topology};
use fwlab_net::transport::Transport;

use super::filters::Filter;
use super::{Besides, Measurer, Order, Phase, Site, Trial};
use crate::ceiling::{self, USABLE_SHARE};

/// The MTU of cables in bytes, unless frames are longer.
const CABLE: u32 = 1500;

/// The longest delay between a signal and the end of a pause.
const TICK: Duration = Duration::from_millis(50);

/// The CPUs of generator and firewall.
#[derive(Debug, Clone, Copy)]
pub struct Cpus {
    /// The CPU and priority of generator and sink.
    pub at: Placement,
    device: usize,
}

impl Cpus {
    /// Chooses the first CPU of this process for the load, and the last for the firewall.
    ///
    /// # Errors
    /// Fails if there is only one CPU. The generator would wait for the firewall, and no frame
    /// would be lost.
    pub fn choose() -> anyhow::Result<Cpus> {
        let cpus = placement::cpus()?;
        let [first, .., last] = cpus[..] else {
            bail!("a search needs two CPUs, one of them for the firewall");
        };
        Ok(Cpus { at: Placement { cpu: first, priority: 1 }, device: last })
    }
}

/// Returns the highest rate that a search may offer, in frames a second: slightly below the
/// generator's over a cable.
///
/// # Errors
/// Fails if the network of the cable cannot be made, or if the frames do not come through.
fn most(load: &Load, cpus: Cpus) -> anyhow::Result<f64> {
    let mtu = load.size.single().map_or(0, |size| size.saturating_sub(18)).max(CABLE);
    let lab = Lab::new("search-cable", Shape { mtu, ..shape(Topology::Direct) })?;
    let mut flood = Flood::new(&lab, load, End::Client, End::Server)?;
    Ok((flood.ceiling(ceiling::FRAMES, cpus.at)? * USABLE_SHARE).floor())
}

/// Makes the network of a system, with cables of `mtu` bytes.
///
/// # Errors
/// Fails if the network cannot be made.
pub fn lab(system: &dyn System, mtu: u32) -> anyhow::Result<Lab> {
    Lab::new("search", Shape { mtu, ..shape(system.topology(Topology::Router)) })
}

pub(super) fn shape(topology: Topology) -> Shape {
    Shape { topology, mtu: CABLE, napi: true }
}

/// A system on its host.
pub(super) struct Installed<'l> {
    pub lab: &'l Lab,
    pub system: &'l dyn System,
    pub rules: Rules,
    configuration: String,
    /// The NAPI threads that process packets on the firewall's CPU.
    threads: Vec<u32>,
}

impl<'l> Installed<'l> {
    /// Installs a system with the rules of a filter, and gives the firewall a CPU.
    ///
    /// # Errors
    /// Fails if the system is a proxy, cannot translate addresses as the filter asks, or cannot be
    /// installed.
    pub fn new(
        lab: &'l Lab,
        system: &'l dyn System,
        filter: Filter,
        (transport, family): (Transport, Family),
        cpus: Cpus,
    ) -> anyhow::Result<Installed<'l>> {
        ensure!(
            system.topology(Topology::Router) != Topology::Proxy,
            "{}: fwlab search cannot test proxies",
            system.name()
        );
        let topology = lab.shape().topology;
        let rules = Rules { count: filter.rules, transport, family, to: End::Server, topology };
        let mut configuration = system.configuration(&rules);
        if filter.nat {
            let translation = system.translation(&rules);
            configuration +=
                &translation.context("no address translation here: leave out --nat")?;
        }
        let mut threads = Vec::new();
        if let Some(device) = lab.device() {
            // processes of the system share the CPU with the kernel's threads
            let place = Placement { cpu: cpus.device, priority: 0 };
            place.run(|| system.install(device, &rules, &configuration))??;
            let legs = [End::Client, End::Server].map(End::leg);
            threads = napi::give_threads(device, &legs, cpus.device)?;
        }
        Ok(Installed { lab, system, rules, configuration, threads })
    }

    /// Returns the description of the system for results.
    pub fn described(&self) -> fwlab_results::System {
        let Installed { system, rules, configuration, .. } = self;
        let topology = rules.topology.to_string();
        let mut described = fwlab_results::System::new(
            system.name(),
            system.label(),
            system.role(),
            &topology,
            configuration.clone(),
        );
        described.rules = Some(rules.count.into());
        described.hooks = system.hooks(rules.topology);
        described
    }

    /// Resets the system after `seconds`.
    fn reset_after(&self, seconds: f64, interrupt: &Interrupt) -> anyhow::Result<()> {
        pause(seconds, interrupt);
        interrupt.check()?;
        let device = self.lab.device().context("no host between client and server")?;
        self.system.restart(device, &self.rules, &self.configuration).context("reset")
    }
}

/// An installed system that passed the functional check, with a generator and a sink.
pub(super) struct Network<'i> {
    installed: &'i Installed<'i>,
    flood: Flood<'i>,
    at: Placement,
    interrupt: Interrupt,
}

impl<'i> Network<'i> {
    /// Checks that the system passes and blocks the frames it should, and opens the load's flows if
    /// it is stateful.
    ///
    /// # Errors
    /// Fails if the system forwards no frames, or if the functional check fails.
    pub fn new(
        installed: &'i Installed<'i>,
        load: &Load,
        at: Placement,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Network<'i>> {
        let Installed { lab, system, .. } = *installed;
        ensure!(
            system.takes(None, load.transport),
            "{}: does not forward the generator's frames over {}",
            system.name(),
            load.transport
        );
        let flood = Flood::new(lab, load, End::Client, End::Server)?;
        let mut network = Network { installed, flood, at, interrupt: interrupt.clone() };
        network.check()?;
        if system.keeps_states() {
            network.flood.answer(lab.next_link(End::Server, End::Client), at)?;
        }
        Ok(network)
    }

    /// Checks that frames to port 9 pass, and that frames to the last blocked port do not.
    fn check(&mut self) -> anyhow::Result<()> {
        let open = self.flood.probe(9, PROBE, self.at)?;
        ensure!(
            open == PROBE,
            "only {open} of {PROBE} frames to port 9 came through, although no rule blocks it"
        );
        let filters = self.installed.system.filters();
        if let Some(port) = self.installed.rules.ports().last().filter(|_| filters) {
            let came = self.flood.probe(port, 0, self.at)?;
            ensure!(
                came == 0,
                "{came} of {PROBE} frames to port {port} came through, although a rule blocks it"
            );
        }
        Ok(())
    }

    /// Does a trial, with a reset in the middle if `besides` asks for one. Fails if the reset is
    /// not done before the trial ends.
    fn send(&mut self, pace: &Pace, besides: Besides) -> anyhow::Result<flood::Trial> {
        let seconds = match besides {
            Besides::Nothing => return self.flood.trial(pace, self.at, &self.interrupt),
            Besides::Reset(seconds) => seconds,
            Besides::Hold
            | Besides::TearDown(_)
            | Besides::Forbidden(_)
            | Besides::Fragments(_)
            | Besides::Flood(..)
            | Besides::Pages(_) => {
                bail!("a trial of frames has no connections")
            }
        };
        let Network { installed, flood, at, interrupt, .. } = self;
        let (trial, after) = thread::scope(|scope| {
            let reset = || installed.reset_after(seconds, interrupt).map(|()| Instant::now());
            let reset = scope.spawn(reset);
            let trial = flood.trial(pace, *at, interrupt);
            let ended = Instant::now();
            let reset = reset.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            reset.map(|done| (trial, done.saturating_duration_since(ended)))
        })?;
        ensure!(
            after.is_zero(),
            "the reset ended {:.3} s after the trial: use longer trials (--seconds)",
            after.as_secs_f64()
        );
        let trial = trial?;
        self.check().context("after the reset")?;
        Ok(trial)
    }
}

/// Converts a trial of the generator to a trial of a search.
pub(super) fn frames_of(trial: &flood::Trial) -> Trial {
    let missing = trial.missing;
    let last_loss = missing.last.and_then(|last| last.checked_sub(missing.turn));
    Trial {
        sent: trial.progress.sent,
        received: received(trial.progress.sent, trial.counts.frames, trial.counts.duplicates),
        latency: trial.latency(),
        last_loss: last_loss.map(|after| after.as_secs_f64()),
        gap: missing.gap,
        ..Trial::default()
    }
}

/// Returns the number of received frames. Duplicates do not count, unless there are more frames
/// than were sent: that shows a device that reflects frames.
pub(super) fn received(sent: u64, frames: u64, duplicates: u64) -> u64 {
    if frames > sent { frames } else { frames.saturating_sub(duplicates) }
}

impl Measurer for Network<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let pace = pace(order.phases)?;
        let busy = napi::time(&self.installed.threads)?;
        let trial = self.send(&pace, order.besides)?;
        let busy = napi::time(&self.installed.threads)?.saturating_sub(busy).as_secs_f64();
        let has_threads = !self.installed.threads.is_empty();
        let busy = has_threads.then(|| (busy / trial.seconds().max(1e-9)).min(1.0));
        Ok(Trial { busy, ..frames_of(&trial) })
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.interrupt);
    }

    fn reset(&self) -> Option<&str> {
        self.installed.system.reset()
    }
}

/// Returns the pace of frames in one phase or two.
pub(super) fn pace(phases: &[Phase]) -> anyhow::Result<Pace> {
    let steady = |phase: &Phase| -> anyhow::Result<(f64, Duration)> {
        let duration = Duration::try_from_secs_f64(phase.seconds).context("a trial's length")?;
        Ok((phase.rate, duration))
    };
    match phases {
        [only] => steady(only).map(|(rate, duration)| Pace::steady(rate, duration)),
        [first, second] => {
            let ((rate, duration), (then, rest)) = (steady(first)?, steady(second)?);
            Ok(Pace::steady(rate, duration).then(then, rest))
        }
        _ => {
            bail!(
                "the generator changes its rate at most once in a trial, not {} times",
                phases.len()
            )
        }
    }
}

/// A system on its host, as a place for searches with several kinds of frames.
pub(super) struct Built<'l> {
    pub installed: Installed<'l>,
    pub cpus: Cpus,
    pub interrupt: Interrupt,
}

impl Site for Built<'_> {
    fn most(&mut self, load: &Load) -> anyhow::Result<f64> {
        most(load, self.cpus)
    }

    fn measurer(&mut self, load: &Load) -> anyhow::Result<Box<dyn Measurer + '_>> {
        Ok(Box::new(Network::new(&self.installed, load, self.cpus.at, &self.interrupt)?))
    }
}

/// Waits for `seconds`, or until a signal comes.
pub(super) fn pause(seconds: f64, interrupt: &Interrupt) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while !interrupt.came() && Instant::now() < end {
        thread::sleep(end.saturating_duration_since(Instant::now()).min(TICK));
    }
}

//! A system in a network of its own, for searches: in the mode queue, where it can lose something.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::{Measurer, Order, Trial};
use crate::interrupt::Interrupt;
use crate::napi;
use crate::placement::{self, Placement};
use crate::raw::flood::{Flood, Pace};
use crate::raw::frame::Transport;
use crate::raw::load::{Engine, Load, Sizes, Vary};
use crate::results::{self, Role};
use crate::system::{Rules, System};
use crate::topology::{End, Family, Lab, Shape, Topology};

/// Frames that show how fast the generator is, and that a system does what it should.
const CEILING: u64 = 1 << 19;
const PROBE: u64 = 64;

/// Of the generator's speed: above it, what is lost may be the generator's.
const BELIEVED: f64 = 0.8;

/// How long a pause goes on after a signal.
const TICK: Duration = Duration::from_millis(50);

/// Where generator and firewall run.
#[derive(Debug, Clone, Copy)]
pub struct Cpus {
    at: Placement,
    device: usize,
}

impl Cpus {
    /// The first and the last of those there are.
    ///
    /// # Errors
    /// There is only one: nothing would be lost, as the generator would wait for the firewall.
    pub fn choose() -> anyhow::Result<Cpus> {
        let cpus = placement::cpus()?;
        let [first, .., last] = cpus[..] else {
            bail!("a search needs two CPUs, one of them for the firewall");
        };
        Ok(Cpus { at: Placement { cpu: first, priority: 1 }, device: last })
    }
}

/// Frames of this size, of 256 flows.
pub fn load(size: u32, ip: Family) -> Load {
    Load {
        engine: Engine::Xdp,
        transport: Transport::Udp,
        ip,
        size: Sizes::one(size as usize),
        sources: Vary::Fixed,
        destinations: Vary::Fixed,
        source_ports: Vary::Count(256),
        destination_ports: Vary::Fixed,
        seed: 1,
    }
}

/// The most frames a second that searches offer: what the generator gives to a cable, and somewhat less.
///
/// # Errors
/// There can be no cable.
pub fn most(load: &Load, cpus: Cpus) -> anyhow::Result<f64> {
    let lab = Lab::new("search-cable", shape(Topology::Direct))?;
    let mut flood = Flood::new(&lab, load, End::Client, End::Server)?;
    Ok((flood.ceiling(CEILING, cpus.at)? * BELIEVED).floor())
}

/// A network for a system.
///
/// # Errors
/// It cannot be made.
pub fn lab(system: &dyn System) -> anyhow::Result<Lab> {
    Lab::new("search", shape(system.topology(Topology::Router)))
}

fn shape(topology: Topology) -> Shape {
    Shape { topology, mtu: 1500, napi: true }
}

/// A system that is there and does what it should.
pub struct Network<'l> {
    flood: Flood<'l>,
    at: Placement,
    interrupt: Interrupt,
    /// What it is, for results.
    pub described: results::System,
}

impl<'l> Network<'l> {
    /// Builds a system with so many rules, and sees whether it lets pass what it should and drops what it
    /// should.
    ///
    /// # Errors
    /// It cannot be built, forwards no frames, or does something else.
    pub fn new(
        lab: &'l Lab,
        system: &dyn System,
        count: u32,
        load: &Load,
        cpus: Cpus,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Network<'l>> {
        ensure!(system.takes(None, load.transport), "frames do not get through a proxy");
        let topology = lab.shape().topology;
        let rules =
            Rules { count, transport: load.transport, family: load.ip, to: End::Server, topology };
        let configuration = system.configuration(&rules);
        if let Some(device) = lab.device() {
            system.install(device, &rules, &configuration)?;
            napi::give_threads(device, &[End::Client.leg(), End::Server.leg()], cpus.device)?;
        }
        let mut flood = Flood::new(lab, load, End::Client, End::Server)?;
        let open = flood.probe(9, PROBE, cpus.at)?;
        ensure!(open == PROBE, "port 9 is open, but {open} of {PROBE} frames came through");
        if let Some(port) = rules.ports().last().filter(|_| system.role() == Role::Subject) {
            let came = flood.probe(port, PROBE, cpus.at)?;
            ensure!(came == 0, "port {port} is blocked, but {came} of {PROBE} frames came through");
        }
        if system.keeps_states() {
            flood.answer(lab.next_link(End::Server, End::Client), cpus.at)?;
        }
        let name = system.name();
        let topology = topology.to_string();
        let mut described =
            results::System::new(name, system.label(), system.role(), &topology, configuration);
        described.rules = Some(count.into());
        described.hooks = system.hooks(rules.topology);
        Ok(Network { flood, at: cpus.at, interrupt: interrupt.clone(), described })
    }
}

impl Measurer for Network<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let (&[phase], None) = (order.phases, order.reset) else {
            bail!("the generator changes no rate and resets nothing within a trial");
        };
        let duration = Duration::try_from_secs_f64(phase.seconds).context("a trial's length")?;
        let trial =
            self.flood.trial(&Pace::steady(phase.rate, duration), self.at, &self.interrupt)?;
        let sent = trial.progress.sent;
        // More than was sent is what reflects, and must be seen; otherwise a frame counts once.
        let received =
            if trial.counts.frames > sent { trial.counts.frames } else { trial.received() };
        Ok(Trial { sent, received, latency: trial.latency(), ..Trial::default() })
    }

    fn wait(&mut self, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while !self.interrupt.came() && Instant::now() < end {
            thread::sleep(end.saturating_duration_since(Instant::now()).min(TICK));
        }
    }
}

//! `fwlab measure`: the cost of a packet in each system, beside a cable, a plain router and the
//! same router again.

mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use fwlab_agent::Agents;
use fwlab_load::raw::load::{Engine, KERNEL_MTU, Load, Sizes};
use fwlab_load::seconds;
use fwlab_load::sockets::Talk;
use fwlab_load::wire::{Interfaces, Wire};
use fwlab_net::family::Family;
use fwlab_net::interrupt::{Interrupt, Interrupted};
use fwlab_net::placement::{self, Placement};
use fwlab_net::rules::{MOST_RULES, Rules};
use fwlab_net::system::{self, System};
use fwlab_net::topology::{End, Topology};
use fwlab_net::traffic::{ServerAddress, TrafficKind};
use fwlab_net::transport::Transport;
use fwlab_net::{environment, host};
use fwlab_results::{Better, Dimension, Mode, Point, Quantity, Run, Series};

use crate::plan::{CHECK_SIZE, Plan};
use crate::testbed::{Candidate, Ends, Testbed};
use crate::{ceiling, progress, rounds};

/// The mode as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// everything runs on one CPU, one packet after the other: measures the cost of a packet
    Cost,
    /// the firewall has a CPU and a queue of its own: measures rate and loss
    Queue,
    /// between two network interfaces of this machine, with any device in between
    Wire,
}

/// The flags of `fwlab measure`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Systems to measure, by default all installed firewalls that support the load
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    systems: Vec<String>,
    /// Topology of the systems: router, bridge, three-legged or proxy
    #[arg(long, value_enum, default_value = "router")]
    topology: Topology,
    /// Number of rules, each of which blocks a port; several numbers are measured one after the
    /// other
    #[arg(long, value_name = "NUMBER,...", value_delimiter = ',', default_value = "100")]
    rules: Vec<u32>,
    /// Protocol of the blocked ports, by default that of the frames
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    rules_transport: Option<Transport>,
    /// Traffic of the client's sockets instead of the generator's frames, in the mode cost
    #[arg(long, value_enum, value_name = "KIND")]
    traffic: Option<TrafficKind>,
    /// Number of simultaneous clients, 1 to 1000, with --traffic
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
    /// End that sends the load
    #[arg(long, value_enum, value_name = "END", default_value = "client")]
    from: End,
    /// End that receives the load, and whose ports the rules block
    #[arg(long, value_enum, value_name = "END", default_value = "server")]
    to: End,
    /// Send every other frame in the opposite direction, in the mode cost
    #[arg(long, conflicts_with = "traffic")]
    both_ways: bool,
    /// MTU of the cables in bytes, 1280 to 9000
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
    mtu: u32,
    #[command(flatten)]
    load: Load,
    /// Number of rounds, 1 to 10000; each round measures every system once
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Duration of a trial in seconds, 0.01 to 3600
    #[arg(long, default_value_t = 0.1, value_parser = seconds)]
    seconds: f64,
    /// Placement of generator, firewall and sink: cost by default, wire between agents
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Frames per second in the modes queue and wire; full speed by default
    #[arg(long)]
    rate: Option<f64>,
    #[command(flatten)]
    interfaces: Interfaces,
    #[command(flatten)]
    agents: Agents,
    /// Result file to write after each round, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures, and prints and writes the result, also after an interruption.
///
/// # Errors
/// Fails if the flags contradict each other, if a system cannot be measured, if the result cannot
/// be written, or if a signal came.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.check()?;
    let interrupt = Interrupt::watch()?;
    host::sweep()?;
    let watch = fwlab_results::Watch::begin();
    let mut run = Run::begin(arguments.mode(), environment::here());
    run.series.push(arguments.series());
    let outcome = interrupt.or_interrupted(measure_points(arguments, &mut run, &watch, &interrupt));
    (run.seconds, run.environment.steal) = watch.end();
    match &outcome {
        Ok(()) => run.complete = true,
        Err(error) => run.incomplete_because = Some(format!("{error:#}")),
    }
    if run.series.iter().any(|series| series.points.iter().any(|point| !point.samples.is_empty())) {
        print!("{}", table::text(&run));
    }
    arguments.write(&run)?;
    outcome
}

/// Measures a point for each number of rules. All systems of a point exist at the same time.
fn measure_points(
    arguments: &Arguments,
    run: &mut Run,
    watch: &fwlab_results::Watch,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let counts = if arguments.mode() == Mode::Wire { vec![0] } else { arguments.rules.clone() };
    for &count in &counts {
        let candidates = arguments.candidates(count)?;
        let plan = arguments.plan()?;
        let mut labs = Vec::new();
        for candidate in &candidates {
            interrupt.check()?;
            labs.push(candidate.lab()?);
        }
        let mut testbeds = Vec::new();
        for (candidate, lab) in candidates.iter().zip(&labs) {
            interrupt.check()?;
            match Testbed::new(candidate, lab.as_ref(), &plan, interrupt) {
                Ok(testbed) => testbeds.push(testbed),
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) if candidate.may_be_skipped() && arguments.systems.is_empty() => {
                    eprintln!("fwlab: {} is left out: {error:#}", candidate.name());
                }
                Err(error) => return Err(error.context(candidate.name())),
            }
        }
        for testbed in &testbeds {
            testbed.describe(run)?;
        }
        let ceiling = testbeds.iter_mut().find_map(Testbed::ceiling).transpose()?;
        run.series[0].points.push(Point {
            at: (counts.len() > 1).then_some(f64::from(count)),
            ceiling,
            void: None,
            samples: Vec::new(),
        });
        let mut subjects: Vec<Box<dyn rounds::Subject + '_>> = Vec::new();
        for testbed in testbeds {
            subjects.push(Box::new(testbed));
        }
        let progress = progress::of_rounds(format!("{count} rules"), arguments.rounds);
        let index = run.series[0].points.len() - 1;
        let seed = arguments.load.seed;
        rounds::run(&mut subjects, arguments.rounds, seed, interrupt, |samples, done| {
            let point = &mut run.series[0].points[index];
            point.samples.extend(samples);
            progress.set_position(done.into());
            (run.seconds, run.environment.steal) = watch.end();
            run.incomplete_because = Some(format!("{done} of {} rounds", arguments.rounds));
            arguments.write(run)
        })?;
        let void = ceiling::void(run, &run.series[0], &run.series[0].points[index]);
        run.series[0].points[index].void = void;
    }
    run.incomplete_because = None;
    Ok(())
}

impl Arguments {
    fn check(&self) -> anyhow::Result<()> {
        self.check_wire()?;
        ensure!(
            self.topology != Topology::Direct,
            "--topology direct has no device to measure; the mode cost always measures the cable, \
             too"
        );
        ensure!(self.from != self.to, "--from and --to must be different ends");
        ensure!(
            ![self.from, self.to].contains(&End::Dmz) || self.topology == Topology::ThreeLegged,
            "only the topology three-legged has a dmz: add --topology three-legged"
        );
        ensure!(
            self.traffic.is_none() || self.from == End::Client,
            "--from: with --traffic the client sends the load; choose the other end by --to"
        );
        ensure!(
            !self.both_ways || self.mode() == Mode::Cost,
            "--both-ways works only in the mode cost: leave out --mode"
        );
        for &count in &self.rules {
            ensure!(count <= MOST_RULES, "--rules: at most {}", MOST_RULES);
        }
        ensure!(
            self.rate.is_none() || self.mode() != Mode::Cost,
            "--rate: the mode cost sends at full speed; add --mode queue or --mode wire"
        );
        if let Some(rate) = self.rate {
            ensure!((1.0..=1e9).contains(&rate), "--rate must be 1 to 1000000000 frames a second");
        }
        if let Some(kind) = self.traffic {
            ensure!(
                self.mode() == Mode::Cost || self.agents.are_given(),
                "--traffic works only in the mode cost, or between agents: leave out --mode"
            );
            ensure!(
                kind.takes(self.load.transport),
                "--traffic {} does not support {}: write --transport {}",
                kind.name(),
                self.load.transport,
                self.load.transport.other()
            );
            ensure!(self.load.size.single().is_some(), "--traffic needs one --size, not imix");
        }
        if self.mode() == Mode::Queue {
            let cpus = placement::cpus()?.len();
            ensure!(cpus >= 2, "--mode queue needs two CPUs, and this process may use {cpus}");
        }
        ensure!(
            self.mtu <= KERNEL_MTU
                || self.traffic.is_some()
                || self.load.engine == Engine::Packet
                || self.mode() == Mode::Wire,
            "--mtu: the engine xdp makes packets of up to {KERNEL_MTU} bytes: add --engine packet"
        );
        for program in self.traffic.map_or(&[][..], TrafficKind::programs) {
            // agents look for the programs on their own machines
            let is_there = self.agents.are_given() || system::is_there(program);
            ensure!(is_there, "--traffic: no such program: {program}: install it");
        }
        ensure!(self.clients == 1 || self.traffic.is_some(), "--clients needs --traffic");
        for name in &self.systems {
            let system = system::named(name).map_err(anyhow::Error::msg)?;
            self.ensure_of_use(&*system)?;
        }
        Ok(())
    }

    /// Checks that the system fits into the topology, and lets the load through.
    fn ensure_of_use(&self, system: &dyn System) -> anyhow::Result<()> {
        let name = system.name();
        ensure!(
            system.supports(self.topology),
            "{name}: not available in the topology {}",
            self.topology
        );
        let traffic = self.traffic.map_or("frames", TrafficKind::name);
        ensure!(
            system.takes(self.traffic, self.load.transport),
            "{name}: does not forward {traffic} over {}: choose other --traffic or --transport",
            self.load.transport
        );
        Ok(())
    }

    fn mode(&self) -> Mode {
        match self.mode {
            Some(ModeName::Queue) => Mode::Queue,
            Some(ModeName::Wire) => Mode::Wire,
            None if self.agents.are_given() => Mode::Wire,
            Some(ModeName::Cost) | None => Mode::Cost,
        }
    }

    /// Checks the flags of the mode wire and of agents.
    fn check_wire(&self) -> anyhow::Result<()> {
        if !self.agents.are_given() {
            let has_interfaces = self.interfaces.names().is_some();
            ensure!(
                self.mode() == Mode::Wire || !has_interfaces,
                "--client-if and --server-if need the mode wire: add --mode wire"
            );
            ensure!(
                self.mode() != Mode::Wire || has_interfaces,
                "--mode wire needs two ends: add --client-if and --server-if, or --client-agent \
                 and --server-agent"
            );
            return Ok(());
        }
        ensure!(
            self.mode() == Mode::Wire,
            "--client-agent works only in the mode wire: leave out --mode"
        );
        ensure!(
            self.systems.is_empty(),
            "--systems: between agents fwlab measures the existing device: leave out --systems"
        );
        ensure!(
            [self.from, self.to] == [End::Client, End::Server],
            "--from and --to: between agents the client sends to the server: leave them out"
        );
        ensure!(
            self.traffic.is_none() == self.interfaces.names().is_some(),
            "--client-agent needs either --traffic, or --client-if and --server-if for frames"
        );
        ensure!(
            !self.load.has_lists(),
            "list: and random-list: an agent reads no files: choose another variation"
        );
        Ok(())
    }

    /// Returns the systems, with cable, plain routers or bridges and placebo first.
    fn candidates(&self, count: u32) -> anyhow::Result<Vec<Candidate>> {
        if self.agents.are_given() {
            let (agents, interfaces) = (self.agents.clone(), self.interfaces.clone());
            return Ok(vec![Candidate::Apart(Ends { agents, interfaces })]);
        }
        if self.interfaces.names().is_some() {
            return Ok(vec![Candidate::Wire(Wire::from_interfaces(&self.interfaces)?)]);
        }
        let rules = Rules {
            count,
            transport: self.rules_transport.unwrap_or(self.load.transport),
            family: self.load.ip,
            to: self.to,
            topology: self.topology,
        };
        let plain = if self.topology == Topology::Bridge { "bridge" } else { "router" };
        let candidate = |system: Box<dyn System>, is_placebo: bool| {
            Candidate::new(system, is_placebo, rules, self.mode() == Mode::Queue).with_mtu(self.mtu)
        };
        let named = |name: &str| system::named(name).map_err(anyhow::Error::msg);
        let mut candidates = Vec::new();
        if self.mode() == Mode::Cost {
            candidates.push(candidate(named("null")?, false));
        }
        candidates.extend([candidate(named(plain)?, false), candidate(named(plain)?, true)]);
        for system in system::all() {
            let name = system.name();
            let wanted = match &self.systems[..] {
                [] => system.filters() && self.ensure_of_use(&*system).is_ok(),
                some => some.iter().any(|one| one == name),
            };
            if !wanted || candidates.iter().any(|candidate| candidate.name() == name) {
                continue;
            }
            match system::missing(&*system) {
                Some(program) if self.systems.is_empty() => {
                    eprintln!("fwlab: {name} is left out: no such program: {program}");
                }
                Some(program) => bail!("{name}: no such program: {program}: install it"),
                None => candidates.push(candidate(system, false)),
            }
        }
        Ok(candidates)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let cpus = placement::cpus()?;
        let (first, last) = cpus.first().zip(cpus.last()).context("no CPU")?;
        let cpu = if self.mode() == Mode::Queue { *first } else { *last };
        if let [others @ .., _] = &cpus[..]
            && !others.is_empty()
        {
            // keeps this thread away from the CPU of trials
            placement::pin(nix::unistd::Pid::from_raw(0), others)?;
        }
        Ok(Plan {
            at: Placement { cpu, priority: 1 },
            device_cpu: *last,
            load: self.frames(),
            duration: Duration::from_secs_f64(self.seconds),
            rate: self.rate,
            mode: self.mode(),
            ends: [self.from, self.to],
            both_ways: self.both_ways,
            talk: self.talk(),
        })
    }

    /// Returns the load of frames. With sockets, returns the frames of the functional check.
    fn frames(&self) -> Load {
        let mut load = self.load.clone();
        if self.traffic.is_some() {
            load.size = Sizes::one(CHECK_SIZE);
            if self.mtu > KERNEL_MTU {
                load.engine = Engine::Packet;
            }
        }
        load
    }

    fn talk(&self) -> Option<Talk> {
        Some(Talk {
            kind: self.traffic?,
            transport: self.load.transport,
            family: self.load.ip,
            size: self.load.size.single()? as usize,
            duration: Duration::from_secs_f64(self.seconds),
            clients: self.clients.into(),
            active: false,
            to: self.to,
            way: ServerAddress::Straight,
        })
    }

    fn series(&self) -> Series {
        let frames = match self.mode() {
            Mode::Cost => ("time per packet", "ns"),
            Mode::Queue | Mode::Wire => ("forwarding rate", "frames/s"),
        };
        let (name, unit) = self.traffic.map_or(frames, TrafficKind::quantity);
        let is_time = unit == "ns";
        let rules = Dimension { name: "rules".to_owned(), unit: String::new() };
        Series {
            title: match (self.traffic, is_time) {
                (Some(kind), _) => format!("{} ({})", name, kind.name()),
                (None, true) => "Cost of a packet".to_owned(),
                (None, false) => "Frames that come through".to_owned(),
            },
            load: fwlab_results::Load {
                kind: self.traffic.map_or("raw", TrafficKind::name).to_owned(),
                protocol: Some(self.load.transport.to_string()),
                family: Some(if self.load.ip == Family::V4 { "inet" } else { "inet6" }.to_owned()),
                size: self.load.size.single().map(u64::from),
                rate: self.rate,
                flows: if self.traffic.is_some() { None } else { self.load.flows() },
                parallel: self.traffic.map(|_| self.clients.into()),
                seconds: self.seconds,
                details: self.details(),
            },
            quantity: Quantity {
                name: name.to_owned(),
                unit: unit.to_owned(),
                better: if is_time { Better::Lower } else { Better::Higher },
                additive: is_time,
            },
            dimension: (self.rules.len() > 1).then_some(rules),
            points: Vec::new(),
        }
    }

    /// Returns the remaining parameters that a repetition needs.
    fn details(&self) -> String {
        let end = |end: End| match end {
            End::Client => "client",
            End::Server => "server",
            End::Dmz => "dmz",
        };
        let both = if self.both_ways { " and back" } else { "" };
        let way = format!("from {} to {}{both}", end(self.from), end(self.to));
        match self.traffic.map(TrafficKind::programs) {
            None => format!("{way}, {}", self.load.details()),
            Some([]) => way,
            Some(programs) => format!("{way}, by {}", programs.join(" and ")),
        }
    }

    fn write(&self, run: &Run) -> anyhow::Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        run.write(path).with_context(|| path.display().to_string())
    }
}

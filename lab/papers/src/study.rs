//! The common part of all papers: blocks of systems that are set up together and measured in
//! rounds, the result that grows with each round, and the progress display.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::flood::Flood;
use fwlab_load::raw::load::{Engine, Load, Sizes, Vary};
use fwlab_load::sockets::Talk;
use fwlab_method::ceiling;
use fwlab_method::plan::{CHECK_SIZE, Plan};
use fwlab_method::progress::{self, ProgressBar};
use fwlab_method::rounds::{self, Measured, Subject};
use fwlab_method::testbed::{Candidate, Testbed};
use fwlab_net::family::Family;
use fwlab_net::interrupt::{Interrupt, Interrupted};
use fwlab_net::placement::{self, Placement};
use fwlab_net::rules::Rules;
use fwlab_net::system::{self, System};
use fwlab_net::topology::{End, Lab, Shape, Topology};
use fwlab_net::transport::Transport;
use fwlab_results::{Mode, Point, Quantity, Role, Run, Series};
use nix::unistd::Pid;

use super::StudyOptions;

/// Estimated time to build a network and to load and check its rules.
const SET_UP: Duration = Duration::from_millis(600);

/// Estimated seconds for a frame that makes a state before the measurement.
const WARMING: f64 = 4e-6;

/// Returns the estimated seconds for `frames` such frames.
fn warming(frames: u64) -> f64 {
    frames as f64 * WARMING
}

/// Estimated time of a workload.
const WORKLOAD: Duration = Duration::from_millis(300);

/// Number of frames that measure the generator's speed.
const CEILING: u64 = 1 << 19;

/// Title of the series of memory.
pub(crate) const MEMORY: &str = "Memory of states";

/// Interval between writes of the result. A killed run keeps the last written result.
const WRITING: Duration = Duration::from_secs(5);

/// Time of a trial in addition to its duration.
const BESIDES: Duration = Duration::from_millis(50);

/// Additional time of a trial that waits for frames under way.
const STRAGGLERS: Duration = Duration::from_millis(350);

/// The extent of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// A few measurements, to see that everything works.
    Smoke,
    /// Enough measurements for every finding.
    Quick,
    /// Every measurement.
    Full,
}

impl Extent {
    /// Returns the description of the extent for reports.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Extent::Smoke => "a few cells and very short trials, to test the code only",
            Extent::Quick => "fewer cells and shorter trials (--quick)",
            Extent::Full => "every cell, with shorter trials and more of them (--full)",
        }
    }

    /// Returns the default number of rounds, and the default seconds of a trial.
    fn trials(self) -> (u32, f64) {
        match self {
            Extent::Smoke => (1, 0.02),
            Extent::Quick => (3, 0.1),
            Extent::Full => (5, 0.25),
        }
    }
}

/// Systems that are measured in the same rounds, and their common network and rules.
pub(crate) struct Block {
    /// The topology of the network.
    pub topology: Topology,
    /// Number of rules, each of which blocks a port.
    pub count: u32,
    /// Protocol of the blocked ports.
    pub transport: Transport,
    /// Address family of the traffic.
    pub family: Family,
    /// MTU of the links in bytes.
    pub mtu: u32,
    /// The systems, in addition to the cable, the plain router or bridge, and the placebo.
    pub systems: Vec<Box<dyn System>>,
    /// The frames to send, or None if sockets make the traffic.
    pub frames: Option<Load>,
    /// Number of frames sent before the measurement, so that filters with states have created them.
    pub warm: u64,
    /// True if the devices use segmentation, checksum and receive offloads.
    pub offloads: bool,
}

impl Block {
    /// Returns the rules of the block.
    fn rules(&self) -> Rules {
        let Block { count, transport, family, topology, .. } = *self;
        Rules { count, transport, family, to: End::Server, topology }
    }

    /// Returns a suffix that distinguishes the block's systems from the same systems in other
    /// blocks.
    fn variant(&self, role: Role) -> String {
        let mut text = String::new();
        if role == Role::Subject {
            text += &self.transport.to_string();
        }
        if self.topology != Topology::Router {
            text += &format!("/{}", self.topology);
        }
        if self.family == Family::V6 {
            text += "/inet6";
        }
        if self.mtu != 1500 {
            text += &format!("/{}", self.mtu);
        }
        text
    }
}

/// One measurement of a block: a point of a series, and the work of a trial.
#[derive(Clone)]
pub(crate) struct PlannedPoint {
    /// The series of the point: title, load, quantity and dimension.
    pub series: Series,
    /// The value of the dimension.
    pub at: Option<f64>,
    /// The work of a trial.
    pub work: Work,
}

/// The work of a trial.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// A load of sockets.
    Talk(Talk),
    /// The block's frames at `rate` frames per second, or at the highest possible rate (mode
    /// queue).
    Frames { rate: Option<f64>, seconds: f64 },
    /// The block's frames one after the other; the value is the time of a frame (mode cost).
    Cost { seconds: f64 },
    /// A load of sockets on a link of rate `link`, in the notation of tc(8). The firewall has its
    /// own CPU, and the value is its use of that CPU.
    Cpu { talk: Talk, link: &'static str, value: Cpu },
    /// A workload file, on a network that is prepared for `talk`. The commands run on the first
    /// CPU, the server and the firewall on the last.
    Workload { file: String, talk: Talk },
}

/// The measured use of the firewall's CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cpu {
    /// Nanoseconds per packet.
    Packet,
    /// Idle time in percent.
    Idle,
}

impl Work {
    /// Returns true if the firewall has its own CPU.
    fn has_queue(&self) -> bool {
        matches!(self, Work::Frames { .. } | Work::Cpu { .. })
    }

    fn talk(&self) -> Option<&Talk> {
        match self {
            Work::Talk(talk) | Work::Cpu { talk, .. } | Work::Workload { talk, .. } => Some(talk),
            Work::Frames { .. } | Work::Cost { .. } => None,
        }
    }

    fn duration(&self) -> Duration {
        match self {
            Work::Talk(talk) | Work::Cpu { talk, .. } => talk.duration,
            Work::Frames { seconds, .. } | Work::Cost { seconds } => {
                Duration::from_secs_f64(*seconds)
            }
            Work::Workload { .. } => WORKLOAD,
        }
    }
}

/// Records whether the command line set the rounds and the seconds.
struct Given {
    rounds: bool,
    seconds: bool,
}

/// A repetition in progress.
pub(crate) struct Study {
    run: Run,
    watch: fwlab_results::Watch,
    pub extent: Extent,
    rounds: u32,
    given: Given,
    /// The time of the last write of the result.
    written: Option<Instant>,
    pub seconds: f64,
    wanted: Vec<String>,
    file: Option<PathBuf>,
    interrupt: Interrupt,
    cpus: Vec<usize>,
    progress: ProgressBar,
}

impl Study {
    /// Makes a study without results.
    ///
    /// # Errors
    /// Fails if the list of CPUs cannot be read.
    pub(crate) fn new(
        run: Run,
        watch: fwlab_results::Watch,
        options: &StudyOptions,
        file: Option<PathBuf>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Study> {
        let extent = options.extent();
        let (rounds, seconds) = extent.trials();
        let cpus = placement::cpus()?;
        let title = run.paper.as_ref().map_or(String::new(), |paper| paper.title.clone());
        let progress = progress::of_work(title);
        Ok(Study {
            run,
            watch,
            extent,
            rounds: options.rounds.unwrap_or(rounds),
            given: Given { rounds: options.rounds.is_some(), seconds: options.seconds.is_some() },
            written: None,
            seconds: options.seconds.unwrap_or(seconds),
            wanted: options.systems.clone(),
            file,
            interrupt: interrupt.clone(),
            cpus,
            progress,
        })
    }

    /// Sets the number of rounds, unless the command line did.
    pub(crate) fn set_rounds(&mut self, rounds: u32) {
        if !self.given.rounds {
            self.rounds = rounds;
        }
    }

    /// Sets the seconds of a trial, unless the command line did.
    pub(crate) fn set_seconds(&mut self, seconds: f64) {
        if !self.given.seconds {
            self.seconds = seconds;
        }
    }

    /// Returns the result. If `outcome` is an error, the result has it as the reason for being
    /// incomplete.
    pub(crate) fn end(mut self, outcome: &anyhow::Result<()>) -> Run {
        (self.run.seconds, self.run.environment.steal) = self.watch.end();
        self.run.complete = outcome.is_ok();
        self.run.incomplete_because = outcome.as_ref().err().map(|error| format!("{error:#}"));
        self.run
    }

    /// Returns those of the named systems that the user wants and this machine has. Systems that
    /// are left out are reported and recorded.
    pub(crate) fn systems(&mut self, names: &[&str]) -> Vec<Box<dyn System>> {
        let mut found = Vec::new();
        for name in names {
            if !self.wanted.is_empty() && !self.wanted.iter().any(|wanted| wanted == name) {
                continue;
            }
            match system::named(name) {
                Err(why) => self.leave_out(&why),
                Ok(system) => match system::missing(&*system) {
                    Some(program) => {
                        self.leave_out(&format!("{name}: no such program: {program}"));
                    }
                    None => found.push(system),
                },
            }
        }
        found
    }

    /// Returns two CPUs: one to make frames, and one for other work. They differ if there are two.
    ///
    /// # Errors
    /// Fails if the process may use no CPU.
    pub(crate) fn places(&self) -> anyhow::Result<[Placement; 2]> {
        let (first, last) = self.cpus.first().zip(self.cpus.last()).context("no CPU")?;
        Ok([Placement { cpu: *first, priority: 1 }, Placement { cpu: *last, priority: 0 }])
    }

    /// Returns the interrupt of the run.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Reports and records that something is not measured, once for each text.
    pub(crate) fn leave_out(&mut self, what: &str) {
        let Some(paper) = &mut self.run.paper else { return };
        let text = format!("left out: {what}");
        if !paper.differences.contains(&text) {
            self.progress.suspend(|| eprintln!("fwlab: {text}"));
            paper.differences.push(text);
        }
    }

    /// Measures blocks, each with its cells.
    ///
    /// # Errors
    /// Fails if a system that every block needs cannot be built or measured, or if a signal
    /// arrives.
    pub(crate) fn measure(
        &mut self,
        blocks: Vec<(Block, Vec<PlannedPoint>)>,
    ) -> anyhow::Result<()> {
        if let [others @ .., _] = &self.cpus[..]
            && !others.is_empty()
        {
            // the thread that supervises a trial leaves the trial's CPU alone
            placement::pin(Pid::from_raw(0), others)?;
        }
        let work = |(block, cells): &(Block, Vec<PlannedPoint>)| {
            let trials: f64 = cells.iter().map(|cell| self.trial(cell).as_secs_f64()).sum();
            let subjects = block.systems.len() as f64;
            (subjects + 3.0) * (SET_UP.as_secs_f64() + trials * f64::from(self.rounds))
                + subjects * warming(block.warm)
        };
        let seconds: f64 = blocks.iter().map(work).sum();
        self.progress.inc_length(milliseconds(seconds));
        self.announce();
        for (block, cells) in blocks {
            self.measure_block(block, &cells)?;
        }
        // the next paper may use all CPUs
        placement::pin(Pid::from_raw(0), &self.cpus)
    }

    /// Prints the expected duration of the planned work.
    fn announce(&self) {
        let time = match self.progress.length().unwrap_or(0).div_ceil(60_000) {
            ..=1 => "a minute".to_owned(),
            minutes => format!("{minutes} minutes"),
        };
        let title = self.progress.prefix();
        self.progress.suspend(|| eprintln!("{title}: about {time}"));
    }

    /// Adds the seconds that [`Study::measure_others`] will need in each round to the estimate.
    pub(crate) fn expect_others(&mut self, round: f64) {
        self.progress.inc_length(milliseconds(round * f64::from(self.rounds)));
    }

    /// Measures subjects outside a network, in their own rounds of about `round` seconds each, as a
    /// point of a series.
    ///
    /// # Errors
    /// Fails if a subject cannot be measured, if the result cannot be written, or if a signal
    /// arrives.
    pub(crate) fn measure_others(
        &mut self,
        systems: Vec<fwlab_results::System>,
        series: &Series,
        at: u32,
        round: f64,
        subjects: &mut [Box<dyn Subject + '_>],
    ) -> anyhow::Result<()> {
        for system in systems {
            if self.run.systems.iter().all(|known| known.id != system.id) {
                self.run.systems.push(system);
            }
        }
        let place = self.place(series, Some(at.into()));
        let interrupt = self.interrupt.clone();
        rounds::run(subjects, self.rounds, 1, &interrupt, |samples, _| {
            self.progress.inc(milliseconds(round));
            self.keep(place, samples)
        })
    }

    /// Stores the samples of a round, and writes the result if the last write was long enough ago.
    fn keep(
        &mut self,
        (series, point): (usize, usize),
        samples: Vec<fwlab_results::Sample>,
    ) -> anyhow::Result<()> {
        self.run.series[series].points[point].samples.extend(samples);
        (self.run.seconds, self.run.environment.steal) = self.watch.end();
        self.run.incomplete_because = Some("still running".to_owned());
        let Some(file) = &self.file else { return Ok(()) };
        if self.written.is_some_and(|since| since.elapsed() < WRITING) {
            return Ok(());
        }
        self.run.write(file).with_context(|| file.display().to_string())?;
        self.written = Some(Instant::now());
        Ok(())
    }

    fn trial(&self, cell: &PlannedPoint) -> Duration {
        let waits = matches!(cell.work, Work::Frames { .. });
        cell.work.duration() + if waits { STRAGGLERS } else { BESIDES }
    }

    fn measure_block(&mut self, mut block: Block, cells: &[PlannedPoint]) -> anyhow::Result<()> {
        let Some(first) = cells.first() else { return Ok(()) };
        let mut plan = self.plan(&block, first)?;
        // each service needs a thread for each client
        let talks = cells.iter().filter_map(|cell| cell.work.talk());
        let clients = talks.map(|talk| talk.clients).max().unwrap_or(1);
        if let Some(talk) = &mut plan.talk {
            talk.clients = clients;
        }
        let queue = first.work.has_queue();
        let plain = if block.topology == Topology::Bridge { "bridge" } else { "router" };
        let named = |name| system::named(name).map_err(anyhow::Error::msg);
        let mut candidates = Vec::new();
        for (name, is_placebo) in [("null", false), (plain, false), (plain, true)] {
            // a cable has no queue in front of it
            if !(queue && name == "null") {
                candidates.push(Candidate::new(named(name)?, is_placebo, block.rules(), queue));
            }
        }
        for system in std::mem::take(&mut block.systems) {
            candidates.push(Candidate::new(system, false, block.rules(), queue));
        }
        let ceiling = if block.frames.is_some() { Some(self.ceiling(&plan)?) } else { None };
        let mut labs = Vec::new();
        for candidate in &candidates {
            self.interrupt.check()?;
            let topology = candidate.topology();
            // frames do not pass a proxy, only connections do
            let shape = Shape { topology, mtu: block.mtu, napi: topology != Topology::Proxy };
            let lab = Lab::new(&candidate.name(), shape)?;
            if let Work::Cpu { link, .. } = first.work {
                lab.slow_down(link)?;
            }
            if block.offloads {
                lab.set_offloads(true)?;
            }
            lab.multiply(clients)?;
            labs.push(lab);
        }
        let (mut testbeds, mut memory) = (Vec::new(), Vec::new());
        for (candidate, lab) in candidates.iter().zip(&labs) {
            self.interrupt.check()?;
            let before = available();
            let testbed = Testbed::new(candidate, Some(lab), &plan, &self.interrupt);
            // a system without states has nothing to create
            let frames = if candidate.keeps_states() { block.warm } else { 0 };
            let warm = testbed.and_then(|mut testbed| {
                testbed.warm_up(frames)?;
                Ok(testbed)
            });
            match warm {
                Ok(mut testbed) => {
                    let place = match block.mtu {
                        1500 => candidate.topology().to_string(),
                        mtu => format!("{}, MTU {mtu}", candidate.topology()),
                    };
                    testbed.set_variant(&block.variant(candidate.role()), &place);
                    testbed.describe(&mut self.run)?;
                    if block.warm > 0 {
                        let taken = before.saturating_sub(available()) as f64;
                        memory.push((testbed.id().to_owned(), taken));
                    }
                    testbeds.push(testbed);
                }
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) if candidate.may_be_skipped() => {
                    let Block { count, topology, .. } = block;
                    let name = candidate.name();
                    self.leave_out(&format!("{name}, {count} rules, {topology}: {error:#}"));
                }
                Err(error) => return Err(error.context(candidate.name())),
            }
            self.progress.inc(milliseconds(SET_UP.as_secs_f64() + warming(frames)));
        }
        for cell in cells {
            self.measure_cell(&mut testbeds, cell, ceiling)?;
        }
        if block.warm > 0 {
            self.note_memory(first, &memory);
        }
        Ok(())
    }

    fn plan(&self, block: &Block, first: &PlannedPoint) -> anyhow::Result<Plan> {
        let (own, last) = self.cpus.first().zip(self.cpus.last()).context("no CPU")?;
        let (mode, cpu, talk) = match &first.work {
            Work::Talk(talk) | Work::Workload { talk, .. } => (Mode::Cost, *last, Some(*talk)),
            Work::Cost { .. } => (Mode::Cost, *last, None),
            Work::Frames { .. } | Work::Cpu { .. } => {
                ensure!(own != last, "needs two CPUs, one of them for the firewall");
                let talk = match first.work {
                    Work::Cpu { talk, .. } => Some(talk),
                    _ => None,
                };
                (Mode::Queue, *own, talk)
            }
        };
        Ok(Plan {
            at: Placement { cpu, priority: 1 },
            device_cpu: *last,
            load: block.frames.clone().unwrap_or_else(|| frames(block)),
            duration: first.work.duration(),
            rate: None,
            mode,
            ends: [End::Client, End::Server],
            both_ways: false,
            talk,
        })
    }

    /// Measures the frames per second that the generator sends over a cable.
    fn ceiling(&self, plan: &Plan) -> anyhow::Result<f64> {
        let shape = Shape { topology: Topology::Direct, mtu: 1500, napi: true };
        let lab = Lab::new("cable", shape)?;
        Flood::new(&lab, &plan.load, End::Client, End::Server)?.ceiling(CEILING, plan.at)
    }

    /// Adds the memory of the systems with their states to the result, in bytes.
    fn note_memory(&mut self, cell: &PlannedPoint, memory: &[(String, f64)]) {
        let mut series = cell.series.clone();
        series.title = MEMORY.to_owned();
        series.load.seconds = 0.0;
        series.quantity = Quantity {
            name: "memory".to_owned(),
            unit: "bytes".to_owned(),
            better: fwlab_results::Better::Lower,
            additive: false,
        };
        let (series, point) = self.place(&series, cell.at);
        let sample = |(place, (id, bytes)): (usize, &(String, f64))| {
            fwlab_results::Sample::new(0, place as u32, id, *bytes)
        };
        let samples = memory.iter().enumerate().map(sample);
        self.run.series[series].points[point].samples.extend(samples);
    }

    fn measure_cell(
        &mut self,
        testbeds: &mut [Testbed<'_>],
        cell: &PlannedPoint,
        ceiling: Option<f64>,
    ) -> anyhow::Result<()> {
        let place = self.place(&cell.series, cell.at);
        self.run.series[place.0].points[place.1].ceiling = ceiling;
        let trial = self.trial(cell).as_secs_f64();
        let cpu = self.cpus.first().copied().context("no CPU")?;
        let turn = |testbed| -> Box<dyn Subject + '_> {
            Box::new(Turn { testbed, work: &cell.work, cpu })
        };
        let mut turns: Vec<_> = testbeds.iter_mut().map(turn).collect();
        let systems = turns.len();
        let interrupt = self.interrupt.clone();
        rounds::run(&mut turns, self.rounds, 1, &interrupt, |samples, _| {
            self.progress.inc(milliseconds(trial * systems as f64));
            self.keep(place, samples)
        })?;
        let (series, point) = place;
        if matches!(cell.work, Work::Frames { rate: None, .. }) {
            let void = {
                let series = &self.run.series[series];
                ceiling::void(&self.run, series, &series.points[point])
            };
            self.run.series[series].points[point].void = void;
        }
        Ok(())
    }

    /// Adds a point to a series. Returns the indexes of the series and of the point.
    fn place(&mut self, series: &Series, at: Option<f64>) -> (usize, usize) {
        let all = &mut self.run.series;
        let known = all.iter().position(|known| known.title == series.title);
        let index = known.unwrap_or_else(|| {
            all.push(series.clone());
            all.len() - 1
        });
        let points = &mut all[index].points;
        points.push(Point { at, ceiling: None, void: None, samples: Vec::new() });
        (index, points.len() - 1)
    }
}

/// Returns seconds in the unit of the progress display.
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).round() as u64
}

/// Returns the available memory in bytes.
fn available() -> u64 {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// A system with the work of a cell, as a subject of rounds.
struct Turn<'t, 'b> {
    testbed: &'t mut Testbed<'b>,
    work: &'t Work,
    /// The CPU of a workload's commands.
    cpu: usize,
}

impl Subject for Turn<'_, '_> {
    fn id(&self) -> &str {
        self.testbed.id()
    }

    fn trial(&mut self) -> anyhow::Result<Measured> {
        match self.work {
            Work::Talk(talk) => self.testbed.set_talk(*talk),
            Work::Frames { rate, .. } => self.testbed.set_rate(*rate, self.work.duration()),
            // the testbed has already chosen a number of frames that fills the time
            Work::Cost { .. } => {}
            Work::Cpu { talk, value, .. } => {
                let [packet, idle] = self.testbed.cpu(talk)?;
                let value = match value {
                    Cpu::Packet => packet,
                    Cpu::Idle => idle,
                };
                return Ok(Measured { value, doubt: None, counts: None, latency: None });
            }
            Work::Workload { file, .. } => return self.testbed.workload(file, self.cpu),
        }
        let measured = self.testbed.trial()?;
        // histograms are most of a result, and papers use them only for frames at a rate
        let is_paced = matches!(self.work, Work::Frames { rate: Some(_), .. });
        Ok(Measured { latency: measured.latency.filter(|_| is_paced), ..measured })
    }
}

/// Makes the frames that check the rules before sockets measure.
fn frames(block: &Block) -> Load {
    Load {
        // veth takes no redirected frames if packets may be longer than a page
        engine: if block.mtu > 1500 { Engine::Packet } else { Engine::Xdp },
        transport: block.transport,
        ip: block.family,
        extension: Extension::None,
        size: Sizes::one(CHECK_SIZE),
        sources: Vary::Fixed,
        destinations: Vary::Fixed,
        source_ports: Vary::Count(256),
        destination_ports: Vary::Fixed,
        seed: 1,
    }
}

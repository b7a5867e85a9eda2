//! A system in its network, which passes the functional check and is then measured repeatedly.

mod apart;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fwlab_load::raw::flood::{Flood, PROBE, Pace, Trial};
use fwlab_load::sockets::{self, Server, Talk};
use fwlab_load::wire::{NO_WAY, Wire};
use fwlab_load::workload::{self, Printed};
use fwlab_net::cycles::Cycles;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::napi;
use fwlab_net::placement::Placement;
use fwlab_net::rules::Rules;
use fwlab_net::system::System;
use fwlab_net::topology::{End, Lab, Shape, Topology};
use fwlab_net::traffic::ServerAddress;
use fwlab_results::{Counts, Latency, Mode, Role, Run};

use crate::ceiling;
use crate::plan::{CALIBRATION, Plan, WARM, pace};
use crate::rounds::{Measured, Subject};
use apart::Apart;
pub use apart::Ends;

/// A system to be measured.
pub enum Candidate {
    /// A system of [`fwlab_net::system`], in a network of its own.
    Built {
        /// The system.
        system: Box<dyn System>,
        /// True if the run measures the same system under its own name, too.
        is_placebo: bool,
        /// The rules, with the topology that the system has.
        rules: Rules,
        /// True if the system has a CPU and a queue of its own.
        queue: bool,
        /// The MTU of the cables in bytes.
        mtu: u32,
    },
    /// The network between two interfaces.
    Wire(Wire),
    /// The network between two other machines.
    Apart(Ends),
}

impl Candidate {
    /// Makes a candidate that gets a network of its own, with an MTU of 1500 bytes. The arguments
    /// are those of [`Candidate::Built`].
    pub fn new(system: Box<dyn System>, is_placebo: bool, rules: Rules, queue: bool) -> Candidate {
        let topology = system.topology(rules.topology);
        Candidate::Built {
            system,
            is_placebo,
            rules: Rules { topology, ..rules },
            queue,
            mtu: 1500,
        }
    }

    /// Sets the MTU of the cables, which is 1500 bytes otherwise.
    pub fn with_mtu(mut self, bytes: u32) -> Candidate {
        if let Candidate::Built { mtu, .. } = &mut self {
            *mtu = bytes;
        }
        self
    }

    /// Returns the name of the network, and of the system in messages.
    pub fn name(&self) -> String {
        match self {
            Candidate::Built { system, is_placebo: false, .. } => system.name().to_owned(),
            Candidate::Built { system, .. } => format!("{}-again", system.name()),
            Candidate::Wire(_) | Candidate::Apart(_) => "wire".to_owned(),
        }
    }

    /// Returns the role of the system.
    pub fn role(&self) -> Role {
        match self {
            Candidate::Built { is_placebo: true, .. } => Role::Placebo,
            Candidate::Built { system, .. } => system.role(),
            Candidate::Wire(_) | Candidate::Apart(_) => Role::Subject,
        }
    }

    /// Returns true if the system is stateful.
    pub fn keeps_states(&self) -> bool {
        matches!(self, Candidate::Built { system, .. } if system.keeps_states())
    }

    /// Returns the topology of the system.
    pub fn topology(&self) -> Topology {
        match self {
            Candidate::Built { rules, .. } => rules.topology,
            Candidate::Wire(_) | Candidate::Apart(_) => Topology::Direct,
        }
    }

    /// Returns true if the run can go on without this system.
    pub fn may_be_skipped(&self) -> bool {
        matches!(self, Candidate::Built { system, .. } if system.role() == Role::Subject)
    }

    /// Returns the id in samples. It includes the number of rules.
    fn id(&self) -> String {
        match self {
            Candidate::Built { system, rules, .. } if system.role() == Role::Subject => {
                format!("{}@{}", system.name(), rules.count)
            }
            _ => self.name(),
        }
    }

    /// Makes a network for the system. None if the network exists already.
    ///
    /// # Errors
    /// Fails if the network cannot be made.
    pub fn lab(&self) -> anyhow::Result<Option<Lab>> {
        let Candidate::Built { rules, mtu, .. } = self else { return Ok(None) };
        // a proxy receives only the packets of sockets
        let napi = rules.topology != Topology::Proxy;
        let shape = Shape { topology: rules.topology, mtu: *mtu, napi };
        Lab::new(&self.name(), shape).map(Some)
    }
}

/// A system in its network.
pub struct Testbed<'s> {
    candidate: &'s Candidate,
    lab: Option<&'s Lab>,
    id: String,
    /// The suffix of the id and the name of the topology, if the system is in several networks of a
    /// run.
    variant: Option<[String; 2]>,
    configuration: String,
    mode: Mode,
    at: Placement,
    interrupt: Interrupt,
    traffic: Traffic<'s>,
    /// The cycle counter of the firewall's CPU. None if the CPU has none.
    cycles: Option<Cycles>,
}

/// The load that goes through the system.
enum Traffic<'s> {
    /// Frames of the generator: one way, or both.
    Frames {
        floods: Vec<Flood<'s>>,
        pace: Pace,
        calibrated_rate: f64,
    },
    Sockets {
        talk: Talk,
        lab: &'s Lab,
        threads: Vec<u32>,
        _server: Server,
    },
    /// The load of agents on two other machines.
    Apart(Box<Apart>),
}

impl<'s> Traffic<'s> {
    /// Makes a load of frames. Half of them go the opposite way if the plan says so.
    fn frames(
        flood: Flood<'s>,
        lab: Option<&'s Lab>,
        plan: &Plan,
        calibrated_rate: f64,
    ) -> anyhow::Result<Traffic<'s>> {
        let mut floods = vec![flood];
        let mut pace = plan.pace(calibrated_rate);
        if let Some(lab) = lab.filter(|_| plan.both_ways) {
            floods.push(Flood::new(lab, &plan.load, plan.ends[1], plan.ends[0])?);
            pace.frames = pace.frames.div_ceil(2);
        }
        Ok(Traffic::Frames { floods, pace, calibrated_rate })
    }

    /// Starts a server, and lets clients talk to it for a short time.
    fn sockets(
        lab: &'s Lab,
        talk: Talk,
        threads: Vec<u32>,
        at: Placement,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Traffic<'s>> {
        if threads.is_empty() {
            // only frames need this setting
            lab.set_napi(false)?;
        }
        let talk = Talk { to: lab.nearest(talk.to), ..talk };
        let _server = Server::start(lab.end(talk.to), at, talk.clients)?;
        sockets::serve(lab.end(talk.to), &talk, at, talk.to.address(talk.family))?;
        sockets::talk(lab, &Talk { duration: WARM, ..talk }, at, interrupt)?;
        Ok(Traffic::Sockets { talk, lab, threads, _server })
    }

    /// Makes a load of sockets, and does the functional check with sockets instead of frames.
    fn judged(
        lab: &'s Lab,
        talk: Talk,
        (closed, rules): (u16, Option<&Rules>),
        threads: Vec<u32>,
        at: Placement,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Traffic<'s>> {
        let traffic = Traffic::sockets(lab, talk, threads, at, interrupt)?;
        sockets::check_borders(lab, &talk, closed)?;
        if let Some(rules) = rules {
            sockets::check_rules(lab, &talk, rules, at)?;
        }
        Ok(traffic)
    }

    /// Installs a system in its network, does the functional check, and makes the load.
    fn through(
        system: &dyn System,
        rules: &Rules,
        queue: bool,
        lab: &'s Lab,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Traffic<'s>> {
        if let Some(device) = lab.device() {
            let configuration = system.configuration(rules);
            // processes of the system share the CPU with the kernel's threads
            let place = Placement { cpu: plan.device_cpu, ..plan.at };
            place.run(|| system.install(device, rules, &configuration))??;
        }
        let threads = plan.threads(lab, queue)?;
        if let Some(talk) = plan.talk
            && let Some(closed) = lab.device().and(system.closed(rules.topology))
        {
            let talk = Talk { way: system.server_address(), ..talk };
            // only a proxy enforces `rules` here; other systems have rules of their own
            let is_proxy = rules.topology == Topology::Proxy && system.filters();
            let bounds = (closed, is_proxy.then_some(rules));
            return Traffic::judged(lab, talk, bounds, threads, plan.at, interrupt);
        }
        let mut flood = Flood::new(lab, &plan.load, plan.ends[0], plan.ends[1])?;
        let advice = "test a bare cable with `fwlab raw`, or add --engine packet";
        let rate = calibrated_rate(&mut flood, plan, advice, interrupt)?;
        check(rules, system.filters(), plan, &mut flood)?;
        if system.keeps_states() {
            flood.answer(lab.next_link(plan.ends[1], plan.ends[0]), plan.at)?;
        }
        match plan.talk {
            Some(talk) => {
                drop(flood);
                Traffic::sockets(lab, talk, threads, plan.at, interrupt)
            }
            None => Traffic::frames(flood, Some(lab), plan, rate),
        }
    }
}

impl<'s> Testbed<'s> {
    /// Installs the system, does the functional check, and calibrates the number of frames of a
    /// trial.
    ///
    /// # Errors
    /// Fails if the system cannot be installed, if it passes or blocks the wrong packets, or if a
    /// signal came.
    pub fn new(
        candidate: &'s Candidate,
        lab: Option<&'s Lab>,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Testbed<'s>> {
        let (configuration, traffic) = match (candidate, lab) {
            (Candidate::Built { system, rules, queue, .. }, Some(lab)) => (
                system.configuration(rules),
                Traffic::through(&**system, rules, *queue, lab, plan, interrupt)?,
            ),
            (Candidate::Built { .. }, None) => bail!("no network"),
            (Candidate::Wire(wire), _) => {
                let mut flood = wire.flood(&plan.load, plan.ends)?;
                let rate = calibrated_rate(&mut flood, plan, NO_WAY, interrupt)?;
                (String::new(), Traffic::frames(flood, None, plan, rate)?)
            }
            (Candidate::Apart(ends), _) => {
                let apart = Apart::new(ends, plan, interrupt)?;
                (String::new(), Traffic::Apart(Box::new(apart)))
            }
        };
        let cycles = match candidate {
            Candidate::Built { .. } => Cycles::on(plan.device_cpu).ok(),
            Candidate::Wire(_) | Candidate::Apart(_) => None,
        };
        Ok(Testbed {
            candidate,
            lab,
            id: candidate.id(),
            variant: None,
            configuration,
            mode: plan.mode,
            at: plan.at,
            interrupt: interrupt.clone(),
            traffic,
            cycles,
        })
    }

    /// Gives the testbed a suffix of its id and a topology of its own, if the same system is in
    /// another network of the run.
    pub fn set_variant(&mut self, id: &str, place: &str) {
        self.id += id;
        self.variant = Some([id.to_owned(), place.to_owned()]);
    }

    /// Changes the talk of sockets from now on, and keeps the way to the server. Without effect on
    /// other loads.
    pub fn set_talk(&mut self, next: Talk) {
        if let Traffic::Sockets { talk, .. } = &mut self.traffic {
            let way = if next.way == ServerAddress::Each { next.way } else { talk.way };
            *talk = Talk { way, ..next };
        }
    }

    /// Changes the rate of the generator from now on; None is full speed. Without effect on other
    /// loads.
    pub fn set_rate(&mut self, rate: Option<f64>, duration: Duration) {
        if let Traffic::Frames { floods, pace: now, calibrated_rate } = &mut self.traffic {
            *now = pace(rate, duration, *calibrated_rate);
            now.frames = now.frames.div_ceil(floods.len() as u64);
        }
    }

    /// Measures the load's use of the firewall's own CPU. Returns nanoseconds a packet, and the
    /// idle share of the time in percent.
    ///
    /// # Errors
    /// Fails if the load does not get through, or if a signal came.
    pub fn cpu(&mut self, talk: &Talk) -> anyhow::Result<[f64; 2]> {
        self.interrupt.check()?;
        self.set_talk(*talk);
        let Traffic::Sockets { talk, lab, threads, .. } = &self.traffic else {
            bail!("no sockets")
        };
        let packets = || lab.device().context("no firewall")?.packets();
        let (before, taken, since) = (packets()?, napi::time(threads)?, Instant::now());
        sockets::talk(lab, talk, self.at, &self.interrupt)?;
        let elapsed = since.elapsed().as_nanos() as f64;
        let taken = napi::time(threads)?.saturating_sub(taken).as_nanos() as f64;
        let packets = packets()?.saturating_sub(before);
        Ok([taken / packets.max(1) as f64, 100.0 * (1.0 - taken / elapsed)])
    }

    /// Runs a workload on the client, on CPU `cpu`. In its commands the words SERVER and USER stand
    /// for the FTP server's address and user.
    ///
    /// # Errors
    /// Fails if the text is no workload, if a command fails, or if a signal came.
    pub fn workload(&self, file: &str, cpu: usize) -> anyhow::Result<Measured> {
        let Traffic::Sockets { talk, lab, .. } = &self.traffic else { bail!("no sockets") };
        let server = SocketAddr::new(talk.way.address(talk.to, talk.family), 21).to_string();
        let user = talk.way.user(talk.to.address(talk.family));
        let own = std::env::current_exe().context("this program")?.display().to_string();
        let file = file.replace("SERVER", &server).replace("USER", &user);
        let file = file.replace("\"fwlab ", &format!("\"{own} "));
        let job = workload::parse(&file).map_err(|it| anyhow::anyhow!(it.explain("", &file)))?;
        let outcome = lab.end(End::Client).inside(|| {
            Placement { cpu, ..self.at }.take()?;
            workload::execute(&job, Printed::Nowhere).context("workload")
        })??;
        self.interrupt.check()?;
        let failed = outcome.executed.iter().find(|one| !one.ending.is_success());
        if let Some(one) = failed {
            bail!("{}: {:?}", one.command.join(" "), one.ending);
        }
        Ok(Measured { value: outcome.seconds, doubt: None, counts: None, latency: None })
    }

    /// Sends frames that are not counted.
    ///
    /// # Errors
    /// Fails if they cannot be sent, or if a signal came.
    pub fn warm_up(&mut self, frames: u64) -> anyhow::Result<()> {
        match &mut self.traffic {
            Traffic::Frames { floods, .. } if frames > 0 => {
                floods[0].trial(&Pace::fast(frames), self.at, &self.interrupt).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Measures the highest rate of the generator in frames a second. None if the system is not the
    /// cable.
    pub fn ceiling(&mut self) -> Option<anyhow::Result<f64>> {
        let Candidate::Built { system, .. } = self.candidate else { return None };
        match &mut self.traffic {
            Traffic::Frames { floods, .. } if system.role() == Role::Null => {
                Some(floods[0].ceiling(ceiling::FRAMES, self.at))
            }
            _ => None,
        }
    }

    /// Adds the system and its topology to the results, unless they are there.
    ///
    /// # Errors
    /// Fails if the offloads of the network cannot be read.
    pub fn describe(&self, run: &mut Run) -> anyhow::Result<()> {
        if run.systems.iter().any(|system| system.id == self.id) {
            return Ok(());
        }
        let (label, role, topology) = match self.candidate {
            Candidate::Wire(_) => {
                ("device between the interfaces", Role::Subject, "wire".to_owned())
            }
            Candidate::Apart(_) => ("device between the agents", Role::Subject, "wire".to_owned()),
            Candidate::Built { system, is_placebo: true, rules, .. } => {
                (system.label(), Role::Placebo, rules.topology.to_string())
            }
            Candidate::Built { system, rules, .. } => {
                (system.label(), system.role(), rules.topology.to_string())
            }
        };
        let (end, topology) = match &self.variant {
            Some([end, place]) => (end.as_str(), place.clone()),
            None => ("", topology),
        };
        let again = if role == Role::Placebo { ", again" } else { "" };
        let label = format!("{label}{again}");
        let configuration = self.configuration.clone();
        let mut system =
            fwlab_results::System::new(&self.id, &label, role, &topology, configuration);
        if let Candidate::Built { system: one, rules, .. } = self.candidate {
            system.hooks = one.hooks(rules.topology);
            system.rules = (role == Role::Subject).then_some(rules.count.into());
            system.repeats = (role == Role::Placebo).then(|| format!("{}{end}", one.name()));
        }
        run.systems.push(system);
        if run.topologies.iter().any(|known| known.name == topology) {
            return Ok(());
        }
        match (self.lab, self.candidate, &self.traffic) {
            (Some(lab), ..) => run.topologies.push(lab.described(topology)?),
            (_, Candidate::Wire(wire), _) => run.topologies.push(wire.described()),
            (_, _, Traffic::Apart(apart)) => apart.describe(run),
            _ => {}
        }
        Ok(())
    }
}

impl Subject for Testbed<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn trial(&mut self) -> anyhow::Result<Measured> {
        self.interrupt.check()?;
        let (trials, cycles) = match &mut self.traffic {
            Traffic::Frames { floods, pace, .. } => {
                let trials = floods.iter_mut().map(|one| one.trial(pace, self.at, &self.interrupt));
                let all = || trials.collect::<anyhow::Result<Vec<_>>>();
                let (trials, cycles) = match &mut self.cycles {
                    Some(counter) => counter.count_during(all),
                    None => (all(), None),
                };
                (trials?, cycles)
            }
            Traffic::Sockets { talk, lab, .. } => {
                let heard = sockets::talk(lab, talk, self.at, &self.interrupt)?;
                return Ok(Measured {
                    value: heard.value,
                    doubt: heard.disturbance.doubt_within(talk.duration),
                    counts: None,
                    latency: heard.latency,
                });
            }
            Traffic::Apart(apart) => return apart.trial(),
        };
        let lost: u64 = trials.iter().map(Trial::lost).sum();
        let (value, why) = match self.mode {
            Mode::Cost if lost > 0 => (cost(&trials), Some(format!("{lost} frames were lost"))),
            Mode::Cost => (cost(&trials), None),
            Mode::Queue | Mode::Wire => (trials.iter().map(arrival_rate).sum(), None),
        };
        let counts = trials.iter().map(Trial::tally).fold(Counts::default(), Counts::and);
        let times = || Latency::merged(&trials.iter().map(Trial::latency).collect::<Vec<_>>());
        Ok(Measured {
            value,
            doubt: why.or_else(|| trials.iter().find_map(Trial::disturbed)),
            counts: Some(Counts { cycles, ..counts }),
            latency: (self.mode != Mode::Cost).then(times),
        })
    }
}

/// Returns the mean time from one frame to the next in nanoseconds, over all directions.
fn cost(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| 1e9 / trial.rate()).sum::<f64>() / trials.len() as f64
}

/// Returns the rate of received frames a second.
fn arrival_rate(trial: &Trial) -> f64 {
    let seconds = trial.counts.last.saturating_sub(trial.counts.first) as f64 / 1e9;
    if trial.received() < 2 { 0.0 } else { (trial.received() - 1) as f64 / seconds.max(1e-9) }
}

/// Returns the rate at which frames come through at full speed, in frames a second. `advice` ends
/// the error if none come.
fn calibrated_rate(
    flood: &mut Flood<'_>,
    plan: &Plan,
    advice: &str,
    interrupt: &Interrupt,
) -> anyhow::Result<f64> {
    let calibration = flood.trial(&Pace::fast(CALIBRATION), plan.at, interrupt)?;
    ensure!(calibration.received() > 0, "none of {CALIBRATION} frames came through: {advice}");
    Ok(calibration.rate())
}

/// Checks that the system passes and blocks the frames it should.
fn check(rules: &Rules, filters: bool, plan: &Plan, flood: &mut Flood<'_>) -> anyhow::Result<()> {
    let open = flood.probe(9, PROBE, plan.at)?;
    ensure!(
        open == PROBE,
        "only {open} of {PROBE} frames to port 9 came through, although no rule blocks it"
    );
    for port in rules.tried() {
        let blocked = filters && rules.transport == plan.load.transport;
        let expected = if blocked { 0 } else { PROBE };
        let came = flood.probe(port, expected, plan.at)?;
        ensure!(
            came == expected,
            "{came} of {PROBE} frames to port {port} came through, expected {expected}"
        );
    }
    Ok(())
}

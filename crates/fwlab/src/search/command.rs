//! `fwlab search`: a search on a system in a network of its own, or on a simulated device.

mod connections;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use super::network::{self, Cpus, Network};
use super::simulated::{Curve, Simulated};
use super::tcp_network::{self, TcpNetwork};
use super::written::Found;
use super::{
    Bench, Conformance, Failure, Measurer, Record, Setting, Waits, back_to_back, hop_by_hop,
    latency, loss_rate, mlr, recovery, throughput,
};
use crate::connections::{PAGE, Pages};
use crate::host;
use crate::interrupt::Interrupt;
use crate::measure::{self, environment};
use crate::raw::extension::Extension;
use crate::raw::load::Load;
use crate::results::{self, Environment, Mode, Run};
use crate::system;
use crate::topology::Family;

/// TCP connections at once that are tried at most, unless something else is said.
const MOST_CONNECTIONS: u64 = 5000;

/// Pages that a connection fetches in the tests of HTTP, unless something else is said.
const REQUESTS: u32 = 10;

/// Trials of system recovery and of reset.
const RECOVERIES: usize = 3;

/// Which search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// RFC 2544 26.1: the highest rate without loss
    Throughput,
    /// RFC 2544 26.3: what is lost at 100 %, 90 %, …
    LossRate,
    /// RFC 9004: the longest burst without loss
    BackToBack,
    /// RFC 8219 7.2: typical and worst latency at the throughput
    Latency,
    /// RFC 2544 26.5: until nothing is lost after too much
    SystemRecovery,
    /// RFC 2544 26.6: until frames come after a reset
    Reset,
    /// RFC 5180 5.3: what hop-by-hop options do to the device
    HopByHop,
    /// RFC 3511 5.2: how many TCP connections there can be at once
    TcpCapacity,
    /// RFC 3511 5.3: how many TCP connections a second can be made
    TcpRate,
    /// RFC 3511 5.4: how many TCP connections a second can be torn down
    TcpTearDown,
    /// RFC 3511 5.5: what becomes of TCP connections beside a flood of SYNs
    TcpFlood,
    /// RFC 3511 5.6: how many bits a second of pages can be fetched, by their size
    HttpTransfer,
    /// RFC 3511 5.7: how many pages a second can be fetched
    HttpRate,
    /// RFC 3511 5.8: what becomes of TCP connections that a rule forbids, beside others
    TcpIllegal,
    /// RFC 3511 5.9: what becomes of TCP connections and of datagrams in fragments beside them
    TcpFragments,
    /// RFC 9971: MLRsearch with the goals of RFC 2544 and TST 009
    Mlr,
}

impl Test {
    /// Whether the throughput has to be known for it.
    fn is_done_at_throughput(self) -> bool {
        !matches!(
            self,
            Test::Throughput
                | Test::LossRate
                | Test::HopByHop
                | Test::TcpRate
                | Test::HttpTransfer
                | Test::HttpRate
                | Test::Mlr
        )
    }

    /// Whether it is about connections and not about frames.
    pub(super) fn is_about_connections(self) -> bool {
        matches!(
            self,
            Test::TcpCapacity
                | Test::TcpRate
                | Test::TcpTearDown
                | Test::TcpFlood
                | Test::HttpTransfer
                | Test::HttpRate
                | Test::TcpIllegal
                | Test::TcpFragments
        )
    }

    /// What says how it is done.
    pub(super) fn standard(self) -> &'static str {
        match self {
            Test::Throughput => "RFC 2544, 26.1",
            Test::LossRate => "RFC 2544, 26.3",
            Test::BackToBack => "RFC 9004",
            Test::Latency => "RFC 8219, 7.2",
            Test::SystemRecovery => "RFC 2544, 26.5",
            Test::Reset => "RFC 2544, 26.6",
            Test::HopByHop => "RFC 5180, 5.3",
            Test::TcpCapacity => "RFC 3511, 5.2",
            Test::TcpRate => "RFC 3511, 5.3",
            Test::TcpTearDown => "RFC 3511, 5.4",
            Test::TcpFlood => "RFC 3511, 5.5",
            Test::HttpTransfer => "RFC 3511, 5.6",
            Test::HttpRate => "RFC 3511, 5.7",
            Test::TcpIllegal => "RFC 3511, 5.8",
            Test::TcpFragments => "RFC 3511, 5.9",
            Test::Mlr => "RFC 9971",
        }
    }
}

/// What is searched for.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What is searched for
    #[arg(value_enum)]
    test: Test,
    /// The system, by its name in `fwlab measure`, in a network of its own
    #[arg(long, value_name = "NAME", required_unless_present = "simulate", conflicts_with_all = ["simulate", "seed"])]
    system: Option<String>,
    /// Rules of the system that block a port each
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with = "simulate", value_parser = clap::value_parser!(u32).range(..=i64::from(system::MOST_RULES)))]
    rules: u32,
    /// A simulated device instead: knee, slope or noise, with :RATE if you like, drop, reflect, or die:TRIAL
    #[arg(long, value_name = "CURVE")]
    simulate: Option<Curve>,
    /// No pauses around trials
    #[arg(long)]
    no_pauses: bool,
    /// Bytes of a frame with its checksum, 64 by default
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=1518))]
    size: Option<u32>,
    /// TCP connections at once that are tried at most, or torn down in a trial, 5000 by default
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=400_000))]
    connections: Option<u64>,
    /// Pages that each connection fetches one after the other, 10 by default
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    requests: Option<u32>,
    /// Bytes of a page of http-rate, 64 by default
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    object: Option<u32>,
    /// IP of the frames: 4, or 6, as RFC 5180 wants it
    #[arg(long, value_name = "VERSION", default_value = "4", conflicts_with = "simulate")]
    ip: Family,
    /// Extension headers of frames over IPv6, for all tests but hop-by-hop, which has its own
    #[arg(long, value_enum, default_value = "none", conflicts_with = "simulate")]
    extension: Extension,
    /// Bits a second of the link
    #[arg(long, value_name = "BITS", default_value_t = 1e10, value_parser = link)]
    link: f64,
    /// Frames, or TCP connections, a second that are known to be the throughput, for tests that are done at it
    #[arg(long, value_name = "RATE", value_parser = throughput_rate)]
    throughput: Option<f64>,
    /// Seconds of the trials that decide
    #[arg(long, default_value_t = 60.0, value_parser = crate::seconds)]
    seconds: f64,
    /// What decides about the device's noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON with every trial
    #[arg(long)]
    json: bool,
    /// Write a result file besides, for `fwlab report` and `fwlab compare`
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    result: Option<PathBuf>,
}

fn link(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if (1e6..=1e12).contains(&bits) => Ok(bits),
        _ => Err("between 1e6 and 1e12 bits a second".to_string()),
    }
}

fn throughput_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1.0..=1e9).contains(&rate) => Ok(rate),
        _ => Err("between 1 and 1e9 frames a second".to_string()),
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    test: Test,
    device: String,
    /// None of a simulated device.
    mode: Option<Mode>,
    system: Option<results::System>,
    environment: Option<Environment>,
    setting: Setting,
    complete: bool,
    incomplete_because: Option<String>,
    conformance: Conformance,
    /// How far a simulated device's result would be the standard's on a virtual link.
    on_a_virtual_link: Option<Conformance>,
    /// By the clock of the device.
    seconds: f64,
    result: Value,
    trials: Vec<Record>,
}

/// Searches and prints. The exit status is 1 if there is no result.
///
/// # Errors
/// The network cannot be made, or the report cannot be printed.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let (report, text) = match (&arguments.system, arguments.simulate) {
        (Some(name), _) => on_a_system(arguments, name)?,
        (None, Some(curve)) => on_a_simulated_device(arguments, curve),
        (None, None) => anyhow::bail!("--system or --simulate says on what"),
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", print(&report, &text));
    }
    Ok(if report.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    fn setting(&self, most: f64) -> Setting {
        let waits = if self.no_pauses { Waits::NONE } else { Waits::STANDARD };
        let (ip6, extension) = (self.family() == Family::V6, self.extension());
        Setting { wire: false, size: self.size(), ip6, extension, most, waits }
    }

    fn size(&self) -> u32 {
        self.size.unwrap_or(64)
    }

    fn connections(&self) -> u64 {
        self.connections.unwrap_or(MOST_CONNECTIONS)
    }

    /// What the connections of HTTP's tests fetch.
    fn pages(&self) -> Pages {
        let requests = self.requests.unwrap_or(REQUESTS);
        Pages { requests, bytes: self.object.unwrap_or(PAGE) }
    }

    fn holds_connections(&self) -> bool {
        matches!(self.test, Test::TcpCapacity | Test::TcpTearDown)
    }

    /// What is asked for must be something that is done.
    fn check(&self) -> anyhow::Result<()> {
        let name = self.test.to_possible_value();
        let name = name.map_or(String::new(), |value| value.get_name().to_owned());
        ensure!(
            self.throughput.is_none() || self.test.is_done_at_throughput(),
            "--throughput says what {name} is to find out: leave it out"
        );
        ensure!(
            self.extension != Extension::HopByHop,
            "hop-by-hop options make frames slow on purpose; the test for them is `fwlab search hop-by-hop`"
        );
        ensure!(
            self.extension == Extension::None || self.family() == Family::V6,
            "IPv4 has no extension headers: --ip 6"
        );
        let frames = self.size.is_some() || self.extension != Extension::None;
        ensure!(
            !(frames && self.test.is_about_connections()),
            "{name} is about connections, not frames: --size and --extension say nothing to it"
        );
        ensure!(
            self.connections.is_none() || self.holds_connections(),
            "--connections is for tcp-capacity and tcp-tear-down: {name} holds none"
        );
        let http = matches!(self.test, Test::HttpTransfer | Test::HttpRate);
        ensure!(
            self.requests.is_none() || http,
            "--requests is for http-transfer and http-rate: {name} fetches one page over each connection"
        );
        ensure!(
            self.object.is_none() || self.test == Test::HttpRate,
            "--object is for http-rate: {name} fetches pages of its own sizes"
        );
        Ok(())
    }

    fn family(&self) -> Family {
        if self.test == Test::HopByHop { Family::V6 } else { self.ip }
    }

    fn extension(&self) -> Extension {
        if self.test == Test::HopByHop { Extension::HopByHop } else { self.extension }
    }

    /// The load of frames, or of connections, as results have it.
    fn load(&self, frames: &Load) -> results::Load {
        let inet = if self.family() == Family::V6 { "inet6" } else { "inet" };
        let common = results::Load {
            family: Some(inet.to_owned()),
            seconds: self.seconds,
            ..results::Load::default()
        };
        if self.test.is_about_connections() {
            return results::Load {
                kind: "connections".to_owned(),
                protocol: Some("tcp".to_owned()),
                size: Some(self.pages().bytes.into()),
                ..common
            };
        }
        results::Load {
            kind: "raw".to_owned(),
            protocol: Some("udp".to_owned()),
            size: Some(self.size().into()),
            flows: frames.flows(),
            details: frames.details(),
            ..common
        }
    }

    /// Runs the search and writes down what came of it.
    fn report(
        &self,
        measurer: &mut dyn Measurer,
        setting: Setting,
        device: String,
    ) -> (Report, String) {
        let mut bench = Bench::new(measurer, setting.waits);
        // A simulated device takes no time.
        if self.system.is_some() && std::io::stderr().is_terminal() {
            bench.listener = Some(tell);
        }
        let mut text = String::new();
        let found = search(&mut bench, &setting, self, &mut text);
        let failure = found.as_ref().err().map(ToString::to_string);
        let (result, conformance) = found.ok().unzip();
        let conformance = conformance.map(|one| match self.test {
            // which is of no family, or says so itself
            Test::Mlr | Test::HopByHop => one,
            test if test.is_about_connections() => one,
            _ => setting.over_ip6(one),
        });
        let nothing = || Conformance::Not("there is no result".to_string());
        let report = Report {
            test: self.test,
            device,
            mode: None,
            system: None,
            environment: None,
            setting,
            complete: failure.is_none(),
            incomplete_because: failure,
            conformance: conformance.unwrap_or_else(nothing),
            on_a_virtual_link: None,
            seconds: 0.0,
            result: result.unwrap_or(Value::Null),
            trials: bench.records,
        };
        (report, text)
    }
}

/// What a search is at. How many trials are to come, nobody knows.
fn tell(number: usize, record: &Record) {
    eprintln!(
        "trial {number}: {:.0} a second for {:.3} s, {:.4} % lost",
        record.rate,
        record.seconds,
        record.loss * 100.0
    );
}

fn on_a_simulated_device(arguments: &Arguments, curve: Curve) -> (Report, String) {
    let setting = arguments.setting(Setting::line_rate(arguments.link, arguments.size()));
    let mut device = Simulated::new(curve, arguments.seed);
    let name = format!("simulated {curve:?}");
    let (mut report, text) = arguments.report(&mut device, setting, name);
    report.seconds = device.clock;
    let simulated = Conformance::Not("the device is simulated".to_string());
    report.on_a_virtual_link = Some(std::mem::replace(&mut report.conformance, simulated));
    (report, text)
}

/// In the mode queue: the firewall has a CPU of its own, so that it can be too slow.
fn on_a_system(arguments: &Arguments, name: &str) -> anyhow::Result<(Report, String)> {
    let system = system::named(name).map_err(anyhow::Error::msg)?;
    if let Some(program) = system::missing(system.as_ref()) {
        anyhow::bail!("{name} needs {program}, which is not there");
    }
    ensure!(
        arguments.test != Test::TcpIllegal || (system.filters() && arguments.rules > 0),
        "no rule forbids anything here: tcp-illegal wants a firewall, and --rules 1 or more"
    );
    let interrupt = Interrupt::watch()?;
    host::sweep()?;
    let cpus = Cpus::choose()?;
    let family = arguments.family();
    let frames = network::load(arguments.size(), family, arguments.extension());
    let tcp = arguments.test.is_about_connections();
    let setting = arguments.setting(if tcp {
        tcp_network::most(family, cpus, &interrupt, Pages::ONE)?
    } else {
        network::most(&frames, cpus)?.min(Setting::line_rate(arguments.link, arguments.size()))
    });
    let mut run = Run::begin(Mode::Queue, environment());
    let watch = results::Watch::begin();
    let lab = network::lab(system.as_ref())?;
    let (system, rules) = (system.as_ref(), arguments.rules);
    let (mut measurer, described): (Box<dyn Measurer>, _) = if tcp {
        let at_once = match arguments.holds_connections() {
            true => arguments.connections(),
            // those that are made and closed again, one after the other
            false => MOST_CONNECTIONS,
        };
        let place = (cpus, at_once);
        let network = TcpNetwork::new(&lab, system, rules, family, place, &interrupt);
        let (network, described) = network.context(name.to_owned())?;
        (Box::new(network), described)
    } else {
        let network = Network::new(&lab, system, rules, &frames, cpus, &interrupt);
        let network = network.context(name.to_owned())?;
        let described = network.described.clone();
        (Box::new(network), described)
    };
    let device = format!("{name} with {rules} rules");
    let (mut report, text) = arguments.report(measurer.as_mut(), setting, device);
    (report.seconds, run.environment.steal) = watch.end();
    report.mode = Some(Mode::Queue);
    report.environment = Some(run.environment.clone());
    if let Some(path) = &arguments.result {
        run.topologies.push(measure::described(&lab, described.topology.clone())?);
        run.systems.push(described.clone());
        (run.seconds, run.complete) = (report.seconds, report.complete);
        run.incomplete_because.clone_from(&report.incomplete_because);
        let Report { test, conformance, result, trials, .. } = &report;
        let load = arguments.load(&frames);
        let found = Found { test: *test, conformance, result, trials };
        found.write(&mut run, &described.id, &load);
        run.write(path).with_context(|| path.display().to_string())?;
    }
    report.system = Some(described);
    Ok((report, text))
}

fn search(
    bench: &mut Bench,
    setting: &Setting,
    arguments: &Arguments,
    text: &mut String,
) -> Result<(Value, Conformance), Failure> {
    if arguments.test.is_about_connections() {
        return connections::search(bench, setting, arguments, text);
    }
    let seconds = arguments.seconds;
    let plan = throughput::Plan { last: seconds, search: seconds.min(10.0), ..Default::default() };
    if arguments.test == Test::LossRate {
        let steps = loss_rate::search(bench, setting, seconds)?;
        for step in &steps {
            let _ = writeln!(
                text,
                "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost",
                step.share * 100.0,
                step.rate,
                step.loss * 100.0
            );
        }
        return Ok((json!(steps), loss_rate::conformance(setting, seconds)));
    }
    if arguments.test == Test::HopByHop {
        let impacts = hop_by_hop::search(bench, setting, seconds)?;
        for impact in &impacts {
            let busy =
                impact.busy.map_or("not known".to_owned(), |it| format!("{:.1} %", it * 100.0));
            let _ = writeln!(
                text,
                "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost, CPU of the device busy: {busy}",
                impact.share * 100.0,
                impact.rate,
                impact.loss * 100.0
            );
        }
        let conformance = hop_by_hop::conformance(setting, &impacts);
        return Ok((json!(impacts), conformance));
    }
    if arguments.test == Test::Mlr {
        let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()].map(|goal| mlr::Goal {
            duration_sum: goal.duration_sum * seconds / goal.final_duration,
            final_duration: seconds,
            ..goal
        });
        let range = mlr::Range {
            least: (setting.most / 10_000.0).max(1.0).round(),
            most: setting.most.floor(),
        };
        let results = mlr::search(bench, range, &goals)?;
        for result in &results {
            let _ = writeln!(text, "{}: {}", result.goal.name, in_words(result));
        }
        return Ok((json!(results), mlr::conformance(setting, &goals)));
    }
    if arguments.test == Test::Reset {
        // who has none need not wait for the throughput to be found
        bench.reset()?;
    }
    let found = match arguments.throughput {
        Some(rate) => throughput::Throughput { rate, lossy: None, most: setting.most },
        None => throughput::search(bench, setting, &plan)?,
    };
    let throughput = found.rate;
    let _ = writeln!(
        text,
        "throughput {throughput:.0} frames/s of {:.0} that are offered at most ({:.2} %), frames of {} bytes",
        setting.most,
        100.0 * throughput / setting.most,
        setting.size
    );
    if throughput == 0.0 && arguments.test != Test::Throughput {
        return Err(Failure::NoThroughput);
    }
    let (result, conformance) = match arguments.test {
        // those of connections are searched for elsewhere
        Test::Throughput
        | Test::LossRate
        | Test::HopByHop
        | Test::TcpCapacity
        | Test::TcpRate
        | Test::TcpTearDown
        | Test::TcpIllegal
        | Test::TcpFragments
        | Test::TcpFlood
        | Test::HttpTransfer
        | Test::HttpRate
        | Test::Mlr => {
            return Ok((json!(found), throughput::conformance(setting, &plan)));
        }
        Test::BackToBack => {
            let repeats = 50;
            let bursts = back_to_back::search(bench, setting, throughput, repeats)?;
            match &bursts {
                Some(b) => {
                    let _ = writeln!(
                        text,
                        "bursts of {:.1} frames (least {}, most {}, deviation {:.1}, {repeats} repeats, {}); buffer of {:.6} s",
                        b.mean, b.least, b.most, b.deviation, b.algorithm, b.corrected_buffer
                    );
                }
                None => {
                    text.push_str("the most that is offered is the limit: no burst is too long\n")
                }
            }
            (json!(bursts), back_to_back::conformance(setting, repeats))
        }
        Test::Latency => {
            let plan = latency::Plan { rate: throughput, seconds: seconds * 2.0, repeats: 20 };
            let found = latency::search(bench, &plan)?;
            for (name, value) in [
                ("typical", &found.typical),
                ("worst", &found.worst),
                ("variation", &found.variation),
            ] {
                let _ = writeln!(
                    text,
                    "{name:<10} {:>9.2} µs  (1st to 99th percentile of {} trials: {:.2} to {:.2})",
                    value.median / 1e3,
                    found.trials,
                    value.low / 1e3,
                    value.high / 1e3
                );
            }
            (json!(found), latency::conformance(setting, &plan))
        }
        Test::SystemRecovery => {
            let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
            let found = recovery::system_recovery(bench, setting, &plan)?;
            let _ = writeln!(
                text,
                "nothing was lost any more {:.6} s after {:.0} frames/s, mean of {RECOVERIES} trials",
                found.seconds, found.overload
            );
            if found.unrecovered > 0 {
                let _ = writeln!(
                    text,
                    "but {} of them still lost something when they ended: it takes longer",
                    found.unrecovered
                );
            }
            (json!(found), recovery::conformance(setting, &plan, false))
        }
        Test::Reset => {
            let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
            let found = recovery::reset(bench, &plan)?;
            let _ = writeln!(
                text,
                "reset: {}\nno frame came for {:.6} s around it, mean of {RECOVERIES} trials; as many frames as were \
                 lost take {:.6} s",
                found.what, found.seconds, found.seconds_by_loss
            );
            (json!(found), recovery::conformance(setting, &plan, true))
        }
    };
    let conformance = match arguments.throughput {
        Some(_) => conformance
            .and_but_for("the throughput it is measured at was given, and not searched for"),
        None if seconds < 60.0 => conformance.and_but_for(
            "the throughput it is measured at was found with trials shorter than 60 s",
        ),
        None => conformance,
    };
    Ok((result, conformance))
}

fn in_words(result: &mlr::GoalResult) -> String {
    let throughput = result.conditional_throughput.unwrap_or(0.0);
    match (result.lower, result.upper) {
        (Some(lower), Some(upper)) => {
            format!(
                "conditional throughput {throughput:.0} frames/s, bounds {lower:.0} and {upper:.0}"
            )
        }
        (Some(lower), None) => format!("at least {lower:.0} frames/s, the most that is offered"),
        (None, Some(upper)) => format!("less than {upper:.0} frames/s, the least that was tried"),
        (None, None) => "nothing is known".to_string(),
    }
}

fn print(report: &Report, text: &str) -> String {
    let mut out = match report.mode {
        Some(mode) => format!("{}\nmode {}: {}\n", report.device, mode.name(), mode.warning()),
        None => format!("{}; no figure of this is of a real device\n", report.device),
    };
    out.push_str(text);
    if let Some(why) = &report.incomplete_because {
        let _ = writeln!(out, "no result: {why}");
    }
    let mut claim = |what: &str, conformance: &Conformance| match conformance {
        Conformance::Conforms => out.push_str("conforms\n"),
        Conformance::Partial(missing) => {
            for point in missing {
                let _ = writeln!(out, "{what}: {point}");
            }
        }
        Conformance::Not(why) => {
            let _ = writeln!(out, "conforms: no, {why}");
        }
    };
    claim("partial", &report.conformance);
    if let Some(other) = report.on_a_virtual_link.as_ref().filter(|_| report.complete) {
        claim("on a virtual link partial", other);
    }
    let took = if report.mode.is_some() { "took" } else { "would have taken" };
    let _ = writeln!(
        out,
        "{} trials, which {took} {:.0} s with their pauses",
        report.trials.len(),
        report.seconds
    );
    out
}

//! `xtask bench`: the cost of a packet, by evaluator and number of rules.
//!
//! The rules are those of Adamo and Tablò's test of 2006: each blocks TCP to one port of the
//! server. None matches the measured packets. Other loads have different rules:
//!
//! - `match` rules for one address each, as for customers, of which one matches.
//! - Rules with a table each, none of which has the packet's address.
//! - Rules that need a tag or an owner that the packet lacks.
//!
//! The kernel runs the programs with `BPF_PROG_TEST_RUN` on one CPU. The cost of an empty program,
//! measured in the same block, is subtracted. Rounds are interleaved, so other work of the machine
//! affects all cases alike.

mod classifier;
mod ftp;
mod hostile;
mod lookup;
mod rule_sets;
mod tables;
mod worst;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use indicatif::{ProgressBar, ProgressFinish, ProgressIterator, ProgressStyle};
use skipstep_kernel::object::verify;
use skipstep_kernel::verifier::Verified;
use skipstep_model::{Carried, LinkHeader, Packet, SocketOwner, Verdict};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::options::Evaluator;
use skipstep_ruleset::{Direction, Ruleset};
use skipstep_scenario::Engine;
use skipstep_testing::TestEngine;
use skipstep_wire::build::{Tcp, Udp, ipv4};

/// Numbers of rules: those of the paper, and 5,000.
const RULES: [usize; 5] = [0, 20, 100, 500, 5000];
/// Approximate duration of a single measurement.
const BLOCK: Duration = Duration::from_millis(8);

/// Number of FTP rounds when everything is measured. A round takes half a minute.
const FTP_ROUNDS: u32 = 3;

/// Number of tables that a test engine has room for, less a few.
const TABLES: usize = 250;

/// Number of networks in a large table.
const LARGE: usize = 500;
/// Number of networks of a table that are neighbours.
const IN_A_ROW: usize = 4;
/// An address between two neighbouring networks.
const NEIGHBOUR: [u8; 4] = [192, 77, 1, 2];

/// Number of tags that an instance has numbers for, less a few.
const TAGS: usize = 2000;

/// Return value of a tcx program that passes the packet to the next program.
const TCX_NEXT: u32 = u32::MAX;

const CLIENT: [u8; 4] = [10, 0, 1, 2];
const SERVER: [u8; 4] = [10, 0, 0, 2];

#[derive(clap::Args)]
pub struct Arguments {
    /// Number of rounds, 1 to 1000; the median is printed
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Measure only the time to parse large rule sets; needs no root
    #[arg(long)]
    rule_sets: bool,
    /// Measure one of them in this process
    #[arg(long, hide = true)]
    rule_set: Option<usize>,
    /// Measure only the time to refuse hostile rule sets; needs no root
    #[arg(long)]
    hostile: bool,
    /// Measure one of them in this process
    #[arg(long, hide = true)]
    hostile_text: Option<usize>,
    /// Measure only the classifier's time to find the deciding rule; needs no root
    #[arg(long)]
    classifier: bool,
    /// Measure only the BPF programs' time to find the deciding rule, in units of a lookup in a
    /// hash map
    #[arg(long)]
    lookup: bool,
    /// Measure only the BPF programs' time to find an address in a table, in the same unit
    #[arg(long)]
    tables: bool,
    /// Number of rules for --lookup, instead of several numbers
    #[arg(long, value_name = "RULES", requires = "lookup")]
    among: Option<usize>,
    /// Folder with rule lists of ClassBench, for --classifier and --lookup
    #[arg(long, value_name = "DIR")]
    classbench: Option<PathBuf>,
    /// Measure only FTP through a gateway, by each front end: sessions and bytes a second
    #[arg(long)]
    ftp: bool,
    /// Measure only the worst packets and timer ticks
    #[arg(long)]
    worst: bool,
    /// Treat the clock as a counter of instructions, one a nanosecond (tests/older-kernel --worst)
    #[arg(long, requires = "worst")]
    instructions: bool,
    /// Measure only the verifier's work for each program
    #[arg(long)]
    verifier: bool,
}

/// The packet measured under a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    /// A TCP segment without a state, so the rules are evaluated.
    Tcp,
    /// A UDP datagram without a state, so the rules are evaluated.
    Udp,
    /// A TCP segment of a connection that has a state.
    State,
    /// A UDP datagram of one of many customers, each with a `match` rule.
    Customer,
    /// A UDP datagram from an address that is in none of the many tables that rules name.
    Table,
    /// As `Table`, with many networks in each table.
    LargeTable,
    /// A UDP datagram with a tag that none of the rules names.
    Tag,
    /// A UDP datagram of a user that none of the rules names.
    User,
}

impl Load {
    const ALL: [Load; 8] = [
        Load::Tcp,
        Load::Udp,
        Load::State,
        Load::Customer,
        Load::Table,
        Load::LargeTable,
        Load::Tag,
        Load::User,
    ];

    fn heading(self) -> &'static str {
        match self {
            Load::Tcp => "TCP against TCP rules",
            Load::Udp => "UDP against TCP rules",
            Load::State => "TCP with a state",
            Load::Customer => "UDP against match rules",
            Load::Table => "UDP against tables",
            Load::LargeTable => "UDP against large tables",
            Load::Tag => "tagged UDP against tags",
            Load::User => "UDP against users",
        }
    }
}

/// The case of a figure: evaluator, number of rules, packet.
type Case = (&'static str, usize, Load);

/// Measures the parts that the arguments select, and prints the figures.
///
/// # Errors
/// Fails if the kernel refuses a program, or if a measured packet or text is not handled as
/// expected.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(index) = arguments.rule_set {
        rule_sets::measure(index)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(number) = arguments.hostile_text {
        hostile::measure(number)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.rule_sets {
        rule_sets::run()?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.hostile {
        hostile::run()?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.classifier {
        classifier::run(arguments.classbench.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}\n", machine()?);
    if arguments.lookup {
        return lookup::run(arguments.rounds, arguments.among, arguments.classbench.as_deref());
    }
    if arguments.tables {
        return tables::run(arguments.rounds);
    }
    if arguments.worst {
        print!("{}", worst::run(arguments.instructions)?);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.verifier {
        print!("{}", verification()?);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.ftp {
        ftp::run(arguments.rounds)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut figures: BTreeMap<Case, Vec<f64>> = BTreeMap::new();
    let mut empty = Vec::new();
    let evaluators = [
        ("linear", Evaluator::Linear),
        ("skip-steps", Evaluator::SkipSteps),
        ("compiled", Evaluator::Compiled),
    ];
    let bar = ProgressBar::new(arguments.rounds.into()).with_finish(ProgressFinish::AndClear);
    let style = ProgressStyle::with_template("round {pos} of {len}")?;
    for _ in (0..arguments.rounds).progress_with(bar.with_style(style)) {
        for (name, evaluator) in evaluators {
            let mut engine = TestEngine::new(evaluator)?;
            engine.use_default_planner();
            for rules in RULES {
                for load in Load::ALL {
                    let (cost, base) = measure(&mut engine, rules, load)
                        .with_context(|| format!("{name}, {rules} rules, {load:?}"))?;
                    figures.entry((name, rules, load)).or_default().push(cost - base);
                    empty.push(base);
                }
            }
        }
    }
    print!("{}", table(&figures, &mut empty, arguments.rounds));
    print!("\n{}", worst::run(arguments.instructions)?);
    print!("\n{}", verification()?);
    println!("\nLoading rules with pfctl -f, the whole process: {}\n", loading()?);
    rule_sets::run()?;
    println!();
    ftp::run(arguments.rounds.min(FTP_ROUNDS))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the nanoseconds of a packet, and of an empty program right after.
fn measure(engine: &mut TestEngine, rules: usize, load: Load) -> anyhow::Result<(f64, f64)> {
    let text = match load {
        Load::Tcp | Load::Udp => text(rules, " no state"),
        Load::State => text(rules, ""),
        Load::Customer => customers(rules),
        Load::Table => tables_of(rules, 4),
        Load::LargeTable => tables_of(rules, LARGE),
        Load::Tag => tags(rules),
        Load::User => users(rules),
    };
    engine.load(&ruleset(&text)?, &host()).map_err(anyhow::Error::msg)?;
    let packet = match load {
        Load::Tcp => inbound(ipv4(CLIENT, SERVER).tcp(&segment("A", 1))),
        Load::Udp | Load::Customer | Load::Table => datagram(CLIENT),
        Load::LargeTable => datagram(NEIGHBOUR),
        Load::Tag => {
            let tag = Some("other".to_string());
            Packet { carried: Carried { tag, ..Carried::default() }, ..datagram(CLIENT) }
        }
        Load::User => Packet { owner: Some(SocketOwner { uid: 1, gid: 1 }), ..datagram(CLIENT) },
        Load::State => connect(engine)?,
    };
    let trial = engine.time_packet(&packet, 100)?;
    ensure!(trial.returned == TCX_NEXT, "the packet did not pass: {}", trial.returned);
    let cost = engine.time_packet(&packet, repeat(trial.duration))?;
    let base = engine.time_empty_program(&packet, repeat(Duration::from_nanos(10)))?;
    Ok((nanoseconds(cost.duration), nanoseconds(base.duration)))
}

/// Returns the number of runs, each of the duration `once`, that fit into a block.
fn repeat(once: Duration) -> u32 {
    (BLOCK.as_nanos() / once.as_nanos().max(1)).clamp(100, 1_000_000) as u32
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

fn ruleset(text: &str) -> anyhow::Result<Ruleset> {
    let host = host();
    match skipstep_pfconf::load(text, &Context::new(&host)) {
        Ok(loaded) => Ok(loaded.ruleset),
        Err(rejected) => bail!("{}", rejected.diagnostics[0]),
    }
}

/// Writes `rules` rules that block unused ports, after a rule that passes everything.
fn text(rules: usize, keep: &str) -> String {
    let mut text = format!("pass all{keep}\n");
    for port in 10_001..=10_000 + rules {
        let _ = writeln!(text, "block in proto tcp from any to 10.0.0.2 port {port}");
    }
    text
}

/// Writes `rules` rules that set the priority of one address each. The first address is the
/// client's.
fn customers(rules: usize) -> String {
    let first = u32::from_be_bytes(CLIENT);
    let mut text = String::from("pass all no state\n");
    for address in (first..).take(rules).map(Ipv4Addr::from_bits) {
        let _ = writeln!(text, "match in from {address} set prio 3");
    }
    text
}

/// Writes `rules` rules that each block the addresses of a table. Rules take the tables in order
/// and begin again at the first. One of eight networks is in a table. Some neighbouring networks
/// are in the same table, as in tables of countries.
fn tables_of(rules: usize, entries: usize) -> String {
    let tables = rules.min(TABLES);
    let mut text = String::from("pass all no state\n");
    for table in 0..tables {
        let network = |number: usize| {
            let row = number / IN_A_ROW * tables + table;
            Ipv4Addr::from_bits(((row * IN_A_ROW + number % IN_A_ROW) as u32) << 11 | 192 << 24)
        };
        let networks: Vec<String> =
            (0..entries).map(|number| format!("{}/24", network(number))).collect();
        let _ = writeln!(text, "table <t{table}> {{ {} }}", networks.join(", "));
    }
    for rule in 0..rules {
        let _ = writeln!(text, "block in from <t{}>", rule % tables);
    }
    text
}

/// Writes `rules` rules that each block a tag, from a limited number of tags. A rule before them
/// sets a tag that none of them names.
fn tags(rules: usize) -> String {
    let mut text = String::from("pass all no state\nmatch out tag other\n");
    for rule in 0..rules {
        let _ = writeln!(text, "block in proto udp tagged t{}", rule % TAGS);
    }
    text
}

/// Writes `rules` rules that each block the packets of a user.
fn users(rules: usize) -> String {
    let mut text = String::from("pass all no state\n");
    for user in 1000..1000 + rules {
        let _ = writeln!(text, "block in proto udp user {user}");
    }
    text
}

fn datagram(from: [u8; 4]) -> Packet {
    inbound(ipv4(from, SERVER).udp(&Udp::new(40_000, 9000).payload(&[0; 64])))
}

fn segment(flags: &str, seq: u32) -> Tcp {
    Tcp::new(40_000, 9000).flags(flags).seq(seq).ack(1).window(8192)
}

/// Opens a connection through the firewall, and returns a segment of it that changes nothing.
fn connect(engine: &mut TestEngine) -> anyhow::Result<Packet> {
    let syn = Tcp::new(40_000, 9000).flags("S").seq(0).window(8192);
    let answer = Tcp::new(9000, 40_000).flags("SA").seq(0).ack(1).window(8192);
    let reply = Packet { direction: Direction::Out, ..inbound(ipv4(SERVER, CLIENT).tcp(&answer)) };
    let later = inbound(ipv4(CLIENT, SERVER).tcp(&segment("A", 1)));
    for packet in [inbound(ipv4(CLIENT, SERVER).tcp(&syn)), reply, later.clone()] {
        let fate = engine.packet(&packet);
        ensure!(fate.verdict == Verdict::Pass && fate.state.is_some(), "no state: {fate:?}");
    }
    Ok(later)
}

fn inbound(bytes: Vec<u8>) -> Packet {
    Packet {
        direction: Direction::In,
        interface: "em0".to_string(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}

fn host() -> Host {
    Host::with([Interface::new("em0", &[])])
}

fn table(figures: &BTreeMap<Case, Vec<f64>>, empty: &mut [f64], rounds: u32) -> String {
    let columns: Vec<(&str, Load)> = Load::ALL
        .into_iter()
        .flat_map(|load| ["linear", "skip-steps", "compiled"].map(|name| (name, load)))
        .collect();
    let mut text = format!(
        "Nanoseconds a packet: median of {rounds} rounds (lowest-highest), less those of an empty \
         program, {:.0}\n\n{:>6}",
        median(empty),
        ""
    );
    for load in Load::ALL {
        let _ = write!(text, "  {:<70}", load.heading());
    }
    let _ = write!(text, "\n{:>6}", "rules");
    for (name, _) in &columns {
        let _ = write!(text, "  {name:<22}");
    }
    text.push('\n');
    for rules in RULES {
        let _ = write!(text, "{rules:>6}");
        for &(name, load) in &columns {
            let mut values = figures[&(name, rules, load)].clone();
            let middle = median(&mut values);
            let range = format!("({:.0}-{:.0})", values[0], values[values.len() - 1]);
            let _ = write!(text, "  {middle:>6.0} {range:<15}");
        }
        text.push('\n');
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Sorts the values and returns the median.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Returns a table of the verifier's work for each program.
fn verification() -> anyhow::Result<String> {
    let mut text = format!(
        "Verifier: instructions it went through (of 1000000), milliseconds, bytes of stack of the \
         program and of its deepest functions\n\n{:<16}{:>14}{:>8}  stack\n",
        "program", "instructions", "ms"
    );
    let all = verify()?;
    ensure!(!all.is_empty(), "the kernel's verifier printed no log");
    for program in all {
        let Verified { program, instructions, duration, stack } = program;
        let (own, mut functions) = (stack.first().copied().unwrap_or(0), stack);
        functions.sort_unstable_by(|one, other| other.cmp(one));
        functions.truncate(3);
        let deepest: Vec<String> = functions.iter().map(u32::to_string).collect();
        let _ = writeln!(
            text,
            "{program:<16}{instructions:>14}{:>8.0}  {own} ({})",
            milliseconds(duration),
            deepest.join(", ")
        );
    }
    Ok(text)
}

/// Returns the time that the real pfctl takes to load each number of rules. The first load includes
/// creation of the maps and verification of the programs.
fn loading() -> anyhow::Result<String> {
    let program = std::env::current_exe()?.with_file_name("pfctl");
    ensure!(program.exists(), "{} is not built", program.display());
    // A child of this thread runs in the network namespace that a test engine creates.
    let _namespace = TestEngine::new(Evaluator::SkipSteps)?;
    let pfctl = Pfctl { program, instance: format!("bench-{}", std::process::id()) };
    let mut line = format!("first {:.0} ms", milliseconds(pfctl.run(&["-f", "-"], &text(0, ""))?));
    for rules in RULES {
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(milliseconds(pfctl.run(&["-f", "-"], &text(rules, ""))?));
        }
        let _ = write!(line, ", {rules} rules {:.0} ms", median(&mut times));
    }
    Ok(line)
}

/// The pfctl beside this program, with an instance that is removed when the value is dropped.
struct Pfctl {
    program: PathBuf,
    instance: String,
}

impl Pfctl {
    fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let mut child = Command::new(&self.program)
            .args(["-q", "-p", &self.instance])
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| self.program.display().to_string())?;
        child.stdin.take().context("stdin")?.write_all(input.as_bytes())?;
        ensure!(child.wait()?.success(), "pfctl {} failed", arguments.join(" "));
        Ok(start.elapsed())
    }
}

impl Drop for Pfctl {
    fn drop(&mut self) {
        if let Err(error) = self.run(&["--remove"], "") {
            eprintln!("xtask: instance {} was not removed: {error:#}", self.instance);
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Returns CPU model, number of CPUs and kernel version.
fn machine() -> anyhow::Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, model)| model.trim());
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{model}, {count} CPUs, Linux {}", kernel.trim()))
}

//! The time and memory that large rule sets take to be parsed, checked and optimized.
//!
//! Each rule set is measured in a process of its own, so its peak of memory is the process's.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use skipstep_pfconf::Context;
use skipstep_ruleset::Optimization;
use skipstep_ruleset::interface::{Host, Interface};

/// Sizes of the rule sets and of the table.
const RULES: u32 = 100_000;
const ENTRIES: u32 = 1_000_000;

/// A large rule set.
struct Shape {
    name: &'static str,
    text: fn() -> String,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "rules, all different", text: different },
    Shape { name: "rules, alike but for an address", text: alike },
    Shape { name: "rules, one list", text: one_list },
    Shape { name: "rules, 1,000 tables", text: tables },
    Shape { name: "rules, written with macros", text: macros },
    Shape { name: "table entries from a file", text: table_file },
];

/// Measures every shape and prints a table.
///
/// # Errors
/// Fails if a process cannot be started or fails.
pub fn run() -> anyhow::Result<()> {
    println!(
        "Rule sets of {RULES} rules, a table of {ENTRIES} entries; parse, check, optimize; seconds on a processor\n"
    );
    println!("{:<34}{:>9}{:>10}{:>12}", "", "seconds", "peak MB", "rules after");
    for (index, Shape { name, .. }) in SHAPES.iter().enumerate() {
        let output = Command::new(std::env::current_exe()?)
            .args(["bench", "--rule-set", &index.to_string()])
            .output()?;
        ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        println!("{name:<34}{}", String::from_utf8_lossy(&output.stdout).trim_end());
    }
    Ok(())
}

/// Measures one shape in this process.
///
/// # Errors
/// Fails if `index` is too large, or if the rule set is refused.
pub fn measure(index: usize) -> anyhow::Result<()> {
    let text = (SHAPES.get(index).context("no such rule set")?.text)();
    let host = host();
    let entries = entries();
    let read_file = |_: &str| Ok(entries.clone());
    let context = Context {
        optimization: Some(Optimization::Basic),
        read_file: &read_file,
        echo: false,
        ..Context::new(&host)
    };
    let start = processor_seconds()?;
    let ruleset = match skipstep_pfconf::load(&text, &context) {
        Ok(loaded) => loaded.ruleset,
        Err(rejected) => bail!("{}", rejected.diagnostics[0]),
    };
    let seconds = processor_seconds()? - start;
    println!("{seconds:>9.2}{:>10}{:>12}", peak()? / 1000, ruleset.rules.len());
    Ok(())
}

/// Returns the CPU seconds of this process, which has one thread.
///
/// # Errors
/// Fails if the kernel has no schedstat.
pub fn processor_seconds() -> anyhow::Result<f64> {
    let statistics = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = statistics.split(' ').next().context("no schedstat")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// Returns the peak of this process's memory, in kB.
///
/// # Errors
/// Fails if `/proc/self/status` has no peak.
pub fn peak() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn host() -> Host {
    Host::with((0..16).map(|number| Interface::new(&format!("em{number}"), &[])))
}

/// Returns the n-th of a sequence of addresses that are spread over the whole of 10.0.0.0/8.
fn address(n: u32) -> String {
    let bits = n.wrapping_mul(0x9e_3779) & 0xff_ffff;
    format!("10.{}.{}.{}", bits >> 16, bits >> 8 & 255, bits & 255)
}

fn different() -> String {
    let mut text = String::new();
    for n in 0..RULES {
        let action =
            ["pass in", "block in log", "pass out quick", "block return out"][n as usize / 7 % 4];
        let protocol = ["tcp", "udp"][n as usize % 2];
        let (from, to, port) = (address(n), address(n + RULES), n % 60_000 + 1);
        let _ = writeln!(
            text,
            "{action} on em{} proto {protocol} from {from} to {to} port {port}",
            n % 16
        );
    }
    text
}

fn alike() -> String {
    let mut text = String::new();
    for n in 0..RULES {
        let _ = writeln!(text, "block in from {}", address(n));
    }
    text
}

fn one_list() -> String {
    let addresses: Vec<String> = (0..RULES).map(address).collect();
    format!("pass in proto tcp from {{ {} }} to any port 80\n", addresses.join(", "))
}

fn tables() -> String {
    let mut text = String::new();
    for n in 0..1000 {
        let _ = writeln!(text, "table <t{n}> {{ {}, {} }}", address(n), address(n + 1000));
    }
    for n in 0..RULES {
        let _ =
            writeln!(text, "pass in proto tcp from <t{}> to any port {}", n % 1000, n / 1000 + 1);
    }
    text
}

fn macros() -> String {
    let mut text = String::new();
    for n in 0..1000 {
        let _ = writeln!(text, "net{n} = \"{}\"", address(n));
    }
    for n in 0..RULES {
        let _ =
            writeln!(text, "pass in proto tcp from $net{} to any port {}", n % 1000, n / 1000 + 1);
    }
    text
}

fn table_file() -> String {
    "table <large> persist file \"entries\"\nblock in from <large>\n".to_string()
}

fn entries() -> String {
    let mut text = String::new();
    for n in 0..ENTRIES {
        let _ = writeln!(text, "{}", address(n));
    }
    text
}

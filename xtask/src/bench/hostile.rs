//! The cost of texts that a reader has to refuse. Each text must end in an error, soon and with
//! bounded memory. Each is measured in a process of its own.

use std::process::Command;

use anyhow::{Context as _, ensure};
use skipstep_import::{iptables, pcf};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::Host;

use super::rule_sets::{peak, processor_seconds};

/// A hostile text.
struct Input {
    name: &'static str,
    text: fn() -> String,
}

const LARGE: usize = 100_000_000;
/// The largest limit that a reader has for its input, in bytes.
const LIMIT: usize = 1 << 24;

const INPUTS: [Input; 11] = [
    Input { name: "100 MB of blanks", text: || " ".repeat(LARGE) },
    Input { name: "100 MB, one word", text: || "a".repeat(LARGE) },
    Input { name: "100 MB, one line of words", text: || "pass in ".repeat(LARGE / 8) },
    Input { name: "100 MB of zero bytes", text: || "\0".repeat(LARGE) },
    Input { name: "16 MB, one line of words", text: || "pass in ".repeat(LIMIT / 8) },
    Input { name: "16 MB of opening braces", text: || "{".repeat(LIMIT - 1) },
    Input {
        name: "16 MB, a string without end",
        text: || "\"".to_string() + &"a".repeat(LIMIT - 1),
    },
    Input { name: "16 MB of zero bytes", text: || "\0".repeat(LIMIT - 1) },
    Input { name: "16 MB of wrong lines", text: || "-A pass to port 1\n".repeat(LIMIT / 18) },
    Input { name: "a list for millions of rules", text: millions },
    Input { name: "a file that includes itself", text: || "include \"again\"\n".to_string() },
];

/// Reads a text, and returns true if the text is refused.
type Reader = fn(&str) -> bool;

const READERS: [(&str, Reader); 5] = [
    ("pf.conf", |text| {
        let again = |_: &str| Ok("include \"again\"\n".to_string());
        skipstep_pfconf::load(
            text,
            &Context { read_file: &again, ..Context::new(&Host::default()) },
        )
        .is_err()
    }),
    ("table file", |text| {
        let file = |_: &str| Ok(text.to_string());
        let rules = "table <t> file \"file\"\n";
        skipstep_pfconf::load(
            rules,
            &Context { read_file: &file, ..Context::new(&Host::default()) },
        )
        .is_err()
    }),
    ("pcf", |text| pcf::import(text, "input").is_err()),
    ("iptables-save", |text| iptables::import(text, "input").is_err()),
    ("scenario", |text| skipstep_scenario::parse::file(text, "input").is_err()),
];

/// Measures every text with every reader, and prints a table.
///
/// # Errors
/// Fails if a process cannot be started, or if a reader accepts a text.
pub fn run() -> anyhow::Result<()> {
    println!("CPU seconds until refusal, and peak memory in MB including the text\n");
    print!("{:<30}", "");
    READERS.iter().for_each(|(reader, _)| print!("{reader:>18}"));
    println!();
    for (input, Input { name, .. }) in INPUTS.iter().enumerate() {
        print!("{name:<30}");
        for reader in 0..READERS.len() {
            let number = (input * READERS.len() + reader).to_string();
            let output = Command::new(std::env::current_exe()?)
                .args(["bench", "--hostile-text", &number])
                .output()?;
            let said = String::from_utf8_lossy(&output.stdout);
            ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            print!("{:>18}", said.trim_end());
        }
        println!();
    }
    Ok(())
}

/// Measures one text with one reader in this process. `number` is the index of the text multiplied
/// by the number of readers, plus the index of the reader.
///
/// # Errors
/// Fails if the reader accepts the text, or if the number is too large.
pub fn measure(number: usize) -> anyhow::Result<()> {
    let Input { text, .. } = INPUTS.get(number / READERS.len()).context("no such text")?;
    let (name, read) = READERS[number % READERS.len()];
    let text = text();
    let start = processor_seconds()?;
    let refused = read(&text);
    let seconds = processor_seconds()? - start;
    ensure!(refused || text.trim().is_empty(), "{name}: accepted");
    println!("{seconds:.2} {:>5}", peak()? / 1000);
    Ok(())
}

fn millions() -> String {
    let hosts: String = (0..2000).map(|n| format!("10.0.{}.{} ", n / 250, n % 250)).collect();
    format!("pass from {{ {hosts}}} to {{ {hosts}}}\n")
}

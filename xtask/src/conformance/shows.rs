//! The output of `pfctl -s` and `pfctl -T` after packets, compared with that of OpenBSD 7.8's pfctl
//! (`show.jsonl.gz`). The code is the same that shows the filter of a machine. The BPF programs
//! belong to a loaded instance; the model supplies its counters.

mod mask;
mod model;
mod random;
mod subject;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Context as _;
use pfctl::args;
use pfctl::request::Args;
use pfctl::words::TableCommand;
use pfctl::{live, table};
use serde::Deserialize;
use skipstep_pfconf::{Context, Dialect};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{AutomaticTables, Ruleset, TableEntry, TableName};
use skipstep_scenario::host;

use self::random::Draws;
use self::subject::{Subject, Subjects};
use super::replay::{self, Difference, Played};
use super::vector;
use super::workers::share_out;
use crate::catch::catching;
use crate::engines::Choice;

/// The name of the file.
pub const FILE: &str = "show";

/// Number of lines in the text of a difference, because one error may show in forty places.
const LONGEST_TEXT: usize = 40;

/// An entry of the file: rules, packets, and printed texts by the arguments of pfctl.
#[derive(Deserialize)]
struct Entry {
    id: String,
    rules: String,
    packets: Vec<vector::Packet>,
    show: BTreeMap<String, String>,
    #[serde(default)]
    stderr: BTreeMap<String, String>,
    #[serde(default)]
    rc: BTreeMap<String, u8>,
}

/// The output of pfctl for some arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Output {
    stdout: String,
    stderr: String,
    status: u8,
}

/// Compares every entry on every evaluator, in any order. The results are in the order of `lines`.
///
/// # Errors
/// Fails if a line is not an entry, if a vector file cannot be read, or if an evaluator cannot
/// start.
pub fn all(
    lines: &[String],
    vectors: &Path,
    choices: &[Choice],
    jobs: usize,
) -> anyhow::Result<Vec<Vec<Played>>> {
    let draws = random::draws(lines, vectors)?;
    let host = host::standard();
    share_out(
        lines,
        jobs,
        |job| Subjects::new(choices, job, &host),
        |subjects, line| entry(line, &draws, choices, subjects, &host),
    )
}

fn entry(
    line: &str,
    draws: &Draws,
    choices: &[Choice],
    subjects: &mut Subjects,
    host: &Host,
) -> anyhow::Result<Vec<Played>> {
    let entry: Entry = serde_json::from_str(line)?;
    let context = Context {
        automatic_tables: AutomaticTables::for_loading(0x5eed),
        random: &|| 0x5eed,
        dialect: Dialect::OpenBsd,
        ..Context::new(host)
    };
    let ruleset = match replay::load(&entry.rules, &context) {
        Ok(ruleset) => ruleset,
        Err(text) => {
            let difference = || Played::Different(different(&entry, &text));
            return Ok(choices.iter().map(|_| difference()).collect());
        }
    };
    let compared = choices.iter().map(|choice| {
        let Some(mut subject) = subjects.subject(*choice) else { return Played::NotBuilt };
        let text = catching(|| compare(&entry, draws, &ruleset, &mut subject))
            .map_err(anyhow::Error::msg)
            .flatten()
            .unwrap_or_else(|error| format!("{error:#}"));
        if text.is_empty() { Played::Equal } else { Played::Different(different(&entry, &text)) }
    });
    Ok(compared.collect())
}

fn different(entry: &Entry, text: &str) -> Difference {
    let lines: Vec<&str> = text.lines().take(LONGEST_TEXT).collect();
    Difference {
        id: entry.id.clone(),
        text: format!("{}: {}", entry.id, lines.join("\n")),
        scenario: None,
    }
}

/// Plays the packets and compares all outputs. Returns an empty text if all are equal.
fn compare(
    entry: &Entry,
    draws: &Draws,
    ruleset: &Ruleset,
    subject: &mut Subject,
) -> anyhow::Result<String> {
    let draws = draws.get(&entry.id);
    subject.play(ruleset, &entry.packets, draws.map_or(&[], Vec::as_slice))?;
    // true if the entry's random numbers were not recorded
    let unknown = draws.is_none();
    let mut text = String::new();
    for (arguments, expected) in entry.show.iter().filter(|(arguments, _)| *arguments != "-so") {
        let expected = Output {
            stdout: mask::text(arguments, expected, unknown),
            stderr: entry.stderr.get(arguments).cloned().unwrap_or_default(),
            status: entry.rc.get(arguments).copied().unwrap_or(0),
        };
        let output = run_pfctl(arguments, subject).with_context(|| arguments.clone())?;
        let output = Output { stdout: mask::text(arguments, &output.stdout, unknown), ..output };
        if output != expected {
            writeln!(text, "pfctl {arguments}\n{}", difference(&expected, &output))?;
        }
    }
    Ok(text)
}

/// Returns the output of pfctl for the arguments.
fn run_pfctl(arguments: &str, subject: &Subject) -> anyhow::Result<Output> {
    let words: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let args = args::parse(&words).map_err(|_| anyhow::anyhow!("arguments refused"))?;
    if let Some(show) = args.show {
        let host = || Ok(subject.host().clone());
        let mut stdout = Vec::new();
        live::write(Some(subject.filter()), &host, show, &args, &mut stdout)?;
        let stdout = String::from_utf8(stdout)?;
        return Ok(Output { stdout, ..Output::default() });
    }
    let name = args.table.as_ref().context("neither -s nor -t")?;
    let name = TableName::new(args.anchor.as_ref().map_or("", |anchor| &anchor.path), name);
    let found = table::Table::find(subject.filter(), &name)?.context("no such table")?;
    match args.command {
        Some(TableCommand::Show) => {
            Ok(Output { stdout: table::shown(&found.entries, &args), ..Output::default() })
        }
        Some(TableCommand::Test) => {
            let tested = table::tested(&found.entries, &addresses(&args)?, &args);
            Ok(Output { stdout: tested.text, stderr: tested.summary + "\n", status: tested.status })
        }
        _ => anyhow::bail!("unexpected -T"),
    }
}

fn addresses(args: &Args) -> anyhow::Result<Vec<TableEntry>> {
    let entry = |word: &String| -> anyhow::Result<TableEntry> {
        let address: std::net::IpAddr = word.parse()?;
        Ok(TableEntry { negated: false, net: address.into(), weight: 0 })
    };
    args.operands.iter().map(entry).collect()
}

/// Formats the first line that differs, and the line before.
fn difference(expected: &Output, output: &Output) -> String {
    if expected.stdout == output.stdout {
        return format!(
            "  - {:?}, exit status {}\n  + {:?}, exit status {}",
            expected.stderr, expected.status, output.stderr, output.status
        );
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (expected, output) = (lines(&expected.stdout), lines(&output.stdout));
    let same = expected.iter().zip(&output).take_while(|(a, b)| a == b).count();
    let line = |lines: &[String]| lines.get(same).cloned().unwrap_or_else(|| "(end)".to_owned());
    let before = same.checked_sub(1).map_or("", |at| &expected[at]);
    format!("    {before}\n  - {}\n  + {}", line(&expected), line(&output))
}

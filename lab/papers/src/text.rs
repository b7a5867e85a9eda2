//! The output of `fwlab paper`: the paper, its tables, and three lines for each of its findings.

use std::fmt::Write;

use fwlab_results::{Run, Table, report};

/// Returns the whole text.
pub(super) fn run_text(run: &Run) -> String {
    let mut text = String::new();
    // writing to a string does not fail
    let _ = write_all(&mut text, run);
    text
}

fn write_all(text: &mut String, run: &Run) -> std::fmt::Result {
    if let Some(paper) = &run.paper {
        writeln!(text, "\n{}\n{}", paper.title, paper.source)?;
        for difference in &paper.differences {
            writeln!(text, "- {difference}")?;
        }
        for table in &paper.tables {
            write!(text, "\n{}\n{}", table.title, table_text(table))?;
        }
    }
    if !run.findings.is_empty() {
        writeln!(text, "\nFindings")?;
    }
    for finding in &run.findings {
        writeln!(text, "- {}: {}", finding.claim, finding.verdict.words().to_uppercase())?;
        writeln!(text, "    there: {}", finding.source)?;
        writeln!(text, "    here:  {}", finding.evidence)?;
    }
    if let Some(why) = run.incomplete_because.as_ref().filter(|_| !run.complete) {
        writeln!(text, "\nnot complete: {why}")?;
    }
    writeln!(text, "\nmode {}: {}; {:.0} s", run.mode.name(), run.mode.warning(), run.seconds)
}

/// Returns a table. Its columns are narrow, because each word of a heading has its own line.
fn table_text(table: &Table) -> String {
    let words = |heading: &String| heading.split_whitespace().collect::<Vec<_>>().join("\n");
    let columns = table.columns.iter().map(words).collect();
    report::Table::from(&Table { columns, ..table.clone() }).text()
}

/// Formats a number with the digits that matter.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

//! The output of `fwlab paper`: the paper, its tables, and three lines for each of its findings.

use std::fmt::Write;

use fwlab_results::{Run, Table};

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
            write_table(text, table)?;
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

/// Appends a table. A column is as wide as its longest word, and headings are broken into lines.
fn write_table(text: &mut String, table: &Table) -> std::fmt::Result {
    writeln!(text, "\n{}", table.title)?;
    let headings: Vec<Vec<&str>> =
        table.columns.iter().map(|heading| heading.split_whitespace().collect()).collect();
    let length = |word: &str| word.chars().count();
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| length(&row[column]));
            cells.chain(headings[column].iter().map(|word| length(word))).max().unwrap_or(0)
        })
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, (cell, &width)) in cells.zip(&widths).enumerate() {
            let gap = " ".repeat(width.saturating_sub(length(cell)));
            match column < table.names {
                true => line += &format!("{cell}{gap}  "),
                false => line += &format!("{gap}{cell}  "),
            }
        }
        writeln!(text, "{}", line.trim_end())
    };
    let lines = headings.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..lines {
        // headings are aligned at their last line
        let words = headings.iter().map(|heading| {
            let first = lines - heading.len();
            number.checked_sub(first).map_or("", |place| heading[place])
        });
        line(&mut words.collect::<Vec<_>>().into_iter())?;
    }
    for row in &table.rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// Formats a number with the digits that matter.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

//! The text of a comparison.

use std::fmt::Write;

use super::{ComparedSystem, Comparison, Verdict};
use crate::report::Table;
use crate::stats::picture;

/// Width of a picture in columns.
const WIDTH: usize = 72;

/// Returns the whole text.
pub(super) fn comparison_text(comparison: &Comparison) -> String {
    let mut out = format!(
        "before  {}\nafter   {}\n{}\n",
        comparison.before, comparison.after, comparison.warning
    );
    for note in &comparison.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let tables = comparison.cells.chunk_by(|one, other| one.series == other.series);
    for table in tables {
        write_table(&mut out, table);
    }
    let count = |verdict| comparison.cells.iter().filter(|cell| cell.verdict == verdict).count();
    let (better, worse) = (count(Verdict::Better), count(Verdict::Worse));
    let noise = count(Verdict::Noise);
    let _ = writeln!(out, "\n{better} better, {worse} worse, {noise} within the noise");
    out
}

/// Draws the samples of each cell.
pub(super) fn pictures(comparison: &Comparison) -> String {
    let mut out = String::new();
    for cell in &comparison.cells {
        let at = cell.at.as_ref().map_or(String::new(), |(name, at)| format!(", {name} {at}"));
        let [before, after] = &cell.quotients;
        let drawn = picture(&[("before", before), ("after", after)], WIDTH);
        let _ = write!(out, "\n{}{at}, {}\n{drawn}", cell.series, cell.label);
    }
    out
}

fn write_table(out: &mut String, cells: &[ComparedSystem]) {
    let dimension = cells[0].at.as_ref().map_or("", |(name, _)| name);
    let dimension = format!("{dimension}#");
    let headings =
        [&dimension, "system", "before#", "after#", "change#", "95 %", "noise#", "p#", ""];
    let mut table = Table::new(&headings);
    for cell in cells {
        let verdict = match cell.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Noise => "noise",
        };
        let configuration = if cell.configuration_differs { ", another configuration" } else { "" };
        table.rows.push(vec![
            cell.at.as_ref().map_or(String::new(), |(_, at)| at.to_string()),
            cell.label.clone(),
            format!("{:.1}", cell.before),
            format!("{:.1}", cell.after),
            format!("{:.3}", cell.change.middle),
            format!("{:.3} … {:.3}", cell.change.low, cell.change.high),
            cell.noise.map_or("?".to_string(), |noise| format!("{:.1} %", noise * 100.0)),
            format!("{:.3}", cell.p),
            format!("{verdict}{configuration}"),
        ]);
    }
    let _ = write!(out, "\n{} [{}]\n{}", cells[0].series, cells[0].unit, table.text());
    if cells.iter().any(|cell| cell.reference.is_some()) {
        out.push_str(
            "change: of the ratio to the plain router or bridge of the same round, or to the \
             cable\n",
        );
    }
}

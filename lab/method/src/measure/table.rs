//! The table that `fwlab measure` prints.

use std::fmt::Write;

use fwlab_results::report::Table;
use fwlab_results::stats::Interval;
use fwlab_results::summary::{self, Row};
use fwlab_results::{Mode, Point, Role, Run, Series};

/// Returns a table for each point of a run.
pub(super) fn text(run: &Run) -> String {
    let mut text = String::new();
    for series in &run.series {
        for point in series.points.iter().filter(|point| !point.samples.is_empty()) {
            // writing to a string does not fail
            let _ = write_point(&mut text, run, series, point);
        }
    }
    if let Some(why) = &run.environment.no_cycles {
        let _ = writeln!(text, "no CPU cycles in this table: {why}");
    }
    if let Some(why) = &run.incomplete_because {
        let _ = writeln!(text, "\nnot complete: {why}");
    }
    text
}

fn write_point(text: &mut String, run: &Run, series: &Series, point: &Point) -> std::fmt::Result {
    let summary = summary::summarize(run, series, point);
    if let (Some(dimension), Some(at)) = (&series.dimension, point.at) {
        writeln!(text, "\n{} {at}", dimension.name)?;
    }
    let is_bridge = run.systems.iter().any(|system| system.role == Role::Bridge);
    let ratios = if is_bridge { "ratio to plain bridge#" } else { "ratio to plain router#" };
    let unit = format!("{}#", series.quantity.unit);
    let mut table = Table::new(&["", &unit, "less cable#", ratios, ""]);
    for row in &summary.rows {
        table.rows.push(vec![
            row.system.label.clone(),
            format!("{:.0}", row.median.middle),
            row.net.map_or(String::new(), |net| format!("{:.0}", net.middle)),
            row.to_plain.as_ref().map_or(String::new(), ratio),
            remarks(row, run.mode),
        ]);
    }
    write!(text, "{}", table.text())?;
    if let Some(noise) = summary.noise {
        writeln!(
            text,
            "noise: the placebo (the same system, measured twice) differs by up to {:.1} %",
            100.0 * noise
        )?;
    }
    if let Some(ceiling) = point.ceiling {
        writeln!(text, "maximum rate of the generator: {ceiling:.0} frames/s")?;
    }
    if let Some(void) = &point.void {
        writeln!(text, "VOID: {void}")?;
    }
    writeln!(text, "mode {}: {}", run.mode.name(), run.mode.warning())
}

fn ratio(interval: &Interval) -> String {
    format!("{:.3} ({:.3} - {:.3})", interval.middle, interval.low, interval.high)
}

/// Returns loss, latency, cycles, repeats and doubts of a row.
fn remarks(row: &Row<'_>, mode: Mode) -> String {
    let mut remarks = Vec::new();
    if mode != Mode::Cost
        && let Some(counts) = row.counts
    {
        let lost = counts.sent.saturating_sub(counts.received);
        let mut remark = format!("lost {:.2} %", 100.0 * lost as f64 / counts.sent.max(1) as f64);
        let quantile = |share| row.latency.as_ref().and_then(|latency| latency.quantile(share));
        if let (Some(half), Some(most)) = (quantile(0.5), quantile(0.99)) {
            remark += &format!(", {:.1} us, p99 {:.1} us", half as f64 / 1e3, most as f64 / 1e3);
        }
        remarks.push(remark);
    }
    if let Some(cycles) = row.counts.and_then(|counts| counts.cycles_a_frame()) {
        remarks.push(format!("{cycles:.0} cycles"));
    }
    if row.repeats > 0 {
        remarks.push(format!("{} repeated", row.repeats));
    }
    if row.doubtful > 0 {
        remarks.push(format!("{} of {} doubtful", row.doubtful, row.samples));
    }
    remarks.join("  ")
}

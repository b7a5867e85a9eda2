//! The table that `fwlab measure` prints.

use std::fmt::Write;

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
    let unit = &series.quantity.unit;
    let additive = series.quantity.additive;
    let net = if additive { format!("{:>12}", "less cable") } else { String::new() };
    let is_beside = summary.rows.iter().any(|row| row.to_plain.is_some());
    let is_bridge = run.systems.iter().any(|system| system.role == Role::Bridge);
    let ratios = match (is_beside, is_bridge) {
        (true, true) => "ratio to plain bridge",
        (true, false) => "ratio to plain router",
        (false, _) => "",
    };
    writeln!(text, "{}", format!("{:<36}{unit:>11}{net}{ratios:>28}", "").trim_end())?;
    for row in &summary.rows {
        write!(text, "{:<36}{:>11.0}", row.system.label, row.median.middle)?;
        if additive {
            write!(
                text,
                "{:>12}",
                row.net.map_or(String::new(), |net| format!("{:.0}", net.middle))
            )?;
        }
        write!(text, "{:>28}", row.to_plain.as_ref().map_or(String::new(), ratio))?;
        writeln!(text, "{}", remarks(row, run.mode))?;
    }
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
    let mut text = String::new();
    if mode != Mode::Cost
        && let Some(counts) = row.counts
    {
        let lost = counts.sent.saturating_sub(counts.received);
        text += &format!("  lost {:.2} %", 100.0 * lost as f64 / counts.sent.max(1) as f64);
        let quantile = |share| row.latency.as_ref().and_then(|latency| latency.quantile(share));
        if let (Some(half), Some(most)) = (quantile(0.5), quantile(0.99)) {
            text += &format!(", {:.1} us, p99 {:.1} us", half as f64 / 1e3, most as f64 / 1e3);
        }
    }
    if let Some(cycles) = row.counts.and_then(|counts| counts.cycles_a_frame()) {
        text += &format!("  {cycles:.0} cycles");
    }
    if row.repeats > 0 {
        text += &format!("  {} repeated", row.repeats);
    }
    if row.doubtful > 0 {
        text += &format!("  {} of {} doubtful", row.doubtful, row.samples);
    }
    text
}

//! The contents of a report of runs.

use super::chart::{Chart, DataPoint, Line};
use super::number::{interval, percent, ratio, short, tick, time};
use super::{Block, Table};
use crate::summary::{self, Row, Summary};
use crate::{Better, Environment, Load, Role, Run, Series};

/// Returns the title of the report.
pub(super) fn title(runs: &[Run]) -> String {
    match runs {
        [Run { paper: Some(paper), started, .. }] => format!("{}, repeated {started}", paper.title),
        [run] => format!("fwlab, {}", run.started),
        _ => format!("fwlab, {} runs", runs.len()),
    }
}

/// Returns all blocks of the report.
pub(super) fn report_blocks(runs: &[Run]) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(1, title(runs))];
    for run in runs {
        if runs.len() > 1 {
            blocks.push(Block::Heading(1, format!("Run of {}", run.started)));
        }
        blocks.extend(run_blocks(run));
    }
    blocks
}

fn run_blocks(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    let environment = &run.environment;
    blocks.push(Block::Text(format!(
        "{}, {} of {}, Linux {}; {} s by fwlab {}: {}",
        environment.cpu.model,
        count(u64::from(environment.cpu.online), "CPU"),
        if environment.cpu.guest { "a virtual machine" } else { "a real machine" },
        environment.kernel,
        short(run.seconds),
        run.fwlab,
        run.command.join(" "),
    )));
    blocks.push(Block::Warning(format!("Mode {}: {}.", run.mode.name(), run.mode.warning())));
    if let Some(why) = run.incomplete_because.as_ref().filter(|_| !run.complete) {
        blocks.push(Block::Warning(format!("This run is not complete: {why}.")));
    }
    if let Some(paper) = &run.paper {
        blocks.extend(super::paper::introduced(paper));
    }
    if !run.findings.is_empty() {
        blocks.push(Block::Heading(2, "Findings".to_string()));
        blocks.push(Block::Table(findings(run)));
    }
    blocks.extend(run.paper.iter().flat_map(super::paper::tables));
    for series in &run.series {
        blocks.extend(series_blocks(run, series));
    }
    blocks.push(Block::Heading(2, "Systems".to_string()));
    blocks.extend(run.systems.iter().map(system));
    blocks.push(Block::Heading(2, "Machine".to_string()));
    blocks.push(Block::Fold("Networks".to_string(), vec![Block::Table(topologies(run))]));
    blocks.push(Block::Fold(
        "Kernel, processor, programs".to_string(),
        vec![Block::Table(machine(&run.environment))],
    ));
    for agent in &run.agents {
        let name = format!("Machine of the {}", agent.end);
        blocks.push(Block::Fold(name, vec![Block::Table(machine(&agent.environment))]));
    }
    blocks
}

fn findings(run: &Run) -> Table {
    let mut table = Table::new(&["Claim", "Verdict", "Figures here", "Source"]);
    for finding in &run.findings {
        table.rows.push(vec![
            finding.claim.clone(),
            finding.verdict.words().to_string(),
            finding.evidence.clone(),
            finding.source.clone(),
        ]);
    }
    table
}

fn series_blocks(run: &Run, series: &Series) -> Vec<Block> {
    let quantity = &series.quantity;
    let better = match quantity.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    let mut blocks = vec![Block::Heading(2, series.title.clone())];
    blocks.push(Block::Text(format!(
        "{} in {}, {better}. Load: {}. Mode {}: {}.",
        capital(&quantity.name),
        quantity.unit,
        load(&series.load),
        run.mode.name(),
        run.mode.warning(),
    )));
    let summaries: Vec<Summary> =
        series.points.iter().map(|point| summary::summarize(run, series, point)).collect();
    if let Some(chart) = chart(series, &summaries) {
        blocks.push(Block::Chart(chart));
    }
    blocks.push(Block::Table(table(series, &summaries)));
    for (point, summary) in series.points.iter().zip(&summaries) {
        let place = match (&series.dimension, point.at) {
            (Some(dimension), Some(at)) => format!("At {} {}: ", tick(at), dimension.name),
            _ => String::new(),
        };
        if let Some(why) = &point.void {
            blocks.push(Block::Warning(format!("{place}these figures are void: {why}.")));
        }
        if summary.noise.is_none() && point.samples.len() > 1 {
            blocks.push(Block::Text(format!(
                "{place}no placebo was measured, so the noise is unknown."
            )));
        }
    }
    if let Some(noise) = summaries.iter().filter_map(|summary| summary.noise).reduce(f64::max) {
        blocks.push(Block::Text(format!(
            "Noise: the placebo, the same system measured twice, differs by up to {} (its 95 % \
             interval). Smaller differences are noise. In brackets: 95 % intervals by bootstrap \
             over rounds.",
            percent(noise)
        )));
    }
    blocks
}

fn load(load: &Load) -> String {
    let mut words = vec![load.kind.clone()];
    words.extend(load.protocol.clone());
    words.extend(load.family.clone());
    words.extend(load.size.map(|size| format!("{size} bytes")));
    words.push(match load.rate {
        Some(rate) => format!("{} a second", tick(rate)),
        None => "at full speed".to_string(),
    });
    words.extend(load.flows.map(|flows| count(flows, "flow")));
    words.extend(load.parallel.map(|parallel| format!("{parallel} at once")));
    words.push(format!("{} s a trial", tick(load.seconds)));
    if !load.details.is_empty() {
        words.push(load.details.clone());
    }
    words.join(", ")
}

fn table(series: &Series, summaries: &[Summary]) -> Table {
    let dimension = series.dimension.as_ref();
    let dimension = dimension.map_or(String::new(), |d| match d.unit.as_str() {
        "" => capital(&d.name),
        unit => format!("{}, {unit}", capital(&d.name)),
    });
    let unit = &series.quantity.unit;
    let mut table = Table::new(&[
        &format!("{dimension}#"),
        "System=",
        &format!("Median, {unit}#"),
        &format!("Less cable, {unit}#"),
        "× cable#",
        "× plain#",
        "Lost#",
        "Cycles#",
        "p50#",
        "p99#",
        "p99.9#",
        "Samples#",
        "Repeated#",
        "Doubtful#",
    ]);
    for (point, summary) in series.points.iter().zip(summaries) {
        let at = point.at.map_or(String::new(), tick);
        table.rows.extend(summary.rows.iter().map(|row| cells(&at, row)));
    }
    table.without_empty_columns()
}

fn cells(at: &str, row: &Row) -> Vec<String> {
    let lost = row.counts.filter(|counts| counts.sent > 0).map(|counts| {
        percent(counts.sent.saturating_sub(counts.received) as f64 / counts.sent as f64)
    });
    let quantile = |share| row.latency.as_ref().and_then(|latency| latency.quantile(share));
    let latency = |share| quantile(share).map_or(String::new(), time);
    let some = |number: usize| if number == 0 { String::new() } else { number.to_string() };
    vec![
        at.to_string(),
        row.system.label.clone(),
        interval(&row.median),
        row.net.as_ref().map_or(String::new(), interval),
        row.to_null.as_ref().map_or(String::new(), ratio),
        row.to_plain.as_ref().map_or(String::new(), ratio),
        lost.unwrap_or_default(),
        row.counts.and_then(|counts| counts.cycles_a_frame()).map_or(String::new(), short),
        latency(0.5),
        latency(0.99),
        latency(0.999),
        row.samples.to_string(),
        some(row.repeats),
        some(row.doubtful),
    ]
}

/// Returns a chart with a line for each label over the dimension, or with a bar for each system.
fn chart(series: &Series, summaries: &[Summary]) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    for (point, summary) in series.points.iter().zip(summaries) {
        for row in &summary.rows {
            let data_point = DataPoint { at: point.at.unwrap_or(0.0), value: row.median };
            match lines.iter_mut().find(|line| line.label == row.system.label) {
                Some(line) => line.points.push(data_point),
                None => lines.push(Line {
                    label: row.system.label.clone(),
                    reference: row.system.role != Role::Subject,
                    points: vec![data_point],
                }),
            }
        }
    }
    let dimension = series.dimension.as_ref().filter(|_| series.points.len() > 1);
    (!lines.is_empty()).then(|| Chart {
        title: series.title.clone(),
        values: format!("{}, {}", series.quantity.name, series.quantity.unit),
        dimension: dimension.map(|dimension| match dimension.unit.as_str() {
            "" => dimension.name.clone(),
            unit => format!("{}, {unit}", dimension.name),
        }),
        lines,
    })
}

fn system(system: &crate::System) -> Block {
    let mut table = Table::new(&["=", ""]);
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.rows.push(vec![name.to_string(), value]);
        }
    };
    row("Id", system.id.clone());
    row("Repeats", system.repeats.clone().unwrap_or_default());
    row("Topology", system.topology.clone());
    row("Rules", system.rules.map_or(String::new(), |rules| rules.to_string()));
    let hooks = match system.hooks.len() {
        0 => "none".to_string(),
        number => format!("{number}: {}", system.hooks.join(", ")),
    };
    row("Hooks a packet crosses", hooks);
    row("SHA-256 of the configuration", system.sha256.clone());
    let mut inside = vec![Block::Table(table)];
    inside.extend(configuration(&system.configuration));
    let rules = match system.rules {
        Some(rules) if !system.label.contains(&rules.to_string()) => {
            format!(", {}", count(rules, "rule"))
        }
        _ => String::new(),
    };
    Block::Fold(format!("{}{rules}", system.label), inside)
}

/// Returns a configuration as blocks; of a long one only its beginning and its end.
fn configuration(text: &str) -> Vec<Block> {
    const BEGINNING: usize = 24;
    const END: usize = 6;
    if text.trim().is_empty() {
        return vec![Block::Text("Nothing is configured.".to_string())];
    }
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(BEGINNING + END);
    if left_out <= BEGINNING {
        return vec![Block::Verbatim(text.to_string())];
    }
    vec![
        Block::Verbatim(lines[..BEGINNING].join("\n")),
        Block::Text(format!("{left_out} more lines are in the result file.")),
        Block::Verbatim(lines[lines.len() - END..].join("\n")),
    ]
}

fn topologies(run: &Run) -> Table {
    let mut table = Table::new(&["Name=", "Hosts and links", "MTU#", "Families", "Offloads"]);
    for topology in &run.topologies {
        let offload =
            |(name, on): (&String, &bool)| format!("{name} {}", if *on { "on" } else { "off" });
        table.rows.push(vec![
            topology.name.clone(),
            topology.description.clone(),
            topology.mtu.to_string(),
            topology.families.join(", "),
            topology.offloads.iter().map(offload).collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

fn machine(environment: &Environment) -> Table {
    let mut table = Table::new(&["=", ""]);
    let mut row = |name: &str, value: Option<String>| {
        table.rows.push(vec![name.to_string(), value.unwrap_or_else(|| "not known".to_string())]);
    };
    row("Kernel", Some(environment.kernel.clone()));
    row("Architecture", Some(environment.architecture.clone()));
    row("Processor", Some(environment.cpu.model.clone()));
    row("CPUs online", Some(environment.cpu.online.to_string()));
    row("Threads of a core", environment.cpu.threads_per_core.map(|threads| threads.to_string()));
    row("Governor", environment.cpu.governor.clone());
    row("Memory", environment.memory.map(|bytes| format!("{} MB", short(bytes as f64 / 1e6))));
    row("Clock", environment.clocksource.clone());
    row("Load before", environment.load_average.map(short));
    row(
        "Cycles of a frame",
        environment.no_cycles.as_ref().map(|why| format!("not counted: {why}")),
    );
    row("Stolen by other guests", environment.steal.map(|percent| format!("{percent:.1} %")));
    for (name, value) in &environment.programs {
        row(name, Some(value.clone()));
    }
    for (name, value) in &environment.sysctls {
        row(name, Some(value.clone()));
    }
    for (name, value) in &environment.mitigations {
        row(&format!("mitigation: {name}"), Some(value.clone()));
    }
    table
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

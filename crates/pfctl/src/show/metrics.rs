//! `-s metrics`: prints counters and sizes in the text format of OpenMetrics 1.0.
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>
//!
//! All metrics are counters and gauges. Prometheus's older text format has no other types of
//! OpenMetrics, and node_exporter's textfile collector, which reads that format, reads this output.
//! It takes OpenMetrics counters as metrics without a type.
//!
//! Names that begin with `pf_` are those of <https://github.com/mischief/pf_exporter>, so its
//! dashboards show skipstep, too. Other names begin with `skipstep_`.

mod rules;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::LIMIT_COUNTERS;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{Limits, Queue, Reason, automatic};

use super::info::{InfoView, LEFT_TO};
use super::interfaces::InterfaceTraffic;
use super::queues::{self, QueueTree};
use super::rules::RuleSet;
use super::tables::TableView;
use super::{Traffic, memory};

/// The contents of a filter that metrics are made of.
pub struct MetricsView<'a> {
    /// Time now, in seconds since 1970.
    pub now: i64,
    /// Time when the main rule set was loaded, in seconds since 1970; 0 if no rules are loaded.
    pub loaded_at: i64,
    /// Status and counters.
    pub info: InfoView,
    /// True if the last load on trial was not confirmed.
    pub trial_failed: bool,
    /// Limits of the rule set.
    pub limits: &'a Limits,
    /// Number of tables that statements or rules name.
    pub tables_named: usize,
    /// Number of anchors, including anchors that rules only call.
    pub anchors: usize,
    /// Interfaces with their counters.
    pub interfaces: Vec<InterfaceTraffic>,
    /// Queues with their counters.
    pub queues: Vec<QueueTree<'a>>,
    /// Tables of all anchors.
    pub tables: Vec<TableView>,
    /// Rules with their counters, by the path of their anchor.
    pub rules: BTreeMap<&'a str, RuleSet<'a>>,
    /// The stable identities of these rules.
    pub identities: Identities,
}

/// Most rules that have samples. The same limit holds for tables, for queues and for interfaces.
/// A database of metrics needs memory for each label value that it has ever seen.
const MOST: usize = 1000;

/// Names and values of a sample's labels.
type Labels = Vec<(&'static str, String)>;

/// A metric with its samples.
struct Metric {
    /// Name of the samples. The name of a counter ends in [`TOTAL`].
    name: String,
    /// `counter` or `gauge`.
    kind: &'static str,
    help: &'static str,
    /// Labels and value of each sample. The value `None` stands for infinity.
    samples: Vec<(Labels, Option<u64>)>,
}

/// Ending of a counter's samples, which the name of the metric lacks in the lines HELP and TYPE.
const TOTAL: &str = "_total";

/// Prints the metrics, each behind its help and its type, and the line that ends the output.
pub fn text(view: &MetricsView) -> String {
    let mut text = String::new();
    for Metric { name, kind, help, samples } in metrics(view) {
        let family = match kind {
            "counter" => name.strip_suffix(TOTAL).unwrap_or(&name),
            _ => &name,
        };
        text += &format!("# HELP {family} {help}\n# TYPE {family} {kind}\n");
        for (labels, value) in samples {
            let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escaped(value));
            let labels: Vec<String> = labels.iter().map(label).collect();
            let value = value.map_or("+Inf".to_owned(), |value| value.to_string());
            text += &match labels.is_empty() {
                true => format!("{name} {value}\n"),
                false => format!("{name}{{{}}} {value}\n", labels.join(",")),
            };
        }
    }
    text + "# EOF\n"
}

/// Escapes the value of a label.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns a list with an object for each metric. Infinity is `null`.
pub fn json(view: &MetricsView) -> Value {
    let sample = |(labels, value): (Labels, Option<u64>)| {
        let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
        json!({ "labels": labels.collect::<Map<_, _>>(), "value": value })
    };
    let metric = |Metric { name, kind, help, samples }: Metric| {
        let samples: Value = samples.into_iter().map(sample).collect();
        json!({ "name": name, "type": kind, "help": help, "samples": samples })
    };
    metrics(view).into_iter().map(metric).collect()
}

/// Returns all metrics that have samples.
fn metrics(view: &MetricsView) -> Vec<Metric> {
    let mut metrics = status(view);
    metrics.extend(states(&view.info));
    metrics.extend(limits(view));
    metrics.extend(packets(&view.info));
    metrics.extend(losses(&view.info));
    metrics.extend(view.info.interface.iter().flat_map(log_interface));
    let (interfaces, queues, tables) = (&view.interfaces, queues(&view.queues), tables(view));
    metrics.extend(interface_counters(first(interfaces)));
    metrics.extend(queue_counters(first(&queues)));
    metrics.extend(table_counters(first(&tables)));
    let all = rules::all(view);
    let rules = first(&all);
    metrics.extend(rules::by_identity(rules, &all));
    metrics.extend(rules::by_number(rules));
    metrics.push(omitted([
        ("interfaces", interfaces.len()),
        ("queues", queues.len()),
        ("tables", tables.len()),
        ("rules", all.len()),
    ]));
    metrics.retain(|metric| !metric.samples.is_empty());
    metrics
}

/// Returns the things that have samples.
fn first<T>(things: &[T]) -> &[T] {
    &things[..things.len().min(MOST)]
}

/// Returns the number of things without samples, from the number of things of each kind.
fn omitted(numbers: [(&str, usize); 4]) -> Metric {
    let omitted = numbers.map(|(kind, number)| (kind, number.saturating_sub(MOST) as u64));
    let help = "Rules, tables, queues and interfaces without samples: of each, 1000 have samples.";
    gauge("skipstep_omitted", help, by("kind", omitted))
}

/// Makes a counter: a metric that only rises, until somebody clears it.
fn counter(
    name: &str,
    help: &'static str,
    samples: impl IntoIterator<Item = (Labels, u64)>,
) -> Metric {
    Metric { kind: "counter", ..gauge(name, help, samples) }
}

fn gauge(
    name: &str,
    help: &'static str,
    samples: impl IntoIterator<Item = (Labels, u64)>,
) -> Metric {
    let samples = samples.into_iter().map(|(labels, value)| (labels, Some(value)));
    Metric { name: name.to_owned(), kind: "gauge", help, samples: samples.collect() }
}

/// Makes the only sample of a metric without labels.
fn one(value: impl Into<u64>) -> [(Labels, u64); 1] {
    [(Labels::new(), value.into())]
}

/// Makes samples with one label.
fn by<'a>(
    label: &'static str,
    samples: impl IntoIterator<Item = (&'a str, u64)>,
) -> impl Iterator<Item = (Labels, u64)> {
    samples.into_iter().map(move |(name, value)| (vec![(label, name.to_owned())], value))
}

/// Makes the samples of one metric of several things, such as tables, from their labels.
fn of<T>(things: &[(Labels, T)], value: impl Fn(&T) -> u64) -> Vec<(Labels, u64)> {
    things.iter().map(|(labels, thing)| (labels.clone(), value(thing))).collect()
}

fn status(view: &MetricsView) -> Vec<Metric> {
    let (info, trial) = (&view.info, view.info.trial.as_ref());
    let version = by("version", [(env!("CARGO_PKG_VERSION"), 1)]);
    let left = trial.map_or(0, |trial| trial.seconds_left);
    vec![
        gauge("skipstep_build_info", "Version of skipstep. The value is 1.", version),
        gauge("skipstep_time_seconds", "Time now, since 1970.", one(view.now.unsigned_abs())),
        gauge("pf_enabled", "1 if packets are filtered.", one(info.enabled)),
        gauge(
            "skipstep_loaded_seconds",
            "Time of the last load of the main rule set, since 1970.",
            one(view.loaded_at.unsigned_abs()),
        ),
        gauge("skipstep_trial_pending", "1 if a load is on trial.", one(trial.is_some())),
        gauge("skipstep_trial_left_seconds", "Time until the load on trial is undone.", one(left)),
        gauge(
            "skipstep_trial_failed",
            "1 if the last load on trial was undone because nobody confirmed it.",
            one(view.trial_failed),
        ),
        gauge(
            "skipstep_sweep_late_seconds",
            "Time by which the timer that removes expired states is overdue.",
            one(info.sweep_late),
        ),
        counter(
            "skipstep_timer_errors_total",
            "Failed starts of the timer that removes expired states.",
            one(info.timer_errors.0),
        ),
    ]
}

fn states(info: &InfoView) -> Vec<Metric> {
    let status = &info.status;
    vec![
        // the exporter's name for a gauge
        gauge("pf_state_total", "States now.", one(status.states)),
        counter("pf_state_searches_total", "Searches for a state.", one(status.searches)),
        counter("pf_state_inserts_total", "States created.", one(status.inserts)),
        counter("pf_state_removals_total", "States removed.", one(status.removals)),
        gauge(
            "skipstep_half_open_states",
            "TCP states now whose creator has not completed the handshake.",
            one(info.half_open),
        ),
    ]
}

/// Returns the limits of `pfctl -s memory`, and the used part of each.
fn limits(view: &MetricsView) -> Vec<Metric> {
    let entries: usize = view.tables.iter().map(|table| table.addresses).sum();
    let used = [
        view.info.status.states,
        view.info.status.sources,
        view.info.fragments.current,
        view.tables_named as u64,
        entries as u64,
        view.info.delay.waiting.into(),
        view.anchors as u64,
    ];
    let rows = memory::rows(view.limits);
    let limit = |(name, limit): (&str, u32)| {
        (vec![("limit", name.to_owned())], (limit != u32::MAX).then_some(u64::from(limit)))
    };
    let names = rows.into_iter().map(|(name, _)| name);
    let limits = gauge("skipstep_limit", "Limits, by their names in pf.conf.", []);
    vec![
        Metric { samples: rows.into_iter().map(limit).collect(), ..limits },
        gauge("skipstep_limit_used", "Used part of each limit.", by("limit", names.zip(used))),
    ]
}

fn packets(info: &InfoView) -> Vec<Metric> {
    let reasons = Reason::ALL.map(|reason| (reason.name(), info.status.reasons[reason as usize]));
    let bypasses = LEFT_TO.into_iter().map(|(_, reason)| reason);
    vec![
        counter(
            "skipstep_reason_packets_total",
            "Packets by reason. Each reason except match is a reason for a drop.",
            by("reason", reasons),
        ),
        counter(
            "skipstep_limit_events_total",
            "Limit counters of pfctl -vsi.",
            by("event", LIMIT_COUNTERS.into_iter().zip(info.status.limits)),
        ),
        counter(
            "skipstep_fast_path_forwarded_packets_total",
            "Packets that the fast path forwarded, by hook.",
            by("hook", ["tc", "xdp"].into_iter().zip(info.forwarded)),
        ),
        counter(
            "skipstep_fast_path_bypassed_packets_total",
            "Packets that the fast path left to the kernel's forwarding, by reason.",
            by("reason", bypasses.zip(info.left_to)),
        ),
    ]
}

fn losses(info: &InfoView) -> Vec<Metric> {
    let packets = [
        ("fragments", info.fragments.lost),
        ("divert", info.divert_lost + info.divert.full),
        ("delay", info.delay.full),
    ];
    vec![
        counter("skipstep_log_lost_total", "Log records that found no room.", one(info.log_lost)),
        counter(
            "skipstep_flow_lost_total",
            "Flow records that found no room.",
            one(info.flow_lost),
        ),
        counter(
            "skipstep_lost_packets_total",
            "Packets that skipstepd or another program was too slow to read.",
            by("queue", packets),
        ),
    ]
}

/// Returns the counters of the interface of `set loginterface`.
fn log_interface(interface: &InterfaceTraffic) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for (family, directions) in ["ipv4", "ipv6"].into_iter().zip(&interface.traffic) {
        for (direction, verdicts) in ["in", "out"].into_iter().zip(directions) {
            metrics.push(counter(
                &format!("pf_{family}_bytes_{direction}_total"),
                "Bytes of IP packets on the interface of set loginterface.",
                one(verdicts[0].bytes + verdicts[1].bytes),
            ));
            for (verdict, traffic) in ["passed", "blocked"].into_iter().zip(verdicts) {
                metrics.push(counter(
                    &format!("pf_{family}_packets_{direction}_{verdict}_total"),
                    "IP packets on the interface of set loginterface.",
                    one(traffic.packets),
                ));
            }
        }
    }
    metrics
}

fn interface_counters(interfaces: &[InterfaceTraffic]) -> Vec<Metric> {
    let mut cells: Vec<(Labels, Traffic)> = Vec::new();
    for InterfaceTraffic { name, traffic } in interfaces {
        for (family, directions) in ["inet", "inet6"].into_iter().zip(traffic) {
            for (direction, verdicts) in ["in", "out"].into_iter().zip(directions) {
                for (verdict, traffic) in ["pass", "block"].into_iter().zip(verdicts) {
                    let labels = [
                        ("interface", name.as_str()),
                        ("family", family),
                        ("direction", direction),
                        ("verdict", verdict),
                    ];
                    let labels = labels.map(|(label, value)| (label, value.to_owned()));
                    cells.push((labels.to_vec(), *traffic));
                }
            }
        }
    }
    vec![
        counter(
            "skipstep_interface_packets_total",
            "IP packets on an interface.",
            of(&cells, |traffic| traffic.packets),
        ),
        counter(
            "skipstep_interface_bytes_total",
            "Bytes of IP packets on an interface.",
            of(&cells, |traffic| traffic.bytes),
        ),
    ]
}

/// Returns the queues with their labels and counters.
fn queues<'a>(trees: &'a [QueueTree]) -> Vec<(Labels, (&'a Queue, QueueStats))> {
    let queues = trees.iter().flat_map(|tree| tree.queues.iter().map(move |queue| (tree, *queue)));
    queues
        .map(|(tree, queue)| {
            let names = [("queue", queue.name.as_str()), ("interface", tree.interface)];
            let stats = tree.stats.get(&queue.name).copied().unwrap_or_default();
            (names.map(|(label, name)| (label, name.to_owned())).to_vec(), (queue, stats))
        })
        .collect()
}

/// Returns the counters of queues. The kernel does not count the bytes of dropped packets, so
/// there is no `pf_stats_queue_dropped_bytes_total`.
// Differs from OpenBSD: linux.md, "Queues"
fn queue_counters(queues: &[(Labels, (&Queue, QueueStats))]) -> Vec<Metric> {
    vec![
        counter(
            "pf_stats_queue_transmitted_packets_total",
            "Packets that left a queue.",
            of(queues, |(_, stats)| stats.packets),
        ),
        counter(
            "pf_stats_queue_transmitted_bytes_total",
            "Bytes that left a queue, with link headers.",
            of(queues, |(_, stats)| stats.bytes),
        ),
        counter(
            "pf_stats_queue_dropped_packets_total",
            "Packets that were dropped because their queue was full.",
            of(queues, |(_, stats)| stats.dropped),
        ),
        gauge(
            "skipstep_queue_length",
            "Packets that wait in a queue.",
            of(queues, |(_, stats)| stats.length.into()),
        ),
        gauge(
            "skipstep_queue_limit",
            "Packets that may wait in a queue.",
            of(queues, |(queue, _)| queues::limit(queue).into()),
        ),
    ]
}

/// Returns the tables with their labels. Tables that pfctl makes from lists have other names after
/// each load, so they have no samples.
fn tables<'a>(view: &'a MetricsView) -> Vec<(Labels, &'a TableView)> {
    let named = view.tables.iter().filter(|table| !table.name.starts_with(automatic::PREFIX));
    let labels =
        |table: &TableView| vec![("table", table.name.clone()), ("anchor", table.anchor.clone())];
    named.map(|table| (labels(table), table)).collect()
}

fn table_counters(tables: &[(Labels, &TableView)]) -> Vec<Metric> {
    let sums = |way: usize, value: fn(&Traffic) -> u64| {
        of(tables, |table| table.traffic[way].iter().map(value).sum())
    };
    vec![
        gauge(
            "pf_table_addresses",
            "Addresses and networks in a table.",
            of(tables, |table| table.addresses as u64),
        ),
        counter(
            "pf_table_matches_total",
            "Lookups in a table that found an entry.",
            of(tables, |table| table.matches),
        ),
        counter(
            "pf_table_nomatches_total",
            "Lookups in a table that found no entry.",
            of(tables, |table| table.nomatch),
        ),
        counter(
            "pf_table_packets_in_total",
            "Inbound packets that matched an entry of a table.",
            sums(0, |cell| cell.packets),
        ),
        counter(
            "pf_table_packets_out_total",
            "Outbound packets that matched an entry of a table.",
            sums(1, |cell| cell.packets),
        ),
        counter(
            "pf_table_bytes_in_total",
            "Bytes of inbound packets that matched an entry of a table.",
            sums(0, |cell| cell.bytes),
        ),
        counter(
            "pf_table_bytes_out_total",
            "Bytes of outbound packets that matched an entry of a table.",
            sums(1, |cell| cell.bytes),
        ),
    ]
}

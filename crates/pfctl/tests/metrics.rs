//! Tests of `-s metrics`: the output is well-formed, and the dashboard and the alerts of packaging/
//! use metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pfctl::show::info::InfoView;
use pfctl::show::interfaces::InterfaceTraffic;
use pfctl::show::metrics::{self, MetricsView};
use pfctl::show::queues::QueueTree;
use pfctl::show::rules::{Inserted, RuleSet};
use pfctl::show::tables::TableView;
use serde_json::Value;
use skipstep_kernel::DelayCounters;
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::FragmentStatus;
use skipstep_pfconf::Context;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{Limits, Optimization, Ruleset};
use skipstep_scenario::host;
use skipstep_views::{RuleCounters, Status};

/// Labels with all characters that are escaped, and rules that share a label.
const RULES: &str = "set limit states 500
set limit table-entries 300
queue line on em0 bandwidth 10M
queue bulk parent line bandwidth 5M default
block
pass in on em0 proto tcp to port { 22 80 } label shared
pass out on ! em1 inet proto udp label \"a \\\\ slash\"
anchor a {
pass out
}
";

/// The name of pf_exporter for a gauge, although it ends like those of counters.
const GAUGE_IN_TOTAL: &str = "pf_state_total";

fn ruleset() -> Ruleset {
    let host = host::standard();
    skipstep_pfconf::load(RULES, &Context::new(&host)).unwrap().ruleset
}

/// Returns a view that has samples of every metric.
fn view<'a>(ruleset: &'a Ruleset, limits: &'a Limits) -> MetricsView<'a> {
    let interface = InterfaceTraffic { name: "em0".into(), ..InterfaceTraffic::default() };
    let counters =
        RuleCounters { evaluations: 5, packets: [3, 4], bytes: [30, 40], ..Default::default() };
    let set = |path| {
        let rules = ruleset.rules_of(path);
        let counters = vec![counters; rules.len()];
        (path, RuleSet { rules, counters, inserted: Inserted::default() })
    };
    let stats = QueueStats { packets: 7, bytes: 700, dropped: 2, length: 1 };
    MetricsView {
        now: 1_800_000_000,
        loaded_at: 1_700_000_000,
        info: InfoView {
            enabled: true,
            interface: Some(interface.clone()),
            log_lost: 6,
            status: Status { states: 11, sources: 12, ..Status::default() },
            fragments: FragmentStatus { current: 13, ..FragmentStatus::default() },
            delay: DelayCounters { waiting: 14, ..DelayCounters::default() },
            ..InfoView::default()
        },
        trial_failed: false,
        limits,
        tables_named: 7,
        anchors: 9,
        interfaces: vec![interface],
        queues: vec![QueueTree {
            interface: "em0",
            queues: ruleset.queues.iter().collect(),
            stats: BTreeMap::from([("bulk".to_owned(), stats)]),
        }],
        tables: vec![table("bad", 30), table("__automatic_1_0", 4), table("a \"\n\\", 2)],
        rules: ["", "a"].map(set).into(),
        identities: Identities::of(ruleset),
    }
}

fn text() -> String {
    let ruleset = ruleset();
    metrics::text(&view(&ruleset, &ruleset.options.limits))
}

fn table(name: &str, addresses: usize) -> TableView {
    TableView { name: name.into(), addresses, ..TableView::default() }
}

/// A metric as Prometheus reads it.
#[derive(Debug)]
struct Metric {
    kind: String,
    /// Values by labels.
    samples: BTreeMap<BTreeMap<String, String>, String>,
}

/// Parses the text format of OpenMetrics strictly. Returns the metrics by the names of their
/// samples.
///
/// # Panics
/// Panics if the text is not well-formed.
fn parse(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut lines = text.strip_suffix("# EOF\n").expect("the last line").lines().peekable();
    while let Some(line) = lines.next() {
        let (family, help) =
            line.strip_prefix("# HELP ").and_then(|l| l.split_once(' ')).expect(line);
        assert!(is_name(family) && !help.is_empty() && !help.contains(['\\', '"']), "{line}");
        let begin = format!("# TYPE {family} ");
        let kind = lines.next().and_then(|l| l.strip_prefix(begin.as_str()));
        let kind = kind.expect("a type behind the help").to_owned();
        let name = match kind.as_str() {
            "counter" => format!("{family}_total"),
            "gauge" => family.to_owned(),
            other => panic!("{family} is a {other}"),
        };
        let mut samples = BTreeMap::new();
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            let (labels, value) = parse_sample(sample.strip_prefix(name.as_str()).expect(sample));
            assert!(value == "+Inf" || value.parse::<u64>().is_ok(), "{sample}");
            assert_eq!(samples.insert(labels, value), None, "twice: {sample}");
        }
        let names = |labels: &BTreeMap<String, String>| labels.keys().cloned().collect::<Vec<_>>();
        let forms: BTreeSet<Vec<String>> = samples.keys().map(names).collect();
        assert_eq!(forms.len(), 1, "{name}: samples with the same labels");
        let metric = Metric { kind, samples };
        assert!(metrics.insert(name, metric).is_none(), "{family} stands in one place");
    }
    metrics
}

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

/// Parses what follows the name of a sample: `{label="value"} 5`.
fn parse_sample(rest: &str) -> (BTreeMap<String, String>, String) {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = rest.strip_prefix('{') else {
        return (labels, rest.strip_prefix(' ').expect(rest).to_owned());
    };
    loop {
        let (name, behind) = rest.split_once("=\"").expect(rest);
        assert!(is_name(name), "{name}");
        let (value, behind) = parse_value(behind);
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice");
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (labels, behind.strip_prefix("} ").expect(behind).to_owned()),
        }
    }
}

/// Parses the value of a label up to its quote. Returns the text behind the quote, too.
fn parse_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                other => panic!("wrong escape {other:?}"),
            },
            c => value.push(c),
        }
    }
    panic!("no quote in {text}");
}

#[test]
fn the_parser_is_strict() {
    let counter = "# HELP a x\n# TYPE a counter\na_total{b=\"c\"} 1\n";
    let parse = |text: &str| parse(&format!("{text}# EOF\n"));
    assert_eq!(parse(counter).len(), 1);
    for bad in [
        "a_total 1\n",
        "# HELP a x\na_total 1\n",
        "# HELP a x\n# TYPE a counter\n",
        "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a x\n# TYPE a other\na 1\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n",
        "# HELP a x\n# TYPE a gauge\na{b=\"c\\d\"} 1\n",
        "# HELP a x\n# TYPE a gauge\na{b=\"c\",b=\"d\"} 1\n",
        "# HELP a x\n# TYPE a gauge\na -1\n",
        "# HELP a x\n# TYPE a gauge\na 1\n# EOF\n",
        &counter.repeat(2),
    ] {
        assert!(std::panic::catch_unwind(|| parse(bad)).is_err(), "{bad}");
    }
    assert!(std::panic::catch_unwind(|| self::parse(counter)).is_err(), "no end");
}

#[test]
fn the_output_is_well_formed() {
    for (name, metric) in parse(&text()) {
        assert!(name.starts_with("pf_") || name.starts_with("skipstep_"), "{name}");
        let is_total = name.ends_with("_total") && name != GAUGE_IN_TOTAL;
        assert_eq!(metric.kind, if is_total { "counter" } else { "gauge" }, "{name}");
    }
    let ruleset = Ruleset::default();
    let empty = MetricsView {
        rules: BTreeMap::new(),
        tables: Vec::new(),
        queues: Vec::new(),
        interfaces: Vec::new(),
        info: InfoView::default(),
        ..view(&ruleset, &ruleset.options.limits)
    };
    assert!(parse(&metrics::text(&empty)).contains_key("pf_enabled"));
}

/// Returns the value of the only sample with these labels.
fn value<const N: usize>(name: &str, labels: [(&str, &str); N]) -> String {
    let metrics = parse(&text());
    let has = |of: &BTreeMap<String, String>| {
        labels.iter().all(|(label, value)| of.get(*label).is_some_and(|own| own == value))
    };
    let samples = metrics[name].samples.iter().filter(|(labels, _)| has(labels));
    let values: Vec<_> = samples.map(|(_, value)| value.clone()).collect();
    assert_eq!(values.len(), 1, "{name} {labels:?}: {values:?}");
    values[0].clone()
}

#[test]
fn samples_have_the_values_of_the_filter() {
    assert_eq!(value("pf_enabled", []), "1");
    assert_eq!(value("skipstep_log_lost_total", []), "6");
    assert_eq!(value("skipstep_limit", [("limit", "states")]), "500");
    for (limit, used) in [
        ("states", "11"),
        ("src-nodes", "12"),
        ("frags", "13"),
        ("tables", "7"),
        ("table-entries", "36"),
        ("pktdelay-pkts", "14"),
        ("anchors", "9"),
    ] {
        assert_eq!(value("skipstep_limit_used", [("limit", limit)]), used, "{limit}");
    }
    assert_eq!(value("pf_table_addresses", [("table", "bad"), ("anchor", "")]), "30");
    let bulk = [("queue", "bulk"), ("interface", "em0")];
    assert_eq!(value("pf_stats_queue_dropped_packets_total", bulk), "2");
    assert_eq!(value("pf_rule_packets_out_total", [("nr", "0"), ("anchor", "")]), "4");
    let udp = [("interface", "! em1"), ("proto", "udp"), ("af", "inet"), ("direction", "out")];
    assert_eq!(value("pf_rule_evaluations_total", udp), "5");
}

#[test]
fn an_unlimited_limit_is_infinite() {
    let (ruleset, limits) = (ruleset(), Limits { states: u32::MAX, ..Limits::default() });
    let metrics = parse(&metrics::text(&view(&ruleset, &limits)));
    let labels = BTreeMap::from([("limit".to_owned(), "states".to_owned())]);
    assert_eq!(metrics["skipstep_limit"].samples[&labels], "+Inf");
}

#[test]
fn rules_of_one_label_are_added_and_labels_are_escaped() {
    assert_eq!(value("skipstep_rule_evaluations_total", [("id", "shared")]), "10");
    let packets = [("id", "shared"), ("direction", "in")];
    assert_eq!(value("skipstep_rule_packets_total", packets), "6");
    let slash = [("id", "a \\ slash"), ("label", "a \\ slash")];
    assert_eq!(value("skipstep_rule_states", slash), "0");
    assert_eq!(value("pf_table_addresses", [("table", "a \"\n\\")]), "2");
    let rule = [("rule", "pass out all flags S/SA"), ("anchor", "a"), ("number", "0")];
    assert_eq!(value("skipstep_rule_info", rule), "1");
}

#[test]
fn generated_tables_have_no_samples() {
    let metrics = parse(&text());
    let tables = metrics["pf_table_addresses"].samples.keys().map(|labels| &labels["table"]);
    assert_eq!(tables.collect::<Vec<_>>(), ["a \"\n\\", "bad"]);
}

/// Otherwise a large rule set could make a database of metrics run out of memory.
#[test]
fn the_number_of_samples_is_bounded() {
    let rules: String = (1..=1500).map(|port| format!("pass proto tcp to port {port}\n")).collect();
    let text = format!("{rules}block label last\nblock out label last\n");
    let host = host::standard();
    let context = Context { optimization: Some(Optimization::None), ..Context::new(&host) };
    let ruleset = skipstep_pfconf::load(&text, &context).unwrap().ruleset;
    let mut view = view(&ruleset, &ruleset.options.limits);
    view.rules.remove("a");
    view.tables = (0..1002).map(|number| table(&format!("t{number}"), 1)).collect();
    let metrics = parse(&metrics::text(&view));
    let samples = |name: &str| metrics[name].samples.len();
    assert_eq!(samples("skipstep_rule_info"), 1000);
    assert_eq!(samples("pf_rule_evaluations_total"), 1000);
    // the rules with the label are counted together
    assert_eq!(samples("skipstep_rule_states"), 999);
    assert_eq!(samples("pf_table_addresses"), 1000);
    let omitted: Vec<(&String, &String)> =
        metrics["skipstep_omitted"].samples.iter().map(|(l, value)| (&l["kind"], value)).collect();
    let omitted: Vec<String> = omitted.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    assert_eq!(omitted, ["interfaces 0", "queues 0", "rules 502", "tables 2"]);
    let labelled = BTreeMap::from(["id", "label"].map(|name| (name.to_owned(), "last".to_owned())));
    assert_eq!(metrics["skipstep_rule_evaluations_total"].samples[&labelled], "10");
}

/// The names of pf_exporter, at commit 634eac0 of August 2026.
#[test]
fn the_names_of_pf_exporter_are_there() {
    let metrics = parse(&text());
    let mut names: Vec<String> = [
        "pf_enabled",
        "pf_state_total",
        "pf_state_searches_total",
        "pf_state_inserts_total",
        "pf_state_removals_total",
        "pf_stats_queue_transmitted_packets_total",
        "pf_stats_queue_transmitted_bytes_total",
        "pf_stats_queue_dropped_packets_total",
        "pf_table_addresses",
        "pf_table_matches_total",
        "pf_table_nomatches_total",
        "pf_table_packets_in_total",
        "pf_table_packets_out_total",
        "pf_table_bytes_in_total",
        "pf_table_bytes_out_total",
        "pf_rule_evaluations_total",
        "pf_rule_packets_in_total",
        "pf_rule_packets_out_total",
        "pf_rule_bytes_in_total",
        "pf_rule_bytes_out_total",
        "pf_rule_states_current",
        "pf_rule_states_total",
    ]
    .map(str::to_owned)
    .into();
    for family in ["ipv4", "ipv6"] {
        for direction in ["in", "out"] {
            names.push(format!("pf_{family}_bytes_{direction}_total"));
            for verdict in ["passed", "blocked"] {
                names.push(format!("pf_{family}_packets_{direction}_{verdict}_total"));
            }
        }
    }
    for name in &names {
        assert!(metrics.contains_key(name), "{name}");
    }
    let others = metrics.keys().filter(|name| name.starts_with("pf_") && !names.contains(name));
    assert_eq!(others.count(), 0, "a name that begins with pf_ is a name of pf_exporter");
}

#[test]
fn every_metric_is_on_the_page() {
    let page = read(&root().join("docs/howto/metrics.md"));
    for name in parse(&text()).keys().filter(|name| name.starts_with("skipstep_")) {
        assert!(page.contains(&format!("`{name}`")), "docs/howto/metrics.md has no `{name}`");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks that a query has metrics, and that all of them exist.
fn check_query(query: &str, metrics: &BTreeMap<String, Metric>) {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names: Vec<&str> =
        words.filter(|word| word.starts_with("pf_") || word.starts_with("skipstep_")).collect();
    assert!(!names.is_empty(), "no metric of skipstep: {query}");
    for name in names {
        assert!(metrics.contains_key(name), "{name} does not exist: {query}");
    }
}

/// Returns the values of all members called `key`, at whatever depth.
fn members<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| members(item, key)).collect(),
        Value::Object(object) => {
            let own = object.get(key).into_iter();
            own.chain(object.values().flat_map(|item| members(item, key))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let dashboard = read(&root().join("packaging/grafana/skipstep.json"));
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let metrics = parse(&text());
    let queries = members(&dashboard, "expr");
    assert!(queries.len() > 10, "{}", queries.len());
    for query in queries {
        check_query(query.as_str().unwrap(), &metrics);
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has its own id");
}

#[test]
fn the_alerts_use_metrics_that_exist() {
    let rules = read(&root().join("packaging/prometheus/skipstep.rules.yml"));
    let metrics = parse(&text());
    let queries: Vec<&str> =
        rules.lines().filter_map(|line| line.trim_start().strip_prefix("expr: ")).collect();
    assert_eq!(queries.len(), rules.matches("- alert: ").count(), "each query is on one line");
    assert!(queries.len() >= 5);
    for query in queries {
        check_query(query, &metrics);
    }
}

//! What `-s` prints, compared with what OpenBSD 7.8 printed after the same packets
//! (show.jsonl.gz of the conformance vectors; skipped where they are not).
//!
//! Masked is what the vectors' README says depends on the machine or on the way rules are searched.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pfctl::anchors;
use pfctl::args::Anchor;
use pfctl::show::all::Section;
use pfctl::show::info::{InfoView, InterfaceTraffic};
use pfctl::show::rules::{Inserted, RuleSet, RulesView};
use pfctl::show::states::StatesView;
use pfctl::show::tables::{AddressView, Lookup, TableView};
use pfctl::show::{
    Detail, all, anchors as show_anchors, info, interfaces, labels, memory, rules, states, tables,
    timeouts,
};
use pfctl::views::{self, Counted};
use serde_json::Value;
use skipstep_model::Firewall;
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::support::refused_by_model;
use skipstep_ruleset::{Direction, RuleId, Ruleset, TableEntry, TableName};
use skipstep_scenario::engine::{Carried, Engine, RuleCounters, StateView, TestPacket};
use skipstep_scenario::{Model, host, look};

/// Seconds since 1970 when the recording began.
const START: i64 = 1_700_100_000;
/// The recorder's host id where the rules set none.
const HOSTID: u32 = 0xf30b_ae77;
const TCP: u8 = 6;
const ESTABLISHED: u8 = 4;

/// `VECTORS`, or the folder beside the project's.
fn vectors() -> PathBuf {
    match std::env::var_os("VECTORS") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
    }
}

/// The firewall after the packets of one entry.
struct Machine {
    host: Host,
    ruleset: Ruleset,
    firewall: Firewall,
    counters: BTreeMap<String, Vec<RuleCounters>>,
    states: Vec<StateView>,
    now: u32,
    status: skipstep_scenario::engine::Status,
}

impl Machine {
    fn run(ruleset: Ruleset, packets: &[Value]) -> Machine {
        let host = host::standard();
        let mut model = Model::new();
        model.load(&ruleset, &host).expect("the model takes every rule set");
        let mut firewall = Firewall::new(ruleset.clone(), host.clone());
        let mut now = 0;
        let mut forwarded: Option<(String, Carried)> = None;
        for packet in packets {
            now = packet["t"].as_u64().unwrap() as u32;
            model.set_time(now);
            firewall.set_time(now);
            let interface = packet["ifname"].as_str().unwrap().to_string();
            let goes_on = packet["cont"].as_bool().unwrap_or(false);
            let (received_on, carried) = match forwarded.take().filter(|_| goes_on) {
                Some((from, carried)) => (Some(from), carried),
                None => (None, Carried::default()),
            };
            let packet = TestPacket {
                direction: match packet["dir"].as_str() {
                    Some("in") => Direction::In,
                    _ => Direction::Out,
                },
                interface: interface.clone(),
                bytes: bytes(packet),
                received_on,
                carried,
                owner: None,
            };
            let fate = model.packet(&packet);
            firewall.packet(&packet);
            forwarded = Some((interface, fate.carried));
        }
        let mut counters: BTreeMap<String, Vec<RuleCounters>> = BTreeMap::new();
        for (path, rule) in ruleset.all_rules() {
            let id = RuleId { anchor: path.to_owned(), number: rule.number };
            counters.entry(path.to_owned()).or_default().push(model.rule_counters(Some(&id)));
        }
        let states = model.states().into_iter().map(recorded_id).collect();
        let status = model.status();
        Machine { host, ruleset, firewall, counters, states, now, status }
    }

    fn hostid(&self) -> u32 {
        self.ruleset.options.hostid.unwrap_or(HOSTID)
    }

    fn rules(&self, anchor: &Anchor, detail: Detail, title: Option<&str>) -> String {
        let paths = self.ruleset.anchors.keys().map(String::as_str).chain([""]);
        let set = |path| {
            let rules = self.ruleset.rules_of(path);
            let counters = self.counters.get(path).cloned().unwrap_or_default();
            (path, RuleSet { rules, counters, inserted: Inserted::default() })
        };
        let view = RulesView {
            sets: paths.map(set).collect(),
            path: &anchor.path,
            recursive: anchor.recursive,
            only: None,
            port_names: None,
            table_sizes: &|path, name| {
                let (_, table) = self.ruleset.table_seen_from(path, name)?;
                table.defined.then_some(table.entries.len())
            },
            dynamic_sizes: &|address, family| views::dynamic_size(&self.host, address, family),
        };
        rules::text(&view, detail, title)
    }

    fn labels(&self, path: &str) -> String {
        let counters = self.counters.get(path).cloned().unwrap_or_default();
        labels::text(self.ruleset.rules_of(path), &counters)
    }

    fn states(&self, detail: Detail) -> String {
        let view = StatesView {
            states: &self.states,
            now: self.now,
            hostid: self.hostid(),
            host: &|address| address.to_string(),
        };
        states::text(&view, None, detail)
    }

    fn counted(&self) -> BTreeMap<String, Counted> {
        let names = self.host.interfaces.iter().map(|interface| interface.name.clone());
        names
            .map(|name| {
                let counters = self.firewall.interface_counters(&name);
                let traffic = views::traffic(counters.packets, counters.bytes);
                (name, Counted { traffic, cleared: START })
            })
            .collect()
    }

    fn info(&self, detail: Detail) -> String {
        let half_open = |state: &&StateView| state.protocol == TCP && state.src.state < ESTABLISHED;
        let interface = self.ruleset.options.loginterface.clone().map(|name| InterfaceTraffic {
            traffic: self.counted().get(&name).copied().unwrap_or_default().traffic,
            name,
        });
        // the other limits are of features that are not built
        let mut limits = [0; info::LIMIT_COUNTERS.len()];
        limits[0] = self.firewall.status().max_states_refused;
        let view = InfoView {
            enabled: true,
            seconds: self.now.into(),
            debug: self.ruleset.options.debug,
            hostid: self.hostid(),
            checksum: views::checksum(&self.ruleset.rules),
            interface,
            status: self.status,
            half_open: self.states.iter().filter(half_open).count() as u64,
            limits,
            log_lost: 0,
        };
        info::text(&view, detail)
    }

    fn interfaces(&self, detail: Detail) -> String {
        let counted = self.counted();
        let views = views::interfaces(&self.host, &self.ruleset, &self.states, &counted, START);
        interfaces::text(&views, None, detail)
    }

    /// All tables, and for each of an anchor that of the main rule set that stands in for it.
    fn all_tables(&self) -> Vec<TableView> {
        let view = |(path, table): (&str, &skipstep_ruleset::Table)| {
            let counters = self.firewall.table_counters(&TableName::new(path, &table.name));
            let references = views::table_references(self.ruleset.rules_of(path));
            TableView {
                name: table.name.clone(),
                anchor: path.to_owned(),
                constant: table.constant,
                persist: table.persist,
                counters: table.counters,
                active: table.defined,
                rules: references.get(&table.name).copied().unwrap_or(0),
                anchors: 0,
                cleared: START,
                addresses: table.entries.len(),
                nomatch: counters.no_matches,
                matches: counters.matches,
                traffic: views::table_traffic(counters.traffic.packets, counters.traffic.bytes),
            }
        };
        let mut tables: Vec<TableView> = self.ruleset.all_tables().map(view).collect();
        let of_anchors = tables.iter().filter(|table| !table.anchor.is_empty());
        for name in of_anchors.map(|table| table.name.clone()).collect::<Vec<_>>() {
            let main = |table: &&mut TableView| table.anchor.is_empty() && table.name == name;
            match tables.iter_mut().find(main) {
                Some(table) => table.anchors += 1,
                None => tables.push(TableView { name, anchors: 1, ..TableView::default() }),
            }
        }
        views::tables(tables, &self.ruleset)
    }

    fn tables(&self, anchor: &Anchor) -> Vec<TableView> {
        let mut tables = self.all_tables();
        tables.retain(|table| {
            let path = &table.anchor;
            *path == anchor.path || anchor.recursive && anchors::is_below(path, &anchor.path)
        });
        tables
    }

    fn entries(&self, path: &str, name: &str) -> Option<&[TableEntry]> {
        let table = self.ruleset.tables_of(path).iter().find(|table| table.name == name)?;
        Some(&table.entries)
    }

    /// A table's contents with the counters of those that were hit.
    fn addresses(&self, path: &str, name: &str) -> Option<Vec<AddressView>> {
        let counters = self.firewall.table_counters(&TableName::new(path, name));
        let dated = self.entries(path, name)?.iter().map(|entry| (*entry, START as u32));
        let mut addresses = views::addresses(&dated.collect::<Vec<_>>());
        for address in &mut addresses {
            let counted = counters.entries.get(&address.entry.net);
            address.traffic = counted.map(|counted| {
                let traffic = views::table_traffic(counted.packets, counted.bytes);
                traffic.map(|[block, matched, pass, _]| [block, matched, pass])
            });
        }
        Some(addresses)
    }

    fn all(&self, anchor: &Anchor, detail: Detail) -> String {
        let section = |title, text, always| Section { title, text, always };
        let tables = self.tables(anchor);
        let rules = self.rules(anchor, detail, Some("FILTER RULES:"));
        all::text(&[
            section("", rules.clone(), true),
            section("STATES:", self.states(detail), false),
            section("INFO:", self.info(detail), true),
            section("LABEL COUNTERS:", self.labels(&anchor.path), all::has_label(&rules)),
            section("TIMEOUTS:", timeouts::text(&self.ruleset.options.timeouts), true),
            section("LIMITS:", memory::text(&self.ruleset.options.limits), true),
            section("TABLES:", tables::text(&tables, detail), !tables.is_empty()),
        ])
    }

    /// What `pfctl` prints for the arguments; `None` for those of features that are not built.
    fn show(&self, arguments: &str) -> Option<String> {
        let words: Vec<&str> = arguments.split(' ').collect();
        let detail = Detail {
            verbose: match &words[..] {
                words if words.contains(&"-vv") => 2,
                words if words.contains(&"-v") => 1,
                _ => 0,
            },
            debug: words.contains(&"-g"),
        };
        let (anchor, words) = match &words[..] {
            ["-a", anchor, rest @ ..] => (Anchor::parse(anchor).ok()?, rest),
            words => (Anchor::default(), words),
        };
        Some(match words {
            ["-sr", ..] => self.rules(&anchor, detail, None),
            ["-ss", ..] => self.states(detail),
            ["-si", ..] => self.info(detail),
            ["-sA", ..] => {
                let tables = self.all_tables().into_iter().map(|table| table.anchor);
                let paths = anchors::paths_of(&self.ruleset, tables);
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                show_anchors::text(&paths, &anchor.path, detail)
            }
            // no rule that tracks sources gets this far
            ["-sS", ..] => String::new(),
            ["-st"] => timeouts::text(&self.ruleset.options.timeouts),
            ["-sm"] => memory::text(&self.ruleset.options.limits),
            ["-sl"] => self.labels(&anchor.path),
            ["-sT", ..] => tables::text(&self.tables(&anchor), detail),
            ["-s", "Interfaces", ..] => self.interfaces(detail),
            ["-s", "all", ..] => self.all(&anchor, detail),
            ["-t", name, "-T", "show", ..] => {
                tables::contents(&self.addresses(&anchor.path, name)?, detail, None)
            }
            ["-t", name, "-T", "test", rest @ ..] => {
                let entries = self.entries(&anchor.path, name)?;
                let addresses = rest.iter().filter_map(|word| word.parse().ok());
                let lookup = |address| Lookup::new(address, entries.iter().copied());
                tables::test(&addresses.map(lookup).collect::<Vec<_>>(), detail)
            }
            _ => return None,
        })
    }
}

fn bytes(packet: &Value) -> Vec<u8> {
    look::unhex(packet["packet"].as_str().unwrap()).unwrap()
}

fn is_fragment(packet: &Value) -> bool {
    let bytes = bytes(packet);
    let word = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    if bytes.first().is_some_and(|byte| byte >> 4 == 4) {
        return word(6) & 0x3fff != 0;
    }
    const FRAGMENT: u8 = 44;
    let (mut header, mut at) = (bytes.get(6).copied().unwrap_or(0), 40);
    // hop-by-hop, routing and destination options may stand before the fragment header
    while matches!(header, 0 | 43 | 60) && at + 1 < bytes.len() {
        header = bytes[at];
        at += 8 * (usize::from(bytes[at + 1]) + 1);
    }
    header == FRAGMENT && word(at + 2) & 0xfff9 != 0
}

/// The recorder's ids: the second of the first enable, then a counter from 0.
fn recorded_id(state: StateView) -> StateView {
    StateView { id: ((START as u64) << 32) + state.id - 1, ..state }
}

/// Takes out what depends on the machine, the clock or the way of searching.
fn masked(arguments: &str, text: &str) -> String {
    // the recorded text ends in what was written to standard error
    let text = if arguments.contains("-T test") { without_last_line(text) } else { text };
    let text = text.split("\nOS FINGERPRINTS:").next().unwrap();
    let mut masked = String::new();
    let mut labels = arguments.ends_with("-sl");
    for line in text.lines() {
        if line.ends_with(':') {
            labels = line == "LABEL COUNTERS:";
        }
        masked += &mask_line(line, labels);
        masked.push('\n');
    }
    masked
}

fn without_last_line(text: &str) -> &str {
    let end = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if text.contains("addresses match.") { &text[..end] } else { text }
}

fn mask_line(line: &str, label: bool) -> String {
    let trimmed = line.trim_start();
    if trimmed.starts_with("[ Evaluations:") {
        let at = line.find("Packets:").unwrap();
        return format!("[ Evaluations: … {}", &line[at..]);
    }
    if trimmed.starts_with("Cleared:") || trimmed.starts_with("Checksum:") {
        return trimmed.split_once(':').unwrap().0.to_string();
    }
    if trimmed.starts_with("Evaluations: [") {
        // how often a table is asked depends on the skip steps, too
        return "Evaluations: …".to_string();
    }
    if label && !line.ends_with(':') && !line.is_empty() {
        // label, evaluations and seven more numbers
        let mut fields: Vec<&str> = line.rsplitn(9, ' ').collect();
        if fields.len() == 9 {
            fields[7] = "…";
        }
        fields.reverse();
        return fields.join(" ");
    }
    line.to_string()
}

#[test]
fn show_prints_what_openbsd_prints() {
    let path = vectors().join("show.jsonl.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return;
    };
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    let mut compared: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut report = String::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let entry: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let host = host::standard();
        let rules = entry["rules"].as_str().unwrap();
        let ruleset = match skipstep_pfconf::load(rules, &Context::new(&host)) {
            Ok(loaded) => loaded.ruleset,
            Err(_) => {
                *skipped.entry("rules refused").or_default() += 1;
                continue;
            }
        };
        if let Some(refusal) = refused_by_model(&ruleset).first() {
            *skipped.entry(refusal.feature).or_default() += 1;
            continue;
        }
        let packets = entry["packets"].as_array().unwrap();
        if ruleset.options.reassemble && packets.iter().any(is_fragment) {
            *skipped.entry("reassembly").or_default() += 1;
            continue;
        }
        let machine = Machine::run(ruleset, packets);
        for (arguments, expected) in entry["show"].as_object().unwrap() {
            let Some(found) = machine.show(arguments) else {
                continue;
            };
            let expected = masked(arguments, expected.as_str().unwrap());
            let found = masked(arguments, &found);
            let kind = kind(arguments);
            let tally = compared.entry(kind).or_default();
            tally[1] += 1;
            if expected == found {
                tally[0] += 1;
            } else if report.len() < 20_000 {
                let _ = write!(
                    report,
                    "{} {arguments}\n{}",
                    entry["id"],
                    difference(&expected, &found)
                );
            }
        }
    }
    for (kind, [equal, all]) in &compared {
        eprintln!("{kind:<24} {equal}/{all}");
    }
    for (feature, entries) in &skipped {
        eprintln!("skipped: {entries} entries with {feature}, which is not built");
    }
    assert!(!compared.is_empty());
    assert!(report.is_empty(), "\n{report}");
}

/// The arguments without names of tables and addresses.
fn kind(arguments: &str) -> String {
    let words = arguments.split(' ').filter(|word| word.parse::<std::net::IpAddr>().is_err());
    match words.collect::<Vec<_>>()[..] {
        ["-t", _, ref rest @ ..] => rest.join(" "),
        ["-a", _, "-t", _, ref rest @ ..] => rest.join(" "),
        ["-a", name, ref rest @ ..] if name != "*" => format!("-a ANCHOR {}", rest.join(" ")),
        ref words => words.join(" "),
    }
}

/// The first line that differs, and those around it.
fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let same = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let line = |lines: &[&str]| lines.get(same).copied().unwrap_or("(end)").to_string();
    let before = same.checked_sub(1).map_or("", |at| expected[at]);
    format!("    {before}\n  - {}\n  + {}\n", line(&expected), line(&found))
}

//! Tests that the output of `--json` matches docs/reference/json.schema.json.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use pfctl::diff::{Difference, Side};
use pfctl::doctor::finding::{self, Finding};
use pfctl::show::info::InfoView;
use pfctl::show::interfaces::InterfaceTraffic;
use pfctl::show::interfaces::InterfaceView;
use pfctl::show::nat::{LegacyRuleSet, LegacyRulesView};
use pfctl::show::queues::QueueTree;
use pfctl::show::rules::{Inserted, RuleSet, RulesView};
use pfctl::show::sources::SourcesView;
use pfctl::show::states::StatesView;
use pfctl::show::tables::{AddressView, TableView};
use pfctl::show::trial::ConfirmView;
use pfctl::show::{
    Detail, anchors, info, interfaces, labels, limiters, memory, nat, osfp, queues, references,
    rules, sources, states, tables, timeouts, trial,
};
use serde_json::{Value, json};
use skipstep_kernel::EnableReference;
use skipstep_kernel::trial::{Trial, TrialView};
use skipstep_pfconf::Context;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::fingerprint::Fingerprints;
use skipstep_ruleset::{Limits, Ruleset, Timeouts};
use skipstep_scenario::Engine;
use skipstep_scenario::{Model, host, parse, run};
use skipstep_views::{Admissions, LimitedView, LimiterView, NodeKind, RuleCounters, SourceView};
use skipstep_wire::pcap::{PFLOG_HEADER, RecordHeader};

/// Checks `document` against the definition `name` of the schema.
#[track_caller]
fn is(name: &str, document: &Value) {
    let text = include_str!("../../../docs/reference/json.schema.json");
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema["$ref"] = json!(format!("#/$defs/{name}"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

fn ruleset(text: &str) -> Ruleset {
    let host = host::standard();
    skipstep_pfconf::load(text, &Context::new(&host)).unwrap().ruleset
}

const RULES: &str = "block\npass in proto tcp to port 22 label ssh tag T\nanchor a {\npass out\n}";
const PACKET: &str = "in em0 tcp 10.0.1.5:4000 > 10.0.2.10:22 S";

#[test]
fn findings_of_the_doctor() {
    let findings = [
        Finding::ok("kernel", "Linux 6.18"),
        Finding::fail("filter", "disabled").mended_by("pfctl -e"),
        Finding::unseen("netfilter", "needs root"),
    ];
    let document = finding::json(&findings);
    is("doctor", &document);
    assert_eq!(document[1]["command"], "pfctl -e");
}

#[test]
fn the_schema_tells_documents_apart() {
    let result = std::panic::catch_unwind(|| is("anchors", &json!([1])));
    assert!(result.is_err());
    let result = std::panic::catch_unwind(|| is("labels", &json!([{ "label": "x" }])));
    assert!(result.is_err());
}

#[test]
fn loads_on_trial() {
    let now = ruleset("block");
    let trial = Trial { file: "a.conf".into(), seconds: 60, ..Trial::default() };
    let pending = TrialView { trial: trial.clone(), seconds_left: 9, kept: ruleset("pass") };
    let view = |pending, failed| ConfirmView { pending, failed, in_force: &now };
    let document = trial::json(&view(Some(pending.clone()), None));
    is("confirm", &document);
    assert_eq!(document["pending"]["changes"].as_array().unwrap().len(), 2);
    is("confirm", &trial::json(&view(None, Some(trial))));
    is("confirm", &trial::json(&view(None, None)));
}

#[test]
fn queues_and_their_counters() {
    let ruleset = ruleset(
        "queue line on em0 bandwidth 10M\nqueue bulk parent line bandwidth 5M default\npass",
    );
    let tree = QueueTree {
        interface: "em0",
        queues: ruleset.queues[0].and_below(&ruleset.queues).collect(),
        stats: BTreeMap::new(),
    };
    let document = queues::json(&[tree]);
    is("queues", &document);
    assert_eq!(document[1]["parent"], "line");
}

#[test]
fn sources_that_are_tracked() {
    let ruleset = ruleset("pass proto tcp keep state (max-src-conn-rate 3/10)");
    let source = SourceView {
        rule: Some(0.into()),
        kind: NodeKind::Track,
        source: "10.0.1.5".parse().unwrap(),
        chosen: None,
        states: 2,
        connections: 1,
        rate: (1000, 3),
        created_at: 1,
        expires_at: 0,
        packets: [5, 4],
        bytes: [500, 400],
    };
    let ended = SourceView { rule: None, states: 0, expires_at: 20, ..source.clone() };
    let document =
        sources::json(&SourcesView { sources: &[source, ended], ruleset: &ruleset, now: 8 });
    is("sources", &document);
    assert_eq!(document[0]["rate"], json!({ "connections": 0.5, "seconds": 10 }));
    assert_eq!(document[1]["expires"], 12);
}

#[test]
fn limiters_of_both_kinds() {
    let ruleset = ruleset(
        "state limiter few id 1 limit 2\n\
         source limiter each id 2 entries 3 limit 4 rate 5/6 inet mask 24\n",
    );
    let counts = Admissions { admitted: 7, hard_limited: 8, rate_limited: 9 };
    let net = "10.0.1.0/24".parse().unwrap();
    let views: Vec<LimiterView> = ruleset
        .limiters
        .iter()
        .map(|limiter| LimiterView {
            limiter: limiter.clone(),
            states: 1,
            counts,
            sources_made: 2,
            sources_limited: 3,
            sources_lost: 0,
            sources: vec![LimitedView { rdomain: 0, net, states: 1, counts }],
        })
        .collect();
    is("state_limiters", &limiters::json(&views, false));
    let of_sources = limiters::json(&views, true);
    is("source_limiters", &of_sources);
    assert_eq!(of_sources[0]["sources"][0]["source"], "10.0.1.0/24");
    assert_eq!(
        limiters::state_limiters_text(&views),
        " ID      USE/LIMIT     RATE/SECS     ADMIT  HARDLIM  RATELIM\n  \
         1        1/2          nil/nil          7        8        9\n"
    );
    let detail = Detail { verbose: 1, debug: false };
    assert_eq!(
        limiters::source_limiters_text(&views, detail),
        " ID      USE/ADDRS    LIMIT  RATE/SECS     ADMIT  ADDRLIM  HARDLIM  RATELIM\n  \
         2        1/3            4     5/6            7        3        8        9\n\
         \t10.0.1.0/24 rdomain 0 inuse 1/4 admit 7 hardlim 8 ratelim 9\n"
    );
}

#[test]
fn rules_and_labels() {
    let ruleset = ruleset(RULES);
    let counters = vec![RuleCounters::default(); ruleset.rules.len()];
    let set = |rules| RuleSet { rules, counters: counters.clone(), inserted: Inserted::default() };
    let anchors =
        ruleset.anchors.iter().map(|(path, anchor)| (path.as_str(), set(&anchor.rules[..])));
    let view = RulesView {
        sets: std::iter::once(("", set(&ruleset.rules[..])))
            .chain(anchors)
            .collect::<BTreeMap<_, _>>(),
        path: "",
        recursive: true,
        only: None,
        port_names: None,
        queue_numbers: BTreeMap::new(),
        table_sizes: &|_, _| None,
        dynamic_sizes: &|_, _| 0,
        identities: &Identities::of(&ruleset),
    };
    let document = rules::json(&view);
    assert_eq!(document.as_array().unwrap().len(), 4);
    assert_eq!(document[1]["id"], "ssh");
    is("rules", &document);
    let labelled: Vec<_> = ruleset.rules.iter().zip(counters.iter().cloned()).collect();
    is("labels", &labels::json(&labelled));
}

#[test]
fn translation_rules() {
    let ruleset = ruleset(
        "nat on em1 from 10.0.1.0/24 to any -> 192.0.2.1\nrdr-anchor \"a\"\n\
         binat on em1 from 10.0.1.5 to any -> 192.0.2.5\n",
    );
    let rules = &ruleset.legacy_rules[..];
    let counters = vec![RuleCounters::default(); rules.len()];
    let view = LegacyRulesView {
        sets: BTreeMap::from([(
            "",
            LegacyRuleSet { rules, counters, inserted: Inserted::default() },
        )]),
        path: "",
        recursive: false,
        translation: true,
        only: None,
        port_names: None,
        identities: &Identities::of(&ruleset),
    };
    let document = nat::json(&view);
    assert_eq!(document.as_array().unwrap().len(), 3);
    is("nat", &document);
}

#[test]
fn states_in_force() {
    let (mut model, ruleset) = (Model::new(), ruleset(RULES));
    model.load(&ruleset, &host::standard()).unwrap();
    model.packet(&run::test_packet(&parse::arrival(PACKET).unwrap()));
    let states = model.states();
    let view = StatesView {
        states: &states,
        now: 3,
        hostid: 1,
        host: &|address: IpAddr| address.to_string(),
        identities: &Identities::of(&ruleset),
        orphaned: &HashMap::new(),
    };
    let document = states::json(&view, None);
    assert_eq!(document.as_array().unwrap().len(), 1);
    assert_eq!(document[0]["rule_id"], "ssh");
    is("states", &document);
    let mut written = Vec::new();
    states::write_json(&view, None, &mut written).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written, document);
}

#[test]
fn status_and_interfaces() {
    let statistics = InterfaceTraffic { name: "em0".to_string(), ..InterfaceTraffic::default() };
    let status = Model::new().status();
    let view = InfoView {
        enabled: true,
        seconds: 7,
        interface: Some(statistics.clone()),
        status,
        trial: Some(TrialView {
            trial: Trial { seconds: 60, ..Trial::default() },
            seconds_left: 9,
            kept: Ruleset::default(),
        }),
        ..InfoView::default()
    };
    is("info", &info::json(&view));
    is("info", &info::json(&InfoView { interface: None, ..view }));
    let view = InterfaceView { statistics, ..InterfaceView::default() };
    is("interfaces", &interfaces::json(&[view], None));
}

#[test]
fn tables_anchors_and_numbers() {
    let table = TableView { name: "bad".to_string(), active: true, ..TableView::default() };
    is("tables", &tables::json(&[table], Detail::default()));
    let net = "10.0.0.0/8".parse().unwrap();
    let entry = skipstep_ruleset::TableEntry { negated: true, net, weight: 0 };
    let address = AddressView { entry, cleared: 5, traffic: None, states: 0 };
    is("contents", &tables::contents_json(&[address]));
    is("anchors", &anchors::json(&["a", "b"], ""));
    is("timeouts", &timeouts::json(&Timeouts::default()));
    is("memory", &memory::json(&Limits::default()));
    is("osfp", &osfp::json(&Fingerprints::default()));
    let held = EnableReference { token: u64::MAX, pid: 7, process: "pfctl".into(), since: 8 };
    is("references", &references::json(&[held]));
}

#[test]
fn logged_packets() {
    // pflog's header: interface em0, no anchor, no user
    let mut bytes = vec![0; PFLOG_HEADER];
    bytes[4..7].copy_from_slice(b"em0");
    bytes[40..48].fill(0xff);
    let header = RecordHeader { time: Duration::ZERO, captured: 100, length: 100 };
    for action in [0, 1, 4, 6, 8, 12] {
        bytes[2] = action;
        let record = pfctl::log::Record::parse(&header, &bytes).unwrap();
        is("log", &record.json(None));
        is("log", &record.json(Some("ssh")));
    }
}

#[test]
fn dropped_packets() {
    use pfctl::drops::record::{Cause, Dropped};
    use pfctl::drops::rules::DecidingRule;

    let rules = ruleset(RULES);
    let packet = run::test_packet(&parse::arrival(PACKET).unwrap());
    let explained = pfctl::explain::explain(&rules, &host::standard(), &packet);
    let rule = DecidingRule {
        identity: "ssh".into(),
        id: 1.into(),
        file: Some("pf.conf".into()),
        line: 2,
        labels: vec!["ssh".into()],
    };
    for rule in [Some(rule), None] {
        let dropped = Dropped {
            time: Default::default(),
            cause: Cause::Undelivered,
            direction: packet.direction,
            interface: packet.interface.clone(),
            rule,
            length: 40,
            is_ip: true,
            packet: packet.bytes.clone(),
        };
        is("drops", &dropped.json(Some(explained.json(&rules))));
        is("drops", &dropped.json(None));
        is("drops", &dropped.kind().json(&dropped.time, 7));
    }
}

#[test]
fn explanations_and_differences() {
    let rules = ruleset(RULES);
    let packet = run::test_packet(&parse::arrival(PACKET).unwrap());
    for rules in [rules.clone(), Ruleset::default()] {
        let explained = pfctl::explain::explain(&rules, &host::standard(), &packet);
        is("explain", &explained.json(&rules));
    }
    let side = |file: &str, ruleset| Side { file: file.to_string(), ruleset };
    let (old, new) = (side("old", Ruleset::default()), side("new", rules));
    let difference = Difference::between(&old, &new, &host::standard(), 5);
    let document = difference.json();
    assert!(!document["packets"].as_array().unwrap().is_empty());
    is("diff", &document);
}

#[test]
fn bridges_and_their_stations() {
    use skipstep_kernel::bridge::{BridgeView, PortView, Station};
    use skipstep_kernel::bridge_port::{FrameRule, LinkAddress};

    let rule = FrameRule {
        pass: false,
        direction: None,
        source: None,
        destination: Some(LinkAddress([0xff; 6])),
        ether_type: Some(0x88b5),
    };
    let port =
        PortView { name: "em0".into(), present: true, rules: vec![rule], ..PortView::default() };
    let address = LinkAddress([0, 0, 0x5e, 0, 0x53, 1]);
    let bridge = BridgeView {
        number: 1,
        timeout: 240,
        ports: vec![port],
        stations: vec![Station { port: "em0".into(), vlan: 10, address, age: 3 }],
    };
    is("bridges", &pfctl::bridge::show::json(&[bridge]));
}

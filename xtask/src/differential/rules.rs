//! Random rule sets in the language of pf.conf, with all features that are built.

use fastrand::Rng;
use skipstep_ruleset::Timeout;

use super::anchors::Anchors;
use super::pool::{IDS, Pool, TAGS, one_in, pick};
use super::{legacy, limiters, routing, systems, translation};

const QUEUES: [&str; 3] = [
    "queue line on em1 bandwidth 100M",
    "queue bulk parent line bandwidth 90M default",
    "queue prompt parent line bandwidth 10M",
];

/// Draws a text of pf.conf. If it is refused, for example for contradictory families, the caller
/// draws another.
pub fn text(rng: &mut Rng, pool: &mut Pool) -> String {
    let mut lines = settings(rng);
    for _ in 0..rng.usize(..3) {
        lines.push(table(rng, pool));
    }
    lines.extend(limiters::statements(rng, pool));
    pool.has_queues = one_in(rng, 4);
    if pool.has_queues {
        lines.extend(QUEUES.map(String::from));
    }
    if one_in(rng, 4) {
        lines.push(if rng.bool() { "block".into() } else { "block return".into() });
    }
    let rules = if one_in(rng, 12) { rng.usize(30..120) } else { rng.usize(1..14) };
    let mut anchors = Anchors::default();
    for _ in 0..rules {
        if one_in(rng, 8) {
            lines.extend(anchors.lines(rng, pool));
        } else {
            lines.push(rule(rng, pool));
        }
    }
    let mut apart = rng.clone();
    if one_in(&mut apart, 24) {
        lines.extend(only_deciding(&mut apart, pool));
    }
    if !one_in(rng, 3) {
        lines.push(
            pick(
                rng,
                &["pass", "pass keep state", "pass flags any", "pass out", "pass in allow-opts"],
            )
            .into(),
        );
    }
    // the parser would read rules behind legacy rules as legacy rules, so these come last
    if one_in(rng, 4) {
        lines.extend((0..rng.usize(1..6)).map(|_| legacy::rule(rng, pool)));
        if one_in(rng, 3) {
            lines.extend(legacy::anchors(rng, pool));
        }
    }
    lines.join("\n") + "\n"
}

/// Draws a run of rules that only decide. The compiled evaluator builds trees over it.
fn only_deciding(rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
    let does_more = ["match", " tag", "once", "probability", "max-pkt-rate", "limiter"];
    let count = rng.usize(50..400);
    let rules = (0..count).map(|_| rule(rng, pool));
    rules.filter(|rule| !does_more.iter().any(|word| rule.contains(word))).collect()
}

fn settings(rng: &mut Rng) -> Vec<String> {
    let mut lines = Vec::new();
    match rng.u8(..4) {
        0 | 1 => lines.push("set reassemble no".into()),
        2 => lines.push("set reassemble yes no-df".into()),
        _ => {}
    }
    if one_in(rng, 12) {
        lines.push(format!("set limit {} {}", pick(rng, &["src-nodes", "frags"]), rng.u32(1..4)));
    }
    if one_in(rng, 12) {
        let class = pick(rng, &["frag", "src.track"]);
        lines.push(format!("set timeout {class} {}", rng.u32(1..30)));
    }
    if one_in(rng, 3) {
        // timeouts of states, which come before `frag`
        let classes = &Timeout::ALL[..Timeout::Frag as usize];
        let values: Vec<String> = (0..rng.usize(1..5))
            .map(|_| format!("{} {}", pick(rng, classes).name(), rng.u32(1..40)))
            .collect();
        lines.push(format!("set timeout {{ {} }}", values.join(", ")));
    }
    if one_in(rng, 6) {
        let start = rng.u32(..5);
        lines.push(format!(
            "set timeout {{ adaptive.start {start}, adaptive.end {} }}",
            start + rng.u32(1..8)
        ));
    }
    if one_in(rng, 8) {
        lines.push(format!("set limit states {}", rng.u32(1..8)));
    }
    for (odds, options) in [
        (4, &["set block-policy return", "set block-policy drop"][..]),
        (4, &["set fail-policy return", "set fail-policy drop"]),
        (4, &["set state-policy if-bound", "set state-policy floating"]),
        (
            8,
            &[
                "set syncookies always",
                "set syncookies adaptive (start 40%, end 20%)",
                "set syncookies adaptive (start 20%, end 10%)",
            ],
        ),
        (8, &["set skip on lo", "set skip on em1", "set skip on egress"]),
        (
            8,
            &[
                "set optimization aggressive",
                "set optimization satellite",
                "set optimization conservative",
            ],
        ),
        (
            8,
            &[
                "set state-defaults no-sync",
                "set state-defaults pflow",
                "set state-defaults sloppy",
                "set state-defaults if-bound",
            ],
        ),
    ] {
        if one_in(rng, odds) {
            lines.push(pick(rng, options).into());
        }
    }
    lines
}

pub(super) fn table(rng: &mut Rng, pool: &mut Pool) -> String {
    let name = format!("t{}", pool.tables.len());
    pool.tables.push(name.clone());
    table_called(rng, pool, &name)
}

/// Writes the statement that defines the table `name`.
pub(super) fn table_called(rng: &mut Rng, pool: &mut Pool, name: &str) -> String {
    let entries: Vec<String> = (0..rng.usize(..6))
        .map(|_| {
            let ipv6 = one_in(rng, 3);
            let not = if one_in(rng, 3) { "!" } else { "" };
            let own = one_in(rng, 8);
            let hosts = if own { "self".into() } else { pool.network(rng, ipv6) };
            format!("{not}{hosts}{}", if own { String::new() } else { translation::weight(rng) })
        })
        .collect();
    let options = pick(rng, &["", "persist ", "const ", "counters "]);
    format!("table <{name}> {options}{{ {} }}", entries.join(", "))
}

/// The parts of a rule that other parts must match.
pub(super) struct Head {
    pub action: &'static str,
    pub family: Option<bool>,
    pub protocol: Option<&'static str>,
}

fn rule(rng: &mut Rng, pool: &mut Pool) -> String {
    if one_in(rng, 30) {
        return pick(
            rng,
            &[
                "antispoof for em0",
                "antispoof quick for { em0, em1 }",
                "antispoof log for em1 inet",
            ],
        )
        .into();
    }
    filter_rule(rng, pool)
}

/// Returns true if a line is a filter rule, so that another rule may follow.
pub(super) fn is_filter_rule(line: &str) -> bool {
    ["pass", "block", "match"].iter().any(|action| line.starts_with(action))
}

/// Draws a rule that is valid in any anchor.
pub(super) fn filter_rule(rng: &mut Rng, pool: &mut Pool) -> String {
    if one_in(rng, 6) {
        return translation::rule(rng, pool);
    }
    if one_in(rng, 14) {
        return routing::rule(rng, pool);
    }
    if one_in(rng, 14) {
        return translation::crossing(rng, pool);
    }
    let action = pick(rng, &["pass", "pass", "pass", "pass", "block", "block", "match"]);
    let family = match rng.u8(..6) {
        0 | 1 => Some(false),
        2 => Some(true),
        _ => None,
    };
    let protocols: &[&str] = if family == Some(true) {
        &["tcp", "udp", "sctp", "ipv6-icmp", "esp", "{ tcp, udp }"]
    } else {
        &["tcp", "tcp", "udp", "sctp", "icmp", "esp", "{ tcp, udp }", "47"]
    };
    let protocol = (!one_in(rng, 3)).then(|| pick(rng, protocols));
    let family = match protocol {
        Some("icmp") => Some(false),
        Some("ipv6-icmp") => Some(true),
        _ => family,
    };
    let head = Head { action, family, protocol };
    let mut words = vec![action.to_owned()];
    if action == "block" {
        words.extend(block_return(rng, &head));
    }
    words.extend(pick(rng, &[None, None, Some("in"), Some("in"), Some("out")]).map(String::from));
    if one_in(rng, 4) {
        words.push(
            pick(
                rng,
                &[
                    "log",
                    "log (all)",
                    "log (matches)",
                    "log (to pflog1)",
                    "log (all, matches)",
                    "log (all, user)",
                ],
            )
            .into(),
        );
    }
    if action != "match" && one_in(rng, 4) {
        words.push("quick".into());
    }
    words.extend(interface(rng, "on"));
    words.extend(family.map(|ipv6| String::from(if ipv6 { "inet6" } else { "inet" })));
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &head));
    words.extend(owners(rng, &head));
    words.extend(options(rng, pool, &head));
    words.extend(routing::diversion(rng, &words, &head));
    words.join(" ")
}

fn block_return(rng: &mut Rng, head: &Head) -> Option<String> {
    let mut kinds =
        vec!["drop", "return", "return-icmp", "return-icmp(net-unr, admin-unr)", "return-icmp(13)"];
    if head.protocol == Some("tcp") {
        kinds.extend(["return-rst", "return-rst(ttl 9)"]);
    }
    if head.family == Some(true) {
        kinds.push("return-icmp6(addr-unr)");
    }
    one_in(rng, 2).then(|| pick(rng, &kinds).into())
}

pub(super) fn interface(rng: &mut Rng, word: &str) -> Option<String> {
    let odds = if word == "on" { 2 } else { 12 };
    let names = ["em0", "em1", "! em0", "any", "egress", "! egress", "lo", "em9"];
    // forms that `received-on` does not have
    let more = ["{ em0, em1 }", "rdomain 0", "rdomain 1", "! rdomain 1"];
    let names = if word == "on" { [&names[..], &more].concat() } else { names.to_vec() };
    one_in(rng, odds).then(|| match (pick(rng, &names), word) {
        // pf.conf negates `received-on`, not the name
        (name, "received-on") if name.starts_with('!') => format!("! received-on {}", &name[2..]),
        (name, _) => format!("{word} {name}"),
    })
}

pub(super) fn hosts(rng: &mut Rng, pool: &mut Pool, head: &Head) -> Option<String> {
    if one_in(rng, 4) {
        return one_in(rng, 2).then(|| "all".into());
    }
    let mut words = Vec::new();
    for (word, odds) in [("from", 2), ("to", 2)] {
        // FreeBSD's `nat` accepts ports without a protocol
        let has_ports = head.protocol.map_or(head.action == "nat", has_ports);
        let ports = has_ports && one_in(rng, 2);
        let host = one_in(rng, odds).then(|| host_list(rng, pool, head, word));
        let os = match (word, head.protocol) {
            ("from", Some("tcp")) => systems::os(rng),
            ("from", None) if head.action != "nat" && one_in(rng, 4) => systems::os(rng),
            _ => None,
        };
        match (host, ports) {
            (None, false) if os.is_none() => {}
            (None, false) => words.push(format!("{word} any")),
            (None, true) => words.push(format!("{word} any port {}", ports_words(rng, pool))),
            (Some(host), false) => words.push(format!("{word} {host}")),
            (Some(host), true) => {
                words.push(format!("{word} {host} port {}", ports_words(rng, pool)))
            }
        }
        words.extend(os);
    }
    (!words.is_empty()).then(|| words.join(" "))
}

pub(super) fn has_ports(protocol: &str) -> bool {
    matches!(protocol, "tcp" | "udp" | "sctp" | "{ tcp, udp }")
}

fn host_list(rng: &mut Rng, pool: &mut Pool, head: &Head, word: &str) -> String {
    if one_in(rng, 5) {
        let hosts: Vec<String> =
            (0..rng.usize(2..4)).map(|_| host(rng, pool, head, word)).collect();
        return format!("{{ {} }}", hosts.join(", "));
    }
    let not = if one_in(rng, 6) { "! " } else { "" };
    format!("{not}{}", host(rng, pool, head, word))
}

fn host(rng: &mut Rng, pool: &mut Pool, head: &Head, word: &str) -> String {
    let ipv6 = head.family.unwrap_or_else(|| one_in(rng, 3));
    match rng.u8(..16) {
        0..=3 => pick_address(rng, pool, ipv6),
        4..=7 => pool.network(rng, ipv6),
        8 => pool.range(rng, ipv6),
        9 | 10 if !pool.tables.is_empty() => format!("<{}>", pick(rng, &pool.tables)),
        11 => pick(rng, &["em0", "em0:network", "em1:0", "em1:network", "self", "em0:broadcast"])
            .into(),
        12 => pick(
            rng,
            &[
                "(em0)",
                "(em1:network)",
                "(em0:0)",
                "(self)",
                "(egress)",
                "(em1:broadcast)",
                "(em0)/30",
            ],
        )
        .into(),
        13 if one_in(rng, 2) => pick(rng, &["route isp", "route lan"]).into(),
        13 => "no-route".into(),
        14 if word == "from" => "urpf-failed".into(),
        _ => pick_address(rng, pool, ipv6),
    }
}

/// Draws `user` and `group`.
fn owners(rng: &mut Rng, head: &Head) -> Vec<String> {
    if !matches!(head.protocol, None | Some("tcp" | "udp" | "{ tcp, udp }")) {
        return Vec::new();
    }
    let words = ["user", "group"].map(|word| one_in(rng, 12).then(|| owner(rng, word)));
    words.into_iter().flatten().collect()
}

fn owner(rng: &mut Rng, word: &str) -> String {
    let id = pick(rng, IDS);
    let form = match rng.u8(..6) {
        0 => "unknown".to_owned(),
        1 => format!("{id} >< {}", pick(rng, IDS)),
        2 => format!("{id} <> {}", pick(rng, IDS)),
        3 => "!= unknown".to_owned(),
        _ => format!("{} {id}", pick(rng, &["=", "!=", "<", "<=", ">", ">="])),
    };
    format!("{word} {form}")
}

fn pick_address(rng: &mut Rng, pool: &Pool, ipv6: bool) -> String {
    if ipv6 { pick(rng, &pool.ipv6).to_string() } else { pick(rng, &pool.ipv4).to_string() }
}

fn ports_words(rng: &mut Rng, pool: &mut Pool) -> String {
    let (a, b) = (pool.rule_port(rng), pool.rule_port(rng));
    let (low, high) = (a.min(b), a.max(b));
    match rng.u8(..11) {
        0 => format!("!= {a}"),
        1 => format!("< {a}"),
        2 => format!("<= {a}"),
        3 => format!("> {a}"),
        4 => format!(">= {a}"),
        5 => format!("{low}:{high}"),
        6 => format!("{low} >< {high}"),
        7 => format!("{low} <> {high}"),
        8 => format!("{{ {a}, {b} }}"),
        _ => a.to_string(),
    }
}

fn options(rng: &mut Rng, pool: &mut Pool, head: &Head) -> Vec<String> {
    let mut words = Vec::new();
    if one_in(rng, 15) {
        words.push(format!("rtable {}", rng.u8(..3)));
    }
    if head.protocol == Some("tcp") && one_in(rng, 3) {
        words.push(format!(
            "flags {}",
            pick(rng, &["any", "S/SA", "S/SAFR", "A/A", "/SFRA", "SA/SA", "R/R", "/FS", "FUP/FUP"])
        ));
    }
    match head.protocol {
        Some("icmp") if one_in(rng, 2) => words.push(format!(
            "icmp-type {}",
            pick(
                rng,
                &[
                    "echoreq",
                    "unreach",
                    "unreach code port-unr",
                    "{ echoreq, timex }",
                    "3 code 1",
                    "echorep",
                    "13"
                ]
            )
        )),
        Some("ipv6-icmp") if one_in(rng, 2) => words.push(format!(
            "icmp6-type {}",
            pick(
                rng,
                &[
                    "echoreq",
                    "unreach",
                    "unreach code port-unr",
                    "{ echoreq, timex }",
                    "neighbrsol",
                    "136",
                    "toobig"
                ]
            )
        )),
        _ => {}
    }
    if one_in(rng, 12) {
        words.push(format!("tos {}", pick(rng, &["lowdelay", "0x10", "af11", "critical", "0x08"])));
    }
    if one_in(rng, 16) {
        words.push(format!("prio {}", rng.u8(..8)));
    }
    words.extend(interface(rng, "received-on"));
    words.extend(actions(rng));
    let fragment = head.action != "match"
        && one_in(rng, 20)
        && !words.iter().any(|word| word.starts_with("flags"));
    if fragment {
        words.push("fragment".into());
    }
    words.extend(limiters::uses(rng, pool));
    if head.action == "pass" {
        words.extend(state(rng));
    }
    if matches!(head.action, "pass" | "match") && one_in(rng, 6) {
        words.push("allow-opts".into());
    }
    if one_in(rng, 12) {
        words.push(format!("probability {}%", pick(rng, &["50", "10", "99", "0.5", "100"])));
    }
    if one_in(rng, 10) {
        words.push(format!("label \"{}\"", pick(rng, &["L1", "$nr:$proto", "$srcaddr"])));
    }
    if one_in(rng, 6) {
        words.push(format!("tag {}", pick(rng, TAGS)));
    }
    if pool.has_queues && one_in(rng, 5) {
        words.push(format!("set queue {}", pick(rng, &["bulk", "prompt", "(bulk, prompt)"])));
    }
    if one_in(rng, 12) {
        words.push(format!("set delay {}", pick(rng, &["0", "1", "250", "65535"])));
    }
    if one_in(rng, 10) {
        words.push(format!("{}tagged {}", pick(rng, &["", "! "]), pick(rng, TAGS)));
    }
    words.extend(limits(head, rng));
    if one_in(rng, 40) {
        pool.rule_port(rng);
    }
    words
}

/// Draws options that limit how often a rule matches, or the size of packets.
fn limits(head: &Head, rng: &mut Rng) -> Vec<String> {
    let mut words = Vec::new();
    if head.action != "match" && one_in(rng, 20) {
        words.push("once".into());
    }
    if one_in(rng, 14) {
        words.push(format!("max-pkt-rate {}", pick(rng, &["1/1", "2/5", "5/10", "40/3"])));
    }
    if one_in(rng, 20) {
        words.push(format!("max-pkt-size {}", pick(rng, &["40", "60", "100", "576"])));
    }
    words
}

fn actions(rng: &mut Rng) -> Vec<String> {
    let mut words = Vec::new();
    if one_in(rng, 12) {
        words.push(format!("set prio {}", pick(rng, &["0", "5", "(2, 6)", "(7, 1)"])));
    }
    if one_in(rng, 14) {
        words.push(format!("set tos {}", pick(rng, &["ef", "lowdelay", "0x28"])));
    }
    if one_in(rng, 8) {
        let mut parts = Vec::new();
        for (odds, part) in [
            (2, "no-df".to_owned()),
            (4, "random-id".into()),
            (3, "reassemble tcp".into()),
            (2, format!("min-ttl {}", rng.u8(1..100))),
            (2, format!("max-mss {}", rng.u16(500..1500))),
        ] {
            if one_in(rng, odds) {
                parts.push(part);
            }
        }
        if !parts.is_empty() {
            words.push(format!("scrub ({})", parts.join(", ")));
        }
    }
    words
}

fn state(rng: &mut Rng) -> Option<String> {
    match rng.u8(..8) {
        0 => Some("no state".into()),
        1..=3 => {
            let mut parts: Vec<String> = Vec::new();
            for (odds, choices) in [
                (3, &["sloppy"][..]),
                (3, &["max 1", "max 2", "max 3", "max 20"]),
                (4, &["if-bound", "floating"]),
                (6, &["no-sync"]),
                (6, &["pflow"]),
                (
                    3,
                    &[
                        "tcp.first 5",
                        "tcp.closed 3",
                        "udp.multiple 10",
                        "udp.first 7",
                        "icmp.error 4",
                        "other.single 9",
                    ],
                ),
                (
                    3,
                    &[
                        "source-track",
                        "source-track global",
                        "max-src-states 1",
                        "max-src-states 3, src.track 5",
                        "max-src-nodes 1",
                        "max-src-nodes 2, max-src-states 2",
                        "max-src-conn 1",
                        "max-src-conn-rate 1/10",
                        "max-src-conn 1, overload <t1>",
                        "max-src-conn-rate 1/5, overload <t1> flush",
                        "max-src-conn 1, max-src-conn-rate 2/3, overload <t2> flush global",
                    ],
                ),
                (8, &["adaptive.start 1, adaptive.end 3", "adaptive.start 2, adaptive.end 9"]),
            ] {
                if one_in(rng, odds) {
                    parts.push(pick(rng, choices).into());
                }
            }
            // the other kinds of state need sequence numbers
            let kinds: &[&str] = if parts.iter().any(|part| part == "sloppy") {
                &["keep"]
            } else {
                &["keep", "modulate", "synproxy"]
            };
            let kind = pick(rng, kinds);
            Some(if parts.is_empty() {
                format!("{kind} state")
            } else {
                format!("{kind} state ({})", parts.join(", "))
            })
        }
        _ => None,
    }
}

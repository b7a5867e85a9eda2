//! Random legacy rules of FreeBSD: `scrub`, `nat`, `rdr` and `binat`.

use fastrand::Rng;

use super::pool::{Pool, TAGS, one_in, pick};
use super::rules::{Head, has_ports, hosts, interface};
use super::translation::{address, network};

/// Draws a legacy rule of any kind.
pub(super) fn rule(rng: &mut Rng, pool: &mut Pool) -> String {
    if one_in(rng, 4) { scrub(rng, pool) } else { translation(rng, pool) }
}

/// Draws anchor rules for legacy rules, and writes the file that the anchor is loaded from.
pub(super) fn anchors(rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
    let path = pick(rng, &["o", "o/p"]);
    let mut lines = Vec::new();
    for kind in ["nat", "rdr", "binat"] {
        if one_in(rng, 3) {
            continue;
        }
        let called = if path == "o/p" { pick(rng, &["o/p", "o/*", "o"]) } else { path };
        let mut words = vec![format!("{kind}-anchor \"{called}\"")];
        if one_in(rng, 3) {
            words.extend(interface(rng, "on"));
        }
        if one_in(rng, 3) {
            let ipv6 = one_in(rng, 4);
            words.push(if ipv6 { "inet6" } else { "inet" }.into());
            words.extend(hosts(
                rng,
                pool,
                &Head { action: "match", family: Some(ipv6), protocol: None },
            ));
        }
        lines.push(words.join(" "));
    }
    let rules: Vec<String> = (0..rng.usize(1..5)).map(|_| translation(rng, pool)).collect();
    pool.files.push(("old.conf".to_owned(), rules.join("\n") + "\n"));
    lines.push(format!("load anchor \"{path}\" from \"old.conf\""));
    lines
}

/// Draws a `scrub` rule.
fn scrub(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = one_in(rng, 4);
    let protocol = (!one_in(rng, 3)).then(|| pick(rng, &["tcp", "udp", "sctp"]));
    let mut words = vec![if one_in(rng, 5) { "no scrub".to_owned() } else { "scrub".to_owned() }];
    let direction = pick(rng, &["in", "out", ""]);
    words.push(direction.into());
    words.extend(interface(rng, "on"));
    words.push(if ipv6 { "inet6" } else { "inet" }.into());
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &Head { action: "match", family: Some(ipv6), protocol }));
    if words[0] == "no scrub" {
        return words.join(" ");
    }
    for (odds, option) in [
        (3, "no-df"),
        (4, "random-id"),
        (3, "min-ttl 40"),
        (3, "max-mss 1200"),
        (4, "set-tos 0x10"),
        (4, "reassemble tcp"),
        (6, "fragment no reassemble"),
    ] {
        if one_in(rng, odds) && (option != "reassemble tcp" || direction.is_empty()) {
            words.push(option.into());
        }
    }
    words.join(" ")
}

/// Draws a `nat`, `rdr` or `binat` rule with all its options. Its port range is small, so that
/// ports run out.
fn translation(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = one_in(rng, 4);
    let family = if ipv6 { "inet6" } else { "inet" };
    let kind = pick(rng, &["nat", "nat", "rdr", "rdr", "binat"]);
    let exception = one_in(rng, 6);
    let mut words = vec![if exception { format!("no {kind}") } else { kind.to_owned() }];
    if !exception && one_in(rng, 4) {
        words.push(pick(rng, &["pass", "pass log", "pass log (all)"]).into());
    }
    words.extend(interface(rng, "on"));
    words.push(family.into());
    if kind == "binat" {
        let prefix = if one_in(rng, 2) {
            ""
        } else if ipv6 {
            "/126"
        } else {
            "/30"
        };
        let to = if rng.bool() { "any".to_owned() } else { address(rng, pool, ipv6) };
        let networks = one_in(rng, 4);
        let side = |rng: &mut Rng| match networks {
            true => pick(rng, &["(em0:network:0)", "(em1:network:0)", "(em1:0)"]).to_owned(),
            false => format!("{}{prefix}", address(rng, pool, ipv6)),
        };
        words.push(format!("from {} to {to}", side(rng)));
        words.extend(tags(rng));
        if !exception {
            words.push(format!("-> {}", side(rng)));
        }
        return words.join(" ");
    }
    let protocols: &[&str] = if ipv6 {
        &["tcp", "udp", "sctp", "ipv6-icmp"]
    } else {
        &["tcp", "udp", "sctp", "icmp", "47"]
    };
    let protocol = (!one_in(rng, 3)).then(|| pick(rng, protocols));
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &Head { action: kind, family: Some(ipv6), protocol }));
    words.extend(tags(rng));
    if !exception {
        let has_ports = protocol.is_some_and(has_ports);
        let (addresses, kind_of_pool) = addresses(rng, pool, ipv6);
        words.push(format!("-> {addresses}"));
        let low = if kind == "nat" { rng.u16(1..=5) } else { pool.rule_port(rng) };
        match rng.u8(..4) {
            0 if has_ports => words.push(format!("port {low}:{}", low.saturating_add(3))),
            1 if has_ports => words.push(format!("port {low}")),
            _ if kind == "nat" && kind_of_pool.is_empty() && one_in(rng, 4) => {
                words
                    .push(pick(rng, &["map-e-portset 1/15/0x1ffe", "map-e-portset 2/13/3"]).into());
            }
            2 if kind == "nat" => words.push("static-port".into()),
            _ => {}
        }
        words.push(kind_of_pool);
        if kind == "nat" && one_in(rng, 5) {
            words.push("endpoint-independent".into());
        }
    }
    words.join(" ")
}

fn tags(rng: &mut Rng) -> Vec<String> {
    let mut words = Vec::new();
    if one_in(rng, 6) {
        words.push(format!("tag {}", pick(rng, TAGS)));
    }
    if one_in(rng, 8) {
        let not = if rng.bool() { "! " } else { "" };
        words.push(format!("{not}tagged {}", pick(rng, TAGS)));
    }
    words
}

/// Draws a member of a list.
fn member(rng: &mut Rng, pool: &mut Pool, ipv6: bool) -> String {
    match rng.u8(..8) {
        0 if !pool.tables.is_empty() => format!("<{}>", pick(rng, &pool.tables)),
        1 => pick(rng, &["(em0)", "(em1:network)", "(em1:0)"]).to_owned(),
        2 => network(rng, pool, ipv6),
        3 => pool.range(rng, ipv6),
        _ => address(rng, pool, ipv6),
    }
}

/// Draws addresses in all forms of legacy rules, and the way one of them is chosen.
fn addresses(rng: &mut Rng, pool: &mut Pool, ipv6: bool) -> (String, String) {
    let sticky = if one_in(rng, 4) { " sticky-address" } else { "" };
    match rng.u8(..8) {
        0 | 1 => {
            let list: Vec<String> = (0..rng.usize(2..5)).map(|_| member(rng, pool, ipv6)).collect();
            (format!("{{ {} }}", list.join(", ")), format!("round-robin{sticky}"))
        }
        2 => {
            let key = "source-hash 0x0123456789abcdef0123456789abcdef";
            let kind = pick(rng, &["bitmask", "random", "round-robin", key]);
            (network(rng, pool, ipv6), format!("{kind}{sticky}"))
        }
        3 if !pool.tables.is_empty() => {
            (format!("<{}>", pick(rng, &pool.tables)), format!("round-robin{sticky}"))
        }
        4 => (pick(rng, &["(em0:0)", "(em1:0)", "(em1)"]).to_owned(), String::new()),
        _ => (address(rng, pool, ipv6), String::new()),
    }
}

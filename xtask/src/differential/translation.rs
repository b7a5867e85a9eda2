//! Random rules that translate.

use fastrand::Rng;

use super::pool::{Pool, one_in, pick};
use super::routing;
use super::rules::{Head, has_ports, hosts, interface};

/// Draws a rule with `nat-to`, `rdr-to` or `binat-to` that is valid in any anchor. Its port range
/// is small, so that ports run out.
pub(super) fn rule(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = one_in(rng, 4);
    let action = pick(rng, &["pass", "match"]);
    let protocols: &[&str] = if ipv6 {
        &["tcp", "udp", "sctp", "ipv6-icmp", "{ tcp, udp }"]
    } else {
        &["tcp", "udp", "sctp", "icmp", "{ tcp, udp }", "47"]
    };
    let protocol = (!one_in(rng, 3)).then(|| pick(rng, protocols));
    let head = Head { action, family: Some(ipv6), protocol };
    let mut words = vec![action.to_owned()];
    if one_in(rng, 12) {
        words.extend(interface(rng, "on"));
        words.push(if ipv6 { "inet6" } else { "inet" }.into());
        let (own, other) = (address(rng, pool, ipv6), address(rng, pool, ipv6));
        words.push(format!("from {own} to any binat-to {other}"));
        return words.join(" ");
    }
    words.push(pick(rng, &["in", "out"]).into());
    if one_in(rng, 5) {
        words.push("log".into());
    }
    if action == "pass" && one_in(rng, 4) {
        words.push("quick".into());
    }
    words.extend(interface(rng, "on"));
    words.push(if ipv6 { "inet6" } else { "inet" }.into());
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &head));
    let has_ports = protocol.is_some_and(has_ports);
    let both = one_in(rng, 6);
    let nat = rng.bool();
    if nat || both {
        let mut ports = one_in(rng, 4).then(|| "static-port".to_owned());
        if has_ports && one_in(rng, 2) {
            let low = rng.u16(1..=5);
            ports = Some(format!("port {}:{}", low, low + rng.u16(..3)));
        }
        words.push(format!("nat-to {}", addresses(rng, pool, ipv6, ports)));
        if one_in(rng, 6) {
            words.push("endpoint-independent".into());
        }
    }
    if !nat || both {
        let ports = (has_ports && one_in(rng, 3)).then(|| {
            let low = pool.rule_port(rng);
            pick(rng, &[format!("port {low}"), format!("port {low}:{}", low.saturating_add(3))])
        });
        words.push(format!("rdr-to {}", addresses(rng, pool, ipv6, ports)));
    }
    words.join(" ")
}

/// Draws a rule with `af-to`.
pub(super) fn crossing(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = rng.bool();
    let protocols: &[&str] = if ipv6 {
        &["tcp", "udp", "sctp", "ipv6-icmp", "{ tcp, udp }"]
    } else {
        &["tcp", "udp", "sctp", "icmp", "{ tcp, udp }", "47"]
    };
    let protocol = (!one_in(rng, 3)).then(|| pick(rng, protocols));
    let head = Head { action: "pass", family: Some(ipv6), protocol };
    let mut words = vec!["pass in".to_owned()];
    if one_in(rng, 4) {
        words.push("quick".into());
    }
    words.extend(interface(rng, "on"));
    if one_in(rng, 3) {
        words.push(routing::across(rng, ipv6));
    }
    words.push(if ipv6 { "inet6" } else { "inet" }.into());
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &head));
    let target = if ipv6 { "inet" } else { "inet6" };
    let ports = one_in(rng, 3).then(|| format!("port 1:{}", rng.u16(2..60)));
    words.push(format!("af-to {target} from {}", addresses(rng, pool, !ipv6, ports)));
    if !ipv6 || one_in(rng, 2) {
        let port = one_in(rng, 3).then(|| format!("port {}", pool.rule_port(rng)));
        words.push(format!("to {}", addresses(rng, pool, !ipv6, port)));
    }
    if protocol.is_some_and(|protocol| protocol.contains("tcp")) && rng.bool() {
        words.push(format!("{} state", pick(rng, &["modulate", "synproxy", "synproxy"])));
    }
    words.join(" ")
}

/// Draws a pool with its ports and its type.
fn addresses(rng: &mut Rng, pool: &mut Pool, ipv6: bool, ports: Option<String>) -> String {
    let with = |address: String, kind: String| {
        let ports = ports.iter().map(String::as_str);
        let words = std::iter::once(address.as_str()).chain(ports).chain([kind.as_str()]);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let several = |rng: &mut Rng, most: usize| {
        let kinds = [
            "",
            "round-robin",
            "random",
            "source-hash 0x0123456789abcdef0123456789abcdef",
            "least-states",
        ];
        pick(rng, &kinds[..most]).to_owned()
    };
    let words = match rng.u8(..9) {
        0 => {
            let (net, kind) = (network(rng, pool, ipv6), several(rng, 4));
            with(net, kind)
        }
        1 => with(network(rng, pool, ipv6), "bitmask".into()),
        2 | 3 => {
            let list: Vec<String> =
                (0..rng.usize(2..5)).map(|_| address(rng, pool, ipv6) + &weight(rng)).collect();
            let kind = several(rng, 5);
            with(format!("{{ {} }}", list.join(", ")), kind)
        }
        4 if !pool.tables.is_empty() => {
            let (table, kind) = (pick(rng, &pool.tables), several(rng, 5));
            with(format!("<{table}>"), kind)
        }
        5 => with(pick(rng, &["(em0:0)", "(em1:0)"]).to_owned(), String::new()),
        6 => {
            let kind = several(rng, 5);
            with(pick(rng, &["(em0)", "(em1:network)", "(egress)"]).to_owned(), kind)
        }
        7 => {
            let kind = pick(rng, &["", "bitmask", "round-robin"]).to_owned();
            with(pool.range(rng, ipv6), kind)
        }
        _ => with(address(rng, pool, ipv6), String::new()),
    };
    if one_in(rng, 4) { words + " sticky-address" } else { words }
}

/// Draws the weight of an address in a pool, or none.
pub(super) fn weight(rng: &mut Rng) -> String {
    if one_in(rng, 4) { format!(" weight {}", rng.u8(1..5)) } else { String::new() }
}

pub(super) fn address(rng: &mut Rng, pool: &Pool, ipv6: bool) -> String {
    if ipv6 { pick(rng, &pool.ipv6).to_string() } else { pick(rng, &pool.ipv4).to_string() }
}

/// Draws a small network around an address that packets have.
pub(super) fn network(rng: &mut Rng, pool: &Pool, ipv6: bool) -> String {
    let prefix = if ipv6 { rng.u8(124..=127) } else { rng.u8(28..=31) };
    format!("{}/{prefix}", address(rng, pool, ipv6))
}

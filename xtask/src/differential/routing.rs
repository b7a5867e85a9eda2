//! Random rules with `route-to`, `reply-to`, `dup-to` and diversions.

use fastrand::Rng;

use super::pool::{Pool, one_in, pick};
use super::rules::{Head, hosts, interface};
use super::translation::weight;

/// Draws a rule with `route-to`, `reply-to` or `dup-to` that is valid in any anchor.
pub(super) fn rule(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = one_in(rng, 3);
    let prefers = one_in(rng, 4);
    let protocols: &[&str] =
        if ipv6 { &["tcp", "udp", "ipv6-icmp"] } else { &["tcp", "udp", "icmp", "47"] };
    let protocol = one_in(rng, 3).then(|| pick(rng, protocols));
    let head = Head { action: "pass", family: Some(ipv6), protocol };
    let kind = pick(rng, &["route-to", "route-to", "reply-to", "dup-to"]);
    let mut words = vec!["pass".to_owned()];
    if kind != "dup-to" || one_in(rng, 2) {
        words.push(pick(rng, &["in", "in", "out"]).into());
    }
    if one_in(rng, 5) {
        words.push("log (all)".into());
    }
    if one_in(rng, 4) {
        words.push("quick".into());
    }
    words.extend(interface(rng, "on"));
    let named = one_in(rng, 3);
    if named {
        let sticky = if one_in(rng, 3) { " sticky-address" } else { "" };
        words.push(format!("{kind} {}", named_ways(rng, ipv6, prefers, sticky)));
    }
    words.push(if ipv6 { "inet6" } else { "inet" }.into());
    words.extend(protocol.map(|protocol| format!("proto {protocol}")));
    words.extend(hosts(rng, pool, &head));
    if !named {
        words.push(format!("{kind} {}", next_hops(rng, ipv6, prefers)));
    }
    if one_in(rng, 6) {
        words.push("keep state (if-bound)".into());
    }
    words.join(" ")
}

/// Draws `route-to` or `reply-to` of a rule that translates packets of this family to the other
/// one. `reply-to` names hops of the family that the packets came in.
pub(super) fn across(rng: &mut Rng, ipv6: bool) -> String {
    if rng.bool() {
        format!("route-to {}", named_ways(rng, !ipv6, false, ""))
    } else {
        format!("reply-to {}", named_ways(rng, ipv6, false, ""))
    }
}

/// Draws a neighbour on either side. The host's own addresses are left out, because a router
/// ignores them as next hops.
fn hop(rng: &mut Rng, ipv6: bool) -> String {
    let link = rng.u8(1..=2);
    let host = rng.u8(64..80);
    if ipv6 { format!("2001:db8:{link}::{host:x}") } else { format!("10.0.{link}.{host}") }
}

/// Draws next hops with interfaces in FreeBSD's notation. The host lacks one of the interfaces.
fn named_ways(rng: &mut Rng, ipv6: bool, prefers: bool, sticky: &str) -> String {
    let way = |rng: &mut Rng| {
        let name = pick(rng, &["em0", "em1", "em0", "em1", "em9"]);
        let ipv6 = ipv6 || prefers && one_in(rng, 2);
        match rng.u8(..4) {
            0 => name.to_owned(),
            _ => format!("({name} {})", hop(rng, ipv6)),
        }
    };
    let sticky = if prefers { format!("{sticky} prefer-ipv6-nexthop") } else { sticky.to_owned() };
    match rng.u8(..3) {
        0 => {
            let ways: Vec<String> = (0..rng.usize(2..4)).map(|_| way(rng)).collect();
            format!("{{ {} }}{sticky}", ways.join(", "))
        }
        1 => {
            let ipv6 = ipv6 || prefers && one_in(rng, 2);
            let (name, hop) = (pick(rng, &["em0", "em1"]), hop(rng, ipv6));
            let kind = pick(rng, &["round-robin", "random", "bitmask"]);
            format!("({name} {hop}/{}) {kind}{sticky}", if ipv6 { 124 } else { 28 })
        }
        _ if prefers => format!("{}{sticky}", way(rng)),
        _ => way(rng),
    }
}

/// Draws neighbours on either side.
fn next_hops(rng: &mut Rng, ipv6: bool, prefers: bool) -> String {
    let hop = |rng: &mut Rng| {
        let ipv6 = ipv6 || prefers && one_in(rng, 2);
        hop(rng, ipv6)
    };
    if prefers {
        let hops: Vec<String> = (0..rng.usize(1..4)).map(|_| hop(rng)).collect();
        let kinds = ["", "round-robin", "random", "source-hash 0x0123456789abcdef0123456789abcdef"];
        let (list, kind) = (hops.join(", "), pick(rng, &kinds));
        return format!("{{ {list} }} {kind} prefer-ipv6-nexthop");
    }
    let kinds = [
        "",
        "round-robin",
        "random",
        "source-hash 0x0123456789abcdef0123456789abcdef",
        "least-states",
    ];
    match rng.u8(..4) {
        0 => {
            let prefix = if ipv6 { 124 } else { 28 };
            let kinds = ["", "round-robin", "random", "bitmask", kinds[3]];
            format!("{}/{prefix} {}", hop(rng), pick(rng, &kinds)).trim_end().to_owned()
        }
        1 => {
            let hops: Vec<String> = (0..rng.usize(2..4)).map(|_| hop(rng) + &weight(rng)).collect();
            format!("{{ {} }} {}", hops.join(", "), pick(rng, &kinds)).trim_end().to_owned()
        }
        _ => hop(rng),
    }
}

/// Draws `divert-packet`, or `divert-to` or `divert-reply` if the rule allows it.
pub(super) fn diversion(rng: &mut Rng, words: &[String], head: &Head) -> Option<String> {
    if head.action != "pass" || !one_in(rng, 10) {
        return None;
    }
    if one_in(rng, 3) {
        return Some(format!("divert-packet port {}", rng.u16(700..703)));
    }
    match words.get(1).map(String::as_str) {
        Some("in") => Some(match head.family {
            Some(true) => "divert-to ::1 port 8080".into(),
            Some(false) => "divert-to 127.0.0.1 port 8080".into(),
            None => return None,
        }),
        Some("out") => Some("divert-reply".into()),
        _ => None,
    }
}

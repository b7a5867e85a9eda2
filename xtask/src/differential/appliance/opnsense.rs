//! The forms of OPNsense.

use fastrand::Rng;

use super::{Firewall, GATEWAY, LAN, ONE_TO_ONE, PREFIXES, WAN, flags, settings, state};
use crate::differential::pool::{Pool, one_in, pick};

/// Refused lines of the traffic shaper, each with its error.
pub(super) const REFUSED: [(&str, &str); 4] = [
    (
        "pass in quick on em0 inet from {any} to {any} keep state dnpipe 1 label \"a\"",
        "dnpipe is not supported",
    ),
    (
        "pass in quick on em0 inet from {any} to {any} dnpipe (1, 2) label \"a\" # b",
        "dnpipe is not supported",
    ),
    (
        "pass out quick on em1 inet from {any} to {any} dnqueue 3 label \"a\"",
        "dnqueue is not supported",
    ),
    (
        "pass in log on em0 inet from {any} to {any} dnqueue (3, 4) label \"a\"",
        "dnqueue is not supported",
    ),
];

/// The rules before those of users.
const DEFAULTS: [&str; 12] = [
    "block in log inet from {any} to {any} label \"02f4\" # default deny",
    "block in log inet6 from {any} to {any} label \"02f4\"",
    "pass in log quick inet6 proto ipv6-icmp from {any} to {any} icmp6-type {1,2,135,136}",
    "pass out log quick inet6 proto ipv6-icmp from {(self)} to {fe80::/10,ff02::/16} \
     icmp6-type {129,133,134,135,136} keep state label \"2e5b\"",
    "block in log quick inet proto {tcp udp} from {any} port {0} to {any} label \"7b5b\"",
    "pass log quick inet proto carp from {any} to {224.0.0.18} no state label \"carp\"",
    "block in log quick proto tcp from {<lockout>} to {(self)} port {22} label \"6691\"",
    "block in log quick from {<virusprot>} to {any} label \"8e36\"",
    "block in log quick on em1 inet from {10.0.0.0/30,172.16.0.0/12,169.254.0.0/16} to {any} \
     label \"f5a1\"",
    "antispoof log for em1 ",
    "antispoof log for em0 ",
    "pass out log from {any} to {any} keep state allow-opts label \"d000\"",
];

pub(super) fn text(rng: &mut Rng, pool: &mut Pool) -> String {
    let firewall = Firewall::draw(rng);
    let mut lines = settings(rng);
    lines.extend(firewall.tables(rng, pool));
    lines.extend(firewall.aliases.iter().map(|name| format!("{name} = \"<{name}>\"")));
    // a port alias, and an empty one
    lines.push("web = \"{ 80 443 8000:8010 }\"\nnone = \"{ 0 <> 65535 }\"".into());
    lines.push("set skip on lo0".into());
    lines.extend(normalisation(rng));
    lines.push("nat-anchor \"early\"\nno nat proto carp all\nno rdr proto carp all".into());
    lines.extend(outbound(rng, &firewall));
    lines.push(format!(
        "no rdr on {LAN} proto tcp from {{any}} to {{({LAN})}} port {{22 80 443}} # lockout"
    ));
    lines.extend(captive_portal_forwards(rng));
    lines.extend(one_to_one(rng));
    for _ in 0..rng.usize(..4) {
        lines.extend(forward(rng, pool, &firewall));
    }
    lines.push("nat-anchor \"natrules/*\"\nrdr-anchor \"relayd/*\"\nanchor \"first\" quick".into());
    lines.extend(DEFAULTS.map(String::from));
    if firewall.gateways {
        lines.push(format!(
            "pass out log route-to ( {WAN} {GATEWAY} ) from {{(em1)}} to {{!(em1:network)}} \
             keep state \
             allow-opts label \"f000\""
        ));
    }
    for number in 0..rng.usize(1..12) {
        lines.push(rule(rng, pool, &firewall, number));
    }
    if one_in(rng, 3) {
        lines.push(format!(
            "pass in log quick on {LAN} proto tcp from {{any}} to {{(self)}} port {{8000}} \
             label \"c1\"\n\
             block in log quick on {LAN} from {{!<portal>}} to {{!<portal>}} label \"c2\""
        ));
    }
    lines.join("\n") + "\n"
}

fn normalisation(rng: &mut Rng) -> Vec<String> {
    let mut lines = Vec::new();
    if one_in(rng, 3) {
        lines.push(format!(
            "scrub {}on {{ em0 em1 }}  proto {{tcp udp}} from !10.0.1.0/24 to any port 80 no-df  \
             max-mss 1300  min-ttl 5  set-tos lowdelay ",
            pick(rng, &["", "in "])
        ));
    }
    if one_in(rng, 4) {
        lines.push("no scrub on { em0 }  proto icmp from any to any".into());
    }
    let options = pick(rng, &["", " no-df ", " random-id ", " no-df  random-id "]);
    if one_in(rng, 3) {
        lines.push(format!("scrub on {WAN} inet all {options} max-mss 1360"));
        lines.push(format!("scrub on {WAN} inet6 all {options} max-mss 1340"));
    }
    lines.push(format!("scrub in all {options}"));
    lines
}

/// Draws rules of outbound NAT: those of users, and the automatic ones.
fn outbound(rng: &mut Rng, firewall: &Firewall) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..rng.usize(..3) {
        let protocol = pick(rng, &["", " proto tcp", " proto {tcp udp}"]);
        let log = pick(rng, &["", " log"]);
        let from = pick(rng, &["10.0.1.0/24", "(em0:network)", "!10.0.2.0/24"]);
        let to = pick(rng, &["any", "192.168.30.0/24"]);
        let port =
            if protocol.is_empty() { "" } else { pick(rng, &["", " port 53", " port $web"]) };
        let tag = pick(rng, &["", "", " tag OUT", " tagged VOICE"]);
        let (target, kind) = match rng.u8(..4) {
            0 => (format!("${}", pick(rng, &firewall.aliases)), " round-robin sticky-address"),
            1 => (
                "10.0.2.64/28".into(),
                pick(rng, &[" source-hash 0x00112233445566778899aabbccddeeff", " bitmask"]),
            ),
            2 => ("(em1:0)".into(), " endpoint-independent"),
            _ => ("10.0.2.1".into(), ""),
        };
        let hosts = format!("inet{protocol} from {from} to {to}{port}");
        lines.push(match one_in(rng, 5) {
            true => format!("no nat{log} on {WAN} {hosts}{tag}"),
            false => format!(
                "nat{log} on {WAN} {hosts}{tag} -> {target} port 1024:65535{kind} # by hand"
            ),
        });
    }
    for network in ["(lo0:network)", "(em0:network)", "127.0.0.0/8"] {
        let nat = format!("nat on {WAN} inet from {network} to any");
        lines.push(format!("{nat} port 500 -> (em1:0) static-port # automatic"));
        lines.push(format!("{nat} -> (em1:0) port 1024:65535 # automatic"));
    }
    lines
}

fn captive_portal_forwards(rng: &mut Rng) -> Vec<String> {
    if !one_in(rng, 3) {
        return Vec::new();
    }
    vec![
        format!(
            "rdr on {LAN} inet proto tcp from {{!<portal>}} to {{!<portal>}} port {{80}} -> \
             127.0.0.1 port 9000 # portal"
        ),
        format!(
            "rdr on {LAN} inet6 proto tcp from {{!<portal>}} to {{(self)}} port {{443}} -> \
             ({LAN}) port 8000 # portal"
        ),
    ]
}

/// Draws 1:1 NAT with its reflection, and prefix translation.
fn one_to_one(rng: &mut Rng) -> Vec<String> {
    let mut lines = Vec::new();
    if one_in(rng, 3) {
        let (outside, inside) = ONE_TO_ONE;
        let (kind, log) = (pick(rng, &["binat", "nat"]), pick(rng, &["", " log"]));
        lines.push(format!("{kind}{log} on {WAN} from {inside} to any -> {outside} # 1:1"));
        if rng.bool() {
            lines.push(format!(
                "rdr on {LAN} from {{any}} to {{{outside}}} -> {{{inside}}} bitmask # 1:1"
            ));
            lines.push(format!(
                "nat on {LAN} inet from ({LAN}:network) to {{{inside}}} -> ({LAN}) \
                 port 1024:65535 # 1:1"
            ));
        }
    }
    if one_in(rng, 4) {
        let (inside, outside) = PREFIXES;
        let outside = pick(rng, &[outside, "(em1:0)/64"]);
        lines.push(format!("binat log on {WAN} inet6 from {inside} -> {outside} # prefixes"));
    }
    lines
}

/// Draws a port forward of OPNsense, which has hosts and ports in braces.
fn forward(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> Vec<String> {
    let port = pool.rule_port(rng).max(1);
    let target = match rng.bool() {
        true => format!("${}", pick(rng, &firewall.aliases)),
        false => pick(rng, &pool.ipv4).to_string(),
    };
    let kind = match target.starts_with('$') {
        true => pick(rng, &[" round-robin", " round-robin sticky-address", " random"]),
        false => "",
    };
    let pass = pick(rng, &["", " pass", " log", " pass log"]);
    let protocol = pick(rng, &["tcp", "{tcp udp}"]);
    let tag = pick(rng, &["", "", " tag FORWARD", " tagged VOICE"]);
    let to = pick(rng, &["{(em1)}", "{10.0.2.1}"]);
    let hosts = format!("inet proto {protocol} from {{any}} to {to} port {{{port}}}");
    let line = |interface: &str| {
        format!("rdr{pass} on {interface} {hosts}{tag} -> {target} port {port}{kind} # a forward")
    };
    let mut lines = vec![line(WAN)];
    if one_in(rng, 2) {
        lines.push(line(LAN));
        let host = pick(rng, &pool.ipv4);
        lines.push(format!(
            "nat on {LAN} inet proto tcp from ({LAN}:network) to {{{host}}} port {{{port}}} -> \
             ({LAN}) port \
             1024:65535 # reflection"
        ));
    }
    lines
}

/// Draws a rule of an OPNsense user. A rule outside of its schedule is a comment.
fn rule(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall, number: usize) -> String {
    let over = if one_in(rng, 12) { "#" } else { "" };
    let action = pick(rng, &["pass", "pass", "pass", "block", "block return"]);
    let direction = pick(rng, &[" in", " in", " out", ""]);
    let log = pick(rng, &["", " log"]);
    let quick = pick(rng, &[" quick", " quick", ""]);
    let interface = pick(rng, &[" on em0", " on em1", " on  ! em1", ""]);
    let route = match (action, direction, interface) {
        ("pass", " in", " on em0") => pick(
            rng,
            &[
                "",
                " route-to ( em1 10.0.2.254 )",
                " route-to { ( em1 10.0.2.254 ), ( em1 10.0.2.77 ) } round-robin sticky-address",
                " route-to { ( em1 10.0.2.254 ) , ( em1 10.0.2.254 ) , ( em1 10.0.2.77 ) } \
                 round-robin ",
                " route-to em1",
            ],
        ),
        ("pass", " in", " on em1") => pick(rng, &["", " reply-to ( em1 10.0.2.254 )"]),
        _ => "",
    };
    let (protocol, has_ports) = pick(
        rng,
        &[
            ("", false),
            (" proto tcp", true),
            (" proto {tcp udp}", true),
            (" proto icmp", false),
            (" proto \"a/n\"", false),
            (" proto gre", false),
        ],
    );
    let (from, to) = (host(rng, pool, firewall), host(rng, pool, firewall));
    let port = match has_ports && rng.bool() {
        true => match rng.u8(..4) {
            0 => " port $web".to_string(),
            1 => " port $none".to_string(),
            _ => format!(" port {{{}}}", pool.rule_port(rng).max(1)),
        },
        false => String::new(),
    };
    let options = options(rng, action, protocol);
    let schedule = if one_in(rng, 6) { " (office)" } else { "" };
    format!(
        "{over}{action}{direction}{log}{quick}{interface}{route} inet{protocol} from {from} to \
         {to}{port} {options} label \"{number:04x}\" # a rule{schedule}"
    )
}

/// Draws an address of a rule: an alias is a macro, all others are in braces.
fn host(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> String {
    match one_in(rng, 4) {
        true => format!("{}${}", pick(rng, &["", "!"]), pick(rng, &firewall.aliases)),
        false => format!("{{{}}}", firewall.host(rng, pool)),
    }
}

/// Draws the options after the hosts of a user's rule.
fn options(rng: &mut Rng, action: &str, protocol: &str) -> String {
    let mut words = Vec::new();
    if protocol == " proto icmp" {
        words.push(pick(rng, &["", "icmp-type {echoreq,unreach}", "icmp-type {\"skip\"}"]).into());
    }
    words.push(flags(rng, protocol).to_string());
    if action == "pass" {
        words.push(state(rng, protocol, ["( ", " ) "]));
        for (odds, word) in [
            (8, "max-pkt-rate 1000/10"),
            (8, "set prio (5, 3)"),
            (8, "prio 2"),
            (8, "tos af41"),
            (6, "tag VOICE"),
            (8, "tagged VOICE"),
            (6, "allow-opts"),
            (12, "divert-to 8000"),
        ] {
            if one_in(rng, odds) {
                words.push(word.to_string());
            }
        }
    }
    words.join(" ")
}

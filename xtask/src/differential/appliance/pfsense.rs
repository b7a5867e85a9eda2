//! The forms of pfSense.

use fastrand::Rng;

use super::{Firewall, GATEWAY, LAN, ONE_TO_ONE, PREFIXES, WAN, flags, ports, settings, state};
use crate::differential::pool::{Pool, one_in, pick};

const NETWORKS: [&str; 3] = ["10.0.1.0/24", "127.0.0.0/8", "192.168.20.0/24"];

/// Refused lines, each with its error: limiters, the captive portal's rules for frames, the traffic
/// shaper, queues that no line defines.
pub(super) const REFUSED: [(&str, &str); 9] = [
    (
        "pass in quick on em0 inet from any to any keep state dnpipe ( 1,2)  label \"a\"",
        "dnpipe is not supported",
    ),
    (
        "pass in quick on em0 inet from any to any keep state dnpipe ( 1)  label \"a\"",
        "dnpipe is not supported",
    ),
    ("match in on em0 inet from any to any dnqueue( 3,4)  label \"a\"", "dnqueue is not supported"),
    ("ether pass in on { em0 em1 } tag \"portal_rdr\"", "ether is not supported"),
    ("ether pass out on { em0 }", "ether is not supported"),
    ("ether anchor \"zone_2_auth/*\" on { em0 }", "ether is not supported"),
    (
        "ether pass in quick l3 from 10.0.1.5/32 tag portal_auth dnpipe 2001",
        "ether is not supported",
    ),
    ("altq on em1 hfsc bandwidth 20Mb queue { qInternet }", "altq is not supported"),
    ("pass in on em0 inet from any to any queue (qAck,qDefault)", "queue qAck is not defined"),
];

pub(super) fn text(rng: &mut Rng, pool: &mut Pool) -> String {
    let mut firewall = Firewall::draw(rng);
    let mut lines = settings(rng);
    lines.push("loopback = \"{ lo0 }\"".into());
    lines.push(format!("WAN = \"{{ {WAN} }}\"\nLAN = \"{{ {LAN} }}\""));
    lines.extend(firewall.tables(rng, pool));
    lines.push("table <remote_networks> { 192.168.30.0/24 2001:db8:30::/48 }".into());
    lines.extend(firewall.aliases.iter().map(|name| format!("{name} = \"<{name}>\"")));
    lines.push(format!("GWWAN = \" route-to ( {WAN} {GATEWAY} ) \"\nGWDOWN = \"  \""));
    // a gateway's weight is the number of its entries
    lines.push(format!(
        "GWGROUP = \"  route-to {{ ( {WAN} {GATEWAY} ) {}( {WAN} 10.0.2.77 )  }}  \
         round-robin {} \"",
        pick(rng, &["", "( em1 10.0.2.254 ) "]),
        pick(rng, &["", " sticky-address"])
    ));
    lines.extend(normalisation(rng));
    lines.extend(outbound(rng, pool, &firewall));
    lines.extend(one_to_one(rng, pool));
    for _ in 0..rng.usize(..4) {
        lines.extend(port_forward(rng, pool, &firewall));
    }
    lines.push("rdr-anchor \"miniupnpd\"\nanchor \"openvpn/*\"\nanchor \"ipsec/*\"".into());
    lines.extend(defaults(rng, &mut firewall));
    lines.push("anchor \"userrules/*\"".into());
    for number in 0..rng.usize(1..12) {
        lines.push(rule(rng, pool, &mut firewall, number));
    }
    lines.extend(last_rules(rng, &mut firewall));
    lines.push("anchor \"tftp-proxy/*\"\nanchor \"miniupnpd\"".into());
    lines.join("\n") + "\n"
}

fn normalisation(rng: &mut Rng) -> Vec<String> {
    let mut lines = Vec::new();
    if one_in(rng, 3) {
        let options = pick(rng, &["max-mss 1360 no-df fragment reassemble", "  no-df ", ""]);
        lines.push(format!("scrub from any to <remote_networks> {options}"));
        lines.push(format!("scrub from <remote_networks> to any {options}"));
    }
    for interface in ["$WAN", "$LAN"] {
        let more = pick(rng, &["", " no-df", " random-id", " no-df random-id max-mss 1400"]);
        for family in ["inet", "inet6"] {
            lines.push(match one_in(rng, 8) {
                true => {
                    format!("scrub on {interface} {family} max-mss 1400 fragment no reassemble")
                }
                false => format!("scrub on {interface} {family} all {more}   fragment reassemble"),
            });
        }
    }
    lines
}

/// Draws the NAT rules up to the port forwards.
fn outbound(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> Vec<String> {
    let networks = NETWORKS.join(" ");
    let nat = |rest: &str| format!("nat on $WAN {rest}");
    let mut lines = vec![
        "no nat proto carp\nno rdr proto carp".into(),
        "binat-anchor \"miniupnpd\"\nnat-anchor \"miniupnpd\"".into(),
        "nat-anchor \"natearly/*\"\nnat-anchor \"natrules/*\"".into(),
    ];
    for _ in 0..rng.usize(..3) {
        lines.push(hand_made(rng, pool, firewall));
    }
    lines.extend([
        format!("tonatsubnets = \"{{ {networks} ::1/128 }}\""),
        nat("inet from $tonatsubnets to any port 500 -> 10.0.2.1/32  static-port"),
        nat("inet6 from $tonatsubnets to any port 500 -> (em1)  static-port"),
        nat("inet from $tonatsubnets to any -> 10.0.2.1/32 port 1024:65535"),
        "rdr-anchor \"relayd/*\"\nrdr-anchor \"tftp-proxy/*\"".into(),
    ]);
    if one_in(rng, 4) {
        lines.push(format!(
            "rdr pass on {LAN} proto udp from any to any port tftp -> 127.0.0.1 port 6969"
        ));
    }
    lines
}

/// Draws a rule of outbound NAT of a user.
fn hand_made(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> String {
    let protocol = pick(rng, &["", " proto tcp", " proto udp", " proto { tcp udp }"]);
    let mut from = pick(rng, &NETWORKS).to_string();
    let mut to = pick(rng, &["any", "! 192.168.30.0/24"]).to_string();
    if !protocol.is_empty() && rng.bool() {
        from += &format!(" port {}", ports(rng, pool));
        to += &format!(" port {}", ports(rng, pool));
    }
    if one_in(rng, 5) {
        return format!("no nat on $WAN inet{protocol} from {from} to {to}");
    }
    let (target, kind) = match rng.u8(..4) {
        0 => (format!("<{}>", pick(rng, &firewall.aliases)), " round-robin sticky-address"),
        1 => (
            "10.0.2.64/28".into(),
            pick(rng, &[" source-hash 0x00112233445566778899aabbccddeeff", " random", " bitmask"]),
        ),
        2 => ("(em1)".into(), ""),
        _ => ("10.0.2.1/32".into(), ""),
    };
    let port = pick(rng, &[" port 1024:65535", " static-port", " port 4000:5000"]);
    let (before, behind) = if port.contains("static") { ("", port) } else { (port, "") };
    let independent = match one_in(rng, 4) && behind.is_empty() {
        true => " endpoint-independent",
        false => "",
    };
    format!(
        "nat on $WAN inet{protocol} from {from} to {to} -> {target}{before}{kind}{behind}\
         {independent}"
    )
}

/// Draws 1:1 NAT with its reflection, and prefix translation.
fn one_to_one(rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
    let mut lines = Vec::new();
    let (outside, inside) = ONE_TO_ONE;
    match rng.u8(..4) {
        0 => lines.push(format!(
            "binat on {WAN} inet from {}/32 to any -> 10.0.2.50/32",
            pick(rng, &pool.ipv4)
        )),
        1 => {
            lines.push(format!("no binat on {WAN} inet from 10.0.1.6 to any"));
            lines.push(format!("binat on {WAN} inet from {inside} to any -> {outside}"));
            lines
                .push(format!("rdr on {{ {LAN} }} inet from any to {outside} -> {inside} bitmask"));
            lines.push(format!("no nat on {LAN} from ({LAN}) to {inside}"));
            lines.push(format!("nat on {LAN} from 10.0.1.0/24 to {inside} -> 10.0.1.1"));
        }
        _ => {}
    }
    if one_in(rng, 4) {
        let (inside, outside) = PREFIXES;
        lines.push(format!("binat on $WAN inet6 from {inside} to any -> {outside}"));
        lines.push(format!("binat on $WAN inet6 from any to {outside} -> {inside}"));
    }
    lines
}

/// Draws the rules before those of users.
fn defaults(rng: &mut Rng, firewall: &mut Firewall) -> Vec<String> {
    let id = firewall.id();
    let lists = [("in", "inet"), ("out", "inet"), ("in", "inet6"), ("out", "inet6")];
    let denied = lists.map(|(direction, family)| {
        let label = format!("label \"default deny {family}\"");
        format!("block {direction} log {family} all ridentifier {id} {label}")
    });
    let carp = one_in(rng, 3).then_some([
        "block in log quick proto carp from (self) to any",
        "pass  quick proto carp no state",
    ]);
    let dhcp = one_in(rng, 3).then_some([
        "block out quick proto udp from any port = 67 to any port = 68 tagged \"dhcpin\"",
        "pass in  quick on $WAN proto udp from any port = 67 to any port = 68 tag \"dhcpin\" \
         no state",
    ]);
    let others = [
        "block in log quick from 169.254.0.0/16 to any",
        "pass  quick inet6 proto ipv6-icmp from any to any icmp6-type {1,2,135,136} keep state",
        "pass out  quick inet6 proto ipv6-icmp from fe80::/10 to ff02::/16 \
         icmp6-type {129,133,134,135,136} keep state",
        "block  quick inet proto { tcp, udp } from any port = 0 to any",
        "block log quick from <hosts_of_ids> to any",
        "block in log quick proto tcp from <lockout> to (self) port 22",
        "block in  quick from <virusprot> to any",
        "block in log quick on $WAN from <bogons> to any",
        "block in log quick on $WAN from 192.168.0.0/16 to any",
        "antispoof log for $LAN",
        "pass in  on $loopback inet all",
        "pass out  on $loopback inet6 all",
        "pass out  inet all keep state allow-opts",
        "pass in  quick on em0 proto tcp from any to (em0) port { 443 80 22 } keep state",
        "pass in  inet tagged PFREFLECT keep state",
    ];
    let others = carp.into_iter().flatten().chain(dhcp.into_iter().flatten()).chain(others);
    let others = others.map(|rule| format!("{rule} ridentifier {id} label \"default\""));
    let mut lines: Vec<_> = denied.into_iter().chain(others).collect();
    if firewall.gateways {
        lines.push(format!(
            "pass out  route-to ( {WAN} {GATEWAY} ) from 10.0.2.1 to !10.0.2.0/24 ridentifier {id} \
             keep state allow-opts label \"gw:group\" label \"out by the gateway\""
        ));
    }
    lines
}

/// Draws a port forward, with or without reflection to the LAN.
fn port_forward(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> Vec<String> {
    let protocol = pick(rng, &["tcp", "udp", "{ tcp udp }"]);
    let low = pool.rule_port(rng).clamp(1, 60000);
    let (outside, inside) = match rng.u8(..3) {
        0 => (format!("{low}:{}", low + 5), format!("{low}:*")),
        1 => (low.to_string(), "8080".to_string()),
        _ => (low.to_string(), low.to_string()),
    };
    let (target, kind) = match rng.bool() {
        true => (format!("<{}>", pick(rng, &firewall.aliases)), " round-robin sticky-address"),
        false => (pick(rng, &pool.ipv4).to_string(), ""),
    };
    let hosts = format!("inet proto {protocol} from any to 10.0.2.1 port {outside}");
    if one_in(rng, 8) {
        return vec![format!("no rdr on {WAN} {hosts}")];
    }
    let pass = pick(rng, &["", "", " pass", " log"]);
    let forward = format!("-> {target} port {inside}{kind}");
    let mut lines = vec![format!("rdr{pass} on {WAN} {hosts} tag PF {forward}")];
    match rng.u8(..4) {
        // reflection by NAT only
        0 => {
            let pass = if pass.trim() == "pass" { " pass" } else { "" };
            lines.push(format!("rdr{pass} on {{ {LAN} lo0 }} {hosts} {forward}"));
            lines.push(format!("no nat on {LAN} proto tcp from ({LAN}) to {target}"));
            lines.push(format!(
                "nat on {LAN} proto tcp from {{ 10.0.1.0/24 192.168.20.0/24 }} to {target} \
                 port {low} -> 10.0.1.1 port 1024:65535"
            ));
        }
        // reflection by a proxy of the firewall
        1 => lines.push(format!(
            "rdr on {LAN} proto tcp from any to 10.0.2.1 port {low} tag PFREFLECT -> 127.0.0.1 \
             port 19000"
        )),
        2 => {
            let host = pick(rng, &pool.ipv4);
            lines.push(format!("no nat on {LAN} inet proto tcp from ({LAN}) to 10.0.1.0/24"));
            lines.push(format!(
                "nat on {LAN} inet proto tcp from 10.0.1.0/24 to {host} port {low} -> ({LAN})"
            ));
        }
        _ => {}
    }
    lines
}

/// Draws a rule of a pfSense user.
fn rule(rng: &mut Rng, pool: &mut Pool, firewall: &mut Firewall, number: usize) -> String {
    let id = firewall.id();
    match rng.u8(..16) {
        0 => return format!("# no longer: schedule of rule {number}"),
        1 => return nat64(rng, pool, id),
        _ => {}
    }
    let action = pick(rng, &["pass", "pass", "pass", "block", "block return", "match"]);
    let interface = pick(rng, &[" on $WAN", " on $LAN", " on {  em0  em1  }", ""]);
    // only floating rules can lack a direction
    let direction = pick(rng, &["in", "in", "out", ""]);
    let log = pick(rng, &["", "log"]);
    let quick = if action == "match" || one_in(rng, 5) { "" } else { "quick" };
    let route = match (action, direction, interface) {
        ("pass", "in", " on $LAN") => pick(rng, &["", "$GWWAN", "$GWGROUP", "$GWDOWN"]),
        ("pass", "in", " on $WAN") => pick(rng, &["", "reply-to ( em1 10.0.2.254 )"]),
        _ => "",
    };
    let (protocol, has_ports) = pick(
        rng,
        &[
            ("", false),
            (" proto tcp ", true),
            (" proto udp ", true),
            (" proto sctp ", true),
            (" proto { tcp udp } ", true),
            (" proto icmp ", false),
        ],
    );
    let (from, to) = (firewall.host(rng, pool), firewall.host(rng, pool));
    let port =
        if has_ports && rng.bool() { format!(" port {}", ports(rng, pool)) } else { String::new() };
    let kind = match protocol.trim() {
        "proto icmp" => pick(rng, &["", "icmp-type echoreq ", "icmp-type { 3,8,11 } "]),
        _ => "",
    };
    let options = options(rng, action, protocol, id);
    let schedule = if one_in(rng, 6) { " label \"schedule: office\"" } else { "" };
    format!(
        "{action}  {direction} {log}  {quick} {interface}  {route} inet{protocol}  from {from} to \
         {to}{port} {kind}{options} label \"a user's: {number}\" label \"id: {id}\"{schedule}"
    )
}

/// Draws the options after the hosts of a user's rule.
fn options(rng: &mut Rng, action: &str, protocol: &str, id: u32) -> String {
    let mut words = Vec::new();
    for (odds, word) in [(6, " tag \"VOICE\" "), (8, " !  tagged \"VOICE\" "), (8, " tos 0x10 ")] {
        if one_in(rng, odds) {
            words.push(word.to_string());
        }
    }
    words.push(format!("ridentifier {id} "));
    if one_in(rng, 8) {
        words.push(" prio 2 ".into());
    }
    if !action.starts_with("block") && one_in(rng, 8) {
        words.push(" set prio 5 ".into());
    }
    if !action.starts_with("block") && one_in(rng, 6) {
        words.push(" allow-opts ".into());
    }
    words.push(flags(rng, protocol).into());
    if action == "pass" {
        words.push(state(rng, protocol, ["(", ") "]));
    }
    words.concat()
}

/// Draws a rule that translates to IPv4.
fn nat64(rng: &mut Rng, pool: &mut Pool, id: u32) -> String {
    let host = pick(rng, &pool.ipv4);
    if let Ok(mapped) = format!("64:ff9b::{host}").parse() {
        pool.ipv6.push(mapped);
    }
    let source = pick(rng, &["10.0.2.1/32", "(em1)"]);
    let protocol = pick(rng, &["", "proto tcp ", "proto { tcp udp } "]);
    format!(
        "pass  in  quick  on $LAN inet6 {protocol} from any to 64:ff9b::/96  af-to inet from \
         {source} ridentifier {id} keep state label \"id: {id}\""
    )
}

/// Draws the rules after those of users: captive portal, static routes, IPsec.
fn last_rules(rng: &mut Rng, firewall: &mut Firewall) -> Vec<String> {
    let id = firewall.id();
    let mut lines = Vec::new();
    if one_in(rng, 4) {
        lines.push(format!(
            "pass in quick on {{ {LAN} }} proto tcp from any to <portal> port 8002 keep \
             state(sloppy) ridentifier {id} label \"portal\"\n\
             block in quick on {LAN} from any to ! <portal> ! tagged portal_auth ridentifier {id} \
             label \"portal\""
        ));
    }
    if one_in(rng, 4) {
        lines.push(format!(
            "pass  quick on $LAN proto tcp from 10.0.1.0/24 to 192.168.30.0/24 flags any \
             ridentifier {id} keep state(sloppy) label \"static\"\n\
             pass  quick on $LAN from 192.168.30.0/24 to 10.0.1.0/24 ridentifier {id} keep \
             state(sloppy) label \"static\""
        ));
    }
    if one_in(rng, 4) {
        lines.push(format!(
            "pass out  route-to ( {WAN} {GATEWAY} ) proto udp from (self) to 203.0.113.9 \
             port = 500 ridentifier {id} keep state label \"gw:wan\" label \"IPsec: a tunnel\"\n\
             pass in  on $WAN reply-to ( {WAN} {GATEWAY} ) proto esp from 203.0.113.9 to (self) \
             ridentifier {id} ridentifier {id} keep state label \"IPsec: a tunnel\""
        ));
    }
    lines
}

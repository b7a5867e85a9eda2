//! Random rule sets in the forms that pfSense and OPNsense generate: aliases as tables and macros,
//! automatic and hand-made outbound NAT, port forwards with reflection, 1:1 NAT, gateways and
//! groups of them, floating and quick rules, tracker ids and labels, CARP, captive portal, lockout
//! tables. The words are ours; the forms are those of filter.inc of pfSense and of the classes
//! below Firewall/ of OPNsense.

use fastrand::Rng;

use super::pool::{Pool, one_in, pick};
use super::rules;

/// Which rule sets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawn {
    /// Anything that both dialects have
    Random,
    /// As pfSense generates them
    Pfsense,
    /// As OPNsense generates them
    Opnsense,
}

impl Drawn {
    /// Returns the function that draws a text.
    pub fn text(self) -> fn(&mut Rng, &mut Pool) -> String {
        match self {
            Drawn::Random => rules::text,
            Drawn::Pfsense => pfsense,
            Drawn::Opnsense => opnsense,
        }
    }
}

const WAN: &str = "em1";
const LAN: &str = "em0";
/// The neighbour on the WAN that routes.
const GATEWAY: &str = "10.0.2.254";
const NETWORKS: [&str; 3] = ["10.0.1.0/24", "127.0.0.0/8", "192.168.20.0/24"];

/// A firewall, in the form of either appliance.
struct Firewall {
    /// Names of tables of addresses.
    aliases: Vec<String>,
    gateways: bool,
    next_id: u32,
}

impl Firewall {
    fn draw(rng: &mut Rng) -> Self {
        let aliases = (0..rng.usize(1..4)).map(|number| format!("alias{number}")).collect();
        Firewall { aliases, gateways: rng.bool(), next_id: rng.u32(1..9000) * 1000 }
    }

    fn id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    fn tables(&self, rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
        let alias = |name: &String| {
            let entries: Vec<_> = (0..rng.usize(..5)).map(|_| pool.network(rng, false)).collect();
            format!("table <{name}> persist {{  {}  }}", entries.join("  "))
        };
        let mut lines: Vec<_> = self.aliases.iter().map(alias).collect();
        lines.extend(["lockout", "virusprot"].map(|name| format!("table <{name}> persist")));
        pool.files.push(("bogons".into(), "192.0.2.0/24\n203.0.113.0/24\n".into()));
        lines.push("table <bogons> persist file \"bogons\"".into());
        lines
    }

    /// Returns an address in a rule: of a host, an alias, an interface's own or network.
    fn host(&self, rng: &mut Rng, pool: &mut Pool) -> String {
        match rng.u8(..8) {
            0 | 1 => format!("<{}>", pick(rng, &self.aliases)),
            2 => pick(rng, &["(self)", "(em0)", "(em1)"]).into(),
            3 => pick(rng, &["(em0:network)", "! (em0:network)", "(em1:network)"]).into(),
            4 => pool.network(rng, false),
            5 => format!("!{}", pick(rng, &pool.ipv4)),
            6 => "any".into(),
            _ => pick(rng, &pool.ipv4).to_string(),
        }
    }
}

/// Returns what both appliances have of settings.
fn settings(rng: &mut Rng) -> Vec<String> {
    let mut lines = vec![
        format!("set optimization {}", pick(rng, &["normal", "aggressive", "conservative"])),
        "set timeout { adaptive.start 0, adaptive.end 0 }".to_string(),
        "set limit states 812000".to_string(),
        "set limit src-nodes 812000".to_string(),
        "set limit table-entries 1000000".to_string(),
        format!("set loginterface {LAN}"),
        "set skip on pfsync0".to_string(),
    ];
    for (odds, line) in [
        (3, "set keepcounters"),
        (3, "set state-policy if-bound"),
        (4, "set debug urgent"),
        (4, "set syncookies adaptive (start 60%, end 30%)"),
        (4, "set timeout { tcp.first 120, udp.multiple 60, icmp.first 20 }"),
    ] {
        if one_in(rng, odds) {
            lines.push(line.to_string());
        }
    }
    lines
}

fn ports(rng: &mut Rng, pool: &mut Pool) -> String {
    let (one, other) = (pool.rule_port(rng).max(1), pool.rule_port(rng).max(1));
    match rng.u8(..5) {
        0 => format!("{}:{}", one.min(other), one.max(other)),
        1 => format!("{{  {one}  {other} }}"),
        2 => format!("{} >< {}", one.min(other).min(65534), one.max(other).saturating_add(1)),
        3 => format!("= {one}"),
        _ => one.to_string(),
    }
}

/// Returns the rest of a pass rule behind its hosts. What only TCP has is for `proto tcp`.
fn pass_options(rng: &mut Rng, protocol: &str) -> String {
    let mut words = Vec::new();
    let state = match rng.u8(..6) {
        0 => "flags any keep state ( sloppy )",
        1 => "keep state ( max 100 tcp.established 3600 )",
        2 => {
            "flags S/SA keep state ( max-src-nodes 100 max-src-states 50 max-src-conn 20 \
             max-src-conn-rate 15 /5, overload <virusprot> flush global )"
        }
        3 => "synproxy state",
        4 => "no state",
        _ => "keep state",
    };
    words.push(state);
    for (odds, word) in
        [(6, "allow-opts"), (6, "tag VOICE"), (8, "! tagged VOICE"), (8, "tos 0x10")]
    {
        if one_in(rng, odds) {
            words.push(word);
        }
    }
    let text = words.join(" ");
    match protocol.trim() {
        "proto tcp" => text,
        _ => text.replace("flags any ", "").replace("flags S/SA ", "").replace("synproxy", "keep"),
    }
}

fn pfsense(rng: &mut Rng, pool: &mut Pool) -> String {
    let mut firewall = Firewall::draw(rng);
    let mut lines = settings(rng);
    lines.push("loopback = \"{ lo0 }\"".into());
    lines.push(format!("WAN = \"{{ {WAN} }}\"\nLAN = \"{{ {LAN} }}\""));
    lines.extend(firewall.tables(rng, pool));
    lines.extend(firewall.aliases.iter().map(|name| format!("{name} = \"<{name}>\"")));
    lines.push(format!("GWWAN = \" route-to ( {WAN} {GATEWAY} ) \""));
    lines.push(format!(
        "GWGROUP = \"  route-to {{ ( {WAN} {GATEWAY} ) , ( {WAN} 10.0.2.77 )  }}  \
         round-robin {} \"",
        pick(rng, &["", " sticky-address"])
    ));
    for interface in ["$WAN", "$LAN"] {
        let more = pick(rng, &["", " no-df", " random-id", " no-df random-id max-mss 1400"]);
        lines.push(format!("scrub on {interface} inet all {more}   fragment reassemble"));
        lines.push(format!("scrub on {interface} inet6 all {more}   fragment reassemble"));
    }
    lines.extend(pfsense_outbound());
    for _ in 0..rng.usize(..4) {
        lines.extend(port_forward(rng, pool, &firewall));
    }
    if one_in(rng, 3) {
        lines.push(format!(
            "binat on $WAN inet from {}/32 to any -> 10.0.2.50/32",
            pick(rng, &pool.ipv4)
        ));
    }
    lines.push("rdr-anchor \"miniupnpd\"\nanchor \"openvpn/*\"".into());
    let id = firewall.id();
    lines.extend(pfsense_defaults(id));
    if firewall.gateways {
        lines.push(format!(
            "pass out  route-to ( {WAN} {GATEWAY} ) from 10.0.2.1 to !10.0.2.0/24 ridentifier {id} \
             keep state allow-opts label \"out by the gateway\""
        ));
    }
    lines.push("anchor \"userrules/*\"".into());
    for _ in 0..rng.usize(1..12) {
        lines.push(pfsense_rule(rng, pool, &mut firewall));
    }
    if one_in(rng, 4) {
        lines.push(format!(
            "pass in quick on {{ {LAN} }} proto tcp from any to <portal> port 8002 \
             ridentifier 13001 \
             keep \
             state(sloppy)\n\
             block in quick on {LAN} from any to ! <portal> ! tagged portal_auth ridentifier 13003"
        ));
    }
    lines.push("anchor \"tftp-proxy/*\"".into());
    lines.join("\n") + "\n"
}

/// Returns the lists of NAT up to the port forwards.
fn pfsense_outbound() -> Vec<String> {
    let networks = NETWORKS.join(" ");
    let nat = |rest: &str| format!("nat on $WAN {rest}");
    vec![
        "no nat proto carp\nno rdr proto carp".into(),
        "nat-anchor \"natearly/*\"\nnat-anchor \"natrules/*\"".into(),
        format!("tonatsubnets = \"{{ {networks} ::1/128 }}\""),
        nat("inet from $tonatsubnets to any port 500 -> 10.0.2.1/32  static-port"),
        nat("inet6 from $tonatsubnets to any port 500 -> (em1)  static-port"),
        nat("inet from $tonatsubnets to any -> 10.0.2.1/32 port 1024:65535"),
        "rdr-anchor \"relayd/*\"\nrdr-anchor \"tftp-proxy/*\"".into(),
    ]
}

/// Returns the rules that stand before those of users.
fn pfsense_defaults(id: u32) -> Vec<String> {
    let lists = [("in", "inet"), ("out", "inet"), ("in", "inet6"), ("out", "inet6")];
    let denied = lists.map(|(direction, family)| {
        let label = format!("label \"default deny {family}\"");
        format!("block {direction} log {family} all ridentifier {id} {label}")
    });
    let others = [
        "pass  quick inet6 proto ipv6-icmp from any to any icmp6-type {1,2,135,136}",
        "block  quick inet proto { tcp, udp } from any port = 0 to any",
        "block in log quick proto tcp from <lockout> to (self) port 22",
        "block in  quick from <virusprot> to any",
        "block in log quick on $WAN from <bogons> to any",
        "antispoof log for $LAN",
        "pass in  on $loopback inet all",
        "pass out  inet all keep state allow-opts",
    ];
    let others = others.map(|rule| format!("{rule} ridentifier {id} label \"default\""));
    denied.into_iter().chain(others).collect()
}

/// Returns a port forward, with its reflection to the inside or without.
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
    let pass = pick(rng, &["", "", " pass", " log"]);
    let mut lines = vec![format!(
        "rdr{pass} on {WAN} inet proto {protocol} from any to 10.0.2.1 port {outside} tag PF -> \
         {target} \
         port {inside}{kind}"
    )];
    if one_in(rng, 2) {
        let host = pick(rng, &pool.ipv4);
        lines.push(format!("no nat on {LAN} inet proto tcp from ({LAN}) to 10.0.1.0/24"));
        lines.push(format!(
            "nat on {LAN} inet proto tcp from 10.0.1.0/24 to {host} port {low} -> 10.0.1.1 \
             port 1024:65535"
        ));
    }
    lines
}

/// Returns a rule that a user of pfSense made.
fn pfsense_rule(rng: &mut Rng, pool: &mut Pool, firewall: &mut Firewall) -> String {
    let id = firewall.id();
    let action = pick(rng, &["pass", "pass", "pass", "block", "block return", "match"]);
    let interface = pick(rng, &["$WAN", "$LAN", "{  em0  em1  }"]);
    let direction = pick(rng, &["in", "in", "out"]);
    let log = pick(rng, &["", "log"]);
    let quick = if action == "match" || one_in(rng, 5) { "" } else { "quick" };
    let route = match (action, direction) {
        ("pass", "in") if interface == "$LAN" => pick(rng, &["", "$GWWAN", "$GWGROUP"]),
        ("pass", "in") if interface == "$WAN" => pick(rng, &["", "reply-to ( em1 10.0.2.254 )"]),
        _ => "",
    };
    let (protocol, has_ports) = pick(
        rng,
        &[
            ("", false),
            ("proto tcp", true),
            ("proto udp", true),
            ("proto { tcp udp }", true),
            ("proto icmp", false),
        ],
    );
    let (from, to) = (firewall.host(rng, pool), firewall.host(rng, pool));
    let port =
        if has_ports && rng.bool() { format!(" port {}", ports(rng, pool)) } else { String::new() };
    let options = if action == "pass" { pass_options(rng, protocol) } else { String::new() };
    format!(
        "{action}  {direction} {log}  {quick}  on {interface}  {route} inet {protocol}  \
         from {from} to \
         {to}{port} ridentifier {id} {options} label \"USER_RULE: {id}\" label \"id:{id}\""
    )
}

/// The rules of OPNsense that stand before those of users.
const OPNSENSE_DEFAULTS: [&str; 11] = [
    "block in log inet from {any} to {any} label \"02f4\" # default deny",
    "block in log inet6 from {any} to {any} label \"02f4\"",
    "pass in log quick inet6 proto ipv6-icmp from {any} to {any} icmp6-type {1,2,135,136}",
    "pass out log quick inet6 proto ipv6-icmp from {(self)} to {fe80::/10,ff02::/16} \
     icmp6-type {129,133,134,135,136} keep state label \"2e5b\"",
    "block in log quick inet proto {tcp udp} from {any} port {0} to {any} label \"7b5b\"",
    "pass log quick inet proto carp from {any} to {224.0.0.18} no state label \"carp\"",
    "block in log quick proto tcp from {<lockout>} to {(self)} port {22} label \"6691\"",
    "block in log quick from {<virusprot>} to {any} label \"8e36\"",
    "antispoof log for em1 ",
    "antispoof log for em0 ",
    "pass out log from {any} to {any} keep state allow-opts label \"d000\"",
];

fn opnsense(rng: &mut Rng, pool: &mut Pool) -> String {
    let firewall = Firewall::draw(rng);
    let mut lines = settings(rng);
    lines.push("set skip on lo0".into());
    lines.extend(firewall.tables(rng, pool));
    lines.push("scrub on lo0 all fragment reassemble".into());
    for interface in [WAN, LAN] {
        lines.push(format!("scrub on {interface} all fragment reassemble"));
    }
    lines.push("no nat proto carp all\nno rdr proto carp all".into());
    for _ in 0..rng.usize(..4) {
        lines.extend(opnsense_forward(rng, pool, &firewall));
    }
    if one_in(rng, 3) {
        lines.push(format!("binat on {WAN} inet from 10.0.1.0/28 to {{any}} -> 10.0.2.16/28"));
    }
    for network in ["(lo0:network)", "(em0:network)", "127.0.0.0/8"] {
        let nat = format!("nat on {WAN} inet from {network} to any");
        lines.push(format!("{nat} port {{500}} -> (em1:0) static-port # automatic"));
        lines.push(format!("{nat} -> (em1:0) port 1024:65535 # automatic"));
    }
    lines.push("nat-anchor \"natrules/*\"\nrdr-anchor \"relayd/*\"".into());
    lines.extend(OPNSENSE_DEFAULTS.map(String::from));
    if firewall.gateways {
        lines.push(format!(
            "pass out log route-to ( {WAN} {GATEWAY} ) from {{(em1)}} to {{!(em1:network)}} \
             keep state \
             allow-opts label \"f000\""
        ));
    }
    for number in 0..rng.usize(1..12) {
        lines.push(opnsense_rule(rng, pool, &firewall, number));
    }
    if one_in(rng, 3) {
        lines.push(format!("anchor \"captiveportal_zone_0\" in on {{ {LAN} }}"));
    }
    lines.join("\n") + "\n"
}

/// Returns a port forward of OPNsense, whose hosts and ports stand in braces.
fn opnsense_forward(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall) -> Vec<String> {
    let port = pool.rule_port(rng).max(1);
    let target = match rng.bool() {
        true => format!("<{}>", pick(rng, &firewall.aliases)),
        false => pick(rng, &pool.ipv4).to_string(),
    };
    let kind = if target.starts_with('<') { " round-robin" } else { "" };
    let pass = pick(rng, &["", " pass", " log"]);
    let mut lines = vec![format!(
        "rdr{pass} on {WAN} inet proto tcp from {{any}} to {{(em1)}} port {{{port}}} -> {target} \
         port \
         {port}{kind} # a forward"
    )];
    if one_in(rng, 2) {
        let host = pick(rng, &pool.ipv4);
        lines.push(format!(
            "nat on {LAN} inet proto tcp from ({LAN}:network) to {{{host}}} port {{{port}}} -> \
             ({LAN}) port \
             1024:65535 # reflection"
        ));
        lines.push(format!(
            "no rdr on {LAN} inet proto tcp from {{any}} to {{(self)}} port {{22 80 443}}"
        ));
    }
    lines
}

/// Returns a rule that a user of OPNsense made.
fn opnsense_rule(rng: &mut Rng, pool: &mut Pool, firewall: &Firewall, number: usize) -> String {
    let action = pick(rng, &["pass", "pass", "pass", "block", "block return"]);
    let direction = pick(rng, &["in", "in", "out"]);
    let log = pick(rng, &["", " log"]);
    let quick = pick(rng, &[" quick", " quick", ""]);
    let interface = pick(rng, &["em0", "em1", "{em0 em1}"]);
    let route = match (action, direction, interface) {
        ("pass", "in", "em0") => pick(
            rng,
            &[
                "",
                " route-to ( em1 10.0.2.254 )",
                " route-to { ( em1 10.0.2.254 ), ( em1 10.0.2.77 ) } round-robin sticky-address",
            ],
        ),
        ("pass", "in", "em1") => pick(rng, &["", " reply-to ( em1 10.0.2.254 )"]),
        _ => "",
    };
    let (protocol, has_ports) = pick(
        rng,
        &[("", false), (" proto tcp", true), (" proto {tcp udp}", true), (" proto icmp", false)],
    );
    let (from, to) = (firewall.host(rng, pool), firewall.host(rng, pool));
    let port = match has_ports && rng.bool() {
        true => format!(" port {{{}}}", pool.rule_port(rng).max(1)),
        false => String::new(),
    };
    let options = if action == "pass" { pass_options(rng, protocol) } else { String::new() };
    format!(
        "{action} {direction}{log}{quick} on {interface}{route} inet{protocol} from {{{from}}} to \
         {{{to}}}{port} {options} label \"{number:04x}\" # a rule"
    )
}

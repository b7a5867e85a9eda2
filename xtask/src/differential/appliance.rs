//! Random rule sets in the forms that pfSense and OPNsense generate. The texts are ours. The forms
//! are those of filter.inc and captiveportal.inc of pfSense and of the classes below Firewall/ of
//! OPNsense:
//!
//! - Aliases as tables and macros, floating and quick rules, tracker ids and labels, schedules.
//! - Outbound NAT, port forwards with reflection, 1:1 NAT, prefix translation.
//! - Gateways and gateway groups, state options, CARP, captive portal, lockout tables.

mod opnsense;
mod pfsense;

use fastrand::Rng;

use super::pool::{Pool, one_in, pick};
use super::rules;

/// The form of drawn rule sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Drawn {
    /// Random statements of both dialects
    Random,
    /// Rule sets in the form that pfSense generates
    Pfsense,
    /// Rule sets in the form that OPNsense generates
    Opnsense,
}

impl Drawn {
    /// Returns the function that draws a text.
    pub fn text(self) -> fn(&mut Rng, &mut Pool) -> String {
        match self {
            Drawn::Random => rules::text,
            Drawn::Pfsense => pfsense::text,
            Drawn::Opnsense => opnsense::text,
        }
    }

    /// Draws a line of the appliance that is refused, and its first error.
    /// docs/reference/freebsd.md lists these lines.
    pub fn refused_line(self, rng: &mut Rng) -> Option<(&'static str, &'static str)> {
        match self {
            Drawn::Random => None,
            Drawn::Pfsense => Some(pick(rng, &pfsense::REFUSED)),
            Drawn::Opnsense => Some(pick(rng, &opnsense::REFUSED)),
        }
    }
}

const WAN: &str = "em1";
const LAN: &str = "em0";
/// The router on the WAN.
const GATEWAY: &str = "10.0.2.254";
/// An external network, and the internal network of the same size that it is mapped to.
const ONE_TO_ONE: (&str, &str) = ("10.0.2.16/28", "10.0.1.0/28");
/// An internal prefix and its external prefix.
const PREFIXES: (&str, &str) = ("fd00:1::/64", "2001:db8:7::/64");

/// The parts of a firewall that both appliances have.
struct Firewall {
    /// Names of address tables.
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
            let counters = pick(rng, &["", " counters"]);
            format!("table <{name}>{counters} persist {{  {}  }}", entries.join("  "))
        };
        let mut lines: Vec<_> = self.aliases.iter().map(alias).collect();
        let empty = ["lockout", "virusprot", "hosts_of_ids", "portal"];
        lines.extend(empty.map(|name| format!("table <{name}> persist")));
        pool.files.push(("bogons".into(), "192.0.2.0/24\n203.0.113.0/24\n".into()));
        lines.push("table <bogons> persist file \"bogons\"".into());
        lines
    }

    /// Draws an address of a rule: a host, an alias, or an interface's address or network.
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

/// Draws the settings that both appliances write.
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
        (4, "set hostid 0x5c1f00d5"),
        (4, "set debug urgent"),
        (4, "set limit frags 4000"),
        (4, "set timeout src.track 30"),
        (4, "set syncookies adaptive (start 60%, end 30%)"),
        (8, "set syncookies never "),
        (4, "set timeout { udp.first 300, udp.single 150, udp.multiple 900 }"),
        (4, "set timeout {  tcp.first 120  tcp.closing 60  sctp.first 30  icmp.first 20  }"),
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

/// Draws the state part of a pass rule, with its options between `open` and `close`.
fn state(rng: &mut Rng, protocol: &str, [open, close]: [&str; 2]) -> String {
    let kind = match (rng.u8(..8), protocol.trim()) {
        (0, _) => return "no state".into(),
        (1, "proto tcp") => "synproxy state",
        (2, "proto tcp") => "modulate state",
        _ => "keep state",
    };
    let mut options = Vec::new();
    match rng.u8(..8) {
        0 => options.push("no-sync"),
        1 => options.push("if-bound"),
        2 => options.push("floating"),
        3 => options.extend(["no-sync", "if-bound"]),
        _ => {}
    }
    if kind == "keep state" && one_in(rng, 4) {
        options.push("sloppy");
    }
    for (odds, option) in [
        (6, "max 100"),
        (6, "max-src-nodes 100"),
        (6, "max-src-states 50"),
        (8, "adaptive.start 60, adaptive.end 120"),
    ] {
        if one_in(rng, odds) {
            options.push(option);
        }
    }
    if protocol.contains("tcp") {
        for (odds, option) in [
            (6, "max-src-conn 20"),
            (6, "max-src-conn-rate 15 / 5, overload <virusprot> flush global"),
            (6, "tcp.established 3600"),
        ] {
            if one_in(rng, odds) {
                options.push(option);
            }
        }
    }
    if protocol.contains("udp") && one_in(rng, 4) {
        options.push("udp.multiple 90");
    }
    match options.is_empty() {
        true => kind.into(),
        false => format!("{kind} {open}{}{close}", options.join(" ")),
    }
}

/// Draws the flags of a TCP rule; an empty text means the default.
fn flags<'a>(rng: &mut Rng, protocol: &str) -> &'a str {
    match protocol.trim() {
        "proto tcp" => pick(rng, &["", "flags any ", "flags S/SA ", "flags S/SAFR "]),
        _ => "",
    }
}

//! Checks of the kernel's settings that change the fate of packets beside the filter: forwarding,
//! reverse path filtering, bridges and conntrack.

use std::collections::BTreeSet;

use skipstep_kernel::{routing, sysctl};
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{Family, Ruleset};

use super::finding::Finding;
use super::{Inputs, netfilter};
use crate::shell;

/// Families with their settings of forwarding.
const FAMILIES: [(Family, &str); 2] =
    [(Family::Inet, "net/ipv4/ip_forward"), (Family::Inet6, "net/ipv6/conf/all/forwarding")];

/// Settings that send bridged packets through iptables.
const BRIDGE_CALLS: [&str; 2] =
    ["net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"];

/// Programs whose rules need [`BRIDGE_CALLS`].
const NEED_BRIDGE_CALLS: [&str; 3] = ["Docker", "kube-proxy", "flannel"];

/// Settings, and the properties of the rules and the host that they depend on.
#[derive(Default)]
pub struct Facts {
    /// True if the host forwards IPv4, IPv6.
    forwards: [bool; 2],
    /// True if rules translate sources of IPv4, IPv6.
    translates: [bool; 2],
    /// Settings that keep packets out of a family to which `af-to` translates.
    closed: Vec<&'static str>,
    /// The reason why packets may arrive on another interface than that of the route to their
    /// source; `None` if there is none.
    asymmetric: Option<&'static str>,
    /// Interfaces with strict reverse path filtering.
    strict: Vec<String>,
    /// True if an interface is the port of a bridge.
    has_ports: bool,
    /// Those of [`BRIDGE_CALLS`] that are on.
    bridge_calls: Vec<&'static str>,
    /// True if another program needs them.
    calls_are_needed: bool,
    /// Entries of conntrack, and their limit; `None` without conntrack.
    conntrack: Option<(u64, u64)>,
}

/// Reads the facts.
pub fn collect(inputs: &Inputs, tables: &netfilter::Facts) -> Facts {
    let host = &inputs.host;
    let is_on = |setting: &str| sysctl::read(setting).as_deref() == Some("1");
    let count = |name: &str| sysctl::read(&format!("net/netfilter/{name}"))?.parse().ok();
    let ruleset = inputs.open().map(|(_, loaded, _)| &loaded.ruleset);
    Facts {
        forwards: FAMILIES.map(|(_, setting)| is_on(setting)),
        translates: FAMILIES
            .map(|(family, _)| ruleset.is_some_and(|ruleset| translates(ruleset, family))),
        closed: ruleset.map(routing::closed_across).unwrap_or_default(),
        asymmetric: asymmetric(host, ruleset),
        strict: host
            .interfaces
            .iter()
            .filter(|it| is_strict(it))
            .map(|it| it.name.clone())
            .collect(),
        has_ports: host.interfaces.iter().any(|interface| interface.port),
        bridge_calls: BRIDGE_CALLS.into_iter().filter(|setting| is_on(setting)).collect(),
        calls_are_needed: tables.has_owner(&NEED_BRIDGE_CALLS),
        conntrack: count("nf_conntrack_count").zip(count("nf_conntrack_max")),
    }
}

/// True if rules have `nat-to` for a family.
fn translates(ruleset: &Ruleset, family: Family) -> bool {
    let mut rules = ruleset.all_rules();
    rules.any(|(_, rule)| rule.nat.is_some() && rule.family.is_none_or(|it| it == family))
}

fn asymmetric(host: &Host, ruleset: Option<&Ruleset>) -> Option<&'static str> {
    let routes = |ruleset: &Ruleset| ruleset.all_rules().any(|(_, rule)| rule.route.is_some());
    if ruleset.is_some_and(routes) {
        return Some("rules have route-to or reply-to");
    }
    let defaults = host.routes.iter().filter(|route| {
        let net = route.destination;
        net.prefix_len() == 0 && net.addr().is_ipv4() && route.table == 0
    });
    let interfaces: BTreeSet<&str> = defaults.map(|route| route.interface.as_str()).collect();
    (interfaces.len() > 1).then_some("default routes lead over several interfaces")
}

/// True if the kernel drops packets that arrive on another interface than that of the route to
/// their source. The larger of the interface's setting and that of all interfaces counts.
fn is_strict(interface: &Interface) -> bool {
    let value = |name: &str| -> Option<u8> {
        sysctl::read(&format!("net/ipv4/conf/{name}/rp_filter"))?.parse().ok()
    };
    !interface.loopback && value("all").max(value(&interface.name)) == Some(1)
}

/// Judges the facts.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    [facts.forwarding(), facts.reverse_path(), facts.bridges(), facts.connections()].concat()
}

/// Returns the command that changes a setting. An interface's name may have a dot, which is no
/// separator then.
fn set(setting: &str, value: impl std::fmt::Display) -> String {
    let is_plain = !setting.contains('.');
    let name = if is_plain { setting.replace('/', ".") } else { setting.to_owned() };
    format!("sysctl -w {}={value}", shell::quoted(&name))
}

impl Facts {
    fn forwarding(&self) -> Vec<Finding> {
        const SUBJECT: &str = "forwarding";
        let [inet, inet6] = self.forwards.map(|on| if on { "on" } else { "off" });
        let mut findings = vec![Finding::ok(SUBJECT, format!("IPv4 {inet}, IPv6 {inet6}"))];
        for (index, (family, setting)) in FAMILIES.into_iter().enumerate() {
            let name = if family == Family::Inet { "IPv4" } else { "IPv6" };
            if self.translates[index] && !self.forwards[index] {
                let text = format!("rules have nat-to, and the host does not forward {name}");
                findings.push(Finding::warn(SUBJECT, text).mended_by(set(setting, 1)));
            }
        }
        findings.extend(self.closed.iter().map(|setting| {
            let text = format!("rules have af-to, and {setting} is 0: their packets are dropped");
            Finding::fail(SUBJECT, text).mended_by(format!("sysctl -w {setting}=1"))
        }));
        findings
    }

    fn reverse_path(&self) -> Vec<Finding> {
        const SUBJECT: &str = "rp_filter";
        let Some(why) = self.asymmetric else {
            return Vec::new();
        };
        let strict = |name: &String| {
            let text = format!(
                "strict on {name}, and {why}: the kernel drops packets that arrive there against \
                 its routes"
            );
            Finding::warn(SUBJECT, text)
                .mended_by(set(&format!("net/ipv4/conf/{name}/rp_filter"), 2))
        };
        self.strict.iter().map(strict).collect()
    }

    fn bridges(&self) -> Vec<Finding> {
        if !self.has_ports || self.bridge_calls.is_empty() {
            return Vec::new();
        }
        if self.calls_are_needed {
            let text = "bridged packets pass iptables, too, which other programs need";
            return vec![Finding::ok("bridge", text)];
        }
        let text = "bridged packets pass iptables, too: its rules may drop them";
        let commands: Vec<String> = self.bridge_calls.iter().map(|call| set(call, 0)).collect();
        vec![Finding::warn("bridge", text).mended_by(commands.join(" && "))]
    }

    fn connections(&self) -> Vec<Finding> {
        const SUBJECT: &str = "conntrack";
        let Some((used, limit)) = self.conntrack.filter(|(used, _)| *used > 0) else {
            return Vec::new();
        };
        let text = format!("{used} of {limit} entries in use");
        let more = set("net/netfilter/nf_conntrack_max", limit * 2);
        vec![match used * 100 / limit.max(1) {
            ..80 => Finding::ok(SUBJECT, text),
            80..100 => Finding::warn(SUBJECT, text).mended_by(more),
            _ => Finding::fail(SUBJECT, format!("{text}: the kernel drops new connections"))
                .mended_by(more),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    /// Returns level and command of each finding.
    fn commands(facts: &Facts) -> Vec<(Level, String)> {
        let findings = judge(facts).into_iter();
        findings.map(|it| (it.level, it.command.unwrap_or_default())).collect()
    }

    #[test]
    fn a_router_with_loose_paths_is_well() {
        let facts = Facts { forwards: [true; 2], translates: [true; 2], ..Facts::default() };
        assert_eq!(commands(&facts), [(Level::Ok, String::new())]);
        assert_eq!(judge(&Facts::default())[0].text, "IPv4 off, IPv6 off");
    }

    #[test]
    fn translation_needs_forwarding() {
        let facts = Facts {
            translates: [true; 2],
            closed: vec!["net.ipv4.ip_forward"],
            ..Facts::default()
        };
        let expected = [
            (Level::Ok, ""),
            (Level::Warn, "sysctl -w net.ipv4.ip_forward=1"),
            (Level::Warn, "sysctl -w net.ipv6.conf.all.forwarding=1"),
            (Level::Fail, "sysctl -w net.ipv4.ip_forward=1"),
        ];
        assert_eq!(commands(&facts), expected.map(|(level, text)| (level, text.to_owned())));
    }

    #[test]
    fn strict_paths_matter_where_routes_are_not_symmetric() {
        let strict = vec!["wan0".to_owned(), "eth0.5".to_owned()];
        let facts = Facts { strict, ..Facts::default() };
        assert_eq!(judge(&facts).len(), 1);
        let facts = Facts { asymmetric: Some("rules have route-to"), ..facts };
        let commands = commands(&facts);
        assert_eq!(commands[1].1, "sysctl -w net.ipv4.conf.wan0.rp_filter=2");
        assert_eq!(commands[2].1, "sysctl -w net/ipv4/conf/eth0.5/rp_filter=2");
    }

    #[test]
    fn rules_and_routes_show_asymmetric_paths() {
        let host = skipstep_scenario::host::standard();
        let load = |text: &str| {
            let context = skipstep_pfconf::Context::new(&host);
            skipstep_pfconf::load(text, &context).unwrap().ruleset
        };
        assert_eq!(asymmetric(&host, Some(&load("pass"))), None);
        let routed = load("pass in on em0 inet route-to 10.0.2.9");
        assert!(asymmetric(&host, Some(&routed)).unwrap().contains("route-to"));
        let mut two = host.clone();
        let other = two.routes.iter().find(|route| route.interface == "em0").unwrap().clone();
        let destination = "0.0.0.0/0".parse().unwrap();
        two.routes.push(skipstep_ruleset::interface::Route { destination, ..other });
        assert!(asymmetric(&two, None).unwrap().contains("several interfaces"));
        let nat = load("pass out on em1 inet nat-to 10.0.2.1");
        assert!(translates(&nat, Family::Inet) && !translates(&nat, Family::Inet6));
    }

    #[test]
    fn bridged_packets_in_iptables_are_a_warning_unless_needed() {
        let facts = Facts { bridge_calls: BRIDGE_CALLS.to_vec(), ..Facts::default() };
        assert_eq!(commands(&facts).len(), 1, "there is no bridge");
        let facts = Facts { has_ports: true, ..facts };
        let command = "sysctl -w net.bridge.bridge-nf-call-iptables=0 && \
                       sysctl -w net.bridge.bridge-nf-call-ip6tables=0";
        assert_eq!(commands(&facts)[1], (Level::Warn, command.to_owned()));
        let facts = Facts { calls_are_needed: true, ..facts };
        assert_eq!(commands(&facts)[1].0, Level::Ok);
    }

    #[test]
    fn conntrack_fills_up() {
        for (used, level) in [(79, Level::Ok), (80, Level::Warn), (100, Level::Fail)] {
            let facts = Facts { conntrack: Some((used, 100)), ..Facts::default() };
            assert_eq!(commands(&facts)[1].0, level);
        }
        let unused = Facts { conntrack: Some((0, 100)), ..Facts::default() };
        assert_eq!(commands(&unused).len(), 1);
    }
}

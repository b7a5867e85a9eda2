//! Checks of the interfaces: the programs on their hooks and the order of these programs, the
//! reason for the hook of the filter, and the offloads that change packets.

use anyhow::Result;
use skipstep_kernel::hooks::{HookedProgram, REFUSES_SETTINGS, has_xdp_program};
use skipstep_kernel::report::Hook;
use skipstep_kernel::{offload, queue, sysctl};
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::Interface;

use super::finding::Finding;
use super::{Inputs, Words};
use crate::shell;

/// Largest MTU with which most drivers run XDP: a frame and its room have to fit into a page.
const MOST_MTU: u32 = 3498;

/// An interface with its hooks.
#[derive(Clone)]
pub struct Facts {
    name: String,
    mtu: u32,
    /// Driver of the device; `None` if it does not say.
    driver: Option<String>,
    /// True if `set skip on` names the interface.
    skip: bool,
    /// Hook of the filter.
    hook: Hook,
    /// The reason why the filter could not be attached at the last attempt.
    refusal: Option<String>,
    /// Programs on tcx ingress and egress.
    programs: [Vec<HookedProgram>; 2],
    /// True if an XDP program is attached, the filter's or another one.
    has_xdp: bool,
    /// True if the interface has a clsact or ingress qdisc.
    has_clsact: bool,
    /// True if the device joins received packets (`ethtool -k`: large-receive-offload).
    joins_packets: bool,
    /// True if the device takes VLAN tags off received frames (rx-vlan-offload).
    strips_tags: bool,
    /// True if the host forwards packets.
    forwards: bool,
}

/// Reads the facts of all interfaces, or of that of `-i`. There are none while the filter is
/// disabled, or if this user may not read it.
///
/// # Errors
/// Fails if a map or a record of the filter cannot be read, or if netlink refuses a request.
pub fn collect(inputs: &Inputs) -> Result<Vec<Facts>> {
    let Some((instance, ..)) = inputs.open().filter(|(.., status)| status.running) else {
        return Ok(Vec::new());
    };
    let (known, refusals) = (instance.interfaces()?, instance.unattached()?);
    let clsact = queue::with_clsact()?;
    let forwards = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"]
        .iter()
        .any(|setting| sysctl::read(setting).as_deref() == Some("1"));
    let facts = |interface: &Interface| {
        let Interface { name, index, mtu, .. } = interface.clone();
        let view = known.iter().find(|view| view.index == Some(index));
        Facts {
            driver: offload::driver(&name),
            skip: view.is_some_and(|view| view.skip),
            hook: view.map_or(Hook::None, |view| view.hook.clone()),
            refusal: refusals.get(&name).cloned(),
            // an interface that has vanished meanwhile has no programs
            programs: instance.hooked(index).unwrap_or_default(),
            has_xdp: has_xdp_program(index),
            has_clsact: clsact.contains(&index),
            joins_packets: offload::joins_packets(&name),
            strips_tags: !interface.veth && offload::strips_vlan_tags(&name),
            forwards,
            name,
            mtu,
        }
    };
    let wanted = inputs.args.interface.as_deref();
    let interfaces = inputs.host.interfaces.iter();
    Ok(interfaces.filter(|it| wanted.is_none_or(|name| name == it.name)).map(facts).collect())
}

/// Judges the facts.
pub fn judge(interfaces: &[Facts], words: &Words) -> Vec<Finding> {
    interfaces.iter().flat_map(|facts| facts.findings(words)).collect()
}

impl Facts {
    fn findings(&self, words: &Words) -> Vec<Finding> {
        let checks = [
            self.attachment(words),
            self.xdp(words),
            self.foreign_xdp(),
            self.order(Direction::In),
            self.order(Direction::Out),
            self.lro(),
        ];
        let faults: Vec<Finding> = checks.into_iter().flatten().collect();
        match self.hook {
            Hook::Unattached { .. } => faults,
            _ => [vec![Finding::ok(&*self.name, self.description())], faults].concat(),
        }
    }

    /// Returns the name as it is written in commands.
    fn word(&self) -> String {
        shell::quoted(&self.name)
    }

    /// Reports an interface without the filter's programs.
    fn attachment(&self, words: &Words) -> Option<Finding> {
        let Hook::Unattached { guarded } = self.hook else { return None };
        let fate = if guarded { "the guard drops its packets" } else { "its packets pass" };
        let why = self.refusal.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let finding = Finding::fail(&*self.name, format!("not attached{why}: {fate}"));
        Some(finding.mended_by(format!("{} -e", words.pfctl)))
    }

    /// Reports an interface that `set xdp on` names and that runs no XDP program of the filter.
    fn xdp(&self, words: &Words) -> Option<Finding> {
        let Hook::Tc { without_xdp: Some(why) } = &self.hook else { return None };
        let Facts { name, mtu, .. } = self;
        let driver = self.driver.as_deref().unwrap_or("unknown");
        let text = format!("no XDP (driver {driver}, MTU {mtu}): {why}");
        let finding = Finding::warn(&**name, text);
        let commands = self.commands_for_xdp(why);
        if commands.is_empty() {
            return Some(finding); // no setting gives a driver native XDP
        }
        Some(finding.mended_by(format!("{} && {} -e", commands.join(" && "), words.pfctl)))
    }

    /// Returns the commands that remove the reason why the interface runs no XDP program.
    fn commands_for_xdp(&self, why: &str) -> Vec<String> {
        let (name, mtu) = (self.word(), self.mtu);
        if self.strips_tags {
            return vec![format!("ethtool -K {name} rxvlan off")];
        }
        if self.has_xdp {
            return vec![format!("ip link set dev {name} xdp off")];
        }
        let lro = self.joins_packets.then(|| format!("ethtool -K {name} lro off"));
        let mtu = (mtu > MOST_MTU).then(|| format!("ip link set dev {name} mtu 1500"));
        let settings = lro.into_iter().chain(mtu);
        settings.filter(|_| why == REFUSES_SETTINGS).collect()
    }

    /// Reports an XDP program of others, which sees packets in front of the filter.
    fn foreign_xdp(&self) -> Option<Finding> {
        let is_foreign = self.has_xdp && matches!(self.hook, Hook::Tc { without_xdp: None });
        let text = "another XDP program sees packets first, and may send them past the filter";
        let command = format!("ip link set dev {} xdp off", self.word());
        is_foreign.then(|| Finding::warn(&*self.name, text).mended_by(command))
    }

    /// Reports a program that sees packets before the filter does.
    fn order(&self, direction: Direction) -> Option<Finding> {
        let (programs, hook, fate) = match direction {
            Direction::In => (&self.programs[0], "ingress", "the guard drops packets"),
            Direction::Out => (&self.programs[1], "egress", "packets leave unfiltered"),
        };
        let ours = programs.iter().position(|program| program.is_ours)?;
        let first = programs[..ours].first()?;
        let text = format!(
            "{} is in front of the filter on tcx {hook}: {fate} that this program accepts",
            first.name
        );
        let finding = Finding::warn(&*self.name, text);
        Some(match first.link {
            Some(link) => finding.mended_by(format!("bpftool link detach id {link}")),
            None => finding.mended_by(format!("bpftool net detach tcx_{hook} dev {}", self.word())),
        })
    }

    /// Reports a device that joins received packets on a host that forwards them.
    fn lro(&self) -> Option<Finding> {
        let text =
            "LRO joins received packets, which lose their boundaries when they are forwarded";
        let command = format!("ethtool -K {} lro off", self.word());
        let is_wrong = self.joins_packets && self.forwards;
        is_wrong.then(|| Finding::warn(&*self.name, text).mended_by(command))
    }

    /// Describes the hooks, and the properties of the device that decide on them.
    fn description(&self) -> String {
        let names = |programs: &[HookedProgram]| {
            let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        };
        let [inbound, outbound] = self.programs.each_ref().map(|programs| names(programs));
        let mut text = format!("tcx ingress: {inbound}; egress: {outbound}");
        text += match &self.hook {
            Hook::Xdp => "; XDP: on",
            Hook::Tc { without_xdp: None } => "; no XDP: `set xdp on` does not name this interface",
            _ => "",
        };
        if self.has_clsact {
            text += "; a clsact qdisc, whose filters see packets, too";
        }
        if self.skip {
            text += "; not filtered: `set skip on` names this interface";
        }
        if let Some(driver) = &self.driver {
            text += &format!("; driver {driver}");
        }
        text + &format!("; MTU {}", self.mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn program(name: &str, link: Option<u32>, is_ours: bool) -> HookedProgram {
        HookedProgram { name: name.to_owned(), link, is_ours }
    }

    fn eth0() -> Facts {
        Facts {
            name: "eth0".to_owned(),
            mtu: 1500,
            driver: Some("igb".to_owned()),
            skip: false,
            hook: Hook::Tc { without_xdp: None },
            refusal: None,
            programs: [
                vec![program("pf_ingress", Some(1), true)],
                vec![program("pf_egress", Some(2), true)],
            ],
            has_xdp: false,
            has_clsact: false,
            joins_packets: false,
            strips_tags: false,
            forwards: true,
        }
    }

    /// Returns level, text and command of the faults of an interface.
    fn faults(facts: Facts) -> Vec<(Level, String, Option<String>)> {
        let findings = judge(&[facts], &Words::usual()).into_iter();
        let faults = findings.filter(|finding| finding.level != Level::Ok);
        faults.map(|finding| (finding.level, finding.text, finding.command)).collect()
    }

    #[test]
    fn an_attached_interface_is_described() {
        let findings = judge(&[eth0()], &Words::usual());
        assert_eq!(findings.len(), 1);
        assert_eq!(
            findings[0].text,
            "tcx ingress: pf_ingress; egress: pf_egress; no XDP: `set xdp on` does not name \
             this interface; driver igb; MTU 1500"
        );
        let skipped = Facts { skip: true, has_clsact: true, hook: Hook::Xdp, ..eth0() };
        let text = &judge(&[skipped], &Words::usual())[0].text;
        for says in ["XDP: on", "a clsact qdisc", "`set skip on` names this"] {
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn an_unattached_interface_fails() {
        let hook = Hook::Unattached { guarded: true };
        let programs = [Vec::new(), Vec::new()];
        let unattached = Facts { hook, programs, refusal: Some("refused".to_owned()), ..eth0() };
        let text = "not attached (refused): the guard drops its packets";
        let expected = (Level::Fail, text.to_owned(), Some("pfctl -e".to_owned()));
        assert_eq!(faults(unattached.clone()), [expected]);
        let open = Facts { hook: Hook::Unattached { guarded: false }, ..unattached };
        assert!(faults(open)[0].1.ends_with("its packets pass"));
    }

    #[test]
    fn xdp_that_is_refused_has_the_commands_that_allow_it() {
        let hook = Hook::Tc { without_xdp: Some("its driver refuses".to_owned()) };
        let refused = Facts { hook, ..eth0() };
        let text = "no XDP (driver igb, MTU 1500): its driver refuses".to_owned();
        assert_eq!(faults(refused.clone()), [(Level::Warn, text, None)]);
        let large = Facts { mtu: 9000, forwards: false, joins_packets: true, ..refused.clone() };
        assert_eq!(faults(large.clone())[0].2, None, "no setting helps a driver without XDP");
        let hook = Hook::Tc { without_xdp: Some(REFUSES_SETTINGS.to_owned()) };
        let large = Facts { hook, ..large };
        let command = "ethtool -K eth0 lro off && ip link set dev eth0 mtu 1500 && pfctl -e";
        assert_eq!(faults(large)[0].2.as_deref(), Some(command));
        let tags = Facts { strips_tags: true, ..refused };
        let command = "ethtool -K eth0 rxvlan off && pfctl -e";
        assert_eq!(faults(tags)[0].2.as_deref(), Some(command));
    }

    #[test]
    fn programs_of_others_in_front_are_named() {
        let front = program("accept_all", Some(7), false);
        let facts = eth0();
        let inbound = [vec![front.clone()], facts.programs[0].clone()].concat();
        let found = faults(Facts { programs: [inbound, Vec::new()], ..facts });
        assert!(found[0].1.starts_with("accept_all is in front of the filter"), "{found:?}");
        assert_eq!(found[0].2.as_deref(), Some("bpftool link detach id 7"));
        let outbound = [vec![program("out", None, false)], eth0().programs[1].clone()].concat();
        let found = faults(Facts { programs: [Vec::new(), outbound], ..eth0() });
        assert!(found[0].1.ends_with("packets leave unfiltered that this program accepts"));
        assert_eq!(found[0].2.as_deref(), Some("bpftool net detach tcx_egress dev eth0"));
        let behind = [eth0().programs[0].clone(), vec![front]].concat();
        assert!(faults(Facts { programs: [behind, Vec::new()], ..eth0() }).is_empty());
        let found = faults(Facts { has_xdp: true, ..eth0() });
        assert_eq!(found[0].2.as_deref(), Some("ip link set dev eth0 xdp off"));
        assert!(faults(Facts { has_xdp: true, hook: Hook::Xdp, ..eth0() }).is_empty());
    }

    #[test]
    fn joined_packets_matter_where_packets_are_forwarded() {
        let lro = Facts { joins_packets: true, ..eth0() };
        assert_eq!(faults(lro.clone())[0].2.as_deref(), Some("ethtool -K eth0 lro off"));
        assert!(faults(Facts { forwards: false, ..lro }).is_empty());
    }
}

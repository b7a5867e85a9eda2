//! The choice of dropped packets on the command line: a reason, and criteria in pf's words.

use anyhow::{Result, bail};
use skipstep_model::{Carried, LinkHeader, Packet};
use skipstep_pfconf::Diagnostic;
use skipstep_ruleset::Rule;
use skipstep_ruleset::interface::Host;
use skipstep_wire::build::{self, Icmp, Tcp, Udp};
use skipstep_wire::{addresses, ip_length, protocol, tcp_flag};

use super::record::{Cause, Dropped};
use crate::criteria::{Criteria, Entries};
use crate::request::Args;

/// A filter as an example for messages.
pub(super) const EXAMPLE: &str = "pfctl drops on wan0 proto tcp port 22";

/// A choice of dropped packets.
pub struct Filter {
    cause: Option<Cause>,
    criteria: Criteria,
}

impl Filter {
    /// Parses `reason NAME`, and then criteria as of a rule. The inner result has the diagnostics
    /// of wrong criteria.
    ///
    /// # Errors
    /// Fails if there is no such reason, if a word of a rule is no criterion of a dropped packet,
    /// or if a table cannot be read.
    pub fn parse(
        text: &str,
        args: &Args,
        host: Host,
        entries: Entries,
    ) -> Result<Result<Filter, Vec<Diagnostic>>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (cause, words) = match words[..] {
            ["reason", name, ref rest @ ..] => (Some(cause(name)?), rest),
            ["reason"] => bail!("reason: its name is missing: {}", names()),
            ref rest => (None, rest),
        };
        let criteria = match Criteria::parse(words, args, host, entries)? {
            Ok(criteria) => criteria,
            Err(diagnostics) => return Ok(Err(diagnostics)),
        };
        if let Some(word) = criteria.rules().iter().find_map(unusable) {
            bail!(
                "{word} chooses no dropped packets: use in, out, on, inet, inet6, proto, from, to, \
                 port, os, flags, icmp-type, icmp6-type, tos or fragment, as in: {EXAMPLE}"
            );
        }
        Ok(Ok(Filter { cause, criteria }))
    }

    /// True if the filter chooses the packet.
    pub fn admits(&mut self, dropped: &Dropped) -> bool {
        self.cause.is_none_or(|cause| cause == dropped.cause) && self.matches(dropped)
    }

    fn matches(&mut self, dropped: &Dropped) -> bool {
        let mut packet = model_packet(dropped);
        if dropped.is_ip
            && let Some(is_chosen) = self.criteria.matches(&packet)
        {
            return is_chosen;
        }
        // the packet is damaged or incomplete, so the model has not evaluated the rules
        packet.bytes = repaired(&dropped.packet, dropped.is_ip);
        self.criteria.matches(&packet) == Some(true)
    }
}

/// Returns a dropped packet as the model takes it.
pub fn model_packet(dropped: &Dropped) -> Packet {
    let bytes = &dropped.packet[..ip_length(&dropped.packet).min(dropped.packet.len())];
    Packet {
        direction: dropped.direction,
        interface: dropped.interface.clone(),
        bytes: bytes.to_vec(),
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}

/// Returns a word of the rule that is no criterion, or that is a criterion for a property that
/// records of dropped packets do not have.
#[rustfmt::skip]
fn unusable(rule: &Rule) -> Option<&'static str> {
    let Rule {
        number: _, line: _, file: _, action: _, block_return: _, direction: _, interface: _,
        family: _, protocol: _, source: _, destination: _, os: _, tcp_flags: _, icmp: _, tos: _,
        fragment: _,
        anchor, log, quick, user, group, received_on, prio, max_pkt_rate, max_pkt_size,
        state_limiter, source_limiter, set_prio, set_tos, set_queue, set_delay, state, probability,
        scrub, allow_opts, labels, ridentifier, once, tag, tagged, rtable, divert, af_to, nat, rdr,
        route,
    } = rule;
    let words = [
        ("anchor", anchor.is_some()),
        ("log", log.is_some()),
        ("quick", *quick),
        ("user", user.is_some()),
        ("group", group.is_some()),
        ("received-on", received_on.is_some()),
        ("prio", prio.is_some()),
        ("max-pkt-rate", max_pkt_rate.is_some()),
        ("max-pkt-size", max_pkt_size.is_some()),
        ("state limiter", state_limiter.is_some()),
        ("source limiter", source_limiter.is_some()),
        ("set prio", set_prio.is_some()),
        ("set tos", set_tos.is_some()),
        ("set queue", set_queue.is_some()),
        ("set delay", set_delay.is_some()),
        ("keep state", state.is_some()),
        ("probability", probability.is_some()),
        ("scrub", *scrub != Default::default()),
        ("allow-opts", *allow_opts),
        ("label", !labels.is_empty()),
        ("ridentifier", ridentifier.is_some()),
        ("once", *once),
        ("tag", tag.is_some()),
        ("tagged", tagged.is_some()),
        ("rtable", rtable.is_some()),
        ("divert-to", divert.is_some()),
        ("af-to", af_to.is_some()),
        ("nat-to", nat.is_some()),
        ("rdr-to", rdr.is_some()),
        ("route-to", route.is_some()),
    ];
    words.into_iter().find_map(|(word, is_there)| is_there.then_some(word))
}

fn cause(name: &str) -> Result<Cause> {
    match Cause::all().find(|cause| cause.name() == name) {
        Some(cause) => Ok(cause),
        None => bail!("reason {name}: no such reason: {}", names()),
    }
}

fn names() -> String {
    let names: Vec<_> = Cause::all().map(Cause::name).collect();
    format!("the reasons are {}", names.join(", "))
}

/// Returns a sound packet with the addresses, protocol, ports and type of a damaged one, as far as
/// it has them.
fn repaired(packet: &[u8], is_ip: bool) -> Vec<u8> {
    let Some((source, destination)) = addresses(packet).filter(|_| is_ip) else {
        return build::ipv4([0, 0, 0, 0], [0, 0, 0, 0]).raw(u8::MAX, &[]);
    };
    let (kind, offset) = match source.is_ipv4() {
        true => (packet[9], usize::from(packet[0] & 15) * 4),
        false => (packet[6], 40),
    };
    let header = packet.get(offset..).unwrap_or_default();
    let byte = |place: usize| header.get(place).copied().unwrap_or_default();
    let port = |place| u16::from_be_bytes([byte(place), byte(place + 1)]);
    // the model refuses port 0 as a destination
    let (from, to) = (port(0), port(2).max(1));
    let ip = build::ip(source, destination);
    match kind {
        protocol::TCP => {
            let is_syn = byte(13) & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN;
            ip.tcp(&Tcp::new(from, to).flags(if is_syn { "S" } else { "A" }))
        }
        protocol::UDP => ip.udp(&Udp::new(from, to)),
        protocol::ICMP | protocol::ICMP6 => ip.icmp(&Icmp::new(byte(0), byte(1))),
        other => ip.raw(other, &[]),
    }
}

#[cfg(test)]
mod tests {
    use skipstep_kernel::DroppedPacket;
    use skipstep_ruleset::{Reason, TableEntry};
    use skipstep_scenario::host;
    use skipstep_wire::build::ipv4;

    use super::super::record::tests::{dropped, packet};
    use super::*;

    fn filter(text: &str) -> Filter {
        let bad = TableEntry { negated: false, net: "10.0.0.0/24".parse().unwrap(), weight: 0 };
        let entries = |name: &str| match name {
            "bad" => Ok(vec![bad]),
            _ => bail!("no such table"),
        };
        Filter::parse(text, &Args::default(), host::standard(), &entries).unwrap().unwrap()
    }

    /// Returns true if a filter chooses the SYN of `packet` with another reason and other bytes.
    fn admits(text: &str, reason: Reason, data: Option<Vec<u8>>) -> bool {
        let packet = packet(reason, -1);
        let data = data.unwrap_or_else(|| packet.data.clone());
        filter(text).admits(&dropped(&DroppedPacket { data, ..packet }))
    }

    #[test]
    fn words_are_criteria_of_a_rule() {
        for text in [
            "",
            "on wan0",
            "in on wan0 proto tcp from 10.0.0.1 to 10.0.0.2 port 22",
            "proto tcp port 22",
            "port ssh",
            "on wan0 port 4000",
            "from 10.0.0.1 to any port 22",
            "inet proto tcp to port { 80 22 } flags S/SA",
            "from <bad>",
            "from ! 10.0.0.3",
        ] {
            assert!(admits(text, Reason::Match, None), "{text}");
        }
        for text in [
            "out",
            "on em0",
            "proto udp",
            "inet6",
            "port 80",
            "to port 4000",
            "from <bad> to ! <bad>",
        ] {
            assert!(!admits(text, Reason::Match, None), "{text}");
        }
    }

    #[test]
    fn a_reason_comes_first() {
        assert!(admits("reason short on wan0", Reason::Short, None));
        assert!(!admits("reason short on wan0", Reason::Match, None));
        assert!(!admits("reason short on em0", Reason::Short, None));
        let refused = |text: &str| {
            let args = Args::default();
            let parsed = Filter::parse(text, &args, host::standard(), &|_| Ok(Vec::new()));
            parsed.err().unwrap().to_string()
        };
        assert!(
            refused("reason long").starts_with("reason long: no such reason: the reasons are m")
        );
        assert!(refused("reason").ends_with(", unattached, undelivered"));
    }

    #[test]
    fn other_options_of_a_rule_are_no_filter() {
        for text in ["quick", "log on wan0", "user root", "proto tcp port 22 label ssh", "tagged a"]
        {
            let args = Args::default();
            let parsed = Filter::parse(text, &args, host::standard(), &|_| Ok(Vec::new()));
            let error = parsed.err().unwrap().to_string();
            assert!(error.contains(" chooses no dropped packets: use in, out, on, "), "{error}");
        }
    }

    #[test]
    fn wrong_words_are_no_filter() {
        let args = Args::default();
        let parsed = Filter::parse("on", &args, host::standard(), &|_| Ok(Vec::new())).unwrap();
        assert_eq!(parsed.err().unwrap()[0].message, "syntax error");
    }

    #[test]
    fn a_damaged_packet_has_its_addresses_and_ports() {
        let cut = packet(Reason::Short, -1).data[..24].to_vec();
        assert!(admits("proto tcp from 10.0.0.1 to any port 22", Reason::Short, Some(cut.clone())));
        assert!(!admits("proto udp port 22", Reason::Short, Some(cut)));
        let mut flagged = packet(Reason::Normalize, -1).data;
        flagged[33] = tcp_flag::SYN | tcp_flag::RST;
        assert!(admits("proto tcp port 22", Reason::Normalize, Some(flagged)));
        let query = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).icmp(&Icmp::new(8, 0))[..22].to_vec();
        assert!(admits("inet proto icmp icmp-type echoreq", Reason::Short, Some(query)));
        assert!(admits("on wan0", Reason::LinkHeader, Some(vec![2; 30])));
        assert!(!admits("proto tcp", Reason::LinkHeader, Some(vec![2; 30])));
    }

    #[test]
    fn a_fragment_matches_without_ports() {
        let fragment = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).fragment(8, true).raw(17, &[0; 16]);
        assert!(admits("from 10.0.0.1", Reason::Fragment, Some(fragment.clone())));
        assert!(!admits("proto udp port 53", Reason::Fragment, Some(fragment)));
    }
}

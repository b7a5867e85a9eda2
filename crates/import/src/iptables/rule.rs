//! Reads the words of one rule: its criteria and its target.

use super::address::Hosts;
use super::connection::Connection;
use super::criteria::{Criteria, Interface, TcpFlags};
use super::line::{Word, Words, Wrong};
use super::target::{self, Target};
use crate::messages::{Messages, Place};
use crate::ranges::{ADDRESS, PORT, Ranges};
use crate::words::{TCP, UDP};

/// A rule of a chain.
#[derive(Debug)]
pub struct Rule {
    /// Position of `-A`.
    pub place: Place,
    /// Source text.
    pub text: String,
    /// Packets that the rule matches.
    pub criteria: Criteria,
    /// Action of the rule.
    pub target: Target,
}

/// Reads the words behind `-A CHAIN`. Returns `None`, with a message, if there is an error.
pub fn parse(words: &[Word], place: Place, line: &str, messages: &mut Messages) -> Option<Rule> {
    let mut words = Words { words: words.iter(), last: place, messages };
    let mut criteria = Criteria::default();
    let mut target = Target::Nothing;
    while let Some(word) = words.next() {
        let negated = word.text == "!";
        let word = match negated {
            true => words.value().ok()?,
            false => word,
        };
        match word.text.as_str() {
            "-j" | "-g" => target = target::parse(word, &mut words).ok()?,
            _ => criterion(&mut criteria, word, negated, &mut words).ok()?,
        }
    }
    if matches!(target, Target::Reset) && criteria.protocol != Some(TCP) {
        let message = "--reject-with tcp-reset needs -p tcp";
        words.wrong::<()>(place, message, None).ok();
        return None;
    }
    Some(Rule { place, text: line.trim().to_string(), criteria, target })
}

/// Reads an option that restricts the rule.
fn criterion(
    criteria: &mut Criteria,
    option: &Word,
    negated: bool,
    words: &mut Words,
) -> Result<(), Wrong> {
    let place = option.place;
    match option.text.as_str() {
        "-s" | "--source" => criteria.source.narrow(networks(words)?, negated),
        "-d" | "--destination" => criteria.destination.narrow(networks(words)?, negated),
        "--src-range" => criteria.source.narrow(range(words)?, negated),
        "--dst-range" => criteria.destination.narrow(range(words)?, negated),
        "--src-type" => address_type(&mut criteria.source, negated, words)?,
        "--dst-type" => address_type(&mut criteria.destination, negated, words)?,
        "-i" | "--in-interface" => criteria.in_interface = interface(negated, words)?,
        "-o" | "--out-interface" => criteria.out_interface = interface(negated, words)?,
        "-p" | "--protocol" => criteria.protocol = protocol(place, negated, words)?,
        "-m" | "--match" => module(words)?,
        "--sport" | "--source-port" | "--sports" | "--source-ports" => {
            let set = ports(words)?;
            criteria.narrow_source_ports(negate(set, negated));
        }
        "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
            let set = ports(words)?;
            criteria.narrow_destination_ports(negate(set, negated));
        }
        "--ports" => {
            let set = ports(words)?;
            if negated {
                criteria.narrow_source_ports(negate(set.clone(), true));
                criteria.narrow_destination_ports(negate(set, true));
            } else {
                criteria.either_ports = Some(set);
            }
        }
        "--syn" => criteria.flags = Some(TcpFlags { mask: 0x17, value: 0x02, negated }),
        "--tcp-flags" => {
            let (mask, value) = (flags(words)?, flags(words)?);
            criteria.flags = Some(TcpFlags { mask, value, negated });
        }
        "--icmp-type" if !negated => criteria.icmp = icmp_type(words)?,
        "--ctstate" | "--state" => criteria.connection = Some(connection(negated, words)?),
        "--limit" => criteria.rate = Some(rate(words)?),
        // No equivalent: max-pkt-rate counts over the whole interval that --limit gives.
        "--limit-burst" => _ = words.value()?,
        "--comment" => _ = words.value()?,
        "--mode" => {
            let mode = words.value()?;
            if mode.text != "random" {
                return words.wrong(mode.place, "only --mode random has an equivalent", None);
            }
        }
        "--probability" if !negated => criteria.probability = Some(probability(words)?),
        "--dscp" if !negated => {
            criteria.tos = Some(number(words.value()?, 0x3f, words)? as u8 * 4);
        }
        "--uid-owner" => criteria.user = Some(owner(negated, words)?),
        "--gid-owner" => criteria.group = Some(owner(negated, words)?),
        name => {
            let help = advice_for(name);
            let message = match negated {
                true => format!("! {name} has no equivalent"),
                false => format!("{name} has no equivalent"),
            };
            return words.wrong(place, &message, help);
        }
    }
    Ok(())
}

/// Returns advice for an option without an equivalent.
fn advice_for(option: &str) -> Option<&'static str> {
    Some(match option {
        "--icmp-type" => "write the types that are meant",
        "--mark" => "in pf packets carry tags: `tag NAME` and `tagged NAME`",
        "-f" | "--fragment" => "pf reassembles fragments before it evaluates rules",
        "--match-set" => "make the set a table: `table <name> { … }` and `from <name>`",
        "--mac-source" => "pf matches IP addresses only",
        "--connlimit-above" | "--connlimit-upto" => {
            "see max-src-states and max-src-conn in pf.conf(5)"
        }
        "--hitcount" | "--rcheck" | "--update" | "--set" => "see max-src-conn-rate in pf.conf(5)",
        "--tos" => "pf compares the whole byte without its two lowest bits: use --dscp",
        _ => return None,
    })
}

/// Reads `-m NAME`. The module's options follow as criteria. A module is refused here if it is
/// unknown and no option follows.
fn module(words: &mut Words) -> Result<(), Wrong> {
    const KNOWN: [&str; 13] = [
        "tcp",
        "udp",
        "icmp",
        "multiport",
        "state",
        "conntrack",
        "comment",
        "limit",
        "iprange",
        "addrtype",
        "statistic",
        "dscp",
        "owner",
    ];
    let name = words.value()?;
    match KNOWN.contains(&name.text.as_str())
        || words.peek().is_some_and(|next| next.starts_with("--"))
    {
        true => Ok(()),
        false => words.wrong(name.place, &format!("-m {} has no equivalent", name.text), None),
    }
}

fn negate(set: Ranges, negated: bool) -> Ranges {
    if negated { set.complement(PORT) } else { set }
}

/// Reads `A`, `A/LENGTH` or `A/MASK`, or a list with commas.
fn networks(words: &mut Words) -> Result<Ranges, Wrong> {
    let word = words.value()?;
    let networks: Option<Vec<(u32, u32)>> = word.text.split(',').map(network).collect();
    match networks {
        Some(networks) => Ok(Ranges::union(networks)),
        None if word.text.contains(':') => {
            let help =
                Some("the rules of ip6tables are not read; pf.conf has both in one rule set");
            words.wrong(word.place, "an IPv6 address has no place here", help)
        }
        None => words.wrong(word.place, "an IPv4 address or network is expected", None),
    }
}

fn network(text: &str) -> Option<(u32, u32)> {
    let (address, mask) = text.split_once('/').unwrap_or((text, "32"));
    let address = u32::from(address.parse::<std::net::Ipv4Addr>().ok()?);
    let mask = match mask.parse::<std::net::Ipv4Addr>() {
        Ok(mask) => u32::from(mask),
        Err(_) => {
            let length = mask.parse::<u32>().ok().filter(|&length| length <= 32)?;
            ADDRESS.checked_shl(32 - length).unwrap_or(0)
        }
    };
    (mask.count_zeros() == mask.trailing_zeros()).then_some((address & mask, address | !mask))
}

/// Reads `A-B`, both inclusive.
fn range(words: &mut Words) -> Result<Ranges, Wrong> {
    let word = words.value()?;
    let (low, high) = word.text.split_once('-').unwrap_or((&word.text, &word.text));
    match (network(low), network(high)) {
        (Some((low, first)), Some((last, high))) if low == first && last == high && low <= high => {
            Ok(Ranges::union(vec![(low, high)]))
        }
        _ => words.wrong(word.place, "a range of addresses is expected", None),
    }
}

fn address_type(hosts: &mut Hosts, negated: bool, words: &mut Words) -> Result<(), Wrong> {
    let word = words.value()?;
    match word.text.as_str() {
        "LOCAL" if hosts.local.is_none() => hosts.local = Some(!negated),
        "MULTICAST" => hosts.narrow(Ranges::union(vec![(0xe000_0000, 0xefff_ffff)]), negated),
        _ => {
            let help = Some("use LOCAL or MULTICAST");
            return words.wrong(word.place, "this type of address has no equivalent", help);
        }
    }
    Ok(())
}

fn interface(negated: bool, words: &mut Words) -> Result<Option<Interface>, Wrong> {
    let word = words.value()?;
    match word.text.as_str() {
        "+" if !negated => Ok(None),
        name if name.ends_with('+') => {
            let help = Some("name the interfaces, or put them into a group (ip link set … group)");
            words.wrong(word.place, "names that begin alike have no equivalent", help)
        }
        name if name.len() > 15
            || name.contains(|c: char| !c.is_ascii_graphic() || "\"\\$".contains(c)) =>
        {
            words.wrong(word.place, "this is not a name of an interface", None)
        }
        name => Ok(Some(Interface { name: name.to_string(), negated })),
    }
}

fn protocol(place: Place, negated: bool, words: &mut Words) -> Result<Option<u32>, Wrong> {
    if negated {
        let help = Some("write a rule for each protocol that is meant");
        return words.wrong(place, "! -p has no equivalent", help);
    }
    let word = words.value()?;
    let number = match word.text.as_str() {
        "all" => return Ok(None),
        "icmp" => 1,
        "tcp" => TCP,
        "udp" => UDP,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "ospf" => 89,
        "vrrp" => 112,
        "sctp" => 132,
        "igmp" => 2,
        _ => number(word, 255, words)?,
    };
    match number {
        0 => Ok(None),
        _ => Ok(Some(number)),
    }
}

fn number(word: &Word, highest: u32, words: &mut Words) -> Result<u32, Wrong> {
    let number = match word.text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => word.text.parse(),
    };
    match number {
        Ok(number) if number <= highest => Ok(number),
        _ => words.wrong(word.place, &format!("a number up to {highest} is expected"), None),
    }
}

/// Reads `80`, `1024:65535`, `:1023`, or a list with commas.
fn ports(words: &mut Words) -> Result<Ranges, Wrong> {
    let word = words.value()?;
    let port = |text: &str, absent: u32| match text {
        "" => Some(absent),
        _ => text.parse::<u16>().ok().map(u32::from),
    };
    let range = |text: &str| match text.split_once(':') {
        Some((low, high)) => Some((port(low, 0)?, port(high, PORT)?)).filter(|(a, b)| a <= b),
        None => text.parse::<u16>().ok().map(|port| (port.into(), port.into())),
    };
    match word.text.split(',').map(range).collect() {
        Some(ranges) => Ok(Ranges::union(ranges)),
        None => words.wrong(word.place, "ports are expected, as numbers", None),
    }
}

fn flags(words: &mut Words) -> Result<u8, Wrong> {
    let word = words.value()?;
    let mut flags = 0;
    for name in word.text.split(',') {
        flags |= match name {
            "FIN" => 0x01,
            "SYN" => 0x02,
            "RST" => 0x04,
            "PSH" => 0x08,
            "ACK" => 0x10,
            "URG" => 0x20,
            "ALL" => 0x3f,
            "NONE" => 0,
            _ => return words.wrong(word.place, "flags of TCP are expected", None),
        };
    }
    Ok(flags)
}

/// Reads `8`, `3/4`, or the name of a common type.
fn icmp_type(words: &mut Words) -> Result<Option<(u8, Option<u8>)>, Wrong> {
    let word = words.value()?;
    let named = match word.text.as_str() {
        "any" => return Ok(None),
        "echo-reply" | "pong" => Some((0, None)),
        "destination-unreachable" => Some((3, None)),
        "port-unreachable" => Some((3, Some(3))),
        "fragmentation-needed" => Some((3, Some(4))),
        "source-quench" => Some((4, None)),
        "redirect" => Some((5, None)),
        "echo-request" | "ping" => Some((8, None)),
        "time-exceeded" | "ttl-exceeded" => Some((11, None)),
        "parameter-problem" => Some((12, None)),
        text => match text.split_once('/') {
            Some((kind, code)) => kind.parse().ok().zip(code.parse().ok().map(Some)),
            None => text.parse().ok().map(|kind| (kind, None)),
        },
    };
    match named {
        Some(_) => Ok(named),
        None => words.wrong(word.place, "a type of ICMP is expected, as 8 or 3/4", None),
    }
}

fn connection(negated: bool, words: &mut Words) -> Result<Connection, Wrong> {
    let word = words.value()?;
    match Connection::parse(&word.text, negated) {
        Some(connection) => Ok(connection),
        None => {
            let help = Some("use NEW, INVALID, or ESTABLISHED with or without RELATED");
            words.wrong(word.place, "these states have no equivalent", help)
        }
    }
}

/// Reads `5/sec`. Returns packets and seconds, as pf counts.
fn rate(words: &mut Words) -> Result<(u32, u32), Wrong> {
    let word = words.value()?;
    let (count, unit) = word.text.split_once('/').unwrap_or((&word.text, "second"));
    let seconds = match unit {
        "" => None,
        _ if "second".starts_with(unit) => Some(1),
        _ if "minute".starts_with(unit) => Some(60),
        _ if "hour".starts_with(unit) => Some(3600),
        _ if "day".starts_with(unit) => Some(86400),
        _ => None,
    };
    match (count.parse(), seconds) {
        (Ok(count @ 1..=1_000_000), Some(seconds)) => Ok((count, seconds)),
        _ => words.wrong(word.place, "a rate is expected, as 5/second", None),
    }
}

/// Reads a number between 0 and 1. Returns it in percent, with up to six decimals.
fn probability(words: &mut Words) -> Result<String, Wrong> {
    let word = words.value()?;
    match word.text.parse::<f64>() {
        Ok(part) if part > 0.000_001 && part <= 1.0 => {
            let percent = format!("{:.6}", part * 100.0);
            Ok(percent.trim_end_matches('0').trim_end_matches('.').to_string())
        }
        _ => words.wrong(word.place, "a number between 0 and 1 is expected", None),
    }
}

fn owner(negated: bool, words: &mut Words) -> Result<String, Wrong> {
    let word = words.value()?;
    let id = number(word, u32::MAX - 1, words)?;
    Ok(if negated { format!("!= {id}") } else { id.to_string() })
}

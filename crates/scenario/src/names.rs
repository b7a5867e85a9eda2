//! Names in scenario files and their numbers, in both directions. They are those of pf.conf and
//! pfctl.

/// Protocols with a name. A scenario may give any protocol by number.
const PROTOCOLS: &[(u8, &str)] = &[
    (1, "icmp"),
    (2, "igmp"),
    (6, "tcp"),
    (17, "udp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "ipv6-icmp"),
    (132, "sctp"),
];

/// Words in front of or at the beginning of a packet. An interface with such a name needs an `on`.
const FIRST_WORDS: &[&str] =
    &["on", "hex", "tcp", "udp", "sctp", "icmp", "icmp6", "proto", "inet", "inet6", "from", "to"];

/// True for a word that may stand where the name of an interface ends.
pub(crate) fn begins_packet(word: &str) -> bool {
    FIRST_WORDS.contains(&word)
}

/// Kinds of VLAN tags, by EtherType.
const TAGS: &[(u16, &str)] = &[(0x8100, "vlan"), (0x88a8, "qinq"), (0x9100, "qinq-old")];

/// Returns the EtherType of the kind of VLAN tag called `name`.
pub(crate) fn ether_type_of_tag(name: &str) -> Option<u16> {
    TAGS.iter().find(|tag| tag.1 == name).map(|tag| tag.0)
}

/// Returns the name of the kind of VLAN tag with this EtherType.
pub(crate) fn name_of_tag(ether_type: u16) -> &'static str {
    TAGS.iter().find(|tag| tag.0 == ether_type).map_or("vlan", |tag| tag.1)
}

/// ICMP types, with the names of pf.conf.
const ICMP_TYPES: &[(u8, &str)] = &[
    (0, "echorep"),
    (3, "unreach"),
    (4, "squench"),
    (5, "redir"),
    (8, "echoreq"),
    (9, "routeradv"),
    (10, "routersol"),
    (11, "timex"),
    (12, "paramprob"),
    (13, "timereq"),
    (14, "timerep"),
    (15, "inforeq"),
    (16, "inforep"),
    (17, "maskreq"),
    (18, "maskrep"),
];

/// ICMPv6 types, with the names of pf.conf.
const ICMP6_TYPES: &[(u8, &str)] = &[
    (1, "unreach"),
    (2, "toobig"),
    (3, "timex"),
    (4, "paramprob"),
    (128, "echoreq"),
    (129, "echorep"),
    (130, "listqry"),
    (131, "listenrep"),
    (132, "listendone"),
    (133, "routersol"),
    (134, "routeradv"),
    (135, "neighbrsol"),
    (136, "neighbradv"),
    (137, "redir"),
];

/// ICMP codes with a name, as type, code and name.
const ICMP_CODES: &[(u8, u8, &str)] = &[
    (3, 0, "net-unr"),
    (3, 1, "host-unr"),
    (3, 2, "proto-unr"),
    (3, 3, "port-unr"),
    (3, 4, "needfrag"),
    (3, 9, "net-prohib"),
    (3, 10, "host-prohib"),
    (3, 13, "filter-prohib"),
    (11, 0, "transit"),
    (11, 1, "reassemb"),
];

/// ICMPv6 codes with a name, as type, code and name.
const ICMP6_CODES: &[(u8, u8, &str)] = &[
    (1, 0, "noroute-unr"),
    (1, 1, "admin-unr"),
    (1, 2, "beyond-unr"),
    (1, 3, "addr-unr"),
    (1, 4, "port-unr"),
    (3, 0, "transit"),
    (3, 1, "reassemb"),
];

/// Names of TCP peer states, by number, as `pfctl -ss` prints them.
pub const TCP_STATES: [&str; 11] = [
    "CLOSED",
    "LISTEN",
    "SYN_SENT",
    "SYN_RCVD",
    "ESTABLISHED",
    "CLOSE_WAIT",
    "FIN_WAIT_1",
    "CLOSING",
    "LAST_ACK",
    "FIN_WAIT_2",
    "TIME_WAIT",
];

/// Names of peer states of UDP and other protocols, by number.
pub const OTHER_STATES: [&str; 3] = ["NO_TRAFFIC", "SINGLE", "MULTIPLE"];

/// Letters of the TCP flags, lowest bit first.
const FLAGS: &str = "FSRPAUEW";

pub(crate) fn protocol(text: &str) -> Option<u8> {
    by_name(PROTOCOLS, text).or_else(|| text.parse().ok())
}

pub(crate) fn icmp_type(ipv6: bool, text: &str) -> Option<u8> {
    by_name(if ipv6 { ICMP6_TYPES } else { ICMP_TYPES }, text).or_else(|| text.parse().ok())
}

pub(crate) fn icmp_type_name(ipv6: bool, kind: u8) -> String {
    let names = if ipv6 { ICMP6_TYPES } else { ICMP_TYPES };
    names
        .iter()
        .find(|(number, _)| *number == kind)
        .map_or_else(|| kind.to_string(), |(_, name)| (*name).into())
}

pub(crate) fn icmp_code(ipv6: bool, kind: u8, text: &str) -> Option<u8> {
    let names = if ipv6 { ICMP6_CODES } else { ICMP_CODES };
    let named = names.iter().find(|(of, _, name)| *of == kind && *name == text);
    named.map(|(_, code, _)| *code).or_else(|| text.parse().ok())
}

pub(crate) fn icmp_code_name(ipv6: bool, kind: u8, code: u8) -> String {
    let names = if ipv6 { ICMP6_CODES } else { ICMP_CODES };
    let named = names.iter().find(|(of, number, _)| *of == kind && *number == code);
    named.map_or_else(|| code.to_string(), |(_, _, name)| (*name).into())
}

/// Returns the number of a peer state, given by name or number.
pub(crate) fn peer_state(text: &str) -> Option<u8> {
    let place =
        |names: &[&str]| names.iter().position(|name| *name == text).map(|place| place as u8);
    place(&TCP_STATES).or_else(|| place(&OTHER_STATES)).or_else(|| text.parse().ok())
}

/// Returns the TCP flags with these letters; `.` means none.
pub(crate) fn flags(text: &str) -> Option<u8> {
    if text == "." {
        return Some(0);
    }
    text.chars().try_fold(0, |flags, letter| Some(flags | 1 << FLAGS.find(letter)?))
}

pub(crate) fn flags_text(flags: u8) -> String {
    match flags {
        0 => ".".into(),
        _ => FLAGS
            .chars()
            .enumerate()
            .filter(|(bit, _)| flags & 1 << bit != 0)
            .map(|(_, letter)| letter)
            .collect(),
    }
}

fn by_name(names: &[(u8, &str)], text: &str) -> Option<u8> {
    names.iter().find(|(_, name)| *name == text).map(|(number, _)| *number)
}

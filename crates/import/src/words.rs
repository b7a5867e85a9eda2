//! Addresses, ports, protocols and flags in the notation of pf.conf.

use std::net::Ipv4Addr;

use crate::ranges::{ADDRESS, PORT, PROTOCOL, Ranges};

/// Longest comment, in characters.
const LONGEST_COMMENT: usize = 400;

/// Protocol number of TCP.
pub const TCP: u32 = 6;
/// Protocol number of UDP.
pub const UDP: u32 = 17;

/// Returns `any`, a host, network or range, a negated one, or a list.
pub fn hosts(set: &Ranges) -> String {
    let rest = set.complement(ADDRESS);
    match (set.pieces(), rest.pieces()) {
        (_, []) => "any".to_string(),
        (&[piece], _) => host(piece),
        (_, &[piece]) => format!("! {}", host(piece)),
        (pieces, _) => list(pieces.iter().map(|&piece| host(piece))),
    }
}

fn host((low, high): (u32, u32)) -> String {
    let (first, last) = (Ipv4Addr::from(low), Ipv4Addr::from(high));
    let hosts_below = low ^ high;
    if low == high {
        first.to_string()
    } else if hosts_below & hosts_below.wrapping_add(1) == 0 && low & hosts_below == 0 {
        format!("{first}/{}", hosts_below.leading_zeros())
    } else {
        format!("{first} - {last}")
    }
}

/// Returns nothing for all ports, or ` port` with a number, a range, a negated one, or a list.
pub fn ports(set: &Ranges) -> String {
    let rest = set.complement(PORT);
    match (set.pieces(), rest.pieces()) {
        (_, []) => String::new(),
        (&[piece], _) => format!(" port {}", range(piece)),
        (_, &[(port, last)]) if port == last => format!(" port != {port}"),
        (_, &[(low, high)]) => format!(" port {low} <> {high}"),
        (pieces, _) => format!(" port {}", list(pieces.iter().map(|&piece| range(piece)))),
    }
}

fn range((low, high): (u32, u32)) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

/// Returns nothing for all protocols, or ` proto` with one or a list.
pub fn protocols(set: &Ranges) -> String {
    if set == &Ranges::all(PROTOCOL) {
        return String::new();
    }
    let numbers = set.pieces().iter().flat_map(|&(low, high)| low..=high);
    let mut names: Vec<String> = numbers.map(protocol).collect();
    match names.len() {
        1 => format!(" proto {}", names.remove(0)),
        _ => format!(" proto {}", list(names.into_iter())),
    }
}

fn protocol(number: u32) -> String {
    match number {
        1 => "icmp".to_string(),
        TCP => "tcp".to_string(),
        UDP => "udp".to_string(),
        _ => number.to_string(),
    }
}

/// Returns the number of rules that pf expands the text of [`hosts`] or [`ports`] to. `highest` is
/// the highest number that `set` could have.
pub fn rules_for(set: &Ranges, highest: u32) -> u64 {
    let rest = set.complement(highest);
    if rest.pieces().len() <= 1 { 1 } else { set.pieces().len() as u64 }
}

/// Returns ` flags S/SA`: of the flags in `mask`, exactly those in `value` must be set.
pub fn flags(value: u8, mask: u8) -> String {
    format!(" flags {}/{}", letters(value), letters(mask))
}

fn letters(flags: u8) -> String {
    "FSRPAUEW"
        .chars()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 == 1)
        .map(|(_, c)| c)
        .collect()
}

/// Returns the name of an interface, quoted unless pf.conf reads it as a name.
pub fn interface(name: &str) -> String {
    // Only a name with a digit behind letters is certainly no keyword, number or address.
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.ends_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && name != "inet6";
    if plain { name.to_string() } else { format!("\"{name}\"") }
}

/// Returns text that is valid behind `#`: on one line, without a `\` at its end, which would
/// continue the line, and shortened.
pub fn comment(text: &str) -> String {
    let mut characters = text.chars();
    let begun = characters.by_ref().take(LONGEST_COMMENT);
    let shown: String = begun.map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = if characters.next().is_some() { " ..." } else { "" };
    shown.trim_end_matches(|c: char| c == '\\' || c.is_whitespace()).to_string() + end
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("{{ {} }}", items.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_networks_ranges_or_lists() {
        let net = |a: [u8; 4], b: [u8; 4]| (u32::from_be_bytes(a), u32::from_be_bytes(b));
        let ten = net([10, 0, 0, 0], [10, 255, 255, 255]);
        let some = net([10, 0, 0, 1], [10, 0, 0, 9]);
        assert_eq!(hosts(&Ranges::all(ADDRESS)), "any");
        assert_eq!(hosts(&Ranges::union(vec![ten])), "10.0.0.0/8");
        assert_eq!(hosts(&Ranges::union(vec![some])), "10.0.0.1 - 10.0.0.9");
        assert_eq!(hosts(&Ranges::union(vec![ten]).complement(ADDRESS)), "! 10.0.0.0/8");
        let one = net([192, 0, 2, 1], [192, 0, 2, 1]);
        assert_eq!(hosts(&Ranges::union(vec![one, some])), "{ 10.0.0.1 - 10.0.0.9, 192.0.2.1 }");
    }

    #[test]
    fn ports_are_numbers_ranges_exceptions_or_lists() {
        let set = |ranges: &[(u32, u32)]| ports(&Ranges::union(ranges.to_vec()));
        assert_eq!(set(&[(0, 65535)]), "");
        assert_eq!(set(&[(7, 7)]), " port 7");
        assert_eq!(set(&[(0, 19), (22, 65535)]), " port 20 <> 21");
        assert_eq!(set(&[(0, 79), (81, 65535)]), " port != 80");
        assert_eq!(set(&[(0, 1023), (6000, 6010)]), " port { 0:1023, 6000:6010 }");
    }

    #[test]
    fn a_comment_ends_with_its_line() {
        assert_eq!(comment("a\\\nb\\ \\"), "a\\ b");
        assert_eq!(comment(&"x".repeat(500)), "x".repeat(400) + " ...");
        assert_eq!(interface("eth1"), "eth1");
        assert_eq!(interface("in"), "\"in\"");
    }
}

//! Names of numbers in packets: ICMP types and codes, TCP flags, types of service.

use skipstep_ruleset::Family;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of ICMPv6.
pub const ICMP6: u8 = 58;

type Types = [(&'static str, u8)];
type Codes = [(&'static str, u8, u8)];

#[rustfmt::skip]
const TYPES: &Types = &[
    ("echoreq", 8), ("echorep", 0), ("unreach", 3), ("squench", 4), ("redir", 5), ("althost", 6),
    ("routeradv", 9), ("routersol", 10), ("timex", 11), ("paramprob", 12), ("timereq", 13),
    ("timerep", 14), ("inforeq", 15), ("inforep", 16), ("maskreq", 17), ("maskrep", 18),
    ("trace", 30), ("dataconv", 31), ("mobredir", 32), ("ipv6-where", 33), ("ipv6-here", 34),
    ("mobregreq", 35), ("mobregrep", 36), ("skip", 39), ("photuris", 40),
];

#[rustfmt::skip]
const TYPES6: &Types = &[
    ("unreach", 1), ("toobig", 2), ("timex", 3), ("paramprob", 4), ("echoreq", 128),
    ("echorep", 129), ("groupqry", 130), ("listqry", 130), ("grouprep", 131), ("listenrep", 131),
    ("groupterm", 132), ("listendone", 132), ("routersol", 133), ("routeradv", 134),
    ("neighbrsol", 135), ("neighbradv", 136), ("redir", 137), ("routrrenum", 138), ("wrureq", 139),
    ("wrurep", 140), ("fqdnreq", 139), ("fqdnrep", 140), ("niqry", 139), ("nirep", 140),
    ("mtraceresp", 200), ("mtrace", 201), ("listenrepv2", 143),
];

/// Name, type and code of ICMP codes.
#[rustfmt::skip]
const CODES: &Codes = &[
    ("net-unr", 3, 0), ("host-unr", 3, 1), ("proto-unr", 3, 2), ("port-unr", 3, 3),
    ("needfrag", 3, 4), ("srcfail", 3, 5), ("net-unk", 3, 6), ("host-unk", 3, 7), ("isolate", 3, 8),
    ("net-prohib", 3, 9), ("host-prohib", 3, 10), ("net-tos", 3, 11), ("host-tos", 3, 12),
    ("filter-prohib", 3, 13), ("host-preced", 3, 14), ("cutoff-preced", 3, 15), ("redir-net", 5, 0),
    ("redir-host", 5, 1), ("redir-tos-net", 5, 2), ("redir-tos-host", 5, 3), ("normal-adv", 9, 0),
    ("common-adv", 9, 16), ("transit", 11, 0), ("reassemb", 11, 1), ("badhead", 12, 0),
    ("optmiss", 12, 1), ("badlen", 12, 2), ("unknown-ind", 40, 0), ("auth-fail", 40, 1),
    ("decrypt-fail", 40, 2),
];

/// Name, type and code of ICMPv6 codes. `notnbr-unr` is FreeBSD's name for `beyond-unr`.
#[rustfmt::skip]
const CODES6: &Codes = &[
    ("admin-unr", 1, 1), ("noroute-unr", 1, 0), ("beyond-unr", 1, 2), ("notnbr-unr", 1, 2),
    ("addr-unr", 1, 3), ("port-unr", 1, 4), ("transit", 3, 0), ("reassemb", 3, 1),
    ("badhead", 4, 0), ("nxthdr", 4, 1), ("redironlink", 137, 0), ("redirrouter", 137, 1),
];

#[rustfmt::skip]
const TYPES_OF_SERVICE: [(&str, u8); 28] = [
    ("af11", 0x28), ("af12", 0x30), ("af13", 0x38), ("af21", 0x48), ("af22", 0x50), ("af23", 0x58),
    ("af31", 0x68), ("af32", 0x70), ("af33", 0x78), ("af41", 0x88), ("af42", 0x90), ("af43", 0x98),
    ("critical", 0xa0), ("cs0", 0x00), ("cs1", 0x20), ("cs2", 0x40), ("cs3", 0x60), ("cs4", 0x80),
    ("cs5", 0xa0), ("cs6", 0xc0), ("cs7", 0xe0), ("ef", 0xb8), ("inetcontrol", 0xc0),
    ("lowdelay", 0x10), ("netcontrol", 0xe0), ("reliability", 0x04), ("throughput", 0x08),
    ("va", 0xb0),
];

/// Letters of the TCP flags, beginning with bit 0 (FIN).
const TCP_FLAGS: &str = "FSRPAUEW";

fn types(family: Family) -> &'static Types {
    if family == Family::Inet { TYPES } else { TYPES6 }
}

fn codes(family: Family) -> &'static Codes {
    if family == Family::Inet { CODES } else { CODES6 }
}

/// Returns the number of the ICMP type with this name.
pub fn type_by_name(name: &str, family: Family) -> Option<u8> {
    types(family).iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Returns the first name of an ICMP type.
pub fn type_name(kind: u8, family: Family) -> Option<&'static str> {
    types(family).iter().find(|(_, known)| *known == kind).map(|(name, _)| *name)
}

/// Returns all names of ICMP types, for suggestions.
pub fn type_names(family: Family) -> impl Iterator<Item = &'static str> {
    types(family).iter().map(|(name, _)| *name)
}

/// Returns the number of the ICMP code with this name, for type `kind`.
pub fn code_by_name(name: &str, kind: u8, family: Family) -> Option<u8> {
    codes(family)
        .iter()
        .find(|(known, of, _)| *known == name && *of == kind)
        .map(|(_, _, code)| *code)
}

/// Returns the first name of an ICMP code of type `kind`.
pub fn code_name(kind: u8, code: u8, family: Family) -> Option<&'static str> {
    codes(family)
        .iter()
        .find(|(_, of, known)| *of == kind && *known == code)
        .map(|(name, _, _)| *name)
}

/// Returns the names of all codes of type `kind`, for suggestions.
pub fn code_names(kind: u8, family: Family) -> impl Iterator<Item = &'static str> {
    codes(family).iter().filter(move |(_, of, _)| *of == kind).map(|(name, _, _)| *name)
}

/// Returns the type of service with this name. Case does not matter.
pub fn tos_by_name(name: &str) -> Option<u8> {
    TYPES_OF_SERVICE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, tos)| *tos)
}

/// Returns the bits of TCP flags written as letters; all bits for an empty text.
pub fn tcp_flags(letters: &str) -> Option<u8> {
    let bit = |letter| TCP_FLAGS.find(letter).map(|bit| 1 << bit);
    let flags = letters.chars().try_fold(0, |flags, letter| Some(flags | bit(letter)?))?;
    Some(if flags == 0 { 0xff } else { flags })
}

/// Returns the letters of TCP flags.
pub fn tcp_flag_letters(flags: u8) -> String {
    TCP_FLAGS
        .chars()
        .enumerate()
        .filter(|(bit, _)| flags & 1 << bit != 0)
        .map(|(_, letter)| letter)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(type_by_name("echoreq", Family::Inet), Some(8));
        assert_eq!(type_name(139, Family::Inet6), Some("wrureq"));
        assert_eq!(code_name(1, 4, Family::Inet6), Some("port-unr"));
        assert_eq!(code_by_name("transit", 3, Family::Inet), None);
        assert_eq!(tos_by_name("LowDelay"), Some(0x10));
        assert_eq!(tcp_flags("SA"), Some(0x12));
        assert_eq!(tcp_flags("SX"), None);
        assert_eq!(tcp_flag_letters(0xff), "FSRPAUEW");
    }
}

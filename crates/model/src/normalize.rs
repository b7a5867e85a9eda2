//! Checks and repairs that PF makes in each packet, whatever the rules say (pf-semantics sections
//! 12 and 13).

use skipstep_ruleset::options::Options;
use skipstep_ruleset::{Family, Reason};
use skipstep_wire::tcp_flag::{ACK, FIN, PUSH, RST, SYN, URG};

use crate::packet::{Descriptor, Transport};
use crate::patch;

/// Reserved bit beside DF and MF in an IPv4 header, which must be 0.
const RESERVED: u8 = 0x80;
const DONT_FRAGMENT: u8 = 0x40;

/// Offset of the checksum in an IPv4 header, in bytes.
pub(crate) const IP_CHECKSUM: usize = 10;

/// Checks the fragmentation of an IPv4 packet. Refuses a fragment with DF, unless `no-df` clears
/// DF.
pub(crate) fn fragmentation(packet: &mut Descriptor, options: &Options) -> Result<(), Reason> {
    if packet.family != Family::Inet {
        return Ok(());
    }
    if !packet.is_fragment() {
        packet.bytes[6] &= !RESERVED;
        return Ok(());
    }
    if options.reassemble_no_df {
        packet.bytes[6] &= !DONT_FRAGMENT;
    }
    if packet.bytes[6] & DONT_FRAGMENT != 0 { Err(Reason::Fragment) } else { Ok(()) }
}

/// Corrects the header checksum for a cleared reserved bit. PF does so at output, so an ICMP error
/// quotes the header without the correction.
pub(crate) fn settle_checksum(packet: &mut Descriptor, original: &[u8]) {
    if packet.family == Family::Inet && packet.bytes[6] != original[6] {
        let cleared = [packet.bytes[6], packet.bytes[7]];
        packet.bytes[6] = original[6];
        patch::word(&mut packet.bytes, IP_CHECKSUM, 6, cleared);
    }
}

/// Refuses TCP flags that no sane sender combines, and clears fields that must be 0. Returns true
/// if it changed the packet.
pub(crate) fn tcp(packet: &mut Descriptor) -> Result<bool, Reason> {
    let header = packet.offset;
    let Transport::Tcp(tcp) = &mut packet.transport else {
        return Ok(false);
    };
    let mut flags = tcp.flags;
    if tcp.has(SYN) {
        if tcp.has(RST) {
            return Err(Reason::Normalize);
        }
        flags &= !FIN;
    } else if !tcp.has(ACK) && !tcp.has(RST) {
        return Err(Reason::Normalize);
    }
    if !tcp.has(ACK) && flags & (FIN | PUSH | URG) != 0 {
        return Err(Reason::Normalize);
    }
    tcp.flags = flags;

    let checksum = header + 16;
    let bytes = &mut packet.bytes;
    let original = bytes[header + 12..header + 20].to_vec();
    patch::byte(bytes, checksum, header, header + 12, original[0] & 0xf0); // reserved bits
    patch::byte(bytes, checksum, header, header + 13, flags);
    if flags & URG == 0 {
        patch::word(bytes, checksum, header + 18, [0, 0]);
    }
    Ok(bytes[header + 12..header + 20] != original)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{Tcp, Udp, ipv4};
    use skipstep_wire::checksum;

    fn descriptor(bytes: Vec<u8>) -> Descriptor {
        Descriptor::arriving(bytes).unwrap()
    }

    fn segment(flags: &str) -> Vec<u8> {
        ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(1, 2).flags(flags))
    }

    #[test]
    fn flags() {
        for refused in ["", "F", "P", "U", "SR", "SRA", "SP", "SU", "RF", "RP", "E"] {
            assert_eq!(
                tcp(&mut descriptor(segment(refused))),
                Err(Reason::Normalize),
                "{refused:?}"
            );
        }
        for fine in ["S", "SA", "A", "PA", "UA", "FA", "R", "RA", "RPA", "SEW", "SPA"] {
            let mut packet = descriptor(segment(fine));
            let before = packet.bytes.clone();
            assert_eq!(tcp(&mut packet), Ok(false), "{fine:?}");
            assert_eq!(packet.bytes, before, "{fine:?}");
        }
    }

    #[test]
    fn forbidden_tcp_fields_are_cleared() {
        let mut odd = segment("SF");
        odd[32] |= 0x0f;
        odd[38] = 7;
        checksum::fix(&mut odd);
        let mut packet = descriptor(odd);
        assert_eq!(tcp(&mut packet), Ok(true));
        assert_eq!(packet.bytes, segment("S"));
        assert_eq!(packet.tcp().unwrap().flags, SYN);
    }

    #[test]
    fn fragments() {
        let fragment = |df| {
            descriptor(ipv4([1, 1, 1, 1], [2, 2, 2, 2]).df(df).fragment(8, true).raw(17, &[0; 8]))
        };
        let one_by_one = Options { reassemble: false, ..Options::default() };
        assert_eq!(fragmentation(&mut fragment(false), &one_by_one), Ok(()));
        assert_eq!(fragmentation(&mut fragment(true), &one_by_one), Err(Reason::Fragment));
        let no_df = Options { reassemble_no_df: true, ..Options::default() };
        let mut whole_again = fragment(true);
        assert_eq!(fragmentation(&mut whole_again, &no_df), Ok(()));
        assert_eq!(whole_again.bytes[6] & DONT_FRAGMENT, 0);
    }

    #[test]
    fn the_reserved_bit_is_cleared() {
        let clean = ipv4([1, 1, 1, 1], [2, 2, 2, 2]).df(true).udp(&Udp::new(1, 2));
        let mut evil = clean.clone();
        evil[6] |= 0x80;
        checksum::fix(&mut evil);
        let mut packet = descriptor(evil.clone());
        assert_eq!(fragmentation(&mut packet, &Options::default()), Ok(()));
        settle_checksum(&mut packet, &evil);
        assert_eq!(packet.bytes, clean);
    }
}

//! `af-to`: addresses and ports of a packet in the other family (pf-semantics section 11). The
//! source comes from a pool, as with `nat-to`. The destination embeds the IPv4 address in IPv6 (RFC
//! 6052).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use skipstep_ruleset::{AfTo, Family, Pool, PoolPorts, Rule};
use skipstep_wire::protocol;

/// Bits of the longest prefix in front of an IPv4 address (RFC 6052).
const LONGEST_PREFIX: u8 = 96;

/// Returns the address as PF reads it where it expects the other family: the first 4 bytes, or
/// these and zeros. Pools that look at the source do so, too.
pub(crate) fn read_as(family: Family, address: IpAddr) -> IpAddr {
    match (family, address) {
        (Family::Inet, IpAddr::V6(v6)) => {
            let [a, b, c, d, ..] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        (Family::Inet6, IpAddr::V4(v4)) => {
            Ipv6Addr::from_bits(u128::from(v4.to_bits()) << 96).into()
        }
        _ => address,
    }
}

/// Returns the number of a protocol in the other family.
pub(crate) fn other_protocol(protocol: u8) -> u8 {
    match protocol {
        protocol::ICMP => protocol::ICMP6,
        protocol::ICMP6 => protocol::ICMP,
        other => other,
    }
}

/// Returns the destination port in the other family. For ICMP the port is the type of a query. PF
/// also converts the id of an answer if the id equals such a type.
pub(crate) fn destination_port(protocol: u8, port: u16, pool: Option<&Pool>) -> u16 {
    if let Some(PoolPorts::Range(low @ 1.., _)) = pool.map(|pool| pool.ports) {
        return low;
    }
    match (protocol, port) {
        (protocol::ICMP6, 128) => 8,
        (protocol::ICMP6, 129) => 0,
        (protocol::ICMP, 8) => 128,
        (protocol::ICMP, 0) => 129,
        _ => port,
    }
}

/// Returns the IPv4 destination of an IPv6 packet. Returns `None` if RFC 6052 does not define the
/// prefix length of the rule's destination, because the place of the IPv4 address is unknown.
///
/// With a pool, the pool's network stays, and the host bits come from the packet.
pub(crate) fn to_inet(
    packet: Ipv6Addr,
    rule: &Rule,
    af_to: &AfTo,
    chosen: Option<IpAddr>,
) -> Option<Ipv4Addr> {
    let Some(IpAddr::V4(chosen)) = chosen else {
        return extract(packet, af_to.prefix(&rule.destination.host));
    };
    let low = packet.to_bits() as u32;
    let mask = leading_bits(af_to.kept_bits());
    Some(Ipv4Addr::from_bits(chosen.to_bits() & mask | low & !mask))
}

/// Returns the IPv6 destination of an IPv4 packet. The IPv4 address is embedded in the pool's
/// address or, without a pool, behind the prefix of the source.
pub(crate) fn to_inet6(
    packet: Ipv4Addr,
    rule: &Rule,
    af_to: &AfTo,
    source: Ipv6Addr,
    chosen: Option<IpAddr>,
) -> Ipv6Addr {
    match chosen {
        Some(IpAddr::V6(chosen)) => embed(chosen, af_to.kept_bits(), packet),
        _ => embed(source, af_to.prefix(&rule.destination.host), packet),
    }
}

/// Returns the byte positions of an IPv4 address behind a prefix, `None` for other prefix lengths.
/// The ninth byte is left out (RFC 6052 section 2.2).
fn places(prefix: u8) -> Option<[usize; 4]> {
    match prefix {
        32 => Some([4, 5, 6, 7]),
        40 => Some([5, 6, 7, 9]),
        48 => Some([6, 7, 9, 10]),
        56 => Some([7, 9, 10, 11]),
        64 => Some([9, 10, 11, 12]),
        96 => Some([12, 13, 14, 15]),
        _ => None,
    }
}

fn extract(address: Ipv6Addr, prefix: u8) -> Option<Ipv4Addr> {
    let octets = address.octets();
    // longer prefixes than RFC 6052's keep their bits, which the address already has
    let places = places(prefix.min(LONGEST_PREFIX))?;
    Some(Ipv4Addr::from(places.map(|place| octets[place])))
}

fn embed(prefix: Ipv6Addr, length: u8, address: Ipv4Addr) -> Ipv6Addr {
    let mut octets = prefix.octets();
    match places(length) {
        Some(places) => {
            octets[8] = 0;
            for (place, octet) in places.into_iter().zip(address.octets()) {
                octets[place] = octet;
            }
        }
        None if length > LONGEST_PREFIX => {
            let mask = leading_bits(length - LONGEST_PREFIX);
            let low = prefix.to_bits() as u32 & mask | address.to_bits() & !mask;
            octets[12..].copy_from_slice(&low.to_be_bytes());
        }
        // no room for the address: all packets get the same destination
        None => {}
    }
    octets.into()
}

/// Returns a mask with `count` leading bits set, 32 at most.
fn leading_bits(count: u8) -> u32 {
    !u32::MAX.checked_shr(count.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, 33)
    }

    /// The table of RFC 6052 section 2.4.
    #[test]
    fn addresses_of_rfc_6052() {
        for (prefix, length, address) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
        ] {
            let (prefix, address): (Ipv6Addr, Ipv6Addr) =
                (prefix.parse().unwrap(), address.parse().unwrap());
            assert_eq!(embed(prefix, length, v4()), address, "/{length}");
            assert_eq!(extract(address, length), Some(v4()), "/{length}");
        }
    }

    #[test]
    fn prefixes_outside_rfc_6052() {
        let prefix: Ipv6Addr = "2001:db8::10.0.0.0".parse().unwrap();
        assert_eq!(embed(prefix, 104, v4()), "2001:db8::10.0.2.33".parse::<Ipv6Addr>().unwrap());
        assert_eq!(embed(prefix, 128, v4()), prefix);
        assert_eq!(embed(prefix, 80, v4()), prefix);
        assert_eq!(extract(prefix, 128), Some(Ipv4Addr::new(10, 0, 0, 0)));
        assert_eq!(extract(prefix, 80), None);
    }

    #[test]
    fn addresses_read_as_the_other_family() {
        let (v6, v4) = ("2001:db8::1".parse().unwrap(), "32.1.13.184".parse().unwrap());
        assert_eq!(read_as(Family::Inet, v6), v4);
        assert_eq!(read_as(Family::Inet6, v4), "2001:db8::".parse::<IpAddr>().unwrap());
        assert_eq!(read_as(Family::Inet6, v6), v6);
    }
}

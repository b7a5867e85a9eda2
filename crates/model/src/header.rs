//! The walk from an IP header to the transport header (pf-semantics section 4), in a packet and in
//! the packet that an ICMP error quotes.

use std::net::{Ipv4Addr, Ipv6Addr};

use skipstep_ruleset::Reason;
use skipstep_wire::protocol;

/// Maximum number of headers in a row before PF gives up.
const HEADER_LIMIT: usize = 20;

const OPTION_ROUTER_ALERT_4: u8 = 148;
const OPTION_PAD1: u8 = 0;
const OPTION_PADN: u8 = 1;
const OPTION_ROUTER_ALERT_6: u8 = 5;
const OPTION_JUMBO: u8 = 0xc2;

/// ICMPv6 types of Multicast Listener Discovery: query, report, done, version 2 report (RFC 2710,
/// RFC 3810).
const MLD: [u8; 4] = [130, 131, 132, 143];

/// The bytes of a packet that may be read, without bytes beyond its IP length.
#[derive(Clone, Copy)]
pub(crate) struct Readable<'a>(pub &'a [u8]);

impl<'a> Readable<'a> {
    /// Returns `length` bytes at `at`, or the reason `short`.
    pub(crate) fn pull(&self, at: usize, length: usize) -> Result<&'a [u8], Reason> {
        self.0.get(at..at + length).ok_or(Reason::Short)
    }

    /// Returns `N` bytes at `at`, or the reason `short`.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], Reason> {
        Ok(self.pull(at, N)?.try_into().expect("pull returns as much as it was asked for"))
    }
}

/// The end of the walk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walked {
    /// Protocol of the header at `offset`.
    pub protocol: u8,
    /// Offset of that header in bytes.
    pub offset: usize,
    /// True for IP options or extension headers that pass only with `allow-opts`.
    pub options: bool,
    /// IPv6: true if there is a fragment header, and the packet is not whole.
    pub fragment: bool,
}

/// The IP options of a packet. Router alert is accepted in IGMP and MLD.
#[derive(Default)]
struct Options {
    router_alert: bool,
    other: bool,
}

impl Options {
    fn any(&self) -> bool {
        self.router_alert || self.other
    }
}

/// The fields of an IPv4 header that the walk needs.
pub(crate) struct Ipv4Fields {
    pub header_len: usize,
    pub total_len: usize,
    pub more_fragments: bool,
    pub fragment_offset: usize,
    pub ttl: u8,
    pub protocol: u8,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

impl Ipv4Fields {
    pub(crate) fn new(header: [u8; 20]) -> Self {
        let flags = u16::from_be_bytes([header[6], header[7]]);
        Ipv4Fields {
            header_len: usize::from(header[0] & 15) * 4,
            total_len: usize::from(u16::from_be_bytes([header[2], header[3]])),
            more_fragments: flags & 0x2000 != 0,
            fragment_offset: usize::from(flags & 0x1fff) * 8,
            ttl: header[8],
            protocol: header[9],
            source: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            destination: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
        }
    }

    pub(crate) fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset > 0
    }
}

/// Walks from the IPv4 header at `at` to the transport header.
pub(crate) fn walk_ipv4(packet: Readable, at: usize, ip: &Ipv4Fields) -> Result<Walked, Reason> {
    if ip.header_len < 20 || ip.header_len > ip.total_len {
        return Err(Reason::Short);
    }
    let mut options = Options::default();
    if ip.header_len > 20 {
        walk_ipv4_options(packet.pull(at + 20, ip.header_len - 20)?, &mut options)?;
        options.other |= !options.any(); // a header full of padding is suspicious
    }
    let mut walked =
        Walked { protocol: ip.protocol, offset: at + ip.header_len, ..Walked::default() };
    if ip.protocol == protocol::IGMP {
        // RFC 1112: packets to all hosts must not be forwarded
        if ip.ttl != 1 && ip.destination == Ipv4Addr::new(224, 0, 0, 1) {
            return Err(Reason::IpOption);
        }
        options.router_alert = false;
    }
    walked.options = options.any();
    if ip.fragment_offset > 0 {
        return Ok(walked);
    }
    for _ in 0..HEADER_LIMIT {
        if walked.protocol != protocol::AH {
            return Ok(walked);
        }
        if ip.more_fragments && at + ip.total_len < walked.offset + 2 {
            return Ok(walked); // the header is in another fragment
        }
        let [next, length] = packet.array(walked.offset)?;
        walked.protocol = next;
        walked.offset += (usize::from(length) + 2) * 4;
    }
    Err(Reason::IpOption)
}

fn walk_ipv4_options(mut rest: &[u8], options: &mut Options) -> Result<(), Reason> {
    while let [kind, behind @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = behind,
            _ => {
                let length = usize::from(*behind.first().ok_or(Reason::IpOption)?);
                if length < 2 || length > rest.len() {
                    return Err(Reason::IpOption);
                }
                match *kind {
                    OPTION_ROUTER_ALERT_4 => options.router_alert = true,
                    _ => options.other = true,
                }
                rest = &rest[length..];
            }
        }
    }
    Ok(())
}

/// The fields of an IPv6 header that the walk needs.
pub(crate) struct Ipv6Fields {
    pub payload_len: usize,
    pub next_header: u8,
    pub hop_limit: u8,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
}

impl Ipv6Fields {
    pub(crate) fn new(header: [u8; 40]) -> Self {
        let address = |at: usize| {
            let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
            Ipv6Addr::from(octets)
        };
        Ipv6Fields {
            payload_len: usize::from(u16::from_be_bytes([header[4], header[5]])),
            next_header: header[6],
            hop_limit: header[7],
            source: address(8),
            destination: address(24),
        }
    }
}

/// Walks from the IPv6 header at `at`, over extension headers, to the transport header.
pub(crate) fn walk_ipv6(packet: Readable, at: usize, ip: &Ipv6Fields) -> Result<Walked, Reason> {
    let mut protocol = ip.next_header;
    let mut offset = at + 40;
    let end = offset + ip.payload_len;
    let mut options = Options::default();
    let mut jumbo = false;
    let mut fragment_header = None; // offset of the header, unless the packet is whole
    let mut fragment_headers = 0;
    let mut routing_headers = 0;

    // A fragment may end within a header: then the walk ends at its fragment header.
    let bare = |at: usize, options: &Options| Walked {
        protocol: protocol::FRAGMENT,
        offset: at,
        options: options.any(),
        fragment: true,
    };

    for count in 0..HEADER_LIMIT {
        match protocol {
            protocol::ROUTING | protocol::DESTINATION_OPTIONS => options.other = true,
            protocol::HOP_BY_HOP => {
                let [_, length] = packet.array(offset)?;
                let options_end = offset + (usize::from(length) + 1) * 8;
                walk_ipv6_options(packet, offset + 2, options_end, ip, &mut options, &mut jumbo)?;
                options.other |= !options.any(); // as in IPv4
            }
            _ => {}
        }
        match protocol {
            protocol::FRAGMENT => {
                fragment_headers += 1;
                if fragment_headers > 1 {
                    return Err(Reason::Fragment);
                }
                let header: [u8; 8] = packet.array(offset)?;
                let place = u16::from_be_bytes([header[2], header[3]]);
                if place & 0xfff8 != 0 {
                    return Ok(bare(offset, &options));
                }
                if place & 1 != 0 {
                    fragment_header = Some(offset);
                }
                offset += 8;
                protocol = header[0];
            }
            protocol::ROUTING
            | protocol::HOP_BY_HOP
            | protocol::AH
            | protocol::DESTINATION_OPTIONS => {
                if protocol == protocol::ROUTING {
                    routing_headers += 1;
                    if routing_headers > 1 {
                        return Err(Reason::IpOption);
                    }
                    if let Some(fragment) = fragment_header.filter(|_| end < offset + 4) {
                        return Ok(bare(fragment, &options));
                    }
                    let [_, _, kind, _] = packet.array(offset)?;
                    if kind == 0 {
                        return Err(Reason::IpOption); // RFC 5095
                    }
                }
                if protocol == protocol::HOP_BY_HOP && count > 0 {
                    return Err(Reason::IpOption); // RFC 8200 section 4.1
                }
                if let Some(fragment) = fragment_header.filter(|_| end < offset + 2) {
                    return Ok(bare(fragment, &options));
                }
                let [next, length] = packet.array(offset)?;
                if protocol == protocol::HOP_BY_HOP && jumbo {
                    return Err(Reason::IpOption); // jumbograms are not supported, as in OpenBSD
                }
                offset += match protocol {
                    protocol::AH => (usize::from(length) + 2) * 4,
                    _ => (usize::from(length) + 1) * 8,
                };
                protocol = next;
            }
            protocol::ICMP6 => {
                if let Some(fragment) = fragment_header.filter(|_| end < offset + 8) {
                    return Ok(bare(fragment, &options));
                }
                if MLD.contains(&packet.pull(offset, 8)?[0]) {
                    if ip.hop_limit != 1 || !ip.source.is_unicast_link_local() {
                        return Err(Reason::IpOption);
                    }
                    options.router_alert = false;
                }
                break;
            }
            protocol::TCP | protocol::UDP => {
                let least = if protocol == protocol::TCP { 20 } else { 8 };
                if let Some(fragment) = fragment_header.filter(|_| end < offset + least) {
                    return Ok(bare(fragment, &options));
                }
                break;
            }
            _ => break,
        }
        if count + 1 == HEADER_LIMIT {
            return Err(Reason::IpOption);
        }
    }
    Ok(Walked { protocol, offset, options: options.any(), fragment: fragment_header.is_some() })
}

fn walk_ipv6_options(
    packet: Readable,
    mut at: usize,
    end: usize,
    ip: &Ipv6Fields,
    options: &mut Options,
    jumbo: &mut bool,
) -> Result<(), Reason> {
    while at < end {
        if packet.pull(at, 1)?[0] == OPTION_PAD1 {
            at += 1;
            continue;
        }
        let [kind, length] = packet.array(at)?;
        if at + 2 + usize::from(length) > end {
            return Err(Reason::IpOption);
        }
        match kind {
            OPTION_PADN => {}
            OPTION_ROUTER_ALERT_6 => options.router_alert = true,
            OPTION_JUMBO => {
                options.other = true;
                if *jumbo || ip.payload_len != 0 {
                    return Err(Reason::IpOption);
                }
                let option: [u8; 6] = packet.array(at)?;
                if u32::from_be_bytes([option[2], option[3], option[4], option[5]]) < 65535 {
                    return Err(Reason::IpOption);
                }
                *jumbo = true;
            }
            _ => options.other = true,
        }
        at += 2 + usize::from(length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{Icmp, Ip, Udp, ipv4, ipv6};

    fn walk(packet: &[u8]) -> Result<Walked, Reason> {
        let readable = Readable(packet);
        match packet[0] >> 4 {
            4 => walk_ipv4(readable, 0, &Ipv4Fields::new(readable.array(0)?)),
            _ => walk_ipv6(readable, 0, &Ipv6Fields::new(readable.array(0)?)),
        }
    }

    fn v4() -> Ip {
        ipv4([10, 0, 0, 1], [10, 0, 0, 2])
    }

    fn v6() -> Ip {
        ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
    }

    #[test]
    fn ipv4_options() {
        let udp = Udp::new(1, 2);
        assert!(!walk(&v4().udp(&udp)).unwrap().options);
        assert!(walk(&v4().options(&[148, 4, 0, 0]).udp(&udp)).unwrap().options, "router alert");
        assert!(walk(&v4().options(&[1, 1, 1, 0]).udp(&udp)).unwrap().options, "only padding");
        assert_eq!(
            walk(&v4().options(&[7, 1, 0, 0]).udp(&udp)).unwrap_err(),
            Reason::IpOption,
            "length 1"
        );
        assert_eq!(
            walk(&v4().options(&[7, 9, 0, 0]).udp(&udp)).unwrap_err(),
            Reason::IpOption,
            "too long"
        );
        assert_eq!(
            walk(&v4().options(&[1, 1, 1, 7]).udp(&udp)).unwrap_err(),
            Reason::IpOption,
            "no length"
        );
    }

    #[test]
    fn igmp_may_have_router_alert_but_not_go_far() {
        let igmp = |ttl| {
            ipv4([10, 0, 0, 1], [224, 0, 0, 1]).ttl(ttl).options(&[148, 4, 0, 0]).raw(2, &[0; 8])
        };
        assert!(!walk(&igmp(1)).unwrap().options);
        assert_eq!(walk(&igmp(2)).unwrap_err(), Reason::IpOption);
    }

    #[test]
    fn ah_is_walked_over_in_both_families() {
        let ah = [4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (ip, offset) in [(v4(), 20), (v6(), 40)] {
            let walked = walk(&ip.extension(protocol::AH, &ah).udp(&Udp::new(1, 2))).unwrap();
            assert_eq!(
                (walked.protocol, walked.offset, walked.options),
                (protocol::UDP, offset + 24, false)
            );
        }
    }

    #[test]
    fn ipv6_extension_headers() {
        let echo = Icmp::new(128, 0);
        assert!(walk(&v6().hop_by_hop(&[5, 2, 0, 0]).icmp(&echo)).unwrap().options);
        assert!(
            walk(&v6().hop_by_hop(&[1, 4, 0, 0, 0, 0]).icmp(&echo)).unwrap().options,
            "only padding"
        );
        assert!(walk(&v6().routing(2, &[]).icmp(&echo)).unwrap().options);
        assert_eq!(walk(&v6().routing(0, &[]).icmp(&echo)).unwrap_err(), Reason::IpOption);
        assert_eq!(
            walk(&v6().routing(2, &[]).routing(2, &[]).icmp(&echo)).unwrap_err(),
            Reason::IpOption
        );
        let late = v6().destination_options(&[]).hop_by_hop(&[]);
        assert_eq!(
            walk(&late.icmp(&echo)).unwrap_err(),
            Reason::IpOption,
            "hop-by-hop must be first"
        );
        let many = (0..25).fold(v6(), |ip, _| ip.destination_options(&[]));
        assert_eq!(walk(&many.icmp(&echo)).unwrap_err(), Reason::IpOption);
    }

    #[test]
    fn ipv6_fragments() {
        let echo = Icmp::new(128, 0);
        let atomic = walk(&v6().fragment(0, false).icmp(&echo)).unwrap();
        assert_eq!((atomic.fragment, atomic.protocol), (false, protocol::ICMP6));
        let first = walk(&v6().fragment(0, true).icmp(&echo)).unwrap();
        assert_eq!((first.fragment, first.protocol), (true, protocol::ICMP6));
        let later = walk(&v6().fragment(8, false).icmp(&echo)).unwrap();
        assert_eq!((later.fragment, later.protocol), (true, protocol::FRAGMENT));
        let cut = walk(&v6().fragment(0, true).raw(protocol::TCP, &[0; 8])).unwrap();
        assert_eq!((cut.protocol, cut.offset), (protocol::FRAGMENT, 40));
        let twice = v6().fragment(0, true).fragment(0, true);
        assert_eq!(walk(&twice.icmp(&echo)).unwrap_err(), Reason::Fragment);
    }

    #[test]
    fn listener_discovery_stays_on_the_link() {
        let link_local =
            |hops| ipv6([0xfe80, 0, 0, 0, 0, 0, 0, 5], [0xff02, 0, 0, 0, 0, 0, 0, 1]).ttl(hops);
        let report =
            |ip: Ip| ip.hop_by_hop(&[5, 2, 0, 0]).icmp(&Icmp::new(131, 0).payload(&[0; 16]));
        assert!(!walk(&report(link_local(1))).unwrap().options);
        assert_eq!(walk(&report(link_local(2))).unwrap_err(), Reason::IpOption);
        assert_eq!(walk(&report(v6().ttl(1))).unwrap_err(), Reason::IpOption);
    }
}

//! Packets that cross from one family to the other (`af-to`, pf-semantics sections 10 and 11). The
//! transport header, and the quote of an ICMP error, change when the state is known, the IP header
//! when the packet leaves.

use std::net::{IpAddr, Ipv6Addr};

use skipstep_ruleset::Family;
use skipstep_wire::{checksum, protocol};

use crate::af_to::other_protocol;
use crate::fate::Packet;
use crate::icmp::{self, Mapping};
use crate::icmp_convert::{self, Untranslatable};
use crate::icmp_error::{Quoted, QuotedTransport};
use crate::key::Ends;
use crate::packet::{Descriptor, Transport};
use crate::reply::Undelivered;
use crate::translate::{octets, transport_checksum};
use crate::world::World;

/// Highest hop limit of a converted packet, and its hop limit if the packet had none.
const HOP_LIMIT: u8 = 64;

/// The MTU in bytes that each IPv6 link has at least (RFC 8200 section 5).
const MIN_MTU: usize = 1280;

/// Bytes by which an IPv6 header is longer than an IPv4 header.
const LONGER: usize = 20;

/// "Don't fragment", in the seventh byte of an IPv4 header.
const DF: u8 = 0x40;

/// Writes ports, or type and id, of the other family to a packet's transport header. `id` is the
/// new ICMP id; PF sets it in the first packet of a state only if that is an echo. Fails if the
/// other family lacks the ICMP message.
pub(crate) fn transport(
    packet: &mut Descriptor,
    ends: &Ends,
    id: Option<u16>,
) -> Result<(), Untranslatable> {
    let at = packet.offset;
    let sum = transport_checksum(packet);
    match &packet.transport {
        Transport::Tcp(_) | Transport::Udp { .. } => {
            sum.replace(&mut packet.bytes, at, ends.source.1.to_be_bytes());
            sum.replace(&mut packet.bytes, at + 2, ends.destination.1.to_be_bytes());
        }
        Transport::Icmp(_) | Transport::Icmp6(_) => {
            convert_icmp(packet, at)?;
            if let Some(id) = id {
                sum.replace(&mut packet.bytes, at + 4, id.to_be_bytes());
            }
        }
        Transport::Sctp { .. } | Transport::Fragment | Transport::Other => {}
    }
    Ok(())
}

/// Converts the ICMP message at `at`, the packet's own or one that it quotes, to the other family.
fn convert_icmp(packet: &mut Descriptor, at: usize) -> Result<(), Untranslatable> {
    let header: [u8; 8] = packet.bytes[at..at + 8].try_into().map_err(|_| Untranslatable)?;
    let converted = match packet.family {
        Family::Inet => icmp_convert::to_inet6(header)?,
        Family::Inet6 => icmp_convert::to_inet(header)?,
    };
    let sum = transport_checksum(packet);
    sum.replace_block(&mut packet.bytes, at, &converted[..2]);
    sum.replace_block(&mut packet.bytes, at + 4, &converted[4..]);
    Ok(())
}

/// Converts an ICMP error, and the packet that it quotes, to the other family. `ends` are the
/// addresses and ports of the error; the quoted packet has them reversed.
pub(crate) fn error(
    packet: &mut Descriptor,
    quoted: &Quoted,
    ends: &Ends,
    world: &World,
) -> Result<(), Untranslatable> {
    // the quote ends within its headers
    if packet.total_len < quoted.offset {
        return Err(Untranslatable);
    }
    convert_icmp(packet, packet.offset)?;
    let sum = transport_checksum(packet);
    let old = packet.bytes[quoted.at..quoted.offset].to_vec();
    let (length, ttl) = match packet.family {
        Family::Inet => (usize::from(u16::from_be_bytes([old[2], old[3]])), old[8]),
        Family::Inet6 => (usize::from(u16::from_be_bytes([old[4], old[5]])) + 40, old[7]),
    };
    let new = ip_header(
        (ends.destination.0, ends.source.0),
        other_protocol(quoted.protocol),
        length.wrapping_sub(old.len()) as u16,
        (0, ttl),
        world,
    );
    sum.exchange(&mut packet.bytes, &old, &new);
    let offset = quoted.at + new.len();
    packet.bytes.splice(quoted.at..quoted.offset, new.iter().copied());
    if packet.family == Family::Inet6 {
        // the pseudo header contains the length
        let length = |total: usize| ((total - packet.offset) as u16).to_be_bytes();
        let (before, after) =
            (length(packet.total_len), length(packet.total_len + new.len() - old.len()));
        sum.exchange(&mut packet.bytes, &before, &after);
    }
    packet.total_len = packet.total_len + new.len() - old.len();

    let (source_port, destination_port) = (ends.destination.1, ends.source.1);
    match &quoted.transport {
        QuotedTransport::Tcp { .. } | QuotedTransport::Udp { .. } => {
            sum.replace(&mut packet.bytes, offset, source_port.to_be_bytes());
            sum.replace(&mut packet.bytes, offset + 2, destination_port.to_be_bytes());
        }
        QuotedTransport::Icmp(message) => {
            let mapping: Mapping = icmp::mapping(packet.family, message);
            convert_icmp(packet, offset)?;
            if mapping.is_echo(packet.family) {
                let id = if mapping.reply { destination_port } else { source_port };
                sum.replace(&mut packet.bytes, offset + 4, id.to_be_bytes());
            }
        }
        QuotedTransport::Sctp { .. } | QuotedTransport::Other => {}
    }
    Ok(())
}

/// Puts the sender of an ICMP error into the source of the ICMPv6 error, in place of the quoted
/// packet's destination. So traceroute shows routers behind NAT64.
pub(crate) fn name_sender(ends: &mut Ends, packet: &Descriptor) {
    if let (IpAddr::V6(v6), IpAddr::V4(sender)) = (ends.source.0, packet.source) {
        let upper = v6.to_bits() & !u128::from(u32::MAX);
        ends.source.0 = Ipv6Addr::from_bits(upper | u128::from(sender.to_bits())).into();
    }
}

/// Returns the maximum length in bytes of the fragments that a converted packet leaves in, by a
/// link of this MTU; `None` if it leaves whole.
///
/// Received fragments may leave as fragments. RFC 7915 (sections 4.1 and 5.1) lets the translator
/// fragment other packets. A sender does not shorten an IPv6 packet of [`MIN_MTU`] bytes or less
/// (RFC 8200 section 5). A sender of IPv4 without DF learns no MTU, so its packets leave in
/// fragments that each IPv6 link takes.
///
/// # Errors
///
/// Fails if the packet is too long and must not be fragmented; the error has the MTU as the sender
/// counts it.
// Differs from OpenBSD: linux.md, "Sizes in the other family"
pub(crate) fn fit(
    packet: &Descriptor,
    input: &Packet,
    mtu: usize,
) -> Result<Option<usize>, Undelivered> {
    let mtu = mtu.min(0xffff);
    let behind = packet.total_len - packet.offset;
    match packet.family {
        Family::Inet if 40 + behind <= mtu => Ok(None),
        Family::Inet if packet.bytes[6] & DF == 0 => Ok(Some(MIN_MTU)),
        Family::Inet => Err(Undelivered::TooBig((mtu - LONGER) as u32)),
        Family::Inet6 if 20 + behind <= mtu => Ok(None),
        Family::Inet6 => {
            let longest = match input.carried.fragmentation {
                Some(how) if how.longest() > MIN_MTU => how.longest() - LONGER - 8,
                None if skipstep_wire::ip_length(&input.bytes) > MIN_MTU => {
                    return Err(Undelivered::TooBig((mtu + LONGER) as u32));
                }
                _ => MIN_MTU - LONGER,
            };
            Ok(Some(longest.min(mtu)))
        }
    }
}

/// Replaces the packet's IP header and its options with a header of the other family.
pub(crate) fn network(packet: &mut Descriptor, ends: &Ends, world: &World) {
    let length = (packet.total_len - packet.offset) as u16;
    let sum = transport_checksum(packet);
    let protocol = other_protocol(packet.protocol);
    let old = pseudo_header(packet.protocol, (packet.source, packet.destination), length);
    let new = pseudo_header(protocol, (ends.source.0, ends.destination.0), length);
    sum.exchange(&mut packet.bytes, &old, &new);
    let header = ip_header(
        (ends.source.0, ends.destination.0),
        protocol,
        length,
        (packet.tos, packet.ttl),
        world,
    );
    packet.bytes.splice(..packet.offset, header.iter().copied());
    packet.offset = header.len();
    packet.total_len = header.len() + usize::from(length);
    packet.family = packet.family.other();
    (packet.protocol, packet.source, packet.destination) =
        (protocol, ends.source.0, ends.destination.0);
    sum_up_datagram(packet);
}

/// Adds the checksum that IPv6 requires of UDP (RFC 8200 section 8.1).
fn sum_up_datagram(packet: &mut Descriptor) {
    let at = packet.offset + 6;
    let is_udp = matches!(packet.transport, Transport::Udp { .. });
    if is_udp && packet.family == Family::Inet6 && packet.bytes[at..at + 2] == [0, 0] {
        let datagram = &mut packet.bytes[packet.offset..packet.total_len];
        checksum::fix_transport(packet.source, packet.destination, protocol::UDP, datagram);
    }
}

/// Returns the part of the pseudo header that a change of family changes. For TCP and UDP these are
/// only the addresses.
fn pseudo_header(protocol: u8, (source, destination): (IpAddr, IpAddr), length: u16) -> Vec<u8> {
    let mut header = Vec::new();
    if protocol == protocol::ICMP {
        return header;
    }
    header.extend(octets(source));
    header.extend(octets(destination));
    if protocol == protocol::ICMP6 {
        header.extend(length.to_be_bytes());
        header.extend([0, protocol]);
    }
    header
}

/// Returns an IP header for `length` bytes of payload, in the family of `source`.
fn ip_header(
    (source, destination): (IpAddr, IpAddr),
    protocol: u8,
    length: u16,
    (tos, ttl): (u8, u8),
    world: &World,
) -> Vec<u8> {
    let mut header = Vec::new();
    if source.is_ipv4() {
        header.extend([0x45, tos]);
        header.extend(length.wrapping_add(20).to_be_bytes());
        header.extend(world.random_id().to_be_bytes());
        header.extend([0x40, 0, ttl, protocol, 0, 0]);
        header.extend(octets(source));
        header.extend(octets(destination));
        checksum::fix_ipv4_header(&mut header);
    } else {
        let hops = if ttl == 0 { HOP_LIMIT } else { ttl.min(HOP_LIMIT) };
        header.extend([0x60 | tos >> 4, tos << 4, 0, 0]);
        header.extend(length.to_be_bytes());
        header.extend([protocol, hops]);
        header.extend(octets(source));
        header.extend(octets(destination));
    }
    header
}

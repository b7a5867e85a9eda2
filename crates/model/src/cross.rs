//! Packets that cross from one family to the other (`af-to`, pf-semantics sections 10 and 11): the
//! transport header and what an ICMP error quotes are changed when the state is known, the IP
//! header when the packet goes on.

use std::net::{IpAddr, Ipv6Addr};

use skipstep_ruleset::Family;
use skipstep_wire::{checksum, protocol};

use crate::af_to::other_protocol;
use crate::fate::Packet;
use crate::icmp::{self, Mapping};
use crate::icmp_convert::{self, Untranslatable};
use crate::icmp_error::{Quoted, QuotedTransport};
use crate::packet::{Descriptor, Transport};
use crate::reply::Undelivered;
use crate::translate::{Ends, octets, transport_checksum};
use crate::world::World;

/// The hop limit of a packet that had a higher one, or none.
const HOP_LIMIT: u8 = 64;

/// The MTU that every IPv6 link has (RFC 8200 section 5).
const MIN_MTU: usize = 1280;

/// By so many bytes is an IPv6 header longer than one of IPv4.
const LONGER: usize = 20;

/// "Don't fragment", in the seventh byte of an IPv4 header.
const DF: u8 = 0x40;

/// Writes ports, or type and id, of the other side to a packet's transport header. PF writes the id
/// of a packet that makes a state only if it is an echo; `id` says which.
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

/// Makes a message of the other family of the one at `at`, that of the packet or one that it
/// quotes.
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

/// Makes an ICMP error of the other family, about the packet that it quotes in that family.
/// `ends` are those of the error; the quoted packet went the other way.
pub(crate) fn error(
    packet: &mut Descriptor,
    quoted: &Quoted,
    ends: &Ends,
    world: &World,
) -> Result<(), Untranslatable> {
    // headers of a quote that ends before they do
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
        // the pseudo header has the length in it
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

/// The source of an ICMP error that becomes one of ICMPv6: who sent it, in the place of the one
/// whom the quoted packet was for. So traceroute shows routers behind NAT64.
pub(crate) fn name_sender(ends: &mut Ends, packet: &Descriptor) {
    if let (IpAddr::V6(v6), IpAddr::V4(sender)) = (ends.source.0, packet.source) {
        let upper = v6.to_bits() & !u128::from(u32::MAX);
        ends.source.0 = Ipv6Addr::from_bits(upper | u128::from(sender.to_bits())).into();
    }
}

/// Returns how long the fragments may be that the packet leaves in when it has crossed, by a link
/// of this MTU; `None` if it leaves whole. Fragments that came may leave as such, and RFC 7915
/// (sections 4.1 and 5.1) has the translator make some: an IPv6 packet of [`MIN_MTU`] bytes or less
/// is not made shorter by its sender (RFC 8200 section 5), and whoever sends IPv4 without DF hears
/// of no MTU on the way, so those leave in fragments that every IPv6 link takes.
///
/// # Errors
///
/// The packet is too long and must not be fragmented: the MTU as its sender counts it.
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

/// Puts a header of the other family in the place of the packet's own, with all its options.
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

/// IPv6 has no UDP without a checksum (RFC 8200 section 8.1).
fn sum_up_datagram(packet: &mut Descriptor) {
    let at = packet.offset + 6;
    let is_udp = matches!(packet.transport, Transport::Udp { .. });
    if is_udp && packet.family == Family::Inet6 && packet.bytes[at..at + 2] == [0, 0] {
        let datagram = &packet.bytes[packet.offset..packet.total_len];
        let sum = checksum::transport(packet.source, packet.destination, protocol::UDP, datagram);
        let sum = if sum == 0 { 0xffff } else { sum };
        packet.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// What a checksum covers besides the transport header. Between TCP and TCP or UDP and UDP only the
/// addresses differ.
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

/// A header for `length` bytes behind it.
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
        let sum = checksum::internet(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
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

//! ICMP errors, which belong to the state of the packet that they quote (pf-semantics section 10).

use std::net::IpAddr;

use skipstep_ruleset::{Family, Reason};
use skipstep_views::Peer;
use skipstep_wire::protocol;

use crate::header::{self, Ipv4Fields, Ipv6Fields, Readable, Walked};
use crate::packet::{self, Descriptor, Icmp};
use crate::state::State;

/// The packet that an error quotes, as far as its first bytes say.
#[derive(Debug, Clone)]
pub(crate) struct Quoted {
    pub protocol: u8,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Offset of its IP header in the error, in bytes.
    pub at: usize,
    /// Offset of its transport header in the error, in bytes.
    pub offset: usize,
    pub transport: QuotedTransport,
}

/// The quoted transport header, of which only the first 8 bytes are sure to be there.
#[derive(Debug, Clone)]
pub(crate) enum QuotedTransport {
    Tcp {
        source_port: u16,
        destination_port: u16,
        seq: u32,
    },
    Udp {
        source_port: u16,
        destination_port: u16,
    },
    /// SCTP, whose ports are read only if rules name ports of SCTP.
    Sctp {
        source_port: u16,
        destination_port: u16,
    },
    Icmp(Icmp),
    Other,
}

/// Reads the packet that an ICMP or ICMPv6 error quotes behind its header of 8 bytes. Fails with
/// the reason if the quote is damaged, a later fragment, or not from the error's receiver.
pub(crate) fn quoted(packet: &Descriptor, sctp_ports: bool) -> Result<Quoted, Reason> {
    let readable = packet.readable();
    let at = packet.offset + 8;
    let (walked, source, destination): (Walked, IpAddr, IpAddr) = match packet.family {
        Family::Inet => {
            let ip = Ipv4Fields::new(readable.array(at)?);
            if ip.fragment_offset > 0 {
                return Err(Reason::Fragment);
            }
            (header::walk_ipv4(readable, at, &ip)?, ip.source.into(), ip.destination.into())
        }
        Family::Inet6 => {
            let ip = Ipv6Fields::new(readable.array(at)?);
            (header::walk_ipv6(readable, at, &ip)?, ip.source.into(), ip.destination.into())
        }
    };
    // the error must go to the sender of the quoted packet
    if source != packet.destination {
        return Err(Reason::StateMismatch);
    }
    let Walked { protocol, offset, .. } = walked;
    let transport = match protocol {
        protocol::SCTP if !sctp_ports => QuotedTransport::Other,
        _ => quoted_transport(readable, protocol, offset, packet.family)?,
    };
    Ok(Quoted { protocol, source, destination, at, offset, transport })
}

fn quoted_transport(
    packet: Readable,
    protocol: u8,
    offset: usize,
    family: Family,
) -> Result<QuotedTransport, Reason> {
    let ports = |bytes: [u8; 8]| {
        (u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]]))
    };
    match (protocol, family) {
        (protocol::TCP, _) => {
            let bytes: [u8; 8] = packet.array(offset)?;
            let (source_port, destination_port) = ports(bytes);
            let seq = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            Ok(QuotedTransport::Tcp { source_port, destination_port, seq })
        }
        (protocol::UDP, _) => {
            let (source_port, destination_port) = ports(packet.array(offset)?);
            Ok(QuotedTransport::Udp { source_port, destination_port })
        }
        (protocol::SCTP, _) => {
            let (source_port, destination_port) = ports(packet.array(offset)?);
            Ok(QuotedTransport::Sctp { source_port, destination_port })
        }
        (protocol::ICMP, Family::Inet) | (protocol::ICMP6, Family::Inet6) => {
            packet::parse_icmp(packet, offset).map(QuotedTransport::Icmp)
        }
        (protocol::ICMP | protocol::ICMP6, _) => Err(Reason::Normalize),
        _ => Ok(QuotedTransport::Other),
    }
}

/// Returns true if a quoted segment belongs to its connection: its sequence number is in the window
/// of its sender, which now receives the error. Sloppy states always return true.
pub(crate) fn fits_connection(state: &mut State, error: &Descriptor, seq: u32) -> bool {
    if state.sloppy {
        return true;
    }
    let (to, from): (&mut Peer, &mut Peer) = state.peers_mut(state.direction_of(error));
    let shift = if from.wscale != 0 && to.wscale != 0 { to.shift() } else { 0 };
    let seq = seq.wrapping_sub(from.seqdiff);
    let oldest = from.seqlo.wrapping_sub(u32::from(to.max_win) << shift);
    from.seqhi.wrapping_sub(seq) as i32 >= 0 && seq.wrapping_sub(oldest) as i32 >= 0
}

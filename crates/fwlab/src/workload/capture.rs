//! Packets of a pcap file, as far as conversations are made of them: of Ethernet, of Linux' cooked
//! captures, of IP without anything before it, and of pf's log.
//! <https://www.tcpdump.org/manpages/pcap-savefile.5.txt>

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use thiserror::Error;

use crate::raw::frame::Transport;

/// Magic numbers of files with microseconds and with nanoseconds, and of the other format.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const PCAPNG: u32 = 0x0a0d_0d0a;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Longer records there are not: libpcap's `MAXIMUM_SNAPLEN`.
const LONGEST: usize = 262_144;

/// Bytes of what stands before a packet in pf's log.
const PFLOG_HEADER: usize = 100;

/// Why a file is of no use.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CaptureError {
    /// It is something else.
    #[error("no pcap file: it begins otherwise")]
    Other,
    /// It is of the newer format.
    #[error("a pcapng file: `editcap -F pcap old new` makes a pcap file of it")]
    NewerFormat,
    /// Nobody knows where its packets begin.
    #[error(
        "link type {0} is not known: Ethernet (1), raw IP (12, 101), Linux cooked (113, 276) and pflog (117) are"
    )]
    Link(u32),
    /// A record is longer than one can be.
    #[error("the record at byte {0} is longer than one can be: the file is damaged")]
    Record(usize),
}

/// A packet of TCP or UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    /// When it was seen, since 1970.
    pub time: Duration,
    pub transport: Transport,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Bytes of payload that it had, however many are in the file.
    pub bytes: u64,
    /// Sequence number of the first of them, of TCP.
    pub sequence: Option<u32>,
    /// Whether it asks for a connection: SYN without ACK.
    pub begins: bool,
    /// Whether it ends one: FIN or RST.
    pub ends: bool,
}

/// The packets of a file, and how many others there are: of other protocols, fragments, and such
/// that were cut off too early. A record that ends with the file is left out, as who writes one may
/// be killed.
pub(super) fn packets(file: &[u8]) -> Result<(Vec<Packet>, u64), CaptureError> {
    let magic = file.first_chunk().map(|four| u32::from_le_bytes(*four));
    let (is_big, fraction) = match magic.ok_or(CaptureError::Other)? {
        MICROSECONDS => (false, 1000),
        NANOSECONDS => (false, 1),
        PCAPNG => return Err(CaptureError::NewerFormat),
        other => match other.swap_bytes() {
            MICROSECONDS => (true, 1000),
            NANOSECONDS => (true, 1),
            _ => return Err(CaptureError::Other),
        },
    };
    let number = |at: usize| {
        let four: [u8; 4] = *file.get(at..)?.first_chunk()?;
        Some(if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    };
    // what is above says how the checksum of frames is written
    let link = number(20).ok_or(CaptureError::Other)? & 0xffff;
    if !matches!(link, 1 | 12 | 101 | 113 | 117 | 276) {
        return Err(CaptureError::Link(link));
    }
    let (mut packets, mut others, mut at) = (Vec::new(), 0, FILE_HEADER);
    while let (Some(seconds), Some(parts), Some(length)) =
        (number(at), number(at + 4), number(at + 8))
    {
        let length = length as usize;
        if length > LONGEST {
            return Err(CaptureError::Record(at));
        }
        let begin = at + RECORD_HEADER;
        let Some(bytes) = file.get(begin..begin + length) else { break };
        let time =
            Duration::from_secs(seconds.into()) + Duration::from_nanos(u64::from(parts) * fraction);
        match ip(link, bytes).and_then(|packet| of_ip(time, packet)) {
            Some(packet) => packets.push(packet),
            None => others += 1,
        }
        at = begin + length;
    }
    Ok((packets, others))
}

/// Where the IP packet of a record begins.
fn ip(link: u32, bytes: &[u8]) -> Option<&[u8]> {
    match link {
        1 => LaxSlicedPacket::from_ethernet(bytes).ok()?.ether_payload().map(|it| it.payload),
        113 => bytes.get(16..),
        117 => bytes.get(PFLOG_HEADER..),
        276 => bytes.get(20..),
        _ => Some(bytes),
    }
}

fn of_ip(time: Duration, bytes: &[u8]) -> Option<Packet> {
    let sliced = LaxSlicedPacket::from_ip(bytes).ok()?;
    let (source, destination, length, is_fragment): (IpAddr, IpAddr, usize, bool) =
        match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(v4) => {
                let header = v4.header();
                let ends = (header.source_addr().into(), header.destination_addr().into());
                (ends.0, ends.1, header.total_len().into(), v4.is_payload_fragmented())
            }
            LaxNetSlice::Ipv6(v6) => {
                let header = v6.header();
                let ends = (header.source_addr().into(), header.destination_addr().into());
                let length = 40 + usize::from(header.payload_length());
                (ends.0, ends.1, length, v6.is_payload_fragmented())
            }
            _ => return None,
        };
    // what was cut off was payload
    let missing = length.saturating_sub(bytes.len());
    let (transport, ports, payload, sequence, begins, ends) = match sliced.transport.as_ref()? {
        _ if is_fragment => return None,
        TransportSlice::Tcp(tcp) => {
            let ports = (tcp.source_port(), tcp.destination_port());
            let begins = tcp.syn() && !tcp.ack();
            let sequence = Some(tcp.sequence_number());
            let ends = tcp.fin() || tcp.rst();
            (Transport::Tcp, ports, tcp.payload().len(), sequence, begins, ends)
        }
        TransportSlice::Udp(udp) => {
            let ports = (udp.source_port(), udp.destination_port());
            (Transport::Udp, ports, udp.payload().len(), None, false, false)
        }
        _ => return None,
    };
    Some(Packet {
        time,
        transport,
        from: (source, ports.0).into(),
        to: (destination, ports.1).into(),
        bytes: (payload + missing) as u64,
        sequence,
        begins,
        ends,
    })
}

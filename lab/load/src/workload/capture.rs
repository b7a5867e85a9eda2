//! The TCP and UDP packets of a pcap file. Link types are Ethernet, Linux cooked captures, raw IP
//! and pf's log.
//! <https://www.tcpdump.org/manpages/pcap-savefile.5.txt>

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use fwlab_net::transport::Transport;
use skipstep_wire::pcap::{FileHeader, MAX_CAPTURED, PCAPNG, PFLOG, PFLOG_HEADER, RecordHeader};
use thiserror::Error;

/// The reason why a file cannot be read as a capture.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CaptureError {
    /// The file is no pcap file.
    #[error("not a pcap file")]
    Other,
    /// The file is in the pcapng format.
    #[error("a pcapng file: convert it with `editcap -F pcap old new`")]
    NewerFormat,
    /// The link type is unknown, so the beginning of its packets is unknown.
    #[error(
        "unknown link type {0}: supported are Ethernet (1), raw IP (12, 101), Linux cooked (113, \
         276) and pflog (117)"
    )]
    Link(u32),
    /// The record at this byte claims an impossible length.
    #[error("the record at byte {0} exceeds the maximum length: the file is damaged")]
    Record(usize),
}

/// A TCP or UDP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    /// Time of capture since 1970.
    pub time: Duration,
    pub transport: Transport,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Bytes of payload on the wire, also if the capture has fewer.
    pub bytes: u64,
    /// TCP sequence number of the first byte.
    pub sequence: Option<u32>,
    /// True if the packet begins a connection: SYN without ACK.
    pub begins: bool,
    /// True if the packet ends a connection: FIN or RST.
    pub ends: bool,
}

/// Returns the packets of a file, and the number of its other packets: other protocols, fragments,
/// and packets cut off too early. An incomplete last record is skipped, because the program that
/// captured may have been killed.
pub(super) fn packets(file: &[u8]) -> Result<(Vec<Packet>, u64), CaptureError> {
    if file.starts_with(&PCAPNG) {
        return Err(CaptureError::NewerFormat);
    }
    let header = FileHeader::parse(file).ok_or(CaptureError::Other)?;
    // without the length of the frame check sequence
    let link = header.link & 0xffff;
    if !matches!(link, 1 | 12 | 101 | 113 | PFLOG | 276) {
        return Err(CaptureError::Link(link));
    }
    let (mut packets, mut others, mut at) = (Vec::new(), 0, FileHeader::BYTES);
    while let Some(record) = file.get(at..).and_then(|rest| header.record(rest)) {
        let length = record.captured as usize;
        if length > MAX_CAPTURED {
            return Err(CaptureError::Record(at));
        }
        let begin = at + RecordHeader::BYTES;
        let Some(bytes) = file.get(begin..begin + length) else { break };
        match ip(link, bytes).and_then(|packet| of_ip(record.time, packet)) {
            Some(packet) => packets.push(packet),
            None => others += 1,
        }
        at = begin + length;
    }
    Ok((packets, others))
}

/// Returns the IP packet of a record.
fn ip(link: u32, bytes: &[u8]) -> Option<&[u8]> {
    match link {
        1 => LaxSlicedPacket::from_ethernet(bytes).ok()?.ether_payload().map(|it| it.payload),
        113 => bytes.get(16..),
        PFLOG => bytes.get(PFLOG_HEADER..),
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
    // the bytes that were cut off are payload
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

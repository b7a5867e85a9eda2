//! Parsing of an arrived packet, as a host does it.

use std::net::IpAddr;

use anyhow::{Context, bail, ensure};
use skipstep_wire::{checksum, protocol};

/// The fields of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Address and port. The id of an ICMP message stands for both ports; other protocols have 0.
    pub from: (IpAddr, u16),
    pub to: (IpAddr, u16),
    /// TCP's sequence number, acknowledgment and flags; `flags` is the type of an ICMP message.
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: Vec<u8>,
}

/// Parses a packet without IP options.
///
/// # Errors
/// Fails if a checksum is wrong, if the packet is truncated, or if the protocol is unknown.
pub fn read(packet: &[u8]) -> anyhow::Result<Segment> {
    let (header, protocol, addresses): (usize, u8, [IpAddr; 2]) = match packet[0] >> 4 {
        4 => {
            ensure!(checksum::internet(&packet[..20]) == 0, "the checksum of its header is wrong");
            let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).map(IpAddr::from);
            (20, packet[9], [address(12)?, address(16)?])
        }
        _ => {
            let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).map(IpAddr::from);
            (40, packet[6], [address(8)?, address(24)?])
        }
    };
    let [source, destination] = addresses;
    let data =
        packet.get(header..skipstep_wire::ip_length(packet)).context("the packet is truncated")?;
    let half = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    let long = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let right = match protocol {
        protocol::SCTP => {
            let mut zeroed = data.to_vec();
            zeroed[8..12].fill(0);
            checksum::crc32c(&zeroed) == data[8..12]
        }
        _ if checksum::field(protocol).is_some() => {
            checksum::transport(source, destination, protocol, data) == 0
        }
        _ => true,
    };
    ensure!(right, "its checksum is wrong");
    let (ports, numbers, behind) = match protocol {
        protocol::TCP => {
            let behind = usize::from(data[12] >> 4) * 4;
            ((half(0), half(2)), (long(4), long(8), data[13]), behind)
        }
        protocol::UDP => ((half(0), half(2)), (0, 0, 0), 8),
        protocol::SCTP => ((half(0), half(2)), (0, 0, 0), 12),
        protocol::ICMP | protocol::ICMP6 => ((half(4), half(4)), (0, 0, data[0]), 8),
        47 => ((0, 0), (0, 0, 0), 0),
        other => bail!("protocol {other}"),
    };
    Ok(Segment {
        from: (source, ports.0),
        to: (destination, ports.1),
        seq: numbers.0,
        ack: numbers.1,
        flags: numbers.2,
        payload: data[behind..].to_vec(),
    })
}

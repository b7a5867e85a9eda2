//! Boxes as lines of a pf.conf, and points as packet headers.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_classifier::tree::{Covering, Space};
use skipstep_testing::LookupPacket;
use skipstep_wire::build::{Tcp, Udp, ip};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;

/// TOS value that rules ask for if their box does not say everything. Half of the packets have it.
const TOS: u8 = 0x10;

/// The header fields of a packet.
pub struct Header {
    pub interface: String,
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
    protocol: u8,
    tos: u8,
}

impl Header {
    /// Makes the header of the point that was drawn as number `number`. A point without a certain
    /// protocol becomes TCP or UDP.
    pub fn from_point<const N: usize>(space: &Space<N>, point: &[u32; N], number: usize) -> Self {
        let address = |words: &Range<usize>| match &point[words.clone()] {
            [word] => IpAddr::from(Ipv4Addr::from_bits(*word)),
            words => Ipv6Addr::from_bits(bits(words)).into(),
        };
        let [source, destination] = &space.addresses;
        let rest = &point[destination.end..];
        let protocol = match rest[2] as u8 {
            known @ (ICMP | TCP | UDP | 47 | 50 | 51) => known,
            other => [TCP, UDP][usize::from(other) % 2],
        };
        Header {
            interface: format!("em{}", rest[3] % 4),
            source: address(source),
            destination: address(destination),
            // packets to port 0 are dropped before the rules are evaluated
            ports: [rest[0], rest[1].max(1)].map(|port| port as u16),
            protocol,
            tos: if number.is_multiple_of(2) { TOS } else { 0 },
        }
    }

    /// Returns the packet in the form that the BPF programs look up.
    pub fn packet(&self, interface: u32) -> LookupPacket {
        let has_ports = matches!(self.protocol, TCP | UDP);
        let port = |port: u16| if has_ports { port.to_be_bytes() } else { [0; 2] };
        LookupPacket {
            source: abi::address_bytes(self.source),
            destination: abi::address_bytes(self.destination),
            source_port: port(self.ports[0]),
            destination_port: port(self.ports[1]),
            family: if self.source.is_ipv4() { abi::INET } else { abi::INET6 },
            protocol: self.protocol,
            tcp_flags: if self.protocol == TCP { SYN } else { 0 },
            tos: self.tos,
            interface,
            ..LookupPacket::default()
        }
    }

    /// Returns the packet's bytes, or None if this program cannot build packets of the protocol.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let [source, destination] = self.ports;
        let ip = ip(self.source, self.destination).tos(self.tos);
        match self.protocol {
            TCP => Some(ip.tcp(&Tcp::new(source, destination).flags("S"))),
            UDP => Some(ip.udp(&Udp::new(source, destination))),
            _ => None,
        }
    }
}

fn bits(words: &[u32]) -> u128 {
    words.iter().fold(0, |bits, word| bits << 32 | u128::from(*word))
}

/// Appends the rule that matches a box, with `quick`. Rules pass and block alternately.
pub fn write_rule<const N: usize>(text: &mut String, space: &Space<N>, rule: &Covering<N>) {
    let (low, high) = (&rule.rect.low, &rule.rect.high);
    let axes = space.addresses[1].end;
    let passes = rule.order.is_multiple_of(2);
    text.push_str(if passes { "pass in quick" } else { "block in quick" });
    if low[axes + 3] == high[axes + 3] {
        let _ = write!(text, " on em{}", low[axes + 3]);
    }
    text.push_str(if space.addresses[0].len() == 1 { " inet" } else { " inet6" });
    let ports = [axes, axes + 1].map(|axis| (low[axis], high[axis]));
    let asks_ports = ports.iter().any(|ports| *ports != (0, 0xffff));
    if low[axes + 2] == high[axes + 2] {
        let _ = write!(text, " proto {}", low[axes + 2]);
    } else if asks_ports {
        // pf requires a protocol beside ports
        text.push_str(" proto tcp");
    }
    for (side, (word, (from, to))) in ["from", "to"].into_iter().zip(ports).enumerate() {
        let words = space.addresses[side].clone();
        let _ = write!(text, " {word} {}", network(&low[words.clone()], &high[words]));
        let _ = match (from, to) {
            (0, 0xffff) => Ok(()),
            (from, to) if from == to => write!(text, " port {from}"),
            (from, to) => write!(text, " port {from}:{to}"),
        };
    }
    if !rule.whole {
        let _ = write!(text, " tos {TOS:#x}");
    }
    text.push_str(if passes { " no state\n" } else { "\n" });
}

/// Returns the prefix between its first and its last address.
fn network(low: &[u32], high: &[u32]) -> String {
    let same = (bits(low) ^ bits(high)).leading_zeros() - (128 - 32 * low.len() as u32);
    match low {
        _ if same == 0 => "any".to_owned(),
        [word] => format!("{}/{same}", Ipv4Addr::from_bits(*word)),
        words => format!("{}/{same}", Ipv6Addr::from_bits(bits(words))),
    }
}

//! Packets as combinations of values, and their notation in scenario files.

use std::net::IpAddr;

use skipstep_model::LinkHeader;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Rule};
use skipstep_scenario::case::Arrival;
use skipstep_scenario::packet::{
    Body, Damage, Extension, Icmp, Ip, Packet, Payload, Sctp, Tcp, Udp, Words,
};
use skipstep_wire::{protocol, tcp_flag};

/// The sort key of [`Point::rank`].
pub type Rank = (bool, u8, usize, IpAddr, u16);

/// A value for each property of a packet that rules can match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Point {
    pub direction: Direction,
    pub interface: String,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub transport: Transport,
    pub source_port: u16,
    pub destination_port: u16,
    pub tos: u8,
    pub prio: u8,
    pub tag: Option<String>,
    pub received_on: Option<String>,
    pub shape: Shape,
    /// Result of all random draws.
    pub draw: u32,
}

/// The transport protocol of a packet, with the fields that rules can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP with these flags, as in the header
    Tcp(u8),
    /// UDP; rules can match its ports, which are fields of [`Point`]
    Udp,
    /// SCTP; rules can match its ports, which are fields of [`Point`]
    Sctp,
    /// ICMP, type and code
    Icmp(u8, u8),
    /// ICMPv6, type and code
    Icmp6(u8, u8),
    /// another protocol, by number
    Other(u8),
}

/// The IP-level form of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// unfragmented, without options
    Whole,
    /// a fragment that is not the first
    Fragment,
    /// with options in its IP header
    WithOptions,
}

impl Transport {
    /// Returns protocol `number` as [`Transport::Other`], or `None` if it has a variant of its own
    /// or is an IPv6 extension header.
    pub fn other(number: u8) -> Option<Transport> {
        let known = [protocol::TCP, protocol::UDP, protocol::SCTP, protocol::ICMP, protocol::ICMP6];
        let extensions = [
            protocol::HOP_BY_HOP,
            protocol::ROUTING,
            protocol::FRAGMENT,
            protocol::AH,
            protocol::DESTINATION_OPTIONS,
        ];
        (!known.contains(&number) && !extensions.contains(&number))
            .then_some(Transport::Other(number))
    }

    /// Returns the number of the protocol.
    pub fn protocol(self) -> u8 {
        match self {
            Transport::Tcp(_) => protocol::TCP,
            Transport::Udp => protocol::UDP,
            Transport::Sctp => protocol::SCTP,
            Transport::Icmp(..) => protocol::ICMP,
            Transport::Icmp6(..) => protocol::ICMP6,
            Transport::Other(number) => number,
        }
    }

    /// True if the transport matches the criteria of `rule` on protocol, TCP flags and ICMP type.
    pub fn matches(self, rule: &Rule) -> bool {
        let flags = match self {
            Transport::Tcp(flags) => {
                rule.tcp_flags.is_none_or(|wanted| flags & wanted.mask == wanted.set)
            }
            _ => true,
        };
        let icmp = match self {
            Transport::Icmp(kind, code) | Transport::Icmp6(kind, code) => {
                rule.icmp.is_none_or(|wanted| {
                    wanted.kind == kind && wanted.code.is_none_or(|wanted| wanted == code)
                })
            }
            _ => rule.icmp.is_none(),
        };
        rule.protocol.is_none_or(|wanted| wanted == self.protocol()) && flags && icmp
    }
}

impl Point {
    /// True if such a packet can exist: one address family, its ICMP, and `received-on` only on
    /// egress.
    pub fn is_possible(&self) -> bool {
        let ipv4 = self.source.is_ipv4();
        let icmp = match self.transport {
            Transport::Icmp(..) => ipv4,
            Transport::Icmp6(..) => !ipv4,
            _ => true,
        };
        ipv4 == self.destination.is_ipv4()
            && icmp
            && (self.direction == Direction::Out || self.received_on.is_none())
    }

    /// Returns a sort key: the least key belongs to the most usual packet, which is the best
    /// example.
    pub fn rank(&self, host: &Host) -> Rank {
        let loopback = host.interface(&self.interface).is_some_and(|interface| interface.loopback);
        let sort = match self.transport {
            Transport::Tcp(tcp_flag::SYN) => 0,
            Transport::Udp => 1,
            Transport::Tcp(_) => 2,
            Transport::Icmp(..) | Transport::Icmp6(..) => 3,
            Transport::Sctp | Transport::Other(_) => 4,
        };
        (loopback, sort, self.arrival().to_string().len(), self.source, self.destination_port)
    }

    /// Returns the packet with its interface and metadata, as a scenario step.
    pub fn arrival(&self) -> Arrival {
        let ipv4 = self.source.is_ipv4();
        let options = self.shape == Shape::WithOptions;
        let fragment = self.shape == Shape::Fragment;
        let ip = Ip {
            tos: (self.tos != 0).then_some(self.tos),
            // three NOPs and an end of options; in IPv6 a PadN of 6 bytes
            options: (options && ipv4).then(|| vec![1, 1, 1, 0]),
            extensions: match options && !ipv4 {
                true => vec![Extension::HopByHop(vec![1, 4, 0, 0, 0, 0])],
                false => Vec::new(),
            },
            fragment: fragment.then_some((1480, false)),
            ..Ip::default()
        };
        let body = match self.transport {
            transport if fragment => Body::Other(transport.protocol(), Payload::Length(8)),
            Transport::Tcp(flags) => Body::Tcp(Tcp {
                source_port: self.source_port,
                destination_port: self.destination_port,
                flags,
                ..Tcp::default()
            }),
            Transport::Udp => Body::Udp(Udp {
                source_port: self.source_port,
                destination_port: self.destination_port,
                ..Udp::default()
            }),
            Transport::Sctp => Body::Sctp(Sctp {
                source_port: self.source_port,
                destination_port: self.destination_port,
                ..Sctp::default()
            }),
            Transport::Icmp(kind, code) | Transport::Icmp6(kind, code) => {
                Body::Icmp(Icmp { kind, code, ..Icmp::default() })
            }
            Transport::Other(number) => Body::Other(number, Payload::default()),
        };
        let words = Words {
            source: self.source,
            destination: self.destination,
            body,
            ip,
            damage: Damage::default(),
        };
        Arrival {
            direction: self.direction,
            interface: self.interface.clone(),
            packet: Packet::Words(Box::new(words)),
            link: LinkHeader::default(),
            received_on: self.received_on.clone(),
            tag: self.tag.clone(),
            prio: (self.prio != 3).then_some(self.prio),
            queue: None,
            delay: None,
            owner: None,
        }
    }
}

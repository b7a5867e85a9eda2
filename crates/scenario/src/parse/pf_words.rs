//! Reads packets in pf.conf's words: `proto tcp from 192.0.2.9 port 4000 to 192.0.2.1 port ssh`.
//! A rule may leave criteria out, but a packet has one protocol, two addresses and their ports.

use std::net::{IpAddr, Ipv6Addr};

use skipstep_pfconf::Names;
use skipstep_wire::{protocol, tcp_flag};

use super::packet::{self, Ends, Rest};
use crate::case::Arrival;
use crate::line::{Line, OrExample, Parsed, number};
use crate::packet::Packet;

/// One end of a packet in pf.conf's words.
struct Side {
    /// `from` or `to`.
    keyword: &'static str,
    /// Name of the end in messages.
    name: &'static str,
    /// Addresses of examples, IPv4 and IPv6.
    addresses: [&'static str; 2],
    /// Port of examples.
    port: &'static str,
}

const SOURCE: Side =
    Side { keyword: "from", name: "source", addresses: ["192.0.2.9", "2001:db8::9"], port: "4000" };

const DESTINATION: Side = Side {
    keyword: "to",
    name: "destination",
    addresses: ["192.0.2.1", "2001:db8::1"],
    port: "22",
};

/// True if a packet in pf.conf's words follows. `proto N` begins a packet of either notation.
pub(super) fn follow(line: &Line) -> bool {
    match line.peek() {
        Some("inet" | "inet6" | "from" | "to") => true,
        Some("proto") => matches!(line.peek_behind(2), None | Some("from" | "to")),
        _ => false,
    }
}

/// Reads a packet. A TCP segment without `flags` is a SYN.
pub(super) fn packet(line: &mut Line, arrival: Option<&mut Arrival>) -> Parsed<Packet> {
    let ipv6 = is_ipv6(line);
    let family = [("inet", false), ("inet6", true)].into_iter().find(|(word, _)| line.take(word));
    let protocol = protocol(line, ipv6)?;
    let has_ports = [protocol::TCP, protocol::UDP, protocol::SCTP].contains(&protocol);
    let form = Form { ipv6, family, has_ports };
    let (source, source_port) = form.read(&SOURCE, line)?;
    let (destination, destination_port) = form.read(&DESTINATION, line)?;
    let ends = Ends { source, destination, source_port, destination_port }.checked(line)?;
    let is_icmp = [protocol::ICMP, protocol::ICMP6].contains(&protocol);
    if is_icmp && source.is_ipv6() != (protocol == protocol::ICMP6) {
        return Err(line.fault_before("icmp is for IPv4, icmp6 for IPv6"));
    }
    let rest = Rest::new(arrival);
    match protocol {
        protocol::TCP => packet::tcp(line, rest, ends, tcp_flag::SYN),
        protocol::UDP => packet::udp(line, rest, ends),
        protocol::SCTP => packet::sctp(line, rest, ends),
        _ if is_icmp => packet::icmp(line, rest, ends, None),
        other => packet::other(line, rest, ends, other),
    }
}

/// True if a word of the line shows that the packet is one of IPv6, so examples must be, too.
fn is_ipv6(line: &Line) -> bool {
    let shows = |word: &str| ["inet6", "icmp6", "ipv6-icmp"].contains(&word);
    line.has(|word| shows(word) || word.parse::<Ipv6Addr>().is_ok())
}

fn protocol(line: &mut Line, ipv6: bool) -> Parsed<u8> {
    if !line.take("proto") {
        let icmp = line.has(|word| word.starts_with("icmp"));
        return Err(line.missing("the protocol (`proto PROTOCOL`)")).or_example(
            match (icmp, ipv6) {
                (true, true) => "proto icmp6",
                (true, false) => "proto icmp",
                (false, _) => "proto tcp",
            },
        );
    }
    let number = |text: &str| Names::builtin().protocol(text).or_else(|| number(text));
    line.value("a protocol", number).or_example("tcp")
}

/// The form that both ends of a packet have.
struct Form {
    /// True if the addresses of examples are of IPv6.
    ipv6: bool,
    /// `inet` or `inet6`, and true for IPv6; `None` if the line has neither.
    family: Option<(&'static str, bool)>,
    /// True if each end has a port.
    has_ports: bool,
}

impl Form {
    /// Reads `from ADDRESS` or `to ADDRESS`, and `port PORT` if the protocol has ports.
    fn read(&self, side: &Side, line: &mut Line) -> Parsed<(IpAddr, u16)> {
        let Side { keyword, name, addresses, port } = side;
        let example = addresses[usize::from(self.ipv6)];
        if !line.take(keyword) {
            let end = if self.has_ports { format!(" port {port}") } else { String::new() };
            return Err(line.missing(&format!("the {name} (`{keyword} ADDRESS`)")))
                .or_example(&format!("{keyword} {example}{end}"));
        }
        let one = |text: &str| text.parse::<IpAddr>().ok();
        let address = line.value("one address", one).or_example(example)?;
        if let Some((word, _)) = self.family.filter(|(_, ipv6)| *ipv6 != address.is_ipv6()) {
            return Err(line.fault_before(format!("{address} is not an address of {word}")));
        }
        Ok((address, if self.has_ports { read_port(line, name, port)? } else { no_port(line)? }))
    }
}

/// Reads `port PORT`. An `=` may stand before the port, as in the rules that pfctl prints.
fn read_port(line: &mut Line, name: &str, example: &str) -> Parsed<u16> {
    if !line.take("port") {
        return Err(line.missing(&format!("the port of the {name} (`port PORT`)")))
            .or_example(&format!("port {example}"));
    }
    line.take("=");
    let number = |text: &str| number(text).or_else(|| Names::builtin().service(text));
    line.value("one port", number).or_example(example)
}

/// Refuses a port, and returns 0.
fn no_port(line: &mut Line) -> Parsed<u16> {
    match line.take("port") {
        true => Err(line.fault_before("only packets of tcp, udp and sctp have ports")),
        false => Ok(0),
    }
}

//! Prints a packet as one line, in the manner of tcpdump.

use std::fmt::Write;
use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::{protocol, tcp_flag};

/// Describes a packet that begins with its IP header; other bytes are printed in hexadecimal.
///
/// ```
/// use skipstep_wire::{build::{ipv4, Tcp}, print::line};
///
/// let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(4000, 22).flags("S").seq(7));
/// assert_eq!(line(&packet), "tcp 10.0.0.1:4000 > 10.0.0.2:22 S seq 7 win 65535");
/// ```
pub fn line(packet: &[u8]) -> String {
    let Ok(sliced) = LaxSlicedPacket::from_ip(packet) else {
        return format!("not an IP packet, {} bytes: {}", packet.len(), hex(packet));
    };
    let Some(ip) = IpView::from_packet(&sliced) else {
        return format!("not an IP packet, {} bytes: {}", packet.len(), hex(packet));
    };
    let mut text = match &sliced.transport {
        _ if ip.fragment_offset > 0 => ip.plain(),
        Some(TransportSlice::Tcp(tcp)) => {
            let mut text = ip.with_ports("tcp", tcp.source_port(), tcp.destination_port());
            describe_tcp(&mut text, tcp);
            text
        }
        Some(TransportSlice::Udp(udp)) => {
            let mut text = ip.with_ports("udp", udp.source_port(), udp.destination_port());
            append(&mut text, "len", udp.payload().len(), 0);
            text
        }
        Some(TransportSlice::Icmpv4(icmp)) => ip.with_icmp("icmp", icmp.slice()),
        Some(TransportSlice::Icmpv6(icmp)) => ip.with_icmp("icmp6", icmp.slice()),
        _ if ip.protocol == protocol::SCTP => match sliced.ip_payload() {
            Some(payload) => ip.with_sctp(payload.payload),
            None => ip.plain(),
        },
        _ => ip.plain(),
    };
    if ip.fragment {
        let more = if ip.more_fragments { "+" } else { "" };
        let _ = write!(text, " fragment {}{more}", ip.fragment_offset);
    }
    append(&mut text, "ttl", ip.ttl, 64);
    if ip.tos != 0 {
        let _ = write!(text, " tos {:#04x}", ip.tos);
    }
    if ip.options {
        text.push_str(" opts");
    }
    if sliced.stop_err.is_some() {
        text.push_str(" truncated");
    }
    text
}

/// Describes a frame that begins with its Ethernet header, and that has no IP packet behind it as
/// far as the filter can see.
///
/// ```
/// let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47, 0, 0];
/// let line = "frame 02:00:00:00:00:02 > 02:00:00:00:00:01 type 0x8847 len 2";
/// assert_eq!(skipstep_wire::print::frame(&frame), line);
/// ```
pub fn frame(frame: &[u8]) -> String {
    let Some((header, rest)) = frame.split_at_checked(14) else {
        return format!("frame, {} bytes: {}", frame.len(), hex(frame));
    };
    let address =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let (to, from, kind) = (address(&header[..6]), address(&header[6..12]), hex(&header[12..]));
    format!("frame {from} > {to} type 0x{kind} len {}", rest.len())
}

/// The header fields that IPv4 and IPv6 have in common.
struct IpView {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ttl: u8,
    tos: u8,
    payload_len: usize,
    options: bool,
    fragment: bool,
    fragment_offset: u32,
    more_fragments: bool,
}

impl IpView {
    fn from_packet(sliced: &LaxSlicedPacket) -> Option<Self> {
        let payload = sliced.ip_payload();
        match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                Some(IpView {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    protocol: ip.payload().ip_number.0,
                    ttl: header.ttl(),
                    tos: header.dcp().value() << 2 | header.ecn().value(),
                    payload_len: ip.payload().payload.len(),
                    options: header.ihl() > 5,
                    fragment: header.is_fragmenting_payload(),
                    fragment_offset: u32::from(header.fragments_offset().value()) * 8,
                    more_fragments: header.more_fragments(),
                })
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let first = ip.extensions().first_header().map(|number| number.0);
                let fragment = fragment_header(first, ip.extensions().slice());
                Some(IpView {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    protocol: ip.payload().ip_number.0,
                    ttl: header.hop_limit(),
                    tos: header.traffic_class(),
                    payload_len: payload.map_or(0, |payload| payload.payload.len()),
                    options: first.is_some() && fragment.is_none(),
                    fragment: fragment.is_some(),
                    fragment_offset: fragment.map_or(0, |field| u32::from(field & !7)),
                    more_fragments: fragment.is_some_and(|field| field & 1 == 1),
                })
            }
            _ => None,
        }
    }

    fn with_ports(&self, name: &str, source_port: u16, destination_port: u16) -> String {
        let (source, destination) =
            (endpoint(self.source, source_port), endpoint(self.destination, destination_port));
        format!("{name} {source} > {destination}")
    }

    fn with_icmp(&self, name: &str, message: &[u8]) -> String {
        let mut text = format!("{name} {} > {}", self.source, self.destination);
        let &[kind, code, _, _, id_high, id_low, seq_high, seq_low, ..] = message else {
            text.push_str(" truncated");
            return text;
        };
        let _ = write!(text, " type {kind}");
        append(&mut text, "code", code, 0);
        match (name, kind) {
            ("icmp", 0 | 8 | 13..=18) | ("icmp6", 128 | 129) => {
                let id = u16::from_be_bytes([id_high, id_low]);
                let seq = u16::from_be_bytes([seq_high, seq_low]);
                let _ = write!(text, " id {id} seq {seq}");
            }
            ("icmp", 3..=5 | 11 | 12) | ("icmp6", 1..=4) if message.len() > 8 => {
                let _ = write!(text, " ({})", line(&message[8..]));
            }
            _ => append(&mut text, "len", message.len() - 8, 0),
        }
        text
    }

    fn with_sctp(&self, packet: &[u8]) -> String {
        let &[s0, s1, d0, d1, t0, t1, t2, t3, _, _, _, _, ref chunks @ ..] = packet else {
            return self.plain();
        };
        let ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let mut text = self.with_ports("sctp", ports.0, ports.1);
        append(&mut text, "vtag", u32::from_be_bytes([t0, t1, t2, t3]), 0);
        append(&mut text, "len", chunks.len(), 0);
        text
    }

    fn plain(&self) -> String {
        let (protocol, length) = (self.protocol, self.payload_len);
        format!("proto {protocol} {} > {} len {length}", self.source, self.destination)
    }
}

/// Returns the offset and flags field of the fragment header among IPv6 extension headers. `first`
/// is the number of the first header. etherparse's own iterator reads beyond truncated headers.
fn fragment_header(first: Option<u8>, mut headers: &[u8]) -> Option<u16> {
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    let mut number = first?;
    loop {
        let &[next, length, high, low, ..] = headers else {
            return None;
        };
        let length = match number {
            FRAGMENT => return Some(u16::from_be_bytes([high, low])),
            AUTHENTICATION => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        number = next;
        headers = headers.get(length..)?;
    }
}

fn describe_tcp(text: &mut String, tcp: &etherparse::TcpSlice) {
    let bits = tcp.slice()[13];
    text.push(' ');
    text.extend((0..8).filter(|bit| bits >> bit & 1 == 1).map(|bit| tcp_flag::LETTERS[bit]));
    if bits == 0 {
        text.push('.');
    }
    let _ = write!(text, " seq {}", tcp.sequence_number());
    if tcp.ack() {
        let _ = write!(text, " ack {}", tcp.acknowledgment_number());
    }
    let _ = write!(text, " win {}", tcp.window_size());
    for option in tcp.options_iterator() {
        use etherparse::TcpOptionElement::*;
        let _ = match option {
            Ok(MaximumSegmentSize(mss)) => write!(text, " mss {mss}"),
            Ok(WindowScale(shift)) => write!(text, " wscale {shift}"),
            Ok(SelectiveAcknowledgementPermitted) => write!(text, " sackOK"),
            Ok(SelectiveAcknowledgement((start, end), _)) => write!(text, " sack {start}:{end}"),
            Ok(Timestamp(value, echo)) => write!(text, " ts {value} {echo}"),
            Ok(Noop) => Ok(()),
            Err(_) => write!(text, " bad-option"),
        };
    }
    append(text, "len", tcp.payload().len(), 0);
}

fn append<T: std::fmt::Display + PartialEq>(text: &mut String, name: &str, value: T, usual: T) {
    if value != usual {
        let _ = write!(text, " {name} {value}");
    }
}

fn endpoint(address: IpAddr, port: u16) -> String {
    match address {
        IpAddr::V4(v4) => format!("{v4}:{port}"),
        IpAddr::V6(v6) => format!("{v6}[{port}]"), // pf's way to write it
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Icmp, Sctp, Tcp, Udp, ipv4, ipv6};
    use std::net::Ipv6Addr;

    #[test]
    fn an_icmp_error_shows_the_quoted_packet() {
        let query = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(&Udp::new(53, 1024).payload(b"abc"));
        let error = ipv4([10, 0, 0, 2], [10, 0, 0, 1]).icmp(&Icmp::quoting(3, 3, &query));
        assert_eq!(
            line(&error),
            "icmp 10.0.0.2 > 10.0.0.1 type 3 code 3 (udp 10.0.0.1:53 > 10.0.0.2:1024 len 3)"
        );
    }

    #[test]
    fn ipv6_ports_stand_in_brackets() {
        let packet = ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST).ttl(1).udp(&Udp::new(1, 2));
        assert_eq!(line(&packet), "udp ::1[1] > ::1[2] ttl 1");
    }

    #[test]
    fn sctp_ports_are_printed_if_the_header_is_complete() {
        let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .sctp(&Sctp::new(3868, 40000).tag(7).chunks(&[14, 0, 0, 4]));
        assert_eq!(line(&packet), "sctp 10.0.0.1:3868 > 10.0.0.2:40000 vtag 7 len 4");
        let cut = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).raw(protocol::SCTP, &packet[20..31]);
        assert_eq!(line(&cut), "proto 132 10.0.0.1 > 10.0.0.2 len 11");
    }

    #[test]
    fn fragments_and_options_are_printed() {
        let first = ipv4([1, 1, 1, 1], [2, 2, 2, 2])
            .options(&[148, 4, 0, 0])
            .fragment(1480, true)
            .raw(17, &[0; 8]);
        assert_eq!(line(&first), "proto 17 1.1.1.1 > 2.2.2.2 len 8 fragment 1480+ opts");
    }

    #[test]
    fn a_truncated_packet_is_printed() {
        let segment = ipv4([1, 1, 1, 1], [2, 2, 2, 2]).tcp(&Tcp::new(1, 2).flags("S"));
        assert_eq!(line(&segment[..28]), "proto 6 1.1.1.1 > 2.2.2.2 len 8 truncated");
        assert!(line(&[]).starts_with("not an IP packet"));
    }

    #[test]
    fn extension_headers_end_where_the_packet_ends() {
        let ip = |protocol, rest: &[u8]| {
            ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST).raw(protocol, rest)
        };
        // destination options, followed by a fragment header or by the end of the packet
        let options = [44, 0, 1, 4, 0, 0, 0, 0];
        let fragment = [58, 0, 0, 9, 0, 0, 0, 1];
        let whole = ip(60, &[options, fragment].concat());
        assert_eq!(line(&whole), "proto 58 ::1 > ::1 len 0 fragment 8+");
        assert_eq!(line(&ip(60, &options)), "proto 44 ::1 > ::1 len 0 opts truncated");
        assert_eq!(line(&ip(60, &[44])), "proto 60 ::1 > ::1 len 1 truncated");
        // a hop-by-hop header must be the first header
        assert_eq!(
            line(&ip(60, &[0, 0, 1, 4, 0, 0, 0, 0])),
            "proto 0 ::1 > ::1 len 0 opts truncated"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            line(&bytes);
            crate::checksum::fix(&mut bytes.clone());
        }

        #[test]
        fn no_damaged_packet_panics(at in 0usize..60, byte: u8, length in 0usize..60) {
            let ip = ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
            let mut packet = ip.tcp(&Tcp::new(1, 2).flags("S"));
            packet[at] = byte;
            packet.truncate(length);
            line(&packet);
            crate::checksum::fix(&mut packet);
        }
    }
}

//! Reads packets in the notation of scenario files.

use std::net::IpAddr;

use super::{carried, pf_words};
use crate::case::Arrival;
use crate::line::{Line, OrExample, Parsed, number};
use crate::look::unhex;
use crate::names;
use crate::packet::{
    Body, Damage, Extension, Icmp, IcmpBody, Ip, Packet, Payload, Sctp, Tcp, Udp, Words,
};

/// A packet in pf.conf's words, as an example.
const EXAMPLE: &str = "proto tcp from 192.0.2.9 port 4000 to 192.0.2.1 port 22";

/// Addresses and ports of a packet. The ports are 0 in a packet without ports.
pub(super) struct Ends {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

/// Reads `hex …`, or `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `proto n` and their words, or a packet
/// in pf.conf's words. Stops before the first word that does not belong to a packet. Words about
/// the arrival of the packet go to `arrival`, if there is one.
pub(crate) fn packet(line: &mut Line, arrival: Option<&mut Arrival>) -> Parsed<Packet> {
    if pf_words::follow(line) {
        return pf_words::packet(line, arrival);
    }
    let what = "the packet (hex, tcp, udp, sctp, icmp, icmp6 or proto)";
    let kind = line.word(what).or_example(EXAMPLE)?;
    let rest = Rest::new(arrival);
    match kind.text.as_str() {
        "hex" => Ok(Packet::Hex(hex(line)?)),
        "tcp" => {
            let ends = ends_with_ports(line)?;
            let what = "a set of TCP flags (letters of FSRPAUEW, . for none)";
            let flags = line.value(what, names::flags).or_example("S")?;
            tcp(line, rest, ends, flags)
        }
        "udp" => {
            let ends = ends_with_ports(line)?;
            udp(line, rest, ends)
        }
        "sctp" => {
            let ends = ends_with_ports(line)?;
            sctp(line, rest, ends)
        }
        "icmp" | "icmp6" => {
            let ends = ends(line)?;
            let ipv6 = ends.source.is_ipv6();
            if ipv6 != (kind.text == "icmp6") {
                return Err(kind.fault("icmp is for IPv4, icmp6 for IPv6"));
            }
            let number = |text: &str| names::icmp_type(ipv6, text);
            let number = line.value("an ICMP type", number).or_example("echoreq")?;
            icmp(line, rest, ends, Some(number))
        }
        "proto" => {
            let protocol = line.value("a protocol", names::protocol)?;
            let ends = ends(line)?;
            other(line, rest, ends, protocol)
        }
        other => Err(kind.fault(format!(
            "`{other}` is not a kind of packet: use hex, tcp, udp, sctp, icmp, icmp6 or proto"
        ))),
    }
}

/// Reads hexadecimal digits, which may be split into several words.
pub(crate) fn hex(line: &mut Line) -> Parsed<Vec<u8>> {
    let mut bytes = line.value("bytes in hexadecimal", unhex)?;
    while let Some(more) = line.peek().filter(|word| word.len() >= 2).and_then(unhex) {
        line.next();
        bytes.extend(more);
    }
    Ok(bytes)
}

/// The properties that a packet of any protocol may have.
pub(super) struct Rest<'a> {
    ip: Ip,
    damage: Damage,
    payload: Option<Payload>,
    /// The arrival of the packet; `None` for a packet in another.
    arrival: Option<&'a mut Arrival>,
}

impl<'a> Rest<'a> {
    /// Returns no properties.
    pub fn new(arrival: Option<&'a mut Arrival>) -> Self {
        Rest { ip: Ip::default(), damage: Damage::default(), payload: None, arrival }
    }

    /// Reads words as long as they belong to the packet. `own` reads those of its protocol.
    fn read(
        &mut self,
        line: &mut Line,
        mut own: impl FnMut(&str, &mut Line) -> Parsed<bool>,
    ) -> Parsed<()> {
        while let Some(word) = line.peek() {
            if !self.common(word, line)? && !own(word, line)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads a word that any protocol may have. Returns false if `word` is none.
    fn common(&mut self, word: &str, line: &mut Line) -> Parsed<bool> {
        match word {
            "ttl" => self.ip.ttl = Some(argument(line, "a TTL")?),
            "tos" => self.ip.tos = Some(argument(line, "a TOS byte")?),
            "ipid" => self.ip.id = Some(argument(line, "an IP id")?),
            "df" => {
                line.next();
                self.ip.df = true;
            }
            "ip-options" => {
                line.next();
                self.ip.options = Some(line.value("bytes in hexadecimal", unhex)?);
            }
            "hop-by-hop" | "destination-options" => {
                line.next();
                let options = line.value("bytes in hexadecimal", unhex)?;
                self.ip.extensions.push(if word == "hop-by-hop" {
                    Extension::HopByHop(options)
                } else {
                    Extension::Destination(options)
                });
            }
            "routing" => {
                let kind = argument(line, "a routing type")?;
                self.ip
                    .extensions
                    .push(Extension::Routing(kind, line.value("bytes in hexadecimal", unhex)?));
            }
            "fragment" => {
                line.next();
                self.ip.fragment =
                    Some(line.value("an offset in bytes, with + if more follow", fragment)?);
            }
            "len" => self.payload = Some(Payload::Length(argument(line, "a length")?)),
            "data" => {
                line.next();
                self.payload = Some(Payload::Bytes(line.value("bytes in hexadecimal", unhex)?));
            }
            "truncate" => self.damage.truncate = Some(argument(line, "a length")?),
            "ip-len" => self.damage.ip_length = Some(argument(line, "a length")?),
            "header-len" => self.damage.header_length = Some(argument(line, "a length")?),
            "data-offset" => self.damage.data_offset = Some(argument(line, "a length")?),
            "udp-len" => self.damage.udp_length = Some(argument(line, "a length")?),
            "bad-sum" => {
                line.next();
                self.damage.bad_sum = true;
            }
            _ => {
                return match &mut self.arrival {
                    Some(arrival) => carried::read(arrival, word, line),
                    None => Ok(false),
                };
            }
        }
        Ok(true)
    }

    fn finish(self, ends: &Ends, body: Body) -> Packet {
        Packet::Words(Box::new(Words {
            source: ends.source,
            destination: ends.destination,
            body,
            ip: self.ip,
            damage: self.damage,
        }))
    }
}

/// Skips a word, and reads the number behind it.
fn argument<T: TryFrom<u64>>(line: &mut Line, what: &str) -> Parsed<T> {
    line.next();
    line.number(what)
}

fn fragment(text: &str) -> Option<(u16, bool)> {
    let more = text.ends_with('+');
    Some((text.trim_end_matches('+').parse().ok()?, more))
}

/// Reads `ADDRESS > ADDRESS`.
fn ends(line: &mut Line) -> Parsed<Ends> {
    let address = |text: &str| text.parse::<IpAddr>().ok();
    let source = line.value("an address", address)?;
    line.expect(">").or_example(">")?;
    let destination = line.value("an address", address)?;
    Ends { source, destination, source_port: 0, destination_port: 0 }.checked(line)
}

/// Reads `ADDRESS:PORT > ADDRESS:PORT`.
fn ends_with_ports(line: &mut Line) -> Parsed<Ends> {
    let what = "an address with a port, as 10.0.0.1:80 or 2001:db8::1[80]";
    let ipv6 = line.has(|word| word.contains('['));
    let [from, to] = match ipv6 {
        true => ["2001:db8::9[4000]", "2001:db8::1[22]"],
        false => ["192.0.2.9:4000", "192.0.2.1:22"],
    };
    let (source, source_port) = line.value(what, address_port).or_example(from)?;
    line.expect(">").or_example(">")?;
    let (destination, destination_port) = line.value(what, address_port).or_example(to)?;
    Ends { source, destination, source_port, destination_port }.checked(line)
}

impl Ends {
    /// Checks that both addresses, which were just read, are of one family.
    pub fn checked(self, line: &Line) -> Parsed<Ends> {
        match self.source.is_ipv4() == self.destination.is_ipv4() {
            true => Ok(self),
            false => Err(line.fault_before("both addresses must be of one family")),
        }
    }
}

/// Parses `10.0.0.1:80`, or `2001:db8::1[80]` as pfctl prints it.
pub(crate) fn address_port(text: &str) -> Option<(IpAddr, u16)> {
    if let Some((address, port)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        return Some((address.parse::<IpAddr>().ok()?, number(port)?));
    }
    let (address, port) = text.rsplit_once(':')?;
    let address = address.parse::<IpAddr>().ok().filter(IpAddr::is_ipv4)?;
    Some((address, number(port)?))
}

/// Reads the words of a TCP segment behind its addresses. `flags` are its flags, unless the words
/// have others.
pub(super) fn tcp(line: &mut Line, mut rest: Rest, ends: Ends, flags: u8) -> Parsed<Packet> {
    let Ends { source_port, destination_port, .. } = ends;
    let mut tcp = Tcp { source_port, destination_port, flags, ..Tcp::default() };
    rest.read(line, |word, line| {
        match word {
            "flags" => {
                line.next();
                let what = "a set of TCP flags (letters of FSRPAUEW, . for none, and no mask)";
                tcp.flags = line.value(what, names::flags).or_example("S")?;
            }
            "seq" => tcp.seq = Some(argument(line, "a sequence number")?),
            "ack" => tcp.ack = Some(argument(line, "a sequence number")?),
            "win" => tcp.window = Some(argument(line, "a window")?),
            "urg" => tcp.urgent = Some(argument(line, "an urgent pointer")?),
            "mss" => tcp.mss = Some(argument(line, "an MSS")?),
            "wscale" => tcp.scale = Some(argument(line, "a shift")?),
            "tcp-options" => {
                line.next();
                tcp.options = line.value("bytes in hexadecimal", unhex)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    tcp.payload = rest.payload.take().unwrap_or_default();
    Ok(rest.finish(&ends, Body::Tcp(tcp)))
}

/// Reads the words of a UDP datagram behind its addresses.
pub(super) fn udp(line: &mut Line, mut rest: Rest, ends: Ends) -> Parsed<Packet> {
    rest.read(line, |_, _| Ok(false))?;
    let payload = rest.payload.take().unwrap_or_default();
    let Ends { source_port, destination_port, .. } = ends;
    Ok(rest.finish(&ends, Body::Udp(Udp { source_port, destination_port, payload })))
}

/// Reads the words of an SCTP packet behind its addresses.
pub(super) fn sctp(line: &mut Line, mut rest: Rest, ends: Ends) -> Parsed<Packet> {
    let mut tag = None;
    rest.read(line, |word, line| {
        let own = word == "vtag";
        if own {
            tag = Some(argument(line, "a verification tag")?);
        }
        Ok(own)
    })?;
    let chunks = rest.payload.take().unwrap_or_default();
    let Ends { source_port, destination_port, .. } = ends;
    Ok(rest.finish(&ends, Body::Sctp(Sctp { source_port, destination_port, tag, chunks })))
}

/// Reads the words of a packet of another protocol behind its addresses.
pub(super) fn other(line: &mut Line, mut rest: Rest, ends: Ends, protocol: u8) -> Parsed<Packet> {
    rest.read(line, |_, _| Ok(false))?;
    let payload = rest.payload.take().unwrap_or_default();
    Ok(rest.finish(&ends, Body::Other(protocol, payload)))
}

/// Reads the words of an ICMP message behind its addresses. `kind` is its type; if it is `None`,
/// the words must have the type.
pub(super) fn icmp(
    line: &mut Line,
    mut rest: Rest,
    ends: Ends,
    mut kind: Option<u8>,
) -> Parsed<Packet> {
    let ipv6 = ends.source.is_ipv6();
    let word_of_type = if ipv6 { "icmp6-type" } else { "icmp-type" };
    let mut icmp = Icmp::default();
    let mut quoted = None;
    rest.read(line, |word, line| {
        match word {
            _ if word == word_of_type => {
                line.next();
                let number = |text: &str| names::icmp_type(ipv6, text);
                kind = Some(line.value("an ICMP type", number).or_example("echoreq")?);
            }
            "code" => {
                line.next();
                let Some(kind) = kind else {
                    return Err(line.fault_before("the ICMP type stands in front of its code"));
                };
                icmp.code = line
                    .value("a code of this ICMP type", |text| names::icmp_code(ipv6, kind, text))?;
            }
            "id" => icmp.id = Some(argument(line, "an id")?),
            "seq" => icmp.seq = Some(argument(line, "a sequence number")?),
            "quoting" => quoted = Some(quotation(line)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    icmp.kind = match kind {
        Some(kind) => kind,
        None => {
            let missing = Err(line.missing(&format!("the ICMP type (`{word_of_type} TYPE`)")));
            return missing.or_example(&format!("{word_of_type} echoreq"));
        }
    };
    icmp.body =
        quoted.unwrap_or_else(|| IcmpBody::Payload(rest.payload.take().unwrap_or_default()));
    Ok(rest.finish(&ends, Body::Icmp(icmp)))
}

/// Reads `quoting [BYTES] (PACKET)`.
fn quotation(line: &mut Line) -> Parsed<IcmpBody> {
    line.next();
    let kept = match line.peek() {
        Some("(") => None,
        _ => Some(line.number("a number of bytes")?),
    };
    line.expect("(")?;
    let inner = packet(line, None)?;
    line.expect(")")?;
    Ok(IcmpBody::Quoted(Box::new(inner), kept))
}

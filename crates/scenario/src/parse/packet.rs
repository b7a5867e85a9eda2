//! Reads packets in the notation of scenario files.

use std::net::IpAddr;

use crate::line::{Line, Parsed, number};
use crate::look::unhex;
use crate::names;
use crate::packet::{
    Body, Damage, Extension, Icmp, IcmpBody, Ip, Packet, Payload, Sctp, Tcp, Udp, Words,
};

/// Reads `hex …`, or `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `proto n` and their words. Stops before
/// the first word that does not belong to a packet.
pub(crate) fn packet(line: &mut Line) -> Parsed<Packet> {
    let kind = line.word("the packet: hex, tcp, udp, sctp, icmp, icmp6 or proto")?;
    match kind.text.as_str() {
        "hex" => Ok(Packet::Hex(hex(line)?)),
        "tcp" => with_ports(line, tcp),
        "udp" => with_ports(line, udp),
        "sctp" => with_ports(line, sctp),
        "icmp" | "icmp6" => {
            let (source, destination) = addresses(line)?;
            if source.is_ipv6() != (kind.text == "icmp6") {
                return Err(kind.fault("icmp is for IPv4, icmp6 for IPv6"));
            }
            icmp(line, source, destination)
        }
        "proto" => {
            let protocol = line.value("a protocol", names::protocol)?;
            let (source, destination) = addresses(line)?;
            let mut rest = Rest::default();
            rest.read(line, |_, _| Ok(false))?;
            let payload = rest.payload.take().unwrap_or_default();
            Ok(rest.finish(source, destination, Body::Other(protocol, payload)))
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
#[derive(Default)]
struct Rest {
    ip: Ip,
    damage: Damage,
    payload: Option<Payload>,
}

impl Rest {
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
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self, source: IpAddr, destination: IpAddr, body: Body) -> Packet {
        Packet::Words(Box::new(Words {
            source,
            destination,
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

fn addresses(line: &mut Line) -> Parsed<(IpAddr, IpAddr)> {
    let source: IpAddr = line.value("an address", |text| text.parse().ok())?;
    line.expect(">")?;
    let destination: IpAddr = line.value("an address", |text| text.parse().ok())?;
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(line.fault_before("both addresses must be of one family"));
    }
    Ok((source, destination))
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

fn with_ports(
    line: &mut Line,
    read: impl FnOnce(&mut Line, u16, u16) -> Parsed<(Rest, Body)>,
) -> Parsed<Packet> {
    let what = "an address with a port, as 10.0.0.1:80 or 2001:db8::1[80]";
    let (source, source_port) = line.value(what, address_port)?;
    line.expect(">")?;
    let (destination, destination_port) = line.value(what, address_port)?;
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(line.fault_before("both addresses must be of one family"));
    }
    let (rest, body) = read(line, source_port, destination_port)?;
    Ok(rest.finish(source, destination, body))
}

fn tcp(line: &mut Line, source_port: u16, destination_port: u16) -> Parsed<(Rest, Body)> {
    let mut tcp = Tcp { source_port, destination_port, ..Tcp::default() };
    tcp.flags = line.value("TCP flags (of FSRPAUEW, . for none)", names::flags)?;
    let mut rest = Rest::default();
    rest.read(line, |word, line| {
        match word {
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
    Ok((rest, Body::Tcp(tcp)))
}

fn udp(line: &mut Line, source_port: u16, destination_port: u16) -> Parsed<(Rest, Body)> {
    let mut rest = Rest::default();
    rest.read(line, |_, _| Ok(false))?;
    let payload = rest.payload.take().unwrap_or_default();
    Ok((rest, Body::Udp(Udp { source_port, destination_port, payload })))
}

fn sctp(line: &mut Line, source_port: u16, destination_port: u16) -> Parsed<(Rest, Body)> {
    let mut tag = None;
    let mut rest = Rest::default();
    rest.read(line, |word, line| {
        let own = word == "vtag";
        if own {
            tag = Some(argument(line, "a verification tag")?);
        }
        Ok(own)
    })?;
    let chunks = rest.payload.take().unwrap_or_default();
    Ok((rest, Body::Sctp(Sctp { source_port, destination_port, tag, chunks })))
}

fn icmp(line: &mut Line, source: IpAddr, destination: IpAddr) -> Parsed<Packet> {
    let ipv6 = source.is_ipv6();
    let mut icmp = Icmp {
        kind: line.value("an ICMP type", |text| names::icmp_type(ipv6, text))?,
        ..Icmp::default()
    };
    let mut quoted = None;
    let mut rest = Rest::default();
    rest.read(line, |word, line| {
        match word {
            "code" => {
                line.next();
                let kind = icmp.kind;
                icmp.code = line
                    .value("a code of this ICMP type", |text| names::icmp_code(ipv6, kind, text))?;
            }
            "id" => icmp.id = Some(argument(line, "an id")?),
            "seq" => icmp.seq = Some(argument(line, "a sequence number")?),
            "quoting" => {
                line.next();
                let kept = match line.peek() {
                    Some("(") => None,
                    _ => Some(line.number("a number of bytes")?),
                };
                line.expect("(")?;
                let inner = packet(line)?;
                line.expect(")")?;
                quoted = Some(IcmpBody::Quoted(Box::new(inner), kept));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    icmp.body =
        quoted.unwrap_or_else(|| IcmpBody::Payload(rest.payload.take().unwrap_or_default()));
    Ok(rest.finish(source, destination, Body::Icmp(icmp)))
}

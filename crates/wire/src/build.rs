//! Builds packets, from the IP header on, with correct lengths and checksums. A test sets only the
//! fields that matter for its packet; the other fields have usual values:
//!
//! ```
//! use skipstep_wire::build::{ipv4, Tcp};
//!
//! let syn = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(4000, 22).flags("S"));
//! assert_eq!(syn.len(), 40);
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header,
    TcpHeader, UdpHeader,
};

use crate::{checksum, protocol, tcp_flag};

/// An IP header and the options or extension headers between it and the transport header.
#[derive(Debug, Clone)]
pub struct Ip {
    source: IpAddr,
    destination: IpAddr,
    ttl: u8,
    tos: u8,
    id: u16,
    dont_fragment: bool,
    more_fragments: bool,
    fragment_offset: u16,
    options: Vec<u8>,
    extensions: Vec<(u8, Vec<u8>)>,
}

/// Returns the header of an IPv4 packet, with TTL 64.
pub fn ipv4(source: impl Into<Ipv4Addr>, destination: impl Into<Ipv4Addr>) -> Ip {
    ip(source.into().into(), destination.into().into())
}

/// Returns the header of an IPv6 packet, with hop limit 64.
pub fn ipv6(source: impl Into<Ipv6Addr>, destination: impl Into<Ipv6Addr>) -> Ip {
    ip(source.into().into(), destination.into().into())
}

/// Returns a header of the family of the addresses. If their families differ, the header is IPv6
/// and the IPv4 address becomes an IPv4-mapped one.
pub fn ip(source: IpAddr, destination: IpAddr) -> Ip {
    Ip {
        source,
        destination,
        ttl: 64,
        tos: 0,
        id: 0,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        options: Vec::new(),
        extensions: Vec::new(),
    }
}

impl Ip {
    /// Sets the TTL or hop limit, which is 64 by default.
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the TOS byte or traffic class, including the ECN bits.
    pub fn tos(mut self, tos: u8) -> Self {
        self.tos = tos;
        self
    }

    /// Sets the identification of an IPv4 packet, or of the fragment header that [`Ip::fragment`]
    /// adds.
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Sets or clears the don't-fragment bit of an IPv4 packet. IPv6 packets have no such bit.
    pub fn df(mut self, set: bool) -> Self {
        self.dont_fragment = set;
        self
    }

    /// Makes the packet a fragment whose payload starts `offset` bytes into that of the datagram.
    /// The offset is rounded down to a multiple of 8. An IPv6 packet gets a fragment header.
    pub fn fragment(mut self, offset: u16, more: bool) -> Self {
        if self.is_ipv4() {
            self.fragment_offset = offset / 8;
            self.more_fragments = more;
            return self;
        }
        let mut body = (offset & !7 | u16::from(more)).to_be_bytes().to_vec();
        body.extend(u32::from(self.id).to_be_bytes());
        self.extension(protocol::FRAGMENT, &body)
    }

    /// Sets the IPv4 options, padded to a multiple of 4 bytes. Bytes beyond 40 are cut off.
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options[..options.len().min(40)].to_vec();
        self.options.resize(self.options.len().next_multiple_of(4), 0);
        self
    }

    /// Adds an IPv6 hop-by-hop options header with these options, padded to a multiple of 8 bytes.
    pub fn hop_by_hop(self, options: &[u8]) -> Self {
        self.options_header(protocol::HOP_BY_HOP, options)
    }

    /// Adds an IPv6 destination options header with these options, padded to a multiple of 8 bytes.
    pub fn destination_options(self, options: &[u8]) -> Self {
        self.options_header(protocol::DESTINATION_OPTIONS, options)
    }

    /// Adds an IPv6 routing header of type `kind`, with 0 segments left, followed by `data`.
    pub fn routing(self, kind: u8, data: &[u8]) -> Self {
        let mut body = vec![0, kind, 0];
        body.extend(data);
        pad_extension(&mut body, 0);
        self.extension(protocol::ROUTING, &body)
    }

    /// Adds an extension header with an unchecked body, or AH on IPv4. `body` has all bytes behind
    /// the next-header byte, so the length byte comes first; a fragment header has a reserved byte
    /// instead.
    pub fn extension(mut self, protocol: u8, body: &[u8]) -> Self {
        let body =
            if protocol == protocol::FRAGMENT { [&[0], body].concat() } else { body.to_vec() };
        self.extensions.push((protocol, body));
        self
    }

    /// Returns the packet with a TCP segment as payload, checksum included.
    pub fn tcp(&self, tcp: &Tcp) -> Vec<u8> {
        self.checked(protocol::TCP, tcp.bytes())
    }

    /// Returns the packet with a UDP datagram as payload, checksum included.
    pub fn udp(&self, udp: &Udp) -> Vec<u8> {
        self.checked(protocol::UDP, udp.bytes())
    }

    /// Returns the packet with an SCTP packet as payload, CRC32c included.
    pub fn sctp(&self, sctp: &Sctp) -> Vec<u8> {
        let mut data = sctp.bytes();
        let sum = checksum::crc32c(&data);
        data[8..12].copy_from_slice(&sum);
        self.raw(protocol::SCTP, &data)
    }

    /// Returns the packet with an ICMP or ICMPv6 message as payload, by the family of the packet.
    pub fn icmp(&self, icmp: &Icmp) -> Vec<u8> {
        self.checked(
            if self.is_ipv4() { protocol::ICMP } else { protocol::ICMP6 },
            icmp.bytes.clone(),
        )
    }

    /// Returns the packet with any payload, copied unchanged.
    pub fn raw(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let first = self.extensions.first().map_or(protocol, |extension| extension.0);
        let mut body = Vec::new();
        for (i, (_, extension)) in self.extensions.iter().enumerate() {
            body.push(self.extensions.get(i + 1).map_or(protocol, |next| next.0));
            body.extend(extension);
        }
        body.extend(payload);
        let mut packet = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.ipv4_header(source, destination, first, body.len())
            }
            (source, destination) => {
                self.ipv6_header(to_ipv6(source), to_ipv6(destination), first, body.len())
            }
        };
        packet.extend(body);
        packet
    }

    fn is_ipv4(&self) -> bool {
        self.source.is_ipv4() && self.destination.is_ipv4()
    }

    fn options_header(self, protocol: u8, options: &[u8]) -> Self {
        let mut body = vec![0];
        body.extend(options);
        pad_extension(&mut body, 1);
        self.extension(protocol, &body)
    }

    /// Returns the packet with a transport packet as payload, checksum included.
    fn checked(&self, protocol: u8, mut data: Vec<u8>) -> Vec<u8> {
        checksum::fix_transport(self.source, self.destination, protocol, &mut data);
        self.raw(protocol, &data)
    }

    fn ipv4_header(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        payload: usize,
    ) -> Vec<u8> {
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(self.tos >> 2).unwrap_or_default(),
            ecn: IpEcn::try_new(self.tos & 3).unwrap_or_default(),
            identification: self.id,
            dont_fragment: self.dont_fragment,
            more_fragments: self.more_fragments,
            fragment_offset: IpFragOffset::try_new(self.fragment_offset).unwrap_or_default(),
            time_to_live: self.ttl,
            protocol: IpNumber(protocol),
            source: source.octets(),
            destination: destination.octets(),
            options: Ipv4Options::try_from(self.options.as_slice()).unwrap_or_default(),
            ..Ipv4Header::default()
        };
        header.total_len = (header.header_len() + payload).min(0xffff) as u16;
        header.header_checksum = header.calc_header_checksum();
        header.to_bytes().to_vec()
    }

    fn ipv6_header(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        protocol: u8,
        payload: usize,
    ) -> Vec<u8> {
        let header = Ipv6Header {
            traffic_class: self.tos,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: payload.min(0xffff) as u16,
            next_header: IpNumber(protocol),
            hop_limit: self.ttl,
            source: source.octets(),
            destination: destination.octets(),
        };
        header.to_bytes().to_vec()
    }
}

/// A TCP segment under construction.
#[derive(Debug, Clone, Default)]
pub struct Tcp {
    source_port: u16,
    destination_port: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Tcp {
    /// Returns a segment without flags, options and data, with window 65535.
    pub fn new(source_port: u16, destination_port: u16) -> Self {
        Tcp { source_port, destination_port, window: 65535, ..Tcp::default() }
    }

    /// Sets the flags by their letters in pf.conf, such as `"SA"`. Other letters are ignored.
    pub fn flags(self, letters: &str) -> Self {
        let bits =
            (0..8).filter(|bit| letters.contains(tcp_flag::LETTERS[*bit])).map(|bit| 1 << bit);
        self.flag_bits(bits.sum())
    }

    /// Sets the flags byte, made of the bits in [`tcp_flag`].
    pub fn flag_bits(mut self, bits: u8) -> Self {
        self.flags = bits;
        self
    }

    /// Sets the sequence number.
    pub fn seq(mut self, seq: u32) -> Self {
        self.seq = seq;
        self
    }

    /// Sets the acknowledgment number. The ACK flag does not change.
    pub fn ack(mut self, ack: u32) -> Self {
        self.ack = ack;
        self
    }

    /// Sets the window field of the header, unscaled.
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    /// Adds a maximum segment size option, in bytes.
    pub fn mss(self, mss: u16) -> Self {
        let [high, low] = mss.to_be_bytes();
        self.option(&[2, 4, high, low])
    }

    /// Adds a window scale option.
    pub fn window_scale(self, shift: u8) -> Self {
        self.option(&[3, 3, shift])
    }

    /// Adds the bytes of an option. All options are padded to a multiple of 4, and cut at 40 bytes.
    pub fn option(mut self, bytes: &[u8]) -> Self {
        self.options.extend(bytes);
        self.options.truncate(40);
        self
    }

    /// Sets the data behind the header.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let has = |flag| self.flags & flag != 0;
        let mut header = TcpHeader {
            acknowledgment_number: self.ack,
            fin: has(tcp_flag::FIN),
            syn: has(tcp_flag::SYN),
            rst: has(tcp_flag::RST),
            psh: has(tcp_flag::PUSH),
            ack: has(tcp_flag::ACK),
            urg: has(tcp_flag::URG),
            ece: has(tcp_flag::ECE),
            cwr: has(tcp_flag::CWR),
            ..TcpHeader::new(self.source_port, self.destination_port, self.seq, self.window)
        };
        // cannot fail, because `option` limits the options to 40 bytes
        let _ = header.set_options_raw(&self.options);
        [header.to_bytes().as_slice(), &self.payload].concat()
    }
}

/// A UDP datagram under construction.
#[derive(Debug, Clone, Default)]
pub struct Udp {
    source_port: u16,
    destination_port: u16,
    payload: Vec<u8>,
}

impl Udp {
    /// Returns a datagram without data.
    pub fn new(source_port: u16, destination_port: u16) -> Self {
        Udp { source_port, destination_port, payload: Vec::new() }
    }

    /// Sets the data behind the header.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let header = UdpHeader {
            source_port: self.source_port,
            destination_port: self.destination_port,
            length: (UdpHeader::LEN + self.payload.len()).min(0xffff) as u16,
            checksum: 0,
        };
        [header.to_bytes().as_slice(), &self.payload].concat()
    }
}

/// An SCTP packet under construction.
#[derive(Debug, Clone, Default)]
pub struct Sctp {
    source_port: u16,
    destination_port: u16,
    tag: u32,
    chunks: Vec<u8>,
}

impl Sctp {
    /// Returns a packet of the common header alone, with verification tag 0.
    pub fn new(source_port: u16, destination_port: u16) -> Self {
        Sctp { source_port, destination_port, ..Sctp::default() }
    }

    /// Sets the verification tag.
    pub fn tag(mut self, tag: u32) -> Self {
        self.tag = tag;
        self
    }

    /// Sets the chunks, copied unchanged.
    pub fn chunks(mut self, chunks: &[u8]) -> Self {
        self.chunks = chunks.to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.source_port.to_be_bytes().to_vec();
        bytes.extend(self.destination_port.to_be_bytes());
        bytes.extend(self.tag.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.chunks);
        bytes
    }
}

/// An ICMP or ICMPv6 message.
#[derive(Debug, Clone)]
pub struct Icmp {
    bytes: Vec<u8>,
}

impl Icmp {
    /// Returns a message of 8 bytes: the bytes behind the checksum are zero.
    pub fn new(kind: u8, code: u8) -> Self {
        Icmp { bytes: vec![kind, code, 0, 0, 0, 0, 0, 0] }
    }

    /// Returns an error that quotes all bytes of `packet`.
    pub fn quoting(kind: u8, code: u8, packet: &[u8]) -> Self {
        Icmp::new(kind, code).payload(packet)
    }

    /// Sets the identifier of an echo, timestamp, information or mask message.
    pub fn id(mut self, id: u16) -> Self {
        self.bytes[4..6].copy_from_slice(&id.to_be_bytes());
        self
    }

    /// Sets the sequence number of an echo, timestamp, information or mask message.
    pub fn seq(mut self, seq: u16) -> Self {
        self.bytes[6..8].copy_from_slice(&seq.to_be_bytes());
        self
    }

    /// Sets the bytes behind the first 8.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.bytes.truncate(8);
        self.bytes.extend(payload);
        self
    }
}

/// Pads an extension header to a multiple of 8 bytes, and writes its length byte. `pad_option` 1
/// pads with a PadN option, 0 with zeros.
fn pad_extension(body: &mut Vec<u8>, pad_option: u8) {
    let missing = (body.len() + 1).next_multiple_of(8) - (body.len() + 1);
    match missing {
        0 => {}
        1 => body.push(0),
        n if pad_option == 1 => {
            body.extend([1, n as u8 - 2]);
            body.resize(body.len() + n - 2, 0);
        }
        n => body.resize(body.len() + n, 0),
    }
    body[0] = ((body.len() + 1) / 8 - 1).min(255) as u8;
}

fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn udp_over_ipv4() {
        let packet =
            ipv4([10, 0, 1, 5], [198, 51, 100, 7]).id(1).udp(&Udp::new(1, 53).payload(b"x"));
        assert_eq!(hex(&packet), "4500001d00010000401145900a000105c6336407000100350009526678");
    }

    #[test]
    fn tcp_options_are_padded_and_counted() {
        let packet = ipv4([1, 2, 3, 4], [5, 6, 7, 8])
            .tcp(&Tcp::new(1, 2).flags("S").mss(1460).window_scale(7));
        assert_eq!(packet[32] >> 4, 7);
        assert_eq!(&packet[40..48], [2, 4, 5, 180, 3, 3, 7, 0]);
        assert_eq!(packet[33], tcp_flag::SYN);
    }

    #[test]
    fn extension_headers_are_chained() {
        let packet = ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
            .hop_by_hop(&[5, 2, 0, 0])
            .fragment(0, false)
            .icmp(&Icmp::new(128, 0));
        assert_eq!(packet[6], protocol::HOP_BY_HOP);
        assert_eq!(packet[40..48], [protocol::FRAGMENT, 0, 5, 2, 0, 0, 1, 0]);
        assert_eq!(packet[48..56], [protocol::ICMP6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(packet[56], 128);
    }

    #[test]
    fn fix_restores_the_checksums_of_a_built_packet() {
        let built =
            ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(5, 6).flags("PA").payload(b"abc"));
        let mut broken = built.clone();
        broken[10] ^= 0x55;
        broken[36] ^= 0x55;
        checksum::fix(&mut broken);
        assert_eq!(broken, built);
    }
}

//! IPv6 extension headers of test traffic (RFC 5180 section 5.3): each alone, and a chain.

use serde::{Deserialize, Serialize};

/// The headers between the IPv6 and the transport header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// no extension header
    #[default]
    None,
    /// hop-by-hop options: 8 bytes of padding
    HopByHop,
    /// destination options: 8 bytes of padding
    Destination,
    /// a routing header of Mobile IPv6 without segments left: 24 bytes
    Routing,
    /// a fragment header of an unfragmented packet: 8 bytes
    Fragment,
    /// routing, destination options and fragment header, as between two mobile nodes: 40 bytes
    Chain,
}

/// Protocol numbers of extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// The routing type of Mobile IPv6 (RFC 6275). Filters drop type 0.
const MOBILE: u8 = 2;

impl Extension {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Extension::None => "none",
            Extension::HopByHop => "hop-by-hop",
            Extension::Destination => "destination",
            Extension::Routing => "routing",
            Extension::Fragment => "fragment",
            Extension::Chain => "chain",
        }
    }

    fn headers(self) -> &'static [u8] {
        match self {
            Extension::None => &[],
            Extension::HopByHop => &[HOP_BY_HOP],
            Extension::Destination => &[DESTINATION],
            Extension::Routing => &[ROUTING],
            Extension::Fragment => &[FRAGMENT],
            Extension::Chain => &[ROUTING, DESTINATION, FRAGMENT],
        }
    }

    /// Returns the length of all headers in bytes.
    pub fn length(self) -> usize {
        self.headers().iter().map(|&header| header_bytes(header)).sum()
    }

    /// Inserts the headers behind the IPv6 header of a frame, and corrects its length and next
    /// header.
    pub fn put_into(self, frame: &mut Vec<u8>) {
        const LENGTH: usize = 14 + 4;
        const NEXT: usize = 14 + 6;
        const END: usize = 14 + 40;
        let mut chain = Vec::with_capacity(self.length());
        let protocol = frame[NEXT];
        let following = self.headers().iter().skip(1).copied().chain([protocol]);
        for (&header, next) in self.headers().iter().zip(following) {
            let start = chain.len();
            chain.resize(start + header_bytes(header), 0);
            let bytes = &mut chain[start..];
            bytes[0] = next;
            match header {
                // a PadN option over the remaining bytes
                HOP_BY_HOP | DESTINATION => bytes[2..4].copy_from_slice(&[1, 4]),
                // the home address is the destination that the frame already has
                ROUTING => {
                    bytes[1..3].copy_from_slice(&[2, MOBILE]);
                    bytes[8..24].copy_from_slice(&frame[END - 16..END]);
                }
                // offset 0 and no more fragments: an atomic fragment (RFC 6946)
                _ => bytes[4..8].copy_from_slice(&1u32.to_be_bytes()),
            }
        }
        if let Some(&first) = self.headers().first() {
            let length = u16::from_be_bytes([frame[LENGTH], frame[LENGTH + 1]]);
            let length = length + chain.len() as u16;
            frame[LENGTH..LENGTH + 2].copy_from_slice(&length.to_be_bytes());
            frame[NEXT] = first;
            frame.splice(END..END, chain);
        }
    }
}

fn header_bytes(header: u8) -> usize {
    if header == ROUTING { 24 } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};

    #[test]
    fn parsers_find_the_named_headers() {
        for extension in Extension::value_variants() {
            let ends = [[0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]; 2];
            let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]);
            let builder = builder.ipv6(ends[0], ends[1], 64).udp(1024, 9);
            let mut frame = Vec::new();
            builder.write(&mut frame, &[7; 20]).unwrap();
            let plain = frame.len();
            extension.put_into(&mut frame);
            assert_eq!(frame.len(), plain + extension.length());

            let headers = PacketHeaders::from_ethernet_slice(&frame).unwrap();
            let Some(NetHeaders::Ipv6(ip, parts)) = headers.net else { panic!("{extension:?}") };
            assert_eq!(usize::from(ip.payload_length), frame.len() - 54);
            let Some(TransportHeader::Udp(udp)) = headers.transport else {
                panic!("{extension:?}")
            };
            assert_eq!((udp.source_port, udp.destination_port), (1024, 9));
            assert_eq!(headers.payload.slice(), [7; 20]);
            let has = |one: &[Extension]| one.contains(extension);
            use Extension::{Chain, Destination, Fragment, HopByHop, Routing};
            assert_eq!(parts.hop_by_hop_options.is_some(), has(&[HopByHop]));
            assert_eq!(parts.routing.is_some(), has(&[Routing, Chain]));
            assert_eq!(parts.fragment.is_some(), has(&[Fragment, Chain]));
            let last = parts.routing.and_then(|routing| routing.final_destination_options);
            let options = parts.destination_options.or(last);
            assert_eq!(options.is_some(), has(&[Destination, Chain]), "{extension:?}");
            assert!(parts.fragment.is_none_or(|one| !one.is_fragmenting_payload()));
        }
    }
}

//! Frame templates: the fixed headers, and the sums from which a checksum takes a few additions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context, ensure};
use etherparse::PacketBuilder;
use etherparse::checksum::Sum16BitWords;
use fwlab_net::family::Family;
use fwlab_net::transport::Transport;
use skipstep_kernel::lab::{FrameKind, LARGEST_FRAME, MAGIC, TAG_BYTES, Template};

use super::extension::Extension;

/// The fixed headers of frames.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// UDP or TCP.
    pub transport: Transport,
    /// The IPv6 extension headers. None over IPv4.
    pub extension: Extension,
    /// The link addresses of sender and receiver.
    pub links: [[u8; 6]; 2],
    /// The IP addresses of source and destination, of one family.
    pub addresses: [IpAddr; 2],
    /// The ports of source and destination.
    pub ports: [u16; 2],
}

/// Bytes of the Ethernet checksum. Frame sizes include them, buffers do not.
pub const CHECKSUM_BYTES: usize = 4;

impl Flow {
    /// Returns the family of the addresses.
    pub fn family(&self) -> Family {
        if self.addresses[0].is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Returns the reverse flow, with `link` as the receiver's link address.
    pub fn answer(&self, link: [u8; 6]) -> Flow {
        let ([from, to], [source, destination]) = (self.addresses, self.ports);
        Flow {
            transport: self.transport,
            extension: self.extension,
            links: [self.links[1], link],
            addresses: [to, from],
            ports: [destination, source],
        }
    }

    fn kind(&self) -> FrameKind {
        match (self.family(), self.transport) {
            (Family::V4, Transport::Udp) => FrameKind::Udp4,
            (Family::V4, Transport::Tcp) => FrameKind::Tcp4,
            (Family::V6, Transport::Udp) => FrameKind::Udp6,
            (Family::V6, Transport::Tcp) => FrameKind::Tcp6,
        }
    }

    /// Returns the offsets of the transport header and of the tag, in bytes.
    pub(super) fn offsets(&self) -> (usize, usize) {
        let transport = match self.family() {
            Family::V4 => 34,
            Family::V6 => 54 + self.extension.length(),
        };
        (transport, transport + if self.transport == Transport::Udp { 8 } else { 20 })
    }

    /// Returns the size of the smallest frame with room for the tag, in bytes.
    pub fn smallest(&self) -> usize {
        self.offsets().1 + TAG_BYTES + CHECKSUM_BYTES
    }

    /// Returns a frame of `size` bytes. The size includes the checksum, as in RFC 2544; the
    /// returned bytes do not.
    ///
    /// # Errors
    /// Fails if the size is too small or too large, or if extension headers are to go over IPv4.
    pub fn frame(&self, size: usize) -> anyhow::Result<Vec<u8>> {
        let smallest = self.smallest();
        ensure!(
            size >= smallest,
            "frames of {size} bytes have no room for headers, serial number and time: the smallest \
             of {} over {} has {smallest}: write --size {smallest} or more",
            self.transport,
            self.family()
        );
        ensure!(
            self.extension == Extension::None || self.family() == Family::V6,
            "IPv4 has no extension headers: add --ip 6"
        );
        let (_, tag) = self.offsets();
        let mut payload = vec![0; size - CHECKSUM_BYTES - tag];
        payload[..2].copy_from_slice(&MAGIC.to_ne_bytes());
        let ethernet = PacketBuilder::ethernet2(self.links[0], self.links[1]);
        let ip = match self.addresses {
            [IpAddr::V4(from), IpAddr::V4(to)] => ethernet.ipv4(from.octets(), to.octets(), 64),
            [from, to] => ethernet.ipv6(sixteen(from), sixteen(to), 64),
        };
        let mut frame = Vec::with_capacity(size);
        let [from, to] = self.ports;
        match self.transport {
            Transport::Udp => ip.udp(from, to).write(&mut frame, &payload),
            Transport::Tcp => ip.tcp(from, to, 1, 8192).ack(1).psh().write(&mut frame, &payload),
        }
        .with_context(|| format!("frames of {size} bytes"))?;
        self.extension.put_into(&mut frame);
        Ok(frame)
    }

    /// Returns a frame of `size` bytes as a template of the generator.
    ///
    /// # Errors
    /// Fails as [`Flow::frame`] does, or if the frame does not fit into a page.
    pub fn template(&self, size: usize) -> anyhow::Result<Template> {
        let frame = self.frame(size)?;
        ensure!(
            frame.len() <= LARGEST_FRAME,
            "frames of {size} bytes: the engine xdp makes frames of up to {} bytes: add --engine \
             packet",
            LARGEST_FRAME + CHECKSUM_BYTES
        );
        let sums = self.sums(&frame);
        let (length, extension) = (frame.len() as u32, self.extension.length() as u32);
        Ok(Template::new(self.kind(), length, extension, &frame[..self.offsets().1], sums))
    }

    /// Returns the sums of all fixed bytes that the checksums of the IP and of the transport header
    /// cover, as 16 bits in the machine's byte order.
    pub(super) fn sums(&self, frame: &[u8]) -> [u32; 2] {
        let (transport, tag) = self.offsets();
        let is_v4 = self.family() == Family::V4;
        let mut fixed = frame.to_vec();
        // varying: the last words of both addresses, the ports, and the checksums themselves
        let addresses = if is_v4 { [26, 30] } else { [34, 50] };
        for word in addresses.into_iter().chain([transport]) {
            fixed[word..word + 4].fill(0);
        }
        let checksum = if self.transport == Transport::Udp { 6 } else { 16 };
        fixed[transport + checksum..transport + checksum + 2].fill(0);
        fixed[tag + 2..tag + TAG_BYTES].fill(0);
        if is_v4 {
            fixed[24..26].fill(0);
        }
        let protocol = if self.transport == Transport::Udp { 17u8 } else { 6 };
        let length = (frame.len() - transport) as u16;
        let network = if is_v4 { &fixed[14..34] } else { &[] };
        let prefixes = if is_v4 { &[] } else { &fixed[22..54] };
        let network = Sum16BitWords::new().add_slice(network);
        let transport = Sum16BitWords::new()
            .add_2bytes([0, protocol])
            .add_2bytes(length.to_be_bytes())
            .add_slice(prefixes)
            .add_slice(&fixed[transport..]);
        [network, transport].map(|sum| u32::from(!sum.ones_complement()))
    }
}

fn sixteen(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => Ipv4Addr::to_ipv6_mapped(&address).octets(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address),
    }
}

#[cfg(test)]
mod tests {
    use fwlab_net::topology::End;

    use super::*;
    use clap::ValueEnum;

    fn flow(transport: Transport, family: Family) -> Flow {
        Flow {
            transport,
            extension: Extension::None,
            links: [End::Client.link(), End::Server.link()],
            addresses: [End::Client.address(family), End::Server.address(family)],
            ports: [1024, 9],
        }
    }

    #[test]
    fn sums_make_the_checksums_that_others_compute() {
        for transport in [Transport::Udp, Transport::Tcp] {
            for (family, extension) in [(Family::V4, Extension::None)]
                .into_iter()
                .chain(Extension::value_variants().iter().map(|&one| (Family::V6, one)))
            {
                let flow = Flow { extension, ..flow(transport, family) };
                for size in [flow.smallest(), flow.smallest() + 1, 512, 1518] {
                    let frame = flow.frame(size).unwrap();
                    assert_eq!(frame.len() + CHECKSUM_BYTES, size);
                    let [network, transport_sum] = flow.sums(&frame);
                    let (start, _) = flow.offsets();
                    let addresses = if family == Family::V4 { [26, 30] } else { [34, 50] };
                    let varies = |sum: u32, places: &[usize]| {
                        let fixed = Sum16BitWords::new().add_4bytes(sum.to_ne_bytes());
                        let add =
                            |sum: Sum16BitWords, &at: &usize| sum.add_slice(&frame[at..at + 4]);
                        places.iter().fold(fixed, add).ones_complement()
                    };
                    let at = start + if transport == Transport::Udp { 6 } else { 16 };
                    let read = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
                    let [from, to] = addresses;
                    let ours = varies(transport_sum, &[from, to, start]);
                    assert_eq!(ours, read(at), "{flow:?} {size}");
                    if family == Family::V4 {
                        assert_eq!(varies(network, &addresses), read(24));
                    }
                }
            }
        }
    }

    #[test]
    fn the_smallest_udp_frame_is_that_of_ethernet() {
        assert_eq!(flow(Transport::Udp, Family::V4).smallest(), 64);
        assert_eq!(flow(Transport::Tcp, Family::V6).smallest(), 96);
        assert!(flow(Transport::Tcp, Family::V4).frame(64).is_err());
        assert!(flow(Transport::Udp, Family::V4).template(9018).is_err());
        let chain = |family| Flow { extension: Extension::Chain, ..flow(Transport::Udp, family) };
        assert_eq!(chain(Family::V6).smallest(), 124);
        let refused = chain(Family::V4).frame(200).unwrap_err().to_string();
        assert!(refused.contains("IPv4 has no extension headers"), "{refused}");
    }
}

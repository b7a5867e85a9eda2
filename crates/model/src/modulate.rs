//! `modulate state`: the firewall replaces the sequence numbers of a side that chooses badly
//! (pf-semantics section 8). Packets from the side have a difference added to their numbers.
//! Packets to the side have it subtracted from the numbers that they acknowledge.

use skipstep_views::Peer;

use crate::packet::{Descriptor, Transport};
use crate::{patch, tcp_option};

/// Returns the difference to add to the numbers of a side that begins with `first`. The result is
/// never 0, because 0 means that the side is not modulated.
pub(crate) fn difference(chosen: u32, first: u32) -> u32 {
    match chosen.wrapping_sub(first) {
        0 => 1,
        difference => difference,
    }
}

/// Adds the sender's difference to the sequence number, and subtracts the receiver's from the
/// acknowledgment.
pub(crate) fn segment(packet: &mut Descriptor, from: &Peer, to: &Peer) {
    let Transport::Tcp(tcp) = &mut packet.transport else {
        return;
    };
    tcp.seq = tcp.seq.wrapping_add(from.seqdiff);
    tcp.ack = tcp.ack.wrapping_sub(to.seqdiff);
    let (start, checksum) = (packet.offset, packet.offset + 16);
    patch::long(&mut packet.bytes, checksum, start, start + 4, tcp.seq);
    patch::long(&mut packet.bytes, checksum, start, start + 8, tcp.ack);
}

/// Subtracts the receiver's difference from the edges of the blocks in SACK options (RFC 2018).
pub(crate) fn sack(packet: &mut Descriptor, to: &Peer) {
    let (start, checksum) = (packet.offset, packet.offset + 16);
    let options = start + 20;
    for edge in tcp_option::sack_edges(packet.tcp_options()) {
        let at = options + edge.start;
        let number = long_at(&packet.bytes, at).wrapping_sub(to.seqdiff);
        patch::long(&mut packet.bytes, checksum, start, at, number);
    }
}

/// Subtracts the sender's difference from the sequence number of a segment that an ICMP error
/// quotes. Corrects the checksum of the error, because the segment's covers more than is quoted.
pub(crate) fn quoted(packet: &mut Descriptor, offset: usize, from: &Peer) {
    let (start, checksum) = (packet.offset, packet.offset + 2);
    let number = long_at(&packet.bytes, offset + 4).wrapping_sub(from.seqdiff);
    patch::long(&mut packet.bytes, checksum, start, offset + 4, number);
}

fn long_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

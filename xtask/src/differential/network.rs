//! A network that loses, duplicates, delays and fragments packets.

use std::collections::VecDeque;

use fastrand::Rng;
use skipstep_scenario::case::Arrival;
use skipstep_scenario::packet::Packet;
use skipstep_wire::checksum;

use super::pool::{one_in, pick};

/// The packets on their way.
#[derive(Default)]
pub struct Network {
    late: VecDeque<Arrival>,
}

impl Network {
    /// Returns a delayed packet that arrives now.
    pub fn arrival(&mut self, rng: &mut Rng) -> Option<Arrival> {
        let comes = self.late.len() > 6 || !self.late.is_empty() && one_in(rng, 2);
        comes.then(|| self.late.pop_front()).flatten()
    }

    /// Sends a packet, and returns the part that arrives at once; `None` if it is lost or delayed.
    pub fn send(&mut self, rng: &mut Rng, arrival: Arrival) -> Option<Arrival> {
        match rng.u8(..40) {
            0 => None,
            1 => {
                self.late.push_back(arrival);
                None
            }
            2 => {
                self.late.push_back(arrival.clone());
                Some(arrival)
            }
            3..6 => {
                let pieces = fragments(rng, &arrival.packet.bytes());
                let mut pieces =
                    pieces.into_iter().map(|bytes| (Packet::Hex(bytes), arrival.clone()));
                let first = pieces.next().map(|(packet, arrival)| Arrival { packet, ..arrival });
                let others = pieces.map(|(packet, arrival)| Arrival { packet, ..arrival });
                // the other fragments arrive next
                others.rev().for_each(|piece| self.late.push_front(piece));
                first.or(Some(arrival))
            }
            _ => Some(arrival),
        }
    }
}

/// Fragments a packet. The result is in order of arrival, and may lack fragments or have wrong
/// ones. It is empty for a packet that is too short or a fragment already.
fn fragments(rng: &mut Rng, packet: &[u8]) -> Vec<Vec<u8>> {
    let Some((header, data)) = parts(packet) else { return Vec::new() };
    let size = pick(rng, &[8, 8, 16, 24, 64, 256]);
    if data.len() <= size || data.len() / size > 8 {
        return Vec::new();
    }
    let id = rng.u32(..4);
    let mut pieces: Vec<(usize, usize, bool)> = (0..data.len())
        .step_by(size)
        .map(|at| (at, (at + size).min(data.len()), at + size < data.len()))
        .collect();
    let some = rng.usize(..pieces.len());
    match rng.u8(..12) {
        0 => drop(pieces.remove(some)),
        1 => pieces.push(pieces[some]),
        // a fragment that overlaps the previous one, ends early, or has a wrong more-fragments flag
        2 => pieces[some].0 = pieces[some].0.saturating_sub(8),
        3 => pieces[some].1 -= rng.usize(..8).min(pieces[some].1 - pieces[some].0),
        4 => pieces[some].2 = !pieces[some].2,
        5 | 6 => rng.shuffle(&mut pieces),
        7 => pieces.reverse(),
        _ => {}
    }
    let cut =
        |(from, to, more): (usize, usize, bool)| piece(header, &data[from..to], from, more, id);
    pieces.into_iter().map(cut).collect()
}

/// Splits a whole packet into header and data; `None` for a fragment.
fn parts(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = skipstep_wire::ip_length(packet).min(packet.len());
    let header = match packet.first()? >> 4 {
        4 if packet.get(6)? & 0x3f == 0 && *packet.get(7)? == 0 => usize::from(packet[0] & 15) * 4,
        6 => 40,
        _ => return None,
    };
    (header >= 20 && header < length).then(|| packet[..length].split_at(header))
}

fn piece(header: &[u8], data: &[u8], offset: usize, more: bool, id: u32) -> Vec<u8> {
    let mut packet = header.to_vec();
    if header[0] >> 4 == 4 {
        let length = (header.len() + data.len()) as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[4..6].copy_from_slice(&(id as u16).to_be_bytes());
        let field = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        checksum::fix_ipv4_header(&mut packet);
    } else {
        packet[4..6].copy_from_slice(&((8 + data.len()) as u16).to_be_bytes());
        let next = std::mem::replace(&mut packet[6], 44);
        packet.extend([next, 0]);
        packet.extend(((offset as u16) | u16::from(more)).to_be_bytes());
        packet.extend(id.to_be_bytes());
    }
    packet.extend(data);
    packet
}

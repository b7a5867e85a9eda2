//! Sequence numbers, flags and options of TCP segments: those that a state accepts, and those just
//! beyond.

use std::net::IpAddr;

use fastrand::Rng;
use skipstep_ruleset::Direction;
use skipstep_scenario::case::Arrival;
use skipstep_scenario::observe::Observation;
use skipstep_scenario::packet::Packet;
use skipstep_views::{Peer, StateView};
use skipstep_wire::build;

use super::pool::{one_in, pick};

/// The flags of a TCP header.
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const PUSH: u8 = 8;
pub(super) const ACK: u8 = 16;

/// Range of acknowledgments that pf accepts, MAXACKWINDOW in pf.c (pf-semantics section 8).
const MAX_ACK_WINDOW: u32 = 65535 + 1500;

/// The client's peer state while `synproxy` waits for the client, and then for the server.
const PROXY_SRC: u8 = 11;
const PROXY_DST: u8 = 12;

/// Draws a timestamp option, mostly a plausible one, at an even or an odd offset.
pub(super) fn timestamp(rng: &mut Rng, age: u32, echoes: bool) -> Vec<u8> {
    let near = |rng: &mut Rng| match rng.u8(..8) {
        0 => rng.u32(..),
        1 => 0,
        2 => 1000 + age + 33_000,
        _ => 1000 + rng.u32(..age + 1),
    };
    let mut option = pick(rng, &[&[1, 1][..], &[1], &[]]).to_vec();
    option.extend([8, if one_in(rng, 20) { rng.u8(..) } else { 10 }]);
    option.extend(near(rng).to_be_bytes());
    option.extend(if echoes { near(rng) } else { 0 }.to_be_bytes());
    option
}

/// Draws a SACK option at an even or an odd offset. Its length may be wrong.
pub(super) fn sack(rng: &mut Rng, ack: u32) -> Vec<u8> {
    let blocks = rng.u8(1..4);
    let mut option = pick(rng, &[&[1, 1][..], &[1], &[]]).to_vec();
    option.extend([5, if one_in(rng, 8) { rng.u8(..) } else { 2 + 8 * blocks }]);
    for edge in 0..u32::from(blocks) * 2 {
        option.extend(ack.wrapping_add(edge * 1000).to_be_bytes());
    }
    option
}

/// Draws malformed options: known and unknown kinds, with right, too long, too short or missing
/// lengths, and an end in the middle.
pub(super) fn odd_options(rng: &mut Rng) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..rng.usize(1..7) {
        let kind = pick(rng, &[0, 1, 1, 2, 2, 3, 4, 5, 8, 8, 9, 14, 19, 29, 30, 34, 69, 253, 255]);
        options.push(kind);
        if kind < 2 {
            continue;
        }
        let fits = match kind {
            2 => 4,
            3 => 3,
            4 => 2,
            8 => 10,
            19 => 18,
            _ => pick(rng, &[2, 4, 10, 18]),
        };
        let length = match rng.u8(..6) {
            0 => rng.u8(..4),
            1 => rng.u8(..),
            _ => fits,
        };
        options.push(length);
        options.extend((2..fits).map(|_| rng.u8(..)));
    }
    options.truncate(if one_in(rng, 4) { rng.usize(..41) } else { 40 });
    options
}

/// Returns the segment that completes a handshake with the firewall, if the firewall has answered a
/// SYN with a SYN|ACK.
pub(super) fn handshake_ack(syn: &Arrival, observation: &Observation) -> Option<Arrival> {
    let answer = observation.fate.replies.first()?;
    let (ends, tcp): ([IpAddr; 2], &[u8]) = match answer.first()? >> 4 {
        4 => {
            let at =
                |at: usize| <[u8; 4]>::try_from(answer.get(at..at + 4)?).ok().map(IpAddr::from);
            ([at(12)?, at(16)?], answer.get(20..)?)
        }
        _ => {
            let at =
                |at: usize| <[u8; 16]>::try_from(answer.get(at..at + 16)?).ok().map(IpAddr::from);
            ([at(8)?, at(24)?], answer.get(40..)?)
        }
    };
    let word = |at: usize| tcp.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    if *tcp.get(13)? != SYN | ACK || syn.direction != Direction::In {
        return None;
    }
    let ports = word(0)?;
    let segment = build::Tcp::new(ports as u16, (ports >> 16) as u16);
    let segment = segment.flag_bits(ACK).seq(word(8)?).ack(word(4)?.wrapping_add(1));
    let packet = Packet::Hex(build::ip(ends[1], ends[0]).tcp(&segment));
    Some(Arrival { packet, ..syn.clone() })
}

/// Returns flags, sequence number and acknowledgment of the segment that `synproxy` waits for. The
/// sequence number is `None` if any is accepted. Returns `None` without a handshake.
pub(super) fn synproxy_segment((sender, receiver): (Peer, Peer)) -> Option<(u8, Option<u32>, u32)> {
    if matches!(sender.state, PROXY_SRC | PROXY_DST) {
        let (seq, ack) = (sender.seqlo.wrapping_add(1), sender.seqhi.wrapping_add(1));
        Some((ACK, Some(seq), ack))
    } else if receiver.state == PROXY_DST {
        Some((SYN | ACK, None, sender.seqhi.wrapping_add(1)))
    } else {
        None
    }
}

/// Returns the sender's and the receiver's peer of a flow's state; `None` without a state.
pub(super) fn peers(
    states: &[(u32, StateView)],
    from: (IpAddr, u16, &str),
    to: (IpAddr, u16, &str),
) -> Option<(Peer, Peer)> {
    let (from, to) = ((from.0, from.1), (to.0, to.1));
    states.iter().rev().map(|(_, state)| state).filter(|state| state.protocol == 6).find_map(
        |state| {
            let maker = if state.direction == Direction::In { 0 } else { 1 };
            let (source, destination) = (state.wire[maker], state.wire[1 - maker]);
            if (source, destination) == (from, to) {
                Some((state.src, state.dst))
            } else if (destination, source) == (from, to) {
                Some((state.dst, state.src))
            } else {
                None
            }
        },
    )
}

/// Draws numbers at the edge of those that pf accepts, or one beyond.
pub(super) fn at_an_edge(
    rng: &mut Rng,
    (seq, ack): (u32, u32),
    sender: &Peer,
    receiver: &Peer,
    length: u32,
) -> (u32, u32) {
    let near = rng.u32(..3).wrapping_sub(1);
    match rng.u8(..10) {
        0 => (sender.seqhi.wrapping_sub(length).wrapping_add(near), ack),
        1 => (
            sender
                .seqlo
                .wrapping_sub(u32::from(receiver.max_win) << receiver.shift())
                .wrapping_add(near),
            ack,
        ),
        2 => (sender.seqlo.wrapping_add(near), ack),
        3 => {
            (sender.seqhi.wrapping_add(MAX_ACK_WINDOW).wrapping_sub(length).wrapping_add(near), ack)
        }
        4 => (sender.seqlo.wrapping_sub(MAX_ACK_WINDOW).wrapping_add(near), ack),
        5 => (seq, receiver.seqlo.wrapping_add(MAX_ACK_WINDOW).wrapping_add(near)),
        6 => {
            (seq, receiver.seqlo.wrapping_sub(MAX_ACK_WINDOW << sender.shift()).wrapping_add(near))
        }
        7 => (seq, receiver.seqlo.wrapping_add(near)),
        8 => (seq.wrapping_add(1 << 31), ack),
        _ => (rng.u32(..), rng.u32(..)),
    }
}

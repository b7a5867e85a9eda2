//! Tracking of TCP connections: full, with both windows, and sloppy, without windows (pf-semantics
//! section 8). The algorithm of full tracking is Guido van Rooij's ("Real Stateful TCP Packet
//! Filtering in IP Filter", 2000), window scaling is that of RFC 7323.
//!
//! A connection is seen from the packet being tracked: `from` is its sender, `to` its receiver.
//! Sequence numbers are compared as serial numbers (RFC 1982).

use skipstep_ruleset::Timeout;
use skipstep_views::{Peer, WSCALE_OFFERED};
use skipstep_wire::tcp_flag::{ACK, FIN, RST, SYN};

use crate::modulate;
use crate::packet::{Descriptor, Tcp};
use crate::side::tcp_state::{CLOSED, CLOSING, ESTABLISHED, FIN_WAIT_2, SYN_SENT, TIME_WAIT};
use crate::state::State;
use crate::tcp_option;
use crate::timestamp::{self, BadTimestamp, Scrub, Sides};
use crate::world::World;

/// Maximum distance in bytes of an acknowledgment from the window: a maximal segment and a bit.
const MAX_ACK_WINDOW: i32 = 0xffff + 1500;

/// The result of tracking a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// The segment belongs to the connection.
    Accepted,
    /// The segment belongs to the connection, and establishes it.
    Connected,
    /// The segment does not fit the windows.
    Mismatch,
    /// The sequence number fits, but the timestamp does not.
    BadTimestamp,
    /// The segment does not fit, and each side has only sent a SYN: the sender gets a RST.
    HandshakeMismatch,
    /// A SYN on an open connection: the sender gets a challenge ACK.
    UnexpectedSyn,
    /// A SYN on a connection that has ended: it begins a new connection.
    Reopens,
}

/// Tracks a segment of a connection, and updates the state.
///
/// `slack` is `tcp.tsdiff` of the state's rule, in seconds.
pub(crate) fn track(
    state: &mut State,
    packet: &mut Descriptor,
    tcp: &Tcp,
    world: &World,
    slack: u32,
) -> Tracked {
    let (from, to) = state.peers_mut(packet.direction);
    if tcp.opens() {
        if from.state >= FIN_WAIT_2 && to.state >= FIN_WAIT_2 {
            return Tracked::Reopens;
        }
        if from.state >= ESTABLISHED && to.state >= ESTABLISHED {
            return Tracked::UnexpectedSyn;
        }
    }
    if state.sloppy {
        track_sloppy(state, packet, tcp, world.now)
    } else {
        track_full(state, packet, tcp, world, slack)
    }
}

/// Returns the sides of a connection at its first segment: only the sender is known.
pub(crate) fn first_segment(tcp: &Tcp, options: &[u8]) -> (Peer, Peer) {
    let window_scale = tcp_option::window_scale(options).filter(|_| tcp.has(SYN));
    let wscale = window_scale.map_or(0, |shift| shift | WSCALE_OFFERED);
    let shift = window_scale.map_or(0, u32::from);
    let max_win = unscaled(tcp.window.max(1), shift);
    let seqhi = tcp
        .seq
        .wrapping_add(tcp.payload_len + 1)
        .wrapping_add(u32::from(tcp.has(SYN)))
        .wrapping_add(u32::from(tcp.has(FIN)));
    let src = Peer { state: SYN_SENT, seqlo: tcp.seq, seqhi, seqdiff: 0, max_win, wscale };
    let dst = Peer { state: CLOSED, seqhi: 1, max_win: 1, ..Peer::default() };
    (src, dst)
}

/// Returns the window of a SYN, which is never scaled, as a scaled number, rounded up.
fn unscaled(window: u16, shift: u32) -> u16 {
    ((u32::from(window) + (1 << shift) - 1) >> shift) as u16
}

/// Returns true if `a` is not before `b`.
fn not_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// A segment in the sequence space of its connection.
struct Segment {
    seq: u32,
    /// Sequence number behind its last byte.
    data_end: u32,
    /// Sequence number behind its FIN.
    end: u32,
    ack: u32,
    window: u32,
    /// Shift of the sender's windows, 0 unless both sides agreed on scaling.
    from_shift: u32,
    /// Shift of the receiver's windows, 0 unless both sides agreed on scaling.
    to_shift: u32,
}

impl Segment {
    fn new(tcp: &Tcp, from: &Peer, to: &Peer) -> Self {
        let scaled = from.wscale != 0 && to.wscale != 0 && !tcp.has(SYN);
        let data_end = tcp.seq.wrapping_add(tcp.payload_len).wrapping_add(u32::from(tcp.has(SYN)));
        Segment {
            seq: tcp.seq,
            data_end,
            end: data_end.wrapping_add(u32::from(tcp.has(FIN))),
            ack: tcp.ack.wrapping_sub(to.seqdiff),
            window: tcp.window.into(),
            from_shift: if scaled { from.shift() } else { 0 },
            to_shift: if scaled { to.shift() } else { 0 },
        }
    }

    /// Returns the window in bytes.
    fn scaled_window(&self) -> u32 {
        self.window << self.from_shift
    }
}

fn track_full(
    state: &mut State,
    packet: &mut Descriptor,
    tcp: &Tcp,
    world: &World,
    slack: u32,
) -> Tracked {
    init_timestamps(state, packet, world);
    let through = state.direction_of(packet);
    let (from, to) = state.peers_mut(through);
    let mut segment = Segment::new(tcp, from, to);
    if from.seqlo == 0 {
        if to.seqdiff != 0 && from.seqdiff == 0 {
            from.seqdiff = modulate::difference(world.sequence, tcp.seq);
            modulate::segment(packet, from, to);
        } else {
            // PF does not modulate a side whose first segment comes for the second time
            segment.ack = tcp.ack;
        }
        init_side(&mut segment, packet, tcp, from, to);
    } else if from.seqdiff != 0 {
        modulate::segment(packet, from, to);
    }
    if to.seqdiff != 0 {
        modulate::sack(packet, to);
    }
    if !tcp.has(ACK) {
        segment.ack = to.seqlo;
    } else if to.state < SYN_SENT || segment.ack == 0 && tcp.has(RST) {
        // nothing to acknowledge yet; a side that gives up its SYN may send RST|ACK or FIN|ACK with
        // 0
        segment.ack = to.seqlo;
    }
    if segment.seq == segment.end {
        // without data the sequence number does not matter
        segment.seq = from.seqlo;
        segment.data_end = from.seqlo;
        segment.end = from.seqlo;
    }

    let (strictly, loosely) = (fits(&segment, tcp, from, to), fits_loosely(&segment, from, to));
    if (strictly || loosely) && check_timestamps(state, packet, world.now, slack).is_err() {
        return Tracked::BadTimestamp;
    }
    let (from, to) = state.peers_mut(through);
    if strictly {
        slide(&segment, from, to);
        advance_sender(from, tcp);
        let mut connected = false;
        if tcp.has(ACK) {
            match to.state {
                SYN_SENT => {
                    to.state = ESTABLISHED;
                    connected = from.state == ESTABLISHED;
                }
                CLOSING => to.state = FIN_WAIT_2,
                _ => {}
            }
        }
        if tcp.has(RST) {
            (from.state, to.state) = (TIME_WAIT, TIME_WAIT);
        }
        refresh(state, world.now);
        if connected { Tracked::Connected } else { Tracked::Accepted }
    } else if loosely {
        // not refreshed: a flood of such packets must not keep the state alive
        slide(&segment, from, to);
        if tcp.has(FIN) {
            from.state = from.state.max(CLOSING);
        }
        if tcp.has(RST) {
            (from.state, to.state) = (TIME_WAIT, TIME_WAIT);
        }
        Tracked::Accepted
    } else if from.state == SYN_SENT && to.state == SYN_SENT {
        // forget the side, so its next segment counts as its first
        (from.seqlo, from.seqhi, from.max_win) = (0, 1, 1);
        Tracked::HandshakeMismatch
    } else {
        Tracked::Mismatch
    }
}

/// Reads TTL and timestamps of a side's first segment, for `reassemble tcp`.
fn init_timestamps(state: &mut State, packet: &Descriptor, world: &World) {
    let way = state.side_index(state.direction_of(packet));
    let from = if way == 0 { &state.src } else { &state.dst };
    let wanted = state.actions.reassemble_tcp || state.scrub[1 - way].is_some();
    if from.seqlo == 0 && wanted && state.scrub[way].is_none() {
        state.scrub[way] = Some(Scrub::from_first_packet(packet, world));
    }
}

/// Checks for `reassemble tcp` that a segment's timestamp continues the earlier timestamps.
pub(crate) fn check_timestamps(
    state: &mut State,
    packet: &mut Descriptor,
    now: u32,
    slack: u32,
) -> Result<(), BadTimestamp> {
    let forward = state.direction_of(packet) == state.direction;
    let State { src, dst, scrub: [src_scrub, dst_scrub], created_at, .. } = state;
    let ((from, from_scrub), (to, to_scrub)) = if forward {
        ((src, src_scrub), (dst, dst_scrub))
    } else {
        ((dst, dst_scrub), (src, src_scrub))
    };
    if from_scrub.is_none() && to_scrub.is_none() {
        return Ok(());
    }
    let created_at = *created_at;
    let sides = Sides { from, to, from_scrub, to_scrub, created_at, slack };
    timestamp::track(packet, sides, now)
}

/// Initializes a side from its first segment.
fn init_side(
    segment: &mut Segment,
    packet: &Descriptor,
    tcp: &Tcp,
    from: &mut Peer,
    to: &mut Peer,
) {
    if tcp.has(SYN) && to.wscale & WSCALE_OFFERED != 0 {
        match tcp_option::window_scale(packet.tcp_options()) {
            Some(shift) => {
                from.wscale = shift | WSCALE_OFFERED;
                segment.from_shift = from.shift();
                segment.to_shift = to.shift();
                segment.window = unscaled(tcp.window, from.shift()).into();
            }
            None => {
                // scaling was declined: the other side's window is the number in its SYN
                from.wscale = 0;
                to.max_win = (u32::from(to.max_win) << to.shift()).min(0xffff) as u16;
                to.wscale = 0;
            }
        }
    }
    from.seqlo = tcp.seq;
    from.state = from.state.max(SYN_SENT);
    // A limit may exist already: from a mismatch in the handshake, or from acknowledgments if the
    // state was created in the middle of a connection. A repeated SYN of the other side sets a
    // limit, too, and such a limit must not exclude the reply.
    // Differs from OpenBSD: linux.md, "Repeated SYNs"
    let allowed = segment.end.wrapping_add((u32::from(to.max_win) << segment.to_shift).max(1));
    let is_excluded_reply =
        tcp.has(SYN) && tcp.has(ACK) && !not_before(from.seqhi, segment.data_end);
    if from.seqhi == 1 || not_before(allowed, from.seqhi) || is_excluded_reply {
        from.seqhi = allowed;
    }
    from.max_win = from.max_win.max(segment.window as u16);
}

/// Returns true if a segment fits both windows. A RST must have the exact sequence number, plus or
/// minus one, or an exact acknowledgment.
fn fits(segment: &Segment, tcp: &Tcp, from: &Peer, to: &Peer) -> bool {
    let window = u32::from(to.max_win) << segment.to_shift;
    let oldest = from.seqlo.wrapping_sub(window);
    let ack_skew = to.seqlo.wrapping_sub(segment.ack) as i32;
    let offset = tcp.seq.wrapping_sub(from.seqlo) as i32;
    let exact = (-1..=1).contains(&offset);
    let in_window_with_exact_ack =
        not_before(tcp.seq, oldest) && offset <= 1 && ack_skew == 0 && tcp.has(ACK);
    not_before(from.seqhi, segment.data_end)
        && not_before(segment.seq, oldest)
        && ack_skew >= -MAX_ACK_WINDOW
        && ack_skew <= MAX_ACK_WINDOW << segment.from_shift
        && (!tcp.has(RST) || exact || in_window_with_exact_ack)
}

/// Returns true if a segment may pass although it does not fit: SYNs sent again before the answer,
/// connections picked up in their middle, and segments that still arrive after the end.
fn fits_loosely(segment: &Segment, from: &Peer, to: &Peer) -> bool {
    let about_to_begin_or_end =
        to.state < SYN_SENT || to.state >= FIN_WAIT_2 || from.state >= FIN_WAIT_2;
    let slack = MAX_ACK_WINDOW as u32;
    about_to_begin_or_end
        && not_before(from.seqhi.wrapping_add(slack), segment.data_end)
        && not_before(segment.seq, from.seqlo.wrapping_sub(slack))
}

/// Moves the windows by a segment.
fn slide(segment: &Segment, from: &mut Peer, to: &mut Peer) {
    from.max_win = from.max_win.max(segment.window as u16);
    if after(segment.end, from.seqlo) {
        from.seqlo = segment.end;
    }
    let window = segment.scaled_window();
    if not_before(segment.ack.wrapping_add(window), to.seqhi) {
        to.seqhi = segment.ack.wrapping_add(window.max(1));
    }
}

/// Advances the state of the sender of a segment by its SYN and FIN.
fn advance_sender(from: &mut Peer, tcp: &Tcp) {
    if tcp.has(SYN) {
        from.state = from.state.max(SYN_SENT);
    }
    if tcp.has(FIN) {
        from.state = from.state.max(CLOSING);
    }
}

fn track_sloppy(state: &mut State, packet: &Descriptor, tcp: &Tcp, now: u32) -> Tracked {
    let (from, to) = state.peers_mut(packet.direction);
    advance_sender(from, tcp);
    let mut connected = false;
    if tcp.has(ACK) {
        match (from.state, to.state) {
            (_, SYN_SENT) => {
                to.state = ESTABLISHED;
                connected = from.state == ESTABLISHED;
            }
            (_, CLOSING) => to.state = FIN_WAIT_2,
            // only this direction of the connection passes here
            (SYN_SENT, CLOSED) => {
                (from.state, to.state) = (ESTABLISHED, ESTABLISHED);
                connected = true;
            }
            (CLOSING, ESTABLISHED) if to.seqlo == 0 => to.state = CLOSING,
            _ => {}
        }
    }
    if tcp.has(RST) {
        (from.state, to.state) = (TIME_WAIT, TIME_WAIT);
    }
    refresh(state, now);
    if connected { Tracked::Connected } else { Tracked::Accepted }
}

/// Sets the timeout for the states of both sides.
fn refresh(state: &mut State, now: u32) {
    let (less, more) = (state.src.state.min(state.dst.state), state.src.state.max(state.dst.state));
    let timeout = match (less, more) {
        (FIN_WAIT_2.., _) => Timeout::TcpClosed,
        (CLOSING.., _) => Timeout::TcpFinwait,
        (..ESTABLISHED, _) => Timeout::TcpOpening,
        (_, CLOSING..) => Timeout::TcpClosing,
        _ => Timeout::TcpEstablished,
    };
    state.refresh(now, timeout);
}

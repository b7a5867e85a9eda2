//! `synproxy state`: the firewall completes the handshake with the client before it contacts the
//! server (pf-semantics section 14).
//!
//! While the side of the state's maker is [`PROXY_SRC`], the client must acknowledge our SYN|ACK.
//! While it is [`PROXY_DST`], the server must answer our SYN. Our sequence numbers begin at
//! `src.seqhi` towards the client, and at `dst.seqhi` towards the server. Then the two handshakes
//! are joined: from there on the state modulates, and windows are not scaled.
//!
//! With `af-to`, each handshake is in the family of its side.

use std::net::IpAddr;

use skipstep_ruleset::{Direction, KeepKind, Reason};
use skipstep_wire::tcp_flag::{ACK, FIN, RST, SYN};

use crate::address::is_on_every_link;
use crate::firewall::Firewall;
use crate::journal::Journal;
use crate::key::{Ends, StateId, WIRE};
use crate::lookup::Lookup;
use crate::packet::{Descriptor, Tcp};
use crate::reply::{self, Segment};
use crate::rulebook::Entry;
use crate::side::tcp_state::{ESTABLISHED, PROXY_DST, PROXY_SRC};
use crate::state::State;
use crate::tcp_option;
use crate::world::World;

/// The MSS in bytes that each path supports (RFC 9293 section 3.7.1 says 536; BSD's default is
/// less).
pub(crate) const DEFAULT_MSS: u16 = 512;

/// The lowest MSS in bytes, whatever the client offers.
const LEAST_MSS: u16 = 64;

impl Firewall {
    /// Answers the SYN that created a state if its rule has `synproxy state`. Returns true if it
    /// did: then the SYN goes no further. A bridge never does, because it does not know the station
    /// with the client's address.
    // Differs from OpenBSD: linux.md, "Handshakes on a bridge"
    pub(crate) fn proxy_first(
        &mut self,
        packet: &Descriptor,
        rule: &Entry,
        id: StateId,
        journal: &mut Journal,
    ) -> bool {
        let wanted = rule.state.as_ref().is_some_and(|options| options.kind == KeepKind::Synproxy);
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.opens()) else {
            return false;
        };
        if !wanted || packet.direction != Direction::In || packet.stays_on_bridge {
            return false;
        }
        let send = |segment| reply::proxied(segment, packet.rdomain, &self.world);
        let state = self.states.get_mut(id);
        state.src.state = PROXY_SRC;
        state.src.seqhi = self.world.sequence;
        state.proxy_mss = proxied_mss(packet, server(state, packet), &self.world);
        journal.reply(send(syn_ack(state, packet, tcp)));
        journal.count_only(Reason::Synproxy);
        true
    }

    /// Handles a segment of a state whose handshakes are not joined yet. Returns `None` if the
    /// handshakes are joined.
    pub(crate) fn proxy(
        &mut self,
        packet: &Descriptor,
        tcp: &Tcp,
        id: StateId,
        journal: &mut Journal,
    ) -> Option<Lookup> {
        let send = |segment, world: &World| reply::proxied(segment, packet.rdomain, world);
        let state = self.states.get_mut(id);
        let forward = state.direction_of(packet) == state.direction;
        if state.src.state == PROXY_SRC {
            if !forward {
                journal.set_reason(Reason::Synproxy);
                return Some(Lookup::Consumed(id));
            }
            if tcp.has(SYN) {
                journal.set_reason(Reason::Synproxy);
                if tcp.seq != state.src.seqlo {
                    return Some(Lookup::Rejected(id));
                }
                journal.reply(send(syn_ack(state, packet, tcp), &self.world));
                return Some(Lookup::Consumed(id));
            }
            if tcp.flags & (ACK | RST | FIN) != ACK || !acknowledges_us(state, tcp) {
                journal.set_reason(Reason::Synproxy);
                return Some(Lookup::Rejected(id));
            }
            if self.exceeds_connections(id) {
                journal.set_reason(Reason::SrcLimit);
                return Some(Lookup::Rejected(id));
            }
            self.states.get_mut(id).src.state = PROXY_DST;
        }
        let state = self.states.get_mut(id);
        if state.src.state != PROXY_DST {
            return None;
        }
        journal.set_reason(Reason::Synproxy);
        if forward {
            if tcp.flags & (SYN | ACK) != ACK || !acknowledges_us(state, tcp) {
                return Some(Lookup::Rejected(id));
            }
            state.src.max_win = tcp.window.max(1);
            if state.dst.seqhi == 1 {
                state.dst.seqhi = self.world.sequence;
            }
            journal.reply(send(syn(state), &self.world));
        } else {
            if tcp.flags & (SYN | ACK) != SYN | ACK || tcp.ack != state.dst.seqhi.wrapping_add(1) {
                return Some(Lookup::Rejected(id));
            }
            state.dst.max_win = tcp.window.max(1);
            state.dst.seqlo = tcp.seq;
            journal.reply(send(ack_to_server(state, packet, tcp), &self.world));
            journal.reply(send(ack_to_client(state), &self.world));
            join(state);
        }
        Some(Lookup::Consumed(id))
    }
}

/// Returns true if the client acknowledges exactly our SYN|ACK.
fn acknowledges_us(state: &State, tcp: &Tcp) -> bool {
    tcp.ack == state.src.seqhi.wrapping_add(1) && tcp.seq == state.src.seqlo.wrapping_add(1)
}

/// Joins the two connections into one.
fn join(state: &mut State) {
    let (src, dst) = (&mut state.src, &mut state.dst);
    src.seqdiff = dst.seqhi.wrapping_sub(src.seqlo);
    dst.seqdiff = src.seqhi.wrapping_sub(dst.seqlo);
    src.seqhi = src.seqlo.wrapping_add(dst.max_win.into());
    dst.seqhi = dst.seqlo.wrapping_add(src.max_win.into());
    (src.wscale, dst.wscale) = (0, 0);
    (src.state, dst.state) = (ESTABLISHED, ESTABLISHED);
}

/// Returns our answer to the client's SYN. The window is closed until the server has answered.
fn syn_ack(state: &State, packet: &Descriptor, tcp: &Tcp) -> Segment {
    Segment {
        source: (packet.destination, tcp.destination_port),
        destination: (packet.source, tcp.source_port),
        seq: state.src.seqhi,
        ack: tcp.seq.wrapping_add(1),
        flags: SYN | ACK,
        window: 0,
        mss: state.proxy_mss,
    }
}

/// Returns our SYN to the server, in the client's name.
fn syn(state: &State) -> Segment {
    let Ends { source, destination } = state.first_ends();
    let (seq, mss) = (state.dst.seqhi, state.proxy_mss);
    Segment { source, destination, seq, ack: 0, flags: SYN, window: 0, mss }
}

fn ack_to_server(state: &State, packet: &Descriptor, tcp: &Tcp) -> Segment {
    Segment {
        source: (packet.destination, tcp.destination_port),
        destination: (packet.source, tcp.source_port),
        seq: tcp.ack,
        ack: tcp.seq.wrapping_add(1),
        flags: ACK,
        window: state.src.max_win,
        mss: 0,
    }
}

/// Returns the segment that opens the window for the client.
fn ack_to_client(state: &State) -> Segment {
    let Ends { source, destination } = Ends::from_key(&state.key[WIRE], state.direction).opposite();
    let (seq, ack) = (state.src.seqhi.wrapping_add(1), state.src.seqlo.wrapping_add(1));
    let window = state.dst.max_win;
    Segment { source, destination, seq, ack, flags: ACK, window, mss: 0 }
}

/// Returns the server's address as the client knows it or, across families, after translation.
// Differs from OpenBSD: linux.md, "Handshakes with af-to"
fn server(state: &State, packet: &Descriptor) -> IpAddr {
    if state.crosses() { state.first_ends().destination.0 } else { packet.destination }
}

/// Returns the MSS that the client offers, limited by the routes to client and server.
fn proxied_mss(packet: &Descriptor, server: IpAddr, world: &World) -> u16 {
    let offered = offered_mss(packet);
    let to_client = route_mss(packet, packet.source, world);
    let to_server = route_mss(packet, server, world);
    to_server.min(to_client.min(offered).max(LEAST_MSS)).max(LEAST_MSS)
}

/// Returns the value of the last MSS option, or a default. A SYN without options offers 0.
pub(crate) fn offered_mss(packet: &Descriptor) -> u16 {
    let options = packet.tcp_options();
    if options.len() < 4 {
        return 0;
    }
    tcp_option::mss(options).last().map_or(DEFAULT_MSS, |value| {
        u16::from_be_bytes([options[value.start], options[value.start + 1]])
    })
}

/// Returns the MSS of a packet on the route to `address`. The packet's own interface counts for
/// addresses that exist on each link, and for addresses that are ours alone or shared.
fn route_mss(packet: &Descriptor, address: IpAddr, world: &World) -> u16 {
    let headers = if address.is_ipv4() { 40 } else { 60 };
    let is_ours = world.is_local(address) || world.is_shared(address);
    let out = if is_on_every_link(address) || is_ours {
        world.interface(&packet.interface)
    } else {
        let route = world.route(address, packet.rdomain);
        route.and_then(|route| world.interface(&route.interface))
    };
    let mss = out.map_or(0, |interface| interface.mtu.saturating_sub(headers));
    u16::try_from(mss).unwrap_or(u16::MAX).max(DEFAULT_MSS)
}

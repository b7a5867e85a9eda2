//! The source port, or ICMP id, that a translated packet gets (pf-semantics section 11).

use skipstep_ruleset::{Direction, PoolPorts};
use skipstep_wire::protocol;

use crate::counters::Counters;
use crate::endpoint::{Endpoint, Endpoints};
use crate::state::{Key, STACK, StateTable, WIRE};
use crate::world::World;

/// Where translated ports come from if the rule does not say.
const DYNAMIC_PORTS: (u16, u16) = (50001, 65535);

const ECHO: u16 = 8;
const ECHO6: u16 = 128;

/// Ports tried for one packet, as in the data plane (`bpf/translate.h` says why); OpenBSD tries
/// all.
const MOST_PROBES: u32 = 1536;

/// Of these, ports that are tried in OpenBSD's order: of the only address, …
const IN_ORDER: u32 = 512;

/// … and of each of several.
const OF_EACH: u32 = 128;

/// Ports that are tried at random of each of several addresses.
const RANDOM_OF_EACH: u32 = 16;

/// How far the search for one packet's port has come.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// Ports that may still be tried.
    probes: u32,
    /// Number of ports to try of an address in order, and then at random.
    tries: (u32, u32),
    /// Where the sequence of random numbers is, once it has begun.
    draws: Option<u64>,
    /// Some ports were not tried in order.
    cut_short: bool,
    /// The ports are those of several ranges.
    ranges: bool,
}

impl Search {
    pub fn new(ports: PoolPorts) -> Self {
        let ranges = matches!(ports, PoolPorts::MapE { .. });
        Search { probes: MOST_PROBES, ranges, ..Search::default() }
    }

    /// Tries ports in order: of the only address, or of one of several. The only one gets all
    /// probes.
    pub fn in_order(&mut self, several: bool) {
        let several = several || self.ranges;
        self.tries = if several { (OF_EACH, 0) } else { (IN_ORDER, MOST_PROBES - IN_ORDER) };
    }

    /// Whether to try no more ports in order. What is left is for ports at random.
    pub fn ends_order(&mut self) -> bool {
        let ends = self.probes <= MOST_PROBES - IN_ORDER;
        self.cut_short |= ends;
        ends
    }

    /// Whether to try ports at random.
    pub fn goes_on(&mut self) -> bool {
        self.tries = (0, if self.ranges { 1 } else { RANDOM_OF_EACH });
        self.cut_short && self.probes > 0
    }

    /// The next number from `low` to `high` at random: SplitMix64.
    fn draw(&mut self, (low, high): (u16, u16), world: &World) -> u16 {
        let seed = || 1 + u64::from(world.draw(u32::MAX));
        let state = self.draws.unwrap_or_else(seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.draws = Some(state);
        let bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = u64::from(high - low) + 1;
        low + (((bits >> 32) * span) >> 32) as u16
    }

    /// Any range of a MAP-E set, at random; others have but one.
    pub fn draw_range(&mut self, ports: PoolPorts, world: &World) -> PoolPorts {
        match ports {
            PoolPorts::MapE { offset, length, id } => {
                let set = self.draw((1, (1 << offset) - 1), world);
                range_of_set(set, offset, length, id)
            }
            other => other,
        }
    }
}

/// A flow whose source needs a port.
#[derive(Clone, Copy)]
pub(crate) struct Flow<'a> {
    /// As it will be translated, but for the source port, which is that of the packet.
    pub key: Key,
    pub direction: Direction,
    pub interface: &'a str,
    /// It is for an old rule: FreeBSD's ways where they differ.
    pub old: bool,
    /// With whom it shares ports outside, if its source is mapped whoever it is for.
    pub endpoints: Option<&'a Endpoints>,
}

/// What a search came to.
pub(crate) enum Found {
    Port(u16),
    /// No port of the range is free.
    Taken,
}

/// The ranges of ports to search, one after the other: those of a MAP-E port set upward from a
/// random one, then downward; of all others there is one range.
pub(crate) fn sets(ports: PoolPorts, world: &World) -> impl Iterator<Item = PoolPorts> {
    let (count, range): (u16, Box<dyn Fn(u16) -> PoolPorts>) = match ports {
        PoolPorts::MapE { offset, length, id } => {
            ((1 << offset) - 1, Box::new(move |set| range_of_set(set, offset, length, id)))
        }
        other => (1, Box::new(move |_| other)),
    };
    // the first set, with the well-known ports, is nobody's
    let begin = if count == 1 { 1 } else { (world.draw(u32::from(count) + 1) as u16).max(1) };
    (begin..=count).chain((1..begin).rev()).map(range)
}

/// One of the ranges of a MAP-E set.
fn range_of_set(set: u16, offset: u8, length: u8, id: u16) -> PoolPorts {
    let behind = 16 - offset - length;
    let id = (u32::from(id) & ((1 << length) - 1)) << behind;
    let low = u32::from(set) << (16 - offset) | id;
    PoolPorts::Range(low as u16, (low | ((1 << behind) - 1)) as u16)
}

/// Looks for a port that makes the flow's key different from those of all states.
pub(crate) fn search(
    search: &mut Search,
    flow: &Flow,
    ports: PoolPorts,
    states: &StateTable,
    world: &World,
    counters: &mut Counters,
) -> Found {
    let Flow { key, direction, interface, old, endpoints } = flow;
    let (source, destination) = match direction {
        Direction::In => (0, 1),
        Direction::Out => (1, 0),
    };
    let mut try_port = |search: &mut Search, port: u16| {
        if search.probes == 0 {
            return Found::Taken;
        }
        search.probes -= 1;
        let mut key = *key;
        key.port[source] = port;
        counters.status.searches += 1;
        // where the answers will be looked up
        let outside = Endpoint { rdomain: key.rdomain, end: (key.address[source], port) };
        let side = if *direction == Direction::In { STACK } else { WIRE };
        let free = !states.has(&key, side, interface)
            && endpoints.is_none_or(|endpoints| !endpoints.has_outside(&outside));
        if free { Found::Port(port) } else { Found::Taken }
    };
    let own = key.port[source];
    let (low, high) = match key.protocol {
        protocol::ICMP if key.port[destination] == ECHO => (1, u16::MAX),
        // FreeBSD searches an id for IPv4 only
        protocol::ICMP6 if key.port[destination] == ECHO6 && *old => return try_port(search, own),
        protocol::ICMP6 if key.port[destination] == ECHO6 => (1, u16::MAX),
        protocol::ICMP | protocol::ICMP6 if *old => return Found::Port(own),
        // PF gives other messages the id 0, in the key alone
        protocol::ICMP | protocol::ICMP6 => return Found::Port(0),
        protocol::TCP | protocol::UDP => match ports {
            PoolPorts::Unsaid => DYNAMIC_PORTS,
            PoolPorts::Range(low, high) => (low.min(high), low.max(high)),
            // of a port set one range after the other is searched
            PoolPorts::Static | PoolPorts::MapE { .. } => return try_port(search, own),
        },
        _ => return try_port(search, own),
    };
    let begin = low + world.draw(u32::from(high - low) + 1) as u16;
    let (in_order, mut at_random) = search.tries;
    let span = u32::from(high - low) + 1;
    search.cut_short |= span > in_order;
    if span <= in_order {
        at_random = 0;
    }
    for port in (begin..=high).chain((low..begin).rev()).take(in_order as usize) {
        if let Found::Port(port) = try_port(search, port) {
            return Found::Port(port);
        }
    }
    for _ in 0..at_random.min(search.probes) {
        let port = search.draw((low, high), world);
        if let Found::Port(port) = try_port(search, port) {
            return Found::Port(port);
        }
    }
    Found::Taken
}

//! The source port, or ICMP id, of a translated packet (pf-semantics section 11).

use skipstep_ruleset::{Direction, PoolPorts};
use skipstep_wire::protocol;

use crate::counters::Counters;
use crate::endpoint::{Endpoint, Endpoints};
use crate::key::{Key, STACK, WIRE};
use crate::state::StateTable;
use crate::world::World;

/// First and last translated port if the rule names none.
const DYNAMIC_PORTS: (u16, u16) = (50001, 65535);

const ECHO: u16 = 8;
const ECHO6: u16 = 128;

/// Maximum number of ports tried for one packet, as in the data plane (`bpf/translate.h` has the
/// reason). OpenBSD tries all.
// Differs from OpenBSD: linux.md, "Ports"
const MOST_PROBES: u32 = 1536;

/// Number of ports tried in OpenBSD's order if there is a single address.
const IN_ORDER: u32 = 512;

/// Number of ports tried in OpenBSD's order for each of several addresses.
const OF_EACH: u32 = 128;

/// Number of ports tried at random for each of several addresses.
const RANDOM_OF_EACH: u32 = 16;

/// The progress of the search for one packet's port.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// Number of ports that may still be tried.
    probes: u32,
    /// Numbers of ports to try for an address, in order and then at random.
    tries: (u32, u32),
    /// State of the random sequence, once it has begun.
    draws: Option<u64>,
    /// True if some ports were not tried in order.
    cut_short: bool,
    /// True if the ports are several ranges.
    ranges: bool,
}

impl Search {
    pub fn new(ports: PoolPorts) -> Self {
        let ranges = matches!(ports, PoolPorts::MapE { .. });
        Search { probes: MOST_PROBES, ranges, ..Search::default() }
    }

    /// Begins to try ports in order, of the only address or of one of several. A single address
    /// gets all probes.
    pub fn in_order(&mut self, several: bool) {
        let several = several || self.ranges;
        self.tries = if several { (OF_EACH, 0) } else { (IN_ORDER, MOST_PROBES - IN_ORDER) };
    }

    /// Returns true if no more ports are to be tried in order. Random ports get the remaining
    /// probes.
    pub fn order_is_exhausted(&mut self) -> bool {
        let ends = self.probes <= MOST_PROBES - IN_ORDER;
        self.cut_short |= ends;
        ends
    }

    /// Begins to try ports at random. Returns false if there are none to try.
    pub fn begins_random(&mut self) -> bool {
        self.tries = (0, if self.ranges { 1 } else { RANDOM_OF_EACH });
        self.cut_short && self.probes > 0
    }

    /// Returns the next random number from `low` to `high`, both inclusive (SplitMix64).
    fn draw(&mut self, (low, high): (u16, u16), world: &World) -> u16 {
        let seed = || 1 + u64::from(world.draw(u32::MAX));
        let state = self.draws.unwrap_or_else(seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.draws = Some(state);
        let bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let span = u64::from(high - low) + 1;
        low + (((bits >> 32) * span) >> 32) as u16
    }

    /// Returns a random range of a MAP-E set; other ports are a single range.
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
    /// Key after translation, but with the packet's own source port.
    pub key: Key,
    pub direction: Direction,
    pub interface: &'a str,
    /// True for a legacy rule: FreeBSD's behaviour where OpenBSD's differs.
    pub legacy: bool,
    /// `endpoint-independent`: mappings whose outside ports are taken.
    pub endpoints: Option<&'a Endpoints>,
}

/// The result of a search.
pub(crate) enum Found {
    Port(u16),
    /// No port of the range is free.
    Taken,
}

/// Returns the ranges of ports to search, in order. The ranges of a MAP-E port set go upward from a
/// random one, then downward. Other ports are a single range.
pub(crate) fn sets(ports: PoolPorts, world: &World) -> impl Iterator<Item = PoolPorts> {
    let (count, range): (u16, Box<dyn Fn(u16) -> PoolPorts>) = match ports {
        PoolPorts::MapE { offset, length, id } => {
            ((1 << offset) - 1, Box::new(move |set| range_of_set(set, offset, length, id)))
        }
        other => (1, Box::new(move |_| other)),
    };
    // the first set has the well-known ports, so it is not used
    let begin = if count == 1 { 1 } else { (world.draw(u32::from(count) + 1) as u16).max(1) };
    (begin..=count).chain((1..begin).rev()).map(range)
}

/// Returns one range of a MAP-E set.
fn range_of_set(set: u16, offset: u8, length: u8, id: u16) -> PoolPorts {
    let behind = 16 - offset - length;
    let id = (u32::from(id) & ((1 << length) - 1)) << behind;
    let low = u32::from(set) << (16 - offset) | id;
    PoolPorts::Range(low as u16, (low | ((1 << behind) - 1)) as u16)
}

/// Searches a port that makes the flow's key differ from the keys of all states.
pub(crate) fn search(
    search: &mut Search,
    flow: &Flow,
    ports: PoolPorts,
    states: &StateTable,
    world: &World,
    counters: &mut Counters,
) -> Found {
    let Flow { key, direction, interface, legacy, endpoints } = flow;
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
        // the answers are looked up on this side
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
        protocol::ICMP6 if key.port[destination] == ECHO6 && *legacy => {
            return try_port(search, own);
        }
        protocol::ICMP6 if key.port[destination] == ECHO6 => (1, u16::MAX),
        protocol::ICMP | protocol::ICMP6 if *legacy => return Found::Port(own),
        // PF gives other messages the id 0, in the key only
        protocol::ICMP | protocol::ICMP6 => return Found::Port(0),
        protocol::TCP | protocol::UDP => match ports {
            PoolPorts::Default => DYNAMIC_PORTS,
            PoolPorts::Range(low, high) => (low.min(high), low.max(high)),
            // a port set is searched range by range, as [`sets`] returns them
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

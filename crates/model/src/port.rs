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
            let behind = 16 - offset - length;
            let id = (u32::from(id) & ((1 << length) - 1)) << behind;
            let range = move |set: u16| {
                let low = u32::from(set) << (16 - offset) | id;
                PoolPorts::Range(low as u16, (low | ((1 << behind) - 1)) as u16)
            };
            ((1 << offset) - 1, Box::new(range))
        }
        other => (1, Box::new(move |_| other)),
    };
    // the first set, with the well-known ports, is nobody's
    let begin = if count == 1 { 1 } else { (world.draw(u32::from(count) + 1) as u16).max(1) };
    (begin..=count).chain((1..begin).rev()).map(range)
}

/// Looks for a port that makes the flow's key different from those of all states.
pub(crate) fn search(
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
    let mut is_free = |port: u16| {
        let mut key = *key;
        key.port[source] = port;
        counters.status.searches += 1;
        // where the answers will be looked up
        let outside = Endpoint { rdomain: key.rdomain, end: (key.address[source], port) };
        !states.has(&key, if *direction == Direction::In { STACK } else { WIRE }, interface)
            && endpoints.is_none_or(|endpoints| !endpoints.has_outside(&outside))
    };
    let mut try_port = |port| if is_free(port) { Found::Port(port) } else { Found::Taken };
    let own = key.port[source];
    let (low, high) = match key.protocol {
        protocol::ICMP if key.port[destination] == ECHO => (1, u16::MAX),
        // FreeBSD searches an id for IPv4 only
        protocol::ICMP6 if key.port[destination] == ECHO6 && *old => return try_port(own),
        protocol::ICMP6 if key.port[destination] == ECHO6 => (1, u16::MAX),
        protocol::ICMP | protocol::ICMP6 if *old => return Found::Port(own),
        // PF gives other messages the id 0, in the key alone
        protocol::ICMP | protocol::ICMP6 => return Found::Port(0),
        protocol::TCP | protocol::UDP => match ports {
            PoolPorts::Unsaid => DYNAMIC_PORTS,
            PoolPorts::Range(low, high) => (low.min(high), low.max(high)),
            // of a port set one range after the other is searched
            PoolPorts::Static | PoolPorts::MapE { .. } => return try_port(own),
        },
        _ => return try_port(own),
    };
    let begin = low + world.draw(u32::from(high - low) + 1) as u16;
    let free = (begin..=high).chain((low..begin).rev()).find(|port| is_free(*port));
    free.map_or(Found::Taken, Found::Port)
}

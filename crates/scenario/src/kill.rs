//! Which states `pfctl -k` means.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::Direction;

use crate::engine::StateView;

/// Which states to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Those from a network, and to another if one is given.
    Hosts(IpNet, Option<IpNet>),
    /// Those that a rule with this label made, be it gone or not.
    Label(String),
    /// The one with this id, and creator if one is given.
    Id(u64, Option<u32>),
    /// Those whose packets are routed to this next hop, or to one in this network.
    Gateway(IpNet),
    /// Those of this protocol from an address and port to another.
    Key(u8, (IpAddr, u16), (IpAddr, u16)),
}

impl Target {
    /// Whether `state`, of the filter with this host id, is meant. Labels a state does not tell:
    /// the filter knows whose it is.
    pub fn matches(&self, state: &StateView, hostid: u32) -> bool {
        let [source, destination] = endpoints(state);
        match self {
            Target::Hosts(from, to) => {
                from.contains(&source.0) && to.is_none_or(|to| to.contains(&destination.0))
            }
            Target::Label(_) => true,
            Target::Id(id, creator) => {
                state.id == *id && creator.is_none_or(|creator| creator == hostid)
            }
            Target::Gateway(net) => {
                state.route.as_ref().is_some_and(|hop| net.contains(&hop.address))
            }
            Target::Key(protocol, from, to) => {
                state.protocol == *protocol && source == *from && destination == *to
            }
        }
    }
}

/// Where the connection came from and where it went, before translation.
fn endpoints(state: &StateView) -> [(IpAddr, u16); 2] {
    match state.direction {
        Direction::In => state.wire,
        Direction::Out => [state.stack[1], state.stack[0]],
    }
}

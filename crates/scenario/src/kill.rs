//! The selection of states by `pfctl -k`.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::Direction;
use skipstep_views::StateView;

/// The states to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// States from a network, and to a second network if one is given.
    Hosts(IpNet, Option<IpNet>),
    /// States of rules with this label, orphaned rules included.
    Label(String),
    /// The state with this id, and with this creator if one is given.
    Id(u64, Option<u32>),
    /// States with a next hop in this network.
    Gateway(IpNet),
    /// States of this protocol between these addresses and ports, in this direction.
    Key(u8, (IpAddr, u16), (IpAddr, u16)),
}

impl Target {
    /// True if the target selects `state`; `hostid` is the host id of the filter. Always true for a
    /// label, because a state has none: the filter selects states by label.
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

/// Returns the source and the destination of the connection, before translation.
fn endpoints(state: &StateView) -> [(IpAddr, u16); 2] {
    match state.direction {
        Direction::In => state.wire,
        Direction::Out => [state.stack[1], state.stack[0]],
    }
}

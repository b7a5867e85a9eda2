//! The set of addresses that a criterion of a rule selects, and the boundaries of this set.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::{Host, InterfaceAddress};
use skipstep_ruleset::{Address, Table};

/// The addresses that a criterion selects, as data.
pub enum Addresses {
    /// Networks. The longest prefix that contains an address decides; false stands for `!` in a
    /// table.
    Nets(Vec<(IpNet, bool)>),
    /// The first and last address of a range, both inclusive.
    Range(IpAddr, IpAddr),
    /// `no-route` or `urpf-failed`. The result depends on the route to the address, so only the
    /// interface of the route distinguishes addresses.
    Route,
}

/// Returns the addresses that `criterion` selects, or `None` if it is not about addresses, or names
/// an unknown table.
pub fn addresses(criterion: &Address, tables: &[Table], host: &Host) -> Option<Addresses> {
    Some(match criterion {
        Address::Any | Address::RouteLabel(_) => return None,
        Address::Net(net) => Addresses::Nets(vec![(*net, true)]),
        // the address itself only; `boundaries` adds its neighbours
        Address::Masked(address, _) => Addresses::Nets(vec![(IpNet::from(*address), true)]),
        Address::Range(low, high) => Addresses::Range(*low, *high),
        Address::Table(name) => {
            let table = tables.iter().find(|table| table.name == *name)?;
            let nets = table.entries.iter().map(|entry| (entry.net, !entry.negated));
            Addresses::Nets(nets.collect())
        }
        Address::Dynamic(dynamic) => Addresses::Nets(interface_nets(dynamic, host)),
        Address::NoRoute | Address::UrpfFailed => Addresses::Route,
    })
}

fn interface_nets(dynamic: &DynamicAddress, host: &Host) -> Vec<(IpNet, bool)> {
    let is_meant = |name: &str| dynamic.interface == "self" || name == dynamic.interface;
    let interfaces = host.interfaces.iter().filter(|interface| {
        is_meant(&interface.name) || interface.groups.iter().any(|group| is_meant(group))
    });
    let addresses = interfaces.flat_map(|interface| &interface.addresses);
    addresses.filter_map(|address| selected_net(dynamic, address)).map(|net| (net, true)).collect()
}

/// Returns the part of an interface's address that `dynamic` selects, or `None` if the part is
/// absent.
fn selected_net(dynamic: &DynamicAddress, address: &InterfaceAddress) -> Option<IpNet> {
    if dynamic.broadcast {
        return address.broadcast.map(IpNet::from);
    }
    if dynamic.peer {
        return address.peer.map(IpNet::from);
    }
    if dynamic.network {
        return Some(address.net.trunc());
    }
    let prefix = dynamic.prefix.unwrap_or(address.net.max_prefix_len());
    IpNet::new(address.net.addr(), prefix).ok().map(|net| net.trunc())
}

impl Addresses {
    /// True if the set contains `address`. For [`Addresses::Route`] the result is always false.
    pub fn contains(&self, address: IpAddr) -> bool {
        match self {
            Addresses::Nets(nets) => nets
                .iter()
                .filter(|(net, _)| net.contains(&address))
                .max_by_key(|(net, _)| net.prefix_len())
                .is_some_and(|(_, meant)| *meant),
            Addresses::Range(low, high) => {
                low.is_ipv4() == address.is_ipv4() && *low <= address && address <= *high
            }
            Addresses::Route => false,
        }
    }

    /// Returns the addresses on both sides of each boundary of the set.
    pub fn boundaries(&self) -> Vec<IpAddr> {
        let around = |low: IpAddr, high: IpAddr| {
            [before(low), Some(low), Some(high), after(high)].into_iter().flatten()
        };
        match self {
            Addresses::Nets(nets) => {
                nets.iter().flat_map(|(net, _)| around(net.network(), net.broadcast())).collect()
            }
            Addresses::Range(low, high) => around(*low, *high).collect(),
            Addresses::Route => Vec::new(),
        }
    }
}

fn before(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => v4.to_bits().checked_sub(1).map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(v6) => v6.to_bits().checked_sub(1).map(|bits| IpAddr::V6(bits.into())),
    }
}

fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => v4.to_bits().checked_add(1).map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(v6) => v6.to_bits().checked_add(1).map(|bits| IpAddr::V6(bits.into())),
    }
}

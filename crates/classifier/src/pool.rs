//! Compilation of address pools.

use std::net::IpAddr;

use skipstep_abi as abi;
use skipstep_abi::pool::{pool_kind, purpose, route_kind};
use skipstep_abi::{PoolKey, PoolMember, PoolMemberKey, address_bytes};
use skipstep_ruleset::{
    LegacyKind, Pool, PoolAddress, PoolKind, PoolPorts, RouteKind, Rule, TableName,
};

use crate::slots::Slots;
use crate::{Error, Names, dynamic, interfaces};

/// Range of translated ports if the rule names none, inclusive.
const DYNAMIC_PORTS: (u16, u16) = (50001, 65535);

/// The compiled pools of a rule.
#[derive(Default)]
pub struct Pools {
    /// Pools: the source of addresses and the method of choice.
    pub pools: Vec<(PoolKey, abi::Pool)>,
    /// Members of the pools that are lists.
    pub members: Vec<(PoolMemberKey, PoolMember)>,
}

/// Compiles the pools of a rule of `anchor`, to be stored under `slot`. `old` is the kind of a
/// legacy rule, `None` for a filter rule.
///
/// # Errors
/// Fails if a table has no slot, or an interface name is too long or gets no number.
pub fn pools(
    rule: &Rule,
    old: Option<LegacyKind>,
    anchor: &str,
    slots: &Slots,
    names: &mut Names,
    slot: u32,
) -> Result<Pools, Error> {
    let mut compiled = Pools::default();
    let first = rule.destination.ports.map_or(0, |ports| ports.low);
    for (purpose, pool) in by_purpose(rule) {
        let prefix = match (&rule.af_to, purpose) {
            (Some(af_to), purpose::NAT) => af_to.prefix(&rule.destination.host),
            (Some(af_to), purpose::RDR) => af_to.kept_bits(),
            _ => 0,
        };
        let members = match &pool.address {
            PoolAddress::List(members) => members.as_slice(),
            _ => &[],
        };
        let whole = abi::Pool {
            first,
            prefix,
            old: u8::from(old.is_some()),
            binat: u8::from(old == Some(LegacyKind::Binat)),
            members: members.len() as u16,
            endpoint_independent: u8::from(pool.endpoint_independent),
            prefer_ipv6: u8::from(pool.prefer_ipv6),
            ..ports(pool.ports, purpose)
        };
        let chosen = addresses(&pool.address, anchor, slots, names)?;
        compiled.pools.push((PoolKey { slot, purpose }, with_addresses(pool, whole, chosen)));
        for (index, member) in (0..).zip(members) {
            let key = PoolMemberKey { slot, purpose, index };
            compiled.members.push((key, addresses(member, anchor, slots, names)?));
        }
    }
    Ok(compiled)
}

/// Compiles the port translation of a pool. All other fields have their defaults.
fn ports(ports: PoolPorts, purpose: u32) -> abi::Pool {
    let none = abi::Pool::default();
    match (ports, purpose) {
        (PoolPorts::Range(low, high), _) => abi::Pool { low, high, ..none },
        (PoolPorts::Default, purpose::NAT) => {
            abi::Pool { low: DYNAMIC_PORTS.0, high: DYNAMIC_PORTS.1, ..none }
        }
        (PoolPorts::Default | PoolPorts::Static, _) => none,
        (PoolPorts::MapE { offset, length, id }, _) => {
            abi::Pool { port_set: id, set_offset: offset, set_length: length, ..none }
        }
    }
}

/// Returns the pools of a rule with their purposes.
pub fn by_purpose(rule: &Rule) -> impl Iterator<Item = (u32, &Pool)> {
    let af_to = rule.af_to.as_deref();
    let from = af_to.map(|af_to| &af_to.from).or(rule.nat.as_deref());
    let to = af_to.and_then(|af_to| af_to.to.as_ref()).or(rule.rdr.as_deref());
    let route = rule.route.as_ref().map(|route| &route.pool);
    [(purpose::NAT, from), (purpose::RDR, to), (purpose::ROUTE, route)]
        .into_iter()
        .filter_map(|(purpose, pool)| Some((purpose, pool?)))
}

/// Returns the name of the table behind a pool address, as seen from the rule's anchor.
pub fn table_of(address: &PoolAddress, anchor: &str) -> Option<TableName> {
    match address {
        PoolAddress::Table(name) => Some(TableName::new(anchor, name)),
        PoolAddress::Dynamic(dynamic) => Some(dynamic::name(dynamic)),
        PoolAddress::Through(_, Some(hop)) => table_of(hop, anchor),
        _ => None,
    }
}

/// Returns `1 << purpose` of each pool that the rule has.
pub fn purposes(rule: &Rule) -> u8 {
    by_purpose(rule).fold(0, |all, (purpose, _)| all | 1 << purpose)
}

/// Returns the ABI's number for the rule's route option, or of none.
pub fn route_kind(rule: &Rule) -> u8 {
    rule.route.as_ref().map_or(route_kind::NO, |route| match route.kind {
        RouteKind::RouteTo => route_kind::ROUTE_TO,
        RouteKind::ReplyTo => route_kind::REPLY_TO,
        RouteKind::DupTo => route_kind::DUP_TO,
    })
}

/// Adds the addresses and the method of choice to a pool.
fn with_addresses(pool: &Pool, whole: abi::Pool, addresses: PoolMember) -> abi::Pool {
    let (kind, key) = match pool.kind {
        PoolKind::None => (pool_kind::NONE, 0),
        PoolKind::Bitmask => (pool_kind::BITMASK, 0),
        PoolKind::Random => (pool_kind::RANDOM, 0),
        PoolKind::SourceHash(key) => (pool_kind::SOURCE_HASH, key),
        PoolKind::RoundRobin => (pool_kind::ROUND_ROBIN, 0),
        PoolKind::LeastStates => (pool_kind::LEAST_STATES, 0),
    };
    // pf stores the key as four words in little-endian byte order.
    let mut key = key.to_be_bytes();
    key.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    let PoolMember { listed, family, table, interface, address, mask, .. } = addresses;
    let single = u8::from(listed == 0 && mask == [0xff; 16]);
    let sticky = u8::from(pool.sticky);
    abi::Pool {
        kind,
        key,
        sticky,
        listed,
        single,
        family,
        table,
        interface,
        address,
        mask,
        ..whole
    }
}

/// Compiles the addresses of a pool. A list gives an empty value, because its members are stored
/// separately.
fn addresses(
    pool: &PoolAddress,
    anchor: &str,
    slots: &Slots,
    names: &mut Names,
) -> Result<PoolMember, Error> {
    let listed = |name: TableName| {
        let table = slots.tables.get(&name).copied();
        let table = table.ok_or(Error::UnknownTable { line: 0, name })?;
        Ok(PoolMember { listed: 1, table, ..PoolMember::default() })
    };
    let within = |address: IpAddr, upper: IpAddr| PoolMember {
        family: if address.is_ipv4() { abi::INET } else { abi::INET6 },
        address: address_bytes(address),
        mask: mask(upper),
        ..PoolMember::default()
    };
    match pool {
        PoolAddress::Any | PoolAddress::List(_) => Ok(PoolMember::default()),
        PoolAddress::Net(net) => Ok(within(net.network(), net.netmask())),
        // pf uses the upper end of a range as the mask of the lower end.
        PoolAddress::Range(low, high) => Ok(within(*low, *high)),
        PoolAddress::Table(name) => listed(TableName::new(anchor, name)),
        PoolAddress::Dynamic(address) => listed(dynamic::name(address)),
        PoolAddress::Through(name, hop) => {
            interfaces::name_bytes(name)?;
            let interface = names.interfaces.number(name)?;
            let hop = match hop {
                Some(hop) => addresses(hop, anchor, slots, names)?,
                // The next hop is each packet's destination.
                None => PoolMember { mask: [0xff; 16], ..PoolMember::default() },
            };
            Ok(PoolMember { interface, ..hop })
        }
    }
}

/// Returns a mask as bytes; those behind an IPv4 mask are set.
fn mask(mask: IpAddr) -> [u8; 16] {
    let mut bytes = address_bytes(mask);
    if mask.is_ipv4() {
        bytes[4..].fill(0xff);
    }
    bytes
}

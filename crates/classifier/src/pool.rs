//! Pools of addresses in the kernel's form.

use std::net::IpAddr;

use skipstep_abi as abi;
use skipstep_abi::pool::{pool_kind, purpose, route_kind};
use skipstep_abi::{PoolKey, address_bytes};
use skipstep_ruleset::{Pool, PoolAddress, PoolKind, PoolPorts, RouteKind, Rule, TableName};

use crate::error::not_built;
use crate::image::Slots;
use crate::{Error, dynamic};

/// Where translated ports come from if the rule does not say.
const DYNAMIC_PORTS: (u16, u16) = (50001, 65535);

/// The pools of a rule of `anchor`, which is kept under `slot`.
pub fn pools(
    rule: &Rule,
    anchor: &str,
    slots: &Slots,
    slot: u32,
) -> Result<Vec<(PoolKey, abi::Pool)>, Error> {
    let mut pools = Vec::new();
    let first = rule.destination.ports.map_or(0, |ports| ports.low);
    let route = rule.route.as_ref().map(|route| &route.pool);
    let af_to = rule.af_to.as_deref();
    let from = af_to.map(|af_to| (&af_to.from, af_to.prefix(&rule.destination.host)));
    let to = af_to.and_then(|af_to| Some((af_to.to.as_ref()?, af_to.kept())));
    let without_prefix = |pool| (pool, 0);
    for (purpose, pool) in [
        (purpose::NAT, from.or(rule.nat.as_deref().map(without_prefix))),
        (purpose::RDR, to.or(rule.rdr.as_deref().map(without_prefix))),
        (purpose::ROUTE, route.map(without_prefix)),
    ] {
        let Some((pool, prefix)) = pool else { continue };
        let (low, high) = match (pool.ports, purpose) {
            (PoolPorts::Range(low, high), _) => (low, high),
            (PoolPorts::Unsaid, purpose::NAT) => DYNAMIC_PORTS,
            (PoolPorts::Unsaid | PoolPorts::Static, _) => (0, 0),
            (PoolPorts::MapE { .. }, _) => return Err(not_built("map-e-portset")),
        };
        let compiled = abi::Pool { low, high, first, prefix, ..addresses(pool, anchor, slots)? };
        pools.push((PoolKey { slot, purpose }, compiled));
    }
    Ok(pools)
}

/// `1 << purpose` of the pools that a rule has.
pub fn purposes(rule: &Rule) -> u8 {
    let to = rule.af_to.as_ref().is_some_and(|af_to| af_to.to.is_some());
    u8::from(rule.nat.is_some() || rule.af_to.is_some()) << purpose::NAT
        | u8::from(rule.rdr.is_some() || to) << purpose::RDR
        | u8::from(rule.route.is_some()) << purpose::ROUTE
}

/// What a rule routes.
pub fn route_kind(rule: &Rule) -> u8 {
    rule.route.as_ref().map_or(route_kind::NO, |route| match route.kind {
        RouteKind::RouteTo => route_kind::ROUTE_TO,
        RouteKind::ReplyTo => route_kind::REPLY_TO,
        RouteKind::DupTo => route_kind::DUP_TO,
    })
}

fn addresses(pool: &Pool, anchor: &str, slots: &Slots) -> Result<abi::Pool, Error> {
    let (kind, key) = match pool.kind {
        PoolKind::None => (pool_kind::NONE, 0),
        PoolKind::Bitmask => (pool_kind::BITMASK, 0),
        PoolKind::Random => (pool_kind::RANDOM, 0),
        PoolKind::SourceHash(key) => (pool_kind::SOURCE_HASH, key),
        PoolKind::RoundRobin => (pool_kind::ROUND_ROBIN, 0),
        PoolKind::LeastStates => (pool_kind::LEAST_STATES, 0),
    };
    // four words, which pf keeps in the byte order of its commonest machines
    let mut key = key.to_be_bytes();
    key.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    let compiled = abi::Pool { kind, key, sticky: u8::from(pool.sticky), ..abi::Pool::default() };
    let listed = |name: TableName| {
        let table = slots.tables.get(&name).copied();
        let table = table.ok_or(Error::UnknownTable { line: 0, name })?;
        Ok(abi::Pool { listed: 1, table, ..compiled })
    };
    match &pool.address {
        PoolAddress::Any => Ok(compiled),
        PoolAddress::Net(net) => Ok(abi::Pool {
            single: u8::from(net.prefix_len() == net.max_prefix_len()),
            address: address_bytes(net.network()),
            mask: mask(net.netmask()),
            ..compiled
        }),
        PoolAddress::Table(name) => listed(TableName::new(anchor, name)),
        PoolAddress::Dynamic(address) => listed(dynamic::name(address)),
        PoolAddress::List(list) => listed(crate::tables::list_name(list)),
        PoolAddress::Range(..) => Err(not_built("range of addresses in a pool")),
        PoolAddress::Through(..) => Err(not_built("next hop by way of an interface")),
    }
}

/// A mask whose unused bytes, those behind an IPv4 address, are set.
fn mask(mask: IpAddr) -> [u8; 16] {
    let mut bytes = address_bytes(mask);
    if mask.is_ipv4() {
        bytes[4..].fill(0xff);
    }
    bytes
}

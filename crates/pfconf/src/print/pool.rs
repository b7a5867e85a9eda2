//! Prints pools and the options that use them, at the end of a rule.

use skipstep_ruleset::{
    Divert, Family, Pool, PoolAddress, PoolKind, PoolPorts, Route, RouteKind, Rule,
};

use super::{PrintOptions, dynamic, network, single, table};

/// The purpose of a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolUse {
    Source,
    Destination,
    NextHop,
}

/// Returns the options of translation, routing and diversion.
pub(super) fn translation(rule: &Rule, options: &PrintOptions) -> String {
    let mut text = rule.divert.map(divert).unwrap_or_default();
    if let Some(af_to) = &rule.af_to {
        // pf prints the pools with the family of the rule, and counts interface addresses by it
        let family = rule.family;
        let name = if af_to.family == Family::Inet { "inet" } else { "inet6" };
        text +=
            &format!(" af-to {name} from {}", pool(&af_to.from, family, PoolUse::Source, options));
        if let Some(to) = &af_to.to {
            text += &format!(" to {}", pool(to, family, PoolUse::Destination, options));
        }
    } else {
        if let Some(nat) = &rule.nat {
            text += &format!(" nat-to {}", pool(nat, rule.family, PoolUse::Source, options));
        }
        if let Some(rdr) = &rule.rdr {
            text += &format!(" rdr-to {}", pool(rdr, rule.family, PoolUse::Destination, options));
        }
    }
    if let Some(route) = rule.route.as_ref().filter(|route| !is_early(route)) {
        text += &self::route(route, rule.family, options);
    }
    text
}

/// Returns `route-to (em0 10.0.0.1)` and similar options, which precede the family.
pub(super) fn early_route(rule: &Rule, options: &PrintOptions) -> String {
    let early = rule.route.as_ref().filter(|route| is_early(route));
    early.map(|early| route(early, rule.family, options)).unwrap_or_default()
}

fn is_early(route: &Route) -> bool {
    match &route.pool.address {
        PoolAddress::List(list) => list.iter().any(|hop| matches!(hop, PoolAddress::Through(..))),
        address => matches!(address, PoolAddress::Through(..)),
    }
}

fn route(route: &Route, family: Option<Family>, options: &PrintOptions) -> String {
    let keyword = match route.kind {
        RouteKind::RouteTo => "route-to",
        RouteKind::ReplyTo => "reply-to",
        RouteKind::DupTo => "dup-to",
    };
    format!(" {keyword} {}", pool(&route.pool, family, PoolUse::NextHop, options))
}

fn divert(divert: Divert) -> String {
    match divert {
        Divert::To { address, port } => format!(" divert-to {} port {port}", single(address)),
        Divert::Reply => " divert-reply".to_string(),
        Divert::Packet { port } => format!(" divert-packet port {port}"),
    }
}

/// Returns addresses, ports and options in pf's order.
pub(super) fn pool(
    pool: &Pool,
    family: Option<Family>,
    purpose: PoolUse,
    options: &PrintOptions,
) -> String {
    let mut text = address(&pool.address, family, options);
    match pool.ports {
        PoolPorts::Range(low, high) if low == high => text += &format!(" port {low}"),
        // pf prints no ports for rdr-to if the lowest is 0
        PoolPorts::Range(0, _) if purpose == PoolUse::Destination => {}
        PoolPorts::Range(low, high) => text += &format!(" port {low}:{high}"),
        PoolPorts::Default | PoolPorts::Static | PoolPorts::MapE { .. } => {}
    }
    text += &match pool.kind {
        PoolKind::None => String::new(),
        PoolKind::Bitmask => " bitmask".to_string(),
        PoolKind::Random => " random".to_string(),
        PoolKind::SourceHash(key) => format!(" source-hash 0x{key:032x}"),
        PoolKind::RoundRobin => " round-robin".to_string(),
        PoolKind::LeastStates => " least-states".to_string(),
    };
    text += if pool.sticky { " sticky-address" } else { "" };
    text += if pool.ports == PoolPorts::Static { " static-port" } else { "" };
    if let PoolPorts::MapE { offset, length, id } = pool.ports {
        text += &format!(" map-e-portset {offset}/{length}/{id}");
    }
    text += if pool.endpoint_independent { " endpoint-independent" } else { "" };
    text += if pool.prefer_ipv6 { " prefer-ipv6-nexthop" } else { "" };
    text
}

fn address(address: &PoolAddress, family: Option<Family>, options: &PrintOptions) -> String {
    match address {
        PoolAddress::Any => "any".to_string(),
        PoolAddress::Net(net) => network(*net),
        PoolAddress::Range(low, high) => format!("{} - {}", single(*low), single(*high)),
        PoolAddress::Table(name) => table(name, options),
        PoolAddress::Dynamic(interface) => dynamic(interface, family, options),
        PoolAddress::Through(interface, None) => interface.clone(),
        PoolAddress::Through(interface, Some(hop)) => {
            format!("({interface} {})", self::address(hop, family, options))
        }
        PoolAddress::List(list) => {
            let items: Vec<_> =
                list.iter().map(|item| self::address(item, family, options)).collect();
            format!("{{ {} }}", items.join(", "))
        }
    }
}

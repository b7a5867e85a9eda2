//! Pools of one combination: selects the addresses of the rule's family, derives the family of a
//! rule that has none, and checks ports and options. Several addresses become a table.

use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::{
    AfTo, Family, Pool, PoolAddress, PoolKind, PoolPorts, PortMatch, Ports, Route, RouteKind, Rule,
};

use super::{Expansion, Message};
use crate::ast::{self, Address, Host, TableContents, TableDefinition, Translation};
use crate::context::Dialect;
use crate::{resolve, table};

/// The default ports of `nat-to`, inclusive.
const NAT_PORTS: (u16, u16) = (50_001, 65_535);

pub(super) const ENDPOINTS_OF_NAT: &str =
    "the 'endpoint-independent' option is only valid with nat rules";

pub(super) const PORT_SETS_OF_NAT: &str = "the 'map-e-portset' option is only valid with nat rules";

/// The addresses of the pools of a combination. `None` for a pool that is absent or wrong.
#[derive(Default)]
pub(super) struct Addresses {
    pub(super) nat: Option<PoolAddress>,
    rdr: Option<PoolAddress>,
    route: Option<PoolAddress>,
}

/// A pool is wrong; `messages` has the reason.
pub(super) struct Wrong;

impl Expansion<'_> {
    /// Returns the addresses of a rule's pools. Sets the rule's family from the addresses if
    /// nothing else set the family.
    pub(super) fn pool_addresses(
        &mut self,
        translation: &Translation,
        family: &mut Option<Family>,
        errors: &mut u32,
    ) -> Addresses {
        let target = translation.af_to;
        let mut address = |pool: Option<&ast::Pool>, what, target: Option<Family>| {
            let pool = pool?;
            let address = match target {
                // packets behind `af-to` have the other family
                Some(target) if !pool.through.is_empty() => self.through(pool, &mut Some(target)),
                None if !pool.through.is_empty() => self.through(pool, family),
                _ => self.pool_address(pool, family, target, what),
            };
            address.inspect_err(|Wrong| *errors += 1).ok()
        };
        let route = translation.route.as_ref().map(|(_, pool)| pool);
        // replies have the family of the rule
        let replies =
            translation.route.as_ref().is_some_and(|(kind, _)| *kind == RouteKind::ReplyTo);
        Addresses {
            rdr: address(translation.rdr.as_ref(), "translation", target),
            nat: address(translation.nat.as_ref(), "translation", target),
            route: address(route, "routing", target.filter(|_| !replies)),
        }
    }

    /// Selects the addresses of the rule's family, or of the `target` family of `af-to`.
    fn pool_address(
        &mut self,
        pool: &ast::Pool,
        family: &mut Option<Family>,
        target: Option<Family>,
        what: &str,
    ) -> Result<PoolAddress, Wrong> {
        let mut chosen = None;
        let mut hosts: Vec<&Host> = Vec::new();
        for host in &pool.hosts {
            if what == "routing" && !is_next_hop(host) {
                return self.wrong("route spec requires :peer with dynamic interface addresses");
            }
            if family.is_none() && chosen.is_none() {
                // a rule with `af-to` matches packets of the other family
                chosen = target.map(Family::other);
            }
            match (pool.family_of(host), target) {
                (None, _) => {}
                (Some(own), Some(target)) if own != target => {
                    return self.wrong(&format!(
                        "{what} spec contains addresses that don't match target address family"
                    ));
                }
                (Some(_), Some(_)) => {}
                (Some(own), None) if family.is_some() => {
                    if *family != Some(own) {
                        continue;
                    }
                }
                (Some(own), None) => {
                    if chosen.is_some_and(|chosen| chosen != own) {
                        return self.wrong(&format!(
                            "{what} spec contains addresses with different address families"
                        ));
                    }
                    chosen = Some(own);
                }
            }
            hosts.push(host);
            if hosts.len() > 1 {
                self.check_list(pool, &hosts)?;
            }
        }
        *family = family.or(chosen);
        match hosts.as_slice() {
            [] => self.wrong(&format!("af mismatch in {what} spec")),
            [host] => self.single_address(host),
            several => self.automatic_table(several),
        }
    }

    /// Returns the next hops with interfaces whose family is that of the rule.
    fn through(
        &mut self,
        pool: &ast::Pool,
        family: &mut Option<Family>,
    ) -> Result<PoolAddress, Wrong> {
        let mut list = Vec::new();
        for hop in &pool.through {
            if hop.hosts.is_empty() {
                list.push(PoolAddress::Through(hop.interface.clone(), None));
            }
            for host in &hop.hosts {
                let own = pool.family_of(host);
                *family = family.or(own);
                if own.is_none_or(|own| *family == Some(own)) {
                    let address = self.single_address(host)?;
                    list.push(PoolAddress::Through(hop.interface.clone(), Some(Box::new(address))));
                }
            }
        }
        let in_turn = matches!(pool.kind, None | Some(PoolKind::RoundRobin));
        match list.len() {
            0 => self.wrong("no routing address with matching address family found."),
            1 => Ok(list.remove(0)),
            _ if !in_turn => self.wrong("r.rpool.opts must be PF_POOL_ROUNDROBIN"),
            _ => Ok(PoolAddress::List(list)),
        }
    }

    fn check_list(&mut self, pool: &ast::Pool, hosts: &[&Host]) -> Result<(), Wrong> {
        if pool.kind.as_ref().is_some_and(|kind| !chooses(kind)) {
            return self
                .wrong("pool type is not valid for multiple translation or routing addresses");
        }
        let plain = |host: &Host| matches!(host.address, Address::Net(..));
        if let [first, second] = hosts
            && !plain(first)
            && !plain(second)
        {
            let text = "multiple tables or dynamic interfaces not supported for translation or \
                        routing";
            return self.wrong(text);
        }
        Ok(())
    }

    pub(super) fn single_address(&mut self, host: &Host) -> Result<PoolAddress, Wrong> {
        Ok(match &host.address {
            Address::Net(address, length) => match resolve::net(*address, *length) {
                Some(net) => PoolAddress::Net(net),
                None => {
                    let text = format!("netmask {length} invalid for IPv4 address");
                    self.messages.push(Message::Bare(text));
                    return Err(Wrong);
                }
            },
            Address::Any => PoolAddress::Any,
            Address::Range(low, high) => PoolAddress::Range(*low, *high),
            Address::Table(name) => PoolAddress::Table(name.clone()),
            Address::Dynamic { interface, prefix } => PoolAddress::Dynamic(DynamicAddress {
                prefix: Some(*prefix).filter(|prefix| *prefix < 128),
                ..interface.clone()
            }),
            // the parser allows no other address in a pool
            _ => return Err(Wrong),
        })
    }

    /// Returns a generated table with the addresses of a list.
    fn automatic_table(&mut self, hosts: &[&Host]) -> Result<PoolAddress, Wrong> {
        *self.pooled = self.pooled.saturating_sub(hosts.len());
        if *self.pooled == 0 {
            return Err(Wrong);
        }
        let definition = TableDefinition {
            name: self.automatic.next_name(),
            constant: true,
            contents: vec![TableContents::List(hosts.iter().map(|host| (*host).clone()).collect())],
            initialized: true,
            ..TableDefinition::default()
        };
        match table::define(&definition, self.context, &mut Vec::new()) {
            Ok(table) => {
                self.tables.push((table::echo(&definition), table));
                Ok(PoolAddress::Table(definition.name))
            }
            Err(_) => {
                let text = "pfctl: failed to add host: Invalid argument".to_string();
                self.messages.push(Message::Bare(text));
                Err(Wrong)
            }
        }
    }

    /// Sets the rule's pools, in pf's order, with their ports and options.
    pub(super) fn apply_pools(
        &mut self,
        translation: &Translation,
        addresses: &Addresses,
        ports: Option<Ports>,
        rule: &mut Rule,
        errors: &mut u32,
    ) {
        let translating = [&translation.nat, &translation.rdr];
        if translating.into_iter().flatten().any(|pool| pool.prefer_ipv6) {
            self.error("prefer-ipv6-nexthop is an option of route-to, reply-to and dup-to");
            *errors += 1;
        }
        let crossing = translation.nat.as_ref().filter(|_| translation.af_to.is_some());
        let route = translation.route.as_ref().map(|(_, pool)| pool);
        let others = [translation.rdr.as_ref(), route, crossing];
        if others.into_iter().flatten().any(|pool| pool.endpoint_independent) {
            self.error(ENDPOINTS_OF_NAT);
            *errors += 1;
        }
        if crossing.is_some_and(|pool| pool.map_e.is_some()) {
            self.error(PORT_SETS_OF_NAT);
            *errors += 1;
        }
        let nat = translation.nat.as_ref().map(|pool| {
            let range = self.nat_ports(pool);
            self.apply(pool, addresses.nat.as_ref(), range, errors)
        });
        let rdr = translation.rdr.as_ref().map(|pool| {
            let range = self.rdr_ports(pool, ports);
            self.apply(pool, addresses.rdr.as_ref(), range, errors)
        });
        rule.route = translation.route.as_ref().and_then(|(kind, pool)| {
            let range = self.rdr_ports(pool, ports);
            let pool = self.apply(pool, addresses.route.as_ref(), range, errors)?;
            Some(Box::new(Route { kind: *kind, pool }))
        });
        match (translation.af_to, nat.flatten(), rdr.flatten()) {
            (Some(family), Some(from), to) => {
                rule.af_to = Some(Box::new(AfTo { family, from, to }));
            }
            (_, nat, rdr) => (rule.nat, rule.rdr) = (nat.map(Box::new), rdr.map(Box::new)),
        }
    }

    /// Returns a pool with its options; `None` if a part of it is wrong.
    fn apply(
        &mut self,
        pool: &ast::Pool,
        address: Option<&PoolAddress>,
        ports: Result<PoolPorts, Wrong>,
        errors: &mut u32,
    ) -> Option<Pool> {
        if pool.prefer_ipv6 && pool.hosts.iter().any(|host| host.weight > 0) {
            self.error("a weight cannot be used with prefer-ipv6-nexthop");
            *errors += 1;
            return None;
        }
        let several = address.is_some_and(|address| self.is_several(address));
        let kind = match &pool.kind {
            None if several => PoolKind::RoundRobin,
            None => PoolKind::None,
            Some(kind) => kind.clone(),
        };
        let checked = if chooses(&kind) { Ok(()) } else { self.check_single(pool) };
        match (ports, checked) {
            (Ok(ports), Ok(())) => Some(Pool {
                address: address?.clone(),
                kind,
                sticky: pool.sticky,
                ports,
                endpoint_independent: pool.endpoint_independent,
                prefer_ipv6: pool.prefer_ipv6,
            }),
            _ => {
                *errors += 1;
                None
            }
        }
    }

    /// True if a pool with this address may have several addresses.
    pub(super) fn is_several(&self, address: &PoolAddress) -> bool {
        match address {
            PoolAddress::Dynamic(interface) => self.has_several(interface),
            PoolAddress::Through(_, Some(hop)) => self.is_several(hop),
            PoolAddress::Table(_) | PoolAddress::List(_) => true,
            _ => false,
        }
    }

    /// Checks that a pool of a kind that does not choose has a single address.
    pub(super) fn check_single(&mut self, pool: &ast::Pool) -> Result<(), Wrong> {
        for host in &pool.hosts {
            match &host.address {
                Address::Table(_) => return self.wrong("tables are not supported by pool type"),
                Address::Dynamic { interface, .. } if self.has_several(interface) => {
                    let name = &interface.interface;
                    return self
                        .wrong(&format!("interface ({name}) is not supported by pool type"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn nat_ports(&mut self, pool: &ast::Pool) -> Result<PoolPorts, Wrong> {
        let (low, high) = match pool.ports {
            None | Some(ast::PoolPorts::Range(0, 0) | ast::PoolPorts::From(0)) => NAT_PORTS,
            Some(ast::PoolPorts::Range(low, high)) => (low, high),
            Some(ast::PoolPorts::From(low)) => (low, low),
        };
        if pool.static_port {
            if low != NAT_PORTS.0 && high != NAT_PORTS.1 {
                return self
                    .wrong("the 'static-port' option can't be used when specifying a port range");
            }
            if pool.map_e.is_some() {
                return self.wrong("the 'map-e-portset' option can't be used 'static-port'");
            }
            return Ok(PoolPorts::Static);
        }
        if let Some((offset, length, id)) = pool.map_e {
            if (low, high) != NAT_PORTS {
                return self.wrong(
                    "the 'map-e-portset' option can't be used when specifying a port range",
                );
            }
            return Ok(PoolPorts::MapE { offset, length, id });
        }
        Ok(if (low, high) == NAT_PORTS { PoolPorts::Default } else { PoolPorts::Range(low, high) })
    }

    /// Returns the ports of a pool of `rdr-to` or `route-to`; `ports` is the rule's port criterion.
    /// OpenBSD refuses a range whose end is below its beginning, although [`Self::rdr_range`] may
    /// make one.
    pub(super) fn rdr_ports(
        &mut self,
        pool: &ast::Pool,
        ports: Option<Ports>,
    ) -> Result<PoolPorts, Wrong> {
        let above = ports.map_or(0, span);
        if let Some(ast::PoolPorts::Range(low, high)) = pool.ports
            && low > high
            && (self.context.dialect == Dialect::OpenBsd || high != low.wrapping_add(above))
        {
            return self.wrong("invalid rdr-to port range");
        }
        self.rdr_range(pool, above)
    }

    /// Returns the ports of a pool of FreeBSD's `rdr`, whose end may be below its beginning.
    /// `8080:*` ends at 8080 + `above`. For a single port pf takes 0 as the highest port, so
    /// `8080:*` for port 80 ends at 8000, and means 8080.
    pub(super) fn rdr_range(&mut self, pool: &ast::Pool, above: u16) -> Result<PoolPorts, Wrong> {
        if pool.map_e.is_some() {
            return self.wrong(PORT_SETS_OF_NAT);
        }
        if pool.static_port {
            return self.wrong("the 'static-port' option is only valid with nat rules");
        }
        let (low, high) = match pool.ports {
            None => (0, 0),
            Some(ast::PoolPorts::Range(low, high)) => (low, high),
            Some(ast::PoolPorts::From(low)) => (low, low.wrapping_add(above)),
        };
        Ok(if (low, high) == (0, 0) { PoolPorts::Default } else { PoolPorts::Range(low, high) })
    }

    /// True if `(name)` may have several addresses. An interface with `:0` has one; a group may
    /// have several.
    pub(super) fn has_several(&self, interface: &DynamicAddress) -> bool {
        let name = &interface.interface;
        let single = name.ends_with(|c: char| c.is_ascii_digit())
            || self.context.host.interface(name).is_some();
        !interface.no_alias || !single
    }

    fn wrong<T>(&mut self, text: &str) -> Result<T, Wrong> {
        self.error(text);
        Err(Wrong)
    }
}

/// True if a host may be a next hop. Of an interface's addresses only `:peer` may.
fn is_next_hop(host: &Host) -> bool {
    match &host.address {
        Address::Dynamic { interface: i, .. } => {
            i.peer && !i.network && !i.broadcast && !i.no_alias
        }
        _ => true,
    }
}

/// True if the kind of pool chooses among several addresses.
pub(super) fn chooses(kind: &PoolKind) -> bool {
    !matches!(kind, PoolKind::None | PoolKind::Bitmask)
}

/// Returns the distance from the lowest to the highest port of a criterion. pf stores 0 as the
/// second operand of operators with one operand.
pub(super) fn span(ports: Ports) -> u16 {
    use PortMatch::{Inside, Outside, Range};
    let high = if matches!(ports.op, Range | Inside | Outside) { ports.high } else { 0 };
    high.wrapping_sub(ports.low)
}

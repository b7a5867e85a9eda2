//! Expansion of legacy rules: as for other rules, with one pool for all rules of a statement
//! (pf-features section 12).

use skipstep_ruleset::{
    Action, AnchorCall, Family, LegacyKind, LegacyRule, Pool, PoolAddress, PoolKind, PoolPorts,
    Rule,
};

use super::pool::{ENDPOINTS_OF_NAT, PORT_SETS_OF_NAT, Wrong, chooses, span};
use super::{Expansion, LONGEST_LABEL, Lists, Refused};
use crate::ast::{self, Address, Host, LegacyStatement, RuleStatement};

impl Expansion<'_> {
    /// Adds the rules of a statement to `legacy_rules`. `anchor` is the call of a `nat-anchor`,
    /// `rdr-anchor` or `binat-anchor` statement.
    ///
    /// # Errors
    /// Fails if the statement is wrong as a whole; `messages` then has the reason.
    pub fn legacy(
        &mut self,
        statement: &LegacyStatement,
        anchor: Option<AnchorCall>,
        legacy_rules: &mut Vec<LegacyRule>,
    ) -> Result<(), Refused> {
        let mut template = self.legacy_template(&statement.rule, anchor.map(Box::new))?;
        if statement.kind == LegacyKind::Binat {
            self.check_legacy_binat(statement, template.family)?;
        }
        let pool = match &statement.pool {
            None => None,
            Some(pool) => {
                let first = |hosts: &[Host]| hosts.first().and_then(Host::family);
                template.family = template.family.or_else(|| first(&pool.hosts));
                Some(Box::new(self.legacy_pool(statement, pool, template.family)?))
            }
        };
        let before = self.rules.len();
        let lists = Lists { kind: Some(statement.kind), ..Lists::from_statement(&statement.rule) };
        self.combinations(&template, &lists);
        for mut rule in self.rules.split_off(before) {
            let place =
                if statement.kind == LegacyKind::Rdr { &mut rule.rdr } else { &mut rule.nat };
            place.clone_from(&pool);
            rule.number =
                legacy_rules.iter().filter(|legacy| legacy.kind == statement.kind).count() as u32;
            legacy_rules.push(LegacyRule {
                kind: statement.kind,
                no: statement.no,
                pass: statement.pass,
                leave_fragments: statement.leave_fragments,
                rule,
            });
        }
        Ok(())
    }

    fn legacy_template(
        &mut self,
        statement: &RuleStatement,
        anchor: Option<Box<AnchorCall>>,
    ) -> Result<Rule, Refused> {
        let options = &statement.options;
        let tagged = options.tagged.as_ref().map(|tagged| &tagged.value);
        if [options.tag.as_ref(), tagged].iter().flatten().any(|tag| tag.len() > LONGEST_LABEL) {
            return self.refuse("tag too long, max 63 chars");
        }
        let first = |hosts: &[Host]| hosts.iter().find(|host| host.scope == 0)?.family();
        Ok(Rule {
            anchor,
            action: Action::Match,
            direction: statement.direction,
            log: statement.log,
            family: statement
                .family
                .or_else(|| first(&statement.source.hosts))
                .or_else(|| first(&statement.destination.hosts)),
            scrub: options.scrub,
            set_tos: options.set_tos,
            tag: options.tag.clone(),
            tagged: options.tagged.clone(),
            rtable: options.rtable,
            ..self.blank()
        })
    }

    /// Returns the pool behind `->`. Several addresses become a list, not a table.
    fn legacy_pool(
        &mut self,
        statement: &LegacyStatement,
        pool: &ast::Pool,
        family: Option<Family>,
    ) -> Result<Pool, Refused> {
        let fits = |host: &&Host| {
            host.family().is_none_or(|own| family.is_none_or(|family| family == own))
        };
        let hosts: Vec<&Host> = pool.hosts.iter().filter(fits).collect();
        let address = match hosts.as_slice() {
            [] => {
                return self.refuse("no translation address with matching address family found.");
            }
            [host] => self.single_address(host),
            several => several
                .iter()
                .map(|host| self.single_address(host))
                .collect::<Result<_, _>>()
                .map(PoolAddress::List),
        };
        let address = address.map_err(|Wrong| Refused)?;
        let kind = self.legacy_kind(pool, &address)?;
        let ports = match statement.kind {
            LegacyKind::Rdr => self.legacy_rdr_ports(statement, pool),
            LegacyKind::Binat if pool.map_e.is_some() => return self.refuse(PORT_SETS_OF_NAT),
            LegacyKind::Binat => Ok(PoolPorts::Default),
            _ => self.nat_ports(pool),
        };
        let ports = ports.map_err(|Wrong| Refused)?;
        if pool.endpoint_independent && statement.kind != LegacyKind::Nat {
            return self.refuse(ENDPOINTS_OF_NAT);
        }
        if pool.prefer_ipv6 {
            let text = "prefer-ipv6-nexthop is an option of route-to, reply-to and dup-to";
            return self.refuse(text);
        }
        Ok(Pool {
            address,
            kind,
            sticky: pool.sticky,
            ports,
            endpoint_independent: pool.endpoint_independent,
            prefer_ipv6: false,
        })
    }

    /// Returns the way to choose an address. Lists allow only `round-robin`, which is also the
    /// default.
    fn legacy_kind(
        &mut self,
        pool: &ast::Pool,
        address: &PoolAddress,
    ) -> Result<PoolKind, Refused> {
        let Some(kind) = &pool.kind else {
            let several = self.is_several(address);
            return Ok(if several { PoolKind::RoundRobin } else { PoolKind::None });
        };
        if matches!(address, PoolAddress::List(_)) && *kind != PoolKind::RoundRobin {
            return self.refuse("only round-robin valid for multiple redirection addresses");
        }
        if !chooses(kind) {
            self.check_single(pool).map_err(|Wrong| Refused)?;
        }
        Ok(kind.clone())
    }

    /// Returns the ports of a legacy `rdr` pool. `port low:*` counts from the first port criterion
    /// of the statement.
    fn legacy_rdr_ports(
        &mut self,
        statement: &LegacyStatement,
        pool: &ast::Pool,
    ) -> Result<PoolPorts, Wrong> {
        let first = statement.rule.destination.ports.first().copied();
        self.rdr_range(pool, first.map_or(0, span))
    }

    /// Checks that `binat` has one address of the rule's family on each side.
    fn check_legacy_binat(
        &mut self,
        statement: &LegacyStatement,
        family: Option<Family>,
    ) -> Result<(), Refused> {
        let pool = statement.pool.iter().flat_map(|pool| &pool.hosts);
        let family = family.or_else(|| pool.clone().next()?.family());
        let fits = |host: &&Host| host.family().is_none() || host.family() == family;
        let pool: &[Host] = &pool.filter(fits).cloned().collect::<Vec<_>>();
        let (source, destination) = (&statement.rule.source, &statement.rule.destination);
        if !source.ports.is_empty() || !destination.ports.is_empty() {
            return self.refuse("binat rules look at no ports");
        }
        for (hosts, place) in [(source.hosts.as_slice(), "source"), (pool, "redirect")] {
            for host in hosts {
                match &host.address {
                    Address::Table(name) => {
                        return self.refuse(format!(
                            "invalid use of table <{name}> as the {place} address of a binat rule"
                        ));
                    }
                    Address::Dynamic { interface, .. } if self.has_several(interface) => {
                        return self.refuse(format!(
                            "invalid use of interface ({}) as the {place} address of a binat rule",
                            interface.interface
                        ));
                    }
                    _ => {}
                }
            }
        }
        if source.hosts.len() > 1 || destination.hosts.len() > 1 {
            return self.refuse("multiple binat ip addresses");
        }
        let inet = [source.hosts.as_slice(), pool]
            .concat()
            .iter()
            .any(|host| statement.rule.family.or(host.family()) == Some(Family::Inet));
        // the prefix of an interface's address has all bits in pf
        let length = |host: &Host| match host.address {
            Address::Net(_, length) => Some(length),
            Address::Dynamic { prefix, .. } => Some(if inet { prefix.min(32) } else { prefix }),
            _ => None,
        };
        match (source.hosts.as_slice(), pool) {
            (_, [_, _, ..]) => self.refuse("binat rule must redirect to a single address"),
            ([one], _) if one.family().is_some_and(|own| Some(own) != family) => {
                self.refuse("binat ip versions must match")
            }
            (_, []) if statement.pool.is_some() => {
                self.refuse("no translation address with matching address family found.")
            }
            ([one], [other]) if length(one) != length(other) => {
                self.refuse("'binat' source mask and redirect mask must be the same")
            }
            _ => Ok(()),
        }
    }
}

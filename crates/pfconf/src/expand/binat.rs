//! Expansion of `binat-to`, which makes two rules: `nat-to` for outbound packets, and `rdr-to` for
//! inbound packets.

use skipstep_ruleset::{Direction, PoolAddress, Rule};

use super::{Combination, Expansion, Lists};
use crate::ast::{self, Address, Host, Translation};

impl Expansion<'_> {
    /// Reports each error in the use of `binat-to`, and adds their number to `errors`.
    pub(super) fn check_binat(
        &mut self,
        template: &Rule,
        parts: &Combination,
        redirect: Option<&PoolAddress>,
        errors: &mut u32,
    ) {
        let source = parts.source.map(|host| &host.address);
        let several = |address: Option<&PoolAddress>| matches!(address, Some(PoolAddress::Dynamic(interface)) if self.has_several(interface));
        let source_has_several = match source {
            Some(Address::Dynamic { interface, .. }) => self.has_several(interface),
            _ => false,
        };
        let mut wrong = Vec::new();
        let single = matches!(source, None | Some(Address::Net(..) | Address::Dynamic { .. }));
        let table = matches!(redirect, Some(PoolAddress::Table(_)));
        match source {
            Some(Address::Table(name)) => wrong.push(format!(
                "invalid use of table <{name}> as the source address of a binat-to rule"
            )),
            Some(Address::Dynamic { interface, .. }) if source_has_several => wrong.push(format!(
                "invalid use of interface ({}) as the source address of a binat-to rule",
                interface.interface
            )),
            _ if !single || table || matches!(redirect, Some(PoolAddress::Range(..))) => {
                wrong.push("binat-to requires a specified source and redirect address".to_string())
            }
            _ => {}
        }
        if source_has_several || several(redirect) {
            let text = "dynamic interfaces must be used with :0 in a binat-to rule";
            wrong.push(text.to_string());
        }
        if template.family.is_some() && (covers_nothing(source) || has_no_mask(redirect)) {
            wrong.push(
                "source and redir addresess must have a matching network mask in binat-rule"
                    .to_string(),
            );
        }
        if table {
            wrong.push(
                "tables cannot be used as the redirect address of a binat-to rule".to_string(),
            );
        }
        if template.direction.is_some() {
            wrong.push("binat-to cannot be specified with a direction".to_string());
        }
        *errors += wrong.len() as u32;
        for text in &wrong {
            self.error(text);
        }
    }

    /// Adds the rules for packets to the address that `outbound` translates to. As in pf, each
    /// remaining combination of the lists makes one.
    pub(super) fn inbound(&mut self, outbound: &Rule, lists: &Lists, number: usize) {
        let (Some(nat), Some(pool)) = (&outbound.nat, &lists.translation.nat) else {
            return;
        };
        let any = Host::new(Address::Any);
        let source = lists.combination(number).source.unwrap_or(&any);
        let pool = ast::Pool { hosts: vec![source.clone()], static_port: false, ..pool.clone() };
        let translation = Translation { rdr: Some(pool), ..Translation::NONE };
        let redirected = [host(&nat.address)];
        let template =
            Rule { direction: Some(Direction::In), nat: None, route: None, ..outbound.clone() };
        let rest = lists.rest(number);
        let lists = Lists {
            sources: rest.destinations,
            source_ports: rest.destination_ports,
            destinations: &redirected,
            destination_ports: rest.source_ports,
            translation: &translation,
            ..rest
        };
        self.combinations(&template, &lists);
    }
}

/// True if an address has no network mask. As in pf, `any` and criteria other than addresses have
/// none.
fn covers_nothing(address: Option<&Address>) -> bool {
    match address {
        Some(Address::Net(_, length)) => *length == 0,
        Some(Address::Dynamic { prefix, .. }) => *prefix == 0,
        Some(Address::Range(..)) => false,
        _ => true,
    }
}

/// True if the address of a pool has no network mask. A table name of more than 16 bytes overlaps
/// the mask in pf's union, and counts as one.
fn has_no_mask(address: Option<&PoolAddress>) -> bool {
    const NAME_BEFORE_MASK: usize = 16;
    match address {
        None | Some(PoolAddress::Any) => true,
        Some(PoolAddress::Net(net)) => net.prefix_len() == 0,
        Some(PoolAddress::Dynamic(interface)) => interface.prefix == Some(0),
        Some(PoolAddress::Table(name)) => name.len() <= NAME_BEFORE_MASK,
        Some(PoolAddress::Range(..) | PoolAddress::List(_) | PoolAddress::Through(..)) => false,
    }
}

/// Returns the address of a pool as an operand of `to`.
fn host(address: &PoolAddress) -> Host {
    let address = match address {
        PoolAddress::Net(net) => Address::Net(net.addr(), net.prefix_len()),
        PoolAddress::Range(low, high) => Address::Range(*low, *high),
        PoolAddress::Table(name) => Address::Table(name.clone()),
        PoolAddress::Dynamic(interface) => Address::Dynamic {
            prefix: interface.prefix.unwrap_or(128),
            interface: interface.clone(),
        },
        PoolAddress::Any | PoolAddress::List(_) | PoolAddress::Through(..) => Address::Any,
    };
    Host::new(address)
}

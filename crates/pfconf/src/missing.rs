//! Finds interfaces that rules name and the host does not have. pf accepts such names silently,
//! because the interfaces may appear later. pfctl warns, because a name may be misspelt.

use std::collections::HashSet;

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Address, Endpoint, Not, Rule};

use crate::context::Context;

/// The names that have been reported.
#[derive(Debug, Default)]
pub struct Missing {
    reported: HashSet<String>,
}

impl Missing {
    /// Returns the names in `rules` that are neither an interface nor a group of the host. Each
    /// name is returned once.
    pub fn in_rules(&mut self, rules: &[Rule], context: &Context) -> Vec<String> {
        let names = rules.iter().flat_map(|rule| {
            let matched = [rule.interface.as_ref(), rule.received_on.as_deref()];
            let dynamic = [&rule.source, &rule.destination].into_iter().filter_map(dynamic);
            let pools = rule.pools().flat_map(|pool| pool.address.interfaces());
            let pools = pools.map(|address| address.interface.as_str());
            matched.into_iter().flatten().filter_map(named).chain(dynamic).chain(pools)
        });
        self.unknown(names, context)
    }

    /// Returns the unknown names of a `set skip on` list, as [`Missing::in_rules`] does.
    pub fn in_list(&mut self, list: &[Not<InterfaceMatch>], context: &Context) -> Vec<String> {
        self.unknown(list.iter().filter_map(named), context)
    }

    fn unknown<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        context: &Context,
    ) -> Vec<String> {
        let mut unknown = Vec::new();
        for name in names {
            let known = name == "self" || context.host.members(name).next().is_some();
            if !known && self.reported.insert(name.to_string()) {
                unknown.push(name.to_string());
            }
        }
        unknown
    }
}

fn named(interface: &Not<InterfaceMatch>) -> Option<&str> {
    match &interface.value {
        InterfaceMatch::Named(name) => Some(name),
        InterfaceMatch::Any | InterfaceMatch::Rdomain(_) => None,
    }
}

fn dynamic(end: &Endpoint) -> Option<&str> {
    match &end.host.address {
        Address::Dynamic(address) => Some(&address.interface),
        _ => None,
    }
}

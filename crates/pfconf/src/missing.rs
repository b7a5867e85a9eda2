//! Interfaces that rules speak of but the host does not have. pf takes them without a word, as they
//! may come later; a mistyped name deserves one.

use std::collections::HashSet;

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Address, Endpoint, Not, Rule};

use crate::context::Context;

/// Remembers which names were reported.
#[derive(Debug, Default)]
pub struct Missing {
    reported: HashSet<String>,
}

impl Missing {
    /// Names in `rules` that are neither an interface nor a group of the host, each once.
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

    /// The same for the names of a `set skip on`.
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

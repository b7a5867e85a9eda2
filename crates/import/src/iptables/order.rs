//! Finds rules that would filter packets of existing connections. pf passes these packets by their
//! states and evaluates no rule, so pfctl warns.

use super::dump::{Chain, Dump, Policy, Table};
use super::rule::Rule;
use super::target::Target;
use crate::messages::{Messages, Place};

/// Deepest nesting of chains that is examined; `write` refuses deeper ones.
const DEEPEST: usize = 64;

/// Warns of the first such rule of INPUT and of OUTPUT, if a rule there has a criterion on
/// connections.
pub fn check(dump: &Dump, messages: &mut Messages) {
    let chains: Vec<&Chain> =
        ["INPUT", "OUTPUT"].iter().filter_map(|name| dump.filter.get(*name)).collect();
    let mut budget = 100_000;
    if !chains.iter().any(|chain| asks_for_connections(chain, &dump.filter, 0, &mut budget)) {
        return;
    }
    for chain in chains {
        let mut budget = 100_000;
        let found = match connection_fate(&chain.rules, &dump.filter, 0, &mut budget) {
            ConnectionFate::Drops(place) => Some(place),
            ConnectionFate::Undecided if chain.policy == Some(Policy::Drop) => Some(chain.place),
            _ => None,
        };
        if let Some(place) = found {
            let message = "pf passes packets of a connection without evaluating this rule";
            let help = "pf keeps a state for each connection that a rule accepts, and then passes \
                        both directions";
            messages.warning(place, message, Some(help));
        }
    }
}

/// True if `chain`, or a chain of `table` that it calls, has a criterion on connections. `budget`
/// limits the number of rules examined.
pub fn asks_for_connections(
    chain: &Chain,
    table: &Table,
    depth: usize,
    budget: &mut usize,
) -> bool {
    chain.rules.iter().any(|rule| {
        *budget = budget.saturating_sub(1);
        if *budget == 0 || depth == DEEPEST {
            return false;
        }
        rule.criteria.connection.is_some()
            || called(rule, table)
                .is_some_and(|called| asks_for_connections(called, table, depth + 1, budget))
    })
}

fn called<'t>(rule: &Rule, table: &'t Table) -> Option<&'t Chain> {
    match &rule.target {
        Target::Jump(_, name) | Target::Goto(_, name) => table.get(name),
        _ => None,
    }
}

/// The fate of a packet of an existing connection.
enum ConnectionFate {
    /// A rule accepts every such packet.
    Accepts,
    /// A rule may drop the packet.
    Drops(Place),
    Undecided,
}

fn connection_fate(
    rules: &[Rule],
    table: &Table,
    depth: usize,
    budget: &mut usize,
) -> ConnectionFate {
    for rule in rules {
        *budget = budget.saturating_sub(1);
        if *budget == 0 || depth == DEEPEST {
            return ConnectionFate::Accepts;
        }
        if rule.criteria.connection.is_some_and(|connection| !connection.established) {
            continue;
        }
        match &rule.target {
            Target::Accept if rule.criteria.is_only_about_connections() => {
                return ConnectionFate::Accepts;
            }
            Target::Drop | Target::Unreachable(_) | Target::Reset => {
                return ConnectionFate::Drops(rule.place);
            }
            _ => {}
        }
        match called(rule, table)
            .map(|chain| connection_fate(&chain.rules, table, depth + 1, budget))
        {
            Some(ConnectionFate::Accepts) if rule.criteria.is_only_about_connections() => {
                return ConnectionFate::Accepts;
            }
            Some(ConnectionFate::Drops(place)) => return ConnectionFate::Drops(place),
            _ => {}
        }
    }
    ConnectionFate::Undecided
}

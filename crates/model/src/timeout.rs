//! Expiry of states (pf-semantics sections 1 and 2).

use skipstep_ruleset::{Options, Rule, Timeout};

use crate::counters::Counters;
use crate::state::{State, StateTable};

/// The numbers of states, in total and by rule, for adaptive timeouts.
pub(crate) struct StateCounts<'a> {
    pub states: &'a StateTable,
    pub counters: &'a Counters,
}

/// Returns the second at which `state` expires without another packet; 0 if it has expired.
pub(crate) fn expires_at(
    state: &State,
    rule: &Rule,
    options: &Options,
    counts: &StateCounts,
) -> u32 {
    if state.purge || state.unlinked {
        return 0;
    }
    let global = |timeout| options.timeouts.get(timeout);
    let timeout = own_timeout(rule, state.timeout).unwrap_or_else(|| global(state.timeout));
    let (start, end, states) = match own_timeout(rule, Timeout::AdaptiveStart) {
        Some(start) => {
            let end = own_timeout(rule, Timeout::AdaptiveEnd).unwrap_or(0);
            (start, end, counts.counters.states_of(state.rule) as u32)
        }
        None => (global(Timeout::AdaptiveStart), global(Timeout::AdaptiveEnd), counts.states.len()),
    };
    if end == 0 || states <= start || start >= end {
        return state.refreshed_at.wrapping_add(timeout);
    }
    if states >= end {
        return 0;
    }
    let scaled = u64::from(timeout) * u64::from(end - states) / u64::from(end - start);
    state.refreshed_at.wrapping_add(scaled as u32)
}

/// Returns the rule's own value of a timeout, `None` if it is not set or 0.
pub(crate) fn own_timeout(rule: &Rule, timeout: Timeout) -> Option<u32> {
    let timeouts = &rule.state.as_ref()?.timeouts;
    let last = timeouts.iter().rev().find(|(class, _)| *class == timeout);
    last.map(|(_, value)| *value).filter(|value| *value != 0)
}

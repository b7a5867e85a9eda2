//! When a state's time is up (pf-semantics sections 1 and 2).

use skipstep_ruleset::{Options, Rule, Timeout};

use crate::counters::Counters;
use crate::state::{State, StateTable};

/// How many states there are, all of them and by rule: the more, the shorter the timeouts.
pub(crate) struct Crowd<'a> {
    pub states: &'a StateTable,
    pub counters: &'a Counters,
}

/// The second at which `state` ends if nothing more comes; 0 if its time is up already.
pub(crate) fn expires_at(state: &State, rule: &Rule, options: &Options, crowd: &Crowd) -> u32 {
    if state.purge || state.unlinked {
        return 0;
    }
    let global = |timeout| options.timeouts.get(timeout);
    let timeout = own(rule, state.timeout).unwrap_or_else(|| global(state.timeout));
    let (start, end, states) = match own(rule, Timeout::AdaptiveStart) {
        Some(start) => {
            let end = own(rule, Timeout::AdaptiveEnd).unwrap_or(0);
            (start, end, crowd.counters.states_of(state.rule) as u32)
        }
        None => (global(Timeout::AdaptiveStart), global(Timeout::AdaptiveEnd), crowd.states.len()),
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

/// The rule's own value of a timeout; 0 is none.
pub(crate) fn own(rule: &Rule, timeout: Timeout) -> Option<u32> {
    let timeouts = &rule.state.as_ref()?.timeouts;
    let last = timeouts.iter().rev().find(|(class, _)| *class == timeout);
    last.map(|(_, value)| *value).filter(|value| *value != 0)
}

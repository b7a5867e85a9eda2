//! Counters of the data plane, summed over CPUs.

use skipstep_abi as abi;
use skipstep_abi::status::{source_counter, state_counter};
use skipstep_views::{InterfaceCounters, RuleCounters, Status};

use crate::error::Result;
use crate::object::Maps;

/// Returns the counters of the rule in `slot`.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn rule(maps: &Maps, slot: u32) -> Result<RuleCounters> {
    let mut sum = RuleCounters::default();
    for cpu in maps.rule_stats.get(&slot)? {
        sum.evaluations += cpu.evaluations;
        for direction in 0..2 {
            sum.packets[direction] += cpu.packets[direction];
            sum.bytes[direction] += cpu.bytes[direction];
        }
    }
    let states = maps.rule_states.at(slot)?;
    sum.states = u64::from(states.current);
    sum.states_created = states.total;
    sum.expired = states.expired != 0;
    Ok(sum)
}

/// Returns the counters of the whole instance.
pub(crate) fn totals(maps: &Maps) -> Result<abi::Counters> {
    let mut sum = abi::Counters::default();
    for cpu in maps.counters.get(&0)? {
        add(&mut sum.reason, &cpu.reason);
        add(&mut sum.state, &cpu.state);
        add(&mut sum.limit, &cpu.limit);
        add(&mut sum.source, &cpu.source);
        sum.log_lost += cpu.log_lost;
        sum.flow_lost += cpu.flow_lost;
        add(&mut sum.forwarded, &cpu.forwarded);
        add(&mut sum.left_to, &cpu.left_to);
        sum.divert_lost += cpu.divert_lost;
        add(&mut sum.drops_lost, &cpu.drops_lost);
        sum.drops_unreported += cpu.drops_unreported;
    }
    Ok(sum)
}

/// Returns the counters that every evaluator has.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn status(maps: &Maps) -> Result<Status> {
    let totals = totals(maps)?;
    let status = maps.status.at(0)?;
    Ok(Status {
        states: status.states.into(),
        sources: status.sources.into(),
        source_searches: totals.source[source_counter::SEARCHES],
        source_inserts: totals.source[source_counter::INSERTS],
        source_removals: totals.source[source_counter::REMOVALS],
        searches: totals.state[state_counter::SEARCHES],
        inserts: totals.state[state_counter::INSERTS],
        removals: totals.state[state_counter::REMOVALS],
        limits: totals.limit,
        reasons: totals.reason,
    })
}

/// Returns the counters of the interface with `id`.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn interface(maps: &Maps, id: u32) -> Result<InterfaceCounters> {
    let mut sum = InterfaceCounters::default();
    for cpu in maps.interface_stats.get(&id)? {
        sum.add(&InterfaceCounters { packets: cpu.packets, bytes: cpu.bytes });
    }
    Ok(sum)
}

/// Returns the counters of the table whose counters are in `slot`.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn table(maps: &Maps, slot: u32) -> Result<abi::TableStats> {
    let mut sum = abi::TableStats::default();
    for cpu in maps.table_stats.get(&slot)? {
        sum.r#match += cpu.r#match;
        sum.nomatch += cpu.nomatch;
        for direction in 0..2 {
            add(&mut sum.packets[direction], &cpu.packets[direction]);
            add(&mut sum.bytes[direction], &cpu.bytes[direction]);
        }
    }
    Ok(sum)
}

fn add(sum: &mut [u64], more: &[u64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

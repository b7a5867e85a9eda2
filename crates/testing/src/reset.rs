//! The reset of maps to their initial state, for the next test.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use skipstep_abi as abi;
use skipstep_kernel::error::Context;
use skipstep_kernel::map::{Map, Plain};
use skipstep_kernel::object::{Maps, Programs};
use skipstep_kernel::record::{Memory, Record};
use skipstep_kernel::{Result, contents, limiter};

/// Empties the maps that packets and loads have filled, according to `memory` and `record`.
/// Afterwards the data plane does not run.
pub(crate) fn maps(
    maps: &Maps,
    programs: &Programs,
    memory: &Memory,
    record: &mut Record,
) -> Result<()> {
    states(maps, programs)?;
    sources(maps)?;
    for limiter in &record.ruleset.limiters {
        limiter::clear(maps, skipstep_classifier::limiter::map_index(limiter.source, limiter.id));
    }
    empty(&maps.leaving)?;
    empty(&maps.limited_turns)?;
    remove_all(&maps.limited_sources)?;
    let slots: Vec<u32> = (0..memory.slots_used.max(1)).collect();
    maps.rule_stats.clear_many(&slots)?;
    maps.rule_states.set_many(&slots, &vec![abi::RuleStates::default(); slots.len()])?;
    for table in record.all_tables_mut() {
        contents::clear(maps, table)?;
    }
    // also the tables of earlier rule sets
    for (slot, table) in (0..).zip(maps.tables.first(maps.tables.capacity())?) {
        if table != abi::Table::default() {
            maps.tables.set(&slot, &abi::Table::default())?;
            maps.table_stats.set(&table.stats, &abi::TableStats::default())?;
        }
    }
    remove_all(&maps.entry_stats)?;
    remove_all(&maps.pools)?;
    remove_all(&maps.mappings)?;
    remove_all(&maps.flushes)?;
    remove_all(&maps.pool_members)?;
    remove_all(&maps.pool_blocks)?;
    remove_all(&maps.pool_loads)?;
    for (_, id) in memory.names.interfaces.iter() {
        maps.interface_stats.set(&id, &abi::InterfaceStats::default())?;
    }
    clear_scratch(&maps.scratch)?;
    maps.counters.set(&0, &abi::Counters::default())?;
    // the flow cache is tied to a generation, so no generation may come twice
    let status = maps.status.at(0)?;
    record.generation = status.generation;
    let abi::Status { stamp, ingress_id, egress_id, guard_id, .. } = status;
    maps.status.set(
        &0,
        &abi::Status {
            stamp,
            ingress_id,
            egress_id,
            guard_id,
            abi_version: abi::VERSION,
            generation: record.generation,
            capacity: maps.states.capacity(),
            source_capacity: maps.source_nodes.capacity(),
            limited_capacity: maps.limited_sources.capacity(),
            ..abi::Status::default()
        },
    )
}

fn states(maps: &Maps, programs: &Programs) -> Result<()> {
    let used = maps.status.at(0)?.states_used;
    let found: Vec<abi::State> = maps.states.first(used)?.collect();
    for (index, abi::State { serial, key, .. }) in (0..).zip(found) {
        if serial & 1 == 1 {
            // the data plane removes the keys of the state; all other fields are cleared, so it
            // reports nothing
            maps.states.set(&index, &abi::State { serial, key, ..abi::State::default() })?;
            programs.kill.call(&abi::Kill { index, serial })?;
        }
        maps.states.set(&index, &abi::State::default())?;
    }
    remove_all(&maps.extensions)?;
    empty(&maps.free_states)
}

fn sources(maps: &Maps) -> Result<()> {
    let used = maps.status.at(0)?.sources_used;
    for (index, node) in maps.source_nodes.first(used)?.enumerate() {
        maps.source_keys.remove(&node.key)?;
        maps.source_nodes.set(&(index as u32), &abi::SourceNode::default())?;
    }
    empty(&maps.free_sources)
}

fn remove_all<K: Plain, V: Plain>(map: &Map<K, V>) -> Result<()> {
    map.keys().collect::<Vec<_>>().iter().try_for_each(|key| map.remove(key).map(drop))
}

/// Sets the values of all CPUs to zeros.
fn clear_scratch(map: &MapHandle) -> Result<()> {
    let cpus = libbpf_rs::num_possible_cpus().context(|| "possible CPUs".to_owned())?;
    let zeros = vec![vec![0; map.value_size() as usize]; cpus];
    (0..map.max_entries()).try_for_each(|key| {
        map.update_percpu(&key.to_ne_bytes(), &zeros, MapFlags::ANY)
            .context(|| "map scratch: clear".to_owned())
    })
}

fn empty(stack: &MapHandle) -> Result<()> {
    let pop = || stack.lookup_and_delete(&[]).context(|| "empty a stack".to_owned());
    while pop()?.is_some() {}
    Ok(())
}

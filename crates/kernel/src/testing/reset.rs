//! The reset of maps to their initial state, for the next test.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapHandle};
use skipstep_abi as abi;

use crate::error::{Context, Result};
use crate::object::{Maps, Programs};
use crate::record::{Memory, Record};
use crate::table_index::{self, Edition};
use crate::{contents, limiter, map, pool};

/// Empties the maps that packets and loads have filled, according to `memory` and `record`.
/// Afterwards the data plane does not run.
pub(super) fn maps(
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
    for key in maps.limited_sources.keys().collect::<Vec<_>>() {
        maps.limited_sources.remove(&key)?;
    }
    let slots: Vec<u32> = (0..memory.slots_used.max(1)).collect();
    maps.rule_stats.clear_many(&slots)?;
    maps.rule_states.set_many(&slots, &vec![abi::RuleStates::default(); slots.len()])?;
    for table in record.all_tables_mut() {
        let edition = Edition::current(maps, table.slot)?;
        if edition.is_indexed() {
            table_index::remove(maps, &[edition])?;
            continue;
        }
        let entries = match &table.contents {
            Some(entries) => entries.clone(),
            None => contents::read(maps, edition)?,
        };
        contents::remove(maps, edition.version, &entries)?;
    }
    // also the tables of earlier rule sets
    for (slot, table) in (0..).zip(maps.tables.first(maps.tables.capacity())?) {
        if table != abi::Table::default() {
            maps.tables.set(&slot, &abi::Table::default())?;
            maps.table_stats.set(&table.stats, &abi::TableStats::default())?;
        }
    }
    for key in maps.entry_stats.keys().collect::<Vec<_>>() {
        maps.entry_stats.remove(&key)?;
    }
    for key in maps.pools.keys().collect::<Vec<_>>() {
        maps.pools.remove(&key)?;
    }
    for key in maps.mappings.keys().collect::<Vec<_>>() {
        maps.mappings.remove(&key)?;
    }
    for key in maps.flushes.keys().collect::<Vec<_>>() {
        maps.flushes.remove(&key)?;
    }
    for key in maps.pool_members.keys().collect::<Vec<_>>() {
        maps.pool_members.remove(&key)?;
    }
    pool::remove_unused(maps, &BTreeMap::new())?;
    for (_, id) in memory.names.interfaces.iter() {
        maps.interface_stats.set(&id, &abi::InterfaceStats::default())?;
    }
    map::clear_per_cpu(&maps.scratch)?;
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
    for index in maps.extensions.keys().collect::<Vec<_>>() {
        maps.extensions.remove(&index)?;
    }
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

fn empty(stack: &MapHandle) -> Result<()> {
    let pop = || stack.lookup_and_delete(&[]).context(|| "empty a stack".to_owned());
    while pop()?.is_some() {}
    Ok(())
}

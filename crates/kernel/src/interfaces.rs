//! The data plane's record of the host's interfaces.

use std::collections::BTreeSet;
use std::mem::offset_of;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_flags;
use skipstep_classifier::SkipLists;
use skipstep_ruleset::interface::{Host, Interface};

use crate::error::Result;
use crate::object::Maps;
use crate::record::Memory;
use crate::rule_home::RuleHome;

/// Writes the interfaces of the host and removes those that are gone. `generation` is in force;
/// `skip` has the operands of `set skip on` for each copy.
pub(crate) fn write(
    maps: &Maps,
    home: &RuleHome,
    generation: u32,
    memory: &mut Memory,
    host: &Host,
    skip: SkipLists,
) -> Result<()> {
    let mut present = skipstep_classifier::interfaces(host, skip, &mut memory.names)?;
    let is_port = |interface: &&Interface| memory.ports.contains_key(&interface.name);
    let ports: BTreeSet<u32> = host.interfaces.iter().filter(is_port).map(|i| i.index).collect();
    for (_, interface) in present.iter_mut().filter(|(index, _)| ports.contains(index)) {
        interface.flags |= interface_flags::PORT;
    }
    for (index, interface) in &present {
        maps.interfaces.set(index, interface)?;
    }
    write_near(maps, home, generation, &present)?;
    let gone: Vec<u32> = maps
        .interfaces
        .keys()
        .filter(|index| !present.iter().any(|(there, _)| there == index))
        .collect();
    for index in gone {
        forget_near(maps, index);
        maps.interfaces.remove(&index)?;
    }
    for (name, id) in memory.names.interfaces.iter() {
        let index = host.interface(name).map_or(0, |interface| interface.index);
        maps.interface_indexes.set(&id, &index)?;
    }
    Ok(())
}

/// Writes new and changed interfaces to the array of small ifindexes. Each has two values; the new
/// value is written beside the one that packets read. So the readers of the value before must have
/// ended first.
fn write_near(
    maps: &Maps,
    home: &RuleHome,
    generation: u32,
    present: &[(u32, abi::Interface)],
) -> Result<()> {
    let near = &maps.shared_near_interfaces;
    let mut changed = Vec::new();
    for (index, interface) in present {
        let was: abi::NearInterface = near.element(*index);
        let is_known = was.known != 0 && was.one[place(was.known)] == *interface;
        if *index < maps.near_interfaces.capacity() && !is_known {
            changed.push((*index, was, interface));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    home.wait(maps, generation)?;
    for (index, mut value, interface) in changed {
        let other = 1 - place(value.known);
        value.one[other] = *interface;
        near.set_element(index, &value);
        near.store(index, offset_of!(abi::NearInterface, known), other as u32 + 1);
    }
    Ok(())
}

/// Clears an interface in the array. The hash map then decides about this ifindex.
fn forget_near(maps: &Maps, index: u32) {
    maps.shared_near_interfaces.store(index, offset_of!(abi::NearInterface, known), 0);
}

/// Returns the index of the valid value, 0 or 1.
fn place(known: u32) -> usize {
    usize::from(known == 2)
}

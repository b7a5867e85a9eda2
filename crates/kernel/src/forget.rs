//! Removal of unused names. When a registry of interfaces, groups, tags or anchors is nearly full,
//! unused names make room for new ones: a host of containers sees thousands of interface names.

use std::collections::BTreeSet;

use skipstep_abi as abi;
use skipstep_classifier::Names;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{InterfaceMatch, Not, Ruleset};

use crate::error::Result;
use crate::object::Maps;

/// Removes unused names from every registry that is nearly full. A name is unused if it occurs
/// neither on the host nor in `rulesets` nor in a state.
pub(crate) fn make_room(
    maps: &Maps,
    names: &mut Names,
    host: &Host,
    rulesets: &[&Ruleset],
) -> Result<()> {
    let registries = [&names.interfaces, &names.groups, &names.tags, &names.anchors];
    let full = registries.map(|names| names.is_nearly_full());
    if full == [false; 4] {
        return Ok(());
    }
    let (interfaces, tags) = in_states(maps)?;
    let named: BTreeSet<&str> =
        rulesets.iter().flat_map(|ruleset| interface_names(ruleset)).collect();
    let tagged: BTreeSet<&str> = rulesets.iter().flat_map(|ruleset| tag_names(ruleset)).collect();
    if full[0] {
        let forgotten = names.interfaces.retain(|name, id| {
            host.interface(name).is_some() || named.contains(name) || interfaces.contains(&id)
        });
        for id in forgotten {
            maps.interface_stats.set(&id, &abi::InterfaceStats::default())?;
        }
    }
    if full[1] {
        let on_host =
            |name: &str| host.interfaces.iter().any(|interface| interface.has_name_or_group(name));
        names.groups.retain(|name, _| on_host(name) || named.contains(name));
    }
    if full[2] {
        names.tags.retain(|name, tag| tagged.contains(name) || tags.contains(&tag));
    }
    if full[3] {
        // the anchor number of a state has no meaning without the state's rule
        names
            .anchors
            .retain(|path, _| rulesets.iter().any(|rules| rules.anchors.contains_key(path)));
    }
    Ok(())
}

/// Returns the numbers of interfaces and of tags that states refer to.
fn in_states(maps: &Maps) -> Result<(BTreeSet<u32>, BTreeSet<u32>)> {
    let mut used = (BTreeSet::new(), BTreeSet::new());
    for (_, abi::KeptState { state, extension }) in crate::state::kept(maps)? {
        used.0.extend([state.key[abi::state::WIRE].interface, extension.hop_interface]);
        used.1.insert(u32::from(state.tag));
    }
    Ok(used)
}

fn interface_names(ruleset: &Ruleset) -> impl Iterator<Item = &str> {
    let rules = ruleset
        .every_rule()
        .flat_map(|(_, rule)| [rule.interface.as_ref(), rule.received_on.as_deref()]);
    let named = rules.filter_map(|operand| match operand {
        Some(Not { value: InterfaceMatch::Named(name), .. }) => Some(name.as_str()),
        _ => None,
    });
    let pools = ruleset.every_rule().flat_map(|(_, rule)| rule.pools());
    let ways = pools.flat_map(|pool| pool.address.next_hop_interfaces()).map(String::as_str);
    named.chain(ways).chain(ruleset.options.loginterface.as_deref())
}

fn tag_names(ruleset: &Ruleset) -> impl Iterator<Item = &str> {
    ruleset.every_rule().flat_map(|(_, rule)| {
        let tagged = rule.tagged.as_ref().map(|tagged| tagged.value.as_str());
        rule.tag.as_deref().into_iter().chain(tagged)
    })
}

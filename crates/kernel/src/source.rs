//! Source nodes as userland sees them.

use std::mem::offset_of;
use std::net::IpAddr;

use skipstep_abi as abi;
use skipstep_abi::source::{node_kind, node_use};
use skipstep_abi::verdict::action;
use skipstep_classifier::Names;
use skipstep_ruleset::{LegacyKind, RuleId};
use skipstep_views::{NodeKind, SourceView};

use crate::error::Result;
use crate::kept_rules;
use crate::object::{Maps, Programs};

/// A source node with its index and key.
pub struct Found {
    place: abi::SourceRef,
    /// The source node as userland shows it.
    pub view: SourceView,
}

/// Returns all source nodes, sorted by rule.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn list(maps: &Maps, names: &Names) -> Result<Vec<Found>> {
    let status: abi::Status = maps.shared_status.element(0);
    let used = status.sources_used.min(maps.source_nodes.capacity());
    let nodes = maps.source_nodes.first(used)?;
    let nodes = nodes.zip(0..).filter(|(node, _)| node.r#use == node_use::USED);
    let found = nodes.map(|(node, index)| Found {
        place: abi::SourceRef { index, pad: 0, key: node.key },
        view: view(maps, names, &node),
    });
    let mut found: Vec<Found> = found.collect();
    found.sort_by_cached_key(|found| found.view.order());
    Ok(found)
}

/// Removes the source nodes that `wanted` accepts. Returns their number. Their states stay and are
/// not counted any more.
pub(crate) fn drop_nodes(
    maps: &Maps,
    programs: &Programs,
    names: &Names,
    mut wanted: impl FnMut(&SourceView) -> bool,
) -> Result<u64> {
    let mut dropped = 0;
    for found in list(maps, names)? {
        if wanted(&found.view) {
            dropped += u64::from(programs.drop_source.call(&found.place)?);
        }
    }
    Ok(dropped)
}

fn view(maps: &Maps, names: &Names, node: &abi::SourceNode) -> SourceView {
    let family = node.key.family;
    let chosen = abi::address_from(node.chosen_family, node.chosen);
    SourceView {
        rule: rule(maps, names, node.key.rule_slot),
        kind: match node.key.kind {
            node_kind::NAT => NodeKind::Nat,
            node_kind::RDR => NodeKind::Rdr,
            node_kind::ROUTE => NodeKind::Route,
            _ => NodeKind::Track,
        },
        source: abi::address_from(family, node.key.address),
        chosen: Some(chosen).filter(|chosen: &IpAddr| !chosen.is_unspecified()),
        states: node.states,
        connections: node.connections,
        rate: (node.rate as u32, (node.rate >> 32) as u32),
        created_at: node.creation,
        expires_at: node.expire,
        packets: node.packets,
        bytes: node.bytes,
    }
}

/// Returns the rule in a slot; `None` if the rule is orphaned.
fn rule(maps: &Maps, names: &Names, slot: u32) -> Option<RuleId> {
    let word = |offset| maps.shared_rule_states.load(slot, offset);
    let anchor = names.anchors.name(word(offset_of!(abi::RuleStates, anchor)));
    let anchor = anchor.unwrap_or_default().to_owned();
    let old = match maps.rule_states.at(slot).map_or(0, |states| states.old as u8) {
        action::NAT => Some(LegacyKind::Nat),
        action::RDR => Some(LegacyKind::Rdr),
        action::BINAT => Some(LegacyKind::Binat),
        _ => None,
    };
    Some(RuleId { anchor, old, number: kept_rules::number(maps, slot)? })
}

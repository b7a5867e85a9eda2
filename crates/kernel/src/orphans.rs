//! Orphaned rules: rules that are in no rule set any more while their states live. As in pf, their
//! states go on using the tables that the rules name, as long as tables of these names exist: they
//! count for them, fill them, and use their addresses. The states can be killed by the labels of
//! the rules, and `pfctl --json -ss` shows the rules' stable identities.

use std::collections::BTreeMap;
use std::mem::offset_of;

use skipstep_abi as abi;
use skipstep_classifier::pool;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{Address, PoolKind, Rule, TableName};

use crate::error::Result;
use crate::kept_rules::KeptRules;
use crate::object::Maps;
use crate::record::{Memory, NO_TABLE, OrphanedRule, Record, SlotSet, TableRecord, visible_slot};
use crate::table_slots;

impl OrphanedRule {
    fn from_rule(path: &str, rule: &Rule) -> Self {
        let table = |address: &Address| match address {
            Address::Table(name) => Some(TableName::new(path, name)),
            _ => None,
        };
        let overload = rule.state.as_ref().and_then(|state| state.overload.as_ref());
        let counting = pool::by_purpose(rule).filter(|(_, p)| p.kind == PoolKind::LeastStates);
        OrphanedRule {
            tables: [table(&rule.source.host.address), table(&rule.destination.host.address)],
            overload: overload.map(|overload| TableName::new(path, &overload.table)),
            pools: counting
                .filter_map(|(purpose, p)| Some((purpose, pool::table_of(&p.address, path)?)))
                .collect(),
            labels: rule.labels.clone(),
            hash: None,
        }
    }

    /// True if the record has something to store.
    fn has_content(&self) -> bool {
        *self != OrphanedRule::default()
    }
}

/// Returns the rules, by slot, that are orphaned when `new` is in force and may still have states.
pub(crate) fn rules(maps: &Maps, previous: &Record, new: &SlotSet) -> BTreeMap<u32, OrphanedRule> {
    let has = |slot, field| maps.shared_rule_states.load(slot, field) != 0;
    let remains = |slot: u32| {
        has(slot, offset_of!(abi::RuleStates, current))
            || has(slot, offset_of!(abi::RuleStates, source_nodes))
    };
    let earlier = previous.orphans.iter().filter(|(slot, _)| remains(**slot));
    let mut orphans: BTreeMap<u32, OrphanedRule> =
        earlier.map(|(slot, rule)| (*slot, rule.clone())).collect();
    // all rules of the rule set have to be printed for it, which most loads need not do
    let mut identities = None;
    for (path, set) in &previous.rule_sets {
        let ruleset = &previous.ruleset;
        let filter = ruleset.rules_of(path).iter().map(|rule| (rule, None)).zip(&set.slots);
        let legacy = ruleset.legacy_rules_of(path).iter();
        let legacy = legacy.map(|legacy| (&legacy.rule, Some(legacy.kind))).zip(&set.legacy_slots);
        for ((rule, kind), slot) in filter.chain(legacy).filter(|(_, slot)| !new.contains(**slot)) {
            let mut orphan = OrphanedRule::from_rule(path, rule);
            if orphan.labels.is_empty() && remains(*slot) {
                let identities = identities.get_or_insert_with(|| Identities::of(ruleset));
                orphan.hash = identities.find(path, kind, rule.number).map(str::to_owned);
            }
            match orphan.has_content() {
                true => orphans.insert(*slot, orphan),
                false => orphans.remove(slot),
            };
        }
    }
    orphans.retain(|slot, _| !new.contains(*slot));
    orphans
}

/// Lets the data plane add entries to the tables that orphaned rules fill.
pub(crate) fn fill(
    maps: &Maps,
    memory: &mut Memory,
    orphans: &BTreeMap<u32, OrphanedRule>,
    tables: &mut BTreeMap<TableName, TableRecord>,
) -> Result<()> {
    for name in orphans.values().filter_map(|rule| rule.overload.as_ref()) {
        if let Some(table) = tables.get_mut(name) {
            table.filled = true;
            table.contents = None;
            table_slots::begin_to_fill(maps, memory, table.slot)?;
        }
    }
    Ok(())
}

/// Writes the current slots of their tables to the entries of orphaned rules.
pub(crate) fn follow_tables(maps: &Maps, record: &Record, kept: Option<&KeptRules>) {
    for (slot, rule) in &record.orphans {
        for (place, name) in rule.tables.iter().enumerate() {
            let Some(name) = name else { continue };
            let table = visible_slot(&record.tables, name).unwrap_or(NO_TABLE);
            KeptRules::set_table(kept, maps, *slot, place, table);
        }
        if let Some(name) = &rule.overload {
            let table = record.tables.get(name).map_or(NO_TABLE, |table| table.slot);
            KeptRules::set_overload(kept, maps, *slot, table);
        }
    }
}

//! The tables that a rule set needs, with their contents.

use std::collections::BTreeSet;

use ipnet::IpNet;
use skipstep_abi::limits::TABLE_SLOTS;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Address, LegacyKind, Pool, Ruleset, TableEntry, TableName};

use crate::{Error, dynamic, route_label};

/// A table, dynamic interface address or route label that rules look into.
#[derive(Debug, Clone, PartialEq)]
pub struct TableUse {
    /// `<name>` without the angle brackets, `(em0)` with its parentheses, or `route"label"`. The
    /// three forms never collide.
    pub name: TableName,
    /// True if the contents follow the addresses of an interface, or the routes of the host.
    pub dynamic: bool,
    /// True if a pool chooses addresses from it.
    pub pooled: bool,
    /// True if the data plane adds to it: the table of an `overload` or of a limiter.
    pub filled: bool,
    /// Entries to load; `None` keeps the kernel's contents of the table of that name.
    pub entries: Option<Vec<TableEntry>>,
}

/// Returns the tables of `ruleset` in its order, then its dynamic addresses sorted by name, then
/// route labels. Each table of an anchor has a counterpart in the main rule set, perhaps an empty
/// one. It serves rules as long as the anchor does not define the table.
///
/// # Errors
/// Fails if the tables or their entries exceed the limits of the rule set, or if the data plane has
/// too few slots.
pub fn tables(ruleset: &Ruleset, host: &Host) -> Result<Vec<TableUse>, Error> {
    let limits = &ruleset.options.limits;
    let count = ruleset.all_tables().count();
    if count > limits.tables as usize {
        return Err(Error::Tables { tables: count, limit: limits.tables });
    }
    let entries = ruleset.all_tables().map(|(_, table)| table.entries.len()).sum();
    if entries > limits.table_entries as usize {
        return Err(Error::TableEntries { entries, limit: limits.table_entries });
    }

    let (pooled, filled) = (pooled(ruleset), filled(ruleset));
    let named = ruleset.all_tables().map(|(anchor, table)| TableUse {
        name: TableName::new(anchor, &table.name),
        dynamic: false,
        pooled: pooled.contains(&table.name),
        filled: filled.contains(&(anchor, table.name.as_str())),
        entries: table.initialized.then(|| table.entries.clone()),
    });
    let in_anchors = ruleset.all_tables().filter(|(anchor, _)| !anchor.is_empty());
    let missing: BTreeSet<&str> = in_anchors
        .map(|(_, table)| table.name.as_str())
        .filter(|name| ruleset.table(name).is_none())
        .collect();
    let stand_ins = missing.into_iter().map(|name| TableUse {
        name: name.into(),
        dynamic: false,
        pooled: pooled.contains(name),
        filled: false,
        entries: None,
    });
    let dynamic = dynamic_addresses(ruleset).into_iter().map(|dynamic| TableUse {
        name: dynamic::name(dynamic),
        dynamic: true,
        pooled: pooled.contains(&dynamic::name(dynamic).name),
        filled: false,
        entries: Some(plain(dynamic::contents(dynamic, host))),
    });
    let labelled = route_labels(ruleset).into_iter().map(|label| TableUse {
        name: route_label::name(label),
        dynamic: true,
        pooled: false,
        filled: false,
        entries: Some(route_label::contents(label, host)),
    });
    let mut uses: Vec<TableUse> = named.chain(stand_ins).chain(dynamic).chain(labelled).collect();
    let mut seen = BTreeSet::new();
    uses.retain(|table| seen.insert(table.name.clone()));
    if uses.len() > TABLE_SLOTS as usize {
        return Err(Error::TableSlots { tables: uses.len(), limit: TABLE_SLOTS });
    }
    Ok(uses)
}

/// Returns the tables that rules and limiters add sources to, as anchor path and name.
fn filled(ruleset: &Ruleset) -> BTreeSet<(&str, &str)> {
    let rules = ruleset.every_rule();
    let targets = rules.filter_map(|(path, rule)| {
        Some((path, rule.state.as_ref()?.overload.as_ref()?.table.as_str()))
    });
    let limiters = ruleset.limiters.iter().filter_map(|limiter| limiter.table.as_ref());
    targets.chain(limiters.map(|(name, ..)| ("", name.as_str()))).collect()
}

/// Returns the names of tables and dynamic addresses that pools choose from, in any anchor.
fn pooled(ruleset: &Ruleset) -> BTreeSet<String> {
    let pools = ruleset.every_rule().flat_map(|(_, rule)| rule.pools());
    let names = |pool: &Pool| -> Vec<String> {
        let tables = pool.address.tables().into_iter().map(str::to_owned);
        let interfaces = pool.address.interfaces();
        tables.chain(interfaces.into_iter().map(|address| dynamic::name(address).name)).collect()
    };
    // `binat` takes the new address from the criterion that it compares sources with.
    let binat = ruleset.all_legacy_rules().filter(|(_, old)| old.kind == LegacyKind::Binat);
    let sources = binat.filter_map(|(_, old)| match &old.rule.source.host.address {
        Address::Dynamic(address) => Some(dynamic::name(address).name),
        _ => None,
    });
    pools.flat_map(names).chain(sources).collect()
}

/// Returns the dynamic addresses in rules and their pools, without duplicates.
pub fn dynamic_addresses(ruleset: &Ruleset) -> BTreeSet<&DynamicAddress> {
    let criteria = ruleset
        .every_rule()
        .flat_map(|(_, rule)| [&rule.source.host.address, &rule.destination.host.address])
        .filter_map(|address| match address {
            Address::Dynamic(dynamic) => Some(dynamic),
            _ => None,
        });
    let pools = ruleset.every_rule().flat_map(|(_, rule)| rule.pools());
    criteria.chain(pools.flat_map(|pool| pool.address.interfaces())).collect()
}

/// Returns the route labels in rules, without duplicates.
fn route_labels(ruleset: &Ruleset) -> BTreeSet<&str> {
    let criteria = ruleset
        .every_rule()
        .flat_map(|(_, rule)| [&rule.source.host.address, &rule.destination.host.address]);
    criteria
        .filter_map(|address| match address {
            Address::RouteLabel(label) => Some(label.as_str()),
            _ => None,
        })
        .collect()
}

fn plain(nets: Vec<IpNet>) -> Vec<TableEntry> {
    nets.into_iter().map(TableEntry::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_ruleset::Table;

    #[test]
    fn limits_name_the_line_to_write() {
        let mut ruleset = Ruleset::default();
        let entry = TableEntry::from("10.0.0.0/8".parse::<IpNet>().unwrap());
        ruleset.tables.push(Table {
            name: "bad".into(),
            initialized: true,
            entries: vec![entry; 3],
            ..Table::default()
        });
        ruleset.options.limits.table_entries = 2;
        assert_eq!(
            tables(&ruleset, &Host::default()).unwrap_err().to_string(),
            "3 table entries exceed the limit of 2: write `set limit table-entries 3`"
        );
        ruleset.options.limits.tables = 0;
        assert_eq!(
            tables(&ruleset, &Host::default()).unwrap_err().to_string(),
            "1 tables exceed the limit of 0: write `set limit tables 1`"
        );
    }

    #[test]
    fn a_table_without_contents_keeps_what_the_kernel_has() {
        let table =
            |name: &str, initialized| Table { name: name.into(), initialized, ..Table::default() };
        let ruleset = Ruleset {
            tables: vec![table("kept", false), table("emptied", true)],
            ..Ruleset::default()
        };
        let uses = tables(&ruleset, &Host::default()).unwrap();
        assert_eq!(uses[0].entries, None);
        assert_eq!(uses[1].entries, Some(Vec::new()));
    }
}

//! Lookup of an address in a table (pf-semantics section 17).

use std::net::IpAddr;

use skipstep_ruleset::{Table, TableEntry};

/// Returns the entry with the longest prefix that contains `address`.
pub(crate) fn best_entry(table: &Table, address: IpAddr) -> Option<&TableEntry> {
    table
        .entries
        .iter()
        .filter(|entry| entry.net.contains(&address))
        .max_by_key(|entry| entry.net.prefix_len())
}

/// Returns true if `address` is in the table. It is not if the best entry is negated.
pub(crate) fn contains(table: &Table, address: IpAddr) -> bool {
    best_entry(table, address).is_some_and(|entry| !entry.negated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[&str]) -> Table {
        let entry = |text: &&str| TableEntry {
            negated: text.starts_with('!'),
            net: text.trim_start_matches('!').parse().unwrap(),
            weight: 0,
        };
        Table { entries: entries.iter().map(entry).collect(), ..Table::default() }
    }

    #[test]
    fn longest_prefix_decides() {
        let table = table(&["10.0.0.0/8", "!10.1.0.0/16", "10.1.1.1/32", "2001:db8::/32"]);
        let inside = |address: &str| contains(&table, address.parse().unwrap());
        assert!(inside("10.9.9.9"));
        assert!(!inside("10.1.2.3"));
        assert!(inside("10.1.1.1"));
        assert!(inside("2001:db8::1"));
        assert!(!inside("11.0.0.1") && !inside("::1"));
    }

    #[test]
    fn an_empty_table_holds_nothing() {
        assert!(!contains(&table(&[]), "10.0.0.1".parse().unwrap()));
    }
}

//! Tables of addresses (pf-features section 11, pf-semantics section 17).

use std::collections::BTreeSet;
use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A table that pf.conf defines or mentions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Table {
    /// Name without the angle brackets.
    pub name: String,
    /// `persist`: the table stays if no rule names it.
    pub persist: bool,
    /// `const`: commands cannot change the contents.
    pub constant: bool,
    /// `counters`: the table counts packets for each address.
    pub counters: bool,
    /// True if the rule set has the table itself: by a `table` statement, as the table of an
    /// `overload` or a limiter, or since an earlier load. False if rules only mention the table.
    pub defined: bool,
    /// True if a `table` statement of this load gives the properties. A record does not keep this.
    #[serde(skip)]
    pub stated: bool,
    /// True if the statement gives contents (possibly `{ }`), which replace those in the kernel.
    pub initialized: bool,
    /// Addresses in the statement and in its files.
    pub entries: Vec<TableEntry>,
}

impl PartialEq for Table {
    /// Compares all fields that a record keeps.
    fn eq(&self, other: &Self) -> bool {
        let Table { name, persist, constant, counters, defined, stated: _, initialized, entries } =
            self;
        *name == other.name
            && *persist == other.persist
            && *constant == other.constant
            && *counters == other.counters
            && *defined == other.defined
            && *initialized == other.initialized
            && *entries == other.entries
    }
}

impl Table {
    /// Takes over the properties of the table as it was, unless a `table` statement gives them. As
    /// in pf, a load that only mentions a table leaves its properties (`pfr_ina_commit`).
    pub fn keep_properties(&mut self, before: &Table) {
        if self.stated || !before.defined {
            return;
        }
        self.defined = true;
        self.persist = before.persist;
        self.constant = before.constant;
        self.counters = before.counters;
    }
}

/// An address or network in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableEntry {
    /// `!`: an address whose longest match is this entry is not in the table.
    pub negated: bool,
    /// Address or network with zero host bits.
    pub net: IpNet,
    /// `weight`: share of the entry in a pool, relative to other entries; 0 without `weight`.
    pub weight: u16,
}

/// True if two lists have the same entries, in whatever order.
pub fn has_same_entries(entries: &[TableEntry], others: &[TableEntry]) -> bool {
    let set = |entries: &[TableEntry]| entries.iter().copied().collect::<BTreeSet<TableEntry>>();
    entries == others || set(entries) == set(others)
}

/// An entry that is not negated and has no weight.
impl From<IpNet> for TableEntry {
    fn from(net: IpNet) -> Self {
        TableEntry { negated: false, net, weight: 0 }
    }
}

/// The identity of a table. Each rule set has its own names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct TableName {
    /// Path of the table's anchor; empty for the main rule set.
    pub anchor: String,
    /// Name without the angle brackets.
    pub name: String,
}

impl TableName {
    /// Returns the identity of the table `name` in the anchor with this path.
    pub fn new(anchor: &str, name: &str) -> Self {
        TableName { anchor: anchor.to_owned(), name: name.to_owned() }
    }
}

/// The identity of a table of the main rule set.
impl From<&str> for TableName {
    fn from(name: &str) -> Self {
        TableName::new("", name)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.anchor.as_str() {
            "" => write!(f, "{}", self.name),
            anchor => write!(f, "{} in anchor {anchor}", self.name),
        }
    }
}

/// The key of the table in JSON: path, blank and name, with a backslash before each blank and
/// backslash of the path. Without a path, the name alone, unless the name has a blank.
impl From<TableName> for String {
    fn from(TableName { anchor, name }: TableName) -> Self {
        if anchor.is_empty() && !name.contains(' ') {
            return name;
        }
        let path = anchor.replace('\\', r"\\").replace(' ', r"\ ");
        format!("{path} {name}")
    }
}

impl From<String> for TableName {
    fn from(text: String) -> Self {
        let mut path = String::new();
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            match next {
                ' ' => return TableName::new(&path, rest.as_str()),
                '\\' => path.extend(rest.next()),
                other => path.push(other),
            }
        }
        TableName::from(text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_table_keeps_its_properties_unless_a_statement_gives_others() {
        let before = Table { defined: true, persist: true, counters: true, ..Table::default() };
        let mut mentioned = Table::default();
        mentioned.keep_properties(&before);
        assert_eq!(mentioned, before);
        let stated = Table { defined: true, stated: true, constant: true, ..Table::default() };
        let mut next = stated.clone();
        next.keep_properties(&before);
        assert_eq!(next, stated);
        let mut filled = Table { defined: true, ..Table::default() };
        filled.keep_properties(&Table { persist: true, ..Table::default() });
        assert!(!filled.persist, "a table that did not exist has no properties");
    }

    #[test]
    fn table_names_round_trip_as_json_keys() {
        let paths = ["", "a", "a/b c", r"a\", r"a\ b", " "];
        let names = ["bad", "a b", " ", r"a\b", r"a\ b", r"\"];
        let mut keys = BTreeSet::new();
        for name in paths.iter().flat_map(|path| names.map(|name| TableName::new(path, name))) {
            let key = String::from(name.clone());
            assert_eq!(TableName::from(key.clone()), name, "{key:?}");
            assert!(keys.insert(key), "{name} has another one's key");
        }
        assert_eq!(String::from(TableName::from("bad")), "bad");
        assert_eq!(String::from(TableName::new("a/b", "bad")), "a/b bad");
    }
}

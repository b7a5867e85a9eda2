//! Tables of addresses (pf-features section 11, pf-semantics section 17).

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A table as pf.conf defines or mentions it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Name, without the angle brackets.
    pub name: String,
    /// `persist`
    pub persist: bool,
    /// `const`
    pub constant: bool,
    /// `counters`
    pub counters: bool,
    /// There is a `table` statement; otherwise only rules mention it.
    pub defined: bool,
    /// The statement gives contents (perhaps `{ }`), which then replace those in the kernel.
    pub initialized: bool,
    /// Addresses given in the statement and its files.
    pub entries: Vec<TableEntry>,
}

/// An address or network in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableEntry {
    /// `!`: where this is the longest match, the address is not in the table.
    pub negated: bool,
    /// Host bits are zero.
    pub net: IpNet,
    /// `weight`: how often a pool takes it, compared with the others; 0 if nothing was said.
    pub weight: u16,
}

/// Not negated and without weight.
impl From<IpNet> for TableEntry {
    fn from(net: IpNet) -> Self {
        TableEntry { negated: false, net, weight: 0 }
    }
}

/// Which table: each rule set has names of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct TableName {
    /// Path of the anchor it is in; empty in the main rule set.
    pub anchor: String,
    /// Its name there, without the angle brackets.
    pub name: String,
}

impl TableName {
    /// The table called `name` in the anchor with this path.
    pub fn new(anchor: &str, name: &str) -> Self {
        TableName { anchor: anchor.to_owned(), name: name.to_owned() }
    }
}

/// A table of the main rule set.
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

/// As a key of JSON: the path, a blank and the name, or the name alone if there is neither a path
/// nor a blank in the name. A backslash stands before each blank and backslash of the path.
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
    fn names_survive_as_keys() {
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

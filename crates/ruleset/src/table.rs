//! Tables of addresses (pf-features section 11, pf-semantics section 17).

use std::collections::BTreeMap;

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
    /// `weight` of the entries that have one: how often a pool takes it, compared with the others.
    pub weights: BTreeMap<IpNet, u16>,
}

/// An address or network in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableEntry {
    /// `!`: where this is the longest match, the address is not in the table.
    pub negated: bool,
    /// Host bits are zero.
    pub net: IpNet,
}

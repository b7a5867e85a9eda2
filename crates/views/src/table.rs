//! Changes of tables.

use skipstep_ruleset::{TableEntry, TableName};

/// A change of the contents of a table, like `pfctl -T`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEdit {
    /// The table to change.
    pub table: TableName,
    /// Kind of the change.
    pub edit: Edit,
    /// Entries to add, to delete, or to replace the contents with.
    pub entries: Vec<TableEntry>,
}

/// The kinds of changes of a table's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Adds the entries whose networks are not yet in the table.
    Add,
    /// Deletes the entries' networks.
    Delete,
    /// Replaces the contents with the entries.
    Replace,
}

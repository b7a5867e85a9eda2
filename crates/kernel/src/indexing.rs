//! The choice of tables that get an index.

/// Number of entries from which an index is faster than the trie.
const WORTH_AN_INDEX: usize = 64;

/// Tables that get an index, among those that the data plane does not add to. Only tests and
/// measurements use another value than the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Tables with many entries.
    #[default]
    Many,
    /// All tables.
    All,
    /// No table.
    None,
}

impl Indexing {
    /// True if a table with `entries` entries gets an index.
    pub(crate) fn wants(self, entries: usize) -> bool {
        match self {
            Indexing::Many => entries >= WORTH_AN_INDEX,
            Indexing::All => true,
            Indexing::None => false,
        }
    }
}

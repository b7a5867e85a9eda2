//! The thresholds that decide between a tree search and skip steps.

/// The thresholds that decide between a tree search and skip steps, in rule evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planner {
    /// Cost of a search, in rule evaluations. A superblock has no tree for packets that skip steps
    /// evaluate against at most this number of rules.
    pub sooner_walked: u32,
    /// Extra cost, in rule evaluations, of each candidate in a search that returns all matching
    /// rules.
    pub of_a_candidate: u32,
    /// Tables of a rule set are expanded ([`crate::spread`]) only if its rules refer to tables more
    /// often than this.
    pub tables_asked: usize,
    /// Most networks that a table is expanded to, in each family. Covering prefixes replace the
    /// entries of a larger table.
    pub networks_of_a_table: usize,
}

impl Default for Planner {
    /// Returns the measured values (docs/reference/performance.md).
    fn default() -> Self {
        Planner { sooner_walked: 8, of_a_candidate: 2, tables_asked: 16, networks_of_a_table: 256 }
    }
}

impl Planner {
    /// Thresholds for tests: small rule sets get trees too, and some kinds of packets still use
    /// skip steps.
    pub const EAGER: Self =
        Planner { sooner_walked: 2, of_a_candidate: 0, tables_asked: 2, networks_of_a_table: 2 };
}

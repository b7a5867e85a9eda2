//! The thresholds that decide between a tree search and skip steps.

/// The thresholds that decide between a tree search and skip steps, in rule evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planner {
    /// Cost of a search, in rule evaluations. A superblock has no tree for packets that skip steps
    /// evaluate against at most this number of rules.
    pub search_cost: u32,
    /// Extra cost, in rule evaluations, of each candidate in a search that returns all matching
    /// rules.
    pub candidate_cost: u32,
    /// Tables of a rule set are expanded ([`crate::table_expansion`]) only if its rules refer to
    /// tables more often than this.
    pub max_unexpanded: usize,
    /// Most networks that a table is expanded to, in each family. Covering prefixes replace the
    /// entries of a larger table.
    pub networks_per_table: usize,
}

impl Default for Planner {
    /// Returns the measured values (docs/reference/performance.md).
    fn default() -> Self {
        Planner { search_cost: 8, candidate_cost: 2, max_unexpanded: 16, networks_per_table: 256 }
    }
}

impl Planner {
    /// Thresholds for tests: small rule sets get trees too, and some kinds of packets still use
    /// skip steps.
    pub const EAGER: Self =
        Planner { search_cost: 2, candidate_cost: 0, max_unexpanded: 2, networks_per_table: 2 };
}

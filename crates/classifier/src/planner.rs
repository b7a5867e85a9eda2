//! What is searched, and what is left to skip steps.

/// What is searched, and what is left to skip steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planner {
    /// A search costs about as much as testing so many rules: what skip steps test no more of,
    /// whatever the packet, is walked.
    pub sooner_walked: u32,
    /// What one more costs in tests for each rule that such a search finds, if it is for all that
    /// may match.
    pub of_a_candidate: u32,
    /// If no more tables are asked by the rules of a set, none is spread ([`crate::spread`]).
    pub tables_asked: usize,
    /// In its stead stand networks that cover it, in either family so many at most.
    pub networks_of_a_table: usize,
}

impl Default for Planner {
    /// As measured (docs/performance.md).
    fn default() -> Self {
        Planner { sooner_walked: 8, of_a_candidate: 2, tables_asked: 16, networks_of_a_table: 256 }
    }
}

impl Planner {
    /// For tests: small rule sets are searched too, yet some kinds of packets are left to skip
    /// steps.
    pub const EAGER: Self =
        Planner { sooner_walked: 2, of_a_candidate: 0, tables_asked: 2, networks_of_a_table: 2 };
}

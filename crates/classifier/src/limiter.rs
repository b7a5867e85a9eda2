//! Compilation of limiters.

use skipstep_abi as abi;
use skipstep_abi::limiter::{LIMITER_NO_MATCH, limiter_kind};
use skipstep_abi::limits::LIMITERS;
use skipstep_ruleset::{Limiter, LimiterUse, TableName};

use crate::slots::Slots;

const NANOSECONDS: u64 = 1_000_000_000;

/// Returns the index of a limiter in the map of limiters. `source` is true for a source limiter.
pub fn map_index(source: bool, id: u32) -> u32 {
    let kind = if source { limiter_kind::SOURCE } else { limiter_kind::STATE };
    u32::from(kind) * LIMITERS + id
}

/// Compiles a limiter. Returns its index in the map of limiters with its value.
pub(crate) fn limiter(limiter: &Limiter, slots: &Slots) -> (u32, abi::Limiter) {
    let (states, seconds) = limiter.rate.unwrap_or((1, 0));
    let bucket = u64::from(seconds) * NANOSECONDS;
    let slot = |name: &str| slots.tables.get(&TableName::from(name)).copied();
    let table = limiter.table.as_ref();
    let table = table.and_then(|(name, above, below)| Some((slot(name)?, *above, *below)));
    let (table, above, below) = table.unwrap_or_default();
    let compiled = abi::Limiter {
        token: bucket / u64::from(states),
        bucket,
        limit: limiter.limit,
        entries: limiter.entries.unwrap_or(0),
        table,
        above,
        below,
        inet_mask: limiter.inet_mask.unwrap_or(32),
        inet6_mask: limiter.inet6_mask.unwrap_or(128),
        pad: [0; 2],
    };
    (map_index(limiter.source, limiter.id), compiled)
}

/// Compiles a rule's use of a limiter: the limiter's number and flag, or 0 for none.
pub(crate) fn used(used: Option<LimiterUse>) -> u16 {
    used.map_or(0, |used| used.id as u16 | if used.no_match { LIMITER_NO_MATCH } else { 0 })
}

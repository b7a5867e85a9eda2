//! The most rules that skip steps evaluate for a packet; a search has to be cheaper than that.

use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_ruleset::skip::Skip;

use crate::packets::Packets;

/// Rule evaluations of one packet above which a load warns: more take over a millisecond
/// (docs/reference/performance.md).
pub const LONG_WALK: u32 = 20_000;

/// Returns, for each kind of packet, the most rules of `superblock` that one packet is evaluated
/// against. Assumes that no `quick` rule matches.
///
/// A mismatch in a property that all packets of a kind share always skips rules. Every other
/// criterion may match or not, so the longest of all paths counts.
pub(crate) fn longest_walks(
    rules: &[abi::Rule],
    superblock: Range<usize>,
    kinds: &[Packets],
) -> Vec<u32> {
    // For each rule: the longest path from there, for each kind. One pass serves all kinds, because
    // rules are far larger than this table.
    let mut longest = vec![0u32; (superblock.len() + 1) * kinds.len()];
    for index in superblock.clone().rev() {
        let rule = &rules[index];
        let place =
            |next: usize| (next.clamp(index + 1, superblock.end) - superblock.start) * kinds.len();
        let (behind, skips) = (place(index + 1), rule.skip.map(|next| place(next as usize)));
        let asks_interface = rule.interface_match != interface_match::NONE;
        for (which, kind) in kinds.iter().enumerate() {
            let over = |parameter: Skip| longest[skips[parameter as usize] + which];
            let rest = match certain_skip(rule, kind) {
                Some(parameter) if !asks_interface => over(parameter),
                Some(parameter) => {
                    over(parameter).max(over(Skip::Interface)).max(over(Skip::Rdomain))
                }
                None => Skip::ALL.into_iter().map(over).fold(longest[behind + which], u32::max),
            };
            longest[(index - superblock.start) * kinds.len() + which] = 1 + rest;
        }
    }
    longest.truncate(kinds.len());
    longest
}

/// Returns the first parameter, in evaluation order, in which the rule differs from all packets of
/// the kind.
fn certain_skip(rule: &abi::Rule, kind: &Packets) -> Option<Skip> {
    if rule.direction != 0 && rule.direction != kind.direction {
        Some(Skip::Direction)
    } else if rule.family != 0 && rule.family != kind.family {
        Some(Skip::Family)
    } else {
        kind.have_not(rule).then_some(Skip::Protocol)
    }
}

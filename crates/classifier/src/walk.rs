//! How many rules skip steps test at most, which says where a search would be no gain.

use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_ruleset::skip::Skip;

use crate::packets::Packets;

/// Rules that a packet may be tested against: more take longer than a millisecond
/// (docs/performance.md), so a load warns of them.
pub const LONG_WALK: u32 = 20_000;

/// The most rules of a stretch that are tested for a packet of each kind, none of them `quick` and
/// matching.
///
/// What a kind has in common leads over rules for certain; anything else that a rule asks may fail
/// or not, and the way that is the longest counts.
pub(crate) fn longest_walks(
    rules: &[abi::Rule],
    stretch: Range<usize>,
    kinds: &[Packets],
) -> Vec<u32> {
    // for each rule the longest walk from it on, kind by kind; all kinds at once, for rules are far
    // larger than this
    let mut longest = vec![0u32; (stretch.len() + 1) * kinds.len()];
    for index in stretch.clone().rev() {
        let rule = &rules[index];
        let place =
            |next: usize| (next.clamp(index + 1, stretch.end) - stretch.start) * kinds.len();
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
            longest[(index - stretch.start) * kinds.len() + which] = 1 + rest;
        }
    }
    longest.truncate(kinds.len());
    longest
}

/// The parameter in which a rule differs from all packets of a kind, in the order in which a rule's
/// tests are made.
fn certain_skip(rule: &abi::Rule, kind: &Packets) -> Option<Skip> {
    if rule.direction != 0 && rule.direction != kind.direction {
        Some(Skip::Direction)
    } else if rule.family != 0 && rule.family != kind.family {
        Some(Skip::Family)
    } else {
        kind.have_not(rule).then_some(Skip::Protocol)
    }
}

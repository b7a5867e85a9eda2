//! How many rules skip steps test at most, which says where a search would be no gain.

use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_ruleset::skip::Skip;

use crate::packets::Packets;

/// The most rules of a stretch that are tested for a packet of a kind, none of them `quick` and matching.
///
/// What a kind has in common leads over rules for certain; anything else that a rule asks may fail or not, and
/// the way that is the longest counts.
pub(crate) fn longest_walk(rules: &[abi::Rule], stretch: Range<usize>, kind: &Packets) -> u32 {
    let mut longest = vec![0u32; stretch.len() + 1];
    for index in stretch.clone().rev() {
        let rule = &rules[index];
        let from = |next: usize| longest[next.clamp(index + 1, stretch.end) - stretch.start];
        let over = |parameter: Skip| from(rule.skip[parameter as usize] as usize);
        // in the order in which a rule's tests are made
        let certain = if rule.direction != 0 && rule.direction != kind.direction {
            Some(Skip::Direction)
        } else if rule.family != 0 && rule.family != kind.family {
            Some(Skip::Family)
        } else {
            kind.have_not(rule).then_some(Skip::Protocol)
        };
        let asks_interface = rule.interface_match != interface_match::NONE;
        let rest = match certain {
            Some(parameter) if !asks_interface => over(parameter),
            Some(parameter) => over(parameter).max(over(Skip::Interface)).max(over(Skip::Rdomain)),
            None => Skip::ALL.into_iter().map(over).fold(from(index + 1), u32::max),
        };
        longest[index - stretch.start] = 1 + rest;
    }
    longest[0]
}

//! Metadata dimensions: trees may branch by a packet's tag, or by the owner of its socket.
//!
//! Without such a dimension, each packet would be evaluated against all of 10,000 rules
//! `pass tagged T`. So if enough rules of a superblock have a criterion on one kind of metadata,
//! its trees get one more dimension.
//!
//! When a search begins, the value may be unknown. Reading it costs time (a socket lookup) or has
//! an effect (the packet's tag becomes that of its state). So an unread value has a coordinate of
//! its own, [`UNKNOWN`], at which each of these rules has a rectangle. The first of them that is
//! evaluated reads the value, and the search starts again. So its rectangle at [`UNKNOWN`] hides
//! all rules behind it.

use skipstep_abi as abi;
use skipstep_abi::rule::{port_op, rule_flags as flags};
use skipstep_abi::tree_set::superblock_metadata;

use crate::packets::{TCP, UDP};
use crate::rects::asks_for_owner;
use crate::tree::{Covering, Rect, Space};

/// The coordinate of an unread value: `PF_METADATA_UNKNOWN`.
const UNKNOWN: u32 = abi::tree_set::METADATA_UNKNOWN;
/// The id of no user or group: the socket has no known owner.
const NOBODY: u32 = u32::MAX;

/// The metadata of a superblock's extra dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    Tag,
    User,
    Group,
}

impl Metadata {
    const ALL: [Metadata; 3] = [Metadata::Tag, Metadata::User, Metadata::Group];

    /// Returns the number of the dimension in the superblock's header nodes.
    pub fn number(self) -> u32 {
        match self {
            Metadata::Tag => superblock_metadata::TAG,
            Metadata::User => superblock_metadata::USER,
            Metadata::Group => superblock_metadata::GROUP,
        }
    }

    /// Returns the metadata that most of these rules have a criterion on, or `None` if no more than
    /// `few` rules have one.
    pub fn most_frequent(rules: &[abi::Rule], few: u32) -> Option<Metadata> {
        // One pass for all three, because rules are far larger than the counters.
        let mut asking = [0; Metadata::ALL.len()];
        for rule in rules {
            for (count, metadata) in asking.iter_mut().zip(Metadata::ALL) {
                *count += u32::from(metadata.is_criterion_of(rule));
            }
        }
        let (count, most) =
            asking.into_iter().zip(Metadata::ALL).max_by_key(|(count, _)| *count)?;
        (count > few).then_some(most)
    }

    fn is_criterion_of(self, rule: &abi::Rule) -> bool {
        // Rules without TCP or UDP never look up an owner.
        let has_owner = [TCP, UDP].contains(&rule.protocol);
        match self {
            Metadata::Tag => rule.tagged != 0,
            Metadata::User => has_owner && rule.user.op != 0,
            Metadata::Group => has_owner && rule.group.op != 0,
        }
    }

    /// Returns the coordinates, inclusive, that a rule accepts. The range may be wider than the
    /// rule's.
    fn values(self, rule: &abi::Rule) -> (u32, u32) {
        match self {
            Metadata::Tag if rule.flags & flags::TAGGED_NOT != 0 => (0, UNKNOWN - 1),
            Metadata::Tag => (rule.tagged.into(), rule.tagged.into()),
            Metadata::User => ids(&rule.user),
            Metadata::Group => ids(&rule.group),
        }
    }
}

/// Returns the ids that a criterion accepts, inclusive. The id 0xfffffffe has the coordinate of
/// 0xfffffffd, because its own is [`UNKNOWN`].
fn ids(owner: &abi::Owner) -> (u32, u32) {
    let place = |id: u32| if id == NOBODY { id } else { id.min(UNKNOWN - 1) };
    let (low, high) = (place(owner.low), place(owner.high));
    match owner.op {
        port_op::EQ => (low, low),
        port_op::RANGE | port_op::INSIDE => (low, high),
        port_op::LT | port_op::LE => (0, low),
        port_op::GT | port_op::GE => (low, NOBODY),
        _ => (0, NOBODY),
    }
}

/// The completeness of a rectangle: a complete rectangle has every criterion of its part of the
/// rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// True if the rectangle has all criteria on the header.
    pub header: bool,
    /// True if the rectangle has all criteria of the rule, so that a packet in the rectangle needs
    /// no evaluation.
    pub rule: bool,
}

/// Returns the rectangles of a rule, in a space with or without a metadata dimension. A rule with a
/// criterion on that dimension has one rectangle for its values and one at [`UNKNOWN`].
pub(crate) fn rects<const N: usize>(
    space: &Space<N>,
    metadata: Option<Metadata>,
    rule: &abi::Rule,
    rect: Rect<N>,
    whole: Whole,
    order: u32,
) -> impl Iterator<Item = Covering<N>> + use<N> {
    let metadata = metadata.filter(|metadata| metadata.is_criterion_of(rule));
    let Some((axis, metadata)) = space.metadata_axis().zip(metadata) else {
        let plain = Covering { rect, whole: whole.rule, hides: whole.rule, order };
        return [Some(plain), None].into_iter().flatten();
    };
    let between = |(low, high): (u32, u32), hides: bool| {
        let mut rect = rect;
        (rect.low[axis], rect.high[axis]) = (low, high);
        Some(Covering { rect, whole: false, hides, order })
    };
    // The rectangle hides others only if each packet in it makes the rule read the value. A rule
    // reads the tag last, and not at all if the owner does not match.
    let ends_before = metadata == Metadata::Tag && asks_for_owner(rule);
    let looks =
        whole.header && !ends_before && rule.flags & (flags::ONCE | flags::PROBABILITY) == 0;
    let (low, high) = metadata.values(rule);
    let known = if low <= high { between((low, high), false) } else { None };
    [known, between((UNKNOWN, UNKNOWN), looks)].into_iter().flatten()
}

/// True if the rectangle is for packets whose value is unread.
pub(crate) fn is_unknown<const N: usize>(space: &Space<N>, rect: &Rect<N>) -> bool {
    space.metadata_axis().is_some_and(|axis| rect.low[axis] == UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::INET_METADATA;

    /// Returns the verdict of the data plane on a socket's owner: `match_id` in bpf/owner.h.
    fn matches(owner: &abi::Owner, id: u32) -> bool {
        let (low, high) = (owner.low, owner.high);
        match owner.op {
            port_op::EQ => id == low,
            port_op::NE => id != low,
            _ if id == NOBODY => false,
            port_op::INSIDE => id > low && id < high,
            port_op::OUTSIDE => id < low || id > high,
            port_op::RANGE => (low..=high).contains(&id),
            port_op::LT => id < low,
            port_op::LE => id <= low,
            port_op::GT => id > low,
            _ => id >= low,
        }
    }

    fn drawn(rule: &abi::Rule, metadata: Metadata) -> Vec<Covering<7>> {
        let whole = Whole { header: true, rule: false };
        rects(&INET_METADATA, Some(metadata), rule, INET_METADATA.whole, whole, 7).collect()
    }

    fn having(rects: &[Covering<7>], value: u32) -> usize {
        let point = [0, 0, 0, 0, 0, 0, value];
        rects.iter().filter(|covering| covering.rect.has(&point)).count()
    }

    #[test]
    fn every_matching_owner_is_in_a_box() {
        let ids = [0, 1, 2, 3, 0x7fff_ffff, UNKNOWN - 2, UNKNOWN - 1, UNKNOWN, NOBODY];
        for op in port_op::INSIDE..=port_op::RANGE {
            for (low, high) in ids.into_iter().flat_map(|low| ids.map(|high| (low, high))) {
                let user = abi::Owner { low, high, op, pad: [0; 3] };
                let rule = abi::Rule { protocol: TCP, user, ..abi::Rule::default() };
                let rects = drawn(&rule, Metadata::User);
                for id in ids.into_iter().filter(|id| matches(&user, *id)) {
                    let place = if id == UNKNOWN { UNKNOWN - 1 } else { id };
                    assert!(having(&rects, place) > 0, "{op}: {low}, {high}: {id}");
                }
                assert!(rects.iter().any(|of| is_unknown(&INET_METADATA, &of.rect) && of.hides));
            }
        }
    }

    #[test]
    fn a_tag_has_one_value_and_a_negated_tag_has_all() {
        let rule = abi::Rule { tagged: 9, ..abi::Rule::default() };
        let rects = drawn(&rule, Metadata::Tag);
        assert_eq!([0, 8, 9, 10, UNKNOWN].map(|tag| having(&rects, tag)), [0, 0, 1, 0, 1]);
        let rects = drawn(&abi::Rule { flags: flags::TAGGED_NOT, ..rule }, Metadata::Tag);
        assert_eq!([0, 8, 9, UNKNOWN].map(|tag| having(&rects, tag)), [1; 4]);
    }

    #[test]
    fn rules_that_may_not_read_the_value_hide_none() {
        let hides =
            |rule: &abi::Rule| drawn(rule, Metadata::Tag).iter().any(|covering| covering.hides);
        let rule = abi::Rule { tagged: 9, ..abi::Rule::default() };
        assert!(hides(&rule));
        assert!(!hides(&abi::Rule { flags: flags::ONCE, ..rule }));
        assert!(!hides(&abi::Rule { flags: flags::PROBABILITY, ..rule }));
        let user = abi::Owner { op: port_op::EQ, ..abi::Owner::default() };
        assert!(!hides(&abi::Rule { user, ..rule }) && !hides(&abi::Rule { group: user, ..rule }));
        // A rule without a criterion on the tag keeps its rectangle.
        let plain = drawn(&abi::Rule::default(), Metadata::Tag);
        assert_eq!(plain.iter().map(|of| of.rect).collect::<Vec<_>>(), [INET_METADATA.whole]);
    }

    #[test]
    fn the_most_frequent_criterion_has_the_axis() {
        let tagged = abi::Rule { tagged: 9, ..abi::Rule::default() };
        let user = abi::Owner { op: port_op::EQ, ..abi::Owner::default() };
        let owned = abi::Rule { protocol: UDP, user, ..abi::Rule::default() };
        assert_eq!(Metadata::most_frequent(&[tagged, owned, owned], 1), Some(Metadata::User));
        assert_eq!(Metadata::most_frequent(&[tagged, tagged, owned], 1), Some(Metadata::Tag));
        assert_eq!(Metadata::most_frequent(&[tagged, owned], 1), None);
        // Other protocols have no owners.
        let other = abi::Rule { protocol: 47, ..owned };
        assert_eq!(Metadata::most_frequent(&[other; 3], 1), None);
    }
}

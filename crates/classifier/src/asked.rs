//! Metadata dimensions: trees may branch by a packet's tag, or by the owner of its socket.
//!
//! Without such a dimension, each packet would be evaluated against all of 10,000 rules
//! `pass tagged T`. So if enough rules of a superblock have a criterion on one kind of metadata,
//! its trees get one more dimension.
//!
//! When a search begins, the value may be unknown. Reading it costs time (a socket lookup) or has
//! an effect (the packet's tag becomes that of its state). So an unread value has a coordinate of
//! its own, [`UNKNOWN`], at which each of these rules has a box. The first of them that is
//! evaluated reads the value, and the search starts again. So its box at [`UNKNOWN`] hides all
//! rules behind it.

use skipstep_abi as abi;
use skipstep_abi::forest::stretch_asks;
use skipstep_abi::rule::{port_op, rule_flags as flags};

use crate::packets::{TCP, UDP};
use crate::tree::{Covering, Region, Space};

/// The coordinate of an unread value: `PF_ASKED_UNKNOWN`.
const UNKNOWN: u32 = abi::forest::ASKED_UNKNOWN;
/// The id of no user or group: the socket has no known owner.
const NOBODY: u32 = u32::MAX;

/// The metadata of a superblock's extra dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Tag,
    User,
    Group,
}

impl Asks {
    const ALL: [Asks; 3] = [Asks::Tag, Asks::User, Asks::Group];

    /// Returns the number of the dimension in the superblock's header nodes.
    pub fn number(self) -> u32 {
        match self {
            Asks::Tag => stretch_asks::TAG,
            Asks::User => stretch_asks::USER,
            Asks::Group => stretch_asks::GROUP,
        }
    }

    /// Returns the metadata that most of these rules have a criterion on, or `None` if no more than
    /// `few` rules have one.
    pub fn of_stretch(rules: &[abi::Rule], few: u32) -> Option<Asks> {
        // One pass for all three, because rules are far larger than the counters.
        let mut asking = [0; Asks::ALL.len()];
        for rule in rules {
            for (count, asks) in asking.iter_mut().zip(Asks::ALL) {
                *count += u32::from(asks.is_asked_by(rule));
            }
        }
        let (count, most) = asking.into_iter().zip(Asks::ALL).max_by_key(|(count, _)| *count)?;
        (count > few).then_some(most)
    }

    fn is_asked_by(self, rule: &abi::Rule) -> bool {
        // Rules without TCP or UDP never look up an owner.
        let has_owner = [TCP, UDP].contains(&rule.protocol);
        match self {
            Asks::Tag => rule.tagged != 0,
            Asks::User => has_owner && rule.user.op != 0,
            Asks::Group => has_owner && rule.group.op != 0,
        }
    }

    /// Returns the coordinates, inclusive, that a rule accepts. The range may be wider than the
    /// rule's.
    fn values(self, rule: &abi::Rule) -> (u32, u32) {
        match self {
            Asks::Tag if rule.flags & flags::TAGGED_NOT != 0 => (0, UNKNOWN - 1),
            Asks::Tag => (rule.tagged.into(), rule.tagged.into()),
            Asks::User => ids(&rule.user),
            Asks::Group => ids(&rule.group),
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

/// The completeness of a box: a complete box has every criterion of its part of the rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// True if the box has all criteria on the header.
    pub header: bool,
    /// True if the box has all criteria of the rule, so that a packet in the box needs no
    /// evaluation.
    pub rule: bool,
}

/// Returns the boxes of a rule, in a space with or without a metadata dimension. A rule with a
/// criterion on that dimension has one box for its values and one at [`UNKNOWN`].
pub(crate) fn boxes<const N: usize>(
    space: &Space<N>,
    asks: Option<Asks>,
    rule: &abi::Rule,
    region: Region<N>,
    whole: Whole,
    order: u32,
) -> impl Iterator<Item = Covering<N>> + use<N> {
    let asks = asks.filter(|asks| asks.is_asked_by(rule));
    let Some((axis, asks)) = space.asked().zip(asks) else {
        let plain = Covering { region, whole: whole.rule, hides: whole.rule, order };
        return [Some(plain), None].into_iter().flatten();
    };
    let between = |(low, high): (u32, u32), hides: bool| {
        let mut region = region;
        (region.low[axis], region.high[axis]) = (low, high);
        Some(Covering { region, whole: false, hides, order })
    };
    // The box hides others only if each packet in it makes the rule read the value.
    let looks = whole.header && rule.flags & (flags::ONCE | flags::PROBABILITY) == 0;
    let (low, high) = asks.values(rule);
    let known = if low <= high { between((low, high), false) } else { None };
    [known, between((UNKNOWN, UNKNOWN), looks)].into_iter().flatten()
}

/// True if the box is for packets whose value is unread.
pub(crate) fn is_unknown<const N: usize>(space: &Space<N>, region: &Region<N>) -> bool {
    space.asked().is_some_and(|axis| region.low[axis] == UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::INET_ASKED;

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

    fn drawn(rule: &abi::Rule, asks: Asks) -> Vec<Covering<7>> {
        let whole = Whole { header: true, rule: false };
        boxes(&INET_ASKED, Some(asks), rule, INET_ASKED.whole, whole, 7).collect()
    }

    fn having(boxes: &[Covering<7>], value: u32) -> usize {
        let point = [0, 0, 0, 0, 0, 0, value];
        boxes.iter().filter(|covering| covering.region.has(&point)).count()
    }

    #[test]
    fn no_owner_that_matches_is_outside() {
        let ids = [0, 1, 2, 3, 0x7fff_ffff, UNKNOWN - 2, UNKNOWN - 1, UNKNOWN, NOBODY];
        for op in port_op::INSIDE..=port_op::RANGE {
            for (low, high) in ids.into_iter().flat_map(|low| ids.map(|high| (low, high))) {
                let user = abi::Owner { low, high, op, pad: [0; 3] };
                let rule = abi::Rule { protocol: TCP, user, ..abi::Rule::default() };
                let boxes = drawn(&rule, Asks::User);
                for id in ids.into_iter().filter(|id| matches(&user, *id)) {
                    let place = if id == UNKNOWN { UNKNOWN - 1 } else { id };
                    assert!(having(&boxes, place) > 0, "{op}: {low}, {high}: {id}");
                }
                assert!(boxes.iter().any(|of| is_unknown(&INET_ASKED, &of.region) && of.hides));
            }
        }
    }

    #[test]
    fn a_tag_is_a_value_and_all_but_one_are_all() {
        let rule = abi::Rule { tagged: 9, ..abi::Rule::default() };
        let boxes = drawn(&rule, Asks::Tag);
        assert_eq!([0, 8, 9, 10, UNKNOWN].map(|tag| having(&boxes, tag)), [0, 0, 1, 0, 1]);
        let boxes = drawn(&abi::Rule { flags: flags::TAGGED_NOT, ..rule }, Asks::Tag);
        assert_eq!([0, 8, 9, UNKNOWN].map(|tag| having(&boxes, tag)), [1; 4]);
    }

    #[test]
    fn who_may_not_look_hides_none() {
        let hides = |rule: &abi::Rule| drawn(rule, Asks::Tag).iter().any(|covering| covering.hides);
        let rule = abi::Rule { tagged: 9, ..abi::Rule::default() };
        assert!(hides(&rule));
        assert!(!hides(&abi::Rule { flags: flags::ONCE, ..rule }));
        assert!(!hides(&abi::Rule { flags: flags::PROBABILITY, ..rule }));
        // A rule without a criterion on the tag keeps its box.
        let plain = drawn(&abi::Rule::default(), Asks::Tag);
        assert_eq!(plain.iter().map(|of| of.region).collect::<Vec<_>>(), [INET_ASKED.whole]);
    }

    #[test]
    fn what_most_ask_has_the_axis() {
        let tagged = abi::Rule { tagged: 9, ..abi::Rule::default() };
        let user = abi::Owner { op: port_op::EQ, ..abi::Owner::default() };
        let owned = abi::Rule { protocol: UDP, user, ..abi::Rule::default() };
        assert_eq!(Asks::of_stretch(&[tagged, owned, owned], 1), Some(Asks::User));
        assert_eq!(Asks::of_stretch(&[tagged, tagged, owned], 1), Some(Asks::Tag));
        assert_eq!(Asks::of_stretch(&[tagged, owned], 1), None);
        // Other protocols have no owners.
        let other = abi::Rule { protocol: 47, ..owned };
        assert_eq!(Asks::of_stretch(&[other; 3], 1), None);
    }
}

//! What rules ask of a packet besides its headers, and trees may cut along: its tag, or who owns
//! its socket.
//!
//! Of 10,000 rules `pass tagged T` that differ in their tags alone each packet would have to ask
//! all. So where rules of a stretch ask such a thing, its trees have one axis more. Nobody has
//! looked at it when the search begins, it may be, and to look has a price (sockets are sought), or
//! an effect (the packet's tag becomes that of its state). For such a packet there is a value of
//! its own, [`UNKNOWN`], on which all stand that ask: the first one that is tested looks, and the
//! search begins anew. So it hides there all behind it.

use skipstep_abi as abi;
use skipstep_abi::forest::stretch_asks;
use skipstep_abi::rule::{port_op, rule_flags as flags};

use crate::packets::{TCP, UDP};
use crate::tree::{Covering, Region, Space};

/// The value of a packet that nobody has looked at: `PF_ASKED_UNKNOWN`.
const UNKNOWN: u32 = abi::forest::ASKED_UNKNOWN;
/// No id of a user or group: nobody's.
const NOBODY: u32 = u32::MAX;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Tag,
    User,
    Group,
}

impl Asks {
    const ALL: [Asks; 3] = [Asks::Tag, Asks::User, Asks::Group];

    /// How the cells of a stretch say it.
    pub fn number(self) -> u32 {
        match self {
            Asks::Tag => stretch_asks::TAG,
            Asks::User => stretch_asks::USER,
            Asks::Group => stretch_asks::GROUP,
        }
    }

    /// What most of these rules ask, if they are more than so few.
    pub fn of_stretch(rules: &[abi::Rule], few: u32) -> Option<Asks> {
        // all at once, for rules are far larger than this
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
        // of other protocols no owner is asked
        let has_owner = [TCP, UDP].contains(&rule.protocol);
        match self {
            Asks::Tag => rule.tagged != 0,
            Asks::User => has_owner && rule.user.op != 0,
            Asks::Group => has_owner && rule.group.op != 0,
        }
    }

    /// The values that a rule asks for, and some more it may be.
    fn values(self, rule: &abi::Rule) -> (u32, u32) {
        match self {
            Asks::Tag if rule.flags & flags::TAGGED_NOT != 0 => (0, UNKNOWN - 1),
            Asks::Tag => (rule.tagged.into(), rule.tagged.into()),
            Asks::User => ids(&rule.user),
            Asks::Group => ids(&rule.group),
        }
    }
}

/// The greatest id of all is on the axis what the next one is, for its place is taken.
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

/// What a box has of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// All that is asked of the header.
    pub header: bool,
    /// All.
    pub rule: bool,
}

/// The boxes of a rule in a space that may have an axis for what is asked besides.
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
    // whether it looks must not hang on anything else
    let looks = whole.header && rule.flags & (flags::ONCE | flags::PROBABILITY) == 0;
    let (low, high) = asks.values(rule);
    let known = if low <= high { between((low, high), false) } else { None };
    [known, between((UNKNOWN, UNKNOWN), looks)].into_iter().flatten()
}

/// Whether a box is that of packets that nobody has looked at.
pub(crate) fn is_unknown<const N: usize>(space: &Space<N>, region: &Region<N>) -> bool {
    space.asked().is_some_and(|axis| region.low[axis] == UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::INET_ASKED;

    /// What the data plane says: `match_id` in bpf/owner.h.
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
        // who asks nothing has the box that it had
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
        // other protocols have no owners
        let other = abi::Rule { protocol: 47, ..owned };
        assert_eq!(Asks::of_stretch(&[other; 3], 1), None);
    }
}

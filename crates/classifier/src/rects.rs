//! The rectangles of rules: the part of a rule's criteria on headers that trees can branch by.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{address_kind, port_op, rule_flags as flags};
use skipstep_abi::tree_set::{CLASS_OTHER, ORDER_LAST};
use skipstep_abi::verdict::{action, direction};

use crate::metadata::{self, Metadata, Whole};
use crate::packets::{ICMP, ICMP6, Packets, SCTP, TCP, UDP};
use crate::table_expansion::{self, TableExpansions};
use crate::tree::{Covering, Rect, Space};

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

/// True if a rule has no side effects during evaluation, whether it matches or not.
pub(crate) fn only_decides(rule: &abi::Rule) -> bool {
    matches!(rule.action, action::PASS | action::BLOCK)
        && rule.flags & (flags::ANCHOR | flags::ONCE | flags::PROBABILITY | flags::MAX_PKT_RATE)
            == 0
        // Reading a packet's tag is a side effect: the tag becomes that of the packet's state.
        && rule.tag == 0
        && rule.tagged == 0
        && rule.limiter == [0; 2]
}

/// True if a rule has a criterion on the owner of a socket.
pub(crate) fn asks_for_owner(rule: &abi::Rule) -> bool {
    rule.user.op != 0 || rule.group.op != 0
}

/// A rectangle under construction; `whole` is true while the rectangle has all criteria of the
/// rule.
pub(crate) struct RuleRect<const N: usize> {
    rect: Rect<N>,
    whole: bool,
}

impl<const N: usize> RuleRect<N> {
    fn between(&mut self, axis: usize, low: u32, high: u32) {
        if low <= high {
            self.rect.low[axis] = low;
            self.rect.high[axis] = high;
        } else {
            self.whole = false;
        }
    }

    /// Marks the rectangle as incomplete if the rule has a criterion without an axis.
    fn more_if(&mut self, has_criterion: bool) {
        self.whole &= !has_criterion;
    }
}

/// Returns the rectangles of the rules of a superblock that packets of a kind may match. A rule
/// with an expanded table has several.
///
/// Without `meets_all` the order is that of decision: first the `quick` rules, then the others from
/// last to first. With it the order is that of evaluation, and only a `quick` rule hides others.
pub(crate) fn coverings<const N: usize>(
    space: &Space<N>,
    rules: &[abi::Rule],
    (superblock, meets_all): (Range<usize>, bool),
    kind: &Packets,
    (expansions, metadata): (Option<&TableExpansions>, Option<Metadata>),
    addresses: fn(&abi::Rule, &mut RuleRect<N>),
) -> Vec<Covering<N>> {
    let place = |index: usize| (index - superblock.start) as u32;
    let is_quick = |index: &usize| rules[*index].flags & flags::QUICK != 0;
    let may_match = |(index, _): &(usize, u32)| may_match(&rules[*index], kind);
    let rects = |(index, order): (usize, u32)| {
        let rule: &abi::Rule = &rules[index];
        let mut rect = RuleRect { rect: space.whole, whole: true };
        addresses(rule, &mut rect);
        header(rule, kind, space.addresses[1].end, &mut rect);
        let RuleRect { rect, whole } = rect;
        let may_hide = !meets_all || (is_quick(&index) && only_decides(rule));
        let whole = Whole { header: whole, rule: whole && may_hide && !asks_for_owner(rule) };
        let table =
            expansions.and_then(|expansions| table_expansion::table_of_rule(rule, expansions));
        let own = table.is_none().then_some(rect);
        let (side, networks) = table.unwrap_or_default();
        let of_table = networks.iter();
        let of_table =
            of_table.filter_map(move |net| table_expansion::narrowed(space, rect, side, net));
        let all = own.into_iter().chain(of_table);
        all.flat_map(move |rect| metadata::rects(space, metadata, rule, rect, whole, order))
    };
    if meets_all {
        let all = superblock.clone().map(|index| (index, place(index)));
        return all.filter(may_match).flat_map(rects).collect();
    }
    let quick = superblock.clone().filter(is_quick).map(|index| (index, place(index)));
    let others = superblock.clone().rev().filter(|index| !is_quick(index));
    let others = others.map(|index| (index, ORDER_LAST - place(index)));
    quick.chain(others).filter(may_match).flat_map(rects).collect()
}

/// True if some packet of the kind may match the rule.
fn may_match(rule: &abi::Rule, kind: &Packets) -> bool {
    let never = |address: &abi::Address| {
        address.kind == address_kind::NEVER
            || (address.kind == address_kind::ANY && address.negated != 0)
    };
    let direction = rule.direction == direction::INOUT || rule.direction == kind.direction;
    let family = rule.family == 0 || rule.family == kind.family;
    let tcp = kind.have(rule, TCP) && !wants_first(rule);
    let icmp =
        (kind.have(rule, ICMP) || kind.have(rule, ICMP6)) && !makes_no_state_of_answers(rule);
    direction
        && family
        && !kind.have_not(rule)
        && !never(&rule.source)
        && !never(&rule.destination)
        // Fragments are not searched in trees.
        && rule.flags & flags::FRAGMENT == 0
        && (!kind.follows || tcp || icmp)
}

/// True for `flags S/SA`.
fn wants_first(rule: &abi::Rule) -> bool {
    (rule.tcp_flags, rule.tcp_mask) == (SYN, SYN_ACK)
}

fn makes_no_state_of_answers(rule: &abi::Rule) -> bool {
    rule.flags & flags::KEEP_STATE != 0 && rule.flags & flags::SLOPPY == 0
}

/// Narrows a rectangle by all criteria on the header except addresses. `first` is the axis behind
/// those of the addresses.
fn header<const N: usize>(rule: &abi::Rule, kind: &Packets, first: usize, rect: &mut RuleRect<N>) {
    let [source_port, destination_port, protocol, interface] =
        [0, 1, 2, 3].map(|axis| first + axis);
    if rule.protocol != kind.protocol && rule.protocol != 0 {
        rect.between(protocol, rule.protocol.into(), rule.protocol.into());
    }
    match rule.protocol {
        TCP | UDP | SCTP => {
            port(&rule.source_port, source_port, rect);
            port(&rule.destination_port, destination_port, rect);
        }
        _ => rect.more_if([rule.source_port, rule.destination_port].iter().any(|p| p.op != 0)),
    }
    match rule.protocol {
        ICMP | ICMP6 => {
            let (icmp_type, code) = (rule.icmp_type.into(), rule.icmp_code.into());
            if rule.flags & flags::MATCH_ICMP_TYPE != 0 {
                rect.between(source_port, icmp_type, icmp_type);
            }
            if rule.flags & flags::MATCH_ICMP_CODE != 0 {
                rect.between(destination_port, code, code);
            }
        }
        _ => rect.more_if(rule.flags & (flags::MATCH_ICMP_TYPE | flags::MATCH_ICMP_CODE) != 0),
    }
    match rule.interface_match {
        interface_match::NONE => {}
        // No rectangle can express that the packet has no such interface.
        interface_match::NAME if rule.interface == 0 => rect.more_if(true),
        interface_match::NAME if rule.flags & flags::INTERFACE_NOT == 0 => {
            let class = rule.interface.min(CLASS_OTHER);
            rect.between(interface, class, class);
            rect.more_if(class == CLASS_OTHER);
        }
        _ => rect.more_if(true),
    }
    if kind.have(rule, TCP) {
        let met = wants_first(rule) && !kind.follows;
        rect.more_if(rule.tcp_mask != 0 && !met);
    }
    if kind.have(rule, ICMP) || kind.have(rule, ICMP6) {
        rect.more_if(makes_no_state_of_answers(rule) && kind.follows);
    }
    rect.more_if(rule.flags & (flags::MATCH_TOS | flags::MATCH_PRIO) != 0);
    rect.more_if(rule.os != 0);
    rect.more_if(rule.received_match != interface_match::NONE);
}

fn port<const N: usize>(port: &abi::Port, axis: usize, rect: &mut RuleRect<N>) {
    let (low, high) = (u32::from(port.low), u32::from(port.high));
    let all = u32::from(u16::MAX);
    // A set of ports that is no range becomes an empty one, low > high.
    let (from, to) = match port.op {
        port_op::ANY => (0, all),
        port_op::EQ => (low, low),
        port_op::RANGE => (low, high),
        port_op::INSIDE if high > 0 => (low + 1, high - 1),
        port_op::LT if low > 0 => (0, low - 1),
        port_op::LE => (0, low),
        port_op::GT if low < all => (low + 1, all),
        port_op::GE => (low, all),
        _ => (1, 0),
    };
    rect.between(axis, from, to);
}

pub(crate) fn inet_addresses<const N: usize>(rule: &abi::Rule, rect: &mut RuleRect<N>) {
    let word = |bytes: &[u8; 16]| {
        Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).expect("that many were taken")).to_bits()
    };
    for (axis, address) in [&rule.source, &rule.destination].into_iter().enumerate() {
        let (low, high) = (word(&address.low), word(&address.high));
        match plain_kind(rule, address) {
            address_kind::ANY => {}
            address_kind::MASK => {
                let bits = high.leading_ones();
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                rect.between(axis, low & !rest, low & !rest | rest);
                rect.more_if(high != !rest);
            }
            address_kind::RANGE => {
                rect.between(axis, low, high);
                // A leaf stores the prefix that covers the range.
                let bits = (low ^ high).leading_zeros();
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                rect.more_if((low & rest, high & rest) != (0, rest));
            }
            _ => rect.more_if(true),
        }
    }
}

/// Narrows a rectangle by the rule's IPv6 addresses. The rectangle has prefixes, so a range becomes
/// the longest prefix that contains it.
pub(crate) fn inet6_addresses<const N: usize>(rule: &abi::Rule, rect: &mut RuleRect<N>) {
    let number = |bytes: &[u8; 16]| Ipv6Addr::from(*bytes).to_bits();
    for (axis, address) in [(0, &rule.source), (4, &rule.destination)] {
        let (low, high) = (number(&address.low), number(&address.high));
        let bits = match plain_kind(rule, address) {
            address_kind::ANY => continue,
            address_kind::MASK => {
                rect.more_if(high.leading_ones() + high.trailing_zeros() < u128::BITS);
                high.leading_ones()
            }
            address_kind::RANGE => {
                rect.more_if(true);
                (low ^ high).leading_zeros()
            }
            _ => {
                rect.more_if(true);
                0
            }
        };
        let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
        for (place, shift) in [96, 64, 32, 0].into_iter().enumerate() {
            rect.rect.low[axis + place] = ((low & !rest) >> shift) as u32;
            rect.rect.high[axis + place] = ((low & !rest | rest) >> shift) as u32;
        }
    }
}

/// Returns the kind of an address that a rectangle can express; for all others `TABLE`, which no
/// rectangle can.
fn plain_kind(rule: &abi::Rule, address: &abi::Address) -> u8 {
    match address.kind {
        address_kind::ANY => address_kind::ANY,
        kind if address.negated == 0 && rule.family != 0 => kind,
        _ => address_kind::TABLE,
    }
}

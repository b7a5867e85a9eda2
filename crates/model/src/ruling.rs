//! The decision about a packet, and the fate that follows from it.

use crate::actions::Actions;
use crate::fate::{Carried, Decision, Fate, ForwardRoute, Forwarded, Packet, Verdict};
use crate::journal::Journal;
use crate::key::{Ends, StateId};
use crate::packet::Descriptor;
use crate::rulebook::Entry;
use crate::rules::TagSeen;

/// The decision about a packet, before it is carried out.
#[derive(Default)]
pub(crate) struct Ruling<'a> {
    pub pass: bool,
    /// True if the firewall has taken the packet, which then does not pass.
    pub consumed: bool,
    /// True if the packet is neither logged nor counted, because its SYN was.
    pub uncounted: bool,
    pub rule: Option<&'a Entry>,
    /// Addresses and ports to count in tables for a blocked packet, which does not get them.
    pub blocked_ends: Option<Ends>,
    /// The anchor rule that called the rule.
    pub anchor_rule: Option<&'a Entry>,
    pub state: Option<StateId>,
    /// True if a state of an earlier packet passed this one, so only `log (all)` logs it.
    pub by_state: bool,
    /// True for drops without a rule, which are always logged.
    pub force_log: bool,
    /// Tag from the rules.
    pub tag: TagSeen,
    /// Routing table from the rules, match rules included, or from the state. `None` leaves the
    /// packet's table.
    pub rtable: Option<u32>,
    /// `max-pkt-size` of the rules in bytes, match rules included; 0 if not set.
    pub max_pkt_size: u16,
    /// Actions of a legacy `scrub` rule for a packet without a state.
    pub scrub: Actions,
}

pub(crate) fn fate(
    input: &Packet,
    packet: Option<Descriptor>,
    ruling: &Ruling,
    carried: Carried,
    journal: &mut Journal,
) -> Fate {
    journal.counted.sort();
    let packet = packet.filter(|_| ruling.pass);
    let (crossed, passed): (Option<_>, Option<_>) = match packet {
        Some(packet) if packet.crosses_to.is_some() => (Some(packet), None),
        packet => (None, packet),
    };
    Fate {
        verdict: match (ruling.pass, ruling.consumed) {
            (true, _) if crossed.is_some() => Verdict::Consumed,
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Consumed,
            (false, false) => Verdict::Drop,
        },
        decision: match ruling.rule {
            None => Decision::Default,
            Some(rule) if rule.orphaned => Decision::OrphanState,
            Some(rule) => Decision::Rule(rule.id()),
        },
        anchor_rule: ruling.anchor_rule.and_then(Entry::number),
        reason: journal.reason,
        counted: journal.counted.clone(),
        state: ruling.state,
        out: passed.filter(|packet| is_changed(packet, input)).map(|packet| packet.bytes),
        replies: std::mem::take(&mut journal.replies),
        forwarded: crossed
            .map(|packet| Forwarded { route: ForwardRoute::Forward, bytes: packet.bytes })
            .into_iter()
            .collect(),
        carried,
        log: std::mem::take(&mut journal.log),
    }
}

/// Returns true if the packet differs from its input. Bytes behind an IPv4 packet do not count.
pub(crate) fn is_changed(packet: &Descriptor, input: &Packet) -> bool {
    input.bytes.get(..packet.bytes.len()) != Some(&packet.bytes[..])
}

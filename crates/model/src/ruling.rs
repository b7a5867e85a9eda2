//! What was decided about a packet, and the fate that this makes.

use crate::actions::Actions;
use crate::fate::{Carried, Decision, Fate, Forwarded, Packet, Verdict, Way};
use crate::journal::Journal;
use crate::packet::Descriptor;
use crate::rulebook::Entry;
use crate::rules::TagSeen;
use crate::state::StateId;
use crate::translate::Ends;

/// What was decided about a packet, before it is carried out.
#[derive(Default)]
pub(crate) struct Ruling<'a> {
    pub pass: bool,
    /// The firewall has taken it; it does not pass.
    pub consumed: bool,
    /// Nobody logs or counts it: its SYN was.
    pub uncounted: bool,
    pub rule: Option<&'a Entry>,
    /// The ends that a packet counts with for tables, though it is blocked and does not get them.
    pub blocked_ends: Option<Ends>,
    /// The anchor rule that led to the rule.
    pub anchor_rule: Option<&'a Entry>,
    pub state: Option<StateId>,
    /// A state from an earlier packet passed it: only `log (all)` logs it.
    pub by_state: bool,
    /// Drops for what no rule says are always logged.
    pub force_log: bool,
    /// Tag that the rules gave it.
    pub tag: TagSeen,
    /// Routing table that the rules, match rules among them, or the state want. `None` leaves the
    /// packet the one it has.
    pub rtable: Option<u32>,
    /// `max-pkt-size` of the rules, match rules included; 0 if not set.
    pub max_pkt_size: u16,
    /// What an old `scrub` rule wants of a packet without a state.
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
            Some(rule) if rule.gone => Decision::OrphanState,
            Some(rule) => Decision::Rule(rule.id()),
        },
        anchor_rule: ruling.anchor_rule.and_then(Entry::number),
        reason: journal.reason,
        counted: journal.counted.clone(),
        state: ruling.state,
        out: passed.filter(|packet| is_changed(packet, input)).map(|packet| packet.bytes),
        replies: std::mem::take(&mut journal.replies),
        forwarded: crossed
            .map(|packet| Forwarded { way: Way::Forward, bytes: packet.bytes })
            .into_iter()
            .collect(),
        carried,
        log: std::mem::take(&mut journal.log),
        removed: std::mem::take(&mut journal.removed),
    }
}

/// Whether a packet is not what it was when it came. What follows an IPv4 packet does not count.
pub(crate) fn is_changed(packet: &Descriptor, input: &Packet) -> bool {
    input.bytes.get(..packet.bytes.len()) != Some(&packet.bytes[..])
}

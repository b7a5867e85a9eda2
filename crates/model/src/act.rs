//! The end of the slow path: carries out the decision about a packet, logs and counts.

use std::sync::Arc;

use skipstep_ruleset::{Direction, Divert, Reason};
use skipstep_wire::tcp_flag;

use crate::counters::Counted;
use crate::fate::{Carried, Diverted, Fate, Packet};
use crate::journal::{Journal, LogAnchor};
use crate::packet::{Descriptor, Malformed};
use crate::route::Across;
use crate::rulebook::Entry;
use crate::ruling::{Ruling, fate, is_changed};
use crate::trace::Stage;
use crate::{Firewall, cross, normalize, scrub};

const LOW_DELAY: u8 = 0x10;

impl Firewall {
    /// Drops a packet whose headers cannot be read, logs it, and counts it on its interface.
    pub(crate) fn refuse(
        &mut self,
        input: &Packet,
        malformed: Malformed,
        journal: &mut Journal,
    ) -> Fate {
        journal.tracer.record(|| Stage::Malformed(malformed.reason));
        journal.set_reason(malformed.reason);
        journal.log(None, LogAnchor::default());
        self.counters.malformed(
            &input.interface,
            input.direction,
            malformed.family,
            malformed.total_len,
        );
        fate(input, None, &Ruling::default(), Carried::default(), journal)
    }

    /// Drops a frame whose packet is behind link headers that are not parsed. No interface counts
    /// the packet, because interfaces count by family.
    pub(crate) fn refuse_hidden(&mut self, input: &Packet, journal: &mut Journal) -> Fate {
        journal.tracer.record(|| Stage::Malformed(Reason::LinkHeader));
        journal.set_reason(Reason::LinkHeader);
        journal.log(None, LogAnchor::default());
        self.counters.status.reasons[Reason::LinkHeader as usize] += 1;
        fate(input, None, &Ruling::default(), Carried::default(), journal)
    }

    /// Drops and logs a fragment that belongs to no datagram, with the reason if there is one.
    pub(crate) fn refuse_fragment(
        &mut self,
        input: &Packet,
        fragment: Descriptor,
        reason: Option<Reason>,
        journal: &mut Journal,
    ) -> Fate {
        if let Some(reason) = reason {
            journal.tracer.record(|| Stage::Refused(reason));
            journal.set_reason(reason);
        }
        self.settle(input, fragment, Ruling { force_log: true, ..Ruling::default() }, journal)
    }

    /// Carries out the decision, logs it, and counts the packet.
    pub(crate) fn settle(
        &mut self,
        input: &Packet,
        mut packet: Descriptor,
        mut ruling: Ruling,
        journal: &mut Journal,
    ) -> Fate {
        let (ruleset, rulebook) = (Arc::clone(&self.ruleset), Arc::clone(&self.rulebook));
        if ruling.uncounted {
            return fate(input, Some(packet), &ruling, Carried::default(), journal);
        }
        self.check_length(&packet, &mut ruling, journal);
        let carried = self.carry_out(input, &mut packet, &mut ruling, journal);
        self.log(&ruling, journal);
        let state = ruling.state.map(|id| self.states.get_mut(id));
        let Ruling { pass: passed, rule, anchor_rule, blocked_ends, .. } = ruling;
        let counted = Counted { passed, rule, anchor_rule, blocked_ends };
        self.counters.packet(&packet, counted, state, &ruleset, &rulebook);
        self.count_for_sources(&packet, &ruling);
        if let Some(ends) = packet.crosses_to.filter(|_| ruling.pass) {
            // an authentication header can be longer than the packet around it
            if packet.offset > packet.total_len {
                journal.count_only(Reason::Translate);
                ruling.pass = false;
                return fate(input, None, &ruling, Carried::default(), journal);
            }
            // the SYN that a syncookie stands for is judged and not sent
            let state = ruling.state.filter(|_| !packet.recreated);
            let course = state.and_then(|id| self.course_across(id, &packet));
            if let Some(course) = course {
                let across = Across { packet, ends, course };
                return self.route_across(input, across, &ruling, carried, journal);
            }
            cross::network(&mut packet, &ends, &self.world);
        }
        fate(input, Some(packet), &ruling, carried, journal)
    }

    /// Drops a packet longer than `max-pkt-size`, whether a rule or a state passed it.
    fn check_length(&self, packet: &Descriptor, ruling: &mut Ruling, journal: &mut Journal) {
        let longest = match ruling.state {
            Some(id) => self.states.get(id).actions.max_pkt_size,
            None => ruling.max_pkt_size,
        };
        if ruling.pass && longest != 0 && packet.total_len > longest.into() {
            journal.tracer.record(|| Stage::TooLong { longest });
            journal.set_reason(Reason::Normalize);
            ruling.pass = false;
            ruling.force_log = true;
        }
    }

    /// Changes a packet that passes, and sets its metadata. With a state, the state's actions
    /// apply, which include match rules'. Without a state, PF applies the actions of the deciding
    /// rule only.
    fn carry_out(
        &mut self,
        input: &Packet,
        packet: &mut Descriptor,
        ruling: &mut Ruling,
        journal: &mut Journal,
    ) -> Carried {
        if !ruling.pass {
            return Carried::default(); // a dropped packet carries no metadata
        }
        let mut carried = input.carried.clone();
        let state = ruling.state.map(|id| self.states.get(id));
        let actions = match (state, ruling.rule) {
            (Some(state), _) => state.actions,
            (None, Some(rule)) => {
                let mut actions = ruling.scrub;
                actions.merge(rule);
                actions
            }
            (None, None) => ruling.scrub,
        };
        let urgent = packet.tos & LOW_DELAY != 0
            || packet.tcp().is_some_and(|tcp| tcp.has(tcp_flag::ACK) && tcp.payload_len == 0);
        normalize::settle_checksum(packet, &input.bytes);
        scrub::header(packet, &actions, &self.world);
        if is_changed(packet, input) {
            journal.tracer.record(|| Stage::Changed);
        }
        let tag = state.and_then(|state| state.tag.clone());
        carried.tag = tag.or(std::mem::take(&mut ruling.tag).known()).or(carried.tag);
        if let Some((ordinary, low_delay)) = actions.set_prio {
            carried.prio = if urgent { low_delay } else { ordinary };
        }
        carried.rtable = ruling.rtable.unwrap_or(carried.rtable);
        carried.diverted = match ruling.rule.and_then(|rule| rule.divert) {
            Some(Divert::To { .. }) if packet.direction == Direction::In => Some(Diverted::To),
            Some(Divert::Reply) if packet.direction == Direction::In => Some(Diverted::Reply),
            Some(Divert::Packet { port }) if packet.crosses_to.is_none() => {
                let diverted = Some(Diverted::Packet(port));
                return Carried { diverted, ..Carried::default() };
            }
            _ => None,
        };
        carried.delay = actions.delay;
        // PF puts no packet in a queue that PF forwards itself
        if let Some(rule) = actions.queued_by.filter(|_| packet.crosses_to.is_none()) {
            carried.queue = self.rulebook.at(rule).queue(urgent);
        }
        carried
    }

    /// Logs packets that rule evaluation did not log: forced records, and `log (all)` of states.
    fn log(&self, ruling: &Ruling, journal: &mut Journal) {
        let state = ruling.state.map(|id| self.states.get(id));
        let logs_all = |rule: &Entry| rule.log.is_some_and(|log| log.all);
        let by_state = ruling.by_state && state.is_some_and(|state| state.actions.log_all);
        if !ruling.force_log && !by_state {
            return;
        }
        let mut place = LogAnchor::for_rule(ruling.rule, ruling.anchor_rule);
        if ruling.by_state {
            place.anchor = ""; // PF knows the rules of a state, but not their anchor
        }
        if ruling.force_log || ruling.rule.is_some_and(logs_all) {
            journal.log(ruling.rule, place);
        }
        for matched in state.into_iter().flat_map(|state| &state.match_rules) {
            let rule = self.rulebook.at(*matched);
            if logs_all(rule) {
                journal.log(Some(rule), place);
            }
        }
    }

    /// Counts the packet for the source nodes of its state.
    fn count_for_sources(&mut self, packet: &Descriptor, ruling: &Ruling) {
        let Some(id) = ruling.state.filter(|_| ruling.pass) else {
            return;
        };
        let state = self.states.get(id);
        let way = state.side_index(packet.direction);
        for key in &state.sources {
            let node = self.sources.get_mut(key);
            node.packets[way] += 1;
            node.bytes[way] += packet.total_len as u64;
        }
    }
}

//! The verdict on a packet with sound headers: its state decides, or else the rules.

use skipstep_ruleset::{Action, BlockReturn, Family, Reason, Ruleset};

use crate::Firewall;
use crate::create::{self, Created};
use crate::evaluation::{Context, Question};
use crate::fate::Packet;
use crate::journal::{Journal, LogAnchor};
use crate::lookup::Lookup;
use crate::packet::{Descriptor, Transport};
use crate::rulebook::{Entry, Rulebook};
use crate::rules::{self, Answer};
use crate::ruling::Ruling;
use crate::syncookie::Redeemed;
use crate::trace::Stage;
use crate::{icmp, normalize, reply, scrub};

impl Firewall {
    pub(crate) fn decide<'a>(
        &mut self,
        ruleset: &'a Ruleset,
        rulebook: &'a Rulebook,
        input: &Packet,
        packet: &mut Descriptor,
        journal: &mut Journal,
    ) -> Ruling<'a> {
        if let Err(reason) = normalize::fragmentation(packet, &ruleset.options) {
            journal.tracer.record(|| Stage::Refused(reason));
            journal.set_reason(reason);
            return Ruling { force_log: true, ..Ruling::default() };
        }
        match (&packet.transport, packet.family) {
            (Transport::Fragment, _) => {
                let ruling = self.evaluate_rules(ruleset, rulebook, input, packet, journal);
                if !ruling.pass {
                    journal.set_reason(Reason::Fragment);
                }
                return ruling;
            }
            (Transport::Icmp(_), Family::Inet6) | (Transport::Icmp6(_), Family::Inet) => {
                journal.tracer.record(|| Stage::Refused(Reason::Normalize));
                journal.set_reason(Reason::Normalize);
                return Ruling::default();
            }
            _ => {}
        }
        if self.send_cookie(packet, journal) {
            return Ruling::default();
        }
        match normalize::tcp(packet) {
            Ok(false) => {}
            Ok(true) => journal.tracer.record(|| Stage::Repaired),
            Err(reason) => {
                journal.tracer.record(|| Stage::Refused(reason));
                journal.count_only(reason);
                return Ruling::default();
            }
        }
        let mut ruling = match self.look_up(packet, journal) {
            Lookup::Accepted(id) => {
                journal.tracer.record(|| Stage::Accepted(id));
                let state = self.states.get(id);
                Ruling {
                    pass: true,
                    rule: rulebook.non_default(state.rule),
                    anchor_rule: state.anchor_rule.map(|place| rulebook.at(place)),
                    state: Some(id),
                    by_state: true,
                    rtable: (state.direction == packet.direction).then(|| state.actions.rtable()),
                    ..Ruling::default()
                }
            }
            Lookup::Rejected(id) => Ruling { state: Some(id), ..Ruling::default() },
            Lookup::Consumed(id) => Ruling { state: Some(id), consumed: true, ..Ruling::default() },
            Lookup::None => match self.redeem_cookie(input, packet, journal) {
                Redeemed::Taken(Lookup::Consumed(id)) => {
                    let (state, consumed) = (Some(id), true);
                    return Ruling { state, consumed, uncounted: true, ..Ruling::default() };
                }
                Redeemed::Taken(_) => return Ruling { uncounted: true, ..Ruling::default() },
                Redeemed::No | Redeemed::Refused => {
                    self.evaluate_rules(ruleset, rulebook, input, packet, journal)
                }
            },
        };
        let max_mss = match (ruling.state, ruling.rule) {
            (Some(id), _) => self.states.get(id).actions.max_mss,
            (None, rule) => {
                rule.and_then(|rule| rule.scrub.max_mss).unwrap_or(ruling.scrub.max_mss)
            }
        };
        if max_mss != 0 {
            scrub::mss(packet, max_mss);
        }
        self.check_options(packet, &mut ruling, journal);
        ruling
    }

    /// Drops a packet with IP options, unless the rule of its state has `allow-opts`.
    fn check_options(&self, packet: &Descriptor, ruling: &mut Ruling, journal: &mut Journal) {
        // a packet that crosses families loses its options
        let stay = packet.options && packet.crosses_to.is_none();
        let Some(id) = ruling.state.filter(|_| ruling.pass && stay) else {
            return;
        };
        if !self.states.get(id).allow_opts {
            journal.tracer.record(|| Stage::OptionsRefused);
            journal.set_reason(Reason::IpOption);
            ruling.pass = false;
            ruling.force_log = true;
        }
    }

    /// Evaluates the rules, and then releases the packet's endpoint mapping, unless its state has
    /// taken the mapping over.
    fn evaluate_rules<'a>(
        &mut self,
        ruleset: &'a Ruleset,
        rulebook: &'a Rulebook,
        input: &Packet,
        packet: &mut Descriptor,
        journal: &mut Journal,
    ) -> Ruling<'a> {
        let ruling = self.apply_rules(ruleset, rulebook, input, packet, journal);
        self.endpoints.release_pending();
        ruling
    }

    /// Carries out the decision of the rules: answers a blocked packet, and creates a requested
    /// state.
    fn apply_rules<'a>(
        &mut self,
        ruleset: &'a Ruleset,
        rulebook: &'a Rulebook,
        input: &Packet,
        packet: &mut Descriptor,
        journal: &mut Journal,
    ) -> Ruling<'a> {
        let mapping = packet.icmp().map(|message| icmp::mapping(packet.family, message));
        let world = &self.world;
        let question = Question { ruleset, rulebook, world, input, packet, mapping };
        let Firewall { states, pools, endpoints, sources, limiters, counters, .. } = self;
        let held = Vec::new();
        let context = Context { states, pools, endpoints, sources, held, limiters, counters };
        let answer = rules::evaluate(&question, context, journal);
        match answer.failed {
            None => {}
            Some(Reason::Translate) => {
                journal.count_only(Reason::Translate);
                let Answer { rule, anchor_rule, .. } = answer;
                return Ruling { rule, anchor_rule, ..Ruling::default() };
            }
            Some(reason) => {
                journal.set_reason(reason);
                return Ruling::default();
            }
        }
        let (rule, anchor_rule) = (answer.rule, answer.anchor_rule);
        if let Some(reason) = answer.limited {
            journal.reason = reason;
            return Ruling { rule, anchor_rule, ..Ruling::default() };
        }
        let action = rule.map_or(Action::Pass, |rule| rule.action);
        journal.tracer.record(|| Stage::Decided { rule: rule.map(Entry::id), action });
        journal.count_only(Reason::Match);
        if rule.is_some_and(|rule| rule.log.is_some()) {
            journal.log_for(rule, rule, LogAnchor::for_rule(rule, anchor_rule), Reason::Match);
        }
        rules::log_for_match_rules(rule, anchor_rule, &answer, journal);

        let mut ruling = Ruling { rule, anchor_rule, ..Ruling::default() };
        if let Some(rule) = rule.filter(|rule| rule.action == Action::Block) {
            // FreeBSD counts the packet as legacy rules translated it, except where it answers
            if answer.legacy_translated && rule.block_return == BlockReturn::Drop {
                ruling.blocked_ends = Some(answer.translation.ends);
            }
            self.answer(packet, rule, journal);
            return ruling;
        }
        if packet.options && !answer.actions.allow_opts {
            journal.tracer.record(|| Stage::OptionsRefused);
            journal.count_only(Reason::IpOption);
            ruling.force_log = true;
            return ruling;
        }
        let stateless = packet.is_fragment() || mapping.is_some_and(|mapping| mapping.stateless);
        if (answer.needs_state || rule.is_some_and(|rule| rule.state.is_some())) && !stateless {
            let rule = rule.unwrap_or(rulebook.default_rule());
            match self.create_state(packet, rule, &answer, journal) {
                Ok(Created::Plain(id)) => ruling.state = Some(id),
                Ok(Created::Proxied(id)) => {
                    return Ruling { state: Some(id), consumed: true, ..ruling };
                }
                Err(Reason::StateInsert) => return ruling,
                Err(_) => {
                    // `set fail-policy return`
                    self.answer(packet, rule, journal);
                    return ruling;
                }
            }
        }
        if answer.needs_state && stateless {
            create::translate_first(packet, &answer, &input.bytes);
        }
        ruling.pass = true;
        ruling.scrub = answer.scrub;
        ruling.max_pkt_size = answer.actions.max_pkt_size;
        ruling.tag = answer.tag;
        ruling.rtable = Some(answer.actions.rtable());
        ruling
    }

    /// Answers the sender of a dropped packet, if the rule has a `return`.
    fn answer(&self, packet: &Descriptor, rule: &Entry, journal: &mut Journal) {
        match reply::block(packet, rule.block_return, &self.world) {
            reply::Answer::Nothing => {}
            reply::Answer::Send(bytes) => journal.reply(bytes),
            reply::Answer::BadChecksum => journal.count_only(Reason::ProtoCksum),
        }
    }
}

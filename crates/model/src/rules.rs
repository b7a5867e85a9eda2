//! The search for the rule that decides about a packet: the last matching rule, or the first one
//! with `quick` (pf-semantics section 5). A matching anchor rule calls the rules of its anchor;
//! then evaluation continues behind the anchor rule.

use std::ops::Range;

use skipstep_ruleset::anchor::DEEPEST;
use skipstep_ruleset::rule::Not;
use skipstep_ruleset::{Action, Direction, InterfaceMatch, LegacyList, Reason};
use skipstep_wire::protocol;

use crate::actions::Actions;
use crate::address::{self, MatchInputs};
use crate::counters::Counters;
use crate::evaluation::{Context, Question};
use crate::fate::{Packet, SocketOwner};
use crate::fingerprint;
use crate::journal::{Journal, LogAnchor};
use crate::key::{Ends, NodeKey};
use crate::limiter::{self, Limiters};
use crate::packet::Transport;
use crate::rulebook::Entry;
use crate::trace::{Criterion, Stage};
use crate::translate::{Exhausted, Translation};
use crate::world::World;

/// The result of an evaluation.
#[derive(Debug)]
pub(crate) struct Answer<'r> {
    /// The deciding rule, `None` for the default rule.
    pub rule: Option<&'r Entry>,
    /// The anchor rule that called the deciding rule.
    pub anchor_rule: Option<&'r Entry>,
    /// Actions of all matching rules.
    pub actions: Actions,
    /// Match rules that matched, latest first; a legacy rule that translated is the last of them.
    pub match_rules: Vec<&'r Entry>,
    /// True if a legacy rule translated, or tracks the connection, so a state is needed.
    pub needs_state: bool,
    /// True if a legacy rule gave the packet new addresses or ports.
    pub legacy_translated: bool,
    /// Actions of a legacy `scrub` rule, which apply without a state, too.
    pub scrub: Actions,
    pub tag: TagSeen,
    pub translation: Translation<'r>,
    /// Source nodes that pools created or found, and that the state will reference.
    pub sources: Vec<NodeKey>,
    /// Reason if a limiter drops the packet.
    pub limited: Option<Reason>,
    /// Reason if the evaluation failed, so the packet must be dropped.
    pub failed: Option<Reason>,
}

/// The packet's tag, as far as the evaluation knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum TagSeen {
    /// No rule has set or read the tag.
    #[default]
    Unknown,
    /// Set by a rule, or read from the packet for a rule. PF does not distinguish the two, and a
    /// state keeps either.
    Known(Option<String>),
}

impl TagSeen {
    pub fn known(self) -> Option<String> {
        match self {
            TagSeen::Known(tag) => tag,
            TagSeen::Unknown => None,
        }
    }

    fn known_or_read<'t>(&'t mut self, packet: &Packet) -> Option<&'t str> {
        if *self == TagSeen::Unknown {
            *self = TagSeen::Known(packet.carried.tag.clone());
        }
        match self {
            TagSeen::Known(tag) => tag.as_deref(),
            TagSeen::Unknown => None,
        }
    }
}

/// Maximum number of match rules for one packet, because a state cannot count for more. PF has no
/// limit.
// Differs from OpenBSD: linux.md, "Match rules"
const MATCH_RULES: usize = 16;

/// The end of the evaluation of a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// After the last rule: evaluation continues behind the anchor rule.
    Through,
    /// By `quick`: no more rules are evaluated.
    Quick,
    /// By a matching legacy rule, which ends its list.
    Found,
    /// By failure: the decision of the rules is unknown.
    Failed,
}

/// Evaluates the rules for a packet.
pub(crate) fn evaluate<'r>(
    question: &Question<'r, '_>,
    context: Context,
    journal: &mut Journal,
) -> Answer<'r> {
    let mut walk = Evaluation::new(question, context, journal);
    let mut end = walk.legacy_lists();
    if end == End::Through {
        end = walk.rule_set(&question.rulebook.main());
    }
    if end != End::Failed
        && walk.answer.limited.is_none()
        && let Some(rule) = walk.answer.rule
    {
        walk.answer.actions.merge(rule);
        walk.translate(rule);
    }
    walk.answer.sources = walk.context.held;
    walk.answer
}

/// Returns true if the first `scrub` rule that matches a fragment has `fragment no reassemble`.
pub(crate) fn leave_fragment(question: &Question, context: Context, journal: &mut Journal) -> bool {
    let mut walk = Evaluation::new(question, context, journal);
    let rules = question.rulebook.rules(&question.rulebook.legacy_list(LegacyList::Scrub));
    let found = rules.iter().find(|rule| walk.first_mismatch(rule).is_none());
    found.is_some_and(|rule| rule.leave_fragments)
}

/// An evaluation in progress.
struct Evaluation<'w, 'r, 'p> {
    question: &'w Question<'r, 'p>,
    context: Context<'w>,
    journal: &'w mut Journal,
    answer: Answer<'r>,
    /// The anchor rule that called the current rule set.
    anchor_rule: Option<&'r Entry>,
    /// Number of anchors around the current rule set.
    depth: usize,
    /// The legacy rule that matched in the current list; `found_by` is the anchor rule that called
    /// it.
    found: Option<&'r Entry>,
    found_by: Option<&'r Entry>,
}

impl<'w, 'r, 'p> Evaluation<'w, 'r, 'p> {
    fn new(question: &'w Question<'r, 'p>, context: Context<'w>, journal: &'w mut Journal) -> Self {
        let answer = Answer {
            rule: None,
            anchor_rule: None,
            actions: Actions::default(),
            match_rules: Vec::new(),
            needs_state: false,
            legacy_translated: false,
            scrub: Actions::default(),
            tag: TagSeen::Unknown,
            translation: Translation::new(question),
            sources: Vec::new(),
            limited: None,
            failed: None,
        };
        Evaluation {
            question,
            context,
            journal,
            answer,
            anchor_rule: None,
            depth: 0,
            found: None,
            found_by: None,
        }
    }

    /// Evaluates the lists of legacy rules. The first matching rule ends its list, and if it
    /// translates, all lists. A fragment has no flow that could be translated.
    fn legacy_lists(&mut self) -> End {
        for list in LegacyList::walked(self.question.packet.direction) {
            if self.question.packet.is_fragment() && list != LegacyList::Scrub {
                break;
            }
            self.found = None;
            match self.rule_set(&self.question.rulebook.legacy_list(list)) {
                End::Through => {}
                End::Found => match self.found {
                    Some(rule) if list == LegacyList::Scrub => self.scrub(rule),
                    Some(rule) if rule.translates() => return self.translate_first(rule),
                    _ => {}
                },
                end => return end,
            }
        }
        End::Through
    }

    /// Applies a legacy `scrub` rule; `no scrub` has no actions.
    fn scrub(&mut self, rule: &'r Entry) {
        self.remember(rule, self.found_by);
        self.answer.needs_state = rule.scrub.reassemble_tcp && self.question.packet.tcp().is_some();
        self.answer.scrub = self.answer.actions;
    }

    /// Translates by a legacy rule. A rule that changes nothing has not matched.
    fn translate_first(&mut self, rule: &'r Entry) -> End {
        let untranslated = self.answer.translation.ends;
        if self.translate(rule) == End::Failed {
            return End::Failed;
        }
        if self.answer.translation.ends == untranslated {
            return End::Through;
        }
        (self.answer.needs_state, self.answer.legacy_translated) = (true, true);
        self.remember(rule, self.found_by);
        if rule.quick { End::Quick } else { End::Through }
    }

    /// Applies the actions and the log of a rule that does not decide.
    fn remember(&mut self, rule: &'r Entry, anchor_rule: Option<&'r Entry>) {
        self.answer.match_rules.insert(0, rule);
        self.answer.actions.merge(rule);
        if rule.log.is_some() {
            self.journal.count_only(Reason::Match);
            let place = LogAnchor::for_rule(Some(rule), anchor_rule);
            self.journal.log_for(Some(rule), Some(rule), place, Reason::Match);
        }
    }

    fn rule_set(&mut self, set: &Range<usize>) -> End {
        for rule in self.question.rulebook.rules(set) {
            if self.context.counters.usage(rule.index).expired {
                continue;
            }
            self.context.counters.evaluated(rule);
            let failed = self.first_mismatch(rule);
            self.journal.tracer.record(|| Stage::Rule {
                rule: rule.id(),
                line: rule.line,
                action: rule.anchor.is_none().then_some(rule.action),
                failed,
            });
            if let Some(failed) = failed {
                if let Some(reason) = limiter::reason(failed) {
                    self.journal.count_only(reason);
                    self.answer.limited = Some(reason);
                    // PF leaves this rule set, and continues behind the anchor rule that called it
                    break;
                }
                continue;
            }
            if let Some(tag) = &rule.tag {
                self.answer.tag = TagSeen::Known(Some(tag.clone()));
            }
            if rule.legacy.is_some() {
                // also for exceptions and for anchor rules
                self.answer.actions.rtable = rule.rtable.or(self.answer.actions.rtable);
            }
            let end = if rule.anchor.is_some() { self.call(rule) } else { self.matched(rule) };
            if end != End::Through {
                return end;
            }
        }
        End::Through
    }

    fn matched(&mut self, rule: &'r Entry) -> End {
        if rule.legacy.is_some() {
            (self.found, self.found_by) = (Some(rule), self.anchor_rule);
            return End::Found;
        }
        self.context.counters.usage(rule.index).expired = rule.once;
        if rule.action == Action::Match {
            if self.answer.match_rules.len() == MATCH_RULES {
                self.journal.tracer.record(|| Stage::TooManyMatches);
                return self.fail(Reason::Memory);
            }
            if self.translate(rule) == End::Failed {
                return End::Failed;
            }
            self.remember(rule, self.anchor_rule);
        } else {
            (self.answer.rule, self.answer.anchor_rule) = (Some(rule), self.anchor_rule);
        }
        log_for_match_rules(Some(rule), self.anchor_rule, &self.answer, self.journal);
        if rule.quick { End::Quick } else { End::Through }
    }

    /// Evaluates the rule sets that an anchor rule calls. `quick` ends the evaluation if one of
    /// them has decided, but not with a wildcard, and not if a nested anchor decided.
    fn call(&mut self, caller: &'r Entry) -> End {
        if self.depth == DEEPEST {
            self.journal.tracer.record(|| Stage::TooDeep);
            return self.fail(Reason::Memory);
        }
        let outside = self.anchor_rule.replace(caller);
        self.depth += 1;
        let mut ends = caller.calls.iter().map(|set| self.rule_set(set));
        let end = ends.find(|end| *end != End::Through).unwrap_or(End::Through);
        self.depth -= 1;
        self.anchor_rule = outside;
        let decided = self.answer.anchor_rule.is_some_and(|rule| rule.index == caller.index);
        if end == End::Through && caller.ends_evaluation() && decided { End::Quick } else { end }
    }

    /// Translates the packet by a matching rule.
    fn translate(&mut self, rule: &'r Entry) -> End {
        let before = self.answer.translation.ends;
        match self.answer.translation.apply(rule, self.question, &mut self.context) {
            Err(Exhausted) => self.fail(Reason::Translate),
            Ok(()) => {
                let ends = self.answer.translation.ends;
                if ends != before {
                    self.journal.tracer.record(|| Stage::Translated(ends));
                }
                End::Through
            }
        }
    }

    fn fail(&mut self, reason: Reason) -> End {
        self.answer.failed = Some(reason);
        End::Failed
    }

    /// Returns the first criterion that the packet does not match, in PF's order.
    fn first_mismatch(&mut self, rule: &Entry) -> Option<Criterion> {
        let Answer { tag, translation, .. } = &mut self.answer;
        let Context { limiters, counters, .. } = &mut self.context;
        first_mismatch(rule, self.question, &translation.ends, tag, (limiters, counters))
    }
}

/// Logs `rule` once for each earlier `match log (matches)` that matched.
pub(crate) fn log_for_match_rules(
    rule: Option<&Entry>,
    anchor_rule: Option<&Entry>,
    answer: &Answer,
    journal: &mut Journal,
) {
    let logs_matches = |rule: &Entry| rule.log.is_some_and(|log| log.matches);
    if !answer.actions.log_matches || rule.is_some_and(logs_matches) {
        return;
    }
    for trigger in answer.match_rules.iter().filter(|rule| logs_matches(rule)) {
        journal.log_for(rule, Some(trigger), LogAnchor::for_rule(rule, anchor_rule), Reason::Match);
    }
}

fn first_mismatch(
    rule: &Entry,
    question: &Question,
    ends: &Ends,
    tag: &mut TagSeen,
    (limiters, counters): (&mut Limiters, &mut Counters),
) -> Option<Criterion> {
    let &Question { ruleset, world, input, packet, .. } = question;
    let on_this = |wanted: &Not<InterfaceMatch>| {
        is_interface(&wanted.value, &packet.interface, world) != wanted.negated
    };
    if rule.interface.as_ref().is_some_and(|wanted| !on_this(wanted)) {
        return Some(Criterion::Interface);
    }
    if rule.direction.is_some_and(|wanted| wanted != packet.direction) {
        return Some(Criterion::Direction);
    }
    let on = rule.interface.as_ref().map(|on| &on.value);
    if matches!(on, Some(InterfaceMatch::Rdomain(number)) if *number != packet.rdomain) {
        return Some(Criterion::Rdomain);
    }
    if rule.family.is_some_and(|wanted| wanted != packet.family) {
        return Some(Criterion::Family);
    }
    if rule.protocol.is_some_and(|wanted| wanted != packet.protocol) {
        return Some(Criterion::Protocol);
    }
    let from = MatchInputs {
        ruleset,
        anchor: &rule.path,
        world,
        arrived_on: Some(&packet.interface),
        rdomain: packet.rdomain,
    };
    if !address::matches(&rule.source.host, ends.source.0, &from, counters) {
        return Some(Criterion::Source);
    }
    let to = MatchInputs { arrived_on: None, ..from };
    if !address::matches(&rule.destination.host, ends.destination.0, &to, counters) {
        return Some(Criterion::Destination);
    }
    if let Some(failed) = transport_mismatch(rule, question, ends) {
        return Some(failed);
    }
    if rule.fragment && !packet.is_fragment() {
        return Some(Criterion::Fragment);
    }
    if rule.tos.is_some_and(|wanted| wanted != packet.tos) {
        return Some(Criterion::Tos);
    }
    // a draw from 1 to 2^32 - 2
    if rule.probability.is_some_and(|wanted| wanted <= world.draw(u32::MAX - 1) + 1) {
        return Some(Criterion::Probability);
    }
    if let Some(wanted) = &rule.tagged
        && (tag.known_or_read(input) == Some(wanted.value.as_str())) == wanted.negated
    {
        return Some(Criterion::Tagged);
    }
    if let Some(wanted) = &rule.received_on {
        // a packet of the firewall itself was received nowhere, which `!` matches
        let received_on = match packet.direction {
            Direction::In => Some(&packet.interface),
            Direction::Out => input.received_on.as_ref(),
        };
        let there = received_on.is_some_and(|name| is_interface(&wanted.value, name, world));
        if there == wanted.negated {
            return Some(Criterion::ReceivedOn);
        }
    }
    if rule.prio.is_some_and(|wanted| wanted != input.carried.prio) {
        return Some(Criterion::Prio);
    }
    if let Some(refused) =
        rule.state_limiter.and_then(|used| limiters.refuses_state(used, world.now))
    {
        return Some(refused);
    }
    // the packet's own source counts, even after translation by match rules
    if let Some(refused) = rule
        .source_limiter
        .and_then(|used| limiters.refuses_source(used, (packet.rdomain, packet.source), world.now))
    {
        return Some(refused);
    }
    if counters.too_fast(rule, world.now) {
        return Some(Criterion::MaxPktRate);
    }
    None
}

/// Returns the first mismatch among the criteria that depend on the protocol. Fragments match none.
fn transport_mismatch(rule: &Entry, question: &Question, ends: &Ends) -> Option<Criterion> {
    let packet = question.packet;
    match &packet.transport {
        Transport::Fragment => {
            let flags = packet.protocol == protocol::TCP
                && rule.tcp_flags.is_some_and(|flags| flags.mask != 0);
            let system = packet.protocol != protocol::TCP && rule.os.is_some();
            let ports = rule.source.ports.is_some() || rule.destination.ports.is_some();
            (ports || flags || system || rule.icmp.is_some()).then_some(Criterion::Fragment)
        }
        Transport::Tcp(tcp) => {
            if rule.tcp_flags.is_some_and(|wanted| tcp.flags & wanted.mask != wanted.set) {
                return Some(Criterion::TcpFlags);
            }
            let sent_by = |name: &String| fingerprint::is_from(question.ruleset, name, packet);
            if rule.os.as_ref().is_some_and(|name| !sent_by(name)) {
                return Some(Criterion::Os);
            }
            port_mismatch(rule, ends).or_else(|| owner_mismatch(rule, question.input.owner))
        }
        Transport::Udp { .. } | Transport::Sctp { .. } => {
            // the socket of an SCTP association is not looked up
            let owner = question.input.owner.filter(|_| packet.protocol == protocol::UDP);
            system_mismatch(rule)
                .or_else(|| port_mismatch(rule, ends))
                .or_else(|| owner_mismatch(rule, owner))
        }
        Transport::Icmp(icmp) | Transport::Icmp6(icmp) => {
            if rule.icmp.is_some_and(|wanted| wanted.kind != icmp.kind) {
                return Some(Criterion::IcmpType);
            }
            if rule.icmp.and_then(|wanted| wanted.code).is_some_and(|code| code != icmp.code) {
                return Some(Criterion::IcmpCode);
            }
            // an answer alone must not create a state
            let keeps_state = rule.state.as_ref().is_some_and(|options| !options.sloppy);
            let opens = question.mapping.is_none_or(|mapping| mapping.stateless || !mapping.reply);
            if keeps_state && !opens {
                return Some(Criterion::NoReply);
            }
            mismatch_without_ports(rule)
        }
        Transport::Other => mismatch_without_ports(rule),
    }
}

/// Returns a mismatch if the rule has criteria that only TCP and UDP have. Rules without a protocol
/// may have such criteria.
fn mismatch_without_ports(rule: &Entry) -> Option<Criterion> {
    if rule.source.ports.is_some() {
        return Some(Criterion::SourcePort);
    }
    if rule.destination.ports.is_some() {
        return Some(Criterion::DestinationPort);
    }
    system_mismatch(rule).or_else(|| owner_mismatch(rule, None))
}

/// Returns a mismatch if the rule has `os`, because the packet is not TCP.
fn system_mismatch(rule: &Entry) -> Option<Criterion> {
    rule.os.as_ref().map(|_| Criterion::Os)
}

fn port_mismatch(rule: &Entry, ends: &Ends) -> Option<Criterion> {
    if rule.source.ports.is_some_and(|ports| !ports.contains(ends.source.1)) {
        return Some(Criterion::SourcePort);
    }
    if rule.destination.ports.is_some_and(|ports| !ports.contains(ends.destination.1)) {
        return Some(Criterion::DestinationPort);
    }
    None
}

/// Compares `user` and `group` with the owner of the packet's socket.
fn owner_mismatch(rule: &Entry, owner: Option<SocketOwner>) -> Option<Criterion> {
    let (uid, gid) = (owner.map(|owner| owner.uid), owner.map(|owner| owner.gid));
    if rule.user.is_some_and(|wanted| !wanted.admits(uid)) {
        return Some(Criterion::User);
    }
    if rule.group.is_some_and(|wanted| !wanted.admits(gid)) {
        return Some(Criterion::Group);
    }
    None
}

/// Returns true if `on` or `received-on` matches the interface called `name`.
fn is_interface(wanted: &InterfaceMatch, name: &str, world: &World) -> bool {
    match (wanted, world.interface(name)) {
        (InterfaceMatch::Any, interface) => interface.is_none_or(|interface| !interface.loopback),
        (InterfaceMatch::Named(wanted), Some(interface)) => interface.has_name_or_group(wanted),
        (InterfaceMatch::Named(wanted), None) => wanted == name,
        // names no interface; `on ! rdomain` matches none, as in pf
        (InterfaceMatch::Rdomain(_), _) => true,
    }
}

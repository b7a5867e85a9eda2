//! The firewall: its rules, states and counters, and the order of work for each packet
//! (pf-semantics section 3).

use std::net::IpAddr;
use std::sync::Arc;

use skipstep_reassembly::Reassembler;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{
    Action, Direction, Divert, Family, PoolKind, Reason, RuleId, Ruleset, TableName, Timeout,
};
use skipstep_wire::tcp_flag;

use crate::actions::Actions;
use crate::counters::{Counted, Counters, InterfaceCounters, RuleCounters, Status, TableCounters};
use crate::create::Made;
use crate::endpoint::Endpoints;
use crate::fate::{Carried, Decision, Diverted, Fate, Forwarded, Packet, Verdict, Way};
use crate::journal::{Journal, LogPlace};
use crate::limiter::{LimiterState, Limiters};
use crate::lookup::Lookup;
use crate::packet::{Descriptor, Malformed, Transport};
use crate::pool::{Around, Pools, Purpose};
use crate::rulebook::{Entry, Rulebook};
use crate::rules::{Answer, Context, Question, TagSeen};
use crate::source_node::{NodeKind, SourceNode, SourceNodes};
use crate::state::{State, StateId, StateTable};
use crate::syncookie::{Cookies, Redeemed};
use crate::timeout::Crowd;
use crate::trace::{Stage, Trace, Tracer};
use crate::translate::pool_of;
use crate::world::{Draw, World};
use crate::{create, cross, icmp, normalize, reply, rules, scrub, timeout};

const LOW_DELAY: u8 = 0x10;

/// A running firewall.
#[derive(Debug, Clone)]
pub struct Firewall {
    pub(crate) ruleset: Arc<Ruleset>,
    pub(crate) rulebook: Arc<Rulebook>,
    pub(crate) world: World,
    pub(crate) states: StateTable,
    pub(crate) pools: Pools,
    pub(crate) endpoints: Endpoints,
    pub(crate) sources: SourceNodes,
    pub(crate) limiters: Limiters,
    pub(crate) fragments: Reassembler,
    pub(crate) cookies: Cookies,
    pub(crate) counters: Counters,
}

/// What was decided about a packet, before it is carried out.
#[derive(Default)]
struct Ruling<'a> {
    pass: bool,
    /// The firewall has taken it; it does not pass.
    consumed: bool,
    /// Nobody logs or counts it: its SYN was.
    uncounted: bool,
    rule: Option<&'a Entry>,
    /// The anchor rule that led to the rule.
    anchor_rule: Option<&'a Entry>,
    state: Option<StateId>,
    /// A state from an earlier packet passed it: only `log (all)` logs it.
    by_state: bool,
    /// Drops for what no rule says are always logged.
    force_log: bool,
    /// Tag that the rules gave it.
    tag: TagSeen,
    /// Routing table that the rules, match rules among them, or the state want. `None` leaves the
    /// packet the one it has.
    rtable: Option<u32>,
    /// `max-pkt-size` of the rules, match rules included; 0 if not set.
    max_pkt_size: u16,
    /// What an old `scrub` rule wants of a packet without a state.
    scrub: Actions,
}

impl Firewall {
    /// A firewall without states, at second 0, where every random draw is 0.
    pub fn new(ruleset: Ruleset, host: Host) -> Self {
        let rulebook = Rulebook::new(&ruleset);
        let (limit, timeout) = Self::limits_of_fragments(&ruleset.options);
        Firewall {
            fragments: Reassembler::new(limit, timeout),
            limiters: Limiters::new(&ruleset),
            counters: Counters::new(rulebook.len()),
            rulebook: Arc::new(rulebook),
            ruleset: Arc::new(ruleset),
            world: World { host, ..World::default() },
            states: StateTable::default(),
            sources: SourceNodes::default(),
            cookies: Cookies::default(),
            pools: Pools::default(),
            endpoints: Endpoints::default(),
        }
    }

    /// Moves the clock and removes the states whose time is up. Returns their numbers, ascending.
    pub fn set_time(&mut self, seconds: u32) -> Vec<StateId> {
        self.world.now = seconds;
        self.fragments.expire(seconds);
        // all are looked at before the first is removed, which makes the others live longer
        let over: Vec<State> =
            self.states.iter().filter(|state| self.expires_at(state) <= seconds).cloned().collect();
        for state in &over {
            self.remove(state);
        }
        self.turn_cookie_keys();
        self.sources.purge(seconds, &mut self.counters.status);
        self.limiters.purge(seconds);
        over.iter().filter(|state| !state.unlinked).map(|state| state.id).collect()
    }

    /// The source nodes that count a state lose it. Those without states stay for `src.track`.
    pub(crate) fn release_sources(&mut self, state: &State) {
        let seconds = timeout::own(self.rulebook.at(state.rule), Timeout::SrcTrack)
            .unwrap_or_else(|| self.ruleset.options.timeouts.get(Timeout::SrcTrack));
        for key in &state.sources {
            let expires_at = self.world.now.saturating_add(seconds);
            self.sources.release(key, state.connected, expires_at);
        }
    }

    /// The limiters that count a state lose it. One that was not made after all gives back what it took
    /// of their rates.
    pub(crate) fn release_limiters(&mut self, state: &State, unmade: bool) {
        if let Some(id) = state.state_limiter {
            self.limiters.release_state(id, unmade);
        }
        if let Some(held) = state.source_limiter {
            let change = self.limiters.release_source(held, unmade, self.world.now);
            self.change_table(change);
        }
    }

    /// The mapping of an endpoint loses a state.
    pub(crate) fn release_endpoint(&mut self, state: &State) {
        if let Some(inside) = &state.mapped {
            self.endpoints.release(inside);
        }
    }

    /// Pools that count states lose one with this state.
    pub(crate) fn release_addresses(&mut self, state: &State) {
        self.release_endpoint(state);
        let around = Around { ruleset: &self.ruleset, world: &self.world };
        let ends = state.first_ends();
        let routed = state.route.map(|hop| (Some(state.rule), Purpose::Route, hop.address));
        let translated = [
            (state.nat_rule, Purpose::Nat, ends.source.0),
            (state.rdr_rule, Purpose::Rdr, ends.destination.0),
        ];
        for (place, purpose, address) in translated.into_iter().chain(routed) {
            let pool = place.and_then(|place| pool_of(self.rulebook.at(place), purpose));
            if let Some(of) = pool.filter(|of| of.pool.kind == PoolKind::LeastStates) {
                self.pools.count(of, around, Family::of(address), address, -1);
            }
        }
    }

    /// Sets what following random draws return.
    pub fn set_random(&mut self, draw: Draw) {
        self.world.set_random(draw);
    }

    /// Runs a packet through the firewall.
    pub fn packet(&mut self, packet: &Packet) -> Fate {
        let mut journal = Journal::new(uid(packet), Tracer::default());
        self.run(packet, &mut journal)
    }

    /// Runs a packet through the firewall and tells what happened to it on the way.
    pub fn explain(&mut self, packet: &Packet) -> (Fate, Trace) {
        let mut journal = Journal::new(uid(packet), Tracer::on());
        let fate = self.run(packet, &mut journal);
        (fate, journal.tracer.finish())
    }

    /// All states in order of creation.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.states.iter().filter(|state| !state.unlinked)
    }

    /// The second at which a state ends if nothing more comes; 0 if its time is up already.
    pub fn expires_at(&self, state: &State) -> u32 {
        let crowd = Crowd { states: &self.states, counters: &self.counters };
        timeout::expires_at(state, self.rulebook.at(state.rule), &self.ruleset.options, &crowd)
    }

    /// The rule that made a state; `None` if no rule matched, but an old one had translated.
    pub fn rule_of(&self, state: &State) -> Option<RuleId> {
        self.rulebook.written(state.rule).map(Entry::id)
    }

    /// Number of the anchor rule that led to the rule that made a state.
    pub fn anchor_rule_of(&self, state: &State) -> Option<u32> {
        state.anchor_rule.map(|place| self.rulebook.at(place).number)
    }

    /// Counters of a rule, `None` for the default rule.
    pub fn rule_counters(&self, rule: Option<&RuleId>) -> RuleCounters {
        match rule {
            None => self.counters.rule(self.rulebook.default_rule().place),
            Some(id) => {
                let rule = self.rulebook.find(id);
                rule.map_or_else(RuleCounters::default, |rule| self.counters.rule(rule.place))
            }
        }
    }

    /// Counters of the interface called `name`.
    pub fn interface_counters(&self, name: &str) -> InterfaceCounters {
        self.counters.interface(name)
    }

    /// Counters of a table.
    pub fn table_counters(&self, name: &TableName) -> TableCounters {
        self.counters.table(name)
    }

    /// States that `least-states` pools gave an address of a table; `None` if they never did.
    pub fn states_of_address(&self, table: &TableName, address: IpAddr) -> Option<u64> {
        self.pools.load(table, address)
    }

    /// Counters of the whole firewall.
    pub fn status(&self) -> Status {
        Status {
            states: self.states().count() as u64,
            sources: self.sources.iter().count() as u64,
            ..self.counters.status
        }
    }

    /// The sources that are tracked, by rule: what for, address, node.
    pub fn sources(&self) -> impl Iterator<Item = (RuleId, NodeKind, IpAddr, &SourceNode)> {
        self.sources
            .iter()
            .map(|(key, node)| (self.rulebook.at(key.rule).id(), key.kind, key.source, node))
    }

    /// The limiters, those of states first.
    pub fn limiters(&self) -> impl Iterator<Item = &LimiterState> {
        self.limiters.iter()
    }

    /// The rules it runs.
    pub fn ruleset(&self) -> &Ruleset {
        &self.ruleset
    }

    pub(crate) fn run(&mut self, input: &Packet, journal: &mut Journal) -> Fate {
        if self.is_skipped(&input.interface) {
            journal.tracer.tell(|| Stage::Skipped);
            return untouched(input);
        }
        let fate = match self.describe(input) {
            Ok(packet) if packet.is_fragment() && self.ruleset.options.reassemble => {
                self.reassemble(input, packet, journal)
            }
            Ok(packet) => self.filter(input, packet, journal),
            Err(malformed) => self.refuse(input, malformed, journal),
        };
        for reason in &journal.counted {
            self.counters.status.reasons[*reason as usize] += 1;
        }
        fate
    }

    /// Takes a packet apart where it is.
    pub(crate) fn describe(&self, packet: &Packet) -> Result<Descriptor, Malformed> {
        let rdomain = self.world.host.rdomain(&packet.interface);
        Ok(Descriptor { rdomain, ..Descriptor::parse(packet)? })
    }

    fn is_skipped(&self, name: &str) -> bool {
        let skip = &self.ruleset.options.skip;
        skip.iter().any(|skipped| {
            skipped == name
                || self.world.interface(name).is_some_and(|interface| interface.is(skipped))
        })
    }

    /// A packet that cannot be read.
    pub(crate) fn refuse(
        &mut self,
        input: &Packet,
        malformed: Malformed,
        journal: &mut Journal,
    ) -> Fate {
        journal.tracer.tell(|| Stage::Malformed(malformed.reason));
        journal.set_reason(malformed.reason);
        journal.log(None, LogPlace::default());
        self.counters.malformed(
            &input.interface,
            input.direction,
            malformed.family,
            malformed.total_len,
        );
        fate(input, None, &Ruling::default(), Carried::default(), journal)
    }

    /// A fragment that belongs to no datagram.
    pub(crate) fn refuse_fragment(
        &mut self,
        input: &Packet,
        fragment: Descriptor,
        reason: Option<Reason>,
        journal: &mut Journal,
    ) -> Fate {
        if let Some(reason) = reason {
            journal.tracer.tell(|| Stage::Refused(reason));
            journal.set_reason(reason);
        }
        self.settle(input, fragment, Ruling { force_log: true, ..Ruling::default() }, journal)
    }

    /// The way of a packet with sound headers.
    pub(crate) fn filter(
        &mut self,
        input: &Packet,
        packet: Descriptor,
        journal: &mut Journal,
    ) -> Fate {
        let family = packet.family;
        let mut fate = self.judge(input, packet, journal);
        if !matches!(fate.carried.diverted, Some(Diverted::Packet(_))) {
            self.route(input, &mut fate, journal);
            self.fragment_again(input, family, &mut fate);
        }
        fate
    }

    /// What becomes of it here, before it goes its own way.
    pub(crate) fn judge(
        &mut self,
        input: &Packet,
        mut packet: Descriptor,
        journal: &mut Journal,
    ) -> Fate {
        let (ruleset, rulebook) = (Arc::clone(&self.ruleset), Arc::clone(&self.rulebook));
        let ruling = self.decide(&ruleset, &rulebook, input, &mut packet, journal);
        self.settle(input, packet, ruling, journal)
    }

    /// Carries out what was decided, logs and counts.
    fn settle(
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
        let Ruling { pass: passed, rule, anchor_rule, .. } = ruling;
        let counted = Counted { passed, rule, anchor_rule };
        self.counters.packet(&packet, counted, state, &ruleset, &rulebook);
        self.count_for_sources(&packet, &ruling);
        if let Some(ends) = packet.crosses_to.filter(|_| ruling.pass) {
            // authentication headers can be longer than the packet around them
            if packet.offset > packet.total_len {
                journal.count_only(Reason::Translate);
                ruling.pass = false;
                return fate(input, None, &ruling, Carried::default(), journal);
            }
            cross::network(&mut packet, &ends, &self.world);
        }
        fate(input, Some(packet), &ruling, carried, journal)
    }

    fn decide<'a>(
        &mut self,
        ruleset: &'a Ruleset,
        rulebook: &'a Rulebook,
        input: &Packet,
        packet: &mut Descriptor,
        journal: &mut Journal,
    ) -> Ruling<'a> {
        if let Err(reason) = normalize::fragmentation(packet, &ruleset.options) {
            journal.tracer.tell(|| Stage::Refused(reason));
            journal.set_reason(reason);
            return Ruling { force_log: true, ..Ruling::default() };
        }
        match (&packet.transport, packet.family) {
            (Transport::Fragment, _) => {
                let ruling = self.ask_rules(ruleset, rulebook, input, packet, journal);
                if !ruling.pass {
                    journal.set_reason(Reason::Fragment);
                }
                return ruling;
            }
            (Transport::Icmp(_), Family::Inet6) | (Transport::Icmp6(_), Family::Inet) => {
                journal.tracer.tell(|| Stage::Refused(Reason::Normalize));
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
            Ok(true) => journal.tracer.tell(|| Stage::Repaired),
            Err(reason) => {
                journal.tracer.tell(|| Stage::Refused(reason));
                journal.count_only(reason);
                return Ruling::default();
            }
        }
        let mut ruling = match self.look_up(packet, journal) {
            Lookup::Accepted(id) => {
                journal.tracer.tell(|| Stage::Accepted(id));
                let state = self.states.get(id);
                Ruling {
                    pass: true,
                    rule: rulebook.written(state.rule),
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
                    self.ask_rules(ruleset, rulebook, input, packet, journal)
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

    /// The source nodes of a state count its packets.
    fn count_for_sources(&mut self, packet: &Descriptor, ruling: &Ruling) {
        let Some(id) = ruling.state.filter(|_| ruling.pass) else {
            return;
        };
        let state = self.states.get(id);
        let way = state.way(packet.direction);
        for key in &state.sources {
            let node = self.sources.get_mut(key);
            node.packets[way] += 1;
            node.bytes[way] += packet.total_len as u64;
        }
    }

    /// `max-pkt-size` drops what is longer, be it passed by a rule or by a state.
    fn check_length(&self, packet: &Descriptor, ruling: &mut Ruling, journal: &mut Journal) {
        let longest = match ruling.state {
            Some(id) => self.states.get(id).actions.max_pkt_size,
            None => ruling.max_pkt_size,
        };
        if ruling.pass && longest != 0 && packet.total_len > longest.into() {
            journal.tracer.tell(|| Stage::TooLong { longest });
            journal.set_reason(Reason::Normalize);
            ruling.pass = false;
            ruling.force_log = true;
        }
    }

    /// IP options pass a state only if its rule has `allow-opts`.
    fn check_options(&self, packet: &Descriptor, ruling: &mut Ruling, journal: &mut Journal) {
        // a packet that crosses to the other family loses them
        let stay = packet.options && packet.crosses_to.is_none();
        let Some(id) = ruling.state.filter(|_| ruling.pass && stay) else {
            return;
        };
        if !self.states.get(id).allow_opts {
            journal.tracer.tell(|| Stage::OptionsRefused);
            journal.set_reason(Reason::IpOption);
            ruling.pass = false;
            ruling.force_log = true;
        }
    }

    /// Lets the rules decide. The mapping of the packet's endpoint is held by its state, if it has one.
    fn ask_rules<'a>(
        &mut self,
        ruleset: &'a Ruleset,
        rulebook: &'a Rulebook,
        input: &Packet,
        packet: &mut Descriptor,
        journal: &mut Journal,
    ) -> Ruling<'a> {
        let ruling = self.follow_rules(ruleset, rulebook, input, packet, journal);
        self.endpoints.let_go();
        ruling
    }

    /// Does what the rules say: answers what they block, and makes the state they ask for.
    fn follow_rules<'a>(
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
        journal.tracer.tell(|| Stage::Decided { rule: rule.map(Entry::id), action });
        journal.count_only(Reason::Match);
        if rule.is_some_and(|rule| rule.log.is_some()) {
            journal.log_for(rule, rule, LogPlace::of(rule, anchor_rule), Reason::Match);
        }
        rules::log_for_match_rules(rule, anchor_rule, &answer, journal);

        let mut ruling = Ruling { rule, anchor_rule, ..Ruling::default() };
        if let Some(rule) = rule.filter(|rule| rule.action == Action::Block) {
            self.answer(packet, rule, journal);
            return ruling;
        }
        if packet.options && !rule.is_some_and(|rule| rule.allow_opts) {
            journal.tracer.tell(|| Stage::OptionsRefused);
            journal.count_only(Reason::IpOption);
            ruling.force_log = true;
            return ruling;
        }
        let stateless = packet.is_fragment() || mapping.is_some_and(|mapping| mapping.stateless);
        if (answer.needs_state || rule.is_some_and(|rule| rule.state.is_some())) && !stateless {
            let rule = rule.unwrap_or(rulebook.default_rule());
            match self.create_state(packet, rule, &answer, journal) {
                Ok(Made::Plain(id)) => ruling.state = Some(id),
                Ok(Made::Proxied(id)) => {
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

    /// Tells the sender of a packet that is dropped, if the rule says so.
    fn answer(&self, packet: &Descriptor, rule: &Entry, journal: &mut Journal) {
        match reply::block(packet, rule.block_return, &self.world) {
            reply::Answer::Nothing => {}
            reply::Answer::Send(bytes) => journal.reply(bytes),
            reply::Answer::BadChecksum => journal.count_only(Reason::ProtoCksum),
        }
    }

    /// Changes a packet that passes and what it carries. With a state its actions count, those of
    /// match rules included; without one PF heeds only the deciding rule.
    fn carry_out(
        &mut self,
        input: &Packet,
        packet: &mut Descriptor,
        ruling: &mut Ruling,
        journal: &mut Journal,
    ) -> Carried {
        if !ruling.pass {
            return Carried::default(); // what is dropped carries nothing any more
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
            journal.tracer.tell(|| Stage::Changed);
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
        // PF gives no queue to a packet that it forwards itself
        if let Some(rule) = actions.queued_by.filter(|_| packet.crosses_to.is_none()) {
            carried.queue = self.rulebook.at(rule).queue(urgent);
        }
        carried
    }

    /// Logs what was not logged when the rules were asked.
    fn log(&self, ruling: &Ruling, journal: &mut Journal) {
        let state = ruling.state.map(|id| self.states.get(id));
        let logs_all = |rule: &Entry| rule.log.is_some_and(|log| log.all);
        let by_state = ruling.by_state && state.is_some_and(|state| state.actions.log_all);
        if !ruling.force_log && !by_state {
            return;
        }
        let mut place = LogPlace::of(ruling.rule, ruling.anchor_rule);
        if ruling.by_state {
            place.anchor = ""; // PF knows the rules of a state, but not their rule set
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
}

/// Whether a packet is not what it was when it came. What follows an IPv4 packet does not count.
fn is_changed(packet: &Descriptor, input: &Packet) -> bool {
    input.bytes.get(..packet.bytes.len()) != Some(&packet.bytes[..])
}

/// The user whose socket the packet is about.
fn uid(packet: &Packet) -> Option<u32> {
    packet.owner.map(|owner| owner.uid)
}

/// The fate of a packet that the firewall does not look at.
pub(crate) fn untouched(input: &Packet) -> Fate {
    Fate {
        verdict: Verdict::Pass,
        decision: Decision::None,
        anchor_rule: None,
        reason: Reason::Match,
        counted: Vec::new(),
        state: None,
        out: None,
        replies: Vec::new(),
        forwarded: Vec::new(),
        // who is not asked gives it to no socket
        carried: Carried { diverted: None, ..input.carried.clone() },
        log: Vec::new(),
        removed: Vec::new(),
    }
}

fn fate(
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
        decision: ruling.rule.map_or(Decision::Default, |rule| Decision::Rule(rule.id())),
        anchor_rule: ruling.anchor_rule.map(|rule| rule.number),
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

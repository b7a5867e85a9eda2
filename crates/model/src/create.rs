//! Creation of a state for the first packet of a flow (pf-semantics section 7).

use skipstep_ruleset::{Direction, KeepKind, Reason, RouteKind, Timeout};
use skipstep_views::{LimitCounter, NextHop, NodeKind, Peer};
use skipstep_wire::protocol;

use crate::cross;
use crate::evaluation::Context;
use crate::firewall::Firewall;
use crate::icmp::{self, Mapping};
use crate::journal::Journal;
use crate::key::{Ends, NodeKey, STACK, StateId, WIRE};
use crate::modulate;
use crate::packet::{Descriptor, Tcp, Transport};
use crate::pool::Chosen;
use crate::pool_inputs::{PoolInputs, Purpose};
use crate::rulebook::Entry;
use crate::rules::Answer;
use crate::side::other_state::{NO_TRAFFIC, SINGLE};
use crate::source_node::Refused;
use crate::state::{Collision, State};
use crate::tcp;
use crate::timestamp::Scrub;
use crate::trace::Stage;
use crate::translate::{self, pool_of};
use crate::world::World;

/// The result of creating a state.
pub(crate) enum Created {
    /// The packet continues.
    Plain(StateId),
    /// The firewall has answered the packet (synproxy), so the packet ends here.
    Proxied(StateId),
}

/// Error: a pool has no address left.
struct NoAddress;

impl Firewall {
    /// Creates the state that `rule` requests. If that fails the packet is dropped: the reason is
    /// counted and returned.
    pub(crate) fn create_state(
        &mut self,
        packet: &mut Descriptor,
        rule: &Entry,
        answer: &Answer,
        journal: &mut Journal,
    ) -> Result<Created, Reason> {
        let mut replaced = Vec::new();
        let received = packet.bytes.clone();
        let made = self.try_create_state(packet, rule, answer, &mut replaced);
        for previous in replaced {
            let previous = self.states.get(previous).clone();
            self.release_addresses(&previous);
            self.release_sources(&previous);
            self.release_limiters(&previous, false);
        }
        match made {
            Ok(id) if self.proxy_first(packet, rule, id, journal) => {
                self.counters.state_made(self.states.get(id));
                journal.tracer.record(|| Stage::Created(id));
                Ok(Created::Proxied(id))
            }
            Ok(id) => {
                let state = self.states.get(id);
                if state.src.seqdiff != 0 {
                    modulate::segment(packet, &state.src, &state.dst);
                }
                translate_first(packet, answer, &received);
                self.counters.state_made(self.states.get(id));
                journal.tracer.record(|| Stage::Created(id));
                Ok(Created::Plain(id))
            }
            Err(reason) => {
                journal.count_only(reason);
                journal.tracer.record(|| Stage::NotCreated(reason));
                Err(reason)
            }
        }
    }

    /// Creates the state unless a limit refuses it. No state is evicted to make room.
    fn try_create_state(
        &mut self,
        packet: &mut Descriptor,
        rule: &Entry,
        answer: &Answer,
        replaced: &mut Vec<StateId>,
    ) -> Result<StateId, Reason> {
        let mut sources = answer.sources.clone();
        if rule.state.as_ref().is_some_and(|options| options.source_track.is_some()) {
            sources.push(self.track_source(packet, rule)?);
        }
        let max = rule.state.as_ref().and_then(|options| options.max).filter(|max| *max != 0);
        if max.is_some_and(|max| self.counters.states_of(rule.index) >= max.into()) {
            self.counters.status.limits[LimitCounter::States as usize] += 1;
            return Err(Reason::StateLimit);
        }
        if self.states.len() >= self.ruleset.options.limits.states {
            self.remove_unused(&sources);
            return Err(Reason::Memory);
        }
        let mut state = first_state(packet, rule, answer, &self.world);
        if state.actions.reassemble_tcp && packet.tcp().is_some() {
            state.scrub[0] = Some(Scrub::from_first_packet(packet, &self.world));
            if tcp::check_timestamps(&mut state, packet, self.world.now, 0).is_err() {
                self.remove_unused(&sources);
                return Err(Reason::BadTimestamp);
            }
        }
        match self.next_hop(packet, rule, &mut sources) {
            Ok(hop) => state.route = hop,
            Err(NoAddress) => {
                self.remove_unused(&sources);
                return Err(Reason::NoRoute);
            }
        }
        for key in &sources {
            self.sources.get_mut(key).states += 1;
        }
        state.sources = sources;
        self.take_limiters(&mut state, packet, rule);
        state.mapped = self.endpoints.hand_over();
        self.states.insert(state, replaced).map_err(|Collision(refused)| {
            // PF does not return the address of a state that was never inserted to its pool
            self.release_sources(&refused);
            self.release_limiters(&refused, true);
            self.release_endpoint(&refused);
            self.remove_unused(&refused.sources);
            Reason::StateInsert
        })
    }

    /// Returns the node of the packet's source, or an error if the rule's limits refuse one more
    /// state. The source is the packet's own, before any translation by rules.
    fn track_source(&mut self, packet: &Descriptor, rule: &Entry) -> Result<NodeKey, Reason> {
        let key = NodeKey { rule: rule.index, kind: NodeKind::Track, source: packet.source };
        let (limit, now) = (self.ruleset.options.limits.src_nodes, self.world.now);
        let status = &mut self.counters.status;
        match self.sources.insert(key, rule, None, (limit, now), status) {
            Ok(()) => Ok(key),
            Err(Refused) => Err(Reason::SrcLimit),
        }
    }

    /// Takes references to the limiters that let the rule match.
    fn take_limiters(&mut self, state: &mut State, packet: &Descriptor, rule: &Entry) {
        if let Some(used) = rule.state_limiter {
            self.limiters.admit_state(used.id);
            state.state_limiter = Some(used.id);
        }
        if let Some(used) = rule.source_limiter {
            let (held, change) =
                self.limiters.admit_source(used.id, (packet.rdomain, packet.source));
            state.source_limiter = held;
            self.change_table(change);
        }
    }

    /// Returns the next hop of the state's packets. It is chosen for the packet's own source,
    /// before any translation by rules.
    fn next_hop(
        &mut self,
        packet: &Descriptor,
        rule: &Entry,
        held: &mut Vec<NodeKey>,
    ) -> Result<Option<NextHop>, NoAddress> {
        let Some((route, of)) = rule.route.as_ref().zip(pool_of(rule, Purpose::Route)) else {
            return Ok(None);
        };
        let inputs = PoolInputs { ruleset: &self.ruleset, world: &self.world };
        let Firewall { states, pools, endpoints, sources, limiters, counters, .. } = self;
        let held_before = std::mem::take(held);
        let mut context =
            Context { states, pools, endpoints, sources, held: held_before, limiters, counters };
        // a packet that crosses families leaves in the new family; its answers leave in the first
        // one
        let across = rule.af_to.as_ref().filter(|_| route.kind == RouteKind::RouteTo);
        let family = across.map_or(packet.family, |af_to| af_to.family);
        let chosen = context.choose(of, inputs, family, packet.source, None);
        *held = context.held;
        let Chosen { address, interface } = chosen.ok_or(NoAddress)?;
        Ok(Some(NextHop { kind: route.kind, address, interface }))
    }

    fn remove_unused(&mut self, sources: &[NodeKey]) {
        for key in sources {
            self.sources.remove_unused(key, self.world.now, &mut self.counters.status);
        }
    }
}

fn first_state(packet: &Descriptor, rule: &Entry, answer: &Answer, world: &World) -> State {
    let options = rule.state.clone().unwrap_or_default();
    let translation = &answer.translation;
    let own = Ends::from_packet(packet, mapping_of(packet));
    let mut key = [own.key(packet); 2];
    if translation.ends != own {
        // the side where the packet goes sees the translated addresses
        let side = if packet.direction == Direction::In { STACK } else { WIRE };
        key[side] = translation.ends.key(packet);
    }
    let (mut src, dst, timeout) = first_peers(packet);
    if options.kind == KeepKind::Modulate && packet.tcp().is_some_and(Tcp::opens) {
        src.seqdiff = modulate::difference(world.sequence, src.seqlo);
    }
    State {
        id: 0,
        key,
        direction: packet.direction,
        interface: options.if_bound.then(|| packet.interface.clone()),
        rule: rule.index,
        anchor_rule: answer.anchor_rule.map(|rule| rule.index),
        nat_rule: translation.nat.map(|rule| rule.index),
        rdr_rule: translation.rdr.map(|rule| rule.index),
        route: None,
        match_rules: answer.match_rules.iter().map(|rule| rule.index).collect(),
        src,
        dst,
        timeout,
        purge: false,
        unlinked: false,
        created_at: world.now,
        refreshed_at: world.now,
        packets: [0, 0],
        bytes: [0, 0],
        allow_opts: answer.actions.allow_opts,
        sloppy: options.sloppy,
        pflow: options.pflow,
        no_sync: options.no_sync,
        actions: answer.actions,
        proxy_mss: 0,
        scrub: [None, None],
        tag: answer.tag.clone().known(),
        sources: Vec::new(),
        connected: false,
        state_limiter: None,
        source_limiter: None,
        mapped: None,
    }
}

/// Writes the translation of its state to a packet. The packet stays in its family, although its
/// state crosses, if its bytes up to the transport header are still as `received`: PF tests exactly
/// this. So packets of protocols that PF cannot parse do not cross, nor messages that it cannot
/// convert.
pub(crate) fn translate_first(packet: &mut Descriptor, answer: &Answer, received: &[u8]) {
    let ends = answer.translation.ends;
    let mapping = mapping_of(packet);
    if ends == Ends::from_packet(packet, mapping) {
        return;
    }
    let id = mapping
        .filter(|mapping| mapping.is_echo(packet.family))
        .map(|mapping| if mapping.reply { ends.destination.1 } else { ends.source.1 });
    if ends.family() == packet.family {
        translate::rewrite(packet, &ends, id);
    } else if cross::transport(packet, &ends, id).is_ok() && packet.bytes != received {
        packet.crosses_to = Some(ends);
    }
}

fn mapping_of(packet: &Descriptor) -> Option<Mapping> {
    packet.icmp().map(|message| icmp::mapping(packet.family, message))
}

fn first_peers(packet: &Descriptor) -> (Peer, Peer, Timeout) {
    let single = Peer { state: SINGLE, ..Peer::default() };
    let silent = Peer { state: NO_TRAFFIC, ..Peer::default() };
    match &packet.transport {
        Transport::Tcp(segment) => {
            let (src, dst) = tcp::first_segment(segment, packet.tcp_options());
            (src, dst, Timeout::TcpFirst)
        }
        _ if packet.protocol == protocol::UDP => (single, silent, Timeout::UdpFirst),
        Transport::Icmp(_) | Transport::Icmp6(_) => (silent, silent, Timeout::IcmpFirst),
        _ => (single, silent, Timeout::OtherFirst),
    }
}

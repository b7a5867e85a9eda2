//! Making a state for the first packet of a flow (pf-semantics section 7).

use skipstep_ruleset::{Reason, Timeout};
use skipstep_wire::protocol;

use crate::firewall::Firewall;
use crate::icmp;
use crate::journal::Journal;
use crate::packet::{Descriptor, Transport};
use crate::rulebook::Entry;
use crate::rules::Answer;
use crate::state::other_state::{NO_TRAFFIC, SINGLE};
use crate::state::{Collision, Key, Peer, State, StateId};
use crate::tcp;
use crate::trace::Stage;

impl Firewall {
    /// Makes the state that `rule` asks for. Without a state the packet is dropped: the reason is
    /// counted and returned.
    pub(crate) fn create_state(
        &mut self,
        packet: &Descriptor,
        rule: &Entry,
        answer: &Answer,
        journal: &mut Journal,
    ) -> Result<StateId, Reason> {
        match self.try_create_state(packet, rule, answer) {
            Ok((id, replaced)) => {
                journal.removed.extend(replaced);
                self.counters.state_made(self.states.get(id));
                journal.tracer.tell(|| Stage::Created(id));
                Ok(id)
            }
            Err(reason) => {
                journal.count_only(reason);
                journal.tracer.tell(|| Stage::NotCreated(reason));
                Err(reason)
            }
        }
    }

    /// Limits refuse; nothing is ever thrown out to make room.
    fn try_create_state(
        &mut self,
        packet: &Descriptor,
        rule: &Entry,
        answer: &Answer,
    ) -> Result<(StateId, Option<StateId>), Reason> {
        let max = rule.state.as_ref().and_then(|options| options.max).filter(|max| *max != 0);
        if max.is_some_and(|max| self.counters.states_of(rule.place) >= max.into()) {
            self.counters.status.max_states_refused += 1;
            return Err(Reason::StateLimit);
        }
        if self.states.len() >= self.ruleset.options.limits.states {
            return Err(Reason::Memory);
        }
        let state = first_state(packet, rule, answer, self.world.now);
        self.states.insert(state).map_err(|Collision| Reason::StateInsert)
    }
}

fn first_state(packet: &Descriptor, rule: &Entry, answer: &Answer, now: u32) -> State {
    let options = rule.state.clone().unwrap_or_default();
    let (src, dst, timeout) = first_peers(packet);
    let key = first_key(packet);
    State {
        id: 0,
        key: [key, key],
        direction: packet.direction,
        interface: options.if_bound.then(|| packet.interface.clone()),
        rule: rule.place,
        anchor_rule: answer.anchor_rule.map(|rule| rule.place),
        match_rules: answer.match_rules.iter().map(|rule| rule.place).collect(),
        src,
        dst,
        timeout,
        purge: false,
        unlinked: false,
        created_at: now,
        refreshed_at: now,
        packets: [0, 0],
        bytes: [0, 0],
        allow_opts: rule.allow_opts,
        sloppy: options.sloppy,
        no_sync: options.no_sync,
        actions: answer.actions,
        tag: answer.tag.clone().known(),
    }
}

fn first_key(packet: &Descriptor) -> Key {
    let (mut source, mut destination) = (packet.source, packet.destination);
    let (mut source_port, mut destination_port) = packet.ports();
    if let Some(message) = packet.icmp() {
        (source_port, destination_port) = icmp::mapping(packet.family, message).ports();
        if let Some(addresses) =
            icmp::key_addresses(packet.protocol, message, source, destination, false)
        {
            (source, destination) = addresses;
        }
    }
    let (source, destination) = ((source, source_port), (destination, destination_port));
    Key::new(packet.family, packet.protocol, packet.direction, source, destination)
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

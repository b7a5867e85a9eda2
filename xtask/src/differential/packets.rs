//! Random packets that follow conversations and break them. They are drawn while the model plays,
//! so that its states show the limits of windows and timeouts.

use std::net::IpAddr;

use fastrand::Rng;
use skipstep_model::{Draw, SocketOwner, Verdict};
use skipstep_ruleset::{Direction, Ruleset};
use skipstep_scenario::case::{Action, Arrival};
use skipstep_scenario::expect::Expectation;
use skipstep_scenario::observe::Observation;
use skipstep_scenario::packet::{Body, Icmp, IcmpBody, Packet, Payload, Words};
use skipstep_views::StateView;

use super::changes::Changes;
use super::conversation::{Conversation, payload};
use super::generate::tags;
use super::malformed::{chained, damage, header, mutated};
use super::network::Network;
use super::pool::{IDS, Pool, one_in, pick};
use super::tcp::handshake_ack;
use super::{answers, quotes};

/// Draws the steps of one case.
pub struct Traffic {
    pub pool: Pool,
    /// Tags that the rules name. The data plane has numbers for these only.
    tags: Vec<String>,
    has_queues: bool,
    changes: Changes,
    conversations: Vec<Conversation>,
    network: Network,
    /// Packets that were sent, with direction and interface.
    recent: Vec<(Words, Direction, String)>,
}

impl Traffic {
    pub fn new(pool: Pool, ruleset: &Ruleset) -> Self {
        let (conversations, network, recent) = Default::default();
        let (tags, changes) = (tags(ruleset), Changes::new(ruleset));
        let has_queues = !ruleset.queues.is_empty();
        Traffic { pool, tags, has_queues, changes, conversations, network, recent }
    }

    /// Takes a new rule set. Earlier tags are kept.
    pub fn learn(&mut self, ruleset: &Ruleset) {
        self.changes.learn(ruleset);
        self.has_queues = !ruleset.queues.is_empty();
        self.tags.extend(tags(ruleset));
        self.tags.sort();
        self.tags.dedup();
    }

    /// Draws the next step. `last` is the previous packet with its results, `now` the clock.
    pub fn step(
        &mut self,
        rng: &mut Rng,
        last: Option<(&Action, &Observation)>,
        now: u32,
    ) -> Action {
        let states: &[(u32, StateView)] = last.map_or(&[], |(_, observation)| &observation.states);
        if one_in(rng, 25) {
            return Action::Wait { seconds: pause(rng, states, now), expired: None };
        }
        if let Some(change) = self.changes.step(rng, &self.pool, states) {
            return change;
        }
        if one_in(rng, 40) {
            let draws = [
                0,
                1,
                u32::MAX,
                u32::MAX / 2,
                u32::MAX / 2 - 1,
                u32::MAX / 2 + 1,
                u32::MAX / 10,
                rng.u32(..),
            ];
            let draw = pick(rng, &draws);
            return Action::Random(match rng.u8(..3) {
                0 => Draw::Bounded(draw),
                1 => Draw::Sequence(draw),
                _ => Draw::Timestamp(draw),
            });
        }
        if let Some((Action::Packet(arrival, _), observation)) = last {
            let goes_on =
                arrival.direction == Direction::In && observation.fate.verdict == Verdict::Pass;
            if goes_on && one_in(rng, 3) {
                let out = if arrival.interface == "em0" { "em1" } else { "em0" };
                return Action::Forward(out.into(), Expectation::default());
            }
        }
        if let Some((Action::Packet(arrival, _), observation)) = last
            && let Some(answer) = handshake_ack(arrival, observation)
            && !one_in(rng, 4)
        {
            return Action::Packet(answer, Expectation::default());
        }
        let arrival = loop {
            if let Some(late) = self.network.arrival(rng) {
                break late;
            }
            let sent = self.sent(rng, states);
            if is_martian(&sent) {
                continue;
            }
            if let Some(arrival) = self.network.send(rng, sent) {
                break arrival;
            }
        };
        Action::Packet(arrival, Expectation::default())
    }

    /// Draws a packet, perhaps from or to an address that translation has created.
    fn sent(&mut self, rng: &mut Rng, states: &[(u32, StateView)]) -> Arrival {
        let arrival = match rng.u8(..20) {
            0 | 1 if !self.recent.is_empty() => {
                let (about, direction, interface) = pick(rng, &self.recent);
                quotes::error(rng, &self.pool, &about, (direction, &interface))
            }
            2 => self.stray(rng),
            3..9 if !states.is_empty() => {
                let (_, state) = &states[rng.usize(..states.len())];
                answers::packet_of_state(rng, state)
            }
            _ => self.talk(rng, states),
        };
        if let Packet::Words(words) = &arrival.packet {
            let (direction, interface) = (arrival.direction, arrival.interface.clone());
            self.recent.push((words.as_ref().clone(), direction, interface));
            if self.recent.len() > 16 {
                self.recent.remove(0);
            }
        }
        self.carried(rng, arrival)
    }

    /// Draws a packet of a conversation.
    fn talk(&mut self, rng: &mut Rng, states: &[(u32, StateView)]) -> Arrival {
        let limit = 1 + rng.usize(..6);
        if self.conversations.len() < limit || one_in(rng, 25) {
            self.conversations.push(Conversation::begin(rng, &self.pool));
        }
        let place = rng.usize(..self.conversations.len());
        let (direction, interface, packet) = self.conversations[place].next(rng, states);
        Arrival::new(direction, interface, chained(rng, packet))
    }

    /// Adds metadata of an earlier pass to some packets.
    fn carried(&self, rng: &mut Rng, mut arrival: Arrival) -> Arrival {
        if !self.tags.is_empty() && one_in(rng, 30) {
            arrival.tag = Some(pick(rng, &self.tags));
        }
        if one_in(rng, 30) {
            arrival.prio = Some(rng.u8(..8));
        }
        if self.has_queues && one_in(rng, 10) {
            arrival.queue = Some(pick(rng, &["bulk", "prompt"]).to_owned());
        }
        if one_in(rng, 30) {
            arrival.delay = Some(pick(rng, &[1, 250, 65535]));
        }
        if one_in(rng, 3) {
            let (uid, gid) = (pick(rng, IDS), pick(rng, IDS));
            arrival.owner = Some(SocketOwner { uid, gid });
        }
        if arrival.direction == Direction::Out && one_in(rng, 12) {
            arrival.received_on =
                Some(if arrival.interface == "em0" { "em1" } else { "em0" }.into());
        }
        arrival
    }

    /// Draws a packet outside of conversations: odd ICMP, neighbour discovery, fragments, other
    /// protocols.
    fn stray(&mut self, rng: &mut Rng) -> Arrival {
        let ipv6 = one_in(rng, 2);
        let (source, destination) = self.pool.pair(rng, ipv6);
        let mut ip = header(rng, ipv6);
        let icmp = |kind, code, payload| {
            Body::Icmp(Icmp { kind, code, body: IcmpBody::Payload(payload), ..Icmp::default() })
        };
        let body = match rng.u8(..6) {
            0 | 1 if ipv6 => {
                ip.ttl = Some(pick(rng, &[255, 255, 254]));
                icmp(
                    pick(rng, &[133, 134, 135, 136, 137]),
                    0,
                    Payload::Length(pick(rng, &[0, 8, 16, 24, 32])),
                )
            }
            2 if ipv6 => {
                ip.ttl = Some(pick(rng, &[1, 1, 64]));
                icmp(pick(rng, &[130, 131, 132, 143]), 0, Payload::Length(16))
            }
            0 => icmp(rng.u8(..45), rng.u8(..4), payload(rng)),
            1 => icmp(pick(rng, &[13, 14, 15, 16, 17, 18]), 0, Payload::Length(12)),
            3 => {
                ip.fragment = Some((pick(rng, &[0, 8, 24, 1480, 65528]), rng.bool()));
                Body::Other(pick(rng, &[6, 17, 1, 58, 50]), Payload::Length(rng.u16(..64)))
            }
            _ => Body::Other(
                pick(rng, &[2, 41, 47, 50, 51, 89, 132, 58, 1, 59, 0, 255]),
                Payload::Length(rng.u16(..40)),
            ),
        };
        let words = Words { source, destination, body, ip, damage: damage(rng, ipv6) };
        let direction = if rng.bool() { Direction::In } else { Direction::Out };
        let interface = pick(rng, &["em0", "em1", "em0", "em1", "lo0"]).to_owned();
        let packet = mutated(rng, Packet::Words(Box::new(words)));
        Arrival::new(direction, interface, chained(rng, packet))
    }
}

/// Returns true if a packet has a loopback address, which translation may create. The model has no
/// routes for these, and the kernel's depend on `lo`.
fn is_martian(arrival: &Arrival) -> bool {
    let loopback =
        |(source, destination): (IpAddr, IpAddr)| source.is_loopback() || destination.is_loopback();
    skipstep_wire::addresses(&arrival.packet.bytes()).is_some_and(loopback)
}

/// Draws a number of seconds: until a state expires, one more or less, or a few.
fn pause(rng: &mut Rng, states: &[(u32, StateView)], now: u32) -> u32 {
    if states.is_empty() || one_in(rng, 3) {
        return rng.u32(1..12);
    }
    let end = states[rng.usize(..states.len())].1.expires_at.saturating_sub(now);
    // established connections last a day; limit the clock
    (end + rng.u32(..3)).saturating_sub(1).clamp(1, 1_000_000)
}

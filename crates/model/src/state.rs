//! States and the state table (pf-semantics section 6).

use std::collections::{BTreeMap, HashMap};

use skipstep_ruleset::{Direction, Family, Timeout};
use skipstep_views::{NextHop, Peer};
use skipstep_wire::protocol;

use crate::actions::Actions;
use crate::endpoint::Endpoint;
use crate::key::{Ends, Key, LimitedBy, NodeKey, STACK, StateId, WIRE};
use crate::packet::Descriptor;
use crate::side::tcp_state;
use crate::timestamp::Scrub;

/// A flow that the rules let through.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Number of the state.
    pub id: StateId,
    /// Keys, by [`WIRE`] and [`STACK`].
    pub key: [Key; 2],
    /// Direction of the packet that created the state.
    pub direction: Direction,
    /// Interface that the state is bound to, `None` for a floating state.
    pub interface: Option<String>,
    /// Index in the rulebook of the rule that created the state.
    pub(crate) rule: usize,
    /// Index of the anchor rule that called that rule.
    pub(crate) anchor_rule: Option<usize>,
    /// Indexes of the rules whose pools chose the source (`nat_rule`) and the destination.
    pub(crate) nat_rule: Option<usize>,
    pub(crate) rdr_rule: Option<usize>,
    /// Next hop of `route-to` and its like.
    pub route: Option<NextHop>,
    /// Indexes of the match rules of the first packet, latest first; they count the state's
    /// packets.
    pub(crate) match_rules: Vec<usize>,
    /// The side that created the state.
    pub src: Peer,
    /// The other side.
    pub dst: Peer,
    /// Class of the timeout.
    pub timeout: Timeout,
    /// True if the state has ended before its time: no lookup finds it, and the purge removes it.
    pub purge: bool,
    /// True if the state is out of the table, and waits for the purge, which counts the removal.
    pub unlinked: bool,
    /// Second of creation.
    pub created_at: u32,
    /// Second of the last packet that prolonged the state.
    pub refreshed_at: u32,
    /// Packets with the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    /// `allow-opts` of its rule.
    pub allow_opts: bool,
    /// `sloppy`: windows are not checked.
    pub sloppy: bool,
    /// `pflow`: the state is reported when it ends.
    pub pflow: bool,
    /// `no-sync` of its rule.
    pub no_sync: bool,
    /// Actions on the state's packets.
    pub actions: Actions,
    /// `synproxy state`: MSS in bytes that both sides support.
    pub proxy_mss: u16,
    /// `reassemble tcp`: timestamps of `src` and of `dst`.
    pub scrub: [Option<Scrub>; 2],
    /// Tag that the state's packets get.
    pub tag: Option<String>,
    /// Source nodes that the state references.
    pub(crate) sources: Vec<NodeKey>,
    /// True if the state counts among the connections of its source.
    pub(crate) connected: bool,
    /// Limiters that the state references.
    pub(crate) state_limiter: Option<u32>,
    pub(crate) source_limiter: Option<LimitedBy>,
    /// `endpoint-independent`: inside endpoint whose mapping the state references.
    pub(crate) mapped: Option<Endpoint>,
}

impl State {
    /// Returns true if the state references source nodes.
    pub fn is_tracked(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Returns OpenBSD's flag bits: 1 allow-opts, 2 sloppy, 4 pflow, 8 no-sync, 0x20 no-df, 0x40
    /// set tos, 0x80 random-id, 0x100 reassemble tcp, 0x200 set prio.
    pub fn flags(&self) -> u16 {
        u16::from(self.allow_opts)
            | u16::from(self.sloppy) << 1
            | u16::from(self.pflow) << 2
            | u16::from(self.no_sync) << 3
            | u16::from(self.actions.no_df) << 5
            | u16::from(self.actions.set_tos.is_some()) << 6
            | u16::from(self.actions.random_id) << 7
            | u16::from(self.actions.reassemble_tcp) << 8
            | u16::from(self.actions.set_prio.is_some()) << 9
    }

    /// Returns the address family on the network's side.
    pub fn family(&self) -> Family {
        self.key[WIRE].family
    }

    /// Returns the IP protocol number on the network's side.
    pub fn protocol(&self) -> u8 {
        self.key[WIRE].protocol
    }

    /// Returns sender and receiver of a packet that travels in `direction`.
    pub(crate) fn peers_mut(&mut self, direction: Direction) -> (&mut Peer, &mut Peer) {
        if direction == self.direction {
            (&mut self.src, &mut self.dst)
        } else {
            (&mut self.dst, &mut self.src)
        }
    }

    /// Returns true if the state's packets cross to the other family. Such a state serves both
    /// sides, and inbound packets only.
    pub(crate) fn crosses(&self) -> bool {
        self.key[WIRE].family != self.key[STACK].family
    }

    /// Returns the direction in which a packet goes through the state. A packet that comes in from
    /// the other family goes against the direction of the state.
    pub(crate) fn direction_of(&self, packet: &Descriptor) -> Direction {
        if packet.family == self.key[WIRE].family {
            packet.direction
        } else {
            packet.direction.opposite()
        }
    }

    /// Returns addresses and ports of a packet on the other side, `None` if they are the same.
    pub(crate) fn ends_on_other_side(&self, packet: &Descriptor) -> Option<Ends> {
        if self.key[WIRE] == self.key[STACK] {
            return None;
        }
        let side = if self.direction_of(packet) == Direction::In { STACK } else { WIRE };
        // on the side that a packet crosses to, it is outbound
        let crossed = if self.crosses() { Direction::Out } else { packet.direction };
        Some(Ends::from_key(&self.key[side], crossed))
    }

    /// Returns addresses and ports of the first packet after translation.
    pub(crate) fn first_ends(&self) -> Ends {
        let side = if self.direction == Direction::In { STACK } else { WIRE };
        let direction = if self.crosses() { Direction::Out } else { self.direction };
        Ends::from_key(&self.key[side], direction)
    }

    /// Returns 0 for a packet in the state's direction, 1 for one against it.
    pub(crate) fn side_index(&self, direction: Direction) -> usize {
        usize::from(direction != self.direction)
    }

    /// Prolongs the state, with this class of timeout from now on.
    pub(crate) fn refresh(&mut self, now: u32, timeout: Timeout) {
        self.refreshed_at = now;
        self.timeout = timeout;
    }

    /// Ends the state. No lookup finds it, and the purge removes it.
    pub(crate) fn end(&mut self) {
        self.purge = true;
        (self.src.state, self.dst.state) = (tcp_state::CLOSED, tcp_state::CLOSED);
    }

    /// Returns true if a new state of this `direction` cannot share this key. On the other side of
    /// a state that crosses families, only outbound states collide.
    fn collides(&self, key: &Key, direction: Direction) -> bool {
        (self.family() == key.family) == (self.direction == direction)
    }

    /// Returns true if both sides are closed so far that a new connection may take the same ports.
    pub(crate) fn reusable(&self) -> bool {
        self.protocol() == protocol::TCP
            && self.src.state >= tcp_state::FIN_WAIT_2
            && self.dst.state >= tcp_state::FIN_WAIT_2
    }
}

/// The state table.
#[derive(Debug, Clone, Default)]
pub(crate) struct StateTable {
    states: BTreeMap<StateId, State>,
    /// Ids of the states with each key; if-bound states come before floating ones.
    by_key: HashMap<Key, Vec<StateId>>,
    last_id: StateId,
}

/// Error: a state with the same key, interface and direction exists. Contains the refused state.
#[derive(Debug)]
pub(crate) struct Collision(pub Box<State>);

impl StateTable {
    /// Finds the state of a packet in `direction` on `interface`. A state that crosses families
    /// serves inbound packets only, on both sides.
    pub fn find(&self, key: &Key, direction: Direction, interface: &str) -> Option<StateId> {
        let side = if direction == Direction::In { WIRE } else { STACK };
        self.by_key.get(key)?.iter().copied().find(|id| {
            let state = &self.states[id];
            !state.purge
                && state.interface.as_deref().is_none_or(|bound| bound == interface)
                && if state.crosses() {
                    direction == Direction::In
                } else {
                    state.key[side] == *key
                }
        })
    }

    /// Returns true if a state that packets on `interface` can find has the key on this side. PF
    /// also looks at states bound to other interfaces, which the data plane cannot look up.
    // Differs from OpenBSD: linux.md, "Ports"
    pub fn has(&self, key: &Key, side: usize, interface: &str) -> bool {
        self.by_key.get(key).into_iter().flatten().any(|id| {
            let state = &self.states[id];
            state.interface.as_deref().is_none_or(|bound| bound == interface)
                && state.key[side] == *key
        })
    }

    /// Inserts a state, and returns its new id. A closed TCP connection with the same addresses and
    /// ports on one side is removed, and its id added to `replaced`.
    ///
    /// Several states may collide if their packets cross families. The last of them is removed and
    /// the others are closed, because PF examines one after the other until one is not closed. A
    /// colliding state that does not cross is always removed. PF leaves it, and it would get the
    /// packets of the new state.
    ///
    /// # Errors
    ///
    /// Fails, and returns the state, if a colliding state is not closed.
    // Differs from OpenBSD: linux.md, "Reuse of a closed connection's key"
    pub fn insert(
        &mut self,
        mut state: State,
        replaced: &mut Vec<StateId>,
    ) -> Result<StateId, Collision> {
        for key in distinct(&state.key) {
            let (mut last, mut plain) = (None, None);
            for id in self.by_key.get(&key).into_iter().flatten() {
                let previous = self.states.get_mut(id).expect("keys lead to states");
                if previous.interface != state.interface
                    || !previous.collides(&key, state.direction)
                {
                    continue;
                }
                if !previous.reusable() {
                    return Err(Collision(Box::new(state)));
                }
                (previous.src.state, previous.dst.state) = (tcp_state::CLOSED, tcp_state::CLOSED);
                last = Some(*id);
                plain = plain.or(last.filter(|_| !previous.crosses()));
            }
            for previous in plain.into_iter().chain(last.filter(|_| last != plain)) {
                self.unlink(previous);
                replaced.push(previous);
            }
        }
        self.last_id += 1;
        state.id = self.last_id;
        for key in distinct(&state.key) {
            let ids = self.by_key.entry(key).or_default();
            let place = if state.interface.is_some() { 0 } else { ids.len() };
            ids.insert(place, state.id);
        }
        self.states.insert(state.id, state);
        Ok(self.last_id)
    }

    /// Takes a state out of all lookups. It counts as a state until it is removed.
    fn unlink(&mut self, id: StateId) {
        let Some(state) = self.states.get_mut(&id) else {
            return;
        };
        state.unlinked = true;
        if state.protocol() == protocol::TCP {
            (state.src.state, state.dst.state) = (tcp_state::CLOSED, tcp_state::CLOSED);
        }
        for key in distinct(&state.key) {
            if let Some(ids) = self.by_key.get_mut(&key) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
    }

    /// Removes a state, and returns it if it existed.
    pub fn remove(&mut self, id: StateId) -> Option<State> {
        self.unlink(id);
        self.states.remove(&id)
    }

    pub fn get(&self, id: StateId) -> &State {
        &self.states[&id]
    }

    pub fn get_mut(&mut self, id: StateId) -> &mut State {
        self.states.get_mut(&id).expect("a state lives until the purge removes it")
    }

    /// Returns all states, to change them, including states that wait for the purge.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut State> {
        self.states.values_mut()
    }

    /// Returns the number of states, including states that wait for the purge.
    pub fn len(&self) -> u32 {
        self.states.len() as u32
    }

    /// Returns all states in order of creation, including states that wait for the purge.
    pub fn iter(&self) -> impl Iterator<Item = &State> {
        self.states.values()
    }
}

/// Returns the keys of a state without repetition. Without translation both keys are equal.
fn distinct(keys: &[Key; 2]) -> impl Iterator<Item = Key> + use<> {
    let second = Some(keys[STACK]).filter(|key| *key != keys[WIRE]);
    std::iter::once(keys[WIRE]).chain(second)
}

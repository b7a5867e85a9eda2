//! States and the table they are found in (pf-semantics section 6).

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use skipstep_ruleset::{Direction, Family, Timeout};
use skipstep_wire::protocol;

use crate::actions::Actions;
use crate::endpoint::Endpoint;
use crate::limiter::LimitedBy;
use crate::packet::Descriptor;
use crate::route::NextHop;
use crate::source_node::NodeKey;
use crate::timestamp::Scrub;
use crate::translate::Ends;

/// Number of a state. Ascending in order of creation, from 1; never used twice.
pub type StateId = u64;

/// Index of a state's key on the network's side, which inbound packets carry.
pub const WIRE: usize = 0;
/// Index of a state's key on the host's side, which outbound packets carry.
pub const STACK: usize = 1;

/// BSD's numbers of the TCP states that PF uses.
pub mod tcp_state {
    /// nothing seen
    pub const CLOSED: u8 = 0;
    /// a SYN, or any first packet, was seen
    pub const SYN_SENT: u8 = 2;
    /// its SYN was acknowledged
    pub const ESTABLISHED: u8 = 4;
    /// a FIN was seen
    pub const CLOSING: u8 = 7;
    /// its FIN was acknowledged
    pub const FIN_WAIT_2: u8 = 9;
    /// the connection was reset
    pub const TIME_WAIT: u8 = 10;
    /// the firewall waits for the client to complete the handshake (`synproxy state`)
    pub const PROXY_SRC: u8 = 11;
    /// and then for the server
    pub const PROXY_DST: u8 = 12;
}

/// States of a side of a flow that is not TCP.
pub mod other_state {
    /// nothing seen
    pub const NO_TRAFFIC: u8 = 0;
    /// sent something
    pub const SINGLE: u8 = 1;
    /// sent something and was answered
    pub const MULTIPLE: u8 = 2;
}

/// What packets of one flow have in common.
///
/// Index 0 is the source of inbound and the destination of outbound packets, so that a reply has
/// the key of what it answers. For ICMP queries one port is the identifier, the other the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Routing domain.
    pub rdomain: u32,
    /// Address family.
    pub family: Family,
    /// IP protocol number.
    pub protocol: u8,
    /// Addresses.
    pub address: [IpAddr; 2],
    /// Ports in host order.
    pub port: [u16; 2],
}

impl Key {
    /// The key of a packet that travels in `direction`. `source` and `destination` are pairs of
    /// address and port.
    pub fn new(
        rdomain: u32,
        family: Family,
        protocol: u8,
        direction: Direction,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> Self {
        let [first, second] = match direction {
            Direction::In => [source, destination],
            Direction::Out => [destination, source],
        };
        let (address, port) = ([first.0, second.0], [first.1, second.1]);
        Key { rdomain, family, protocol, address, port }
    }
}

/// One side of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    /// Number from [`tcp_state`] or [`other_state`].
    pub state: u8,
    /// Highest sequence number seen.
    pub seqlo: u32,
    /// Highest the other side allows.
    pub seqhi: u32,
    /// Added to this side's sequence numbers.
    pub seqdiff: u32,
    /// Largest window, unscaled.
    pub max_win: u16,
    /// Low 4 bits the shift, 0x80 set if its SYN carried the option.
    pub wscale: u8,
}

/// Set in [`Peer::wscale`] if the side's SYN carried the window scale option.
pub const WSCALE_OFFERED: u8 = 0x80;

impl Peer {
    /// Shift of this side's windows.
    pub fn shift(&self) -> u32 {
        u32::from(self.wscale & 0x0f)
    }
}

/// A flow that was let through.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Number.
    pub id: StateId,
    /// Keys, at [`WIRE`] and [`STACK`].
    pub key: [Key; 2],
    /// Direction of the packet that made it.
    pub direction: Direction,
    /// Interface it is bound to; `None` for all.
    pub interface: Option<String>,
    /// Place of the rule that made it in the rulebook.
    pub(crate) rule: usize,
    /// Place of the anchor rule that led to that rule.
    pub(crate) anchor_rule: Option<usize>,
    /// Places of the rules whose pools gave the source and the destination.
    pub(crate) nat_rule: Option<usize>,
    pub(crate) rdr_rule: Option<usize>,
    /// `route-to` and its like.
    pub route: Option<NextHop>,
    /// Match rules that applied to its first packet, latest first: their counters rise with it.
    pub(crate) match_rules: Vec<usize>,
    /// The side that made it.
    pub src: Peer,
    /// The other side.
    pub dst: Peer,
    /// Class of timeout.
    pub timeout: Timeout,
    /// Its time is up whatever the clock says: a SYN is about to take its place.
    pub purge: bool,
    /// It is out of the table already and waits for the purge, which counts the removal.
    pub unlinked: bool,
    /// Second of creation.
    pub created_at: u32,
    /// Second of the last packet that keeps it alive.
    pub refreshed_at: u32,
    /// Packets with the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    /// `allow-opts` of its rule.
    pub allow_opts: bool,
    /// `sloppy`
    pub sloppy: bool,
    /// `pflow`
    pub pflow: bool,
    /// `no-sync`
    pub no_sync: bool,
    /// What happens to its packets.
    pub actions: Actions,
    /// `synproxy state`: MSS that both sides can have.
    pub proxy_mss: u16,
    /// `reassemble tcp`: what is known of the side that made it, and of the other.
    pub scrub: [Option<Scrub>; 2],
    /// Tag its packets get.
    pub tag: Option<String>,
    /// Source nodes that it counts for.
    pub(crate) sources: Vec<NodeKey>,
    /// It counts among the connections of its source.
    pub(crate) connected: bool,
    /// Limiters that it counts for.
    pub(crate) state_limiter: Option<u32>,
    pub(crate) source_limiter: Option<LimitedBy>,
    /// `endpoint-independent`: what it is mapped for.
    pub(crate) mapped: Option<Endpoint>,
}

impl State {
    /// Whether sources count for it.
    pub fn is_tracked(&self) -> bool {
        !self.sources.is_empty()
    }

    /// OpenBSD's flag bits: 1 allow-opts, 2 sloppy, 4 pflow, 8 no-sync, 0x20 no-df, 0x40 set tos,
    /// 0x80 random-id, 0x100 reassemble tcp, 0x200 set prio.
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

    /// Address family on the network's side.
    pub fn family(&self) -> Family {
        self.key[WIRE].family
    }

    /// IP protocol number on the network's side.
    pub fn protocol(&self) -> u8 {
        self.key[WIRE].protocol
    }

    /// The sides of a packet that travels in `direction`: who sent it and who gets it.
    pub(crate) fn peers_mut(&mut self, direction: Direction) -> (&mut Peer, &mut Peer) {
        if direction == self.direction {
            (&mut self.src, &mut self.dst)
        } else {
            (&mut self.dst, &mut self.src)
        }
    }

    /// Whether its packets cross to the other family. One state stands for both sides then, and
    /// only packets that come in have to do with it.
    pub(crate) fn crosses(&self) -> bool {
        self.key[WIRE].family != self.key[STACK].family
    }

    /// The direction in which a packet goes through the state: what comes in from the other family
    /// goes against the one that made it.
    pub(crate) fn direction_of(&self, packet: &Descriptor) -> Direction {
        if packet.family == self.key[WIRE].family {
            packet.direction
        } else {
            packet.direction.opposite()
        }
    }

    /// The ends under which the other side knows a packet, if those are others.
    pub(crate) fn far_ends(&self, packet: &Descriptor) -> Option<Ends> {
        if self.key[WIRE] == self.key[STACK] {
            return None;
        }
        let side = if self.direction_of(packet) == Direction::In { STACK } else { WIRE };
        // on the side that a packet crosses to it goes out
        let crossed = if self.crosses() { Direction::Out } else { packet.direction };
        Some(Ends::of_key(&self.key[side], crossed))
    }

    /// The ends that the packet that made it has got.
    pub(crate) fn first_ends(&self) -> Ends {
        let side = if self.direction == Direction::In { STACK } else { WIRE };
        let direction = if self.crosses() { Direction::Out } else { self.direction };
        Ends::of_key(&self.key[side], direction)
    }

    /// 0 for a packet in the state's direction, 1 for one against it.
    pub(crate) fn way(&self, direction: Direction) -> usize {
        usize::from(direction != self.direction)
    }

    /// The last packet made it live on, with this class of timeout from now on.
    pub(crate) fn refresh(&mut self, now: u32, timeout: Timeout) {
        self.refreshed_at = now;
        self.timeout = timeout;
    }

    /// It is over: it waits to be removed, and until then nobody finds it.
    pub(crate) fn end(&mut self) {
        self.purge = true;
        (self.src.state, self.dst.state) = (tcp_state::CLOSED, tcp_state::CLOSED);
    }

    /// Whether a new state made in `direction` cannot have this key of this one's as well. To the
    /// far side of a state that crosses families only those made outbound are in the way.
    fn is_in_the_way(&self, key: &Key, direction: Direction) -> bool {
        (self.family() == key.family) == (self.direction == direction)
    }

    /// Both sides closed so far that a new connection may take the same ports.
    pub(crate) fn reusable(&self) -> bool {
        self.protocol() == protocol::TCP
            && self.src.state >= tcp_state::FIN_WAIT_2
            && self.dst.state >= tcp_state::FIN_WAIT_2
    }
}

/// All states.
#[derive(Debug, Clone, Default)]
pub(crate) struct StateTable {
    states: BTreeMap<StateId, State>,
    /// States of each key; those bound to an interface stand before floating ones.
    by_key: HashMap<Key, Vec<StateId>>,
    last_id: StateId,
}

/// A state with the same key, interface and direction is there already.
/// This one is not put in.
#[derive(Debug)]
pub(crate) struct Collision(pub Box<State>);

impl StateTable {
    /// Finds the state of a packet in `direction` on `interface`. A state whose packets cross to
    /// the other family has only such that come in, on either side.
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

    /// Whether a state that packets on `interface` can find has the key on this side. PF looks at
    /// states that are bound to other interfaces too; the data plane has no way to them.
    pub fn has(&self, key: &Key, side: usize, interface: &str) -> bool {
        self.by_key.get(key).into_iter().flatten().any(|id| {
            let state = &self.states[id];
            state.interface.as_deref().is_none_or(|bound| bound == interface)
                && state.key[side] == *key
        })
    }

    /// Puts a state in, with its number. A closed TCP connection makes way for a new one with the
    /// same addresses and ports on one side, and is put among the replaced. If several are in the
    /// way, as those whose packets cross families may be, the last one goes, and the others are
    /// closed for good: PF looks at one after the other until one is not closed. One that does not
    /// cross goes in any case, which PF would leave there, to have the packets of the new one.
    pub fn insert(
        &mut self,
        mut state: State,
        replaced: &mut Vec<StateId>,
    ) -> Result<StateId, Collision> {
        for key in distinct(&state.key) {
            let (mut last, mut plain) = (None, None);
            for id in self.by_key.get(&key).into_iter().flatten() {
                let old = self.states.get_mut(id).expect("keys lead to states");
                if old.interface != state.interface || !old.is_in_the_way(&key, state.direction) {
                    continue;
                }
                if !old.reusable() {
                    return Err(Collision(Box::new(state)));
                }
                (old.src.state, old.dst.state) = (tcp_state::CLOSED, tcp_state::CLOSED);
                last = Some(*id);
                plain = plain.or(last.filter(|_| !old.crosses()));
            }
            for old in plain.into_iter().chain(last.filter(|_| last != plain)) {
                self.unlink(old);
                replaced.push(old);
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

    /// Takes a state out of the search; it is counted among the states until it is removed.
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

    /// Removes a state for good.
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

    /// The same, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut State> {
        self.states.values_mut()
    }

    /// How many there are, those that wait for the purge included.
    pub fn len(&self) -> u32 {
        self.states.len() as u32
    }

    /// All states in order of creation, those that wait for the purge included.
    pub fn iter(&self) -> impl Iterator<Item = &State> {
        self.states.values()
    }
}

/// The keys of a state without repetition: without translation both sides have the same.
fn distinct(keys: &[Key; 2]) -> impl Iterator<Item = Key> + use<> {
    let second = Some(keys[STACK]).filter(|key| *key != keys[WIRE]);
    std::iter::once(keys[WIRE]).chain(second)
}

//! States as userland sees them.

use std::collections::{BTreeMap, HashMap};

use skipstep_abi as abi;
use skipstep_abi::pool::route_kind;
use skipstep_abi::source::node_use;
use skipstep_abi::state::{STACK, WIRE, state_flags, timeout};
use skipstep_classifier::Names;
use skipstep_ruleset::{Direction, Family, RouteKind, RuleId, Timeout};
use skipstep_views::{NextHop, Peer, StateView, other_sides};

use crate::error::Result;
use crate::kept_rules;
use crate::object::{Maps, Programs};
use crate::record::OrphanedRule;

/// A state with its index.
pub struct Found {
    /// Index and serial number.
    pub kill: abi::Kill,
    /// Slot of the rule that made the state.
    pub rule_slot: u32,
    /// The state as userland shows it.
    pub view: StateView,
}

/// Returns all states, in order of creation.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn list(maps: &Maps, names: &Names) -> Result<Vec<Found>> {
    let status: abi::Status = maps.shared_status.element(0);
    let config = maps.shared_configs.element(abi::limits::copy_of(status.generation));
    let clock = Clock { config, states: status.states };
    // few rules make most states, so read each rule once
    let mut rules: HashMap<u32, abi::RuleStates> = HashMap::new();
    let mut found: Vec<Found> = kept(maps)?
        .filter(|(_, kept)| kept.state.timeout < timeout::DETACHED)
        .map(|(index, kept)| {
            let abi::State { serial, rule_slot, .. } = kept.state;
            let rule = rules.entry(rule_slot).or_insert_with(|| rule_states(maps, rule_slot));
            let kill = abi::Kill { index, serial };
            Found { kill, rule_slot, view: view(maps, names, &clock, &kept, rule) }
        })
        .collect();
    found.sort_by_key(|found| found.view.id);
    Ok(found)
}

/// Returns the stable identities of orphaned rules, by the ids of their states.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn identities_of_orphans(
    maps: &Maps,
    orphans: &BTreeMap<u32, OrphanedRule>,
) -> Result<HashMap<u64, String>> {
    let identity = |state: abi::State| {
        // the rule in a slot may be a new one
        let is_orphaned = rule_number(maps, state.rule_slot).is_none();
        let orphan = orphans.get(&state.rule_slot).filter(|_| is_orphaned)?;
        Some((state.id, orphan.identity()?))
    };
    Ok(kept(maps)?.filter_map(|(_, kept)| identity(kept.state)).collect())
}

/// Returns the states with their extensions, by their indexes.
pub(crate) fn kept(maps: &Maps) -> Result<impl Iterator<Item = (u32, abi::KeptState)>> {
    let abi::Status { states_used, flushing, .. } = maps.status.at(0)?;
    let flushes = if flushing == 0 { HashMap::new() } else { flushes(maps)? };
    let states = (0..).zip(maps.states.first(states_used)?).filter(|(_, state)| state.in_use());
    Ok(states.map(move |(index, mut state)| {
        end_flushed(&mut state, &flushes);
        let has_extension = state.flags & state_flags::EXTENSION != 0;
        // an extension that was deleted meanwhile counts as none
        let extension = has_extension.then(|| maps.extensions.get(&index).ok().flatten()).flatten();
        (index, abi::KeptState { state, extension: extension.unwrap_or_default() })
    }))
}

/// Returns the sources whose states end, with the id of the first state that stays.
fn flushes(maps: &Maps) -> Result<HashMap<abi::Flush, u64>> {
    let mut flushes = HashMap::new();
    for key in maps.flushes.keys() {
        if let Some(flushed) = maps.flushes.get(&key)? {
            flushes.insert(key, flushed.before);
        }
    }
    Ok(flushes)
}

/// Ends a state whose source was flushed, as the data plane does at the next lookup.
fn end_flushed(state: &mut abi::State, flushes: &HashMap<abi::Flush, u64>) {
    let key = &state.key[WIRE];
    let is_flushed = [0, 1].into_iter().any(|side| {
        [state.rule_slot, abi::limits::IDLE_SLOT].into_iter().any(|rule_slot| {
            let (address, family) = (key.address[side], key.family);
            let flush = abi::Flush { address, rule_slot, family, side: side as u8, pad: [0; 2] };
            flushes.get(&flush).is_some_and(|before| state.id < *before)
        })
    });
    if is_flushed && state.timeout < timeout::PURGE {
        state.timeout = timeout::PURGE;
        (state.src.state, state.dst.state) = (0, 0);
    }
}

/// The states of a forwarded connection that are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// The chosen state.
    One,
    /// Also the state on the connection's other interface (FreeBSD's `pfctl -M`).
    Both,
}

/// Removes the states that `wanted` accepts. Returns the number of states that still existed.
///
/// # Errors
/// Fails if a map cannot be read, or if the program cannot run.
pub fn kill(
    maps: &Maps,
    programs: &Programs,
    names: &Names,
    sides: Sides,
    mut wanted: impl FnMut(&Found) -> bool,
) -> Result<u64> {
    let states = list(maps, names)?;
    let mut chosen: Vec<bool> = states.iter().map(&mut wanted).collect();
    if sides == Sides::Both {
        for place in other_sides(states.iter().map(|found| &found.view), &chosen) {
            chosen[place] = true;
        }
    }
    let mut killed = 0;
    for (found, _) in states.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen) {
        killed += u64::from(programs.kill.call(&found.kill)?);
    }
    Ok(killed)
}

/// The inputs of a state's timeout beside the state: settings and number of states.
struct Clock {
    config: abi::Config,
    states: u32,
}

impl Clock {
    /// Returns the seconds from the last packet of `state` to its expiry (pf-semantics section 2).
    fn timeout(&self, state: &abi::State, rule: &abi::RuleStates) -> u32 {
        let index = usize::from(state.timeout);
        let own = rule.timeouts.get(index).copied().unwrap_or(0);
        let seconds =
            if own != 0 { own } else { self.config.timeouts.get(index).copied().unwrap_or(0) };
        let (timeouts, count) = if rule.timeouts[timeout::ADAPTIVE_START] != 0 {
            (&rule.timeouts, rule.current)
        } else {
            (&self.config.timeouts, self.states)
        };
        let (start, end) = (timeouts[timeout::ADAPTIVE_START], timeouts[timeout::ADAPTIVE_END]);
        if end == 0 || count <= start || start >= end {
            return seconds;
        }
        if count >= end {
            return 0;
        }
        (u64::from(seconds) * u64::from(end - count) / u64::from(end - start)) as u32
    }
}

/// True if a lookup still finds a state's source node; a removed node only waits for its states.
fn is_known(maps: &Maps, place: u32) -> bool {
    let node = place.checked_sub(1).and_then(|index| maps.source_nodes.at(index).ok());
    node.is_some_and(|node| node.r#use == node_use::USED)
}

/// Returns the rule's entry for its states.
fn rule_states(maps: &Maps, slot: u32) -> abi::RuleStates {
    maps.shared_rule_states.element(slot)
}

fn view(
    maps: &Maps,
    names: &Names,
    clock: &Clock,
    kept: &abi::KeptState,
    rule: &abi::RuleStates,
) -> StateView {
    let abi::KeptState { state, extension } = kept;
    let key = &state.key[WIRE];
    StateView {
        id: state.id,
        protocol: key.protocol,
        family: if key.family == abi::INET { Family::Inet } else { Family::Inet6 },
        direction: match state.direction {
            abi::verdict::direction::IN => Direction::In,
            _ => Direction::Out,
        },
        interface: names.interfaces.name(key.interface).map(str::to_owned),
        rule: rule_number(maps, state.rule_slot)
            .map(|number| RuleId::new(names.anchors.name(rule.anchor).unwrap_or_default(), number)),
        anchor_rule: rule_number(maps, state.anchor_slot),
        rdomain: key.rdomain,
        wire: sides(&state.key[WIRE]),
        stack: sides(&state.key[STACK]),
        src: peer(&state.src),
        dst: peer(&state.dst),
        timeout: Timeout::ALL.get(usize::from(state.timeout)).copied().unwrap_or(Timeout::TcpFirst),
        created_at: state.creation,
        expires_at: state.expire.saturating_add(clock.timeout(state, rule)),
        packets: state.packets,
        bytes: state.bytes,
        flags: state.flags as u16,
        min_ttl: state.min_ttl,
        max_mss: state.max_mss,
        tag: names.tags.name(u32::from(state.tag)).map(str::to_owned),
        tracked: extension.source_nodes.iter().any(|place| is_known(maps, *place)),
        route: next_hop(extension, names),
    }
}

fn next_hop(extension: &abi::Extension, names: &Names) -> Option<NextHop> {
    let kind = match extension.route {
        route_kind::ROUTE_TO => RouteKind::RouteTo,
        route_kind::DUP_TO => RouteKind::DupTo,
        route_kind::REPLY_TO => RouteKind::ReplyTo,
        _ => return None,
    };
    let interface = names.interfaces.name(extension.hop_interface).map(str::to_owned);
    Some(NextHop {
        kind,
        address: abi::address_from(extension.hop_family, extension.next_hop),
        interface,
    })
}

/// Returns the number of the rule in a slot; `None` if the rule is orphaned or the slot has no
/// rule.
fn rule_number(maps: &Maps, slot: u32) -> Option<u32> {
    if slot == abi::limits::IDLE_SLOT {
        return None;
    }
    kept_rules::number(maps, slot)
}

fn sides(key: &abi::StateKey) -> [(std::net::IpAddr, u16); 2] {
    [0, 1].map(|side| {
        (abi::address_from(key.family, key.address[side]), u16::from_be_bytes(key.port[side]))
    })
}

fn peer(peer: &abi::Peer) -> Peer {
    Peer {
        state: peer.state,
        seqlo: peer.seqlo,
        seqhi: peer.seqhi,
        seqdiff: peer.seqdiff,
        max_win: peer.max_win,
        wscale: peer.wscale,
    }
}

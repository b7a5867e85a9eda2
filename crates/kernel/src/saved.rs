//! Saved states: the form in which `pfctl -S` saves states and `-L` restores them. Names replace
//! the numbers of this instance, and ages replace the seconds of a clock that restarts at boot.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::state::{STACK, WIRE, log_flags, made, state_flags, tcp_state, timeout};
use skipstep_abi::verdict::action;
use skipstep_abi::{address_bytes, limits};
use skipstep_ruleset::{Direction, Family, LegacyKind, RuleId, Timeout};
use skipstep_wire::protocol;

use crate::error::Result;
use crate::instance::Instance;
use crate::record::{Memory, Record};
use crate::state;

/// A state in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// Id of the state, which it keeps.
    pub id: u64,
    /// Address family on the network's side.
    pub family: Family,
    /// IP protocol number, on the network's side.
    pub protocol: u8,
    /// Direction of the packet that made the state.
    pub direction: Direction,
    /// Interface that the state is bound to; `None` if it floats.
    pub interface: Option<String>,
    /// Rule that made the state.
    pub rule: Option<RuleId>,
    /// Routing domain of its packets.
    #[serde(default)]
    pub rdomain: u32,
    /// Key on the network's side: addresses and ports (host byte order).
    pub wire: [(IpAddr, u16); 2],
    /// Key on the host's side: addresses and ports (host byte order).
    pub stack: [(IpAddr, u16); 2],
    /// Peer that initiated the connection.
    pub source: SavedPeer,
    /// The other peer.
    pub destination: SavedPeer,
    /// Class of its timeout, named as in pf.conf.
    pub timeout: String,
    /// Seconds since the state was made.
    pub age: u32,
    /// Seconds since its last packet.
    pub idle: u32,
    /// Packets in its direction and against it.
    pub packets: [u64; 2],
    /// Bytes in its direction and against it.
    pub bytes: [u64; 2],
    /// `PFSTATE_*`
    pub flags: u32,
    /// n of the pflogN that gets every packet; `None` if packets are not logged.
    pub log_all: Option<u8>,
    /// True if the log has the owner of the socket (`log (user)`).
    #[serde(default)]
    pub log_user: bool,
    /// `set prio`
    pub set_prio: [u8; 2],
    /// `set tos`
    pub set_tos: u8,
    /// `min-ttl`
    pub min_ttl: u8,
    /// `max-mss`
    pub max_mss: u16,
    /// Tag of its packets.
    pub tag: Option<String>,
    /// `set queue`: the queue, and the queue for `lowdelay` packets and empty ACKs.
    #[serde(default)]
    pub queues: [Option<String>; 2],
    /// `set delay` in milliseconds, 0 for none.
    #[serde(default)]
    pub delay: u16,
    /// Longest packet in bytes, 0 for no limit.
    #[serde(default)]
    pub max_pkt_size: u16,
    /// Largest MSS that both sides support, for the handshakes of `synproxy state`.
    #[serde(default)]
    pub proxy_mss: u16,
    /// `rtable`, in the data plane's encoding.
    #[serde(default)]
    pub rtable: u16,
    /// `enum pf_route_kind` and the next hop.
    #[serde(default)]
    pub route: Option<(u8, IpAddr)>,
    /// Interface of the next hop, if the rule names one.
    #[serde(default)]
    pub hop_interface: Option<String>,
    /// Anchor rule that led to the rule.
    #[serde(default)]
    pub anchor_rule: Option<RuleId>,
    /// `match` rules that count its packets.
    #[serde(default)]
    pub matches: Vec<SavedMatch>,
    /// Timestamps of the initiator and of the other peer, for `reassemble tcp`.
    #[serde(default)]
    pub timestamps: [Option<SavedTimestamps>; 2],
}

/// A `match` rule that counts the packets of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedMatch {
    /// Anchor and number of the rule.
    pub rule: RuleId,
    /// n of the pflogN that gets every packet; `None` if packets are not logged.
    pub log_all: Option<u8>,
    /// True if the log has the owner of the socket (`log (user)`).
    pub log_user: bool,
}

/// TCP timestamps of a peer, for `reassemble tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTimestamps {
    /// Offset added to the peer's timestamps.
    pub offset: u32,
    /// Latest timestamp of the peer.
    pub value: u32,
    /// First timestamp of the peer.
    pub first: u32,
    /// Latest timestamp that the peer echoed.
    pub echo: u32,
    /// Seconds since the latest timestamp.
    pub age: u32,
    /// `PFSS_*`
    pub flags: u16,
    /// Highest TTL of the peer's packets.
    pub ttl: u8,
}

/// One peer of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPeer {
    /// State of the peer (`PF_TCPS_*` and its like).
    pub state: u8,
    /// Highest sequence number seen.
    pub seqlo: u32,
    /// Highest sequence number that the other peer allows.
    pub seqhi: u32,
    /// Offset added to the peer's sequence numbers.
    pub seqdiff: u32,
    /// Largest window, unscaled.
    pub window: u16,
    /// Window scale (`PF_WSCALE_MASK`), with the bit `PF_WSCALE_FLAG` if the peer offered one.
    pub wscale: u8,
}

impl Instance {
    /// Returns all states in the form for a file, in order of creation.
    ///
    /// # Errors
    /// Fails if the maps or records cannot be read.
    pub fn save_states(&self) -> Result<Vec<SavedState>> {
        let (memory, record, now) = (self.run.memory()?, self.record()?, self.uptime()?);
        let states = state::kept(&self.maps)?;
        let alive = states.filter(|(_, kept)| kept.state.timeout < timeout::PURGE);
        let mut saved: Vec<_> =
            alive.map(|(_, kept)| SavedState::from_kept(&kept, &memory, &record, now)).collect();
        saved.sort_by_key(|state| state.id);
        Ok(saved)
    }

    /// Restores states. Returns the number of states restored. Skips a state whose key is taken,
    /// for which there is no room, or whose interface is unknown. With `same_rules`, states belong
    /// to their rules again, or else to no rule.
    ///
    /// # Errors
    /// Fails if the records cannot be read, or if the program of the kernel cannot run.
    pub fn restore_states(&self, saved: &[SavedState], same_rules: bool) -> Result<u64> {
        let (memory, record, now) = (self.run.memory()?, self.record()?, self.uptime()?);
        let mut placed = 0;
        for saved in saved {
            if let Some(state) = saved.restored(&memory, &record, same_rules, now) {
                placed += u64::from(self.programs.restore.call(&state)? > 0);
            }
        }
        Ok(placed)
    }
}

impl SavedState {
    /// Converts a state at second `now` into its form for a file.
    pub fn from_kept(
        kept: &abi::KeptState,
        memory: &Memory,
        record: &Record,
        now: u32,
    ) -> SavedState {
        let abi::KeptState { state, extension } = kept;
        let key = &state.key[WIRE];
        let sides = |key: &abi::StateKey| {
            [0, 1].map(|side| {
                (
                    abi::address_from(key.family, key.address[side]),
                    u16::from_be_bytes(key.port[side]),
                )
            })
        };
        SavedState {
            id: state.id,
            family: if key.family == abi::INET { Family::Inet } else { Family::Inet6 },
            protocol: key.protocol,
            direction: match state.direction {
                abi::verdict::direction::IN => Direction::In,
                _ => Direction::Out,
            },
            interface: memory.names.interfaces.name(key.interface).map(str::to_owned),
            rule: record.rule_in(state.rule_slot),
            rdomain: key.rdomain,
            wire: sides(&state.key[WIRE]),
            stack: sides(&state.key[STACK]),
            source: save_peer(&state.src),
            destination: save_peer(&state.dst),
            timeout: Timeout::ALL
                .get(usize::from(state.timeout))
                .map_or_else(String::new, |timeout| timeout.name().to_owned()),
            age: now.saturating_sub(state.creation),
            idle: now.saturating_sub(state.expire),
            packets: state.packets,
            bytes: state.bytes,
            // the endpoint mapping and the socket are not saved, and routing flags are computed
            // again
            flags: state.flags
                & !(state_flags::MAPPED
                    | state_flags::SIMPLE
                    | state_flags::EXTENSION
                    | state_flags::SOCKET),
            log_all: (state.log & log_flags::ALL != 0).then_some(state.log_to),
            log_user: state.log & log_flags::USER != 0,
            set_prio: state.set_prio,
            set_tos: state.set_tos,
            min_ttl: state.min_ttl,
            max_mss: state.max_mss,
            tag: memory.names.tags.name(u32::from(state.tag)).map(str::to_owned),
            queues: state
                .queue
                .map(|queue| memory.names.queues.name(u32::from(queue)).map(str::to_owned)),
            delay: extension.delay,
            max_pkt_size: extension.max_pkt_size,
            proxy_mss: extension.proxy_mss,
            rtable: extension.rtable,
            route: (extension.route != 0).then(|| {
                (extension.route, abi::address_from(extension.hop_family, extension.next_hop))
            }),
            hop_interface: memory.names.interfaces.name(extension.hop_interface).map(str::to_owned),
            anchor_rule: record.rule_in(state.anchor_slot),
            matches: extension.r#match
                [..(extension.match_count as usize).min(extension.r#match.len())]
                .iter()
                .filter_map(|rule| save_match(rule, record))
                .collect(),
            timestamps: extension.scrub.map(|scrub| save_timestamps(&scrub, now)),
        }
    }

    /// Returns the state at second `now`. Returns `None` if it is bound to an unknown interface, or
    /// if its timeout has an unknown name. With `same_rules` it belongs to its rules again.
    pub fn restored(
        &self,
        memory: &Memory,
        record: &Record,
        same_rules: bool,
        now: u32,
    ) -> Option<abi::KeptState> {
        let saved = self;
        let known = |name: &Option<String>| match name {
            Some(name) => memory.names.interfaces.get(name),
            None => Some(0),
        };
        let (interface, hop_interface) = (known(&saved.interface)?, known(&saved.hop_interface)?);
        let timeout = Timeout::ALL.iter().position(|timeout| timeout.name() == saved.timeout)?;
        let direction = match saved.direction {
            Direction::In => abi::verdict::direction::IN,
            Direction::Out => abi::verdict::direction::OUT,
        };
        let sides = [saved.wire, saved.stack];
        let crosses = sides[WIRE][0].0.is_ipv4() != sides[STACK][0].0.is_ipv4();
        let far_protocol = match saved.protocol {
            protocol::ICMP if crosses => protocol::ICMP6,
            protocol::ICMP6 if crosses => protocol::ICMP,
            same => same,
        };
        let key = |side: usize| abi::StateKey {
            address: sides[side].map(|(address, _)| address_bytes(address)),
            port: sides[side].map(|(_, port)| port.to_be_bytes()),
            interface,
            rdomain: saved.rdomain,
            made: match (crosses, side) {
                (true, WIRE) => made::NEAR,
                (true, _) => made::FAR,
                _ if saved.wire == saved.stack => made::PLAIN,
                _ => direction,
            },
            family: if sides[side][0].0.is_ipv4() { abi::INET } else { abi::INET6 },
            protocol: if side == WIRE { saved.protocol } else { far_protocol },
            pad: 0,
        };
        let slot_of = |rule: &Option<RuleId>| {
            let slot = rule.as_ref().filter(|_| same_rules).and_then(|rule| record.slot_of(rule));
            slot.unwrap_or(limits::IDLE_SLOT)
        };
        let queue = |name: &Option<String>| {
            name.as_ref().and_then(|name| memory.names.queues.get(name)).unwrap_or(0) as u16
        };
        let mut matched = [abi::MatchRule::default(); limits::MATCH_RULES];
        let known = saved.matches.iter().filter_map(|saved| {
            let slot = slot_of(&Some(saved.rule.clone()));
            (slot != limits::IDLE_SLOT).then(|| abi::MatchRule {
                slot,
                log: log(saved.log_all, saved.log_user),
                log_to: saved.log_all.unwrap_or(0),
                action: match saved.rule.old {
                    Some(LegacyKind::Nat) => action::NAT,
                    Some(LegacyKind::Rdr) => action::RDR,
                    Some(LegacyKind::Binat) => action::BINAT,
                    _ => action::MATCH,
                },
                ..abi::MatchRule::default()
            })
        });
        let match_count = matched.iter_mut().zip(known).map(|(place, rule)| *place = rule).count();
        let extension = abi::Extension {
            delay: saved.delay,
            max_pkt_size: saved.max_pkt_size,
            proxy_mss: saved.proxy_mss,
            rtable: saved.rtable,
            route: saved.route.map_or(0, |(kind, _)| kind),
            next_hop: saved.route.map_or([0; 16], |(_, address)| address_bytes(address)),
            hop_family: saved.route.map_or(0, |(_, address)| match address {
                IpAddr::V4(_) => abi::INET,
                IpAddr::V6(_) => abi::INET6,
            }),
            hop_interface,
            match_count: match_count as u32,
            r#match: matched,
            scrub: saved.timestamps.map(|saved| restored_timestamps(saved, now)),
            ..abi::Extension::default()
        };
        // these states get an extension in any case: packets cross families, timestamps are
        // checked, flows are reported, or a handshake of synproxy is not complete (also one by
        // cookie, without a rule's synproxy)
        let wants_extension = crosses
            || saved.protocol == protocol::TCP && saved.source.state >= tcp_state::PROXY_SRC
            || saved.flags & (state_flags::REASSEMBLE_TCP | state_flags::PFLOW) != 0
            || extension != abi::Extension::default();
        let state = abi::State {
            id: saved.id,
            key: [key(WIRE), key(STACK)],
            src: restored_peer(&saved.source),
            dst: restored_peer(&saved.destination),
            packets: saved.packets,
            bytes: saved.bytes,
            creation: now.saturating_sub(saved.age),
            expire: now.saturating_sub(saved.idle),
            rule_slot: slot_of(&saved.rule),
            anchor_slot: slot_of(&saved.anchor_rule),
            flags: saved.flags | if wants_extension { state_flags::EXTENSION } else { 0 },
            timeout: timeout as u8,
            direction,
            log: log(saved.log_all, saved.log_user),
            log_to: saved.log_all.unwrap_or(0),
            set_prio: saved.set_prio,
            set_tos: saved.set_tos,
            min_ttl: saved.min_ttl,
            max_mss: saved.max_mss,
            tag: saved.tag.as_ref().and_then(|tag| memory.names.tags.get(tag)).unwrap_or(0) as u16,
            queue: [queue(&saved.queues[0]), queue(&saved.queues[1])],
            ..abi::State::default()
        };
        Some(abi::KeptState { state, extension })
    }
}

fn save_match(matched: &abi::MatchRule, record: &Record) -> Option<SavedMatch> {
    Some(SavedMatch {
        rule: record.rule_in(matched.slot)?,
        log_all: (matched.log & log_flags::ALL != 0).then_some(matched.log_to),
        log_user: matched.log & log_flags::USER != 0,
    })
}

fn save_timestamps(scrub: &abi::Scrub, now: u32) -> Option<SavedTimestamps> {
    (scrub.present != 0).then(|| SavedTimestamps {
        offset: scrub.offset,
        value: scrub.value,
        first: scrub.first,
        echo: scrub.echo,
        age: now.saturating_sub(scrub.last),
        flags: scrub.flags,
        ttl: scrub.ttl,
    })
}

/// Returns the log flags of a state whose packets are all logged.
fn log(all: Option<u8>, user: bool) -> u8 {
    (if all.is_some() { log_flags::ALL } else { 0 }) | (if user { log_flags::USER } else { 0 })
}

fn save_peer(peer: &abi::Peer) -> SavedPeer {
    SavedPeer {
        state: peer.state,
        seqlo: peer.seqlo,
        seqhi: peer.seqhi,
        seqdiff: peer.seqdiff,
        window: peer.max_win,
        wscale: peer.wscale,
    }
}

fn restored_timestamps(saved: Option<SavedTimestamps>, now: u32) -> abi::Scrub {
    saved.map_or_else(abi::Scrub::default, |saved| abi::Scrub {
        offset: saved.offset,
        value: saved.value,
        first: saved.first,
        echo: saved.echo,
        last: now.saturating_sub(saved.age),
        flags: saved.flags,
        ttl: saved.ttl,
        present: 1,
    })
}

fn restored_peer(peer: &SavedPeer) -> abi::Peer {
    abi::Peer {
        seqlo: peer.seqlo,
        seqhi: peer.seqhi,
        seqdiff: peer.seqdiff,
        max_win: peer.window,
        state: peer.state,
        wscale: peer.wscale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a state made 100 seconds ago by rule 1, whose last packet came 5 seconds ago.
    fn state(record: &Record, memory: &mut Memory) -> abi::KeptState {
        let address = |text: &str| address_bytes(text.parse().unwrap());
        let key = abi::StateKey {
            address: [address("10.0.0.1"), address("192.0.2.1")],
            port: [1025u16.to_be_bytes(), 443u16.to_be_bytes()],
            interface: memory.names.interfaces.number("em0").unwrap(),
            rdomain: 7,
            made: 0,
            family: abi::INET,
            protocol: 6,
            pad: 0,
        };
        let state = abi::State {
            id: 0x6555_77a0_0000_0001,
            key: [key, key],
            src: abi::Peer { seqlo: 7, seqhi: 9, wscale: 0x87, state: 4, ..abi::Peer::default() },
            packets: [3, 2],
            bytes: [300, 200],
            creation: 900,
            expire: 995,
            rule_slot: record.slot_of(&RuleId::from(1)).unwrap(),
            flags: state_flags::SLOPPY | state_flags::EXTENSION,
            timeout: timeout::TCP_ESTABLISHED as u8,
            direction: abi::verdict::direction::IN,
            tag: memory.names.tags.number("web").unwrap() as u16,
            max_mss: 1400,
            queue: [0, memory.names.queues.number("bulk").unwrap() as u16],
            anchor_slot: record.slot_of(&RuleId::from(0)).unwrap(),
            ..abi::State::default()
        };
        let extension = abi::Extension {
            max_pkt_size: 900,
            delay: 30,
            rtable: 3,
            route: 1,
            next_hop: address("10.0.0.254"),
            hop_family: abi::INET,
            hop_interface: memory.names.interfaces.number("em1").unwrap(),
            match_count: 1,
            r#match: std::array::from_fn(|at| match at {
                0 => abi::MatchRule {
                    slot: 4,
                    log: log_flags::ALL,
                    log_to: 3,
                    action: action::MATCH,
                    pad: 0,
                },
                _ => abi::MatchRule::default(),
            }),
            scrub: [
                abi::Scrub { offset: 77, last: 990, flags: 0x11, present: 1, ..Default::default() },
                abi::Scrub::default(),
            ],
            ..abi::Extension::default()
        };
        abi::KeptState { state, extension }
    }

    fn record(slots: &[u32]) -> Record {
        let set = crate::record::RuleSetRecord { slots: slots.to_vec(), ..Default::default() };
        Record { rule_sets: [(String::new(), set)].into(), ..Record::default() }
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let (record, mut memory) = (record(&[4, 5]), Memory::default());
        let state = state(&record, &mut memory);
        let saved = SavedState::from_kept(&state, &memory, &record, 1000);
        assert_eq!((saved.age, saved.idle, saved.timeout.as_str()), (100, 5, "tcp.established"));
        assert_eq!(saved.restored(&memory, &record, true, 1000), Some(state));
    }

    #[test]
    fn ordinary_states_have_no_extension() {
        let (record, mut memory) = (record(&[4, 5]), Memory::default());
        let mut plain = state(&record, &mut memory);
        plain.extension = abi::Extension::default();
        plain.state.flags = state_flags::SLOPPY;
        let has_extension = |plain: &abi::KeptState| {
            let saved = SavedState::from_kept(plain, &memory, &record, 1000);
            let restored = saved.restored(&memory, &record, true, 1000).unwrap();
            restored.state.flags & state_flags::EXTENSION != 0
        };
        assert!(!has_extension(&plain));
        let mut checked = plain;
        checked.state.flags = state_flags::REASSEMBLE_TCP;
        assert!(has_extension(&checked));
        let mut of_cookie = plain;
        of_cookie.state.src.state = tcp_state::PROXY_DST;
        assert!(has_extension(&of_cookie));
    }

    #[test]
    fn another_machine_has_another_clock_and_other_rules() {
        let (record_before, mut memory) = (record(&[4, 5]), Memory::default());
        let state = state(&record_before, &mut memory);
        let saved = SavedState::from_kept(&state, &memory, &record_before, 1000);
        let later = saved.restored(&memory, &record(&[7, 8]), true, 50).unwrap();
        let abi::State { creation, expire, rule_slot, .. } = later.state;
        assert_eq!((creation, expire, rule_slot), (0, 45, 8));
        let other = saved.restored(&memory, &record(&[7, 8]), false, 50).unwrap();
        let abi::State { rule_slot, anchor_slot, .. } = other.state;
        assert_eq!((rule_slot, anchor_slot), (limits::IDLE_SLOT, limits::IDLE_SLOT));
        let (later, other) = (later.extension, other.extension);
        assert_eq!((later.match_count, later.r#match[0].slot, other.match_count), (1, 7, 0));
        assert_eq!((later.scrub[0].last, later.scrub[0].offset), (40, 77));
        assert_eq!(saved.restored(&Memory::default(), &record(&[]), true, 50), None);
    }
}

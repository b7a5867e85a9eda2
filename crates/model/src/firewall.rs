//! The firewall: its rules, states and counters, and the order of steps for each packet
//! (pf-semantics section 3).

use std::net::IpAddr;
use std::sync::Arc;

use skipstep_reassembly::Reassembler;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Family, Reason, RuleId, Ruleset, TableName, Unattached};
use skipstep_views::{InterfaceCounters, NodeKind, RuleCounters, Status};
use skipstep_wire::checksum;

use crate::counters::{Counters, TableCounters};
use crate::endpoint::Endpoints;
use crate::fate::{Carried, Decision, Diverted, Fate, Packet, Verdict};
use crate::journal::Journal;
use crate::limiter::{LimiterState, Limiters};
use crate::packet::{Descriptor, Malformed};
use crate::pool::Pools;
use crate::rulebook::{Entry, Rulebook};
use crate::source_node::{SourceNode, SourceNodes};
use crate::state::{State, StateId, StateTable};
use crate::syncookie::Cookies;
use crate::timeout::{self, StateCounts};
use crate::trace::{Stage, Trace, Tracer};
use crate::world::{Draw, World};

/// A running firewall.
///
/// ```
/// use skipstep_model::{Carried, Firewall, LinkHeader, Packet, Verdict};
/// use skipstep_ruleset::Direction;
/// use skipstep_ruleset::interface::{Host, Interface};
/// use skipstep_wire::build::{Tcp, ipv4};
///
/// let em0 = Interface { name: "em0".into(), index: 1, ..Interface::default() };
/// let host = Host { interfaces: vec![em0], routes: vec![] };
/// let rules = "block\npass in on em0 proto tcp to port 22";
/// let loaded = skipstep_pfconf::load(rules, &skipstep_pfconf::Context::new(&host)).unwrap();
/// let mut firewall = Firewall::new(loaded.ruleset, host);
///
/// let mut send = |port| {
///     let syn = Tcp::new(4000, port).flags("S");
///     firewall.packet(&Packet {
///         direction: Direction::In,
///         interface: "em0".into(),
///         bytes: ipv4([10, 0, 1, 5], [10, 0, 1, 1]).tcp(&syn),
///         link: LinkHeader::default(),
///         received_on: None,
///         carried: Carried::default(),
///         owner: None,
///     })
/// };
/// assert_eq!(send(22).verdict, Verdict::Pass);
/// assert_eq!(send(23).verdict, Verdict::Drop);
/// assert_eq!(firewall.states().count(), 1);
/// ```
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

impl Firewall {
    /// Creates a firewall without states, at second 0. Each random draw returns 0.
    pub fn new(ruleset: impl Into<Arc<Ruleset>>, host: Host) -> Self {
        let ruleset = ruleset.into();
        let rulebook = Rulebook::new(&ruleset);
        let (limit, timeout) = Self::fragment_limits(&ruleset.options);
        Firewall {
            fragments: Reassembler::new(limit, timeout),
            limiters: Limiters::new(&ruleset),
            counters: Counters::new(rulebook.len()),
            rulebook: Arc::new(rulebook),
            ruleset,
            world: World { host, ..World::default() },
            states: StateTable::default(),
            sources: SourceNodes::default(),
            cookies: Cookies::default(),
            pools: Pools::default(),
            endpoints: Endpoints::default(),
        }
    }

    /// Replaces the host's interfaces and routes; rules and states stay.
    pub fn change_host(&mut self, host: Host) {
        self.world.host = host;
        self.pools.keep_tables(&self.ruleset, &self.world);
    }

    /// Sets the clock, in seconds, and removes expired states. Returns their ids, ascending.
    // Differs from OpenBSD: linux.md, "Expiry"
    // Differs from OpenBSD: linux.md, "Silent servers"
    pub fn set_time(&mut self, seconds: u32) -> Vec<StateId> {
        self.world.now = seconds;
        self.fragments.expire(seconds);
        // all expiries are computed first, because each removal lengthens adaptive timeouts
        let over: Vec<State> =
            self.states.iter().filter(|state| self.expires_at(state) <= seconds).cloned().collect();
        // the oldest state last, as in pf: its rule sets the lifetime of a source node that several
        // states shared
        for state in over.iter().rev() {
            self.remove(state);
        }
        self.turn_cookie_keys();
        self.sources.purge(seconds, &mut self.counters.status);
        self.limiters.purge(seconds);
        over.iter().filter(|state| !state.unlinked).map(|state| state.id).collect()
    }

    /// Sets the results of the following random draws.
    pub fn set_random(&mut self, draw: Draw) {
        self.world.set_random(draw);
    }

    /// Filters a packet.
    pub fn packet(&mut self, packet: &Packet) -> Fate {
        let mut journal = Journal::new(uid(packet), Tracer::default());
        self.run(packet, &mut journal)
    }

    /// Filters a packet, and also returns the steps on its way.
    pub fn explain(&mut self, packet: &Packet) -> (Fate, Trace) {
        let mut journal = Journal::new(uid(packet), Tracer::on());
        let fate = self.run(packet, &mut journal);
        (fate, journal.tracer.finish())
    }

    /// Returns all states in order of creation, except states that wait for removal.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.states.iter().filter(|state| !state.unlinked)
    }

    /// Returns the second at which a state expires without another packet; 0 if it has expired.
    pub fn expires_at(&self, state: &State) -> u32 {
        let counts = StateCounts { states: &self.states, counters: &self.counters };
        timeout::expires_at(state, self.rulebook.at(state.rule), &self.ruleset.options, &counts)
    }

    /// Returns the rule that created a state, `None` if the rule is orphaned. Also `None` if no
    /// rule matched, but a legacy rule translated the packet.
    pub fn rule_of(&self, state: &State) -> Option<RuleId> {
        self.rulebook.non_default(state.rule).filter(|rule| !rule.orphaned).map(Entry::id)
    }

    /// Returns the number of the anchor rule that called the state's rule, `None` if it is
    /// orphaned.
    pub fn anchor_rule_of(&self, state: &State) -> Option<u32> {
        state.anchor_rule.and_then(|place| self.rulebook.at(place).number())
    }

    /// Returns the counters of a rule, or of the default rule for `None`.
    pub fn rule_counters(&self, rule: Option<&RuleId>) -> RuleCounters {
        match rule {
            None => self.counters.rule(self.rulebook.default_rule().index),
            Some(id) => {
                let rule = self.rulebook.find(id);
                rule.map_or_else(RuleCounters::default, |rule| self.counters.rule(rule.index))
            }
        }
    }

    /// Returns the counters of the interface called `name`.
    pub fn interface_counters(&self, name: &str) -> InterfaceCounters {
        self.counters.interface(name)
    }

    /// Returns the counters of a table.
    pub fn table_counters(&self, name: &TableName) -> TableCounters {
        self.counters.table(name)
    }

    /// Returns the number of states to which `least-states` pools gave an address of a table.
    /// Returns `None` if they never gave it.
    pub fn states_of_address(&self, table: &TableName, address: IpAddr) -> Option<u64> {
        self.pools.load(table, address)
    }

    /// Returns the counters of the whole firewall.
    pub fn status(&self) -> Status {
        Status {
            states: self.states().count() as u64,
            sources: self.sources.iter().count() as u64,
            ..self.counters.status
        }
    }

    /// Returns the source nodes: rule (`None` if orphaned), purpose, address and node.
    pub fn sources(&self) -> impl Iterator<Item = (Option<RuleId>, NodeKind, IpAddr, &SourceNode)> {
        self.sources.iter().map(|(key, node)| {
            let rule = Some(self.rulebook.at(key.rule)).filter(|rule| !rule.orphaned);
            (rule.map(Entry::id), key.kind, key.source, node)
        })
    }

    /// Returns the limiters, state limiters first.
    pub fn limiters(&self) -> impl Iterator<Item = &LimiterState> {
        self.limiters.iter()
    }

    /// Returns the rule set in force.
    pub fn ruleset(&self) -> &Ruleset {
        &self.ruleset
    }

    pub(crate) fn run(&mut self, input: &Packet, journal: &mut Journal) -> Fate {
        if self.is_skipped(&input.interface) {
            journal.tracer.record(|| Stage::Skipped);
            return untouched(input);
        }
        if let Some(fate) = self.decide_foreign_frame(input, journal) {
            return fate;
        }
        if input.link.has_label() && self.may_keep_label(input) {
            journal.tracer.record(|| Stage::Labelled);
            return untouched(input);
        }
        if input.link.hides_packet() || input.link.has_label() {
            return self.refuse_hidden(input, journal);
        }
        let fate = match self.describe(input) {
            Ok(packet) if has_bad_checksum(input, &packet) => {
                let family = packet.family;
                let malformed = Malformed { reason: Reason::ProtoCksum, total_len: 0, family };
                self.refuse(input, malformed, journal)
            }
            Ok(packet)
                if packet.is_fragment()
                    && !is_nested(input, &packet)
                    && self.waits(input, &packet, journal) =>
            {
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

    /// Parses a packet, with the routing domain of its interface.
    pub(crate) fn describe(&self, packet: &Packet) -> Result<Descriptor, Malformed> {
        // Differs from OpenBSD: linux.md, "Routing domains"
        let rdomain = self.world.host.rdomain(&packet.interface);
        let stays_on_bridge = packet.direction == Direction::In && self.comes_by_port(packet);
        let mut descriptor = Descriptor { rdomain, stays_on_bridge, ..Descriptor::parse(packet)? };
        if self.rulebook.names_sctp_ports {
            descriptor.read_sctp_ports()?;
        }
        Ok(descriptor)
    }

    /// Decides about a frame that came in for another station's link address. Such a frame belongs
    /// to a device on top of the interface, or to no device. Returns `None` if the packet is
    /// judged, as on a port of a bridge.
    // Differs from OpenBSD: linux.md, "Frames for other stations"
    fn decide_foreign_frame(&self, input: &Packet, journal: &mut Journal) -> Option<Fate> {
        if !input.link.for_other_station
            || input.direction == Direction::Out
            || self.comes_by_port(input)
        {
            return None;
        }
        journal.tracer.record(|| Stage::ForOtherStation);
        let verdict = if input.link.tags.is_empty() { Verdict::Drop } else { Verdict::Pass };
        let carried = match verdict {
            Verdict::Pass => input.carried.clone(),
            _ => Carried::default(),
        };
        Some(Fate { verdict, carried, ..untouched(input) })
    }

    /// Returns true if a packet with an MPLS label passes unchanged: on its way out, or across a
    /// bridge. Elsewhere this host may remove the label, and nothing would judge the packet behind
    /// it.
    // Differs from OpenBSD: linux.md, "Packets inside of packets"
    fn may_keep_label(&self, input: &Packet) -> bool {
        input.direction == Direction::Out
            || self.comes_by_port(input)
            || self.ruleset.options.unattached == Unattached::Pass
    }

    fn comes_by_port(&self, input: &Packet) -> bool {
        self.world.interface(&input.interface).is_some_and(|found| found.port)
    }

    fn is_skipped(&self, name: &str) -> bool {
        let skip = &self.ruleset.options.skip;
        skip.iter().any(|skipped| {
            skipped == name
                || self
                    .world
                    .interface(name)
                    .is_some_and(|interface| interface.has_name_or_group(skipped))
        })
    }

    /// Judges a packet with sound headers, and then routes and fragments it.
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
            self.fragment_again(input, family, &mut fate, journal);
        }
        fate
    }

    /// Decides about a packet and carries out the decision, without routing.
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
}

/// Returns the user that owns the packet's socket.
fn uid(packet: &Packet) -> Option<u32> {
    packet.owner.map(|owner| owner.uid)
}

/// Returns the fate of a packet that the firewall does not judge.
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
        // no rule diverts the packet to a socket
        carried: Carried { diverted: None, ..input.carried.clone() },
        log: Vec::new(),
    }
}

/// Returns true if the header of an inbound IPv4 packet is damaged. A host's IP input drops such
/// packets before pf sees them.
// Differs from OpenBSD: linux.md, "Checksums"
fn has_bad_checksum(input: &Packet, packet: &Descriptor) -> bool {
    let header_len = usize::from(input.bytes[0] & 15) * 4;
    packet.family == Family::Inet
        && input.direction == Direction::In
        && checksum::internet(&input.bytes[..header_len]) != 0
}

/// Returns true if a fragment comes from a datagram that this host has already reassembled.
fn is_nested(input: &Packet, packet: &Descriptor) -> bool {
    packet.family == Family::Inet6 && input.carried.fragmentation.is_some()
}

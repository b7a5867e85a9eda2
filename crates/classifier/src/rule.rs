//! Compilation of one rule.

use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{divert_kind, rule_flags as flags, source_flags};
use skipstep_abi::verdict::{action, direction};
use skipstep_ruleset::{
    Action, Address, AnchorCall, BlockReturn, Direction, Divert, Family, InterfaceMatch, KeepKind,
    LegacyList, Not, Rule, SourceTrack, StateOptions,
};

use crate::address::{address, family, owner, port};
use crate::slots::Slots;
use crate::{Error, Names};

/// ICMP port unreachable, `(type, code)` of IPv4 and of IPv6: the answer of `block return` to
/// everything but TCP.
const PORT_UNREACHABLE: ((u8, u8), (u8, u8)) = ((3, 3), (1, 4));

/// The compiler of single rules, with the context that they need.
pub struct Compiler<'a> {
    /// Slots of tables.
    pub slots: &'a Slots,
    /// Numbers of interfaces, groups and tags.
    pub names: &'a mut Names,
    /// Returns true if a name in a rule is a group of this host.
    pub is_group: &'a dyn Fn(&str) -> bool,
    /// Returns the indexes of the rules that an anchor rule calls.
    pub called: &'a dyn Fn(&AnchorCall) -> Range<usize>,
}

impl Compiler<'_> {
    /// Compiles a rule of `anchor` with its skip steps, to be stored under `slot`. The caller sets
    /// `set_end`, `os`, `segment`, `plain`, and the action of a legacy rule.
    ///
    /// # Errors
    /// Fails if a table has no slot, an interface name is too long, or a registry of names is full.
    pub fn rule(
        &mut self,
        rule: &Rule,
        anchor: &str,
        skip: [u32; abi::rule::SKIP_MAX],
        slot: u32,
    ) -> Result<abi::Rule, Error> {
        let (interface_match, interface) = self.interface(rule.interface.as_ref())?;
        let (received_match, received_on) = self.interface(rule.received_on.as_deref())?;
        let source = address(&rule.source.host, anchor, self.slots)?;
        let destination = address(&rule.destination.host, anchor, self.slots)?;
        let family = rule
            .family
            .or_else(|| family(&rule.source.host))
            .or_else(|| family(&rule.destination.host));
        let tag = self.tag(rule.tag.as_deref())?;
        let tagged = self.tag(rule.tagged.as_ref().map(|tagged| tagged.value.as_str()))?;
        let tcp_flags = rule.tcp_flags.map_or((0, 0), |flags| (flags.set, flags.mask));
        let queue = self.queues(rule.set_queue.as_deref())?;
        let (ordinary, lowdelay) = rule.set_prio.unwrap_or_default();
        let answer = Answer::from_block_return(rule.block_return);
        let called = rule.anchor.as_deref().map_or(0..0, self.called);
        Ok(abi::Rule {
            skip,
            flags: flags_of(rule) | answer.flag,
            interface,
            received_on,
            interface_match,
            received_match,
            direction: direction_of(rule.direction),
            family: family_number(family),
            protocol: rule.protocol.unwrap_or(0),
            tcp_flags: tcp_flags.0,
            tcp_mask: tcp_flags.1,
            icmp_type: rule.icmp.map_or(0, |icmp| icmp.kind),
            icmp_code: rule.icmp.and_then(|icmp| icmp.code).unwrap_or(0),
            tos: rule.tos.unwrap_or(0),
            prio: rule.prio.unwrap_or(0),
            action: action_of(rule.action),
            tag,
            tagged,
            probability: rule.probability.unwrap_or(0),
            source,
            destination,
            source_port: port(rule.source.ports),
            destination_port: port(rule.destination.ports),
            user: owner(rule.user),
            group: owner(rule.group),
            return_ttl: answer.ttl,
            return_icmp_type: answer.inet.0,
            return_icmp_code: answer.inet.1,
            return_icmp6_type: answer.inet6.0,
            return_icmp6_code: answer.inet6.1,
            set_tos: rule.set_tos.unwrap_or(0),
            set_prio: [ordinary, lowdelay],
            min_ttl: rule.scrub.min_ttl.unwrap_or(0),
            log_to: rule.log.map_or(0, |log| log.to),
            max_mss: rule.scrub.max_mss.unwrap_or(0),
            max_pkt_size: rule.max_pkt_size.unwrap_or(0),
            pools: crate::pool::purposes(rule),
            route: crate::pool::route_kind(rule),
            queue,
            slot,
            number: rule.number,
            anchor: self.anchor(anchor)?,
            call_first: called.start as u32,
            call_end: called.end as u32,
            rtable: rule.rtable.map_or(0, |number| number as u16 + 1),
            cross_to: rule.af_to.as_ref().map_or(0, |af_to| family_number(Some(af_to.family))),
            os: 0,
            limiter: [rule.state_limiter, rule.source_limiter].map(crate::limiter::used),
            set_end: 0,
            superblock: 0,
            delay: rule.set_delay.unwrap_or(0),
            leave_fragments: 0,
            fast_path: 0,
        })
    }

    fn interface(&mut self, operand: Option<&Not<InterfaceMatch>>) -> Result<(u8, u32), Error> {
        Ok(match operand.map(|not| &not.value) {
            None => (interface_match::NONE, 0),
            Some(InterfaceMatch::Any) => (interface_match::ANY, 0),
            Some(InterfaceMatch::Rdomain(number)) => (interface_match::RDOMAIN, *number),
            Some(InterfaceMatch::Named(name)) if self.names_group(name) => {
                (interface_match::GROUP, self.names.groups.number(name)?)
            }
            Some(InterfaceMatch::Named(name)) => {
                crate::interfaces::name_bytes(name)?;
                (interface_match::NAME, self.names.interfaces.number(name)?)
            }
        })
    }

    /// True if the name is a group of this host, or one that always exists.
    fn names_group(&self, name: &str) -> bool {
        crate::interfaces::STANDING_GROUPS.contains(&name) || (self.is_group)(name)
    }

    fn anchor(&mut self, path: &str) -> Result<u32, Error> {
        if path.is_empty() { Ok(0) } else { self.names.anchors.number(path) }
    }

    /// Returns the numbers of the rule's queues. Without a second queue the first is for all
    /// packets.
    fn queues(&mut self, names: Option<&(String, Option<String>)>) -> Result<[u16; 2], Error> {
        let Some((ordinary, urgent)) = names else {
            return Ok([0, 0]);
        };
        let ordinary = self.names.queues.number(ordinary)? as u16;
        let urgent = match urgent {
            Some(urgent) => self.names.queues.number(urgent)? as u16,
            None => ordinary,
        };
        Ok([ordinary, urgent])
    }

    fn tag(&mut self, tag: Option<&str>) -> Result<u16, Error> {
        match tag {
            None => Ok(0),
            Some(tag) => Ok(self.names.tags.number(tag)? as u16),
        }
    }
}

/// Compiles the part of a rule that concerns the states it creates. `compiled` is the same rule.
/// `overload_table` is the slot of the table that the rule adds sources to.
pub fn states(rule: &Rule, compiled: &abi::Rule, overload_table: Option<u32>) -> abi::RuleStates {
    // The kernel treats dynamic addresses as tables, but pfctl does not show their counters.
    let table = |address: &Address, compiled: &abi::Address| abi::RuleTable {
        slot: compiled.table,
        used: u8::from(matches!(address, Address::Table(_))),
        negated: compiled.negated,
        ..Default::default()
    };
    let mut states = abi::RuleStates {
        number: rule.number as i32,
        anchor: compiled.anchor,
        tables: [
            table(&rule.source.host.address, &compiled.source),
            table(&rule.destination.host.address, &compiled.destination),
        ],
        ..Default::default()
    };
    let options = rule.state.as_deref();
    if let Some(options) = options.filter(|options| options.source_track.is_some()) {
        states.source_flags = source_flags(options);
        states.max_src_nodes = options.max_src_nodes.unwrap_or(0);
        states.max_src_states = options.max_src_states.unwrap_or(0);
        states.max_src_conn = options.max_src_conn.unwrap_or(0);
        (states.max_src_conn_rate, states.max_src_conn_seconds) =
            options.max_src_conn_rate.unwrap_or_default();
        states.overload_table = overload_table.unwrap_or(0);
    }
    match rule.divert {
        None => {}
        Some(Divert::Packet { port }) => {
            states.divert = divert_kind::PACKET;
            states.divert_port = port.to_be_bytes();
        }
        Some(Divert::Reply) => states.divert = divert_kind::REPLY,
        Some(Divert::To { address, port }) => {
            states.divert = divert_kind::TO;
            states.divert_port = port.to_be_bytes();
            states.divert_address = abi::address_bytes(address);
        }
    }
    states.pflow = rule.state.as_ref().is_some_and(|options| options.pflow).into();
    states.flow_tos = rule.tos.unwrap_or(0).into();
    (states.max_packets, states.max_packets_seconds) = rule.max_pkt_rate.unwrap_or_default();
    if let Some(options) = &rule.state {
        states.max = options.max.unwrap_or(0);
        for (timeout, value) in &options.timeouts {
            states.timeouts[*timeout as usize] = *value;
        }
    }
    states
}

fn source_flags(options: &StateOptions) -> u32 {
    let flush = options.overload.as_ref().map(|overload| overload.flush);
    let overload = match flush {
        None => 0,
        Some(None) => source_flags::OVERLOAD,
        Some(Some(SourceTrack::Rule)) => source_flags::OVERLOAD | source_flags::FLUSH,
        Some(Some(SourceTrack::Global)) => source_flags::OVERLOAD | source_flags::FLUSH_GLOBAL,
    };
    source_flags::TRACK | overload
}

/// The answer of a block rule: flag, TTL of a RST, and ICMP type and code of each family.
struct Answer {
    flag: u32,
    ttl: u8,
    inet: (u8, u8),
    inet6: (u8, u8),
}

impl Answer {
    fn from_block_return(block_return: BlockReturn) -> Self {
        let (inet, inet6) = PORT_UNREACHABLE;
        match block_return {
            BlockReturn::Drop => Answer { flag: 0, ttl: 0, inet: (0, 0), inet6: (0, 0) },
            BlockReturn::Return => Answer { flag: flags::RETURN, ttl: 0, inet, inet6 },
            BlockReturn::Rst { ttl } => {
                Answer { flag: flags::RETURN_RST, ttl, inet: (0, 0), inet6: (0, 0) }
            }
            BlockReturn::Icmp { inet, inet6 } => {
                Answer { flag: flags::RETURN_ICMP, ttl: 0, inet, inet6 }
            }
        }
    }
}

fn flags_of(rule: &Rule) -> u32 {
    let negated =
        |interface: Option<&Not<InterfaceMatch>>| interface.as_ref().is_some_and(|not| not.negated);
    let log = rule.log.unwrap_or_default();
    // Like pf, ignore `quick` on a rule that calls several anchors.
    let many = rule.anchor.as_ref().is_some_and(|call| call.wildcard);
    [
        (rule.quick && !many, flags::QUICK),
        (rule.anchor.is_some(), flags::ANCHOR),
        (rule.log.is_some(), flags::LOG),
        (log.all, flags::LOG_ALL),
        (log.matches, flags::LOG_MATCHES),
        (log.user, flags::LOG_USER),
        (rule.fragment, flags::FRAGMENT),
        (rule.allow_opts, flags::ALLOW_OPTS),
        (rule.scrub.no_df, flags::NO_DF),
        (rule.scrub.random_id, flags::RANDOM_ID),
        (rule.scrub.reassemble_tcp, flags::REASSEMBLE_TCP),
        (rule.set_tos.is_some(), flags::SET_TOS),
        (rule.set_prio.is_some(), flags::SET_PRIO),
        (rule.tos.is_some(), flags::MATCH_TOS),
        (rule.prio.is_some(), flags::MATCH_PRIO),
        (rule.icmp.is_some(), flags::MATCH_ICMP_TYPE),
        (rule.icmp.is_some_and(|icmp| icmp.code.is_some()), flags::MATCH_ICMP_CODE),
        (rule.probability.is_some(), flags::PROBABILITY),
        (rule.once, flags::ONCE),
        (rule.max_pkt_rate.is_some(), flags::MAX_PKT_RATE),
        (negated(rule.interface.as_ref()), flags::INTERFACE_NOT),
        (negated(rule.received_on.as_deref()), flags::RECEIVED_NOT),
        (rule.tagged.as_ref().is_some_and(|tagged| tagged.negated), flags::TAGGED_NOT),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(rule.state.as_deref().map_or(0, state_flags), |all, (_, flag)| all | flag)
}

fn state_flags(options: &StateOptions) -> u32 {
    [
        (options.if_bound, flags::IF_BOUND),
        (options.sloppy, flags::SLOPPY),
        (options.no_sync, flags::NO_SYNC),
        (options.kind == KeepKind::Modulate, flags::MODULATE),
        (options.kind == KeepKind::Synproxy, flags::SYNPROXY),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(flags::KEEP_STATE, |all, (_, flag)| all | flag)
}

fn direction_of(wanted: Option<Direction>) -> u8 {
    match wanted {
        None => direction::INOUT,
        Some(Direction::In) => direction::IN,
        Some(Direction::Out) => direction::OUT,
    }
}

fn family_number(family: Option<Family>) -> u8 {
    match family {
        None => 0,
        Some(Family::Inet) => abi::INET,
        Some(Family::Inet6) => abi::INET6,
    }
}

/// Returns the action of a legacy rule in a list. A rule without a pool is an exception; an anchor
/// call has the action of an exception, which is never used.
pub fn old_action(list: LegacyList, rule: &Rule) -> u8 {
    let translates = rule.nat.is_some() || rule.rdr.is_some();
    match (list, translates) {
        (LegacyList::Scrub, _) => action::SCRUB,
        (LegacyList::Nat, true) => action::NAT,
        (LegacyList::Nat, false) => action::NO_NAT,
        (LegacyList::Rdr, true) => action::RDR,
        (LegacyList::Rdr, false) => action::NO_RDR,
        (LegacyList::BinatOut | LegacyList::BinatIn, true) => action::BINAT,
        (LegacyList::BinatOut | LegacyList::BinatIn, false) => action::NO_BINAT,
    }
}

fn action_of(wanted: Action) -> u8 {
    match wanted {
        Action::Pass => action::PASS,
        Action::Block => action::BLOCK,
        Action::Match => action::MATCH,
    }
}

//! Counters of rules, interfaces, reasons, tables and the state table. States carry their own
//! counters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::{
    Action, Address, Direction, Family, Host, Ruleset, Table, TableEntry, TableName,
};
use skipstep_views::{InterfaceCounters, RuleCounters, Status};

use crate::af_to::read_as;
use crate::key::{Ends, STACK, WIRE};
use crate::packet::Descriptor;
use crate::rate::Rate;
use crate::rulebook::{Entry, Rulebook};
use crate::state::State;
use crate::table;

/// A decided packet, as the counters need it.
pub(crate) struct Counted<'a> {
    pub passed: bool,
    /// Deciding rule, `None` for the default rule.
    pub rule: Option<&'a Entry>,
    pub anchor_rule: Option<&'a Entry>,
    /// Addresses and ports to count in tables, if they differ from the packet's.
    pub blocked_ends: Option<Ends>,
}

/// Counters of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableCounters {
    /// Number of lookups that found the address, as without skip steps.
    pub matches: u64,
    /// Number of lookups that did not find the address.
    pub no_matches: u64,
    /// Packets of rules that name the table.
    pub traffic: TableTraffic,
    /// Traffic of each entry that had any, if the table has `counters`.
    pub entries: BTreeMap<IpNet, TableTraffic>,
}

/// Traffic of a table, or of one of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableTraffic {
    /// Packets, `[in, out][block, match, pass, xpass]`; `xpass` counts packets of states whose
    /// address has left the table.
    pub packets: [[u64; 4]; 2],
    /// Bytes, indexed in the same way.
    pub bytes: [[u64; 4]; 2],
}

impl TableTraffic {
    const XPASS: usize = 3;

    fn count(&mut self, packet: &Descriptor, operation: usize) {
        self.packets[packet.direction as usize][operation] += 1;
        self.bytes[packet.direction as usize][operation] += packet.total_len as u64;
    }
}

/// The used part of a rule's `once` and `max-pkt-rate`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// `once`: true if the rule has matched its packet.
    pub expired: bool,
    /// `max-pkt-rate`: rate of the matching packets.
    pub packets: Rate,
}

/// All counters but those of states.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    rules: Vec<RuleCounters>,
    usage: Vec<Usage>,
    interfaces: HashMap<String, InterfaceCounters>,
    tables: HashMap<TableName, TableCounters>,
    /// During a trial: the tables whose entries the rule set before it counts. They are counted on.
    counted_before: Option<HashSet<TableName>>,
    pub status: Status,
}

impl Counters {
    pub fn new(rules: usize) -> Self {
        Counters {
            rules: vec![RuleCounters::default(); rules],
            usage: vec![Usage::default(); rules],
            ..Counters::default()
        }
    }

    /// Grows the counters to `rules` rules, after a load.
    pub fn make_room(&mut self, rules: usize) {
        self.rules.resize(rules, RuleCounters::default());
        self.usage.resize(rules, Usage::default());
    }

    /// Takes over evaluations, packets and bytes of the rule at index `from`.
    pub fn inherit(&mut self, index: usize, from: usize) {
        let RuleCounters { evaluations, packets, bytes, .. } = self.rules[from];
        let own = self.rules[index];
        self.rules[index] = RuleCounters { evaluations, packets, bytes, ..own };
    }

    /// Returns the counters of the rule at `index`.
    pub fn rule(&self, index: usize) -> RuleCounters {
        RuleCounters { expired: self.usage[index].expired, ..self.rules[index] }
    }

    pub fn interface(&self, name: &str) -> InterfaceCounters {
        self.interfaces.get(name).copied().unwrap_or_default()
    }

    pub fn table(&self, name: &TableName) -> TableCounters {
        self.tables.get(name).cloned().unwrap_or_default()
    }

    /// Returns the usage of the rule at `index`.
    pub fn usage(&mut self, index: usize) -> &mut Usage {
        &mut self.usage[index]
    }

    /// Counts a packet, and returns true if it exceeds the rule's `max-pkt-rate`.
    pub fn too_fast(&mut self, rule: &Entry, now: u32) -> bool {
        let packets = &mut self.usage[rule.index].packets;
        rule.max_pkt_rate.is_some_and(|limit| packets.exceeds(limit, now))
    }

    pub fn evaluated(&mut self, rule: &Entry) {
        self.rules[rule.index].evaluations += 1;
    }

    /// Forgets the counters of entries that left the table.
    pub fn keep_entries(&mut self, name: &TableName, before: &[TableEntry], now: &[TableEntry]) {
        let was_there = |net| before.iter().any(|entry| entry.net == net);
        if let Some(counters) = self.tables.get_mut(name) {
            let stays = |net| !was_there(net) || keeps_counters(net, before, now);
            counters.entries.retain(|net, _| stays(*net));
        }
    }

    /// Begins a trial: from now on no counters of the tables of `before` are forgotten.
    pub fn begin_trial(&mut self, before: &Ruleset) {
        let counted = before.all_tables().filter(|(_, table)| table.counters);
        let counted = counted.map(|(path, table)| TableName::new(path, &table.name));
        self.counted_before = Some(counted.collect());
    }

    /// Ends a trial.
    pub fn end_trial(&mut self) {
        self.counted_before = None;
    }

    /// True if the rule set before a trial counts the entries of a table.
    fn was_counted(&self, name: &TableName) -> bool {
        self.counted_before.as_ref().is_some_and(|counted| counted.contains(name))
    }

    /// Forgets the counters of tables and entries that no longer exist. During a trial, forgets
    /// only those that neither rule set counts.
    pub fn keep_tables<'t>(
        &mut self,
        before: impl Fn(&TableName) -> Option<&'t Table>,
        now: impl Fn(&TableName) -> Option<&'t Table>,
    ) {
        let counted_before = self.counted_before.as_ref();
        self.tables.retain(|name, _| now(name).is_some());
        for (name, counters) in &mut self.tables {
            let counted = now(name).filter(|table| table.counters);
            if let Some(before) = counted_before {
                if counted.is_none() && !before.contains(name) {
                    counters.entries.clear();
                }
                continue;
            }
            let before = before(name).map_or(&[][..], |table| &table.entries);
            let now = counted.map_or(&[][..], |table| &table.entries);
            counters.entries.retain(|net, _| keeps_counters(*net, before, now));
        }
    }

    /// Forgets the counters of an entry that left a table.
    pub fn forget_entry(&mut self, name: &TableName, net: IpNet) {
        if let Some(counters) = self.tables.get_mut(name) {
            counters.entries.remove(&net);
        }
    }

    pub fn table_looked_up(&mut self, name: TableName, inside: bool) {
        let table = self.tables.entry(name).or_default();
        *(if inside { &mut table.matches } else { &mut table.no_matches }) += 1;
    }

    /// Returns the number of states of a rule now.
    pub fn states_of(&self, rule: usize) -> u64 {
        self.rules[rule].states
    }

    pub fn state_made(&mut self, state: &State) {
        self.status.inserts += 1;
        for rule in [Some(state.rule), state.anchor_rule].into_iter().flatten() {
            self.rules[rule].states_created += 1;
        }
        for rule in rules_of(state) {
            self.rules[rule].states += 1;
        }
    }

    pub fn state_removed(&mut self, state: &State) {
        self.status.removals += 1;
        for rule in rules_of(state) {
            self.rules[rule].states -= 1;
        }
    }

    /// Counts a packet with refused headers, for its interface only.
    pub fn malformed(
        &mut self,
        interface: &str,
        direction: Direction,
        family: Family,
        bytes: usize,
    ) {
        self.count_interface(interface, direction, family, bytes, false);
    }

    /// Counts a packet whose fate is decided. Pass rules and states count packets that pass, block
    /// rules count packets that they stop. The anchor rule that called the rule counts with it.
    pub fn packet(
        &mut self,
        packet: &Descriptor,
        ruling: Counted,
        state: Option<&mut State>,
        ruleset: &Ruleset,
        rulebook: &Rulebook,
    ) {
        self.count_interface(
            &packet.interface,
            packet.direction,
            packet.family,
            packet.total_len,
            // for PF's interface counters, a packet that crosses families does not pass
            ruling.passed && packet.crosses_to.is_none(),
        );
        let blocks = ruling.rule.is_some_and(|rule| rule.action == Action::Block);
        if !ruling.passed && !blocks {
            return;
        }
        let bytes = packet.total_len as u64;
        let rule = ruling.rule.unwrap_or(rulebook.default_rule());
        self.count_rule(rule.index, packet.direction as usize, bytes);
        if let Some(rule) = ruling.anchor_rule {
            self.count_rule(rule.index, packet.direction as usize, bytes);
        }
        let ends = match &state {
            Some(state) => endpoints(state, packet.family),
            None => match ruling.blocked_ends {
                Some(ends) => (ends.source.0, ends.destination.0),
                None => packet.header_addresses(),
            },
        };
        if let Some(state) = state {
            let way = state.side_index(packet.direction);
            state.packets[way] += 1;
            state.bytes[way] += bytes;
            for index in &state.match_rules {
                // PF counts packets of match rules by the state's direction, not the packet's
                self.count_rule(*index, way, bytes);
                self.count_tables(rulebook.at(*index), ends, packet, ruleset);
            }
        }
        if let Some(rule) = ruling.rule {
            self.count_tables(rule, ends, packet, ruleset);
        }
    }

    fn count_rule(&mut self, index: usize, direction: usize, bytes: u64) {
        self.rules[index].packets[direction] += 1;
        self.rules[index].bytes[direction] += bytes;
    }

    fn count_interface(
        &mut self,
        interface: &str,
        direction: Direction,
        family: Family,
        bytes: usize,
        passed: bool,
    ) {
        let counters = self.interfaces.entry(interface.to_owned()).or_default();
        let (family, direction, blocked) =
            (family as usize, direction as usize, usize::from(!passed));
        counters.packets[family][direction][blocked] += 1;
        counters.bytes[family][direction][blocked] += bytes as u64;
    }

    fn count_tables(
        &mut self,
        rule: &Entry,
        (source, destination): (IpAddr, IpAddr),
        packet: &Descriptor,
        ruleset: &Ruleset,
    ) {
        for (host, address) in [(&rule.source.host, source), (&rule.destination.host, destination)]
        {
            let Host { negated, address: Address::Table(name) } = host else {
                continue;
            };
            let seen = ruleset.table_seen_from(&rule.path, name);
            let Some((name, table)) = seen.filter(|(_, table)| table.defined) else {
                continue;
            };
            let entry = table::best_entry(table, address);
            let inside = entry.is_some_and(|entry| !entry.negated);
            let operation = match rule.action {
                _ if inside == *negated => TableTraffic::XPASS,
                Action::Block => 0,
                Action::Match => 1,
                Action::Pass => 2,
            };
            let counts = table.counters || self.was_counted(&name);
            let counters = self.tables.entry(name).or_default();
            counters.traffic.count(packet, operation);
            if let Some(entry) = entry
                && counts
                && operation != TableTraffic::XPASS
            {
                counters.entries.entry(entry.net).or_default().count(packet, operation);
            }
        }
    }
}

/// Returns the indexes of the rules that count a state as theirs.
fn rules_of(state: &State) -> impl Iterator<Item = usize> {
    state.match_rules.iter().copied().chain([state.rule]).chain(state.anchor_rule)
}

/// Returns source and destination of the packet that created the state, after translation. PF reads
/// the same fields if the state crosses families. There the addresses are reversed, and are not of
/// the wanted family.
fn endpoints(state: &State, family: Family) -> (IpAddr, IpAddr) {
    let read = |side: usize| state.key[side].address.map(|address| read_as(family, address));
    match state.direction {
        Direction::In => read(STACK).into(),
        Direction::Out => {
            let [destination, source] = read(WIRE);
            (source, destination)
        }
    }
}

/// Returns true if an entry keeps its counters, because it is still in the table. A changed
/// negation resets them, as in pf.
fn keeps_counters(net: IpNet, before: &[TableEntry], now: &[TableEntry]) -> bool {
    let negated = |entries: &[TableEntry]| {
        entries.iter().find(|entry| entry.net == net).map(|entry| entry.negated)
    };
    let is = negated(now);
    is.is_some() && negated(before).is_none_or(|was| is == Some(was))
}

//! The firewall: its rules, states and counters, and the order of steps for each packet
//! (pf-semantics section 3).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use skipstep_reassembly::Reassembler;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{RuleId, Ruleset, TableName};
use skipstep_views::{InterfaceCounters, NodeKind, RuleCounters, Status};

use crate::cookies::Cookies;
use crate::counters::{Counters, TableCounters};
use crate::endpoint::Endpoints;
use crate::key::StateId;
use crate::limiter::{LimiterState, Limiters};
use crate::pool::Pools;
use crate::reload;
use crate::rulebook::{Entry, Rulebook};
use crate::source_node::{SourceNode, SourceNodes};
use crate::state::{State, StateTable};
use crate::timeout::{self, StateCounts};
use crate::trial::Trial;
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
    /// The rule set before a load on trial.
    pub(crate) trial: Option<Trial>,
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
            trial: None,
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
        let ended = self.go_back_if_due();
        self.fragments.expire(seconds);
        self.expire(&ended)
    }

    /// Removes the `ended` states, and expired states. Returns the ids of both, ascending.
    pub(crate) fn expire(&mut self, ended: &[StateId]) -> Vec<StateId> {
        let now = self.world.now;
        // all expiries are computed first, because each removal lengthens adaptive timeouts
        let is_over = |state: &&State| ended.contains(&state.id) || self.expires_at(state) <= now;
        let over: Vec<State> = self.states.iter().filter(is_over).cloned().collect();
        // the oldest state last, as in pf: its rule sets the lifetime of a source node that several
        // states shared
        for state in over.iter().rev() {
            self.remove(state);
        }
        self.turn_cookie_keys();
        self.sources.purge(now, &mut self.counters.status);
        self.limiters.purge(now);
        over.iter().filter(|state| !state.unlinked).map(|state| state.id).collect()
    }

    /// Sets the results of the following random draws.
    pub fn set_random(&mut self, draw: Draw) {
        self.world.set_random(draw);
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

    /// Returns the counters of a table, with those of its entries if it has `counters`.
    pub fn table_counters(&self, name: &TableName) -> TableCounters {
        let counters = self.counters.table(name);
        match reload::table(&self.ruleset, name).is_some_and(|table| table.counters) {
            true => counters,
            false => TableCounters { entries: BTreeMap::new(), ..counters },
        }
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
}

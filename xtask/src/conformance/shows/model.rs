//! The model as a filter that pfctl can show.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use pfctl::filter::Filter;
use skipstep_kernel::contents::{EntryInfo, EntryTraffic};
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::{FragmentStatus, Hook, InstanceStatus, InterfaceView};
use skipstep_kernel::table::{TableInfo, references};
use skipstep_model::{Carried, Draw, Packet, TableTraffic};
use skipstep_reassembly::Counters;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{RuleId, Ruleset, Table, TableEntry, TableName};
use skipstep_scenario::{Engine, Model};
use skipstep_views::{InterfaceCounters, LimiterView, RuleCounters, SourceView, StateView};

use super::subject::{HOSTID, START};

const TCP: u8 = 6;
const SYN_SENT: u8 = 2;
const ESTABLISHED: u8 = 4;

/// The model, its host and its clock.
pub struct ShownModel {
    host: Host,
    ruleset: Ruleset,
    now: u32,
    // the `Engine` trait needs a mutable reference even to read
    model: RefCell<Model>,
}

impl ShownModel {
    /// Creates a model without rules.
    pub fn new(host: &Host) -> Self {
        ShownModel {
            host: host.clone(),
            ruleset: Ruleset::default(),
            now: 0,
            model: RefCell::new(Model::new()),
        }
    }

    /// Returns the host that the model runs on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Loads a rule set and resets the clock.
    ///
    /// # Errors
    /// Fails if the model refuses the rule set.
    pub fn start(&mut self, ruleset: &Ruleset) -> Result<()> {
        let loaded = self.model.get_mut().load(ruleset, &self.host);
        loaded.map_err(anyhow::Error::msg)?;
        self.ruleset = ruleset.clone();
        self.now = 0;
        Ok(())
    }

    /// Sets a value that is drawn at random in a real filter.
    pub fn set_random(&mut self, draw: Draw) {
        self.model.get_mut().set_random(draw);
    }

    /// Evaluates a packet at the time `second`, and returns the metadata that the packet has
    /// afterwards.
    pub fn packet(&mut self, second: u32, packet: &Packet) -> Carried {
        self.now = second;
        let model = self.model.get_mut();
        model.set_time(second);
        model.packet(packet).carried
    }

    /// Returns the rules with the present entries of their tables.
    fn filled(&self) -> Ruleset {
        self.model.borrow_mut().firewall().ruleset().clone()
    }

    fn interface(&self, interface: &Interface) -> InterfaceView {
        InterfaceView {
            name: interface.name.clone(),
            index: Some(interface.index),
            groups: interface.groups.clone(),
            skip: self.ruleset.options.skip.iter().any(|name| interface.has_name_or_group(name)),
            hook: Hook::None,
            counters: self.model.borrow_mut().interface_counters(&interface.name),
            zeroed: started(),
        }
    }

    fn table(&self, path: &str, table: &Table) -> TableInfo {
        let name = TableName::new(path, &table.name);
        let counters = self.model.borrow_mut().firewall().table_counters(&name);
        TableInfo {
            persist: table.persist,
            constant: table.constant,
            counters: table.counters,
            active: table.defined,
            rules: references(&self.ruleset, &name),
            anchors: 0,
            entries: table.entries.len() as u32,
            stats: skipstep_kernel::table::Stats {
                r#match: counters.matches,
                nomatch: counters.no_matches,
                packets: counters.traffic.packets,
                bytes: counters.traffic.bytes,
            },
            zeroed: started(),
            name,
        }
    }
}

fn started() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(START.into())
}

/// Converts the counters of an entry. The fourth counter, for packets that passed by a state after
/// the address had left the table, exists for tables only.
fn entry_traffic(traffic: &TableTraffic) -> EntryTraffic {
    let three = |of: [[u64; 4]; 2]| of.map(|[block, matched, pass, _]| [block, matched, pass]);
    EntryTraffic { packets: three(traffic.packets), bytes: three(traffic.bytes) }
}

impl Filter for ShownModel {
    fn loaded(&self) -> Result<Loaded> {
        Ok(Loaded {
            ruleset: self.ruleset.clone(),
            generation: 1,
            loaded_at: started(),
            uid: 0,
            pid: 0,
            anchors: BTreeMap::new(),
        })
    }

    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let mut model = self.model.borrow_mut();
        let id = |number| RuleId::new(anchor, number);
        let rules = self.ruleset.rules_of(anchor).iter();
        Ok(rules.map(|rule| model.rule_counters(Some(&id(rule.number)))).collect())
    }

    fn legacy_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let mut model = self.model.borrow_mut();
        let rules = self.ruleset.legacy_rules_of(anchor).iter();
        Ok(rules.map(|old| model.rule_counters(Some(&old.id(anchor)))).collect())
    }

    fn sources(&self) -> Result<Vec<SourceView>> {
        let mut sources = self.model.borrow_mut().sources();
        sources.sort_by_cached_key(SourceView::order);
        Ok(sources)
    }

    fn limiters(&self) -> Result<Vec<LimiterView>> {
        Ok(self.model.borrow_mut().limiters())
    }

    fn states(&self) -> Result<Vec<StateView>> {
        let mut states = self.model.borrow_mut().states();
        for state in &mut states {
            // the model numbers states from 1, the kernel from the second when it was enabled
            state.id = (u64::from(START) << 32) + state.id - 1;
        }
        Ok(states)
    }

    fn now(&self) -> Result<u32> {
        Ok(self.now)
    }

    fn status(&self) -> Result<InstanceStatus> {
        let half_open = |state: &&StateView| {
            state.protocol == TCP && (SYN_SENT..ESTABLISHED).contains(&state.src.state)
        };
        let half_open = self.states()?.iter().filter(half_open).count() as u32;
        let mut model = self.model.borrow_mut();
        let engine = model.status();
        let options = &self.ruleset.options;
        let loginterface = options.loginterface.as_ref().map(|name| {
            let mut sum = InterfaceCounters::default();
            for interface in
                self.host.interfaces.iter().filter(|interface| interface.has_name_or_group(name))
            {
                sum.add(&model.interface_counters(&interface.name));
            }
            (name.clone(), sum)
        });
        let (current, Counters { searches, inserts, removals }) = model.firewall().fragments();
        let current = current as u64;
        let fragments =
            FragmentStatus { current, searches, inserts, removals, lost: 0, foreign: 0 };
        Ok(InstanceStatus {
            running: true,
            since_secs: self.now,
            states: engine.states as u32,
            half_open,
            capacity: options.limits.states,
            hostid: options.hostid.unwrap_or(HOSTID),
            debug: options.debug,
            engine,
            fragments,
            log_lost: 0,
            flow_lost: 0,
            sweep_late_secs: 0,
            timer_errors: (0, 0),
            forwarded: [0; 2],
            left_to: [0; 4],
            divert: Default::default(),
            divert_lost: 0,
            delay: Default::default(),
            loginterface,
        })
    }

    fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        Ok(self.host.interfaces.iter().map(|interface| self.interface(interface)).collect())
    }

    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        Ok(BTreeMap::new())
    }

    fn queue_stats(&self, _interface: u32) -> Result<BTreeMap<String, QueueStats>> {
        Ok(BTreeMap::new()) // only the kernel has statistics of queues
    }

    fn tables(&self) -> Result<Vec<TableInfo>> {
        let ruleset = self.filled();
        let mut tables: Vec<TableInfo> =
            ruleset.all_tables().map(|(path, table)| self.table(path, table)).collect();
        // a table of an anchor has one in the main rule set, undefined unless the main rule set
        // defines it
        let of_anchors = tables.iter().filter(|table| !table.name.anchor.is_empty());
        for name in of_anchors.map(|table| table.name.name.clone()).collect::<Vec<_>>() {
            let main = TableName::from(name.as_str());
            match tables.iter_mut().find(|table| table.name == main) {
                Some(table) => table.anchors += 1,
                None => {
                    let undefined = Table { name, ..Table::default() };
                    tables.push(TableInfo { anchors: 1, ..self.table("", &undefined) });
                }
            }
        }
        Ok(tables)
    }

    fn table_entries(&self, name: &TableName) -> Result<Vec<EntryInfo>> {
        let ruleset = self.filled();
        let mut tables = ruleset.tables_of(&name.anchor).iter();
        let table = tables.find(|table| table.name == name.name).context("no such table")?;
        let mut model = self.model.borrow_mut();
        let firewall = model.firewall();
        let counters = firewall.table_counters(name);
        let info = |entry: &TableEntry| EntryInfo {
            entry: *entry,
            cleared: START,
            traffic: counters.entries.get(&entry.net).map(entry_traffic),
            states: firewall.states_of_address(name, entry.net.addr()).map(|states| states as u32),
        };
        Ok(table.entries.iter().map(info).collect())
    }
}

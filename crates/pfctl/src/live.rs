//! `-s` on the filter in the kernel: reads what a modifier shows and has it printed.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::report::InterfaceView as KernelInterface;
use skipstep_kernel::table::TableInfo;
use skipstep_kernel::{Instance, InterfaceCounters, host};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::Host;
use skipstep_scenario::engine::{RuleCounters, StateView, Status};

use crate::args::Args;
use crate::show::all::Section;
use crate::show::info::{InfoView, InterfaceTraffic};
use crate::show::interfaces::InterfaceView;
use crate::show::rules::{Inserted, RulesView};
use crate::show::states::StatesView;
use crate::show::tables::TableView;
use crate::show::{Detail, all, info, interfaces, labels, memory, rules, states, tables, timeouts};
use crate::views::{self, Counted, seconds};
use crate::words::Show;

/// What `show` prints. Without an instance nothing was ever loaded: there are the defaults.
pub fn show(instance: Option<&Instance>, show: Show, args: &Args) -> Result<String> {
    let live = Live::new(instance)?;
    let detail = Detail { verbose: args.verbose, debug: args.debug };
    let interface = args.interface.as_deref();
    if args.json {
        return Ok(format!("{:#}\n", live.json(show, interface, detail)?));
    }
    if show == Show::All {
        return live.all(interface, detail);
    }
    live.text(show, interface, detail)
}

/// The filter with the rules that are loaded now.
struct Live<'a> {
    instance: Option<&'a Instance>,
    ruleset: Ruleset,
    inserted: Inserted,
    loaded_at: i64,
}

impl<'a> Live<'a> {
    fn new(instance: Option<&'a Instance>) -> Result<Self> {
        let Some(running) = instance else {
            let (ruleset, inserted) = (Ruleset::default(), Inserted::default());
            return Ok(Live { instance, ruleset, inserted, loaded_at: 0 });
        };
        let Loaded { ruleset, uid, pid, loaded_at, .. } = running.loaded()?;
        let inserted = Inserted { uid, pid };
        Ok(Live { instance, ruleset, inserted, loaded_at: seconds(loaded_at) })
    }

    fn text(&self, show: Show, interface: Option<&str>, detail: Detail) -> Result<String> {
        let options = &self.ruleset.options;
        Ok(match show {
            Show::Rules => self.with_rules(detail, |view| rules::text(view, detail))?,
            Show::States => self.with_states(|view| states::text(view, interface, detail))?,
            Show::Info => info::text(&self.info()?, detail),
            Show::Interfaces => interfaces::text(&self.interfaces()?, interface, detail),
            Show::Labels => labels::text(&self.ruleset.rules, &self.rule_counters()?),
            Show::Timeouts => timeouts::text(&options.timeouts),
            Show::Memory => memory::text(&options.limits),
            Show::Tables => tables::text(&self.tables()?, detail),
            Show::All => self.all(interface, detail)?,
        })
    }

    fn all(&self, interface: Option<&str>, detail: Detail) -> Result<String> {
        let sections = [
            ("FILTER RULES:", Show::Rules, true),
            ("STATES:", Show::States, false),
            ("INFO:", Show::Info, true),
            ("LABEL COUNTERS:", Show::Labels, false),
            ("TIMEOUTS:", Show::Timeouts, true),
            ("LIMITS:", Show::Memory, true),
            ("TABLES:", Show::Tables, false),
        ];
        let any_table = !self.tables()?.is_empty();
        let section = |(title, show, always)| -> Result<Section> {
            let always = always || show == Show::Tables && any_table;
            Ok(Section { title, text: self.text(show, interface, detail)?, always })
        };
        let sections: Vec<Section> = sections.into_iter().map(section).collect::<Result<_>>()?;
        Ok(all::text(&sections))
    }

    fn json(&self, show: Show, interface: Option<&str>, detail: Detail) -> Result<Value> {
        let options = &self.ruleset.options;
        let part = |show| self.json(show, interface, detail);
        Ok(match show {
            Show::Rules => self.with_rules(detail, rules::json)?,
            Show::States => self.with_states(|view| states::json(view, interface))?,
            Show::Info => info::json(&self.info()?),
            Show::Interfaces => interfaces::json(&self.interfaces()?, interface),
            Show::Labels => labels::json(&self.ruleset.rules, &self.rule_counters()?),
            Show::Timeouts => timeouts::json(&options.timeouts),
            Show::Memory => memory::json(&options.limits),
            Show::Tables => tables::json(&self.tables()?, detail),
            Show::All => json!({
                "rules": part(Show::Rules)?,
                "states": part(Show::States)?,
                "info": part(Show::Info)?,
                "timeouts": part(Show::Timeouts)?,
                "memory": part(Show::Memory)?,
                "tables": part(Show::Tables)?,
            }),
        })
    }

    fn rule_counters(&self) -> Result<Vec<RuleCounters>> {
        Ok(match self.instance {
            Some(instance) => instance.rule_counters("")?,
            None => Vec::new(),
        })
    }

    fn with_rules<T>(&self, detail: Detail, show: impl FnOnce(&RulesView) -> T) -> Result<T> {
        let counters = self.rule_counters()?;
        // reading them takes a while, and only -vv and -g print them
        let (sizes, host) = match detail.very_verbose() || detail.debug {
            true => (self.table_sizes()?, host::read()?),
            false => (BTreeMap::new(), Host::default()),
        };
        let table_sizes = |name: &str| sizes.get(name).copied();
        let dynamic_sizes =
            |address: &DynamicAddress, family| views::dynamic_size(&host, address, family);
        let view = RulesView {
            rules: &self.ruleset.rules,
            counters: &counters,
            inserted: self.inserted,
            table_sizes: &table_sizes,
            dynamic_sizes: &dynamic_sizes,
        };
        Ok(show(&view))
    }

    /// Number of addresses in each table that exists.
    fn table_sizes(&self) -> Result<BTreeMap<String, usize>> {
        let tables = self.tables()?.into_iter().filter(|table| table.active);
        Ok(tables.map(|table| (table.name, table.addresses)).collect())
    }

    fn states(&self) -> Result<Vec<StateView>> {
        Ok(match self.instance {
            Some(instance) => instance.states()?,
            None => Vec::new(),
        })
    }

    fn with_states<T>(&self, show: impl FnOnce(&StatesView) -> T) -> Result<T> {
        let states = self.states()?;
        let (now, hostid) = match self.instance {
            Some(instance) => (instance.uptime()?, instance.status()?.hostid),
            None => (0, 0),
        };
        Ok(show(&StatesView { states: &states, now, hostid }))
    }

    fn info(&self) -> Result<InfoView> {
        let checksum = views::checksum(&self.ruleset.rules);
        let Some(instance) = self.instance else {
            return Ok(InfoView {
                enabled: false,
                seconds: 0,
                debug: self.ruleset.options.debug,
                hostid: 0,
                checksum,
                interface: None,
                status: Status::default(),
                half_open: 0,
                limits: [0; 10],
                log_lost: 0,
            });
        };
        let status = instance.status()?;
        Ok(InfoView {
            enabled: status.running,
            seconds: status.since_secs.into(),
            debug: status.debug,
            hostid: status.hostid,
            checksum,
            interface: status
                .loginterface
                .map(|(name, counters)| InterfaceTraffic { name, traffic: traffic(&counters) }),
            status: status.engine,
            half_open: status.half_open.into(),
            limits: status.limits,
            log_lost: status.log_lost,
        })
    }

    fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        let known = match self.instance {
            Some(instance) => instance.interfaces()?,
            None => Vec::new(),
        };
        let counted = |interface: KernelInterface| {
            let traffic = traffic(&interface.counters);
            (interface.name, Counted { traffic, cleared: seconds(interface.zeroed) })
        };
        let counters = known.into_iter().map(counted).collect();
        let (host, states) = (host::read()?, self.states()?);
        Ok(views::interfaces(&host, &self.ruleset, &states, &counters, self.loaded_at))
    }

    fn tables(&self) -> Result<Vec<TableView>> {
        let Some(instance) = self.instance else {
            return Ok(Vec::new());
        };
        let mut tables = Vec::new();
        let main = |table: &TableInfo| table.name.anchor.is_empty();
        for table in instance.table_list()?.into_iter().filter(main) {
            tables.push(TableView {
                constant: table.constant,
                persist: table.persist,
                counters: table.counters,
                active: table.active,
                rules: table.rules.into(),
                anchors: table.anchors.into(),
                cleared: seconds(table.zeroed),
                addresses: table.entries as usize,
                nomatch: table.stats.nomatch,
                matches: table.stats.r#match,
                traffic: views::table_traffic(table.stats.packets, table.stats.bytes),
                name: table.name.name,
            });
        }
        Ok(views::tables(tables, &self.ruleset.rules))
    }
}

fn traffic(counters: &InterfaceCounters) -> [[[crate::show::Traffic; 2]; 2]; 2] {
    views::traffic(counters.packets, counters.bytes)
}

//! `-s`: reads the data of a show modifier from the filter and prints it.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::IpAddr;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use skipstep_kernel::EnableReference;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::report::InterfaceView as KernelInterface;
use skipstep_pfconf::Names;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::fingerprint::{self, Fingerprints};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Rule, Ruleset, TableName};
use skipstep_views::{InterfaceCounters, LimiterView, RuleCounters, StateView};

use crate::filter::Filter;
use crate::load;
use crate::request::{Anchor, Args};
use crate::show::all::Section;
use crate::show::info::InfoView;
use crate::show::interfaces::InterfaceTraffic;
use crate::show::interfaces::InterfaceView;
use crate::show::metrics::MetricsView;
use crate::show::nat::{LegacyRuleSet, LegacyRulesView};
use crate::show::queues::QueueTree;
use crate::show::rules::{Inserted, RuleSet, RulesView};
use crate::show::sources::SourcesView;
use crate::show::states::StatesView;
use crate::show::tables::TableView;
use crate::show::trial::ConfirmView;
use crate::show::{
    Detail, all, anchors, info, interfaces, labels, limiters, memory, metrics, nat, osfp, queues,
    references, rules, sources, states, tables, timeouts, trial,
};
use crate::views::{self, seconds};
use crate::words::Show;

/// Title of the rules in `-s all`, as OpenBSD prints it.
const RULES_TITLE: &str = "FILTER RULES:";

/// Writes the output of a show modifier to `out`. Without a filter, it shows the defaults and no
/// rules. `host` reads the host's interfaces, and is called only by modifiers that need them.
///
/// # Errors
/// Fails if the anchor does not exist, if the filter, host or fingerprints cannot be read, or if
/// `out` cannot be written.
pub fn write(
    filter: Option<&dyn Filter>,
    host: &dyn Fn() -> Result<Host>,
    show: Show,
    args: &Args,
    out: &mut dyn Write,
) -> Result<()> {
    let live = Live::new(filter, host, args)?;
    let interface = args.interface.as_deref();
    match (show, args.json) {
        (Show::States, true) => {
            live.with_states(|view| states::write_json(view, interface, out))??;
        }
        (Show::States, false) => {
            live.with_states(|view| states::write(view, interface, live.detail, out))??;
        }
        (_, true) => writeln!(out, "{:#}", live.json(show)?)?,
        (_, false) => out.write_all(live.text(show)?.as_bytes())?,
    }
    Ok(out.flush()?)
}

/// The filter with the rules that are loaded now, and the arguments that select the output.
struct Live<'a> {
    filter: Option<&'a dyn Filter>,
    host: &'a dyn Fn() -> Result<Host>,
    args: &'a Args,
    anchor: Anchor,
    /// The shown anchor and, if `-a` is recursive, all anchors below it.
    paths: Vec<String>,
    loaded: Option<Loaded>,
    ruleset: Ruleset,
    detail: Detail,
}

impl<'a> Live<'a> {
    fn new(
        filter: Option<&'a dyn Filter>,
        host: &'a dyn Fn() -> Result<Host>,
        args: &'a Args,
    ) -> Result<Self> {
        let anchor = args.anchor.clone().unwrap_or_default();
        let paths = crate::anchors::selected_paths(filter, &anchor)?;
        let loaded = filter.map(Filter::loaded).transpose()?;
        let ruleset = loaded.as_ref().map(|loaded| loaded.ruleset.clone()).unwrap_or_default();
        let detail = Detail { verbose: args.verbose, debug: args.debug };
        Ok(Live { filter, host, args, anchor, paths, loaded, ruleset, detail })
    }

    fn text(&self, show: Show) -> Result<String> {
        let (options, detail) = (&self.ruleset.options, self.detail);
        let interface = self.args.interface.as_deref();
        Ok(match show {
            Show::Queues => queues::text(&self.queues(interface, detail.verbose())?, detail),
            Show::Sources => self.with_sources(|view| sources::text(view, detail))?,
            Show::Rules => {
                let scrub = self.with_legacy_rules(false, |view| nat::text(view, detail))?;
                scrub + &self.with_rules(|view| rules::text(view, detail, None))?
            }
            Show::Nat => self.with_legacy_rules(true, |view| nat::text(view, detail))?,
            Show::Anchors => {
                self.with_anchors(|paths| anchors::text(paths, &self.anchor.path, detail))?
            }
            Show::States => self.with_states(|view| states::text(view, interface, detail))?,
            Show::Info => info::text(&self.info()?, detail),
            Show::Interfaces => interfaces::text(&self.interfaces()?, interface, detail),
            Show::Labels => self.with_labels(labels::text)?,
            Show::Timeouts => timeouts::text(&options.timeouts),
            Show::Memory => memory::text(&options.limits),
            Show::Tables => tables::text(&self.tables()?, detail),
            Show::Fingerprints => osfp::text(&self.fingerprints()?),
            Show::StateLimiters => limiters::state_limiters_text(&self.limiters()?),
            Show::SourceLimiters => limiters::source_limiters_text(&self.limiters()?, detail),
            Show::Confirm => trial::text(&self.confirm()?),
            Show::Metrics => metrics::text(&self.metrics()?),
            Show::References => {
                references::text(&self.references()?, seconds(SystemTime::now()).unsigned_abs())
            }
            Show::All => self.all()?,
        })
    }

    fn all(&self) -> Result<String> {
        let section = |title, text, always| Section { title, text, always };
        let tables = self.tables()?;
        let rules = self.with_rules(|view| rules::text(view, self.detail, Some(RULES_TITLE)))?;
        let sections = [
            section("TRANSLATION RULES:", self.text(Show::Nat)?, false),
            section("", rules.clone(), true),
            section("QUEUES:", self.text(Show::Queues)?, false),
            section("STATES:", self.text(Show::States)?, false),
            section("SOURCE TRACKING NODES:", self.text(Show::Sources)?, false),
            section("INFO:", self.text(Show::Info)?, true),
            section("LABEL COUNTERS:", self.text(Show::Labels)?, all::has_label(&rules)),
            section("TIMEOUTS:", self.text(Show::Timeouts)?, true),
            section("LIMITS:", self.text(Show::Memory)?, true),
            section("TABLES:", tables::text(&tables, self.detail), !tables.is_empty()),
            section("OS FINGERPRINTS:", osfp::count(&self.fingerprints()?), false),
        ];
        Ok(all::text(&sections))
    }

    fn json(&self, show: Show) -> Result<Value> {
        let options = &self.ruleset.options;
        let interface = self.args.interface.as_deref();
        Ok(match show {
            Show::Queues => queues::json(&self.queues(interface, self.detail.verbose())?),
            Show::Sources => self.with_sources(sources::json)?,
            Show::Rules => self.with_rules(rules::json)?,
            Show::Nat => self.with_legacy_rules(true, nat::json)?,
            Show::Anchors => self.with_anchors(|paths| anchors::json(paths, &self.anchor.path))?,
            Show::States => self.with_states(|view| states::json(view, interface))?,
            Show::Info => info::json(&self.info()?),
            Show::Interfaces => interfaces::json(&self.interfaces()?, interface),
            Show::Labels => self.with_labels(labels::json)?,
            Show::Timeouts => timeouts::json(&options.timeouts),
            Show::Memory => memory::json(&options.limits),
            Show::Tables => tables::json(&self.tables()?, self.detail),
            Show::Fingerprints => osfp::json(&self.fingerprints()?),
            Show::StateLimiters => limiters::json(&self.limiters()?, false),
            Show::SourceLimiters => limiters::json(&self.limiters()?, true),
            Show::Confirm => trial::json(&self.confirm()?),
            Show::Metrics => metrics::json(&self.metrics()?),
            Show::References => references::json(&self.references()?),
            Show::All => json!({
                "rules": self.json(Show::Rules)?,
                "states": self.json(Show::States)?,
                "sources": self.json(Show::Sources)?,
                "info": self.json(Show::Info)?,
                "timeouts": self.json(Show::Timeouts)?,
                "memory": self.json(Show::Memory)?,
                "tables": self.json(Show::Tables)?,
            }),
        })
    }

    fn confirm(&self) -> Result<ConfirmView<'_>> {
        Ok(ConfirmView {
            pending: self.filter.map_or(Ok(None), Filter::trial)?,
            failed: self.filter.map_or(Ok(None), Filter::failed_trial)?,
            in_force: &self.ruleset,
        })
    }

    fn metrics(&self) -> Result<MetricsView<'_>> {
        let interfaces = self.filter.map_or(Ok(Vec::new()), Filter::interfaces)?.into_iter();
        let interfaces = interfaces.map(|interface| InterfaceTraffic {
            traffic: traffic(&interface.counters),
            name: interface.name,
        });
        let mut tables = self.all_tables()?;
        tables.retain(|table| table.active);
        Ok(MetricsView {
            now: seconds(SystemTime::now()),
            loaded_at: self.loaded_at(),
            info: self.info()?,
            trial_failed: self.filter.map_or(Ok(None), Filter::failed_trial)?.is_some(),
            limits: &self.ruleset.options.limits,
            tables_named: self.ruleset.all_tables().count(),
            anchors: self.filter.map_or(Ok(Vec::new()), crate::anchors::paths)?.len(),
            interfaces: interfaces.collect(),
            queues: self.queues(None, true)?,
            tables,
            rules: self.rule_sets()?,
            identities: Identities::of(&self.ruleset),
        })
    }

    fn rule_counters(&self, path: &str) -> Result<Vec<RuleCounters>> {
        self.filter.map_or(Ok(Vec::new()), |filter| filter.rule_counters(path))
    }

    /// Returns the rules of the main rule set and of all anchors, by path.
    fn rule_sets(&self) -> Result<BTreeMap<&str, RuleSet<'_>>> {
        let anchors = self.ruleset.anchors.keys().map(String::as_str);
        let set = |path| {
            let set = RuleSet {
                rules: self.ruleset.rules_of(path),
                counters: self.rule_counters(path)?,
                inserted: self.inserted(path),
            };
            Ok((path, set))
        };
        anchors.chain([""]).map(set).collect()
    }

    /// Returns the identities of the rules for JSON; otherwise none.
    fn identities(&self) -> Identities {
        if self.args.json { Identities::of(&self.ruleset) } else { Identities::default() }
    }

    fn with_rules<T>(&self, show: impl FnOnce(&RulesView) -> T) -> Result<T> {
        // the sizes are slow to read, and only -vv and -g print them
        let (sizes, host) = match self.detail.very_verbose() || self.detail.debug {
            true => (self.table_sizes()?, (self.host)()?),
            false => (BTreeMap::new(), Host::default()),
        };
        let table_sizes = |path: &str, name: &str| {
            let own = sizes.get(&TableName::new(path, name));
            own.or_else(|| sizes.get(&TableName::from(name))).copied()
        };
        let dynamic_sizes =
            |address: &DynamicAddress, family| views::dynamic_size(&host, address, family);
        let names = names();
        let view = RulesView {
            sets: self.rule_sets()?,
            path: &self.anchor.path,
            recursive: self.anchor.recursive,
            only: self.args.rule,
            port_names: self.args.port_names.then_some(&names),
            table_sizes: &table_sizes,
            dynamic_sizes: &dynamic_sizes,
            queue_numbers: self.queue_numbers()?,
            identities: &self.identities(),
        };
        Ok(show(&view))
    }

    fn with_legacy_rules<T>(
        &self,
        translation: bool,
        show: impl FnOnce(&LegacyRulesView) -> T,
    ) -> Result<T> {
        let mut sets = BTreeMap::new();
        let own = self.anchor.path.as_str();
        // an anchor call may refer to any anchor
        let others = self.ruleset.anchors.keys().map(String::as_str).chain([""]);
        let others = others.filter(|path| self.anchor.recursive && *path != own);
        for path in others.chain([own]) {
            let counters =
                self.filter.map(|filter| filter.legacy_rule_counters(path)).transpose()?;
            let set = LegacyRuleSet {
                rules: self.ruleset.legacy_rules_of(path),
                counters: counters.unwrap_or_default(),
                inserted: self.inserted(path),
            };
            sets.insert(path, set);
        }
        let names = names();
        Ok(show(&LegacyRulesView {
            sets,
            path: &self.anchor.path,
            recursive: self.anchor.recursive,
            translation,
            only: self.args.rule,
            port_names: self.args.port_names.then_some(&names),
            identities: &self.identities(),
        }))
    }

    /// Returns the user and process that loaded the rules of an anchor.
    fn inserted(&self, path: &str) -> Inserted {
        let Some(loaded) = &self.loaded else { return Inserted::default() };
        match loaded.anchors.get(path) {
            Some(load) => Inserted { uid: load.uid, pid: load.pid },
            None => Inserted { uid: loaded.uid, pid: loaded.pid },
        }
    }

    /// Returns the number of addresses in each active table.
    fn table_sizes(&self) -> Result<BTreeMap<TableName, usize>> {
        let Some(filter) = self.filter else { return Ok(BTreeMap::new()) };
        let tables = filter.tables()?.into_iter().filter(|table| table.active);
        Ok(tables.map(|table| (table.name, table.entries as usize)).collect())
    }

    /// Calls `show` with the paths of all anchors.
    fn with_anchors<T>(&self, show: impl FnOnce(&[&str]) -> T) -> Result<T> {
        let paths = self.filter.map(crate::anchors::paths).transpose()?.unwrap_or_default();
        Ok(show(&paths.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Calls `show` with the rules of the anchor, and with `-a '*'` of all anchors below it. `show`
    /// selects the rules with labels.
    fn with_labels<T>(&self, show: impl FnOnce(&[(&Rule, RuleCounters)]) -> T) -> Result<T> {
        let mut rules = Vec::new();
        for path in &self.paths {
            rules.extend(self.ruleset.rules_of(path).iter().zip(self.rule_counters(path)?));
        }
        rules.retain(|(rule, _)| self.args.rule.is_none_or(|only| only == rule.number));
        Ok(show(&rules))
    }

    fn states(&self) -> Result<Vec<StateView>> {
        self.filter.map_or(Ok(Vec::new()), Filter::states)
    }

    fn with_sources<T>(&self, show: impl FnOnce(&SourcesView) -> T) -> Result<T> {
        let (sources, now) = match self.filter {
            Some(filter) => (filter.sources()?, filter.now()?),
            None => (Vec::new(), 0),
        };
        Ok(show(&SourcesView { sources: &sources, ruleset: &self.ruleset, now }))
    }

    fn limiters(&self) -> Result<Vec<LimiterView>> {
        self.filter.map_or(Ok(Vec::new()), Filter::limiters)
    }

    fn references(&self) -> Result<Vec<EnableReference>> {
        self.filter.map_or(Ok(Vec::new()), Filter::references)
    }

    fn with_states<T>(&self, show: impl FnOnce(&StatesView) -> T) -> Result<T> {
        let mut states = self.states()?;
        if let Some(only) = self.args.rule {
            states.retain(|state| state.rule.as_ref().is_some_and(|rule| rule.number == only));
        }
        let (now, hostid) = match self.filter {
            Some(filter) => (filter.now()?, filter.status()?.hostid),
            None => (0, 0),
        };
        let host: &dyn Fn(IpAddr) -> String =
            if self.args.host_names { &host_name } else { &|address| address.to_string() };
        let orphaned = match self.filter.filter(|_| self.args.json) {
            Some(filter) => filter.identities_of_orphans()?,
            None => HashMap::new(),
        };
        let (identities, orphaned) = (&self.identities(), &orphaned);
        Ok(show(&StatesView { states: &states, now, hostid, host, identities, orphaned }))
    }

    /// Returns the fingerprints of the file in `set fingerprints`, else of the host's file. Returns
    /// none if the fingerprints were flushed.
    fn fingerprints(&self) -> Result<Fingerprints> {
        if !self.filter.map_or(Ok(true), Filter::has_fingerprints)? {
            return Ok(Fingerprints::default());
        }
        let named = self.ruleset.options.fingerprints.as_deref();
        let file = named.unwrap_or(fingerprint::FILE);
        let text = match named {
            Some(file) => std::fs::read_to_string(file).with_context(|| file.to_owned())?,
            None => load::fingerprints().with_context(|| file.to_owned())?,
        };
        Fingerprints::parse(&text).map_err(|message| anyhow!("{file}:{message}"))
    }

    fn info(&self) -> Result<InfoView> {
        let checksum = views::checksum(&self.ruleset.rules);
        let Some(filter) = self.filter else {
            return Ok(InfoView {
                debug: self.ruleset.options.debug,
                checksum,
                syncookie_marks: self.ruleset.options.syncookie_marks(),
                ..InfoView::default()
            });
        };
        let status = filter.status()?;
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
            syncookie_marks: self.ruleset.options.syncookie_marks(),
            fragments: status.fragments,
            log_lost: status.log_lost,
            flow_lost: status.flow_lost,
            sweep_late: status.sweep_late_secs.into(),
            timer_errors: status.timer_errors,
            trial: filter.trial()?,
            forwarded: status.forwarded,
            left_to: status.left_to,
            divert: status.divert,
            divert_lost: status.divert_lost,
            delay: status.delay,
        })
    }

    /// Returns the numbers of queues for `-g`; otherwise none.
    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        let filter = self.filter.filter(|_| self.detail.debug);
        filter.map_or(Ok(BTreeMap::new()), Filter::queue_numbers)
    }

    /// Returns the queues of all interfaces, or of the interface `wanted`.
    fn queues(&self, wanted: Option<&str>, with_counters: bool) -> Result<Vec<QueueTree<'_>>> {
        let queues = &self.ruleset.queues;
        let host = if queues.is_empty() { Host::default() } else { (self.host)()? };
        views::queue_trees(self.filter.filter(|_| with_counters), queues, &host, wanted)
    }

    fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        let known = self.filter.map_or(Ok(Vec::new()), Filter::interfaces)?;
        let counted =
            |interface: KernelInterface| (interface.name.clone(), views::counted(&interface));
        let counters = known.into_iter().map(counted).collect();
        let (host, states) = ((self.host)()?, self.states()?);
        Ok(views::interfaces(&host, &self.ruleset, &states, &counters, self.loaded_at()))
    }

    /// Returns the time when the main rule set was loaded, in seconds since 1970; 0 if none was.
    fn loaded_at(&self) -> i64 {
        self.loaded.as_ref().map_or(0, |loaded| seconds(loaded.loaded_at))
    }

    /// Returns the tables of the selected anchors, by name.
    fn tables(&self) -> Result<Vec<TableView>> {
        let mut tables = self.all_tables()?;
        tables.retain(|table| self.paths.contains(&table.anchor));
        Ok(tables)
    }

    /// Returns the tables of all anchors, by name.
    fn all_tables(&self) -> Result<Vec<TableView>> {
        let tables = self.filter.map_or(Ok(Vec::new()), Filter::tables)?;
        Ok(views::tables(tables.into_iter().map(views::table).collect(), &self.ruleset))
    }
}

/// Returns the name of an address from the name service for `-r`, or `?` if it has none.
pub fn host_name(address: IpAddr) -> String {
    dns_lookup::lookup_addr(&address).unwrap_or_else(|_| "?".to_owned())
}

/// Reads the names of ports and protocols on this host.
fn names() -> Names {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Names::parse(&read("/etc/services"), &read("/etc/protocols"))
}

fn traffic(counters: &InterfaceCounters) -> [[[crate::show::Traffic; 2]; 2]; 2] {
    views::traffic(counters.packets, counters.bytes)
}

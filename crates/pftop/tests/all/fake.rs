//! A filter without a kernel: its contents are values.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, bail};
use pfctl::drops::rules::RulesInForce;
use pfctl::filter::Filter;
use pftop::source::{Source, Unseen};
use skipstep_kernel::DroppedPacket;
use skipstep_kernel::contents::EntryInfo;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::{FragmentStatus, Hook, InstanceStatus, InterfaceView};
use skipstep_kernel::table::{Stats, TableInfo};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Family, RuleId, Ruleset, TableEntry, TableName, Timeout};
use skipstep_views::{
    InterfaceCounters, LimiterView, Peer, RuleCounters, SourceView, StateView, Status,
};

pub const TCP: u8 = 6;
pub const ESTABLISHED: u8 = 4;

/// Rules of the tests. The label of the second rule has an escape sequence.
pub const RULES: &str = "table <bad> { 192.0.2.0/24 }
block log label \"evil\u{1b}[2J\"
pass in on em0 proto tcp to port 22 label ssh
anchor \"web\" {
\tpass in proto tcp to port { 80 443 }
}
match out on em1 from <bad>
queue main on em0 bandwidth 100M
queue std parent main bandwidth 100M default
";

/// The contents of the filter.
pub struct Fake {
    pub generation: u32,
    pub ruleset: Ruleset,
    pub states: Vec<StateView>,
    pub killed: RefCell<Vec<u64>>,
    pub dropped: Vec<DroppedPacket>,
    pub watches_drops: bool,
    pub running: bool,
}

impl Fake {
    /// Makes a filter with [`RULES`].
    pub fn new(states: Vec<StateView>) -> Fake {
        let host = skipstep_scenario::host::standard();
        let ruleset =
            skipstep_pfconf::load(RULES, &skipstep_pfconf::Context::new(&host)).unwrap().ruleset;
        Fake {
            generation: 1,
            ruleset,
            states,
            killed: RefCell::default(),
            dropped: Vec::new(),
            watches_drops: false,
            running: true,
        }
    }

    fn loaded_now(&self) -> Loaded {
        Loaded {
            ruleset: self.ruleset.clone(),
            generation: self.generation,
            loaded_at: UNIX_EPOCH,
            uid: 0,
            pid: 0,
            anchors: BTreeMap::new(),
        }
    }
}

/// Returns an inbound TCP state that the second rule has made.
pub fn state(id: u64, source: &str, port: u16, bytes: u64) -> StateView {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let key = [(address(source), 40_000 + id as u16), (address("10.0.1.1"), port)];
    let peer = Peer { state: ESTABLISHED, ..Peer::default() };
    StateView {
        id,
        protocol: TCP,
        family: Family::Inet,
        direction: Direction::In,
        interface: Some("em0".into()),
        rdomain: 0,
        rule: Some(if port == 22 { 1.into() } else { RuleId::new("web", 0) }),
        anchor_rule: None,
        wire: key,
        stack: key,
        src: peer,
        dst: peer,
        timeout: Timeout::TcpEstablished,
        created_at: 100 + id as u32,
        expires_at: 86_400,
        packets: [bytes / 100, 1],
        bytes: [bytes, 0],
        flags: 0,
        min_ttl: 0,
        max_mss: 0,
        tag: None,
        tracked: false,
        route: None,
    }
}

impl Filter for Fake {
    fn loaded(&self) -> Result<Loaded> {
        Ok(self.loaded_now())
    }

    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let counters = |number: u32| RuleCounters {
            evaluations: 1000,
            packets: [if number == 2 { 0 } else { 100 * u64::from(number + 1) }, 0],
            bytes: [64_000 * u64::from(number), 0],
            states: 2,
            states_created: 5,
            expired: false,
        };
        Ok(self.ruleset.rules_of(anchor).iter().map(|rule| counters(rule.number)).collect())
    }

    fn legacy_rule_counters(&self, _: &str) -> Result<Vec<RuleCounters>> {
        Ok(Vec::new())
    }

    fn states(&self) -> Result<Vec<StateView>> {
        Ok(self.states.clone())
    }

    fn sources(&self) -> Result<Vec<SourceView>> {
        Ok(Vec::new())
    }

    fn limiters(&self) -> Result<Vec<LimiterView>> {
        Ok(Vec::new())
    }

    fn now(&self) -> Result<u32> {
        Ok(3_723)
    }

    fn status(&self) -> Result<InstanceStatus> {
        Ok(InstanceStatus {
            running: self.running,
            since_secs: 60,
            states: self.states.len() as u32,
            half_open: 0,
            capacity: 100_000,
            hostid: 1,
            debug: 0,
            engine: Status::default(),
            fragments: FragmentStatus::default(),
            log_lost: 0,
            flow_lost: 0,
            sweep_late_secs: 0,
            timer_errors: (0, 0),
            forwarded: [0; 2],
            left_to: [0; 4],
            divert: Default::default(),
            divert_lost: 0,
            delay: Default::default(),
            loginterface: None,
        })
    }

    fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        let counters = InterfaceCounters {
            packets: [[[10, 3], [20, 0]], [[0; 2]; 2]],
            bytes: [[[1000, 180], [2000, 0]], [[0; 2]; 2]],
        };
        Ok(vec![InterfaceView {
            name: "em0".into(),
            index: Some(1),
            groups: Vec::new(),
            skip: false,
            hook: Hook::Xdp,
            counters,
            zeroed: UNIX_EPOCH,
        }])
    }

    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        Ok(BTreeMap::new())
    }

    fn queue_stats(&self, _: u32) -> Result<BTreeMap<String, QueueStats>> {
        let stats = QueueStats { packets: 12, bytes: 3456, dropped: 7, length: 2 };
        Ok([("std".to_owned(), stats)].into())
    }

    fn tables(&self) -> Result<Vec<TableInfo>> {
        Ok(vec![TableInfo {
            name: TableName::from("bad"),
            persist: false,
            constant: false,
            counters: false,
            active: true,
            rules: 1,
            anchors: 0,
            entries: 1,
            stats: Stats { r#match: 4, nomatch: 5, packets: [[6; 4]; 2], bytes: [[7; 4]; 2] },
            zeroed: UNIX_EPOCH + Duration::from_secs(1),
        }])
    }

    fn table_entries(&self, name: &TableName) -> Result<Vec<EntryInfo>> {
        if *name != TableName::from("bad") {
            bail!("{}: no such table", name.name);
        }
        let entry = TableEntry { negated: false, net: "192.0.2.0/24".parse()?, weight: 0 };
        Ok(vec![EntryInfo { entry, cleared: 0, traffic: None, states: None }])
    }
}

impl Source for Fake {
    fn filter(&self) -> &dyn Filter {
        self
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn rules(&self) -> Result<RulesInForce> {
        let paths = (0..).zip(["".to_owned(), "web".to_owned()]).collect();
        Ok(RulesInForce::new(self.loaded_now(), paths))
    }

    fn counters(&self) -> Result<BTreeMap<String, Vec<RuleCounters>>> {
        ["", "web"]
            .map(|path| Ok((path.to_owned(), self.rule_counters(path)?)))
            .into_iter()
            .collect()
    }

    fn host(&self) -> Result<Host> {
        Ok(skipstep_scenario::host::standard())
    }

    fn kill(&self, id: u64) -> Result<bool> {
        self.killed.borrow_mut().push(id);
        Ok(self.states.iter().any(|state| state.id == id))
    }

    fn watch_drops(&mut self, on: bool) -> Result<()> {
        self.watches_drops = on;
        Ok(())
    }

    fn take_drops(&mut self, take: &mut dyn FnMut(&DroppedPacket)) -> Result<Unseen> {
        assert!(self.watches_drops, "nobody has asked for drops");
        self.dropped.drain(..).for_each(|packet| take(&packet));
        Ok(Unseen::default())
    }
}

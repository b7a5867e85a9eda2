//! Conversions of rule sets and counters to the views of [`crate::show`]. The counters may come
//! from any evaluator.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use ipnet::IpNet;
use md5::{Digest, Md5};
use skipstep_classifier::dynamic;
use skipstep_kernel::contents::EntryInfo;
use skipstep_kernel::report::{Hook, InterfaceView as KernelInterface};
use skipstep_kernel::table::TableInfo;
use skipstep_pfconf::{PrintOptions, print};
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Family, Queue, Rule, Ruleset};
use skipstep_views::StateView;

use crate::filter::Filter;
use crate::show::Traffic;
use crate::show::interfaces::InterfaceTraffic;
use crate::show::interfaces::InterfaceView;
use crate::show::queues::QueueTree;
use crate::show::tables::{AddressView, TableView, sort};

/// Counts the references of rules to each interface, group or `any`, including rules of anchors.
pub fn interface_references(ruleset: &Ruleset) -> BTreeMap<String, u64> {
    let mut references = BTreeMap::new();
    let mut count = |name: &str| *references.entry(name.to_string()).or_default() += 1;
    for (_, rule) in ruleset.all_rules() {
        for place in [rule.interface.as_ref(), rule.received_on.as_deref()].into_iter().flatten() {
            match &place.value {
                InterfaceMatch::Any => count("any"),
                InterfaceMatch::Named(name) => count(name),
                InterfaceMatch::Rdomain(_) => {}
            }
        }
        for address in rule.dynamic_addresses() {
            count(&address.interface);
        }
    }
    references
}

/// The counters of an interface.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Counters `[inet, inet6][in, out][pass, block]`.
    pub traffic: [[[Traffic; 2]; 2]; 2],
    /// Time of the last clearing, in seconds since 1970.
    pub cleared: i64,
    /// Hook of the filter on the interface; `None` if the filter does not know it.
    pub hook: Option<Hook>,
}

/// Returns a view of each interface, group and name in rules, sorted by name. Names without
/// counters get `loaded_at` as the time of clearing.
pub fn interfaces(
    host: &Host,
    ruleset: &Ruleset,
    states: &[StateView],
    counted: &BTreeMap<String, Counted>,
    loaded_at: i64,
) -> Vec<InterfaceView> {
    let references = interface_references(ruleset);
    let on = |name: &str| {
        states.iter().filter(|state| state.interface.as_deref().unwrap_or("all") == name).count()
    };
    let skipped = |name: &str| {
        let says = |skip: &String| {
            skip == name
                || host.interface(name).is_some_and(|interface| interface.has_name_or_group(skip))
        };
        ruleset.options.skip.iter().any(says)
    };
    let own = host.interfaces.iter().map(|interface| &interface.name);
    let groups = host.interfaces.iter().flat_map(|interface| &interface.groups);
    let names: BTreeSet<&String> = own.chain(groups).chain(references.keys()).collect();
    names
        .into_iter()
        .map(|name| {
            let none = Counted { cleared: loaded_at, ..Counted::default() };
            let Counted { traffic, cleared, hook } = counted.get(name).unwrap_or(&none).clone();
            InterfaceView {
                statistics: InterfaceTraffic { name: name.clone(), traffic },
                skip: skipped(name),
                hook,
                cleared,
                states: on(name) as u64,
                rules: references.get(name).copied().unwrap_or(0),
            }
        })
        .collect()
}

/// Returns the number of addresses that `address` stands for, of one family or of both.
pub fn dynamic_size(host: &Host, address: &DynamicAddress, family: Option<Family>) -> usize {
    let counts =
        |net: &IpNet| family.is_none_or(|family| family == Family::from_address(net.addr()));
    dynamic::contents(address, host).iter().filter(|net| counts(net)).count()
}

/// Returns the view of a table.
pub fn table(table: TableInfo) -> TableView {
    TableView {
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
        traffic: table_traffic(table.stats.packets, table.stats.bytes),
        name: table.name.name,
        anchor: table.name.anchor,
    }
}

/// Returns the trees of the queues on all interfaces, or on the interface `only`. `filter` is
/// `None` if no counters are needed.
///
/// # Errors
/// Fails if the counters cannot be read.
pub fn queue_trees<'q>(
    filter: Option<&dyn Filter>,
    queues: &'q [Queue],
    host: &Host,
    only: Option<&str>,
) -> Result<Vec<QueueTree<'q>>> {
    let roots = queues.iter().filter(|queue| queue.parent.is_none());
    let named = roots.filter_map(|root| Some((root, root.interface.as_deref()?)));
    let shown = named.filter(|(_, name)| only.is_none_or(|only| only == *name));
    let tree = |(root, name)| {
        let there = filter.zip(host.interface(name));
        let stats = there.map(|(filter, interface)| filter.queue_stats(interface.index));
        Ok(QueueTree {
            interface: name,
            queues: Queue::and_below(root, queues).collect(),
            stats: stats.transpose()?.unwrap_or_default(),
        })
    };
    shown.map(tree).collect()
}

/// Returns the counters of an interface.
pub fn counted(interface: &KernelInterface) -> Counted {
    Counted {
        traffic: traffic(interface.counters.packets, interface.counters.bytes),
        cleared: seconds(interface.zeroed),
        hook: Some(interface.hook.clone()),
    }
}

/// Returns the tables that pf lists, sorted by name: tables that persist or that rules use. For
/// each dynamic address a table is added, because pf keeps its addresses in a table of a hidden
/// anchor.
pub fn tables(tables: Vec<TableView>, ruleset: &Ruleset) -> Vec<TableView> {
    let mut tables = tables;
    tables.retain(|table| table.persist || table.rules > 0 || table.anchors > 0);
    let rules = ruleset.all_rules();
    for address in rules.flat_map(|(_, rule)| rule.dynamic_addresses()) {
        let name = dynamic_name(address);
        match tables.iter_mut().find(|table| table.anchor.is_empty() && table.name == name) {
            Some(table) => table.anchors = 1,
            None => tables.push(TableView { name, anchors: 1, ..TableView::default() }),
        }
    }
    tables.sort_by(|a, b| (&a.name, &a.anchor).cmp(&(&b.name, &b.anchor)));
    tables
}

/// Returns a name such as `em0:network:0`.
fn dynamic_name(address: &DynamicAddress) -> String {
    let modifiers = [
        (address.network, ":network"),
        (address.broadcast, ":broadcast"),
        (address.peer, ":peer"),
        (address.no_alias, ":0"),
    ];
    let modifiers = modifiers.into_iter().filter(|(set, _)| *set).map(|(_, modifier)| modifier);
    address.interface.clone() + &modifiers.collect::<String>()
}

/// Joins the arrays of packets and bytes of an interface.
pub fn traffic(packets: [[[u64; 2]; 2]; 2], bytes: [[[u64; 2]; 2]; 2]) -> [[[Traffic; 2]; 2]; 2] {
    let cell = |family: usize, direction: usize, verdict: usize| Traffic {
        packets: packets[family][direction][verdict],
        bytes: bytes[family][direction][verdict],
    };
    [0, 1].map(|family| {
        [0, 1].map(|direction| [0, 1].map(|verdict| cell(family, direction, verdict)))
    })
}

/// Joins the arrays of packets and bytes of a table.
pub fn table_traffic(packets: [[u64; 4]; 2], bytes: [[u64; 4]; 2]) -> [[Traffic; 4]; 2] {
    let cell =
        |way: usize, what: usize| Traffic { packets: packets[way][what], bytes: bytes[way][what] };
    [0, 1].map(|way| [0, 1, 2, 3].map(|what| cell(way, what)))
}

/// Joins the arrays of packets and bytes of a table's entry.
fn entry_traffic(packets: [[u64; 3]; 2], bytes: [[u64; 3]; 2]) -> [[Traffic; 3]; 2] {
    let cell =
        |way: usize, what: usize| Traffic { packets: packets[way][what], bytes: bytes[way][what] };
    [0, 1].map(|way| [0, 1, 2].map(|what| cell(way, what)))
}

/// Returns the views of a table's entries, in pf's order.
pub fn addresses(entries: &[EntryInfo]) -> Vec<AddressView> {
    let view = |info: &EntryInfo| AddressView {
        entry: info.entry,
        cleared: info.cleared.into(),
        // pf has one structure for counters and states, and allocates it if either is needed
        traffic: match (info.traffic, info.states) {
            (Some(traffic), _) => Some(entry_traffic(traffic.packets, traffic.bytes)),
            (None, states) => states.map(|_| Default::default()),
        },
        states: info.states.unwrap_or(0),
    };
    let mut addresses: Vec<AddressView> = entries.iter().map(view).collect();
    sort(&mut addresses);
    addresses
}

/// Returns the MD5 of the printed rules, one a line, which is equal for equal rules. OpenBSD hashes
/// its own structures, so only the sum of an empty rule set is the same.
// Differs from OpenBSD: linux.md, "Checksum of the rules"
pub fn checksum(rules: &[Rule]) -> [u8; 16] {
    let mut hash = Md5::new();
    for rule in rules {
        hash.update(print::rule(rule, &PrintOptions::default()));
        hash.update("\n");
    }
    hash.finalize().into()
}

/// Converts a time to seconds since 1970; earlier times become 0.
pub fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

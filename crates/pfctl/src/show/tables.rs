//! `-s Tables`, and the output of `-T show` and `-T test`.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};
use skipstep_ruleset::TableEntry;

use super::{Detail, Traffic, cleared_line, traffic_line};

const DIRECTIONS: [&str; 2] = ["In", "Out"];
/// Names of the counters. Addresses have counters for the first three only.
const OPERATIONS: [&str; 4] = ["Block", "Match", "Pass", "XPass"];

/// A table with its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableView {
    /// Name of the table.
    pub name: String,
    /// Path of the table's anchor; empty for the main rule set.
    pub anchor: String,
    /// True if the table is `const`.
    pub constant: bool,
    /// True if the table is `persist`.
    pub persist: bool,
    /// True if the table has `counters` for addresses.
    pub counters: bool,
    /// True if the table exists; false if rules name it only.
    pub active: bool,
    /// Number of references in rules.
    pub rules: u64,
    /// Number of dynamic addresses for which pf would keep a table of this name in a hidden anchor.
    pub anchors: u64,
    /// Time of the last clearing, in seconds since 1970.
    pub cleared: i64,
    /// Number of addresses and networks in the table.
    pub addresses: usize,
    /// Lookups without a matching entry.
    pub nomatch: u64,
    /// Lookups with a matching entry.
    pub matches: u64,
    /// Counters `[in, out][block, match, pass, xpass]`.
    pub traffic: [[Traffic; 4]; 2],
}

/// An address in a table, with its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressView {
    /// Address or network, with its negation and weight.
    pub entry: TableEntry,
    /// Time of the last clearing, in seconds since 1970.
    pub cleared: i64,
    /// Counters `[in, out][block, match, pass]`. `None` if the table has no counters or no packet
    /// matched.
    pub traffic: Option<[[Traffic; 3]; 2]>,
    /// Number of states that `least-states` pools have assigned to the address.
    pub states: u32,
}

/// Prints the tables, which must be sorted by name. Tables that do not exist are printed with `-g`.
pub fn text(tables: &[TableView], detail: Detail) -> String {
    tables
        .iter()
        .filter(|table| table.active || detail.debug)
        .map(|table| block(table, detail))
        .collect()
}

fn block(table: &TableView, detail: Detail) -> String {
    let mut text = String::new();
    if detail.verbose() {
        text += &format!("{}\t", flags(table));
    }
    text += &format!("{}\n", full_name(table));
    if !detail.very_verbose() {
        return text;
    }
    text += &format!("\tAddresses:   {}\n", table.addresses);
    text += &cleared_line(table.cleared);
    text +=
        &format!("\tReferences:  [ Anchors: {:<18} Rules: {:<18} ]\n", table.anchors, table.rules);
    text += &format!(
        "\tEvaluations: [ NoMatch: {:<18} Match: {:<18} ]\n",
        table.nomatch, table.matches
    );
    text + &traffic_lines(&table.traffic)
}

/// Returns the letters of a table's properties: `-pa-r-C`.
pub fn flags(table: &TableView) -> String {
    let flags = [
        (table.constant, 'c'),
        (table.persist, 'p'),
        (table.active, 'a'),
        (false, 'i'), // inactive: not committed yet, which is never visible here
        (table.rules > 0, 'r'),
        (table.anchors > 0, 'h'),
        (table.counters, 'C'),
    ];
    flags.map(|(set, letter)| if set { letter } else { '-' }).into_iter().collect()
}

/// Returns the name of a table, with `@` and the path of its anchor if it is in one.
pub fn full_name(table: &TableView) -> String {
    let anchor = if table.anchor.is_empty() { "" } else { "@" };
    format!("{}{anchor}{}", table.name, table.anchor)
}

fn traffic_lines<const N: usize>(traffic: &[[Traffic; N]; 2]) -> String {
    let mut text = String::new();
    for (direction, cells) in DIRECTIONS.iter().zip(traffic) {
        for (operation, &cell) in OPERATIONS.iter().zip(cells) {
            text += &traffic_line(&format!("{direction}/{operation}:"), cell);
        }
    }
    text
}

/// Sorts addresses in the order of pf's radix tree: IPv4 first, by address. Of two prefixes of the
/// same address, the longer one comes first.
pub fn sort(addresses: &mut [AddressView]) {
    addresses.sort_by_key(|address| {
        let net = address.entry.net;
        (net.addr(), u8::MAX - net.prefix_len())
    });
}

/// Prints the addresses for `-T show`, one a line; with `-v` their counters. `host_name` returns
/// the host's name (`-r`).
pub fn contents(
    addresses: &[AddressView],
    detail: Detail,
    host_name: Option<&dyn Fn(IpAddr) -> String>,
) -> String {
    let mut text = String::new();
    for address in addresses {
        text += &entry_line(' ', address.entry);
        let net = address.entry.net;
        if let Some(name) = host_name.filter(|_| net.prefix_len() == net.max_prefix_len()) {
            text += &format!("\t({})", name(net.addr()));
        }
        text.push('\n');
        if address.entry.weight > 0 {
            text += &format!("\t{:<19} {}\n", "Weight:", address.entry.weight);
        }
        if detail.verbose() {
            text += &cleared_line(address.cleared);
            if address.states > 0 {
                text += &format!("\t{:<19} {}\n", "Active States:", address.states);
            }
            if let Some(traffic) = &address.traffic {
                text += &traffic_lines(traffic);
            }
        }
    }
    text
}

/// Prints an address behind the letter for the result of a command: `M  10.0.0.1`.
pub fn entry_line(what: char, entry: TableEntry) -> String {
    format!("{what} {}", entry_text(entry))
}

/// Prints an address behind a blank or `!`: ` 10.0.0.0/8`, `!10.0.0.1`.
pub fn entry_text(entry: TableEntry) -> String {
    let not = if entry.negated { '!' } else { ' ' };
    let net = entry.net;
    if net.prefix_len() == net.max_prefix_len() {
        format!("{not}{}", net.addr())
    } else {
        format!("{not}{net}")
    }
}

/// The result of `-T test` for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// Address that was looked up.
    pub address: IpAddr,
    /// Longest matching entry of the table, negated or not.
    pub entry: Option<TableEntry>,
}

/// The entries of a table, indexed for many lookups.
pub struct Contents {
    entries: HashMap<IpNet, TableEntry>,
    /// Prefix lengths that occur in the table.
    lengths: BTreeSet<u8>,
}

impl Contents {
    /// Makes the index of a table's entries.
    pub fn new(entries: impl Iterator<Item = TableEntry>) -> Contents {
        let entries: HashMap<_, _> = entries.map(|entry| (entry.net.trunc(), entry)).collect();
        let lengths = entries.keys().map(IpNet::prefix_len).collect();
        Contents { entries, lengths }
    }

    /// Looks `address` up; the longest match decides.
    pub fn look_up(&self, address: IpAddr) -> Lookup {
        let nets = self.lengths.iter().rev().filter_map(|length| IpNet::new(address, *length).ok());
        let entry = nets.filter_map(|net| self.entries.get(&net.trunc()).copied()).next();
        Lookup { address, entry }
    }
}

impl Lookup {
    /// True if the address matches: its longest match is not negated.
    pub fn matches(&self) -> bool {
        self.entry.is_some_and(|entry| !entry.negated)
    }
}

/// Prints the output of `-T test`: with `-v` the addresses that match, with `-vv` all addresses
/// with their entries. The closing line on standard error is not included.
pub fn test(lookups: &[Lookup], detail: Detail) -> String {
    let mut text = String::new();
    for lookup in lookups {
        let what = if lookup.matches() { 'M' } else { ' ' };
        let address = lookup.address;
        match lookup.entry {
            _ if !detail.verbose() => {}
            Some(entry) if detail.very_verbose() => {
                text += &format!("{what}  {address}\t{}\n", entry_text(entry));
            }
            None if detail.very_verbose() => text += &format!("{what}  {address}\t nomatch\n"),
            _ if lookup.matches() => text += &format!("{what}  {address}\n"),
            _ => {}
        }
    }
    text
}

/// Returns a list with an object for each table.
pub fn json(tables: &[TableView], detail: Detail) -> Value {
    tables
        .iter()
        .filter(|table| table.active || detail.debug)
        .map(|table| {
            json!({
                "name": table.name,
                "anchor": table.anchor,
                "const": table.constant,
                "persist": table.persist,
                "counters": table.counters,
                "active": table.active,
                "rules": table.rules,
                "addresses": table.addresses,
                "cleared": table.cleared,
                "nomatch": table.nomatch,
                "match": table.matches,
                "traffic": traffic_json(&table.traffic),
            })
        })
        .collect()
}

/// Returns a list with an object for each address.
pub fn contents_json(addresses: &[AddressView]) -> Value {
    addresses
        .iter()
        .map(|address| {
            json!({
                "address": entry_text(TableEntry { negated: false, ..address.entry }).trim_start(),
                "negated": address.entry.negated,
                "weight": address.entry.weight,
                "cleared": address.cleared,
                "traffic": address.traffic.as_ref().map(traffic_json),
                "states": address.states,
            })
        })
        .collect()
}

fn traffic_json<const N: usize>(traffic: &[[Traffic; N]; 2]) -> Value {
    let object = |cells: &[Traffic; N]| -> Value {
        OPERATIONS
            .iter()
            .zip(cells)
            .map(|(name, cell)| {
                (name.to_lowercase(), json!({ "packets": cell.packets, "bytes": cell.bytes }))
            })
            .collect()
    };
    json!({ "in": object(&traffic[0]), "out": object(&traffic[1]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> TableEntry {
        let (negated, net) = match text.strip_prefix('!') {
            Some(net) => (true, net),
            None => (false, text),
        };
        let net = net.parse().unwrap_or_else(|_| net.parse::<IpAddr>().unwrap().into());
        TableEntry { negated, net, weight: 0 }
    }

    #[test]
    fn the_longest_match_decides() {
        let entries =
            ["10.0.0.0/8", "!10.1.0.0/16", "10.1.1.1", "::/0", "2001:db8::/48"].map(entry);
        let contents = Contents::new(entries.into_iter());
        let lookup = |address: &str| contents.look_up(address.parse().unwrap());
        assert!(lookup("10.2.0.1").matches());
        assert!(!lookup("10.1.0.1").matches());
        assert_eq!(lookup("10.1.0.1").entry, Some(entries[1]));
        assert!(lookup("10.1.1.1").matches());
        assert_eq!(lookup("192.0.2.1").entry, None);
        assert_eq!(lookup("2001:db8::1").entry, Some(entries[4]));
        assert_eq!(lookup("2001:db8:1::1").entry, Some(entries[3]));
    }

    #[test]
    fn networks_keep_their_length_and_hosts_do_not() {
        assert_eq!(entry_line(' ', entry("10.0.0.0/8")), "   10.0.0.0/8");
        assert_eq!(entry_line('A', entry("!10.0.0.1")), "A !10.0.0.1");
        assert_eq!(entry_line(' ', entry("2001:db8::/32")), "   2001:db8::/32");
    }
}

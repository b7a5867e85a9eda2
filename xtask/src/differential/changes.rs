//! Changes while packets flow: edits of tables, and killed states.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fastrand::Rng;
use ipnet::IpNet;
use skipstep_ruleset::{Direction, Ruleset, Table, TableEntry, TableName};
use skipstep_scenario::case::Action;
use skipstep_scenario::kill::Target;
use skipstep_views::{Edit, StateView, TableEdit};

use super::pool::{Pool, one_in, pick};
use super::translation::{address, network};

/// Draws the changes of one case.
pub struct Changes {
    /// Tables that may be changed.
    tables: Vec<TableName>,
    /// Tables with `const`. A load that only names such a table leaves it constant.
    constants: BTreeSet<TableName>,
    /// Labels of the present rules and of earlier ones.
    labels: Vec<String>,
}

impl Changes {
    pub fn new(ruleset: &Ruleset) -> Self {
        let defined = ruleset.all_tables().filter(|(_, table)| table.defined);
        let (constant, other): (Vec<_>, Vec<_>) = defined.partition(|(_, table)| table.constant);
        let name = |(path, table): (&str, &Table)| TableName::new(path, &table.name);
        let tables = other.into_iter().map(name).collect();
        let constants = constant.into_iter().map(name).collect();
        let mut labels: Vec<String> =
            ruleset.every_rule().flat_map(|(_, rule)| rule.labels.clone()).collect();
        labels.sort();
        labels.dedup();
        Changes { tables, constants, labels }
    }

    /// Takes the tables of a new rule set. Labels of earlier rules are kept.
    pub fn learn(&mut self, ruleset: &Ruleset) {
        let Changes { mut tables, mut constants, mut labels } = Changes::new(ruleset);
        let is_stated = |name: &TableName| {
            ruleset
                .tables_of(&name.anchor)
                .iter()
                .any(|table| table.name == name.name && table.stated)
        };
        constants.extend(self.constants.iter().filter(|name| !is_stated(name)).cloned());
        tables.retain(|name| !constants.contains(name));
        labels.append(&mut self.labels);
        labels.sort();
        labels.dedup();
        *self = Changes { tables, constants, labels };
    }

    /// Draws a change for some steps. `states` are the last known states.
    pub fn step(&self, rng: &mut Rng, pool: &Pool, states: &[(u32, StateView)]) -> Option<Action> {
        if !self.tables.is_empty() && one_in(rng, 50) {
            return Some(Action::Table(self.table_edit(rng, pool)));
        }
        if !states.is_empty() && one_in(rng, 70) {
            let (number, state) = pick(rng, states);
            if rng.bool() {
                return Some(Action::KillSelected(self.target(rng, &state)));
            }
            let all = states.iter().map(|(number, _)| *number);
            let killed = if one_in(rng, 8) { all.collect() } else { vec![number] };
            return Some(Action::Kill(killed));
        }
        None
    }

    /// Draws a target of `pfctl -k` that matches the state, and perhaps others.
    fn target(&self, rng: &mut Rng, state: &StateView) -> Target {
        let [from, to] = match state.direction {
            Direction::In => state.wire,
            Direction::Out => [state.stack[1], state.stack[0]],
        };
        match rng.u8(..4) {
            0 if !self.labels.is_empty() => Target::Label(pick(rng, &self.labels)),
            1 => Target::Key(state.protocol, from, to),
            _ => match &state.route {
                Some(hop) if rng.bool() => Target::Gateway(around(rng, hop.address)),
                _ => {
                    let to = rng.bool().then(|| around(rng, to.0));
                    Target::Hosts(around(rng, from.0), to)
                }
            },
        }
    }

    fn table_edit(&self, rng: &mut Rng, pool: &Pool) -> TableEdit {
        let edit = pick(rng, &[Edit::Add, Edit::Add, Edit::Delete, Edit::Delete, Edit::Replace]);
        let entries = (0..rng.usize(..5)).map(|_| entry(rng, pool)).collect();
        TableEdit { table: pick(rng, &self.tables), edit, entries }
    }
}

/// Draws an address or a network that contains it.
fn around(rng: &mut Rng, address: IpAddr) -> IpNet {
    let whole = IpNet::from(address).prefix_len();
    let shorter = pick(rng, &[0, 0, 1, 8, 20]);
    IpNet::new_assert(address, whole.saturating_sub(shorter)).trunc()
}

/// Draws an address that packets have, or a network around one.
fn entry(rng: &mut Rng, pool: &Pool) -> TableEntry {
    let ipv6 = one_in(rng, 3);
    let net: IpNet = match one_in(rng, 3) {
        true => network(rng, pool, ipv6).parse().expect("the pool makes networks"),
        false => {
            let address: IpAddr =
                address(rng, pool, ipv6).parse().expect("the pool makes addresses");
            address.into()
        }
    };
    TableEntry { negated: one_in(rng, 4), ..TableEntry::from(net.trunc()) }
}

//! What is changed while packets flow: tables, and states that are killed.

use fastrand::Rng;
use ipnet::IpNet;
use skipstep_ruleset::{Ruleset, TableEntry, TableName};
use skipstep_scenario::case::Action;
use skipstep_scenario::engine::{Edit, StateView, TableEdit};

use super::pool::{Pool, one_in, pick};
use super::translation::{address, network};

/// Makes the changes of one case.
pub struct Changes {
    /// Tables that may be changed.
    tables: Vec<TableName>,
}

impl Changes {
    pub fn new(ruleset: &Ruleset) -> Self {
        let tables = ruleset.all_tables().filter(|(_, table)| table.defined && !table.constant);
        Changes { tables: tables.map(|(path, table)| TableName::new(path, &table.name)).collect() }
    }

    /// A change, now and then; `states` are those that were seen last.
    pub fn step(&self, rng: &mut Rng, pool: &Pool, states: &[(u32, StateView)]) -> Option<Action> {
        if !self.tables.is_empty() && one_in(rng, 50) {
            return Some(Action::Table(self.table_edit(rng, pool)));
        }
        if !states.is_empty() && one_in(rng, 70) {
            let (number, _) = pick(rng, states);
            let all = states.iter().map(|(number, _)| *number);
            let killed = if one_in(rng, 8) { all.collect() } else { vec![number] };
            return Some(Action::Kill(killed));
        }
        None
    }

    fn table_edit(&self, rng: &mut Rng, pool: &Pool) -> TableEdit {
        let edit = pick(rng, &[Edit::Add, Edit::Add, Edit::Delete, Edit::Delete, Edit::Replace]);
        let entries = (0..rng.usize(..5)).map(|_| entry(rng, pool)).collect();
        TableEdit { table: pick(rng, &self.tables), edit, entries }
    }
}

/// An address that packets have, or a network around one.
fn entry(rng: &mut Rng, pool: &Pool) -> TableEntry {
    let ipv6 = one_in(rng, 3);
    let net: IpNet = match one_in(rng, 3) {
        true => network(rng, pool, ipv6).parse().expect("the pool makes networks"),
        false => {
            let address: std::net::IpAddr =
                address(rng, pool, ipv6).parse().expect("the pool makes addresses");
            address.into()
        }
    };
    TableEntry { negated: one_in(rng, 4), ..TableEntry::from(net.trunc()) }
}

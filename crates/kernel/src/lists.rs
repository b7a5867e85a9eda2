//! The addresses of tables, in a file beside the record of a rule set. A change of rules alone then
//! reads and writes a million addresses as entries of fixed size. These entries cost less than the
//! record's encoding.
//!
//! The file is a head followed by lists. A list has its kind, the name of its table, the number of
//! its entries, and the entries. Numbers are in the machine's byte order, because the file does not
//! outlive the boot.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_ruleset::{TableEntry, TableName};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::record::Record;

/// First bytes of a file; the digit is the version.
const HEAD: &[u8; 8] = b"lists 1\n";

/// The lists of a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Lists {
    /// Entries from table statements, for the tables that have any.
    defined: BTreeMap<TableName, Vec<TableEntry>>,
    /// Entries in the kernel, for the tables that nobody has changed since their load.
    stored: BTreeMap<TableName, Vec<TableEntry>>,
    /// Entries in the kernel of the host's own addresses.
    own: Option<Vec<TableEntry>>,
}

/// Kinds of lists.
mod kind {
    pub const DEFINED: u8 = 0;
    pub const STORED: u8 = 1;
    /// The entries in the kernel are those of the statement; this list has no entries.
    pub const STORED_AS_DEFINED: u8 = 2;
    pub const OWN: u8 = 3;
}

/// An entry in a file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    address: [u8; 16],
    prefix: u8,
    family: u8,
    negated: u8,
    weight: [u8; 2],
}

impl Lists {
    /// Moves the lists out of a record.
    pub fn take(record: &mut Record) -> Self {
        let mut lists = Lists::default();
        for_each_defined(record, |name, entries| {
            if !entries.is_empty() {
                lists.defined.insert(name, std::mem::take(entries));
            }
        });
        for (name, table) in &mut record.tables {
            if let Some(entries) = table.contents.take() {
                lists.stored.insert(name.clone(), entries);
            }
        }
        lists.own = record.own_addresses.as_mut().and_then(|own| own.contents.take());
        lists
    }

    /// Moves the lists back into a record. Skips tables that the record does not have, because it
    /// may be of another generation.
    pub fn put(mut self, record: &mut Record) {
        for_each_defined(record, |name, entries| {
            if let Some(defined) = self.defined.remove(&name) {
                *entries = defined;
            }
        });
        for (name, table) in &mut record.tables {
            if let Some(stored) = self.stored.remove(name) {
                table.contents = Some(stored);
            }
        }
        if let (Some(own), Some(entries)) = (&mut record.own_addresses, self.own) {
            own.contents = Some(entries);
        }
    }

    /// Returns the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        for (name, entries) in &self.defined {
            write(&mut bytes, kind::DEFINED, name, entries);
        }
        for (name, entries) in &self.stored {
            match self.defined.get(name) == Some(entries) {
                true => write(&mut bytes, kind::STORED_AS_DEFINED, name, &[]),
                false => write(&mut bytes, kind::STORED, name, entries),
            }
        }
        if let Some(entries) = &self.own {
            write(&mut bytes, kind::OWN, &TableName::from(""), entries);
        }
        bytes
    }

    /// Parses the bytes of a file; `None` if they are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut lists = Lists::default();
        let mut rest = bytes.strip_prefix(HEAD)?;
        while !rest.is_empty() {
            let (kind, name, entries) = read(&mut rest)?;
            match kind {
                kind::DEFINED => _ = lists.defined.insert(name, entries),
                kind::STORED => _ = lists.stored.insert(name, entries),
                kind::STORED_AS_DEFINED => {
                    let defined = lists.defined.get(&name)?.clone();
                    lists.stored.insert(name, defined);
                }
                kind::OWN => lists.own = Some(entries),
                _ => return None,
            }
        }
        Some(lists)
    }
}

/// Visits the entries that statements give each table.
fn for_each_defined(record: &mut Record, mut visit: impl FnMut(TableName, &mut Vec<TableEntry>)) {
    for table in &mut record.ruleset.tables {
        visit(TableName::new("", &table.name), &mut table.entries);
    }
    for (path, anchor) in &mut record.ruleset.anchors {
        for table in &mut anchor.tables {
            visit(TableName::new(path, &table.name), &mut table.entries);
        }
    }
}

fn write(bytes: &mut Vec<u8>, kind: u8, name: &TableName, entries: &[TableEntry]) {
    let name = String::from(name.clone());
    bytes.push(kind);
    bytes.extend((name.len() as u32).to_ne_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend((entries.len() as u32).to_ne_bytes());
    bytes.reserve(size_of_val(entries));
    for entry in entries {
        let written = Entry {
            address: abi::address_bytes(entry.net.addr()),
            prefix: entry.net.prefix_len(),
            family: if matches!(entry.net, IpNet::V4(_)) { abi::INET } else { abi::INET6 },
            negated: entry.negated.into(),
            weight: entry.weight.to_ne_bytes(),
        };
        bytes.extend(written.as_bytes());
    }
}

fn read(rest: &mut &[u8]) -> Option<(u8, TableName, Vec<TableEntry>)> {
    let [kind] = *rest.split_off(..1)? else { return None };
    let length = length(rest)?;
    let name = std::str::from_utf8(rest.split_off(..length)?).ok()?;
    let name = TableName::from(name.to_owned());
    let count = self::length(rest)?;
    let entries = rest.split_off(..count.checked_mul(size_of::<Entry>())?)?;
    let entries = <[Entry]>::ref_from_bytes(entries).ok()?;
    Some((kind, name, entries.iter().map(entry).collect::<Option<_>>()?))
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let bytes = rest.split_off(..size_of::<u32>())?;
    usize::try_from(u32::from_ne_bytes(bytes.try_into().ok()?)).ok()
}

fn entry(written: &Entry) -> Option<TableEntry> {
    let address: IpAddr = abi::address_from(written.family, written.address);
    Some(TableEntry {
        negated: written.negated != 0,
        net: IpNet::new(address, written.prefix).ok()?,
        weight: u16::from_ne_bytes(written.weight),
    })
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::{Anchor, Table};

    use super::*;
    use crate::record::TableRecord;

    fn entries(nets: &[&str]) -> Vec<TableEntry> {
        nets.iter().map(|net| TableEntry::from(net.parse::<IpNet>().unwrap())).collect()
    }

    fn table(name: &str, nets: &[&str]) -> Table {
        Table { name: name.to_owned(), entries: entries(nets), ..Table::default() }
    }

    fn holding(nets: Option<&[&str]>) -> TableRecord {
        TableRecord { contents: nets.map(entries), ..TableRecord::default() }
    }

    fn record() -> Record {
        let mut record = Record::default();
        record.ruleset.tables =
            vec![table("a", &["10.0.0.0/8", "2001:db8::/32"]), table("none", &[])];
        // a quoted name may contain blanks; this is not the table of an anchor
        record.ruleset.tables.push(table("x/y a", &["198.51.100.0/24"]));
        record.ruleset.tables[0].entries[1].negated = true;
        record.ruleset.tables[0].entries[0].weight = 300;
        let anchor = Anchor { tables: vec![table("a", &["192.0.2.1/32"])], ..Anchor::default() };
        record.ruleset.anchors.insert("x/y".to_owned(), anchor);
        let defined = record.ruleset.tables[0].entries.clone();
        let main = TableRecord { contents: Some(defined), ..TableRecord::default() };
        record.tables.insert(TableName::from("a"), main);
        record.tables.insert(TableName::from("none"), holding(Some(&[])));
        record.tables.insert(TableName::from("changed"), holding(None));
        record.tables.insert(TableName::new("x/y", "a"), holding(Some(&["::1/128"])));
        record.own_addresses = Some(holding(Some(&["127.0.0.1/8"])));
        record
    }

    #[test]
    fn lists_survive_a_round_trip() {
        let whole = record();
        let mut record = whole.clone();
        let lists = Lists::take(&mut record);
        assert!(record.ruleset.all_tables().all(|(_, table)| table.entries.is_empty()));
        assert!(record.all_tables_mut().all(|table| table.contents.is_none()));
        Lists::from_bytes(&lists.to_bytes()).unwrap().put(&mut record);
        assert_eq!(record, whole);
    }

    #[test]
    fn equal_lists_are_written_once() {
        let lists = Lists::take(&mut record());
        let more = Lists { stored: BTreeMap::new(), ..lists.clone() }.to_bytes().len() + 200;
        assert!(lists.to_bytes().len() < more);
    }

    #[test]
    fn truncated_lists_are_refused() {
        let bytes = Lists::take(&mut record()).to_bytes();
        assert_eq!(Lists::from_bytes(b""), None);
        let all = Lists::from_bytes(&bytes);
        for end in HEAD.len()..bytes.len() {
            assert_ne!(Lists::from_bytes(&bytes[..end]), all, "{end}");
        }
    }
}

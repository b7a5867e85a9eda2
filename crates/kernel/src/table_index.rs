//! Indexes of large tables: an array for each index, written once. A version of a table's contents
//! has a bit that is set if there is an index. The version's lowest bit selects one of the slot's
//! two positions, so successive indexes alternate.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi as abi;
use skipstep_abi::limits::SELF_TABLE;
use skipstep_abi::table::TABLE_INDEXED;
use skipstep_classifier::table_index;

use crate::error::Result;
use crate::map::{self, INNER_MAP, Map};
use crate::object::{Maps, random};
use crate::record::Memory;

type Index = Map<u32, abi::IndexCell>;

/// Name of the map of an index.
const NAME: &str = "table_index";

/// One version of the contents of the table in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edition {
    pub slot: u32,
    pub version: u32,
}

impl Edition {
    /// Returns the edition in force.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn current(maps: &Maps, slot: u32) -> Result<Self> {
        Ok(Edition { slot, version: maps.tables.at(slot)?.version })
    }

    /// Returns a new edition for `entries` entries, to follow the edition in force. A table that
    /// the data plane adds to gets no index.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn next(
        maps: &Maps,
        memory: &mut Memory,
        slot: u32,
        entries: usize,
        filled: bool,
    ) -> Result<Self> {
        if entries == 0 {
            return Ok(Edition { slot, version: 0 });
        }
        let mut version = memory.table_version();
        if !filled && slot != SELF_TABLE && memory.indexing.wants(entries) {
            let before = maps.tables.at(slot)?.version;
            while version & 1 == before & 1 {
                version = memory.table_version();
            }
            version |= TABLE_INDEXED;
        }
        Ok(Edition { slot, version })
    }

    pub fn is_indexed(self) -> bool {
        self.version & TABLE_INDEXED != 0
    }

    /// Returns the position of the index in the map of indexes.
    fn place(self) -> u32 {
        2 * self.slot + (self.version & 1)
    }
}

/// Indexes that have been built and are committed together, because the kernel waits for readers at
/// each commit.
pub(crate) struct NewIndexes<'m> {
    maps: &'m Maps,
    made: Vec<(u32, Index)>,
}

/// Largest number of indexes that are open at once.
const AT_ONCE: usize = 128;

impl<'m> NewIndexes<'m> {
    pub fn new(maps: &'m Maps) -> Self {
        NewIndexes { maps, made: Vec::new() }
    }

    /// Builds the index of an edition that is not in force.
    ///
    /// # Errors
    /// Fails if there are no random numbers, or if a map cannot be made or written.
    pub fn make(&mut self, edition: Edition, entries: Vec<abi::IndexEntry>) -> Result<()> {
        let cells = table_index(entries, random()?);
        let count = cells.len() as u32;
        let index: Index = map::new_array(NAME, count, INNER_MAP)?;
        index.set_many(&(0..count).collect::<Vec<_>>(), &cells)?;
        self.made.push((edition.place(), index));
        if self.made.len() == AT_ONCE { self.put() } else { Ok(()) }
    }

    /// Writes the indexes to their positions.
    ///
    /// # Errors
    /// Fails if the map cannot be written.
    pub fn put(&mut self) -> Result<()> {
        let places: Vec<u32> = self.made.iter().map(|(place, _)| *place).collect();
        let indexes: Vec<u32> = self.made.iter().map(|(_, index)| number(index)).collect();
        self.maps.table_indexes.set_many(&places, &indexes)?;
        self.made.clear();
        Ok(())
    }
}

/// Returns the file descriptor of an index, which is the value that a map of maps takes.
fn number(index: &Index) -> u32 {
    index.as_fd().as_raw_fd() as u32
}

/// Returns the entries of an edition, in the order of the index.
pub(crate) fn read(maps: &Maps, edition: Edition) -> Result<Vec<abi::IndexEntry>> {
    let Some(index) = open(maps, edition)? else { return Ok(Vec::new()) };
    let count = head(&index)?.entries;
    let pairs = index.first(1 + count.div_ceil(2))?.skip(1);
    let entries = pairs.flat_map(|cell| -> [abi::IndexEntry; 2] { zerocopy::transmute!(cell) });
    Ok(entries.take(count as usize).collect())
}

/// Returns the number of entries of an edition.
pub(crate) fn count(maps: &Maps, edition: Edition) -> Result<usize> {
    let Some(index) = open(maps, edition)? else { return Ok(0) };
    Ok(head(&index)?.entries as usize)
}

/// Waits for the last reader of an edition that was in force.
pub(crate) fn wait(maps: &Maps, edition: Edition) -> Result<()> {
    match open(maps, edition)? {
        // the kernel waits for readers even if a map of maps is changed to the same value
        Some(index) => maps.table_indexes.set_many(&[edition.place()], &[number(&index)]),
        None => Ok(()),
    }
}

/// Removes indexes that have no readers any more.
pub(crate) fn remove(maps: &Maps, editions: &[Edition]) -> Result<()> {
    let indexed = editions.iter().filter(|edition| edition.is_indexed());
    empty(maps, &indexed.map(|edition| edition.place()).collect::<Vec<_>>())
}

/// Removes all indexes but those of these editions.
pub(crate) fn remove_unused(maps: &Maps, in_use: &BTreeSet<Edition>) -> Result<()> {
    let in_use: BTreeSet<u32> = in_use
        .iter()
        .filter(|edition| edition.is_indexed())
        .map(|edition| edition.place())
        .collect();
    let mut unused = Vec::new();
    for place in (0..maps.table_indexes.capacity()).filter(|place| !in_use.contains(place)) {
        if maps.table_indexes.get(&place)?.is_some() {
            unused.push(place);
        }
    }
    empty(maps, &unused)
}

/// Returns the positions of indexes that have entries.
pub(crate) fn occupied(maps: &Maps) -> Result<Vec<u32>> {
    let mut occupied = Vec::new();
    for place in 0..maps.table_indexes.capacity() {
        let index = maps.table_indexes.get(&place)?.map(|id| map::by_id(NAME, id)).transpose()?;
        if index.map(|index| head(&index)).transpose()?.is_some_and(|head| head.entries != 0) {
            occupied.push(place);
        }
    }
    Ok(occupied)
}

/// Writes an empty index to many positions in one batch. The kernel deletes indexes only one by
/// one.
fn empty(maps: &Maps, places: &[u32]) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let nothing: Index = map::new_array(NAME, 1, INNER_MAP)?;
    maps.table_indexes.set_many(places, &vec![number(&nothing); places.len()])
}

fn open(maps: &Maps, edition: Edition) -> Result<Option<Index>> {
    let id = maps.table_indexes.get(&edition.place())?;
    id.map(|id| map::by_id(NAME, id)).transpose()
}

fn head(index: &Index) -> Result<abi::IndexHead> {
    Ok(zerocopy::transmute!(index.at(0)?))
}

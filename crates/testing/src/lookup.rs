//! Timed lookups: the cost of finding the rule that decides about a packet, apart from all other
//! work on the packet. Mirrors bpf/lookup.bpf.c.

use std::collections::BTreeMap;

use libbpf_rs::Object;
use skipstep_abi as abi;
use skipstep_kernel::map::{self, Map};
use skipstep_kernel::object::{self, Sizes, find_map, find_program, slots_for};
use skipstep_kernel::program::{Program, SkBuff};
use skipstep_kernel::{Error, Indexing, Result};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Evaluator, Ruleset};
use skipstep_scenario::Engine as _;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::arrival;
use crate::engine::TestEngine;
use crate::network::LINK_ADDRESS;

/// The object of bpf/lookup.bpf.c.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OBJECTS"), "/lookup.bpf.o"));

/// Number of packets in the list (`LOOKUP_PACKETS`).
pub const PACKETS: usize = 65_536;
/// Number of lookups in a run of a program (`LOOKUP_BATCH`).
const BATCH: u32 = 512;
/// Number of keys in the hash map of [`Lookup::Hash`] (`LOOKUP_KEYS`).
const KEYS: u32 = 1000;

/// Result of a lookup if no rule decides.
pub const NO_RULE: u32 = u32::MAX;
/// Result of a lookup that failed (`LOOKUP_FAILED`).
pub const FAILED: u32 = u32::MAX - 1;

/// Headers of an inbound packet (`struct lookup_packet`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct LookupPacket {
    /// Source address; IPv4 in the first four bytes.
    pub source: [u8; 16],
    /// Destination address; IPv4 in the first four bytes.
    pub destination: [u8; 16],
    /// Source port in network byte order.
    pub source_port: [u8; 2],
    /// Destination port in network byte order.
    pub destination_port: [u8; 2],
    /// `abi::INET` or `abi::INET6`
    pub family: u8,
    /// IP protocol number.
    pub protocol: u8,
    /// TCP flags, as in the header.
    pub tcp_flags: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub tos: u8,
    /// Id of the interface where the packet arrives.
    pub interface: u32,
    /// Index of the rule that the last lookup found, [`NO_RULE`] or [`FAILED`]. After a lookup in a
    /// table, 1 if the table has the source, or else 0.
    pub decided: u32,
}

/// `struct lookup_order`
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Order {
    next: u32,
    superblock: u32,
    found: u64,
}

/// Kinds of lookups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// No lookup: the overhead that all kinds share.
    Nothing,
    /// A key of 16 bytes in a hash map of the kernel with 1,000 keys: the unit of comparison.
    Hash,
    /// The rule that the trees find, if every rule matches whose hyper-rectangle contains the
    /// packet.
    Trees,
    /// The rule that decides, as the data plane finds it: by trees and skip steps, with all its
    /// tests.
    Walk,
    /// The source address in the first table, as a rule looks it up.
    Table,
}

/// A data plane that looks up the same packets repeatedly.
pub struct Lookups {
    engine: TestEngine,
    programs: [Program; 5],
    packets: Map<u32, LookupPacket>,
    order: Map<u32, Order>,
    _object: Object,
}

impl Lookups {
    /// Loads a data plane with the evaluator `compiled`, and with room for `rules` rules and for
    /// `entries` entries of tables.
    ///
    /// # Errors
    /// Fails if the data plane cannot be loaded.
    pub fn new(rules: u32, entries: u32) -> Result<Self> {
        let test = Sizes::test();
        let table_entries = entries.max(test.table_entries);
        let sizes = Sizes { rule_slots: slots_for(rules), table_entries, ..test };
        let (object, maps, programs) = object::load_object(OBJECT, &sizes)?;
        let mut engine = TestEngine::with_programs(Evaluator::Compiled, &sizes, maps, programs)?;
        engine.use_default_planner();
        let keys: Map<[u32; 4], u64> = Map::new(find_map(&object, "lookup_hash")?, "lookup_hash")?;
        (0..KEYS).try_for_each(|number| keys.set(&key(number), &1))?;
        let program = |name| find_program(&object, name);
        Ok(Lookups {
            engine,
            programs: [
                program("lookup_nothing")?,
                program("lookup_one_key")?,
                program("lookup_in_trees")?,
                program("lookup_plainly")?,
                program("lookup_in_table")?,
            ],
            packets: Map::new(find_map(&object, "lookup_packets")?, "lookup_packets")?,
            order: Map::new(find_map(&object, "lookup_order")?, "lookup_order")?,
            _object: object,
        })
    }

    /// Loads rules. Returns the ids of the host's interfaces by name.
    ///
    /// # Errors
    /// Fails if the rules cannot be loaded.
    pub fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<BTreeMap<String, u32>> {
        let failed = |cause| Error::Bpf { operation: "rules: load".to_owned(), cause };
        self.engine.load(ruleset, host).map_err(failed)?;
        let ids = self.engine.memory.names.interfaces.iter();
        Ok(ids.map(|(name, id)| (name.to_owned(), id)).collect())
    }

    /// Selects the tables that get an index, for rules loaded from now on.
    pub fn set_indexing(&mut self, indexing: Indexing) {
        self.engine.set_indexing(indexing);
    }

    /// Sets the [`PACKETS`] packets that are looked up.
    ///
    /// # Errors
    /// Fails if the map cannot be written.
    ///
    /// # Panics
    /// Panics if there are more or fewer packets.
    pub fn set_packets(&mut self, packets: &[LookupPacket]) -> Result<()> {
        let places: Vec<u32> = (0..PACKETS as u32).collect();
        assert_eq!(packets.len(), PACKETS, "packets to look up");
        self.packets.set_many(&places, packets)
    }

    /// Looks up all packets once. Returns the mean nanoseconds of a lookup.
    ///
    /// # Errors
    /// Fails if the program cannot run, or if it has not looked up all packets.
    pub fn run(&mut self, lookup: Lookup) -> Result<f64> {
        let superblock = match lookup {
            Lookup::Table => self.table(),
            _ => self.first_segment()?,
        };
        self.order.set(&0, &Order { next: 0, superblock, found: 0 })?;
        let program = &self.programs[lookup as usize];
        let runs = PACKETS as u32 / BATCH;
        let run = program.run_packet(
            &arrival::frame(&arrival::link_header_to(LINK_ADDRESS), &[0; 64]),
            &SkBuff::new(),
            runs,
        )?;
        let done = self.order.at(0)?;
        let found = if lookup == Lookup::Hash { PACKETS as u64 } else { 0 };
        if done.next as usize != PACKETS || done.found != found {
            return Err(Error::Bpf {
                operation: "lookups".to_owned(),
                cause: format!("{done:?} after a run of {PACKETS}"),
            });
        }
        Ok(run.duration.as_nanos() as f64 / f64::from(BATCH))
    }

    /// Returns the superblock of the first rule.
    fn first_segment(&self) -> Result<u32> {
        let status: abi::Status = self.engine.maps.status.at(0)?;
        let rules = self.engine.maps.rulesets.get(&abi::limits::copy_of(status.generation))?;
        let first: Option<abi::Rule> = match rules {
            Some(id) => Some(map::by_id("rules", id)?.at(0)?),
            None => None,
        };
        Ok(first.map_or(0, |rule| rule.superblock))
    }

    /// Returns the slot of the first table, 0 if there is none.
    fn table(&self) -> u32 {
        self.engine.record.tables.values().next().map_or(0, |table| table.slot)
    }

    /// Returns the results of the last lookups, in the order of packets.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn decided(&self) -> Result<Vec<u32>> {
        Ok(self.packets.first(PACKETS as u32)?.map(|packet| packet.decided).collect())
    }
}

/// Returns the key with this number (`make_key`).
fn key(number: u32) -> [u32; 4] {
    [number, !number, number << 16, 7]
}

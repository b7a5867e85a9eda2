//! The compiled data plane: sizes its maps, loads it, returns its maps and programs.

use libbpf_rs::libbpf_sys::BPF_F_MMAPABLE;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramType};
use nix::errno::Errno;
use skipstep_abi as abi;
use skipstep_abi::names::map as map_name;
use skipstep_ruleset::Direction;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Context, Error, Result, last_cause};
use crate::features;
use crate::map::{self, Map, PerCpuMap};
use crate::program::Program;
use crate::shared::Shared;
use crate::verifier::{self, Verified};

/// The object of bpf/programs.bpf.c, with its BTF.
pub static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/programs.bpf.o"));

/// Least number of states that an instance has room for, so that a usual `set limit states` fits.
// Differs from OpenBSD: linux.md, "Size of the state table"
const LEAST_STATES: u32 = 100_000;

/// Least number of source nodes that an instance has room for: the default of `set limit
/// src-nodes`.
// Differs from OpenBSD: linux.md, "Size of the state table"
const LEAST_SOURCES: u32 = 10_000;

/// Least number of statistics slots. A slot costs 40 bytes on every possible CPU, so a machine with
/// few rules should not pay for the largest number.
const LEAST_RULE_SLOTS: u32 = 16_384;

/// Returns the number of statistics slots with which a rule set of `rules` rules can be replaced by
/// one of the same size: slots for both, and for the default rule.
pub fn slots_for(rules: u32) -> u32 {
    rules.saturating_mul(2).saturating_add(1).min(abi::limits::RULE_SLOTS)
}

/// Sizes of maps, in entries unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// States.
    pub states: u32,
    /// Source nodes.
    pub sources: u32,
    /// Statistics slots of rules.
    pub rule_slots: u32,
    /// Slots of tables.
    pub table_slots: u32,
    /// Addresses in all tables and dynamic addresses; a table that is being replaced has two
    /// versions.
    pub table_entries: u32,
    /// Pools of rules; blocks of the tables that pools choose from; addresses whose states pools
    /// count.
    pub pools: [u32; 3],
    /// Sources that limiters track.
    pub limited_sources: u32,
    /// Interfaces with an id.
    pub interfaces: u32,
    /// Bytes of the log ring: a power of two, whole pages.
    pub log_bytes: u32,
}

impl Sizes {
    /// Returns the sizes for an instance with room for `states` states, `sources` source nodes, and
    /// successive rule sets of `rules` rules.
    pub fn instance(states: u32, sources: u32, rules: u32) -> Self {
        Sizes {
            states: states.max(LEAST_STATES),
            sources: sources.max(LEAST_SOURCES),
            // a quarter more, because an instance that filters cannot be rebuilt for a rule set
            // that has grown
            rule_slots: slots_for(rules.saturating_add(rules / 4)).max(LEAST_RULE_SLOTS),
            table_slots: abi::limits::TABLE_SLOTS,
            table_entries: 4_000_000,
            // Differs from OpenBSD: linux.md, "Number of pools"
            // Differs from OpenBSD: linux.md, "Counted addresses"
            pools: [65_536, 1_000_000, 65_536],
            // Differs from OpenBSD: linux.md, "Sources of limiters"
            limited_sources: 262_144,
            interfaces: abi::limits::MAX_INTERFACES,
            log_bytes: 1 << 20,
        }
    }

    /// Returns small sizes for tests, quick to make and to empty.
    pub fn test() -> Self {
        Sizes {
            states: 100_000,
            sources: 10_000,
            rule_slots: 8192,
            table_slots: 256,
            table_entries: 65_536,
            pools: [1024, 4096, 4096],
            limited_sources: 4096,
            interfaces: 64,
            log_bytes: 1 << 18,
        }
    }

    /// Returns the number of buckets of the key table: three entries for each state, which has one
    /// key, or two if it is translated. With this room, a bucket of sixteen does not overflow,
    /// because each key may be in either of two.
    fn key_lines(&self) -> u32 {
        let entries = u64::from(self.states) * 3;
        (entries.div_ceil(abi::state::KEY_ENTRIES as u64).max(4)) as u32
    }

    /// Returns the number of endpoint entries. An endpoint has two entries and at least one state;
    /// there is room for at least half as many endpoints as states. The kernel allocates the next
    /// power of two of buckets anyway, so the size is a power of two.
    fn mappings(&self) -> u32 {
        1 << (self.states.saturating_mul(2) | 1).ilog2()
    }

    /// Returns the mask of the bits that hold a state's index in an entry of the key table. One
    /// value of these bits means no state.
    fn index_mask(&self) -> u32 {
        u32::MAX >> self.states.leading_zeros()
    }

    fn entries_of(&self, map: &str) -> Option<u32> {
        match map {
            map_name::STATES | map_name::FREE_STATES | map_name::EXTENSIONS => Some(self.states),
            map_name::STATE_KEYS => Some(self.key_lines()),
            map_name::MAPPINGS => Some(self.mappings()),
            map_name::SOURCE_NODES | map_name::SOURCE_KEYS | map_name::FREE_SOURCES => {
                Some(self.sources)
            }
            map_name::RULE_STATS | map_name::RULE_STATES => Some(self.rule_slots),
            map_name::TABLES | map_name::TABLE_STATS => Some(self.table_slots),
            map_name::TABLE_INDEXES => Some(2 * self.table_slots),
            map_name::TABLE_ENTRIES | map_name::ENTRY_STATS => Some(self.table_entries),
            map_name::POOLS | map_name::POOL_MEMBERS => Some(self.pools[0]),
            map_name::POOL_BLOCKS => Some(self.pools[1]),
            map_name::POOL_LOADS => Some(self.pools[2]),
            map_name::LIMITED_SOURCES | map_name::LIMITED_TURNS => Some(self.limited_sources),
            map_name::INTERFACES | map_name::INTERFACE_INDEXES | map_name::INTERFACE_STATS => {
                Some(self.interfaces)
            }
            map_name::LOG_RING | map_name::FLOW_RING => Some(self.log_bytes),
            _ => None,
        }
    }
}

/// Name of the guard's program.
const GUARD: &str = "pf_guard";

/// Maps that userland maps into its memory, to write single words or to read without system calls.
const MAPPED: [&str; 6] = [
    map_name::STATUS,
    map_name::CONFIGS,
    map_name::RULE_STATES,
    map_name::LIMITER_USES,
    map_name::NEAR_INTERFACES,
    map_name::TEST,
];

/// Maps that only programs use.
const OTHERS: [&str; 10] = [
    "drop_rates",
    "error_rates",
    XDP_FAST_PATH_PROGRAM,
    FILTER_PROGRAM,
    "hops",
    "leaving_devices",
    "memo_tags",
    "memos",
    "neighbours",
    "random_draws",
];

/// The array with the program that both directions call by a tail call, and the name of this
/// program.
const FILTER_PROGRAM: &str = "filter_program";
const FILTER: &str = "pf_filter";

/// The array with the program that both XDP programs call by a tail call, and its name.
const XDP_FAST_PATH_PROGRAM: &str = "express_program";
const XDP_FAST_PATH: &str = "pf_express";

/// Names of the two XDP programs, which are loaded when a rule set first asks for XDP (express.rs).
pub(crate) const XDP_FAST_PATH_HOOKS: [&str; 2] = ["pf_express_card", "pf_express_veth"];

macro_rules! maps {
    ($($(#[$doc:meta])* $field:ident: $kind:ident<$key:ty, $value:ty> = $name:expr,)*) => {
        /// The maps of an instance.
        pub struct Maps {
            $($(#[$doc])* pub $field: $kind<$key, $value>,)*
            /// Ring of log records.
            pub log_ring: MapHandle,
            /// Ring of flow records.
            pub flow_ring: MapHandle,
            /// Holds the sweeper's timer.
            pub sweeper: MapHandle,
            /// Stack of free state indexes.
            pub free_states: MapHandle,
            /// Stack of free source node indexes.
            pub free_sources: MapHandle,
            /// Queue of the limiters' sources, in the order of the sweep.
            pub limited_turns: MapHandle,
            /// Queue of sources that are to leave a table.
            pub leaving: MapHandle,
            /// Scratch values, which begin with `abi::Outcome`.
            pub scratch: MapHandle,
            /// Maps that only programs use. Programs that are loaded later share them.
            others: Vec<(MapHandle, &'static str)>,
            /// Memory of `status`, for single words.
            pub shared_status: Shared,
            /// Memory of `rule_states`, for single words.
            pub shared_rule_states: Shared,
            /// Memory of `configs`, for reading.
            pub shared_configs: Shared,
            /// Memory of `limiter_uses`, for single words.
            pub shared_limiter_uses: Shared,
            /// Memory of `near_interfaces`, for single words.
            pub shared_near_interfaces: Shared,
        }

        impl Maps {
            fn from(handle: impl Fn(&'static str) -> Result<MapHandle>) -> Result<Self> {
                let status = Map::<u32, abi::Status>::new(handle(map_name::STATUS)?, map_name::STATUS)?;
                let rule_states = Map::<u32, abi::RuleStates>::new(
                    handle(map_name::RULE_STATES)?,
                    map_name::RULE_STATES,
                )?;
                let configs =
                    Map::<u32, abi::Config>::new(handle(map_name::CONFIGS)?, map_name::CONFIGS)?;
                let limiter_uses = Map::<u32, abi::LimiterUse>::new(
                    handle(map_name::LIMITER_USES)?,
                    map_name::LIMITER_USES,
                )?;
                let near_interfaces = Map::<u32, abi::NearInterface>::new(
                    handle(map_name::NEAR_INTERFACES)?,
                    map_name::NEAR_INTERFACES,
                )?;
                Ok(Maps {
                    shared_near_interfaces: Shared::new(&near_interfaces)?,
                    shared_limiter_uses: Shared::new(&limiter_uses)?,
                    shared_status: Shared::new(&status)?,
                    shared_configs: Shared::new(&configs)?,
                    shared_rule_states: Shared::new(&rule_states)?,
                    $($field: $kind::new(handle($name)?, $name)?,)*
                    log_ring: handle(map_name::LOG_RING)?,
                    flow_ring: handle(map_name::FLOW_RING)?,
                    sweeper: handle(map_name::SWEEPER)?,
                    free_states: handle(map_name::FREE_STATES)?,
                    free_sources: handle(map_name::FREE_SOURCES)?,
                    limited_turns: handle(map_name::LIMITED_TURNS)?,
                    leaving: handle(map_name::LEAVING)?,
                    scratch: handle(map_name::SCRATCH)?,
                    others: OTHERS
                        .iter()
                        .map(|name| Ok((handle(name)?, *name)))
                        .collect::<Result<_>>()?,
                })
            }

            /// Pins every map in `directory` under its name.
            pub(crate) fn pin(&mut self, directory: &Path) -> Result<()> {
                $(self.$field.pin(directory)?;)*
                for (handle, name) in [
                    (&mut self.log_ring, map_name::LOG_RING),
                    (&mut self.flow_ring, map_name::FLOW_RING),
                    (&mut self.sweeper, map_name::SWEEPER),
                    (&mut self.free_states, map_name::FREE_STATES),
                    (&mut self.free_sources, map_name::FREE_SOURCES),
                    (&mut self.limited_turns, map_name::LIMITED_TURNS),
                    (&mut self.leaving, map_name::LEAVING),
                    (&mut self.scratch, map_name::SCRATCH),
                ] {
                    handle.pin(directory.join(name)).context(|| format!("map {name}: pin"))?;
                }
                for (handle, name) in &mut self.others {
                    handle.pin(directory.join(*name)).context(|| format!("map {name}: pin"))?;
                }
                Ok(())
            }
        }
    };
}

maps! {
    /// copy -> id of an array of rules
    rulesets: Map<u32, u32> = map_name::RULESETS,
    /// copy, number of a chunk -> id of an array of tree nodes
    tree_sets: Map<u32, u32> = map_name::TREE_SETS,
    /// copy -> settings
    configs: Map<u32, abi::Config> = map_name::CONFIGS,
    /// status of the instance; one element
    status: Map<u32, abi::Status> = map_name::STATUS,
    /// counters of the instance; one element
    counters: PerCpuMap<u32, abi::Counters> = map_name::COUNTERS,
    /// rule slot -> statistics
    rule_stats: PerCpuMap<u32, abi::RuleStats> = map_name::RULE_STATS,
    /// rule slot -> counters and settings of the rule's states
    rule_states: Map<u32, abi::RuleStates> = map_name::RULE_STATES,
    /// table slot -> version, counters, statistics
    tables: Map<u32, abi::Table> = map_name::TABLES,
    /// entries of all tables without an index
    table_entries: Map<abi::TableKey, abi::TableEntry> = map_name::TABLE_ENTRIES,
    /// 2 * slot + (version & 1) -> id of an array of index nodes
    table_indexes: Map<u32, u32> = map_name::TABLE_INDEXES,
    /// table slot -> statistics
    table_stats: PerCpuMap<u32, abi::TableStats> = map_name::TABLE_STATS,
    /// counters of the entries that packets have matched
    entry_stats: Map<abi::TableKey, abi::EntryStats> = map_name::ENTRY_STATS,
    /// pools of rules
    pools: Map<abi::PoolKey, abi::Pool> = map_name::POOLS,
    /// lists of the tables that pools choose from
    pool_blocks: Map<abi::PoolBlockKey, abi::PoolBlock> = map_name::POOL_BLOCKS,
    /// address -> number of its states, for pools that count states
    pool_loads: Map<abi::PoolLoadKey, u32> = map_name::POOL_LOADS,
    /// endpoint mappings (`endpoint-independent`)
    mappings: Map<abi::Endpoint, abi::Mapping> = map_name::MAPPINGS,
    /// lists of legacy rules
    pool_members: Map<abi::PoolMemberKey, abi::PoolMember> = map_name::POOL_MEMBERS,
    /// ifindex -> interface
    interfaces: Map<u32, abi::Interface> = map_name::INTERFACES,
    /// small ifindex -> interface
    near_interfaces: Map<u32, abi::NearInterface> = map_name::NEAR_INTERFACES,
    /// interface id -> ifindex
    interface_indexes: Map<u32, u32> = map_name::INTERFACE_INDEXES,
    /// interface id -> counters
    interface_stats: PerCpuMap<u32, abi::InterfaceStats> = map_name::INTERFACE_STATS,
    /// parameters of the key table's hash; one element
    key_hash: Map<u32, abi::KeyHash> = map_name::KEY_HASH,
    /// buckets of the key table, from keys to state indexes
    state_keys: Map<u32, abi::KeyLine> = map_name::STATE_KEYS,
    /// state index -> state
    states: Map<u32, abi::State> = map_name::STATES,
    /// state index -> state extension
    extensions: Map<u32, abi::Extension> = map_name::EXTENSIONS,
    /// keys of source nodes -> index
    source_keys: Map<abi::SourceKey, u32> = map_name::SOURCE_KEYS,
    /// index -> source node
    source_nodes: Map<u32, abi::SourceNode> = map_name::SOURCE_NODES,
    /// copy, order -> fingerprint of an operating system
    fingerprints: Map<u32, abi::Fingerprint> = map_name::FINGERPRINTS,
    /// copy, kind, number -> limiter
    limiters: Map<u32, abi::Limiter> = map_name::LIMITERS,
    /// kind, number -> use of the limiter
    limiter_uses: Map<u32, abi::LimiterUse> = map_name::LIMITER_USES,
    /// sources of limiters
    limited_sources: Map<abi::LimitedKey, abi::LimitedSource> = map_name::LIMITED_SOURCES,
    /// sources whose states are to end -> selection of these states
    flushes: Map<abi::Flush, abi::Flushed> = map_name::FLUSHES,
    /// n of pflogN, or a number of a reader of dropped packets -> id of its ring
    log_readers: Map<u32, u32> = map_name::LOG_READERS,
    /// device and counters of reassembly; one element
    reassembler: Map<u32, abi::Reassembler> = map_name::REASSEMBLER,
    /// device and counters of diverted packets; one element
    diverter: Map<u32, abi::Diverter> = map_name::DIVERTER,
    /// device and counters of delayed packets; one element
    delayer: Map<u32, abi::Delayer> = map_name::DELAYER,
    /// ifindex -> number of the bridge port
    bridge_numbers: Map<u32, u32> = map_name::BRIDGE_NUMBERS,
    /// number of the port -> bridge port
    bridge_ports: Map<u32, abi::BridgePort> = map_name::BRIDGE_PORTS,
    /// station -> port and time of the last frame
    bridge_addresses: Map<abi::BridgeKey, abi::BridgeAddress> = map_name::BRIDGE_ADDRESSES,
    /// frame rules of bridge ports
    bridge_rules: Map<abi::BridgeRuleKey, abi::BridgeRule> = map_name::BRIDGE_RULES,
    /// number of the port -> counters
    bridge_stats: PerCpuMap<u32, abi::BridgeStats> = map_name::BRIDGE_STATS,
    /// clock and settings of tests; one element
    test: Map<u32, abi::Test> = map_name::TEST,
}

impl Maps {
    /// Returns the result that the last program run on `cpu` has stored about its packet. `buffer`
    /// is for reuse: it gets the scratch values of all CPUs.
    ///
    /// # Errors
    /// Fails if the map cannot be read, or if there is no such CPU.
    pub fn outcome(&self, cpu: usize, buffer: &mut Vec<u8>) -> Result<abi::Outcome> {
        map::read_per_cpu(&self.scratch, buffer)?;
        let stride = buffer.len() / map::cpus()?;
        let value = buffer.get(cpu * stride..).unwrap_or_default();
        let outcome = abi::Outcome::read_from_prefix(value).map(|(outcome, _)| outcome);
        outcome.map_err(|_| Error::Bpf {
            operation: "map scratch: read".to_owned(),
            cause: "smaller than struct pf_outcome".to_owned(),
        })
    }

    /// Opens the maps pinned in `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        Maps::from(|name| {
            let path = directory.join(name);
            MapHandle::from_pinned_path(&path).context(|| format!("{}: open", path.display()))
        })
    }
}

/// The programs of an instance.
pub struct Programs {
    /// Filters inbound packets.
    pub ingress: Program,
    /// Filters outbound packets.
    pub egress: Program,
    /// Forwards frames across a bridge, behind `ingress`.
    pub bridge: Program,
    /// Takes packets that skipstepd returns from reassembly.
    pub return_fragments: Program,
    /// Takes packets that come from programs (`divert-packet`).
    pub return_diverted: Program,
    /// Takes packets that return after their delay.
    pub return_delayed: Program,
    /// Drops frames for skipstepd that the data plane has not sent, on the egress of its devices.
    pub hand_over: Program,
    /// Drops the same frames in the driver of these devices, for frames that bypass tc.
    pub hand_out: Program,
    /// Removes every expired state.
    pub sweep: Program,
    /// Does one slice of a sweep, as the timer does.
    pub sweep_slice: Program,
    /// Starts the sweeper's timer.
    pub start: Program,
    /// Ends a trial, as the timer does when the time is over.
    pub go_back: Program,
    /// Removes one state.
    pub kill: Program,
    /// Restores one saved state.
    pub restore: Program,
    /// Removes one source node.
    pub drop_source: Program,
    /// Removes one source of a limiter.
    pub forget_limited: Program,
    /// Removes sources of limiters from tables when they are due.
    pub settle: Program,
    /// Drops packets that no other program has judged; `None` if the kernel has no BPF programs for
    /// netfilter's hooks.
    pub guard: Option<Program>,
}

impl Programs {
    /// Returns the program that filters packets of a direction.
    pub fn filter(&self, direction: Direction) -> &Program {
        match direction {
            Direction::In => &self.ingress,
            Direction::Out => &self.egress,
        }
    }

    /// Starts the timer that sweeps, if it does not run yet. Returns 0, or the kernel's errno.
    ///
    /// The kernel allocates the timer without waiting for memory, and so fails now and then: this
    /// function tries again for 100 ms. The data plane counts each error, and later packets try
    /// again.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot run.
    pub fn start_timer(&self) -> Result<u32> {
        const OUT_OF_MEMORY: u32 = Errno::ENOMEM as u32;
        let start = || Ok((self.start.call(&())? as i32).unsigned_abs());
        for _ in 0..100 {
            match start()? {
                OUT_OF_MEMORY => std::thread::sleep(Duration::from_millis(1)),
                error => return Ok(error),
            }
        }
        start()
    }

    fn from(program: impl Fn(&'static str) -> Result<Program>, has_guard: bool) -> Result<Self> {
        Ok(Programs {
            ingress: program("pf_ingress")?,
            egress: program("pf_egress")?,
            bridge: program("pf_bridge")?,
            return_fragments: program("pf_return")?,
            return_diverted: program("pf_give_back")?,
            return_delayed: program("pf_let_go")?,
            hand_over: program("pf_hand_over")?,
            hand_out: program("pf_hand_out")?,
            sweep: program("pf_sweep")?,
            sweep_slice: program("pf_sweep_slice")?,
            start: program("pf_start")?,
            go_back: program("pf_go_back")?,
            kill: program("pf_kill")?,
            restore: program("pf_restore")?,
            drop_source: program("pf_drop_source")?,
            forget_limited: program("pf_forget_limited")?,
            settle: program("pf_settle")?,
            guard: match has_guard {
                true => Some(program(GUARD)?),
                false => None,
            },
        })
    }

    /// Opens the programs pinned in `directory`.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        Programs::from(|name| Program::open(directory, name), directory.join(GUARD).exists())
    }

    /// Pins every program in `directory` under its name.
    pub(crate) fn pin(&self, directory: &Path) -> Result<()> {
        let Programs { ingress, egress, bridge, .. } = self;
        let Programs { return_fragments, return_diverted, return_delayed, .. } = self;
        let Programs { sweep, start, kill, restore, drop_source, forget_limited, settle, .. } =
            self;
        let Programs { sweep_slice, guard, hand_over, hand_out, go_back, .. } = self;
        for program in [ingress, egress, bridge] {
            program.pin(directory)?;
        }
        for program in [return_fragments, return_diverted, return_delayed, hand_over, hand_out] {
            program.pin(directory)?;
        }
        for program in
            [sweep_slice, go_back, sweep, start, kill, restore, drop_source, forget_limited, settle]
        {
            program.pin(directory)?;
        }
        if let Some(guard) = guard {
            guard.pin(directory)?;
        }
        Ok(())
    }
}

/// Loads the data plane with maps of these sizes: verified, compiled to native code, and not
/// attached. The kernel frees it when maps and programs are dropped.
///
/// # Errors
/// Fails if the process is not root, or if the kernel lacks tcx or BTF. Fails also if the verifier
/// refuses a program, or if memory for the maps is short.
pub fn load(sizes: &Sizes) -> Result<(Maps, Programs)> {
    let (_, maps, programs) = load_object(OBJECT, sizes)?;
    Ok((maps, programs))
}

/// Loads an object that contains the data plane and more.
///
/// # Errors
/// Fails as [`load`] does.
pub fn load_object(object: &[u8], sizes: &Sizes) -> Result<(Object, Maps, Programs)> {
    check_kernel()?;
    verifier::capture_warnings();
    let mut open = open(object, sizes)?;
    let later = open.progs_mut().filter(|program| is_xdp_fast_path(program.name()));
    later.for_each(|mut program| program.set_autoload(false));
    let object = open.load().map_err(refused)?;
    fill(&find_map(&object, FILTER_PROGRAM)?, &find_program(&object, FILTER)?)?;
    let maps = Maps::from(|name| find_map(&object, name))?;
    let programs = Programs::from(|name| find_program(&object, name), kernel_has_guards())?;
    let status = abi::Status {
        abi_version: abi::VERSION,
        capacity: sizes.states,
        secret: random()?,
        source_capacity: sizes.sources,
        limited_capacity: sizes.limited_sources,
        stamp: random()?,
        ingress_id: programs.ingress.id()?,
        egress_id: programs.egress.id()?,
        guard_id: programs.guard.as_ref().map_or(Ok(0), Program::id)?,
        ..abi::Status::default()
    };
    maps.status.set(&0, &status)?;
    maps.key_hash.set(
        &0,
        &abi::KeyHash {
            secret: random()?,
            lines: maps.state_keys.capacity(),
            index_mask: sizes.index_mask(),
        },
    )?;
    Ok((object, maps, programs))
}

/// Loads the data plane to measure the verification of each program.
///
/// # Errors
/// Fails if the process is not root, if the kernel lacks tcx or BTF, or if the verifier refuses a
/// program.
pub fn verify() -> Result<Vec<Verified>> {
    check_kernel()?;
    let mut open = open(OBJECT, &Sizes::test())?;
    open.progs_mut().for_each(|mut program| program.set_log_level(verifier::STATISTICS));
    verifier::capture_all();
    open.load().map_err(refused)?;
    Ok(verifier::accepted())
}

/// Loads the two XDP programs, with the maps that are pinned in `directory`.
pub(crate) fn load_xdp_fast_path(directory: &Path) -> Result<[Program; 2]> {
    verifier::capture_warnings();
    let mut open =
        ObjectBuilder::default().open_memory(OBJECT).context(|| "data plane: open".to_owned())?;
    for mut program in open.progs_mut() {
        let is_wanted = is_xdp_fast_path(program.name());
        program.set_autoload(is_wanted);
    }
    for mut map in open.maps_mut() {
        let path = directory.join(map.name());
        // a map with a dot is the object's own section of constants, `.rodata`
        if !map.name().as_encoded_bytes().contains(&b'.') {
            map.reuse_pinned_map(&path).context(|| format!("{}: share", path.display()))?;
        }
    }
    let object = open.load().map_err(refused)?;
    fill(&find_map(&object, XDP_FAST_PATH_PROGRAM)?, &find_program(&object, XDP_FAST_PATH)?)?;
    let [card, veth] = XDP_FAST_PATH_HOOKS;
    Ok([find_program(&object, card)?, find_program(&object, veth)?])
}

/// Writes a program into an array of one program.
fn fill(array: &MapHandle, program: &Program) -> Result<()> {
    let fd = program.as_fd().as_raw_fd();
    array
        .update(&0u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
        .context(|| format!("map {}: write", array.name().to_string_lossy()))
}

fn is_xdp_fast_path(name: &OsStr) -> bool {
    name == XDP_FAST_PATH || XDP_FAST_PATH_HOOKS.iter().any(|hook| name == *hook)
}

fn open(object: &[u8], sizes: &Sizes) -> Result<OpenObject> {
    let mut open =
        ObjectBuilder::default().open_memory(object).context(|| "data plane: open".to_owned())?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some(entries) = sizes.entries_of(&name) {
            map.set_max_entries(entries).context(|| format!("map {name}: size"))?;
        }
        if MAPPED.contains(&name.as_str()) {
            let flags = map.map_flags() | BPF_F_MMAPABLE;
            map.set_map_flags(flags).context(|| format!("map {name}: flags"))?;
        }
    }
    if !kernel_has_guards() {
        let guard = open.progs_mut().find(|program| program.name() == GUARD);
        guard.into_iter().for_each(|mut guard| guard.set_autoload(false));
    }
    Ok(open)
}

/// Returns random bits from getrandom(2).
pub(crate) fn random<T: FromBytes + IntoBytes>() -> Result<T> {
    let mut words = T::new_zeroed();
    let drawn = getrandom::fill(words.as_mut_bytes()).map_err(io::Error::other);
    drawn.context(|| "random numbers".to_owned())?;
    Ok(words)
}

///
/// # Errors
/// Fails if the object has no such map.
pub fn find_map(object: &Object, name: &'static str) -> Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.ok_or_else(|| missing("map", name))?;
    MapHandle::try_from(&map).context(|| format!("map {name}"))
}

///
/// # Errors
/// Fails if the object has no such program.
pub fn find_program(object: &Object, name: &'static str) -> Result<Program> {
    let program = object.progs().find(|program| program.name() == name);
    let program = program.ok_or_else(|| missing("program", name))?;
    let fd = program.as_fd().try_clone_to_owned().context(|| format!("program {name}"))?;
    Ok(Program::new(fd, name))
}

fn missing(operation: &str, name: &str) -> Error {
    Error::Bpf {
        operation: format!("{operation} {name}"),
        cause: "the object does not have it".to_owned(),
    }
}

/// Returns the verifier's message if the verifier refused, or else libbpf's error.
fn refused(error: libbpf_rs::Error) -> Error {
    match verifier::refusal() {
        Some((program, log)) => Error::Verifier { program, log },
        None => Error::Bpf { operation: "data plane: load".to_owned(), cause: last_cause(&error) },
    }
}

/// Checks that the data plane can be loaded, because the kernel's own errors would be unclear.
///
/// # Errors
/// Fails if the process is not root, or if the kernel lacks tcx or BTF.
pub fn check_kernel() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot { operation: "data plane: load".to_owned() });
    }
    if features::is_too_old() {
        return Err(Error::Kernel { lacks: "tcx" });
    }
    if !Path::new(features::BTF).exists() && Path::new("/sys/kernel").exists() {
        return Err(Error::Kernel { lacks: "BTF" });
    }
    Ok(())
}

/// True if the kernel runs BPF programs on netfilter's hooks (Linux 6.4, CONFIG_NETFILTER).
fn kernel_has_guards() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| ProgramType::Netfilter.is_supported().unwrap_or(false))
}

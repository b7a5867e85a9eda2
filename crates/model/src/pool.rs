//! Pools: the choice of an address for a translated packet (pf-semantics section 11).

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::{
    Family, InterfaceName, Pool, PoolAddress, PoolKind, Ruleset, TableEntry, TableName,
};
use skipstep_views::NodeKind;

use crate::pool_list::{ListChoice, Member};
use crate::rulebook::Entry;
use crate::siphash::siphash24;
use crate::world::World;
use crate::{address, af_to};

/// Maximum number of addresses examined for one packet, as in the data plane. OpenBSD has no bound.
// Differs from OpenBSD: linux.md, "Long searches"
const MOST_STEPS: usize = 1024;

/// The uses of a rule's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// New source addresses.
    Nat,
    /// New destination addresses.
    Rdr,
    /// Next hops.
    Route,
}

impl Purpose {
    /// Returns the kind of source nodes that remember the choices of `sticky-address` pools.
    pub fn node_kind(self) -> NodeKind {
        match self {
            Purpose::Nat => NodeKind::Nat,
            Purpose::Rdr => NodeKind::Rdr,
            Purpose::Route => NodeKind::Route,
        }
    }
}

/// The positions of all pools, and the numbers of states of tables' addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pools {
    /// Positions, by index of the rule and purpose.
    cursors: HashMap<(usize, Purpose), Cursor>,
    loads: Loads,
}

/// The choice of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Chosen address. For a next hop, the unspecified address means each packet's destination.
    pub address: IpAddr,
    /// Interface of the next hop, if the rule names it.
    pub interface: Option<InterfaceName>,
}

/// Numbers of states of each address of a list, for addresses that ever had one.
pub(crate) type Loads = HashMap<(Listed, IpAddr), u64>;

/// The position of one pool between choices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// Next or last address; 0 at the beginning.
    pub counter: u128,
    /// Index of the list member that has `counter`.
    pub member: usize,
    /// `prefer-ipv6-nexthop`: true while IPv4 addresses are chosen.
    pub turned: bool,
    /// Index of the table block that has `counter`.
    pub index: usize,
    /// Weighted round-robin: minimum weight of a block in this round.
    turn: i32,
    /// Weight of the block at `index`.
    weight: u16,
    /// Number of states of the address in `counter`.
    load: u64,
}

/// A name of several networks, which can change while rules stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Listed {
    Table(TableName),
    Interface(DynamicAddress),
}

/// A pool, with its rule and purpose.
#[derive(Clone, Copy)]
pub(crate) struct RulePool<'a> {
    pub pool: &'a Pool,
    pub purpose: Purpose,
    pub rule: &'a Entry,
}

/// The inputs of pools besides rule and packet.
#[derive(Clone, Copy)]
pub(crate) struct PoolInputs<'a> {
    pub ruleset: &'a Ruleset,
    pub world: &'a World,
}

/// A network, or a single address, of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub base: u128,
    mask: u128,
    negated: bool,
    weight: u16,
}

/// The addresses of a table or an interface in one family, in the order of a radix tree.
pub(crate) struct List {
    name: Listed,
    family: Family,
    blocks: Vec<Block>,
    /// Blocks without the negated ones, which are never chosen.
    chosen: Vec<Block>,
    /// Number of entries of both families.
    total: usize,
    weighted: bool,
    gcd: i32,
    heaviest: i32,
    /// True if the first address follows the last one.
    round: bool,
}

impl Pools {
    /// Forgets the states of addresses that left a table, so the addresses begin at 0 if they
    /// return.
    pub fn keep_entries(&mut self, name: &TableName, entries: &[TableEntry]) {
        self.loads.retain(|(listed, address), _| match listed {
            Listed::Table(other) if other == name => is_chosen_from(entries, *address),
            _ => true,
        });
    }

    /// Forgets the states of an address that left a table.
    pub fn forget_entry(&mut self, name: &TableName, net: IpNet) {
        if net.prefix_len() == net.max_prefix_len() {
            self.loads.remove(&(Listed::Table(name.clone()), net.addr()));
        }
    }

    /// Forgets the states of addresses in tables and interfaces that rules no longer use.
    // Differs from OpenBSD: linux.md, "Tables of pools"
    pub fn keep_tables(&mut self, ruleset: &Ruleset, world: &World) {
        let followed: HashSet<&DynamicAddress> =
            ruleset.every_rule().flat_map(|(_, rule)| rule.dynamic_addresses()).collect();
        self.loads.retain(|(listed, address), _| match listed {
            Listed::Table(TableName { anchor, name }) => {
                let table = ruleset.tables_of(anchor).iter().find(|table| table.name == *name);
                table.is_some_and(|table| is_chosen_from(&table.entries, *address))
            }
            Listed::Interface(dynamic) => {
                let nets = address::interface_networks(dynamic, world);
                followed.contains(dynamic) && nets.contains(&(*address).into())
            }
        });
    }

    /// Chooses an address of `family` for a packet from `source`. Returns `None` if no address is
    /// left.
    ///
    /// In a search over several addresses `first` is set to the first chosen one, and begins as
    /// `None`. A caller that takes a single address passes no `first`.
    pub fn choose(
        &mut self,
        of: RulePool,
        inputs: PoolInputs,
        family: Family,
        source: IpAddr,
        first: Option<&mut Option<IpAddr>>,
    ) -> Option<Chosen> {
        let cursor = self.cursors.entry((of.rule.index, of.purpose)).or_default();
        let walk = ListChoice { of, inputs, loads: &self.loads, family };
        let begins = first.as_ref().is_some_and(|first| first.is_none());
        let (family, chosen) = match &of.pool.address {
            PoolAddress::List(members) => walk.choose(cursor, members)?,
            _ if of.pool.prefer_ipv6 => preferred(walk, cursor, source)?,
            _ => (family, from_single(walk, cursor, family, source, begins)?),
        };
        let way = match &of.pool.address {
            PoolAddress::List(members) => members.get(cursor.member),
            single => Some(single),
        };
        let interface = way.and_then(PoolAddress::next_hop_interface).cloned();
        let address = to_address(family, chosen);
        if let Some(first) = first {
            first.get_or_insert(address);
        }
        if of.pool.kind == PoolKind::LeastStates {
            self.count(of, inputs, family, address, 1)?;
        }
        Some(Chosen { address, interface })
    }

    /// Returns the number of states with an address of a table, `None` if none ever had it.
    pub fn load(&self, table: &TableName, address: IpAddr) -> Option<u64> {
        self.loads.get(&(Listed::Table(table.clone()), address)).copied()
    }

    /// Adds `change` to the number of states with an address, if the pool chooses from a list.
    /// Returns `None` if the address is not in the list.
    pub fn count(
        &mut self,
        of: RulePool,
        inputs: PoolInputs,
        family: Family,
        chosen: IpAddr,
        change: i64,
    ) -> Option<()> {
        let Some(list) = listed(of, inputs, family) else {
            return Some(());
        };
        if change < 0 {
            // the address may have left the table meanwhile
            if let Some(load) = self.loads.get_mut(&(list.name, chosen)) {
                *load = load.saturating_add_signed(change);
            }
            return Some(());
        }
        // networks have no counters
        list.best(to_bits(chosen)).filter(|block| block.is_host(family))?;
        let load = self.loads.entry((list.name, chosen)).or_default();
        *load = load.saturating_add_signed(change);
        Some(())
    }
}

/// Returns true if the pool has the address. As in PF, the negated entries of a table count, too.
pub(crate) fn contains(of: RulePool, inputs: PoolInputs, address: IpAddr) -> bool {
    let family = Family::from_address(address);
    let members = match &of.pool.address {
        PoolAddress::List(members) => members,
        single => std::slice::from_ref(single),
    };
    members.iter().any(|member| match Member::new(member, of, inputs, family) {
        Member::List(list) => list.best(to_bits(address)).is_some(),
        Member::Net(net) => net.is_some_and(|net| net.contains(to_bits(address))),
    })
}

/// Returns true if a pool that counts states can choose the address from these entries.
fn is_chosen_from(entries: &[TableEntry], address: IpAddr) -> bool {
    entries.iter().any(|entry| !entry.negated && entry.net == address.into())
}

/// Chooses from a single table, interface or network.
fn from_single(
    walk: ListChoice,
    cursor: &mut Cursor,
    family: Family,
    source: IpAddr,
    begins: bool,
) -> Option<u128> {
    let ListChoice { of, inputs, loads, .. } = walk;
    if let Some(list) = listed(of, inputs, family) {
        return from_list(of.pool, cursor, &list, inputs, source, loads);
    }
    let net = net(&of.pool.address, family)?;
    let source = af_to::read_as(family, source);
    from_net(&of.pool.kind, cursor, net, inputs, source, begins)
}

/// Chooses for `prefer-ipv6-nexthop`: an IPv6 address if there is one, else an IPv4 address for an
/// IPv4 packet.
fn preferred(walk: ListChoice, cursor: &mut Cursor, source: IpAddr) -> Option<(Family, u128)> {
    let address = &walk.of.pool.address;
    let is_list = listed(walk.of, walk.inputs, Family::Inet6).is_some();
    if is_list && walk.of.pool.kind == PoolKind::RoundRobin {
        return walk.choose_of_both(cursor, address);
    }
    let mut choose = |family| Some((family, from_single(walk, cursor, family, source, false)?));
    let alone = matches!(address, PoolAddress::Through(_, None)) || walk.family == Family::Inet6;
    if alone { choose(walk.family) } else { choose(Family::Inet6).or_else(|| choose(Family::Inet)) }
}

/// Chooses from a single network.
fn from_net(
    kind: &PoolKind,
    cursor: &mut Cursor,
    net: Block,
    inputs: PoolInputs,
    source: IpAddr,
    begins: bool,
) -> Option<u128> {
    let family = Family::from_address(source);
    let with_host_bits = |bits: u128| net.base & net.mask | bits & !net.mask & full(family);
    Some(match kind {
        PoolKind::None => net.base,
        PoolKind::Bitmask => with_host_bits(to_bits(source)),
        PoolKind::Random => {
            cursor.counter = if begins {
                random_host_bits(family, net.mask, inputs.world)
            } else {
                next(cursor.counter, family)
            };
            with_host_bits(cursor.counter)
        }
        PoolKind::SourceHash(key) => with_host_bits(hash(*key, source).1),
        PoolKind::RoundRobin => {
            if cursor.counter == 0 && net.is_host(family) {
                return Some(net.base);
            }
            // PF counts host bits only, so the pool ends once these look like an address of it
            if cursor.counter != 0 && net.contains(cursor.counter) {
                return None;
            }
            let chosen = with_host_bits(cursor.counter);
            cursor.counter = next(cursor.counter, family);
            chosen
        }
        // the language requires a table, because only tables count states
        PoolKind::LeastStates => return None,
    })
}

/// Chooses from a table or from the addresses of interfaces.
fn from_list(
    pool: &Pool,
    cursor: &mut Cursor,
    list: &List,
    inputs: PoolInputs,
    source: IpAddr,
    loads: &Loads,
) -> Option<u128> {
    let family = list.family;
    match &pool.kind {
        PoolKind::None => list.chosen.first().map(|block| block.base),
        PoolKind::Bitmask => {
            let block = list.chosen.first()?;
            let source = to_bits(af_to::read_as(family, source));
            Some(block.base & block.mask | source & !block.mask & full(family))
        }
        PoolKind::Random => {
            cursor.index = inputs.world.draw(list.total as u32) as usize;
            cursor.counter = 0;
            list.step(cursor, loads)?;
            Some(cursor.counter)
        }
        PoolKind::SourceHash(key) => {
            cursor.index =
                hash(*key, source).0.checked_rem(list.total as u64).unwrap_or(0) as usize;
            cursor.counter = 0;
            list.step(cursor, loads)?;
            Some(cursor.counter)
        }
        PoolKind::RoundRobin => {
            list.step_or_restart(cursor, loads)?;
            if list.weighted {
                list.step_by_weight(cursor, loads)?;
            }
            let chosen = cursor.counter;
            cursor.counter = next(cursor.counter, family);
            Some(chosen)
        }
        PoolKind::LeastStates => least_loaded(cursor, list, loads),
    }
}

/// Goes once around the whole list. The first address without states ends the search.
fn least_loaded(cursor: &mut Cursor, list: &List, loads: &Loads) -> Option<u128> {
    let load = |cursor: &Cursor| {
        if list.weighted { cursor.load * 0xffff / u64::from(cursor.weight) } else { cursor.load }
    };
    list.step_or_restart(cursor, loads)?;
    let start = cursor.counter;
    let (mut chosen, mut least, mut states) = (start, load(cursor), cursor.load);
    for _ in 0..MOST_STEPS {
        cursor.counter = next(cursor.counter, list.family);
        let mask = list.step(cursor, loads)?.mask;
        if load(cursor) < least {
            (chosen, least, states) = (cursor.counter, load(cursor), cursor.load);
        }
        // PF compares with the mask of the block that it has reached
        if start & mask == cursor.counter & mask || states == 0 {
            break;
        }
    }
    Some(chosen)
}

impl List {
    /// Returns the same list, which ends behind its last address.
    pub fn once(self) -> List {
        List { round: false, ..self }
    }

    /// Does [`List::step`], from the beginning if the remembered address has left the list.
    fn step_or_restart(&self, cursor: &mut Cursor, loads: &Loads) -> Option<Block> {
        if let Some(block) = self.step(cursor, loads) {
            return Some(block);
        }
        cursor.counter = 0;
        self.step(cursor, loads)
    }

    /// Moves the cursor to the next address of the list, which is its own address if that is in the
    /// list. Returns the block of the address, `None` at the end.
    pub fn step(&self, cursor: &mut Cursor, loads: &Loads) -> Option<Block> {
        let mut use_counter = cursor.index < self.total;
        let mut index = if use_counter { cursor.index } else { 0 };
        let start = index;
        let mut wrapped = false;
        loop {
            if wrapped && index == start {
                return None;
            }
            let block = match self.chosen.get(index) {
                Some(block) => *block,
                None if wrapped || !self.round => return None,
                None => {
                    (index, wrapped) = (0, true);
                    *self.chosen.first()?
                }
            };
            if index == 0 && use_counter && self.weighted {
                cursor.turn -= self.gcd;
                if cursor.turn < 1 {
                    cursor.turn = self.heaviest;
                }
            }
            let at = match cursor.counter {
                counter if !use_counter || counter == 0 => Some(block.base),
                counter => Some(counter).filter(|counter| block.contains(*counter)),
            };
            let found = if block.is_host(self.family) {
                if at.is_some_and(|at| self.is_unusable(at)) {
                    index += 1;
                    continue; // PF continues with the previous counter
                }
                at
            } else {
                at.and_then(|at| self.outside_of_others(&block, at))
            };
            match found {
                Some(counter) => {
                    let load = loads.get(&(self.name.clone(), to_address(self.family, counter)));
                    *cursor = Cursor {
                        counter,
                        index,
                        weight: block.weight.max(1),
                        load: load.copied().unwrap_or(0),
                        ..*cursor
                    };
                    return Some(block);
                }
                None => {
                    index += 1;
                    use_counter = false;
                }
            }
        }
    }

    /// Moves the cursor to an address that is heavy enough for this round of weighted round-robin.
    /// PF tries each address. This function skips blocks, because all addresses of a block have the
    /// same weight, and the round changes in the first block only.
    fn step_by_weight(&self, cursor: &mut Cursor, loads: &Loads) -> Option<()> {
        for _ in 0..MOST_STEPS {
            let block = self.step(cursor, loads)?;
            if i32::from(cursor.weight) >= cursor.turn {
                return Some(());
            }
            if cursor.index > 0 {
                cursor.counter |= !block.mask & full(self.family);
            }
            cursor.counter = next(cursor.counter, self.family);
        }
        None
    }

    /// Returns the first address of the block from `at` on that is in no smaller block. No address
    /// follows the last one of the family. OpenBSD continues at 0.0.0.0 there, and loops forever if
    /// smaller blocks cover all of 0.0.0.0/0.
    // Differs from OpenBSD: linux.md, "End of the address space"
    fn outside_of_others(&self, block: &Block, mut at: u128) -> Option<u128> {
        loop {
            let best = self.best(at)?;
            if best == block && !self.is_unusable(at) {
                return Some(at);
            }
            if self.family == Family::Inet6 {
                return None; // PF takes the mask for IPv4's and skips the whole block
            }
            at = next(at | !best.mask & full(self.family), self.family);
            if at == 0 || !block.contains(at) {
                return None;
            }
        }
    }

    /// Returns the smallest block that has an address, negated or not.
    fn best(&self, at: u128) -> Option<&Block> {
        self.blocks.iter().filter(|block| block.contains(at)).max_by_key(|block| block.mask)
    }

    /// Returns true for link-local addresses, which are chosen from tables only.
    fn is_unusable(&self, at: u128) -> bool {
        !matches!(self.name, Listed::Table(_))
            && self.family == Family::Inet6
            && at >> 118 == 0xfe80 >> 6
    }
}

impl Block {
    fn new(net: IpNet, negated: bool, weight: u16) -> Self {
        let mask = to_bits(net.netmask());
        Block { base: to_bits(net.network()), mask, negated, weight }
    }

    pub fn contains(&self, at: u128) -> bool {
        at & self.mask == self.base & self.mask
    }

    fn is_host(&self, family: Family) -> bool {
        self.mask == full(family)
    }
}

/// Returns the list of a pool with a table or an interface, `None` for a network.
fn listed(of: RulePool, inputs: PoolInputs, family: Family) -> Option<List> {
    list_of(&of.pool.address, of.rule, inputs, family)
}

/// Returns the list of a table or an interface in the pool of a rule.
pub(crate) fn list_of(
    address: &PoolAddress,
    rule: &Entry,
    inputs: PoolInputs,
    family: Family,
) -> Option<List> {
    let (name, entries) = match address {
        PoolAddress::Table(name) => {
            let (name, table) = inputs.ruleset.table_seen_from(&rule.path, name)?;
            (Listed::Table(name), table.entries.clone())
        }
        PoolAddress::Dynamic(dynamic) => {
            let entries = address::interface_networks(dynamic, inputs.world);
            let mut entries: Vec<IpNet> = entries.into_iter().collect();
            entries.sort();
            entries.dedup();
            (Listed::Interface(dynamic.clone()), entries.into_iter().map(Into::into).collect())
        }
        PoolAddress::Through(_, Some(hop)) => return list_of(hop, rule, inputs, family),
        _ => return None,
    };
    let weighted = entries.iter().any(|entry| entry.weight != 0);
    let (mut gcd, mut heaviest) = (0, 1);
    for entry in &entries {
        let weight = i32::from(entry.weight.max(1));
        gcd = greatest_common_divisor(gcd, weight);
        heaviest = heaviest.max(weight);
    }
    let own = entries.iter().filter(|entry| Family::from_address(entry.net.addr()) == family);
    let mut blocks: Vec<Block> =
        own.map(|entry| Block::new(entry.net, entry.negated, entry.weight)).collect();
    blocks.sort_by_key(|block| (block.base, std::cmp::Reverse(block.mask)));
    let chosen = blocks.iter().filter(|block| !block.negated).copied().collect();
    let total = entries.len();
    Some(List { name, family, blocks, chosen, total, weighted, gcd, heaviest, round: true })
}

fn greatest_common_divisor(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Returns the network of a pool that has a single one of this family.
pub(crate) fn net(pool: &PoolAddress, family: Family) -> Option<Block> {
    match pool {
        PoolAddress::Any => Some(Block { base: 0, mask: 0, negated: false, weight: 0 }),
        PoolAddress::Net(net) if Family::from_address(net.addr()) == family => {
            Some(Block::new(*net, false, 0))
        }
        // PF takes the upper end of a range as the mask of the lower end
        PoolAddress::Range(low, high) if Family::from_address(*low) == family => {
            Some(Block { base: to_bits(*low), mask: to_bits(*high), negated: false, weight: 0 })
        }
        PoolAddress::Through(_, Some(hop)) => net(hop, family),
        // each packet's destination is its next hop
        PoolAddress::Through(_, None) => {
            Some(Block { base: 0, mask: full(family), negated: false, weight: 0 })
        }
        _ => None,
    }
}

/// Sets the host bits of an address that a `bitmask` pool chose. An address from a list stays.
pub(crate) fn with_host_bits(pool: &PoolAddress, chosen: IpAddr, bits: IpAddr) -> IpAddr {
    let family = Family::from_address(chosen);
    let Some(block) = net(pool, family) else {
        return chosen;
    };
    to_address(family, to_bits(chosen) & block.mask | to_bits(bits) & !block.mask & full(family))
}

/// Returns the hash of an address: as a number, and as the address that PF derives from it.
fn hash(key: u128, source: IpAddr) -> (u64, u128) {
    // four words in the machine's byte order, as in PF; here always little-endian
    let mut key = key.to_be_bytes();
    key.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    match source {
        IpAddr::V4(v4) => {
            let hash = siphash24(key, &v4.octets());
            (hash, u32::from_be_bytes((hash as u32).to_le_bytes()).into())
        }
        IpAddr::V6(v6) => {
            let hash = siphash24(key, &v6.octets());
            let [low, high] = [hash as u32, (hash >> 32) as u32];
            let words = [low, high, !high, !low];
            let bits = words.iter().fold(0, |bits, word| {
                bits << 32 | u128::from(u32::from_be_bytes(word.to_le_bytes()))
            });
            (hash, bits)
        }
    }
}

/// Returns random bits for the part of an address that the mask leaves open. PF draws 32 bits at a
/// time, from the right, until the mask fills a word.
fn random_host_bits(family: Family, mask: u128, world: &World) -> u128 {
    let words = if family == Family::Inet { 1 } else { 4 };
    let mut bits = 0;
    for word in 0..words {
        let open = !(mask >> (word * 32)) as u32;
        if open == 0 {
            break;
        }
        // PF draws nothing if the bound would be 2^32
        bits |= u128::from(open.checked_add(1).map_or(0, |bound| world.draw(bound))) << (word * 32);
    }
    bits
}

fn full(family: Family) -> u128 {
    match family {
        Family::Inet => u32::MAX.into(),
        Family::Inet6 => u128::MAX,
    }
}

pub(crate) fn next(at: u128, family: Family) -> u128 {
    at.wrapping_add(1) & full(family)
}

fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn to_address(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::Inet => IpAddr::V4((bits as u32).into()),
        Family::Inet6 => IpAddr::V6(bits.into()),
    }
}

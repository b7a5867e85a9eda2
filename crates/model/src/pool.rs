//! Pools: the choice of an address for a translated packet (pf-semantics section 11).

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use siphasher::sip::SipHasher24;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::{
    Family, InterfaceName, Pool, PoolAddress, PoolKind, Ruleset, TableEntry, TableName,
};

use crate::address_list::{
    Block, Cursor, List, Listed, Loads, MOST_STEPS, full, list_of, net, next, to_address, to_bits,
};
use crate::pool_inputs::{PoolInputs, Purpose, RulePool};
use crate::pool_list::{ListChoice, Member};
use crate::world::World;
use crate::{address, af_to};

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

/// Returns the list of a pool with a table or an interface, `None` for a network.
fn listed(of: RulePool, inputs: PoolInputs, family: Family) -> Option<List> {
    list_of(&of.pool.address, of.rule, inputs, family)
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
    let hasher = SipHasher24::new_with_key(&key);
    match source {
        IpAddr::V4(v4) => {
            let hash = hasher.hash(&v4.octets());
            (hash, u32::from_be_bytes((hash as u32).to_le_bytes()).into())
        }
        IpAddr::V6(v6) => {
            let hash = hasher.hash(&v6.octets());
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

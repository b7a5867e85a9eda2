//! The addresses of a table or of interfaces, from which a pool chooses, and a pool's position
//! among them (pf-semantics section 11).

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::{Family, PoolAddress, TableName};

use crate::address;
use crate::pool_inputs::PoolInputs;
use crate::rulebook::Entry;

/// Maximum number of addresses examined for one packet, as in the data plane. OpenBSD has no bound.
// Differs from OpenBSD: linux.md, "Long searches"
pub(crate) const MOST_STEPS: usize = 1024;

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
    pub weight: u16,
    /// Number of states of the address in `counter`.
    pub load: u64,
}

/// A name of several networks, which can change while rules stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Listed {
    Table(TableName),
    Interface(DynamicAddress),
}

/// A network, or a single address, of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub base: u128,
    pub mask: u128,
    negated: bool,
    pub weight: u16,
}

/// The addresses of a table or an interface in one family, in the order of a radix tree.
pub(crate) struct List {
    pub name: Listed,
    pub family: Family,
    blocks: Vec<Block>,
    /// Blocks without the negated ones, which are never chosen.
    pub chosen: Vec<Block>,
    /// Number of entries of both families.
    pub total: usize,
    pub weighted: bool,
    gcd: i32,
    heaviest: i32,
    /// True if the first address follows the last one.
    round: bool,
}

impl List {
    /// Returns the same list, which ends behind its last address.
    pub fn once(self) -> List {
        List { round: false, ..self }
    }

    /// Does [`List::step`], from the beginning if the remembered address has left the list.
    pub fn step_or_restart(&self, cursor: &mut Cursor, loads: &Loads) -> Option<Block> {
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
    pub fn step_by_weight(&self, cursor: &mut Cursor, loads: &Loads) -> Option<()> {
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
    pub fn best(&self, at: u128) -> Option<&Block> {
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

    pub fn is_host(&self, family: Family) -> bool {
        self.mask == full(family)
    }
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

pub(crate) fn full(family: Family) -> u128 {
    match family {
        Family::Inet => u32::MAX.into(),
        Family::Inet6 => u128::MAX,
    }
}

pub(crate) fn next(at: u128, family: Family) -> u128 {
    at.wrapping_add(1) & full(family)
}

pub(crate) fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

pub(crate) fn to_address(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::Inet => IpAddr::V4((bits as u32).into()),
        Family::Inet6 => IpAddr::V6(bits.into()),
    }
}

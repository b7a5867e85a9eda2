//! Builds the index of a table with many entries: buckets of hosts, and a trie of networks. The
//! data plane only reads the index: bpf/table_index.h searches it, and bpf/abi/table_index.h has
//! the layout.

use skipstep_abi as abi;
use skipstep_abi::table_index::{INDEX_NEGATED, INDEX_NODE, LINE_GOES_ON, LINE_KEYS};
use skipstep_abi::{IndexCell, IndexEntry, IndexHead, IndexLine, IndexNode};
use zerocopy::{Immutable, IntoBytes};

/// Average number of hosts in a bucket (`IndexLine`). Half of the keys are free then, and one or
/// two hosts in a thousand find their bucket full.
const HOSTS_OF_A_LINE: usize = LINE_KEYS / 2;

/// Values of a node, one for each byte, before neighbours with the same value are merged.
const VALUES: usize = 256;

/// Returns the index of `entries`, which must be distinct. `secret` is the key of its hash.
pub fn table_index(entries: Vec<IndexEntry>, secret: [u32; 4]) -> Vec<IndexCell> {
    let count = entries.len();
    let mut head = IndexHead { secret, entries: count as u32, ..IndexHead::default() };
    let mut lines = [Vec::new(), Vec::new()];
    let mut trie = Trie::default();
    let mut ordered = Vec::with_capacity(count);
    let mut families = <[Vec<IndexEntry>; 2]>::default();
    for entry in entries {
        families[usize::from(is_inet6(&entry))].push(entry);
    }
    for (six, of_family) in families.into_iter().enumerate() {
        let (hosts, networks) = of_family.into_iter().partition::<Vec<_>, _>(is_host);
        let mut left_over = Vec::new();
        lines[six] = place_hosts(&hosts, &secret, &mut ordered, &mut left_over);
        if !networks.is_empty() {
            lines[six].iter_mut().for_each(|line| line.flags |= LINE_GOES_ON);
        }
        left_over.extend(networks);
        left_over.sort_unstable_by_key(|entry| (entry.address, entry.entry.prefix));
        let first = ordered.len() as u32 + 1;
        let networks: Vec<Network> = (first..)
            .zip(&left_over)
            .map(|(number, entry)| Network::from_entry(entry, number))
            .collect();
        ordered.extend(left_over);
        head.networks[six] = trie.build(&networks);
    }
    let mut cells = vec![IndexCell::default()];
    append(&mut cells, &ordered);
    for (six, lines) in lines.iter().enumerate() {
        head.lines[six] = lines.len() as u32;
        head.first_line[six] = append(&mut cells, lines);
    }
    head.first_node = append(&mut cells, &trie.nodes);
    head.first_value = append(&mut cells, &trie.values);
    cells[0].as_mut_bytes().copy_from_slice(head.as_bytes());
    cells
}

fn is_inet6(entry: &IndexEntry) -> bool {
    entry.family == u32::from(abi::INET6)
}

fn is_host(entry: &IndexEntry) -> bool {
    entry.entry.prefix == if is_inet6(entry) { 128 } else { 32 }
}

/// Returns the word by which a search returns an entry: its number, and the flag of a negated one.
fn word(number: u32, entry: &IndexEntry) -> u32 {
    if entry.entry.negated == 0 { number } else { number | INDEX_NEGATED }
}

/// Puts hosts of one family into buckets, and appends their entries to `ordered` in that order.
/// Appends hosts without room in their bucket to `left_over`.
fn place_hosts(
    hosts: &[IndexEntry],
    secret: &[u32; 4],
    ordered: &mut Vec<IndexEntry>,
    left_over: &mut Vec<IndexEntry>,
) -> Vec<IndexLine> {
    let count = hosts.len().div_ceil(HOSTS_OF_A_LINE);
    let mut lines = vec![IndexLine::default(); count];
    let spot = |(host, at): (&IndexEntry, u32)| {
        let hash = hash(secret, host);
        let key = if is_inet6(host) { hash as u32 } else { address_word(host, 0) };
        ((((hash >> 32) * count as u64) >> 32) as u32, at, key)
    };
    let mut spots: Vec<(u32, u32, u32)> = hosts.iter().zip(0..).map(spot).collect();
    spots.sort_unstable();
    for of_line in spots.chunk_by(|one, other| one.0 == other.0) {
        let line = &mut lines[of_line[0].0 as usize];
        line.first = ordered.len() as u32 + 1;
        let mut placed = 0;
        for &(_, at, key) in of_line {
            let host = hosts[at as usize];
            if placed == LINE_KEYS || key == 0 {
                line.flags |= LINE_GOES_ON;
                left_over.push(host);
                continue;
            }
            line.key[placed] = key;
            line.flags |= u32::from(host.entry.negated != 0) << placed;
            ordered.push(host);
            placed += 1;
        }
    }
    lines
}

/// Returns a 32-bit word of an address in native byte order, as the data plane reads it.
fn address_word(entry: &IndexEntry, which: usize) -> u32 {
    let bytes = &entry.address[4 * which..];
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Returns the hash of an address: `hash_address` in bpf/table_index.h.
fn hash(secret: &[u32; 4], entry: &IndexEntry) -> u64 {
    let word = |which| address_word(entry, which);
    let sum = |which| u64::from(word(which).wrapping_add(secret[which]));
    let hash = match is_inet6(entry) {
        false => u64::from(word(0) ^ secret[0]),
        true => {
            let sum = (sum(0) * sum(1)).wrapping_add(sum(2) * sum(3));
            sum ^ (sum >> 32)
        }
    };
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A network in the trie.
#[derive(Debug, Clone, Copy)]
struct Network {
    /// Address, in the most significant bits.
    bits: u128,
    prefix: u32,
    /// Result of a search that ends at this network.
    word: u32,
}

impl Network {
    fn from_entry(entry: &IndexEntry, number: u32) -> Self {
        Network {
            bits: u128::from_be_bytes(entry.address),
            prefix: entry.entry.prefix.into(),
            word: word(number, entry),
        }
    }

    /// Returns a byte of the address; 0 is the first.
    fn byte(&self, which: u32) -> usize {
        usize::from(self.bits.to_be_bytes()[which as usize])
    }
}

/// The trie of networks of both families: nodes and their values.
#[derive(Debug, Default)]
struct Trie {
    nodes: Vec<IndexNode>,
    values: Vec<u32>,
}

impl Trie {
    /// Adds a trie of networks, sorted, and returns the value at which its search begins.
    fn build(&mut self, networks: &[Network]) -> u32 {
        match networks {
            // The network of all addresses has no bit to branch by.
            [all, rest @ ..] if all.prefix == 0 => self.add_networks(rest, all.word),
            _ => self.add_networks(networks, 0),
        }
    }

    /// Adds the nodes of sorted networks with at least one bit, and returns the value that leads to
    /// them. `otherwise` is the longest match outside of them.
    fn add_networks(&mut self, networks: &[Network], otherwise: u32) -> u32 {
        let (Some(first), Some(last)) = (networks.first(), networks.last()) else {
            return otherwise;
        };
        let shortest = networks.iter().map(|network| network.prefix).min().unwrap_or(1);
        let alike = (first.bits ^ last.bits).leading_zeros();
        // The byte in which the shortest network ends, or the first byte in which they differ.
        let depth = alike.min(shortest - 1) / 8;
        let end = 8 * (depth + 1);
        let mut values = [otherwise; VALUES];
        let mut rest = networks;
        // Networks that end in this byte come before the networks inside them.
        while let Some(network) = rest.first() {
            let byte = network.byte(depth);
            if network.prefix <= end {
                values[byte..byte + (1 << (end - network.prefix))].fill(network.word);
                rest = &rest[1..];
            } else {
                let inside = rest.iter().take_while(|other| other.byte(depth) == byte).count();
                let (inside, behind) = rest.split_at(inside);
                values[byte] = self.add_networks(inside, values[byte]);
                rest = behind;
            }
        }
        self.add(first.bits, depth, otherwise, &values)
    }

    fn add(&mut self, bits: u128, depth: u32, otherwise: u32, values: &[u32; VALUES]) -> u32 {
        let mut node = IndexNode {
            first: self.values.len() as u32,
            otherwise,
            depth: depth as u8,
            common: bits.to_be_bytes(),
            ..IndexNode::default()
        };
        for (at, value) in values.iter().enumerate() {
            if at == 0 || values[at - 1] != *value {
                node.starts[at / 64] |= 1 << (at % 64);
                self.values.push(*value);
            }
        }
        let mut before = 0;
        for (word, starts) in node.before.iter_mut().zip(node.starts) {
            *word = before;
            before = before.wrapping_add(starts.count_ones() as u8);
        }
        self.nodes.push(node);
        INDEX_NODE | (self.nodes.len() - 1) as u32
    }
}

/// Appends items to new cells, and returns the index of the first of these.
fn append<T: IntoBytes + Immutable>(cells: &mut Vec<IndexCell>, items: &[T]) -> u32 {
    let first = cells.len() as u32;
    for bytes in items.as_bytes().chunks(size_of::<IndexCell>()) {
        let mut cell = IndexCell::default();
        cell.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        cells.push(cell);
    }
    first
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use skipstep_abi::table_index::INDEX_WORDS;
    use zerocopy::FromBytes;

    use super::*;

    fn view<T: FromBytes>(cell: &IndexCell) -> T {
        T::read_from_bytes(cell.as_bytes()).unwrap()
    }

    fn entry(bits: u128, prefix: u8, six: bool, negated: bool) -> IndexEntry {
        let mask = if prefix == 0 { 0 } else { u128::MAX << (128 - u32::from(prefix)) };
        IndexEntry {
            entry: abi::TableEntry { prefix, negated: negated.into(), ..Default::default() },
            family: u32::from(if six { abi::INET6 } else { abi::INET }),
            address: (bits & mask).to_be_bytes(),
        }
    }

    /// Searches as bpf/table_index.h does. Returns the longest match, and the number of nodes that
    /// the search read in the trie.
    fn search(cells: &[IndexCell], address: &IndexEntry) -> (Option<IndexEntry>, u32) {
        let head: IndexHead = view(&cells[0]);
        let six = usize::from(is_inet6(address));
        let number = |number: u32| {
            let at = (number & !INDEX_NEGATED) as usize + 1;
            let pair: [IndexEntry; 2] = view(&cells[at / 2]);
            let entry = pair[at % 2];
            assert_eq!(entry.entry.negated != 0, number & INDEX_NEGATED != 0);
            entry
        };
        if head.lines[six] != 0 {
            let hash = hash(&head.secret, address);
            let line = ((hash >> 32) * u64::from(head.lines[six])) >> 32;
            let at = head.first_line[six] + line as u32;
            let line: IndexLine = view(&cells[at as usize]);
            let key = if six == 1 { hash as u32 } else { address_word(address, 0) };
            for (at, found) in (0..).zip(line.key) {
                let negated = if (line.flags >> at) & 1 == 1 { INDEX_NEGATED } else { 0 };
                let entry = (found == key && key != 0).then(|| number((line.first + at) | negated));
                if let Some(entry) = entry.filter(|entry| entry.address == address.address) {
                    return (Some(entry), 0);
                }
            }
            if line.flags & LINE_GOES_ON == 0 {
                return (None, 0);
            }
        }
        let (mut value, mut steps) = (head.networks[six], 0);
        while value & INDEX_NODE != 0 {
            steps += 1;
            let node: IndexNode = view(&cells[(head.first_node + (value & !INDEX_NODE)) as usize]);
            let depth = usize::from(node.depth);
            if node.common[..depth] != address.address[..depth] {
                value = node.otherwise;
                break;
            }
            let byte = address.address[depth];
            let word = usize::from(byte >> 6);
            let bits = (node.starts[word] << (63 - (byte & 63))).count_ones();
            let at = (node.first + u32::from(node.before[word]) + bits - 1) as usize;
            value = cells[head.first_value as usize + at / INDEX_WORDS].word[at % INDEX_WORDS];
        }
        ((value != 0).then(|| number(value)), steps)
    }

    /// Finds the longest match by trying every prefix length.
    fn longest(
        entries: &BTreeMap<(u8, u128), IndexEntry>,
        bits: u128,
        six: bool,
    ) -> Option<IndexEntry> {
        let lengths = (0..=if six { 128 } else { 32 }).rev();
        let mut masked = lengths.map(|length| {
            let mask = if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length)) };
            (length, bits & mask)
        });
        masked.find_map(|key| entries.get(&key).copied())
    }

    /// Compares searches with [`longest`], for close entries of both families and addresses near
    /// them.
    fn try_out(rng: &mut fastrand::Rng, count: usize, lengths: [std::ops::RangeInclusive<u8>; 2]) {
        let mut known = [BTreeMap::new(), BTreeMap::new()];
        let near = rng.u128(..);
        for number in 0..count {
            let six = number % 2 == 1;
            let length = rng.u8(lengths[usize::from(six)].clone());
            let keep = rng.u32(0..128);
            let bits = (near & !(u128::MAX >> keep)) | (rng.u128(..) & (u128::MAX >> keep));
            let bits = if six { bits } else { bits & (u128::MAX << 96) };
            let entry = entry(bits, length, six, rng.u8(..4) == 0);
            known[usize::from(six)].insert((length, u128::from_be_bytes(entry.address)), entry);
        }
        let all: Vec<IndexEntry> = known.iter().flat_map(|known| known.values().copied()).collect();
        let cells = table_index(all.clone(), [rng.u32(..), rng.u32(..), rng.u32(..), rng.u32(..)]);
        let head: IndexHead = view(&cells[0]);
        assert_eq!(head.entries as usize, all.len());
        for _ in 0..400 {
            let six = rng.bool();
            let whole = if six { 128 } else { 32 };
            let bits = match rng.u8(..4) {
                0 => rng.u128(..),
                _ if all.is_empty() => near,
                1 => near ^ (1 << rng.u32(0..128)),
                _ => {
                    let around = all[rng.usize(..all.len())];
                    u128::from_be_bytes(around.address) ^ (rng.u128(..) >> rng.u32(8..128))
                }
            };
            let asked = entry(bits, whole, six, false);
            let bits = u128::from_be_bytes(asked.address);
            let (found, steps) = search(&cells, &asked);
            assert_eq!(found, longest(&known[usize::from(six)], bits, six), "{asked:?} {all:?}");
            assert!(steps <= u32::from(whole / 8), "{steps} steps");
        }
    }

    #[test]
    fn the_longest_match_is_found() {
        let mut rng = fastrand::Rng::with_seed(1);
        for count in [0, 1, 2, 3, 10, 100, 1000] {
            for _ in 0..30 {
                try_out(&mut rng, count, [0..=32, 0..=128]);
                try_out(&mut rng, count, [32..=32, 128..=128]);
                try_out(&mut rng, count, [24..=32, 120..=128]);
                try_out(&mut rng, count, [1..=9, 1..=9]);
            }
        }
    }

    #[test]
    fn a_table_of_hosts_needs_no_trie() {
        let mut rng = fastrand::Rng::with_seed(2);
        let hosts: BTreeMap<u128, IndexEntry> = (0..20_000)
            .map(|_| u128::from(rng.u32(1..)) << 96)
            .map(|bits| (bits, entry(bits, 32, false, false)))
            .collect();
        let cells = table_index(hosts.values().copied().collect(), [1, 2, 3, 4]);
        let steps = |bits| search(&cells, &entry(bits, 32, false, false)).1;
        let asked = hosts.keys().filter(|bits| steps(**bits) != 0).count();
        assert!(asked < 200, "{asked} of {} had no room in their lines", hosts.len());
    }

    /// Hosts that all hash to one bucket, as an attacker who knows the secret would choose them.
    #[test]
    fn hosts_of_a_full_bucket_are_found() {
        let secret = [5, 6, 7, 8];
        let all = (1u32..).map(|number| entry(u128::from(number) << 96, 32, false, false));
        let low = all.filter(|entry| hash(&secret, entry) >> 53 == 0).take(500);
        let hosts: Vec<IndexEntry> = low.collect();
        let cells = table_index(hosts.clone(), secret);
        for host in &hosts {
            assert_eq!(search(&cells, host).0, Some(*host));
        }
    }

    #[test]
    fn long_prefixes_do_not_multiply_nodes() {
        let mut rng = fastrand::Rng::with_seed(3);
        let entries: BTreeMap<u128, IndexEntry> = (0..1000)
            .map(|_| rng.u128(..) & !1)
            .map(|bits| (bits, entry(bits, 127, true, false)))
            .collect();
        let cells = table_index(entries.values().copied().collect(), [1, 2, 3, 4]);
        assert!(cells.len() < 3 * entries.len(), "{} cells", cells.len());
    }
}

//! Covering prefixes: a few networks that contain all entries of a table.

use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use skipstep_ruleset::TableEntry;

/// Returns at most `most` disjoint networks of each family that cover the entries and little else.
/// If the entries need no more networks than that, returns the entries without nested ones. Negated
/// entries are ignored. IPv4 comes first; each family is sorted.
pub fn cover(entries: &[TableEntry], most: usize) -> Vec<IpNet> {
    let nets = || entries.iter().filter(|entry| !entry.negated).map(|entry| entry.net);
    let of_inet = nets().filter_map(|net| match net {
        IpNet::V4(net) => Some((net.network().to_bits().into(), net.broadcast().to_bits().into())),
        IpNet::V6(_) => None,
    });
    let of_inet6 = nets().filter_map(|net| match net {
        IpNet::V6(net) => Some((net.network().to_bits(), net.broadcast().to_bits())),
        IpNet::V4(_) => None,
    });
    let inet =
        Networks::from_ends(of_inet.collect(), 32).parts(most).into_iter().map(|(first, bits)| {
            let net = Ipv4Net::new(Ipv4Addr::from_bits(first as u32), bits as u8);
            IpNet::V4(net.expect("it has no more bits than an address"))
        });
    let inet6 = Networks::from_ends(of_inet6.collect(), 128).parts(most).into_iter().map(
        |(first, bits)| {
            let net = Ipv6Net::new(Ipv6Addr::from_bits(first), bits as u8);
            IpNet::V6(net.expect("it has no more bits than an address"))
        },
    );
    inet.chain(inet6).collect()
}

/// True if one of the networks that [`cover`] returned contains all of `net`.
pub fn covers(cover: &[IpNet], net: &IpNet) -> bool {
    let behind = cover.partition_point(|covering| covering.network() <= net.network());
    behind.checked_sub(1).is_some_and(|at| cover[at].contains(net))
}

/// Networks of one family, sorted, none inside another.
struct Networks {
    /// First and last address of each network, inclusive.
    ends: Vec<(u128, u128)>,
    /// Number of addresses in the networks before each one; the last value is the total.
    before: Vec<f64>,
    /// Number of bits of an address: 32 or 128.
    width: u32,
}

/// A run of neighbouring networks, ordered by its waste. The waste is the number of addresses in
/// the smallest enclosing network that no network of the run has. `waste` has the bits of a
/// non-negative float, which sort like the float.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    waste: u64,
    from: usize,
    to: usize,
}

impl Networks {
    fn from_ends(mut ends: Vec<(u128, u128)>, width: u32) -> Self {
        ends.sort_unstable_by_key(|(first, last)| (*first, std::cmp::Reverse(*last)));
        let mut reached = None;
        ends.retain(|(_, last)| {
            let outside = reached.is_none_or(|reached| *last > reached);
            reached = reached.max(Some(*last));
            outside
        });
        let mut sum = 0.0;
        let sizes = ends.iter().map(|(first, last)| (last - first) as f64 + 1.0);
        let sums = sizes.map(|size| {
            sum += size;
            sum
        });
        let before = std::iter::once(0.0).chain(sums).collect();
        Networks { ends, before, width }
    }

    /// Returns the first addresses and prefix lengths of at most `most` networks that contain all
    /// networks. Splits the part with the most waste until there are enough.
    fn parts(&self, most: usize) -> Vec<(u128, u32)> {
        let mut parts = BinaryHeap::new();
        parts.extend((!self.ends.is_empty()).then(|| self.part(0..self.ends.len())));
        while parts.len() < most.min(self.ends.len()) {
            let Some(Part { from, to, .. }) = parts.pop() else { break };
            let half = self.half(from..to);
            parts.extend([self.part(from..half), self.part(half..to)]);
        }
        let mut nets: Vec<_> = parts.iter().map(|part| self.around(part.from..part.to)).collect();
        nets.sort_unstable();
        nets
    }

    fn part(&self, of: Range<usize>) -> Part {
        let (_, bits) = self.around(of.clone());
        let size = ((self.width - bits) as f64).exp2();
        let waste = size - (self.before[of.end] - self.before[of.start]);
        // A single network wastes nothing and cannot be split.
        let waste = if of.len() > 1 { 1.0 + waste.max(0.0) } else { 0.0 };
        Part { waste: waste.to_bits(), from: of.start, to: of.end }
    }

    /// Returns the smallest network that contains a run of networks: first address and prefix
    /// length.
    fn around(&self, of: Range<usize>) -> (u128, u32) {
        let (first, last) = (self.ends[of.start].0, self.ends[of.end - 1].1);
        let differ = u128::BITS - (first ^ last).leading_zeros();
        let rest = 1u128.checked_shl(differ).map_or(u128::MAX, |size| size - 1);
        (first & !rest, self.width - differ)
    }

    /// Returns the index at which the second half of the enclosing network begins. Both halves have
    /// at least one network.
    fn half(&self, of: Range<usize>) -> usize {
        let (first, bits) = self.around(of.clone());
        let middle = first | 1 << (self.width - bits - 1);
        of.start + self.ends[of].partition_point(|(first, _)| *first < middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(count: usize, seed: u64) -> Vec<IpNet> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut one = || {
            let near = u32::from(random.u8(..4)) << 24 | random.u32(..) & 0x0003_ffff;
            let net = Ipv4Net::new(Ipv4Addr::from_bits(near), random.u8(14..=32)).unwrap();
            let far = u128::from(random.u16(..8)) << 112 | u128::from(random.u32(..)) << 64;
            let net6 = Ipv6Net::new(Ipv6Addr::from_bits(far), random.u8(32..=128)).unwrap();
            if random.bool() { IpNet::V4(net.trunc()) } else { IpNet::V6(net6.trunc()) }
        };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn every_entry_is_covered() {
        for seed in 0..20 {
            let nets = drawn(1000, seed);
            let entries: Vec<TableEntry> = nets.iter().copied().map(TableEntry::from).collect();
            for most in [1, 2, 7, 64, 2000] {
                let cover = cover(&entries, most);
                assert!(cover.len() <= 2 * most, "{most}: {}", cover.len());
                assert!(cover.is_sorted(), "{cover:?}");
                for net in &nets {
                    assert!(covers(&cover, net), "{net} of {cover:?}");
                    assert!(cover.iter().any(|covering| covering.contains(net)));
                }
            }
        }
    }

    #[test]
    fn few_entries_are_their_own_cover() {
        let nets: Vec<IpNet> = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.1/32", "2001:db8::/32"]
            .map(|net| net.parse().unwrap())
            .into();
        let entries: Vec<TableEntry> = nets.iter().copied().map(TableEntry::from).collect();
        let cover = cover(&entries, 3);
        assert_eq!(cover, [nets[0], nets[2], nets[3]]);
        assert!(!covers(&cover, &"11.0.0.0/32".parse().unwrap()));
        assert!(!covers(&cover, &"0.0.0.0/0".parse().unwrap()));
        assert!(!covers(&cover, &"2001:db9::1/128".parse().unwrap()));
    }

    #[test]
    fn distant_networks_have_separate_prefixes() {
        let nets = ["10.0.0.0/24", "10.0.1.0/24", "10.0.3.0/24", "198.51.100.0/24"];
        let entries: Vec<TableEntry> =
            nets.map(|net| TableEntry::from(net.parse::<IpNet>().unwrap())).into();
        let cover: Vec<String> = cover(&entries, 2).iter().map(IpNet::to_string).collect();
        assert_eq!(cover, ["10.0.0.0/22", "198.51.100.0/24"]);
    }

    #[test]
    fn everything_and_nothing_are_covered() {
        let all = ["0.0.0.0/0", "::/0"].map(|net| TableEntry::from(net.parse::<IpNet>().unwrap()));
        assert_eq!(cover(&all, 4), [all[0].net, all[1].net]);
        let ends = ["0.0.0.0/1", "255.255.255.255/32", "::/1", "ffff::/16"];
        let ends: Vec<TableEntry> =
            ends.map(|net| TableEntry::from(net.parse::<IpNet>().unwrap())).into();
        assert_eq!(cover(&ends, 1), [all[0].net, all[1].net]);
        assert_eq!(cover(&[], 4), []);
        let taken_out = TableEntry { negated: true, ..all[0] };
        assert_eq!(cover(&[taken_out], 4), []);
    }
}

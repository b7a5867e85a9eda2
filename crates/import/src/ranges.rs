//! Sets of numbers: addresses, ports, protocols.

/// A set of numbers: sorted inclusive ranges, neither overlapping nor adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u32, u32)>);

/// Highest IPv4 address, as a number.
pub const ADDRESS: u32 = u32::MAX;
/// Highest port.
pub const PORT: u32 = u16::MAX as u32;
/// Highest protocol number.
pub const PROTOCOL: u32 = u8::MAX as u32;

impl Ranges {
    /// Returns the set of all numbers up to `highest`, inclusive.
    pub fn all(highest: u32) -> Self {
        Ranges(vec![(0, highest)])
    }

    /// Returns the set of one number.
    pub fn one(number: u32) -> Self {
        Ranges(vec![(number, number)])
    }

    /// Returns the union of inclusive ranges, given in any order.
    pub fn union(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut union: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match union.last_mut() {
                Some(last) if u64::from(low) <= u64::from(last.1) + 1 => last.1 = last.1.max(high),
                _ => union.push((low, high)),
            }
        }
        Ranges(union)
    }

    /// Returns the numbers in both sets.
    pub fn intersection(&self, other: &Ranges) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let (low, high) = (x.0.max(y.0), x.1.min(y.1));
            if low <= high {
                common.push((low, high));
            }
            if x.1 < y.1 {
                a.next();
            } else {
                b.next();
            }
        }
        Ranges(common)
    }

    /// Returns the numbers up to `highest`, inclusive, that are not in the set.
    pub fn complement(&self, highest: u32) -> Self {
        let mut rest = Vec::new();
        let mut next = Some(0);
        for &(low, high) in &self.0 {
            if let Some(start) = next.filter(|&start| start < low) {
                rest.push((start, low - 1));
            }
            next = high.checked_add(1);
        }
        if let Some(start) = next.filter(|&start| start <= highest) {
            rest.push((start, highest));
        }
        Ranges(rest)
    }

    /// Returns the numbers of this set that are not in the other.
    pub fn without(&self, other: &Ranges) -> Self {
        self.intersection(&other.complement(ADDRESS))
    }

    /// True if `number` is in the set.
    pub fn contains(&self, number: u32) -> bool {
        self.0
            .binary_search_by(|&(low, high)| {
                if high < number {
                    std::cmp::Ordering::Less
                } else if low > number {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ranges, ascending, with both ends inclusive.
    pub fn pieces(&self) -> &[(u32, u32)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let set = Ranges::union(vec![(22, 65535), (0, 19), (20, 20)]);
        assert_eq!(set.pieces(), [(0, 20), (22, 65535)]);
        assert_eq!(Ranges::union(vec![(5, 5), (0, ADDRESS)]), Ranges::all(ADDRESS));
    }

    /// Compares every operation on small sets with its result for each number.
    #[test]
    fn operations_are_those_of_sets() {
        let sets: Vec<Ranges> = (0..64)
            .map(|bits: u32| {
                Ranges::union((0..6).filter(|n| bits >> n & 1 == 1).map(|n| (n, n)).collect())
            })
            .collect();
        for a in &sets {
            for b in &sets {
                for n in 0..6 {
                    let (x, y) = (a.contains(n), b.contains(n));
                    assert_eq!(a.intersection(b).contains(n), x && y);
                    assert_eq!(a.without(b).contains(n), x && !y);
                    assert_eq!(a.complement(5).contains(n), !x);
                }
            }
            assert_eq!(&a.complement(5).complement(5), a);
        }
    }
}

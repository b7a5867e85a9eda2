//! Maps for 100,000 rules. Their keys come from the administrator's own rules, so that the hash
//! need not withstand anybody; it has to be quick.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map with the quick hash.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set with the quick hash.
pub type Set<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// An empty map with room for so many keys: one that grows as it is filled hashes all of them again
/// and again.
pub fn map_for<K, V>(keys: usize) -> Map<K, V> {
    Map::with_capacity_and_hasher(keys, BuildHasherDefault::default())
}

/// Gives each value a number, from 1.
pub struct Numbers<T> {
    numbers: Map<T, u32>,
    /// Room to make for values once there is a second one: rules have one direction, or 100,000
    /// addresses.
    room: usize,
    /// The value asked for last: most rules have much in common with the one in front of them.
    last: Option<(T, u32)>,
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    /// No values yet; there may be so many.
    pub fn new(room: usize) -> Self {
        Numbers { numbers: Map::default(), room, last: None }
    }

    /// The number of a value, which may be a new one.
    pub fn of(&mut self, value: T) -> u32 {
        if let Some((last, number)) = self.last
            && last == value
        {
            return number;
        }
        let next = self.numbers.len() as u32 + 1;
        if next == 2 {
            self.numbers.reserve(self.room);
        }
        let number = *self.numbers.entry(value).or_insert(next);
        self.last = Some((value, number));
        number
    }

    /// The number of a value, if it has one.
    pub fn known(&self, value: &T) -> Option<u32> {
        self.numbers.get(value).copied()
    }
}

/// Multiplies and rotates, word by word.
#[derive(Default)]
pub struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }

    /// The map takes its place from the lowest bits and the highest, and multiplication leaves the
    /// lowest poor.
    fn finish(&self) -> u64 {
        self.0 ^ self.0.rotate_left(32)
    }
}

//! Fast hash maps for 100,000 rules. The hash has no key, because no attacker chooses the keys.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map with the fast hash.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set with the fast hash.
pub type Set<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// Returns an empty map with room for `keys` keys. A map that grows hashes all its keys again.
pub fn map_for<K, V>(keys: usize) -> Map<K, V> {
    Map::with_capacity_and_hasher(keys, BuildHasherDefault::default())
}

/// Numbers distinct values from 1.
pub struct Numbers<T> {
    numbers: Map<T, u32>,
    /// Room to reserve when a second value comes. Rules have one direction, or 100,000 addresses.
    room: usize,
    /// The last value and its number, because a rule often has the value of the rule before it.
    last: Option<(T, u32)>,
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    /// Returns an empty set with room for `room` values.
    pub fn new(room: usize) -> Self {
        Numbers { numbers: Map::default(), room, last: None }
    }

    /// Returns the number of a value, and assigns the next number to a new value.
    pub fn number(&mut self, value: T) -> u32 {
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

    /// Returns the number of a value, or `None` if it has none.
    pub fn get(&self, value: &T) -> Option<u32> {
        self.numbers.get(value).copied()
    }
}

/// A hasher that multiplies and rotates, word by word.
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

    /// Mixes the high bits of the product into the weak low bits. The map uses both.
    fn finish(&self) -> u64 {
        self.0 ^ self.0.rotate_left(32)
    }
}

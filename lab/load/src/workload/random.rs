//! random(3) of glibc. A seed gives the same gaps as in a C program that calls srandom and random.

/// Distances to the two words whose sum is the next one.
const FAR: usize = 31;
const NEAR: usize = 3;

/// Number of values that are discarded at the beginning.
const DISCARDED: usize = 310;

/// The largest value.
const MOST: u32 = 0x7fff_ffff;

/// The generator, additive feedback over 31 words (TYPE_3).
#[derive(Debug, Clone)]
pub struct Random {
    words: [u32; FAR],
    /// Index of the oldest word, which the next one replaces.
    oldest: usize,
}

impl Random {
    /// Makes a generator like srandom(seed).
    pub fn new(seed: u32) -> Random {
        let mut words = [0; FAR];
        // a seed of zero would give zeros only
        words[0] = seed.max(1);
        for index in 1..FAR {
            // 16807 · x modulo 2³¹ − 1, with x as a signed number
            let before = i64::from(words[index - 1].cast_signed());
            words[index] =
                u32::try_from((16_807 * before).rem_euclid(i64::from(MOST))).unwrap_or(0);
        }
        let mut random = Random { words, oldest: NEAR };
        for _ in 0..DISCARDED {
            random.number();
        }
        random
    }

    /// Returns the next value of random(), from 0 to 2³¹ − 1.
    pub fn number(&mut self) -> u32 {
        let near = self.words[(self.oldest + FAR - NEAR) % FAR];
        let sum = self.words[self.oldest].wrapping_add(near);
        self.words[self.oldest] = sum;
        self.oldest = (self.oldest + 1) % FAR;
        sum >> 1
    }

    /// Returns a uniform value from `low` to `high`, both included.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (f64::from(self.number()) / f64::from(MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn gives(seed: u32, expected: [u32; 4]) {
        let mut random = Random::new(seed);
        assert_eq!([(); 4].map(|()| random.number()), expected);
    }

    #[test]
    fn the_same_numbers_as_glibc() {
        // Printed by a C program that calls srandom and random, with glibc 2.36.
        gives(1, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        gives(0, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        gives(42, [71_876_166, 708_592_740, 1_483_128_881, 907_283_241]);
        gives(2_147_483_647, [1_065_668_062, 2_142_264_300, 1_066_566_375, 1_064_012_770]);
        gives(2_147_483_648, [1_336_741_213, 1_210_407_648, 1_447_044_896, 337_392_383]);
        gives(4_294_967_295, [254_925_627, 1_205_188_300, 366_127_624, 1_401_405_153]);
    }

    #[test]
    fn numbers_lie_between_the_bounds() {
        let mut random = Random::new(42);
        let gaps: Vec<f64> = (0..1000).map(|_| random.between(1.0, 3.0)).collect();
        assert!(gaps.iter().all(|gap| (1.0..=3.0).contains(gap)));
        let mean = gaps.iter().sum::<f64>() / 1000.0;
        assert!((1.95..2.05).contains(&mean), "{mean}");
    }
}

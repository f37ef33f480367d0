//! The Mersenne Twister MT19937, seeded as by Python: with the same seed, it selects the same items as Salt.

use std::collections::HashSet;

use brine_value::Value;
use rand_mt::Mt;
use sha2::{Digest as _, Sha512};

use crate::{Digest, hex};

/// A pseudo-random number generator.
pub struct MersenneTwister(Mt);

impl MersenneTwister {
    /// Seeds the generator with an integer or a string.
    pub fn seeded(seed: &Value) -> Self {
        match seed {
            Value::Int(number) => {
                let number = number.unsigned_abs();
                let halves = [number & 0xffff_ffff, number >> 32].map(|half| u32::try_from(half).unwrap_or(u32::MAX));
                Self::from_key(if halves[1] == 0 { &halves[..1] } else { &halves })
            }
            other => {
                // Python converts the string and its SHA-512 to one integer, whose lowest 32 bits come first in the key.
                let mut bytes = other.to_string().into_bytes();
                bytes.extend(Sha512::digest(&bytes));
                let word = |chunk: &[u8]| chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
                let mut key: Vec<u32> = bytes.rchunks(4).map(word).collect();
                while key.len() > 1 && key.last() == Some(&0) {
                    key.pop();
                }
                Self::from_key(&key)
            }
        }
    }

    /// Seeds the generator for selecting items: Salt seeds it with the digest of the seed.
    pub fn choosing(seed: &Value) -> Self {
        Self::seeded(&hex(Digest::Sha512.of(seed.to_string())).into())
    }

    fn from_key(key: &[u32]) -> Self {
        MersenneTwister(Mt::new_with_key(key.iter().copied()))
    }

    /// Returns the next number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u32) -> u32 {
        let bits = u32::BITS - limit.leading_zeros();
        loop {
            let number = self.0.next_u32() >> (u32::BITS - bits);
            if number < limit {
                return number;
            }
        }
    }

    /// Selects `count` of these items: with a seed, reproducibly and as Salt does; without one, randomly. `None` if
    /// there are too few.
    pub fn chosen<T: Clone>(items: &[T], count: usize, seed: &Value) -> Option<Vec<T>> {
        let by_chance = || rand::random::<i64>().into();
        let seed = if seed.is_nil() { by_chance() } else { seed.clone() };
        let indices = Self::choosing(&seed).sample(items.len(), count)?;
        Some(indices.into_iter().map(|index| items[index].clone()).collect())
    }

    /// Selects the indexes of `count` of this many items; `None` if there are too few.
    pub fn sample(&mut self, items: usize, count: usize) -> Option<Vec<usize>> {
        if count > items {
            return None;
        }
        let mut below = |limit: usize| self.below(u32::try_from(limit).unwrap_or(u32::MAX)) as usize;
        // Python selects the cheaper of two algorithms by the memory that its sets would take.
        let mut set_weight = 21;
        if count > 5 {
            let mut table = 4;
            while table < 3 * count {
                table *= 4;
            }
            set_weight += table;
        }
        if items <= set_weight {
            let mut pool: Vec<usize> = (0..items).collect();
            return Some((0..count).map(|_| pool.swap_remove(below(pool.len()))).collect());
        }
        let mut taken = HashSet::new();
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let index = below(items);
            if taken.insert(index) {
                chosen.push(index);
            }
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_python() {
        for (seed, expected) in [
            (Value::from(0), [864, 394, 776]),
            (1.into(), [137, 582, 867]),
            ((-5).into(), [637, 261, 759]),
            ((1_i64 << 40).into(), [106, 361, 686]),
            ("x".into(), [645, 322, 611]),
            ("static".into(), [813, 572, 553]),
        ] {
            let mut twister = MersenneTwister::seeded(&seed);
            assert_eq!([(); 3].map(|()| twister.below(1000)), expected, "{seed}");
        }
    }

    #[test]
    fn samples_match_salt() {
        for (items, count, seed, expected) in [
            (9, 3, "static", Some(vec![6, 7, 2])),
            (100, 7, "x", Some(vec![55, 92, 35, 15, 5, 47, 63])),
            (6, 6, "static", Some(vec![5, 3, 4, 1, 0, 2])),
            (2, 3, "x", None),
        ] {
            assert_eq!(
                MersenneTwister::choosing(&seed.into()).sample(items, count),
                expected,
                "{count} of {items} by {seed}"
            );
        }
    }
}

//! Random keys, which no branch predictor has seen, and their generator.

use core::fmt::{Debug, Write};
use core::hash::{BuildHasher, Hash};

/// The keys of the benchmarks: `u64`, and `String` in the form of Kubernetes' object keys.
pub trait Key: Clone + Eq + Hash + Debug + Send + 'static {
    /// The name of the type in the tables.
    const NAME: &'static str;

    /// The key with this number. Different numbers make different keys.
    fn from_number(number: u64) -> Self;
}

impl Key for u64 {
    const NAME: &'static str = "u64";

    fn from_number(number: u64) -> Self {
        number
    }
}

impl Key for String {
    const NAME: &'static str = "String";

    /// 26 bytes, and no more allocated.
    fn from_number(number: u64) -> Self {
        let mut key = Self::with_capacity(26);
        // Writing to a string cannot fail.
        let _ = write!(key, "ns-{:02}/pod-{number:016x}", number % 100);
        key
    }
}

/// `SplitMix64` (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators",
/// 2014): a step per number and a period of 2^64, so that no number comes twice.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that differs from run to run.
    pub fn any_seed() -> u64 {
        std::hash::RandomState::new().hash_one(0)
    }

    /// The next number.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at most 2^32.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    /// `count` new keys.
    pub fn keys<K: Key>(&mut self, count: usize) -> Vec<K> {
        (0..count).map(|_| K::from_number(self.next())).collect()
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

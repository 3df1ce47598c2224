//! Pseudorandom numbers from a seed.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `from..to`. `from` if the range is empty.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.number() % to.saturating_sub(from).max(1)
    }

    /// One of some values, `None` if there are none.
    pub fn pick<'v, T>(&mut self, values: &'v [T]) -> Option<&'v T> {
        let count = u64::try_from(values.len()).unwrap_or(u64::MAX);
        values.get(usize::try_from(self.between(0, count)).ok()?)
    }
}

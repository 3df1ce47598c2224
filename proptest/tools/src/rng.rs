//! Numbers that follow from a seed.

/// Steele, Lea and Flood's SplitMix64.
///
/// # Examples
///
/// ```
/// use requeue_test_tools::Rng;
///
/// let (mut rng, mut same) = (Rng::new(7), Rng::new(7));
/// let roll = rng.roll(6);
/// assert!(roll < 6);
/// assert_eq!(roll, same.roll(6));
/// ```
#[derive(Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number less than `sides`.
    ///
    /// # Panics
    ///
    /// If there are no sides.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.any() % sides
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a generator for another thread or task, with a seed drawn from this one.
    pub fn another(&mut self) -> Self {
        Self(self.roll(u64::MAX))
    }
}

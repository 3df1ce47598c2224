//! Numbers that follow from a seed.

/// Steele, Lea and Flood's SplitMix64.
///
/// # Examples
///
/// ```
/// use requeue_test_tools::Dice;
///
/// let (mut dice, mut same) = (Dice::new(7), Dice::new(7));
/// let roll = dice.roll(6);
/// assert!(roll < 6);
/// assert_eq!(roll, same.roll(6));
/// ```
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that roll as this seed says.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number less than `sides`.
    ///
    /// # Panics
    ///
    /// If there are no sides.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    /// Returns dice for another thread or task, which rolls them in its own time.
    pub fn another(&mut self) -> Self {
        Self(self.roll(u64::MAX))
    }
}

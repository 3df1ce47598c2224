//! The system's randomness, by way of std's own hasher.

use core::hash::BuildHasher;
use std::hash;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};

/// The default hasher of [`Growable`](crate::Growable): foldhash, seeded from the system's
/// randomness, once per process and again per queue.
///
/// # Examples
///
/// ```
/// use core::hash::BuildHasher;
/// use requeue_core::RandomState;
///
/// let (one, other) = (RandomState::default(), RandomState::default());
/// assert_eq!(one.hash_one("node-7"), one.clone().hash_one("node-7"));
/// assert_ne!(one.hash_one("node-7"), other.hash_one("node-7"));
/// ```
#[derive(Clone, Debug)]
pub struct RandomState(SeedableRandomState);

impl Default for RandomState {
    fn default() -> Self {
        Self(SeedableRandomState::with_seed(random(), shared()))
    }
}

impl BuildHasher for RandomState {
    type Hasher = FoldHasher<'static>;

    #[inline(always)]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}

fn shared() -> &'static SharedSeed {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    SHARED.get_or_init(|| SharedSeed::from_u64(random()))
}

/// std seeds its hasher from the system once per thread, and counts up from there: SipHash makes
/// numbers of that which cannot be guessed.
fn random() -> u64 {
    hash::RandomState::new().hash_one(0_u8)
}

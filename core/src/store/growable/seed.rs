//! The seed of the default hasher: the system's randomness, by way of std's own hasher. Without the
//! feature `std` there is none but that of addresses.

#[cfg(feature = "std")]
use core::hash::BuildHasher;
#[cfg(feature = "std")]
use std::hash;
#[cfg(feature = "std")]
use std::sync::OnceLock;

#[cfg(feature = "std")]
use foldhash::SharedSeed;
/// The default hasher of [`Growable`](crate::storage::Growable): foldhash, seeded from addresses of
/// the process. With the feature `std` it is seeded from the system's randomness.
#[cfg(not(feature = "std"))]
pub use foldhash::fast::RandomState;
#[cfg(feature = "std")]
use foldhash::fast::{FoldHasher, SeedableRandomState};

/// The default hasher of [`Growable`](crate::storage::Growable): foldhash, seeded from the system's
/// randomness, once per process and again per queue.
///
/// # Examples
///
/// ```
/// use core::hash::BuildHasher;
/// use requeue_core::storage::RandomState;
///
/// let (one, other) = (RandomState::default(), RandomState::default());
/// assert_eq!(one.hash_one("node-7"), one.clone().hash_one("node-7"));
/// assert_ne!(one.hash_one("node-7"), other.hash_one("node-7"));
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub struct RandomState(SeedableRandomState);

#[cfg(feature = "std")]
impl Default for RandomState {
    fn default() -> Self {
        Self(SeedableRandomState::with_seed(random(), shared()))
    }
}

#[cfg(feature = "std")]
impl BuildHasher for RandomState {
    type Hasher = FoldHasher<'static>;

    #[inline(always)]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}

#[cfg(feature = "std")]
fn shared() -> &'static SharedSeed {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    SHARED.get_or_init(|| SharedSeed::from_u64(random()))
}

/// std seeds its hasher from the system once per thread, and counts up from there: SipHash makes
/// numbers of that which cannot be guessed.
#[cfg(feature = "std")]
fn random() -> u64 {
    hash::RandomState::new().hash_one(0_u8)
}

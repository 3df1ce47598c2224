//! The seed of the default hasher: the system's randomness, taken from std's own hasher. Without
//! the feature `std` it is made of addresses.

use core::hash::{BuildHasher, Hasher};
#[cfg(feature = "std")]
use std::hash;
#[cfg(feature = "std")]
use std::sync::OnceLock;

#[cfg(feature = "std")]
use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
#[cfg(not(feature = "std"))]
use foldhash::fast::RandomState as Seeded;
#[cfg(feature = "std")]
use foldhash::fast::SeedableRandomState as Seeded;

/// The default hasher of [`Growable`](crate::storage::Growable): foldhash. With the feature `std`
/// it is seeded from the system's randomness, once per process and again per queue. Without, it is
/// seeded from addresses of the process.
///
/// # Examples
///
/// ```
/// use core::hash::BuildHasher;
/// use requeue::binding::RandomState;
///
/// let (one, other) = (RandomState::default(), RandomState::default());
/// assert_eq!(one.hash_one("node-7"), one.clone().hash_one("node-7"));
/// assert_ne!(one.hash_one("node-7"), other.hash_one("node-7"));
/// ```
#[derive(Clone, Debug)]
pub struct RandomState(Seeded);

impl Default for RandomState {
    #[cfg(feature = "std")]
    fn default() -> Self {
        Self(Seeded::with_seed(random(), shared()))
    }

    #[cfg(not(feature = "std"))]
    fn default() -> Self {
        Self(Seeded::default())
    }
}

impl BuildHasher for RandomState {
    type Hasher = RandomHasher;

    #[inline(always)]
    fn build_hasher(&self) -> RandomHasher {
        RandomHasher(self.0.build_hasher())
    }
}

/// foldhash's hasher under our own name, so that a new version of foldhash does not change our
/// interface.
#[doc(hidden)]
#[derive(Clone)]
pub struct RandomHasher(FoldHasher<'static>);

macro_rules! forward {
    ($($write:ident: $number:ty),*) => {
        impl Hasher for RandomHasher {
            #[inline(always)]
            fn write(&mut self, bytes: &[u8]) {
                self.0.write(bytes);
            }

            $(
                #[inline(always)]
                fn $write(&mut self, number: $number) {
                    self.0.$write(number);
                }
            )*

            #[inline(always)]
            fn finish(&self) -> u64 {
                self.0.finish()
            }
        }
    };
}

forward!(write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_usize: usize);

#[cfg(feature = "std")]
fn shared() -> &'static SharedSeed {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    SHARED.get_or_init(|| SharedSeed::from_u64(random()))
}

/// std seeds its hasher from the system once per thread, and then counts up. SipHash turns that
/// into numbers that cannot be guessed.
#[cfg(feature = "std")]
fn random() -> u64 {
    hash::RandomState::new().hash_one(0_u8)
}

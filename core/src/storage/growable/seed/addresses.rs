//! Without an operating system there is no randomness but that of addresses.

/// The default hasher of [`Growable`](crate::Growable): foldhash, seeded from addresses of the
/// process. With the feature `std` it is seeded from the system's randomness.
pub use foldhash::fast::RandomState;

//! How the default hasher is seeded: the two files offer the same.

#[cfg(not(feature = "std"))]
mod addresses;
#[cfg(feature = "std")]
mod system;

#[cfg(not(feature = "std"))]
pub use addresses::RandomState;
#[cfg(feature = "std")]
pub use system::RandomState;

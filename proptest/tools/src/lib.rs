//! What the tests of several packages share: books of keys, futures polled by hand, dice, a
//! limit on time, and which compiler runs.
//!
//! It depends on nothing, so that every package may test with it.

#![allow(clippy::panic, reason = "a test that panics has failed")]

mod books;
mod by_hand;
mod compiler;
mod dice;
mod patience;

pub use books::{AtWork, Books};
pub use by_hand::{ByHand, by_hand};
pub use compiler::is_pinned_compiler;
pub use dice::Dice;
pub use patience::in_time;

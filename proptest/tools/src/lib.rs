//! What the tests of several packages share: a ledger of keys, futures polled by hand, a limit on
//! time, and which compiler runs.
//!
//! It depends on nothing, so that every package may test with it.

#![allow(clippy::panic, reason = "a test that panics has failed")]

mod by_hand;
mod compiler;
mod ledger;
mod patience;

pub use by_hand::{ByHand, by_hand};
pub use compiler::is_pinned_compiler;
pub use ledger::{Active, Ledger};
pub use patience::in_time;

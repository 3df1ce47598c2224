//! What operations return.
//!
//! An operation of the state machine returns an [`Effect`]: its outcome, and the wake to send once
//! the lock is released.

mod add;
mod drain;
mod key;
mod run;
mod wake;

pub use add::{Added, AddedMany, Rejected, Scheduled};
pub use drain::{Drain, Drained};
pub use key::{Entry, KeyState, Leftover};
pub use run::{Finished, GetError, Next, NotActive, Step};
pub use wake::{Effect, Wake};

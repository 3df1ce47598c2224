//! What operations return.

mod add;
mod drain;
mod key;
mod run;
mod wake;

pub use add::{Added, AddedMany, Rejected, Scheduled};
pub use drain::{Drain, Drained};
pub use key::{Entry, KeyState, Leftover};
pub use run::{Finished, GetError, Next, NotActive};
pub use wake::Wake;

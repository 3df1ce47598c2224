//! For authors of a runtime binding: the parts of a queue, and how a call waits for it.
//!
//! Users of a runtime's own `WorkQueue` do not need this module. A binding consists of
//!
//! 1. A [`Lock`] around a [`State`], a [`Clock`], and a type that names both: its [`Host`].
//!    Together they make a [`Shared`], with all methods that do not wait.
//! 2. For tasks, a [`Timer`] on the clock. With it the queue also has all methods that wait:
//!    [`get`](Shared::get), [`next`](Shared::next), [`drain`](Shared::drain),
//!    [`add_wait`](Shared::add_wait) and the rest. [`Shared::take`] makes guards that own a counted
//!    pointer. For threads, a loop around [`Wait::look`] that parks.
//!
//! `examples/smol.rs` of `requeue-proptest` is a binding of smol, which passes the conformance
//! suite.
//!
//! A bare loop only needs the [`Queue`] itself, and a [`Session`] for each access. Operations that
//! may have to wait take a [`Getter`]. [`Session::poll_get`] has an example.

pub use crate::backoff::until::backoff_until;
#[cfg(feature = "alloc")]
pub use crate::batch::Batch;
#[cfg(feature = "alloc")]
pub use crate::builder::{Bare, ClientGo, Runtime};
#[doc(hidden)]
pub use crate::delay::Nodes;
pub use crate::guard::Guard;
pub use crate::id::Index;
pub use crate::levels::Ages;
#[cfg(feature = "alloc")]
pub use crate::metrics::reporter::Reporter;
pub use crate::metrics::times::Timestamps;
pub use crate::outcome::{Drain, Drained, Next, Wake};
#[doc(hidden)]
pub use crate::policy::KeepSuspensions;
pub use crate::queue::{Adding, Flush, Governs, Queue, Session, Slackens, Suspends, Sweep};
pub use crate::shared::{Access, AsShared, Host, Lock, Machine, Shared, State};
pub use crate::sleepers::Getter;
#[cfg(feature = "alloc")]
pub use crate::store::growable::RandomState;
pub use crate::time::Clock;
pub use crate::timer::{Timer, sleep_until, timeout_at};
pub use crate::wait::{Look, Wait, try_in_turn};
#[cfg(feature = "alloc")]
pub use crate::wait_list::GrowableWaitList;
pub use crate::wait_list::{FixedWaitList, WaitList};
pub use crate::work::{Ticket, Work};

#[cfg(feature = "std")]
pub use crate::workers::{BegunRun, Changes, Runs, Slots, Worker};

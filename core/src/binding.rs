//! For authors of a runtime binding: the parts of a queue, and how a call waits for it.
//!
//! Users of a runtime's own `WorkQueue` do not need this module. A binding consists of
//!
//! 1. a [`Lock`] around a [`State`], a [`Clock`], and a type that names both: its [`Host`].
//!    Together
//!    they make a [`Shared`], which has the whole producer side and everything else that does not
//!    wait;
//! 2. for tasks, a [`Timer`] on the clock, with which the queue also has everything that waits:
//!    [`get`](Shared::get), [`next`](Shared::next), [`drain`](Shared::drain),
//!    [`add_wait`](Shared::add_wait) and the rest. Guards that hold a counted pointer are made
//!    with [`Shared::take`]. For threads, a loop around [`Wait::look`] that parks.
//!
//! `examples/smol.rs` of `requeue-proptest` is a binding of smol, which passes the conformance suite.
//!
//! A bare loop needs only the [`Queue`] itself, and a [`Session`] for each access. Operations that
//! may have to wait take a [`Getter`]. [`Session::poll_get`] has an example.

pub use crate::backoff::until::backoff_until;
#[cfg(feature = "alloc")]
pub use crate::batch::Batch;
#[cfg(feature = "alloc")]
pub use crate::builder::{Bare, ClientGo, Runtime};
pub use crate::guard::Guard;
pub use crate::id::Index;
pub use crate::levels::Ages;
#[cfg(feature = "alloc")]
pub use crate::metrics::reporter::Reporter;
pub use crate::metrics::times::Timestamps;
pub use crate::outcome::{Drain, Drained, Next, Wake};
#[doc(hidden)]
pub use crate::policy::KeepSuspensions;
pub use crate::queue::{Adding, Flush, Queue, Session, Sweep};
pub use crate::shared::{Access, AsShared, Host, Lock, Machine, Shared, State};
pub use crate::sleepers::Getter;
pub use crate::storage::{Governs, Suspends};
#[cfg(feature = "alloc")]
pub use crate::store::growable::RandomState;
pub use crate::time::Clock;
pub use crate::timer::{Timer, sleep_until, timeout_at};
#[doc(hidden)]
pub use crate::wait::waited;
pub use crate::wait::{Look, Wait, try_in_turn};
#[cfg(feature = "alloc")]
pub use crate::wait_list::GrowableWaitList;
pub use crate::wait_list::{FixedWaitList, WaitList};
pub use crate::work::{Ticket, Work};

#[cfg(feature = "std")]
pub use crate::workers::{BegunRun, Changes, Runs, Slots, Worker};

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

use crate::policy::SetPolicy;
use crate::priority::Priorities;
use crate::storage::Storage;

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

/// A [`Storage`] with room for a [`Policy`](crate::Policy) and for debounced adds: the bound of a
/// function that takes any such queue. `Growable` has it, and
/// [`Fixed`](crate::storage::Fixed) with
/// [`WithPolicy`](crate::priority::WithPolicy).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::binding::Governs;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Priorities, WithPolicy};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Policy, Queue};
///
/// fn pace<P: Priorities, S: Governs<P>>(queue: &mut Queue<u16, P, NoLimit, S>) {
///     let policy = Policy::new().cool_down(Duration::from_secs(1));
///     queue.at(Instant::EPOCH).set_policy(policy);
/// }
///
/// let mut queue: Queue<u16, WithPolicy, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// pace(&mut queue);
/// ```
#[diagnostic::on_unimplemented(
    message = "this queue has no room for a policy",
    label = "this queue can neither hold its keys, nor pace their runs, nor debounce adds",
    note = "put `WithPolicy` into the queue's type, as in `Queue<u16, WithPolicy, L, Fixed<8>>`"
)]
pub trait Governs<P: Priorities>: Storage<Policy<P>: SetPolicy> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities, S: Storage<Policy<P>: SetPolicy>> Governs<P> for S {}

/// A [`Storage`] with room for the suspensions of keys: the bound of a function that takes any such
/// queue. `Growable` has it, and
/// [`Fixed`](crate::storage::Fixed) with
/// [`WithSuspension`](crate::priority::WithSuspension).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::binding::Suspends;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Priorities, WithSuspension};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// fn written<P: Priorities, S: Suspends<P>>(queue: &mut Queue<u16, P, NoLimit, S>, key: u16) {
///     queue.at(Instant::EPOCH).suspend(&key, Duration::from_secs(5));
/// }
///
/// let mut queue: Queue<u16, WithSuspension, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let _ = queue.at(Instant::EPOCH).add(17);
/// written(&mut queue, 17);
/// assert!(queue.at(Instant::EPOCH).try_get().is_none());
/// ```
#[diagnostic::on_unimplemented(
    message = "this queue cannot suspend keys",
    label = "this queue has no room for the suspensions of its keys",
    note = "put `WithSuspension` into the queue's type, as in \
            `Queue<u16, WithSuspension, L, Fixed<8>>`"
)]
pub trait Suspends<P: Priorities>: Governs<P> + Storage<Policy<P>: KeepSuspensions> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities, S: Storage<Policy<P>: KeepSuspensions>> Suspends<P> for S {}

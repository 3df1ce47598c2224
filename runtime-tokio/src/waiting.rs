//! States of the queue, on Tokio: looking, waiting for a state, control, and shutting down; and the
//! stream of guards, which is all the code that this file owns.

use std::fmt;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use requeue_core::binding::{AsShared, Wait};
use requeue_core::limiter::{DefaultController, RateLimiter};
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use tokio::time::Sleep;

use crate::clock::QueueClock;
use crate::queue::{Guard, Shared, TaskHost, WorkQueue, face, face_async};

/// Looking, and waiting for a state.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(looking);

    /// Returns the clock. O(1).
    pub fn clock(&self) -> &QueueClock {
        self.shared.clock()
    }
    face_async!(looking_async, K, plain);
}

/// Control.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(control);
}

/// Limits and groups.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face!(limits);
}

/// Limits of queues that grow.
impl<K: Eq + Hash, L: RateLimiter, B: std::hash::BuildHasher, P: requeue_core::priority::Priorities>
    WorkQueue<K, P, L, Growable<B>>
{
    requeue_core::queue_face! {
        growing: "requeue::tokio", "# let queue = requeue::tokio::example();"
    }
}

/// Shutting down.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    face_async!(closing_async, plain);
    face!(closing);
}

/// The keys of a queue as a [`Stream`] of [`Guard`]s; returned by [`WorkQueue::guards`].
///
/// It ends once the queue is shut down and no key is ready. In a drain it also waits for keys that
/// were added during their runs, which other tasks may end. Several streams share the keys.
///
/// # Cancel safety
///
/// A stream that was polled and has no key yet waits as a [`get`](WorkQueue::get) does, until it is
/// polled again or dropped. One that is kept without being polled holds back the wake that it
/// received. Dropping the stream, or a future that waits for its next key, loses no key.
///
/// # Examples
///
/// ```
/// use std::future::poll_fn;
/// use std::pin::Pin;
///
/// use futures_core::Stream;
/// use requeue::tokio::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// let _ = queue.add_many(["a", "b"]);
/// queue.shut_down();
///
/// let mut guards = queue.guards();
/// let mut seen = Vec::new();
/// // `futures::StreamExt` has many shorter ways to write this.
/// while let Some(guard) = poll_fn(|cx| Pin::new(&mut guards).poll_next(cx)).await {
///     seen.push(*guard);
///     guard.success();
/// }
/// assert_eq!(seen, ["a", "b"]);
/// # }
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct Guards<K, P = Plain, L = DefaultController, S = Growable>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    call: Call<K, P, L, S>,
    alarm: Pin<Box<Option<Sleep>>>,
}

/// A call that outlives the borrow of its queue.
type Call<K, P, L, S> = Wait<TaskHost<K, P, L, S>, Arc<Shared<K, P, L, S>>>;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> Guards<K, P, L, S> {
    pub(crate) fn new(queue: &WorkQueue<K, P, L, S>) -> Self {
        Self {
            call: Wait::for_key(Arc::clone(&queue.shared)),
            alarm: Box::pin(None),
        }
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage> Stream
    for Guards<K, P, L, S>
{
    type Item = Guard<K, P, L, S>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let alarm = this.alarm.as_mut();
        let work = ready!(this.call.poll(context, alarm, None, |session, getter| {
            session.poll_get(getter)
        }));
        let queue = Arc::clone(this.call.queue());
        Poll::Ready(work.ok().map(|work| Guard::new(work, queue)))
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> fmt::Debug for Guards<K, P, L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guards").field(self.call.queue()).finish()
    }
}

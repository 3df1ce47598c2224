//! The keys of a queue, one after the other.

use std::fmt;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use requeue_core::{DefaultController, Growable, Metrics, NoMetrics, Queue, RateLimiter, Storage};
use tokio::time::Sleep;

use crate::queue::{Guard, WorkQueue};
use crate::waiting::Waiting;

/// The keys of a queue as a [`Stream`] of [`Guard`]s; made by [`WorkQueue::guards`].
///
/// It ends once the queue is shut down and no key is ready. Several streams share the keys.
///
/// # Cancel safety
///
/// A stream that was polled and has no key yet waits in line, as a [`get`](WorkQueue::get) does,
/// until it is polled again or dropped: one that is put aside instead keeps the wake that was sent
/// to it. Dropping the stream, or a future that waits for its next key, loses none.
///
/// # Examples
///
/// ```
/// use std::future::poll_fn;
/// use std::pin::Pin;
/// use futures_core::Stream;
/// use requeue_tokio::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// queue.add_many(["a", "b"], |_| {});
/// queue.shut_down();
///
/// let mut guards = queue.guards();
/// let mut seen = Vec::new();
/// // `futures::StreamExt` has many shorter ways to write this.
/// while let Some(guard) = poll_fn(|cx| Pin::new(&mut guards).poll_next(cx)).await {
///     seen.push(*guard);
///     guard.forget().unwrap();
/// }
/// assert_eq!(seen, ["a", "b"]);
/// # }
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct Guards<K, L = DefaultController, M = NoMetrics, S = Growable>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    queue: WorkQueue<K, L, M, S>,
    waiting: Waiting,
    timer: Pin<Box<Option<Sleep>>>,
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> Guards<K, L, M, S> {
    pub(crate) fn new(queue: WorkQueue<K, L, M, S>) -> Self {
        Self {
            queue,
            waiting: Waiting::default(),
            timer: Box::pin(None),
        }
    }
}

impl<K, L, M, S> Stream for Guards<K, L, M, S>
where
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    type Item = Guard<K, L, M, S>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let (queue, timer) = (&this.queue.shared, this.timer.as_mut());
        let work = ready!(this.waiting.poll(queue, context, timer, None, Queue::get));
        Poll::Ready(work.ok().map(|work| Guard::new(work, Arc::clone(queue))))
    }
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> Drop for Guards<K, L, M, S> {
    fn drop(&mut self) {
        self.waiting.end(&self.queue.shared);
    }
}

impl<K: Eq + Hash, L: RateLimiter, M: Metrics, S: Storage> fmt::Debug for Guards<K, L, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guards").field(&self.queue).finish()
    }
}

//! Ending the queue, and waiting for the drain.

use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use requeue_core::{Clock, Drained, Effect, Instant, Metrics, RateLimiter, Storage, Wake, Waker};

use crate::queue::WorkQueue;
use crate::sync::{Line, Place};
use crate::waiting::State;

impl<K, L, M, S> WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Takes no more keys and waits until nothing is ready, dirty or in work, however many tasks
    /// wait for that. Answers how it ended: a [`shut_down`](requeue_core::WorkQueue::shut_down)
    /// meanwhile interrupts it.
    ///
    /// Somebody has to do the work: without workers this waits for ever. A worker that calls it
    /// while it holds a guard waits for itself. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) hands them back.
    ///
    /// # Cancel safety
    ///
    /// The queue takes no more keys from the first poll on. Dropping the future ends the wait and
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let worker = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move {
    ///         while let Some(guard) = queue.get().await {
    ///             guard.forget().unwrap();
    ///         }
    ///     }
    /// });
    /// assert_eq!(queue.shut_down_with_drain().await, Drained::Complete);
    /// assert!(!queue.contains(&"node-8"));
    /// # worker.await.unwrap();
    /// # }
    /// ```
    pub async fn shut_down_with_drain(&self) -> Drained {
        self.drain(Instant::NEVER).await
    }

    /// As [`shut_down_with_drain`](Self::shut_down_with_drain), but waits no longer than `timeout`:
    /// [`Drained::Pending`] says that it was not enough. The queue takes no more keys all the same.
    ///
    /// # Cancel safety
    ///
    /// As [`shut_down_with_drain`](Self::shut_down_with_drain).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_tokio::{Drained, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let guard = queue.get().await.unwrap();
    /// let ten_seconds = Duration::from_secs(10);
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Pending);
    /// guard.done().unwrap();
    /// assert_eq!(queue.drain_timeout(ten_seconds).await, Drained::Complete);
    /// # }
    /// ```
    pub async fn drain_timeout(&self, timeout: Duration) -> Drained {
        self.drain(self.clock().now() + timeout).await
    }

    /// Waits until the queue has been shut down, by whomever, and nothing is ready, dirty or in
    /// work. Any number of tasks may wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add("node-7").unwrap();
    /// let flushed = tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move { queue.drained().await }
    /// });
    /// queue.get().await.unwrap().forget().unwrap();
    /// queue.shut_down();
    /// flushed.await.unwrap();
    /// # }
    /// ```
    pub async fn drained(&self) {
        let is_drained = |state: &mut State<K, S, L, M>| Effect {
            value: state.is_drained().then_some(()),
            wake: Wake::None,
        };
        self.wait_for_drain(is_drained, Instant::NEVER).await;
    }

    async fn drain(&self, deadline: Instant) -> Drained {
        let drain = self.begin_drain();
        let ended = |state: &mut State<K, S, L, M>| {
            let drained = state.drained(&drain);
            Effect {
                value: (drained != Drained::Pending).then_some(drained),
                wake: Wake::None,
            }
        };
        let ended = self.wait_for_drain(ended, deadline).await;
        ended.unwrap_or(Drained::Pending)
    }

    /// Waits until `ended` has an answer, and no longer than until `deadline`.
    async fn wait_for_drain<T>(
        &self,
        ended: impl Fn(&mut State<K, S, L, M>) -> Effect<Option<T>>,
        deadline: Instant,
    ) -> Option<T> {
        let mut drainer = Drainer {
            line: &self.waker().drains,
            place: Place::default(),
        };
        let mut late = pin!(self.clock().sleep_until(deadline));
        poll_fn(|context| {
            let waker = context.waker().clone();
            let mut state = self.lock().lock();
            let Effect { value, wake } = ended(&mut state);
            // Under the queue's lock, as in `Waiting::poll`. What stood there is dropped last.
            let _stale = drainer.line.stand(&mut drainer.place, waker);
            drop(state);
            self.waker().obey(wake);
            if value.is_some() {
                return Poll::Ready(value);
            }
            late.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

/// A call that waits for the drain. Nobody has to take its place.
struct Drainer<'q> {
    line: &'q Line,
    place: Place,
}

impl Drop for Drainer<'_> {
    fn drop(&mut self) {
        drop(self.line.step_out(&self.place));
    }
}

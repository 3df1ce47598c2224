//! For tasks: waiting for room.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Added, Rejected, Scheduled};
use crate::queue::{Adding, Queue};
use crate::storage::Storage;
use crate::timer::Timer;
use crate::wait::{Wait, WaitList};

use super::{State, WorkQueue};

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Timer,
{
    /// As [`add`](Self::add), but waits for room if the key is new and there is none. O(1) for each
    /// look. A queue that grows always has room.
    ///
    /// Each place that becomes free wakes one call, in the order in which they began to wait. A key
    /// that is added otherwise meanwhile takes the place before it; then the call waits on, and
    /// stays the first. A key that the queue holds needs no room. If another add brings the key in
    /// while the call waits, the call sleeps on until a place is free. A worker that calls this
    /// while it holds the only key that could make room waits for ever.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] returns the key once the queue is shut down. [`Rejected::Full`] returns
    /// it if there is neither room nor a place to wait for it, which a list of waiting calls that
    /// grows always has.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready adds nothing, and drops the key. Its turn passes on.
    /// [`add_wait_timeout`](Self::add_wait_timeout) hands the key back.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// // It has room for four keys.
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let mut added = pin!(queue.add_wait("node-5"));
    /// assert!(poll(added.as_mut()).is_pending());
    /// queue.try_get().unwrap().success().unwrap();
    /// assert_eq!(poll(added), Poll::Ready(Ok(Added::Ready)));
    /// ```
    pub async fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with(key, AddOptions::new()).await;
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_wait`](Self::add_wait), but waits no longer than `timeout`, counted from the first
    /// poll.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and [`Rejected::Full`] returns the key if there was no room
    /// in time.
    ///
    /// # Cancel safety
    ///
    /// As [`add_wait`](Self::add_wait).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let added = pin!(queue.add_wait_timeout("node-5", Duration::ZERO));
    /// assert_eq!(poll(added), Poll::Ready(Err(Rejected::Full("node-5"))));
    /// ```
    pub async fn add_wait_timeout(&self, key: K, timeout: Duration) -> Result<Added, Rejected<K>> {
        let scheduled = self
            .add_wait_with_timeout(key, AddOptions::new(), timeout)
            .await;
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](Self::add_with), but waits for room as [`add_wait`](Self::add_wait) does. A
    /// delay begins once there is room.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and if the queue has no such priority level.
    ///
    /// # Cancel safety
    ///
    /// As [`add_wait`](Self::add_wait).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = pin!(queue.add_wait_with("lease-3", later));
    /// assert!(poll(added).is_ready());
    /// assert_eq!(queue.delayed_len(), 1);
    /// ```
    pub async fn add_wait_with(
        &self,
        key: K,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<K>> {
        self.add_until(key, options, None).await
    }

    /// As [`add_wait_with`](Self::add_wait_with), but waits no longer than `timeout`, counted from
    /// the first poll.
    ///
    /// # Errors
    ///
    /// As [`add_wait_timeout`](Self::add_wait_timeout), and if the queue has no such priority
    /// level.
    ///
    /// # Cancel safety
    ///
    /// As [`add_wait`](Self::add_wait).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example_tasks.txt")]
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = pin!(queue.add_wait_with_timeout("lease-3", later, Duration::ZERO));
    /// assert_eq!(poll(added), Poll::Ready(Err(Rejected::Full("lease-3"))));
    /// ```
    pub async fn add_wait_with_timeout(
        &self,
        key: K,
        options: AddOptions,
        timeout: Duration,
    ) -> Result<Scheduled, Rejected<K>> {
        let deadline = self.clock.now() + timeout;
        self.add_until(key, options, Some(deadline)).await
    }

    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    fn add_until(
        &self,
        key: K,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Scheduled, Rejected<K>>> {
        async move {
            let mut adding = Adding::new(key, options);
            let mut call = Wait::for_room(self);
            let deadline = adding.deadline(deadline);
            let look = |queue: &mut Queue<_, _, _, _>, now, getter: &mut _| {
                queue.poll_add(&mut adding, now, getter)
            };
            // An error says that there was no room in time, or no place to wait for it, and so does
            // what has become of the key.
            let _ = call.wait(deadline, look).await;
            adding.into_result()
        }
    }
}

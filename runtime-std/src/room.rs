//! Waiting for room.

use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Adding, Wait};
use requeue_core::{AddOptions, Added, Instant, RateLimiter, Rejected, Scheduled, Storage};

use crate::queue::WorkQueue;

impl<K: Eq + Hash, L: RateLimiter, S: Storage> WorkQueue<K, L, S> {
    /// As [`add`](requeue_core::binding::Shared::add), but waits for room if the key is new and
    /// there is none. O(1) for each look. A queue that grows always has room.
    ///
    /// Each place that becomes free wakes one call, in the order in which they began to wait. A key
    /// that is added otherwise meanwhile takes the place before it; then the call waits on, and
    /// stays the first. A key that the queue holds needs no room. A worker that calls this while it
    /// holds the only key that could make room waits for ever.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] returns the key once the queue is shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::core::{Fixed, NoLimit, Reporter};
    /// use requeue_std::{Added, Queue, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, NoLimit, Fixed<2>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         for _ in 0..100 {
    ///             bounded.get().unwrap().success().unwrap();
    ///         }
    ///     });
    ///     // The producer is as fast as the worker.
    ///     for sensor in 0..100 {
    ///         assert_eq!(bounded.add_wait(sensor), Ok(Added::Ready));
    ///     }
    /// });
    /// ```
    pub fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with(key, AddOptions::new());
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_wait`](Self::add_wait), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and [`Rejected::Full`] returns the key if there was no room
    /// in time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::{Fixed, NoLimit, Reporter};
    /// use requeue_std::{Queue, Rejected, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, NoLimit, Fixed<1>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// let _ = bounded.add(17);
    /// let added = bounded.add_wait_timeout(18, Duration::from_millis(1));
    /// assert_eq!(added, Err(Rejected::Full(18)));
    /// ```
    pub fn add_wait_timeout(&self, key: K, timeout: Duration) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with_timeout(key, AddOptions::new(), timeout);
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](requeue_core::binding::Shared::add_with), but waits for room as
    /// [`add_wait`](Self::add_wait) does. A delay begins once there is room.
    ///
    /// # Errors
    ///
    /// As [`add_wait`](Self::add_wait), and if the queue has no such priority level.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::{AddOptions, WorkQueue};
    ///
    /// let queue = WorkQueue::builder().levels::<2>().build();
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// queue.add_wait_with("node-7", urgent).unwrap();
    /// assert_eq!(queue.state("node-7").unwrap().priority, 1);
    /// ```
    pub fn add_wait_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>> {
        self.add_until(key, options, None)
    }

    /// As [`add_wait_with`](Self::add_wait_with), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`add_wait_timeout`](Self::add_wait_timeout), and if the queue has no such priority
    /// level.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue_std::core::{Fixed, NoLimit, Reporter};
    /// use requeue_std::{AddOptions, Queue, Rejected, WorkQueue};
    ///
    /// let bounded: WorkQueue<u16, NoLimit, Fixed<1>> =
    ///     Queue::with_metrics(NoLimit, Reporter::NONE).into();
    /// let _ = bounded.add(17);
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = bounded.add_wait_with_timeout(18, later, Duration::from_millis(1));
    /// assert_eq!(added, Err(Rejected::Full(18)));
    /// ```
    pub fn add_wait_with_timeout(
        &self,
        key: K,
        options: AddOptions,
        timeout: Duration,
    ) -> Result<Scheduled, Rejected<K>> {
        let deadline = self.clock().now() + timeout;
        self.add_until(key, options, Some(deadline))
    }

    fn add_until(
        &self,
        key: K,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> Result<Scheduled, Rejected<K>> {
        let mut adding = Adding::new(key, options);
        let call = Wait::for_room(&*self.shared);
        let deadline = adding.deadline(deadline);
        // An error says that there was no room in time, and so does what becomes of the key.
        let _ = self.wait(call, deadline, |session, getter| {
            session.poll_add(&mut adding, getter)
        });
        adding.into_result()
    }
}

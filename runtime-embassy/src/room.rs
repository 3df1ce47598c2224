//! Waiting for room.

use core::hash::Hash;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::{Adding, Timer, Wait};
use requeue_core::{AddOptions, Added, RateLimiter, Rejected, Scheduled};

use crate::parts::Parts;
use crate::queue::WorkQueue;

impl<R, K, const N: usize, L, const WAITERS: usize, P> WorkQueue<R, K, N, L, WAITERS, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    P: Parts<Clock: Timer>,
{
    /// As [`add`](requeue_core::binding::WorkQueue::add), but waits for room if the key is new and
    /// there is none. O(1) for each look.
    ///
    /// Each place that becomes free wakes one call, in the order in which they began to wait. A key
    /// that is added otherwise meanwhile takes the place before it; then the call waits on, and
    /// stays the first. A key that the queue holds needs no room. A worker that calls this while it
    /// holds the only key that could make room waits for ever.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] returns the key once the queue is shut down, and [`Rejected::Full`] if
    /// there is neither room nor a place to wait for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready adds nothing, and drops the key. Its turn passes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Added, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 1> = WorkQueue::new(default_item_based());
    /// queue.add(17).unwrap();
    /// let work = async {
    ///     queue.get().await.unwrap().success().unwrap();
    /// };
    /// let (added, ()) = block_on(join(queue.add_wait(18), work));
    /// assert_eq!(added, Ok(Added::Ready));
    /// assert!(queue.contains(&18));
    /// ```
    pub async fn add_wait(&self, key: K) -> Result<Added, Rejected<K>> {
        let scheduled = self.add_wait_with(key, AddOptions::new()).await;
        scheduled.map(|scheduled| scheduled.added)
    }

    /// As [`add_with`](requeue_core::binding::WorkQueue::add_with), but waits for room as
    /// [`add_wait`](Self::add_wait) does. A delay begins once there is room.
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
    /// use core::time::Duration;
    /// use embassy_futures::block_on;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{AddOptions, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// block_on(queue.add_wait_with(17, later)).unwrap();
    /// assert_eq!(queue.delayed_len(), 1);
    /// ```
    pub async fn add_wait_with(
        &self,
        key: K,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<K>> {
        let mut adding = Adding::new(key, options);
        let mut call = Wait::for_room(&self.shared);
        let deadline = adding.deadline(None);
        let ended = call
            .wait(deadline, |queue, now, getter| {
                queue.poll_add(&mut adding, now, getter)
            })
            .await;
        // Without a place to wait, what has become of the key says that there was no room.
        let _ = Self::logged(ended);
        adding.into_result()
    }
}

//! Everything that waits, as futures: for tasks, whose clock is a [`Timer`].

use core::borrow::Borrow;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use super::Wait;
use crate::Instant;
use crate::action::Action;
use crate::guard::Guard;
use crate::options::AddOptions;
use crate::outcome::{Added, Drained, GetError, KeyState, Next, Rejected, Scheduled};
use crate::queue::Adding;
use crate::shared::{Access, Host, Shared};
use crate::timer::{Timer, sleep_until};
use crate::wait_list::WaitList;

/// What comes of a call that waits: see [`WaitList::Waited`].
type Waited<H, T> = <<H as Host>::Waiters as WaitList>::Waited<T>;

/// For tasks: everything that waits.
impl<H: Host<Clock: Timer>> Shared<H> {
    /// Returns the first ready key; waits for one if there is none. Costs as
    /// [`try_get`](Self::try_get) for each look, of which there is one for each wake.
    ///
    /// On a runtime whose tasks have no [turns](Timer::in_turn), a task that finds a key every time
    /// does not let others run. Await something else now and then.
    ///
    /// # Errors
    ///
    /// [`GetError::Closed`] once the queue is shut down and no key is ready;
    /// [`GetError::TooManyWaiters`] if there is neither a key nor a place to wait for one. A call
    /// that has been woken keeps its place until it ends, and does not meet this.
    ///
    /// # Cancel safety
    ///
    /// No key is lost: dropping the future before it is ready takes no key out of the queue. If it
    /// was woken, or watched the clock, another task takes over. Only its place in the order is
    /// lost.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let mut get = pin!(queue.get());
    /// assert!(poll(get.as_mut()).is_pending());
    /// let _ = queue.add("node-7");
    /// let Poll::Ready(Ok(guard)) = poll(get) else {
    ///     panic!("a key is ready");
    /// };
    /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
    /// guard.success();
    ///
    /// queue.shut_down();
    /// let Poll::Ready(Err(GetError::Closed)) = poll(pin!(queue.get())) else {
    ///     panic!("there are no more keys");
    /// };
    /// ```
    #[doc(alias = "Get")]
    pub fn get(&self) -> impl Future<Output = Result<Guard<H, &Self>, GetError>>
    where
        H::Key: Clone,
    {
        Wait::for_key(self).get(None, move |work| Ok(Guard::new(work?, self)))
    }

    /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
    /// [`Duration::MAX`] waits as [`get`](Self::get) does.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`GetError::TimedOut`] if no key was ready in time.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let get = pin!(queue.get_timeout(Duration::ZERO));
    /// assert!(matches!(poll(get), Poll::Ready(Err(GetError::TimedOut))));
    /// ```
    pub async fn get_timeout(&self, timeout: Duration) -> Result<Guard<H, &Self>, GetError>
    where
        H::Key: Clone,
    {
        self.get_deadline(self.now() + timeout).await
    }

    /// As [`get`](Self::get), but waits no longer than until `deadline` of the queue's clock. A key
    /// that is ready is returned even if the deadline has passed.
    ///
    /// # Errors
    ///
    /// As [`get_timeout`](Self::get_timeout).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// // One second for a whole round, however long each key takes.
    /// let deadline = queue.clock().now() + Duration::from_secs(1);
    /// let get = pin!(queue.get_deadline(deadline));
    /// assert!(matches!(poll(get), Poll::Ready(Ok(_))));
    /// ```
    pub fn get_deadline(
        &self,
        deadline: Instant,
    ) -> impl Future<Output = Result<Guard<H, &Self>, GetError>>
    where
        H::Key: Clone,
    {
        Wait::for_key(self).get(Some(deadline), move |work| Ok(Guard::new(work?, self)))
    }

    /// Ends a run and returns the next key, under one lock: what a worker's loop does. Waits as
    /// [`get`](Self::get). Costs as [`finish`](Self::finish) and [`get`](Self::get) together.
    ///
    /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn what
    /// became of the key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// The run ends in any case, even if the future is dropped before its first poll. After that as
    /// [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// queue.shut_down();
    ///
    /// let work = pin!(async {
    ///     let mut seen = Vec::new();
    ///     let mut next = queue.get().await;
    ///     while let Ok(guard) = next {
    ///         seen.push(*guard);
    ///         next = queue.next(guard, Action::Success).await;
    ///     }
    ///     seen
    /// });
    /// assert_eq!(poll(work), Poll::Ready(vec!["node-7", "node-8"]));
    /// ```
    pub fn next<R>(
        &self,
        guard: Guard<H, R>,
        action: Action,
    ) -> impl Future<Output = Result<Guard<H, &Self>, GetError>>
    where
        H::Key: Clone,
        R: Deref<Target = Self>,
    {
        Wait::after(guard, action, self).get(None, move |work| Ok(Guard::new(work?, self)))
    }

    /// Waits until no key is ready or active. Delayed keys are not waited for until they are due.
    /// Works also after shutdown.
    ///
    /// Without workers it waits for ever if a key is ready, and so it does while the queue is
    /// [paused](Self::pause), or if a worker calls it while it holds a guard. A task that waits
    /// costs the queue one look, O(log n), each time it may be idle.
    ///
    /// # Errors
    ///
    /// If the list of waiting calls has a fixed number of places, the result is a
    /// [`Result`](WaitList::Waited): [`TooManyWaiters`](crate::TooManyWaiters) if none is free.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let mut idle = pin!(queue.wait_idle());
    /// assert!(poll(idle.as_mut()).is_pending());
    /// queue.try_get().unwrap().success();
    /// // This queue has room for two calls that wait. Without a bound it returns `()`.
    /// assert_eq!(poll(idle), Poll::Ready(Ok(())));
    /// ```
    pub async fn wait_idle(&self) -> Waited<H, ()> {
        let idle = self.watch(None, |session| session.poll_idle()).await;
        H::Waiters::waited(idle, ())
    }

    /// As [`wait_idle`](Self::wait_idle), but waits no longer than `timeout`, counted from the
    /// first poll. Returns whether the queue was idle by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let idle = pin!(queue.wait_idle_timeout(Duration::ZERO));
    /// assert_eq!(poll(idle), Poll::Ready(Ok(false)));
    /// ```
    pub async fn wait_idle_timeout(&self, timeout: Duration) -> Waited<H, bool> {
        let deadline = self.now() + timeout;
        let idle = self.watch(Some(deadline), |session| session.poll_idle());
        H::Waiters::waited(idle.await.map(|()| true), false)
    }

    /// Waits until no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. O(1) for each look. Otherwise as [`wait_idle`](Self::wait_idle).
    ///
    /// After shutdown delayed keys stay until they are [taken](Self::leftovers).
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let mut settled = pin!(queue.wait_settled());
    /// assert!(poll(settled.as_mut()).is_pending());
    /// queue.cancel("lease-3");
    /// assert_eq!(poll(settled), Poll::Ready(Ok(())));
    /// ```
    pub async fn wait_settled(&self) -> Waited<H, ()> {
        let settled = self.watch(None, |session| session.poll_settled()).await;
        H::Waiters::waited(settled, ())
    }

    /// As [`wait_settled`](Self::wait_settled), but waits no longer than `timeout`, counted from
    /// the first poll. Returns whether the queue was settled by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let settled = pin!(queue.wait_settled_timeout(Duration::ZERO));
    /// assert_eq!(poll(settled), Poll::Ready(Ok(false)));
    /// ```
    pub async fn wait_settled_timeout(&self, timeout: Duration) -> Waited<H, bool> {
        let deadline = self.now() + timeout;
        let settled = self.watch(Some(deadline), |session| session.poll_settled());
        H::Waiters::waited(settled.await.map(|()| true), false)
    }

    /// Waits until the work of a key that is known at the first poll is done or cancelled: its
    /// present run, and one more if the key is ready or dirty. Returns at once if there is none.
    /// O(log n) to begin, and O(1) each time a run of any key has ended meanwhile.
    ///
    /// A delay is not waited for: [`expedite`](Self::expedite) ends it first. If the key begins
    /// another run just as this looks, that is waited for too. A worker that holds the key's guard
    /// waits for itself.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut flush = pin!(queue.flush("node-7"));
    /// assert!(poll(flush.as_mut()).is_pending());
    /// queue.try_get().unwrap().success();
    /// assert_eq!(poll(flush), Poll::Ready(Ok(())));
    /// assert!(queue.contains("node-8"), "the others are not waited for");
    /// ```
    pub async fn flush<B>(&self, key: &B) -> Waited<H, ()>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let mut flush = self.with(|session| session.begin_flush(key));
        let done = self.watch(None, |session| session.poll_flush(key, &mut flush));
        H::Waiters::waited(done.await, ())
    }

    /// As [`flush`](Self::flush), but waits no longer than `timeout`, counted from the first poll.
    /// Returns whether the work was done by then.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let done = pin!(queue.flush_timeout("node-7", Duration::ZERO));
    /// assert_eq!(poll(done), Poll::Ready(Ok(false)));
    /// ```
    pub async fn flush_timeout<B>(&self, key: &B, timeout: Duration) -> Waited<H, bool>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let deadline = self.now() + timeout;
        let mut flush = self.with(|session| session.begin_flush(key));
        let done = self.watch(Some(deadline), |session| {
            session.poll_flush(key, &mut flush)
        });
        H::Waiters::waited(done.await.map(|()| true), false)
    }

    /// [Cancels](Self::cancel) a key, and waits until its present run has ended. Returns what the
    /// key was, as `cancel` does. Costs as [`flush`](Self::flush).
    ///
    /// The run learns of it by [`Guard::is_cancelled`](crate::Guard::is_cancelled). What is added
    /// meanwhile is not waited for. A worker that holds the key's guard waits for itself.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle): the key is cancelled all the same.
    ///
    /// # Cancel safety
    ///
    /// The key is cancelled by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let mut cancels = pin!(queue.cancel_and_wait("node-7"));
    /// assert!(poll(cancels.as_mut()).is_pending());
    /// assert!(guard.is_cancelled());
    /// guard.success();
    /// let Poll::Ready(Ok(Some(was))) = poll(cancels) else {
    ///     panic!("its run is over");
    /// };
    /// assert!(was.active);
    /// ```
    pub async fn cancel_and_wait<B>(&self, key: &B) -> Waited<H, Option<KeyState>>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let (was, mut flush) = self.with(|session| (session.cancel(key), session.begin_flush(key)));
        let ended = self.watch(None, |session| session.poll_flush(key, &mut flush));
        H::Waiters::waited(ended.await.map(|()| was), was)
    }

    /// As [`cancel_and_wait`](Self::cancel_and_wait), but waits no longer than `timeout`, counted
    /// from the first poll. Returns what the key was, and whether its run had ended by then.
    ///
    /// # Errors
    ///
    /// As [`cancel_and_wait`](Self::cancel_and_wait).
    ///
    /// # Cancel safety
    ///
    /// As [`cancel_and_wait`](Self::cancel_and_wait).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let cancels = pin!(queue.cancel_and_wait_timeout("node-7", Duration::ZERO));
    /// let Poll::Ready(Ok((was, has_ended))) = poll(cancels) else {
    ///     panic!("it does not wait");
    /// };
    /// assert!(was.unwrap().active && !has_ended);
    /// # guard.success();
    /// ```
    pub async fn cancel_and_wait_timeout<B>(
        &self,
        key: &B,
        timeout: Duration,
    ) -> Waited<H, (Option<KeyState>, bool)>
    where
        H::Key: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let deadline = self.now() + timeout;
        let (was, mut flush) = self.with(|session| (session.cancel(key), session.begin_flush(key)));
        let ended = self.watch(Some(deadline), |session| {
            session.poll_flush(key, &mut flush)
        });
        H::Waiters::waited(ended.await.map(|()| (was, true)), (was, false))
    }

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
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// // It has room for four keys.
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let mut added = pin!(queue.add_wait("node-5"));
    /// assert!(poll(added.as_mut()).is_pending());
    /// queue.try_get().unwrap().success();
    /// assert_eq!(poll(added), Poll::Ready(Ok(Added::Ready)));
    /// ```
    pub async fn add_wait(&self, key: H::Key) -> Result<Added, Rejected<H::Key>> {
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
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let added = pin!(queue.add_wait_timeout("node-5", Duration::ZERO));
    /// assert_eq!(poll(added), Poll::Ready(Err(Rejected::Full("node-5"))));
    /// ```
    pub async fn add_wait_timeout(
        &self,
        key: H::Key,
        timeout: Duration,
    ) -> Result<Added, Rejected<H::Key>> {
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
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = pin!(queue.add_wait_with("lease-3", later));
    /// assert!(poll(added).is_ready());
    /// assert_eq!(queue.delayed_len(), 1);
    /// ```
    pub async fn add_wait_with(
        &self,
        key: H::Key,
        options: AddOptions,
    ) -> Result<Scheduled, Rejected<H::Key>> {
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
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// queue.add_many(["node-1", "node-2", "node-3", "node-4"], |_| {});
    /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
    /// let added = pin!(queue.add_wait_with_timeout("lease-3", later, Duration::ZERO));
    /// assert_eq!(poll(added), Poll::Ready(Err(Rejected::Full("lease-3"))));
    /// ```
    pub async fn add_wait_with_timeout(
        &self,
        key: H::Key,
        options: AddOptions,
        timeout: Duration,
    ) -> Result<Scheduled, Rejected<H::Key>> {
        let deadline = self.now() + timeout;
        self.add_until(key, options, Some(deadline)).await
    }

    /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of tasks
    /// may wait. Returns how the drain ended: a [`shut_down`](Self::shut_down) meanwhile interrupts
    /// it. O(1) for each look.
    ///
    /// Without workers it waits for ever. So it does for a guard that was leaked, and if a worker
    /// calls it while it holds a guard, as in a hook for keys that are given up: use
    /// [`drain_timeout`](Self::drain_timeout) there. Delayed keys are not waited for:
    /// [`leftovers`](Self::leftovers) returns them.
    ///
    /// # Errors
    ///
    /// If the list of waiting calls has a fixed number of places, the result is a
    /// [`Result`](WaitList::Waited): [`TooManyWaiters`](crate::TooManyWaiters) if none is free. The
    /// queue is shut down all the same.
    ///
    /// # Cancel safety
    ///
    /// The queue is shut down by the first poll. Dropping the future ends the wait and changes
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let mut drain = pin!(queue.drain());
    /// assert!(poll(drain.as_mut()).is_pending());
    /// queue.try_get().unwrap().success();
    /// // This queue has room for two calls that wait. Without a bound it returns a `Drained`.
    /// assert_eq!(poll(drain), Poll::Ready(Ok(Drained::Complete)));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn drain(&self) -> Waited<H, Drained> {
        let drain = self.begin_drain();
        let ended = self.watch(None, |session| session.poll_drain(Some(&drain)));
        H::Waiters::waited(ended.await, Drained::Pending)
    }

    /// As [`drain`](Self::drain), but waits no longer than `timeout`, counted from the first poll,
    /// and then returns [`Drained::Pending`]. The queue is shut down all the same.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Cancel safety
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let _ = queue.add("node-7");
    /// let drain = pin!(queue.drain_timeout(Duration::ZERO));
    /// assert_eq!(poll(drain), Poll::Ready(Ok(Drained::Pending)));
    /// assert!(queue.is_shutting_down());
    /// ```
    pub async fn drain_timeout(&self, timeout: Duration) -> Waited<H, Drained> {
        let deadline = self.now() + timeout;
        let drain = self.begin_drain();
        let ended = self.watch(Some(deadline), |session| session.poll_drain(Some(&drain)));
        H::Waiters::waited(ended.await, Drained::Pending)
    }

    /// Waits until the queue has been shut down by another call, and nothing is ready, dirty or
    /// active. Any number of tasks may wait. O(1) for each look.
    ///
    /// # Errors
    ///
    /// As [`wait_idle`](Self::wait_idle).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example_tasks.txt")]
    /// let mut drained = pin!(queue.wait_drained());
    /// assert!(poll(drained.as_mut()).is_pending());
    /// queue.shut_down();
    /// assert_eq!(poll(drained), Poll::Ready(Ok(())));
    /// ```
    pub async fn wait_drained(&self) -> Waited<H, ()> {
        let ended = self.watch(None, |session| session.poll_drain(None)).await;
        H::Waiters::waited(ended.map(drop), ())
    }

    /// Reports to the metrics how long the active keys have been active, at once and then every
    /// `period`, until the queue is shut down. client-go does so every 500 ms. A period of
    /// less than a millisecond counts as one, because a task that never waits lets no other run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the reports.
    pub async fn report_running_every(&self, period: Duration) {
        let period = period.max(Duration::from_millis(1));
        while !self.is_shutting_down() {
            self.report_running();
            sleep_until(self.clock(), self.now() + period).await;
        }
    }

    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    fn add_until(
        &self,
        key: H::Key,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Scheduled, Rejected<H::Key>>> {
        async move {
            let mut adding = Adding::new(key, options);
            let mut call = Wait::for_room(self);
            let deadline = adding.deadline(deadline);
            // An error says that there was no room in time, or no place to wait for it, and so does
            // what has become of the key.
            let _ = call
                .wait(deadline, |session, getter| {
                    session.poll_add(&mut adding, getter)
                })
                .await;
            adding.into_result()
        }
    }

    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    fn watch<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, H>) -> Next<T>,
    ) -> impl Future<Output = Result<T, GetError>> {
        async move {
            let mut call = Wait::for_state(self);
            call.wait(deadline, |session, _| look(session)).await
        }
    }
}

//! Waiting for a key or a state: one look for every runtime, and one loop for tasks.
//!
//! The lock of a [`WorkQueue`] protects the state machine **and** the list of waiting calls. If a
//! call finds nothing, it is counted as asleep and its waker enters the list, under one lock. So an
//! operation that finds a sleeper also finds its waker. Wakers are taken out of the list under the
//! lock. They are cloned, called and dropped outside it, because a waker is foreign code, which may
//! run or drop a task immediately.
//!
//! A runtime adds only its own part. For threads that is the loop: [`Wait::look`], then park. For
//! tasks it is a [`Timer`], with which [`Wait::poll`] sets an alarm and returns.

use core::convert::identity;
use core::fmt;
use core::future::poll_fn;
use core::mem;
use core::ops::Deref;
use core::pin::{Pin, pin};
use core::task::{self, Context, Poll};

use crate::Instant;
use crate::action::Action;
use crate::guard::Guard;
use crate::options::AddOptions;
use crate::outcome::{Next, Rejected, Scheduled, WaitError};
use crate::queue::Adding;
use crate::queue_face;
use crate::shared::{Access, AsShared, Host, Lock, Shared};
use crate::sleepers::Getter;
use crate::timer::{Timer, fire};
use crate::wait_list::{WaitList, WaitsFor};
use crate::work::{Ticket, Work};

/// One call that waits, from its first look at the queue to its last. For runtimes.
///
/// It looks with [`look`](Self::look) or [`poll`](Self::poll) until that returns a result, and
/// sleeps in between. Dropping it at any time is safe: a wake that was sent to it, and the timer
/// that it owned, pass on to another call.
///
/// `R` is how the call refers to its queue: a reference, or a counted pointer.
///
/// # Examples
///
/// The whole of a blocking `get`, here for a queue in which nothing else happens:
///
/// ```
#[doc = include_str!("shared/example.txt")]
/// let _ = queue.add("node-7");
///
/// let mut wait = Wait::for_key(&queue);
/// let result = loop {
///     let look = wait.look(std::task::Waker::noop(), None, |session, getter| {
///         session.poll_get(getter)
///     });
///     match look {
///         Look::Done(result) => break result,
///         Look::Sleep { until } => panic!("parks the thread until woken, or until {until:?}"),
///     }
/// };
/// let guard = Guard::new(result.unwrap(), &queue);
/// assert_eq!(*guard, "node-7");
/// # guard.success();
/// ```
#[must_use = "a call that waits does nothing until it looks"]
pub struct Wait<H: Host, R: Deref<Target = Shared<H>>> {
    getter: Getter,
    /// The place in the list of waiting calls.
    waiter: <H::Waiters as WaitList>::Id,
    waits_for: WaitsFor,
    /// The run that the first look ends.
    ends: Option<(Ticket, Action)>,
    queue: R,
}

/// What a call that waits has to do next.
///
/// # Examples
///
/// ```
#[doc = include_str!("shared/example.txt")]
/// let due = Instant::EPOCH + core::time::Duration::from_secs(60);
/// let _ = queue.add_at("lease-3", due);
///
/// let mut wait = Wait::for_key(&queue);
/// let look = wait.look(std::task::Waker::noop(), None, |session, getter| {
///     session.poll_get(getter)
/// });
/// assert_eq!(look, Look::Sleep { until: Some(due) });
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a call that sleeps has to look again"]
pub enum Look<T> {
    /// Return this result.
    Done(Result<T, WaitError>),
    /// Sleep until woken, and no longer than `until`, then look again.
    Sleep {
        /// When this call has to look again by itself, `None` if it need not.
        until: Option<Instant>,
    },
}

impl<H: Host, R: Deref<Target = Shared<H>>> Wait<H, R> {
    /// Creates a call that waits for a key. O(1).
    #[doc(alias = "Get")]
    pub fn for_key(queue: R) -> Self {
        Self::new(queue, WaitsFor::Key, None)
    }

    /// Creates a call that ends the run of `guard` and waits for the next key. Its first look does
    /// both under one lock. If it is dropped before, the run ends all the same. O(1).
    ///
    /// If the guard belongs to another queue, its run ends immediately, in that queue.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    ///
    /// let mut wait = Wait::after(guard, Action::Success, &queue);
    /// let look = wait.look(std::task::Waker::noop(), None, |session, getter| {
    ///     session.poll_get(getter)
    /// });
    /// let Look::Done(Ok(work)) = look else {
    ///     panic!("a key is ready");
    /// };
    /// assert_eq!(work.key, "node-8");
    /// assert!(!queue.contains("node-7"), "its run is over");
    /// # queue.finish(work.ticket, Action::Success);
    /// ```
    pub fn after<G>(guard: Guard<H, G>, action: Action, queue: R) -> Self
    where
        G: Deref<Target = Shared<H>>,
    {
        let mut ends = None;
        if core::ptr::eq(guard.queue(), &*queue) {
            ends = guard.into_ticket().map(|ticket| (ticket, action));
        } else {
            guard.finish(action);
        }
        Self::new(queue, WaitsFor::Key, ends)
    }

    /// Creates a call that waits for a state of the queue: it looks with
    /// [`poll_drain`](crate::Session::poll_drain), [`poll_idle`](crate::Session::poll_idle),
    /// [`poll_settled`](crate::Session::poll_settled) or
    /// [`poll_flush`](crate::Session::poll_flush). Added keys do not wake it. O(1).
    pub fn for_state(queue: R) -> Self {
        Self::new(queue, WaitsFor::State, None)
    }

    /// Creates a call that waits for room: it looks with [`poll_add`](crate::Session::poll_add).
    /// O(1).
    pub fn for_room(queue: R) -> Self {
        Self::new(queue, WaitsFor::Room, None)
    }

    /// Returns the queue. O(1).
    pub fn queue(&self) -> &R {
        &self.queue
    }

    fn new(queue: R, waits_for: WaitsFor, ends: Option<(Ticket, Action)>) -> Self {
        Self {
            getter: Getter::new(),
            waiter: Default::default(),
            waits_for,
            ends,
            queue,
        }
    }

    /// Takes the first ready key, if there is one, and does not wait. Ends the run of
    /// [`after`](Self::after) under the same lock. Costs as
    /// [`Shared::try_next`](crate::binding::Shared::try_next), which is less than a
    /// [`look`](Self::look), and most calls of a busy worker find a key.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let mut wait = Wait::after(guard, Action::Success, &queue);
    /// assert_eq!(wait.try_get(), None);
    /// assert!(!queue.contains("node-7"), "its run is over");
    /// let look = wait.look(std::task::Waker::noop(), None, |session, getter| {
    ///     session.poll_get(getter)
    /// });
    /// assert_eq!(look, Look::Sleep { until: None });
    /// ```
    #[inline]
    pub fn try_get(&mut self) -> Option<Work<H::Key>>
    where
        H::Key: Clone,
    {
        match self.ends.take() {
            Some((ticket, action)) => self.queue.end_and_take(ticket, action),
            None => self.queue.with(|session| session.try_get()),
        }
    }

    /// Looks at the queue: returns what `look` finds, or registers `waker` in the list of waiting
    /// calls.
    ///
    /// `look` is [`Session::poll_get`](crate::Session::poll_get), or another method that takes a
    /// [`Getter`]. It runs under the lock. With a growable list it runs a second time if the call
    /// has to wait: `waker` is cloned in between, and only then. A fixed list expects a cheap
    /// waker, which is cloned first.
    ///
    /// A key that is ready is taken even if `deadline` has passed.
    ///
    /// Costs as `look`, and as [`WaitList::register`].
    ///
    /// The result is [`WaitError::TooManyWaiters`] if the call has to wait and the list has no
    /// place for it. The queue is unchanged then.
    pub fn look<T>(
        &mut self,
        waker: &task::Waker,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, H>, &mut Getter) -> Next<T>,
    ) -> Look<T> {
        let Self {
            getter,
            waiter,
            waits_for,
            ends,
            queue,
        } = self;
        let mut own = H::Waiters::CLONES_FIRST.then(|| waker.clone());
        loop {
            // Dropped after the lock, like every waker.
            let mut stale = None;
            let ends_need_time = ends.as_ref().is_some_and(|(_, action)| action.needs_time());
            let reads_clock = ends_need_time || deadline.is_some();
            let seen = queue.timed_with(reads_clock, |session, waiters| {
                if let Some((ticket, action)) = ends.take() {
                    session.finish(ticket, action);
                }
                let refused = match look(session, getter) {
                    Next::Work(work) => {
                        stale = waiters.remove(waiter);
                        return Some(Look::Done(Ok(work)));
                    }
                    Next::Closed => WaitError::Closed,
                    Next::Wait { .. } if deadline.is_some_and(|at| session.now() >= at) => {
                        WaitError::TimedOut
                    }
                    Next::Wait { until } => {
                        match waiters.register(waiter, *waits_for, own.take()?) {
                            Ok(replaced) => {
                                stale = replaced;
                                let until = [until, deadline].into_iter().flatten().min();
                                return Some(Look::Sleep { until });
                            }
                            Err(own) => {
                                stale = Some(own);
                                WaitError::TooManyWaiters
                            }
                        }
                    }
                };
                if let Some(removed) = waiters.remove(waiter) {
                    stale = Some(removed);
                }
                session.leave(getter);
                Some(Look::Done(Err(refused)))
            });
            match seen {
                Some(look) => {
                    if matches!(look, Look::Done(Err(WaitError::TooManyWaiters))) {
                        queue.lock().no_place(H::Waiters::PLACES);
                    }
                    return look;
                }
                None => own = Some(waker.clone()),
            }
        }
    }

    /// Replaces the waker of a call that waits. Returns false if the call has to
    /// [look](Self::look), because it has not looked yet or was woken. Costs as
    /// [`WaitList::registered`].
    pub fn renew(&mut self, waker: &task::Waker) -> bool {
        if self.waiter == Default::default() {
            return false;
        }
        let mut own: Option<task::Waker> = None;
        loop {
            let renewed = self.queue.lock().with(|state| {
                let Some(present) = state.waiters.registered(&self.waiter) else {
                    return Some((false, None));
                };
                if present.will_wake(waker) {
                    return Some((true, None));
                }
                let own = own.take()?;
                Some((true, Some(mem::replace(present, own))))
            });
            match renewed {
                // The replaced waker is dropped here, after the lock.
                Some((is_registered, _stale)) => return is_registered,
                None => own = Some(waker.clone()),
            }
        }
    }

    /// [Looks](Self::look) at the queue for a task, and sets `alarm` if the call has to wait. Looks
    /// once for each wake and once for each deadline, whatever else polls the task, and only if it
    /// is [the turn](Timer::in_turn) of the task.
    ///
    /// Costs as [`renew`](Self::renew) if the call has not been woken, else as
    /// [`look`](Self::look), and what it costs to set the alarm.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped at any time.
    pub fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut alarm: Pin<&mut Option<<H::Clock as Timer>::Alarm>>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, H>, &mut Getter) -> Next<T>,
    ) -> Poll<Result<T, WaitError>>
    where
        H::Clock: Timer,
    {
        H::Clock::in_turn(context, |context| {
            // Polled for another reason, without a change in the queue.
            if self.renew(context.waker()) && fire(alarm.as_mut(), context).is_pending() {
                return Poll::Pending;
            }
            loop {
                let until = match self.look(context.waker(), deadline, &mut look) {
                    Look::Sleep { until } => until,
                    Look::Done(result) => {
                        alarm.set(None);
                        return Poll::Ready(result);
                    }
                };
                // Only the clock decides whether a deadline has passed, because the alarm may fire
                // early.
                let until = until.filter(|due| !due.is_never());
                self.queue.clock().set_alarm(alarm.as_mut(), until);
                if fire(alarm.as_mut(), context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
    }

    /// Waits for the result: [`poll`](Self::poll) as a future.
    ///
    /// # Errors
    ///
    /// [`WaitError`] says why there is no result.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time.
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    pub fn wait<T>(
        &mut self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Access<'_, H>, &mut Getter) -> Next<T>,
    ) -> impl Future<Output = Result<T, WaitError>>
    where
        H::Clock: Timer,
    {
        async move {
            let mut alarm = pin!(None);
            poll_fn(|context| self.poll(context, alarm.as_mut(), deadline, &mut look)).await
        }
    }

    /// Ends the run of [`after`](Self::after), if there is one, and takes the first ready key.
    /// Waits for one if there is none. Costs one look for each wake.
    ///
    /// # Errors
    ///
    /// [`WaitError`] says why there is no key.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes no key. The run ends in any case, with this call.
    pub async fn take(&mut self) -> Result<Work<H::Key>, WaitError>
    where
        H::Key: Clone,
        H::Clock: Timer,
    {
        if !H::Waiters::CLONES_FIRST
            && let Some(work) = try_in_turn::<H::Clock, _>(|| self.try_get()).await
        {
            return Ok(work);
        }
        self.wait(None, |session, getter| session.poll_get(getter))
            .await
    }
}

/// Fast path of tasks, because most calls find a key: does what does not wait, when it is [the
/// turn](Timer::in_turn) of the task. For runtimes, in the loops of their workers: each future
/// around another costs them instructions. Costs as `act`.
///
/// # Cancel safety
///
/// A future that is dropped before it is ready has done nothing.
pub fn try_in_turn<C: Timer, T>(mut act: impl FnMut() -> T) -> impl Future<Output = T> {
    poll_fn(move |context| C::in_turn(context, |_| Poll::Ready(act())))
}

/// For runtimes: one call that waits for a key, for a state, or for room.
impl<H: Host<Clock: Timer>> Shared<H> {
    /// Takes the first ready key. Waits for one if there is none, until a deadline. Returns what
    /// `then` makes of it, such as a guard. Costs one look for each wake.
    ///
    /// A growable list of waiting calls is not used if a key is ready. A fixed list looks once, in
    /// order to take less flash.
    ///
    /// # Errors
    ///
    /// [`WaitError`] says why there is no key.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes no key.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example_tasks.txt")]
    /// let mut get = pin!(queue.take(None, |work| work.key));
    /// assert!(poll(get.as_mut()).is_pending());
    /// let _ = queue.add("node-7");
    /// assert_eq!(poll(get), Poll::Ready(Ok("node-7")));
    /// ```
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    pub fn take<T>(
        &self,
        deadline: Option<Instant>,
        then: impl FnOnce(Work<H::Key>) -> T,
    ) -> impl Future<Output = Result<T, WaitError>>
    where
        H::Key: Clone,
    {
        async move {
            if !H::Waiters::CLONES_FIRST {
                let take = || self.with(|session| session.try_get());
                if let Some(work) = try_in_turn::<H::Clock, _>(take).await {
                    return Ok(then(work));
                }
            }
            let (mut call, mut alarm) = (Wait::for_key(self), pin!(None));
            let work = poll_fn(|context| {
                call.poll(context, alarm.as_mut(), deadline, |session, getter| {
                    session.poll_get(getter)
                })
            });
            Ok(then(work.await?))
        }
    }

    /// Waits until `look` has a result: for a state of the queue. Costs one look for each wake.
    ///
    /// # Errors
    ///
    /// [`WaitError`] says why there is no result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait.
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    pub fn watch<T>(
        &self,
        mut look: impl FnMut(&mut Access<'_, H>) -> Next<T>,
    ) -> impl Future<Output = Result<T, WaitError>> {
        async move {
            let mut call = Wait::for_state(self);
            call.wait(None, |session, _| look(session)).await
        }
    }

    /// Adds a key, and waits for room until a deadline. Costs one look for each wake.
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready adds nothing, and drops the key.
    #[allow(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` would hold each argument twice"
    )]
    pub fn add_until(
        &self,
        key: H::Key,
        options: AddOptions,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Scheduled, Rejected<H::Key>>> {
        async move {
            let mut adding = Adding::new(key, options);
            let mut call = Wait::for_room(self);
            let deadline = adding.deadline(deadline);
            let waited = call.wait(deadline, |session, getter| {
                session.poll_add(&mut adding, getter)
            });
            let waited = waited.await;
            adding.into_result(waited)
        }
    }
}

/// Writes a part of the methods that wait.
macro_rules! face {
    ($part:ident, $($rest:tt)+) => {
        queue_face! {
            $part: "requeue_core",
            concat!(
                include_str!("shared/example_tasks.txt"),
                include_str!("shared/example_block_on.txt")
            ),
            "# });", $($rest)+
        }
    };
}

/// Taking keys, and waiting for them.
impl<H: Host<Clock: Timer>> Shared<H> {
    face! { taking_async, H::Key, identity, Guard<H, &Self> }
}

/// Waiting for room and for states.
impl<H: Host<Clock: Timer>> Shared<H> {
    face! { adding_async, H::Key }
    face! { looking_async, H::Key, checked }
    face! { closing_async, checked }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Drop for Wait<H, R> {
    // Most calls have found a key and left nothing.
    #[inline]
    fn drop(&mut self) {
        let has_left = self.getter.is_awake() && self.waiter == Default::default();
        if self.ends.is_some() || !has_left {
            self.leave();
        }
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Wait<H, R> {
    /// Ends the run that the call has not ended yet, and leaves the list.
    #[cfg_attr(feature = "alloc", cold, inline(never))]
    #[cfg_attr(not(feature = "alloc"), inline(always))]
    fn leave(&mut self) {
        if let Some((ticket, action)) = self.ends.take() {
            self.queue.finish(ticket, action);
        }
        // Dropped once the queue is unlocked, as every waker.
        let mut stale = None;
        self.queue.timed_with(false, |session, waiters| {
            stale = waiters.remove(&mut self.waiter);
            session.leave(&mut self.getter);
        });
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> fmt::Debug for Wait<H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("waits_for", &self.waits_for)
            .finish_non_exhaustive()
    }
}

//! A key that was handed out. Owns the ticket of its run, and ends the run exactly once, even if
//! the guard is dropped; never defines the effect of an action.

use core::convert::identity;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use crate::action::{Action, RunContext};
use crate::outcome::Finished;
use crate::queue_face;
use crate::shared::{AsShared, Host, Shared};
use crate::work::{Ticket, Work};

/// A key that was handed out to be worked on. Dereferences to the key.
///
/// Report how the run ended: [`success`](Self::success), [`requeue_after`](Self::requeue_after),
/// [`retry`](Self::retry), [`give_up`](Self::give_up), [`snooze`](Self::snooze),
/// [`suspend`](Self::suspend), [`release`](Self::release), or [`finish`](Self::finish) with an
/// [`Action`].
///
/// **A guard that is dropped unreported counts as failed**, on every runtime: its key is retried
/// when its limiter says so, as after [`retry`](Self::retry). So nothing is lost if a worker
/// panics, a task is cancelled, or a `?` returns early. While the queue shuts down, such a key is
/// kept for [`take_delayed`](crate::Session::take_delayed).
///
/// A leaked guard (`mem::forget`) keeps its key active forever, so a drain never ends. Give the
/// drain a timeout, or end the run with
/// [`release_key`](crate::binding::Shared::release_key).
///
/// `R` is how the guard refers to its queue: a reference, or a counted pointer for a guard that
/// outlives the borrow.
///
/// # Examples
///
/// ```
#[doc = include_str!("shared/example.txt")]
/// fn reconcile(node: &str, attempt: u32) -> Result<(), &'static str> {
///     if node == "node-7" && attempt == 1 { Err("no route") } else { Ok(()) }
/// }
///
/// let _ = queue.add("node-7");
/// let guard = queue.try_get().unwrap();
/// let finished = match reconcile(&guard, guard.attempt()) {
///     Ok(()) => guard.success(),
///     Err(_) => guard.retry(),
/// };
/// assert!(matches!(finished, Finished::Delayed(_)));
/// assert_eq!(queue.failures("node-7"), 1);
/// ```
#[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
pub struct Guard<H: Host, R: Deref<Target = Shared<H>>> {
    /// Dropped first, because the key's `Drop` may panic.
    run: Run<H, R>,
    key: H::Key,
    failures: u32,
    waited: Duration,
    priority: u8,
    timed_out: bool,
}

/// A run that counts as failed if this is dropped before the run has ended.
struct Run<H: Host, R: Deref<Target = Shared<H>>> {
    /// `Some` until the run ends.
    ticket: Option<Ticket>,
    queue: R,
}

impl<H: Host, R: Deref<Target = Shared<H>>> Guard<H, R> {
    /// Creates the guard of a run that `queue` has handed out. For runtimes. O(1).
    /// [`Wait`](crate::binding::Wait) has an example.
    pub fn new(work: Work<H::Key>, queue: R) -> Self {
        Self {
            run: Run {
                ticket: Some(work.ticket),
                queue,
            },
            key: work.key,
            failures: work.failures,
            waited: work.waited,
            priority: work.priority,
            timed_out: work.timed_out,
        }
    }

    /// Returns the key, to which the guard also dereferences.
    pub fn key(&self) -> &H::Key {
        &self.key
    }

    /// Returns the queue that handed out the key.
    pub fn queue(&self) -> &Shared<H> {
        &self.run.queue
    }

    /// Returns how many failures of the key were on record when this run began. Always zero with
    /// limiters that keep no record: [`NoLimit`](crate::limiter::NoLimit),
    /// [`TokenBucket`](crate::limiter::TokenBucket).
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the number of this attempt: one more than the [failures before it](Self::failures).
    pub fn attempt(&self) -> u32 {
        self.failures.saturating_add(1)
    }

    /// Returns how long the key was ready, or dirty, before it was handed out. Always zero if the
    /// queue's metrics keep no [`Times`](crate::metrics::Times): without metrics it reads no clock
    /// for this. [`Times`](crate::metrics::Times) keeps times and nothing else: with a runtime's
    /// builder, `report_to(Times)`.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the priority level of the key, at which it also runs again if it is retried. 0 in a
    /// queue without [`Levels`](crate::priority::Levels).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(guard.priority(), 0);
    /// # guard.success();
    /// ```
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Returns whether the key was [suspended](Self::suspend), and nobody resumed it in time. O(1).
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// Returns whether the key was [cancelled](crate::binding::Shared::cancel) since this run
    /// began. O(1), under the lock.
    ///
    /// Ask now and then in a long run, and stop it. An add after the cancellation changes nothing
    /// here, because it makes another run. A reconciler of a `run` has no guard: call
    /// [`state`](crate::binding::Shared::state) there.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert!(!guard.is_cancelled());
    /// queue.cancel("node-7");
    /// assert!(guard.is_cancelled());
    /// assert!(queue.state("node-7").unwrap().cancelled);
    /// # guard.release();
    /// ```
    pub fn is_cancelled(&self) -> bool {
        let ticket = self.run.ticket.as_ref();
        ticket.is_some_and(|ticket| self.run.queue.is_cancelled(ticket))
    }

    /// Returns what a reconciler receives about this run. For runtimes.
    pub fn context(&self) -> RunContext {
        RunContext {
            attempt: self.attempt(),
            waited: self.waited,
            priority: self.priority,
            deadline: None,
            timed_out: self.timed_out,
        }
    }

    /// Ends the run as a success, and forgets the key's failures. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let _ = queue.add_rate_limited("node-7");
    /// assert_eq!(queue.failures("node-7"), 1);
    /// queue.try_get().unwrap().success();
    /// assert_eq!(queue.failures("node-7"), 0);
    /// ```
    #[doc(alias = "Forget")]
    #[doc(alias = "Done")]
    pub fn success(self) -> Finished {
        self.finish(Action::Success)
    }

    /// Ends the run as a success, and runs the key again after `delay`. Forgets its failures. O(log
    /// n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add("lease-3");
    /// let minute = Duration::from_secs(60);
    /// let finished = queue.try_get().unwrap().requeue_after(minute);
    /// assert_eq!(finished, Finished::Delayed(minute));
    /// ```
    #[doc(alias = "AddAfter")]
    #[doc(alias = "Done")]
    pub fn requeue_after(self, delay: Duration) -> Finished {
        self.finish(Action::RequeueAfter(delay))
    }

    /// Ends the run as a failure, and retries the key when its limiter says so. Counts one more
    /// failure. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add("node-7");
    /// let finished = queue.try_get().unwrap().retry();
    /// assert_eq!(finished, Finished::Delayed(Duration::from_millis(1)));
    /// ```
    #[doc(alias = "AddRateLimited")]
    #[doc(alias = "Done")]
    pub fn retry(self) -> Finished {
        self.finish(Action::Retry)
    }

    /// Ends the run as a failure that no retry helps. The key runs again only if it is added. Forgets
    /// its failures. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// eprintln!("{guard} is no valid name: no retry would help");
    /// assert_eq!(guard.give_up(), Finished::Idle);
    /// assert!(!queue.contains("node-7"));
    /// ```
    #[doc(alias = "Forget")]
    #[doc(alias = "Done")]
    pub fn give_up(self) -> Finished {
        self.finish(Action::GiveUp)
    }

    /// Ends the run as neither a success nor a failure, and runs the key again after `delay`. Its
    /// failures stay on record. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add("volume-4");
    /// // It is still being attached: this is not a failure, only too early.
    /// queue.try_get().unwrap().snooze(Duration::from_secs(5));
    /// assert_eq!(queue.failures("volume-4"), 0);
    /// assert!(queue.contains("volume-4"));
    /// ```
    #[doc(alias = "AddAfter")]
    #[doc(alias = "Done")]
    pub fn snooze(self, delay: Duration) -> Finished {
        self.finish(Action::Snooze(delay))
    }

    /// Ends the run, and runs the key again after a pause: `min` at first, then twice as long each
    /// time, up to `max`. Its failures stay on record. O(log n).
    ///
    /// [`Action::poll`] says when the pauses start again.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add("volume-4");
    /// // Nothing tells when it is attached.
    /// let (min, max) = (Duration::from_secs(1), Duration::from_secs(60));
    /// assert_eq!(queue.try_get().unwrap().poll(min, max), Finished::Delayed(min));
    /// ```
    #[doc(alias = "AddAfter")]
    #[doc(alias = "Done")]
    pub fn poll(self, min: Duration, max: Duration) -> Finished {
        self.finish(Action::poll(min, max))
    }

    /// Ends the run, and lets the key wait for an event. The key runs again when you call `resume`,
    /// and after `timeout` at the latest. Its failures stay on record. O(log n).
    /// [`Action::Suspend`] says what the type of a queue for boards needs.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add("volume-4");
    /// // An event says when it is attached.
    /// queue.try_get().unwrap().suspend(Duration::from_secs(300));
    /// assert!(queue.try_get().is_none());
    /// assert!(queue.resume("volume-4"));
    /// assert!(!queue.try_get().unwrap().timed_out());
    /// ```
    pub fn suspend(self, timeout: Duration) -> Finished {
        self.finish(Action::Suspend(timeout))
    }

    /// Ends the run, and changes nothing else. The key's failures stay on record. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let _ = queue.add("node-7");
    /// assert_eq!(guard.release(), Finished::Ready, "it was added during the run");
    /// ```
    #[doc(alias = "Done")]
    pub fn release(self) -> Finished {
        self.finish(Action::Release)
    }

    /// Ends the run with an action. Costs as [`Shared::finish`](crate::binding::Shared::finish).
    ///
    /// Returns [`Finished::Stale`] if the run had ended before, by
    /// [`release_key`](crate::binding::Shared::release_key).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let _ = queue.add("node-7");
    /// let action = Action::RequeueAfter(core::time::Duration::from_secs(60));
    /// let finished = queue.try_get().unwrap().finish(action);
    /// assert!(matches!(finished, Finished::Delayed(_)));
    /// ```
    #[inline]
    pub fn finish(mut self, action: Action) -> Finished {
        match self.run.ticket.take() {
            Some(ticket) => self.run.queue.finish(ticket, action),
            None => Finished::Stale,
        }
    }

    /// Turns the guard into its ticket, by which the run then has to be ended. Always `Some` for a
    /// guard that has not ended its run. [`Shared::finish`](crate::binding::Shared::finish) has an
    /// example.
    pub fn into_ticket(self) -> Option<Ticket> {
        let Self { mut run, key, .. } = self;
        // If its `Drop` panics, the run counts as failed, as with any guard that is dropped.
        drop(key);
        run.ticket.take()
    }
}

/// Taking keys with their guards.
impl<H: Host> Shared<H> {
    queue_face! {
        taking: "requeue_core", include_str!("shared/example.txt"), H::Key, identity,
        Guard<H, &Self>
    }

    /// Ends the run of a guard and takes the first ready key, under one lock. No call is woken for
    /// that key. Costs as the two operations. A guard of another queue ends its run in that queue.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    /// let work = queue.finish_and_take(guard, Action::Success).unwrap();
    /// assert_eq!(work.key, "node-8");
    /// ```
    #[inline]
    pub fn finish_and_take<R>(&self, guard: Guard<H, R>, action: Action) -> Option<Work<H::Key>>
    where
        H::Key: Clone,
        R: Deref<Target = Self>,
    {
        if !core::ptr::eq(guard.queue(), self) {
            guard.finish(action);
            return self.with(|session| session.try_get());
        }
        self.end_and_take(guard.into_ticket()?, action)
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Deref for Guard<H, R> {
    type Target = H::Key;

    fn deref(&self) -> &H::Key {
        &self.key
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Drop for Run<H, R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.fail(ticket);
        }
    }
}

impl<H: Host, R: Deref<Target = Shared<H>>> Run<H, R> {
    /// Not inlined, so that dropping a guard after the end of its run costs one comparison.
    #[inline(never)]
    fn fail(&self, ticket: Ticket) {
        self.queue.finish(ticket, Action::Retry);
    }
}

impl<H: Host<Key: fmt::Display>, R: Deref<Target = Shared<H>>> fmt::Display for Guard<H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl<H: Host<Key: fmt::Debug>, R: Deref<Target = Shared<H>>> fmt::Debug for Guard<H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", &self.key)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "defmt")]
impl<H: Host<Key: defmt::Format>, R: Deref<Target = Shared<H>>> defmt::Format for Guard<H, R> {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Self { key, failures, .. } = self;
        defmt::write!(f, "Guard {{ key: {}, failures: {}, .. }}", key, failures);
    }
}

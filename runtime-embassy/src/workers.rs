//! The workers of a reconciler: tasks that process keys until the queue is shut down. Owns the
//! loop; never spawns a task.

use core::hash::Hash;

use embassy_futures::yield_now;
use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::Timer;
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::{Action, Failure, IntoAction, RunContext, WaitError};

use crate::limits::{RunLimits, RunTimeout};
use crate::parts::Parts;
use crate::queue::WorkQueue;

/// Running a reconciler.
impl<R, K, const N: usize, P, L, const WAITERS: usize, X> WorkQueue<R, K, N, P, L, WAITERS, X>
where
    R: RawMutex,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    X: Parts<Clock: Timer>,
{
    /// Runs `reconcile` for the keys of the queue, one at a time, until the queue is shut down and
    /// no key is ready. A task that awaits this is a worker; several tasks are several workers.
    ///
    /// `reconcile` returns `()`, an [`Action`], or a `Result` of either:
    ///
    /// | `reconcile` returns | and the key |
    /// |---|---|
    /// | `()`, `Action::Success` | is idle until it is added; its failures are forgotten |
    /// | `Action::RequeueAfter(d)` | runs again after `d`; its failures are forgotten |
    /// | `Err(_)`, `Action::Retry` | runs again when its rate limiter says so |
    /// | `Action::GiveUp` | is idle until it is added; its failures are forgotten |
    /// | `Action::Snooze(d)` | runs again after `d`; its failures stay |
    /// | `Action::poll(min, max)` | runs again after a pause that grows; its failures stay |
    /// | `Action::Suspend(d)` | runs again when it is resumed, or after `d`; its failures stay |
    /// | `Action::Release` | is idle until it is added; its failures stay |
    ///
    /// A key that was added during its run is **ready at once** when the run ends, behind the keys
    /// that are ready already, whatever `reconcile` returned:
    /// as in client-go, an add skips the backoff. A reconciler that adds its own key and then fails
    /// therefore runs without pause. To run its key again, it returns `RequeueAfter` instead. The next run has
    /// the priority of this one, or that of [`with_priority`](Action::with_priority).
    ///
    /// Two runs of one key never overlap, whichever tasks do them. Other tasks run between two
    /// keys. Failures are logged, if the feature `log` is on; [`run_with`](Self::run_with) reports
    /// them.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`](WaitError::TooManyWaiters) if there is no place to wait for a key: there
    /// are more workers than the queue has places for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the current run. Its key counts as failed and is retried, as with
    /// every [`Guard`](crate::Guard) that is dropped. A run that has ended stays ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::embassy::limiter::default_item_based;
    /// use requeue::embassy::raw::NoopRawMutex;
    /// use requeue::embassy::WorkQueue;
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many(1..=16, |_| {});
    /// queue.shut_down();
    ///
    /// let mut sum = 0;
    /// let worker = queue.run(async |key| {
    ///     sum += key;
    /// });
    /// embassy_futures::block_on(worker).unwrap();
    /// assert_eq!(sum, 136);
    /// ```
    pub async fn run<A: IntoAction>(
        &self,
        mut reconcile: impl AsyncFnMut(&K) -> A,
    ) -> Result<(), WaitError>
    where
        K: Clone,
    {
        let reconcile = async |key: &K, _: RunContext| reconcile(key).await;
        self.run_with(RunLimits::new(), reconcile, |_, _, _| {}, |_, _| {})
            .await
    }

    /// As [`run`](Self::run), with limits: how often a key that fails is retried, and how long a run
    /// may take. `reconcile` also gets a [`RunContext`] with the attempt, the priority and the deadline.
    ///
    /// `on_error` is called for every failure, with the key, why its run failed, and which attempt
    /// that was, counted from 1. `on_give_up` is called after it if the key is not retried. Both
    /// are called while the key is active.
    ///
    /// The rate limiter counts the failures. With one that keeps no records
    /// ([`NoLimit`](requeue_core::limiter::NoLimit), a
    /// [`TokenBucket`](requeue_core::limiter::TokenBucket) alone) the count stays zero.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::pin::pin;
    /// use core::time::Duration;
    /// use embassy_futures::poll_once;
    /// use requeue::embassy::limiter::FastSlow;
    /// use requeue::embassy::priority::Plain;
    /// use requeue::embassy::raw::NoopRawMutex;
    /// use requeue::embassy::{Action, RunContext, RunLimits, WorkQueue};
    ///
    /// const AT_ONCE: FastSlow = FastSlow::new(Duration::ZERO, Duration::ZERO, 1);
    /// let queue: WorkQueue<NoopRawMutex, u16, 16, Plain, FastSlow> = WorkQueue::new(AT_ONCE);
    /// let _ = queue.add(17);
    ///
    /// let mut given_up = Vec::new();
    /// {
    ///     let fail = async |_: &u16, _: RunContext| Err::<Action, _>("no reply");
    ///     let worker = queue.run_with(
    ///         RunLimits::new().max_retries(2),
    ///         fail,
    ///         |sensor, failure, attempt| eprintln!("{sensor}, attempt {attempt}: {failure}"),
    ///         |sensor, failure| given_up.push((*sensor, failure.to_string())),
    ///     );
    ///     let mut worker = pin!(worker);
    ///     for _ in 0..4 {
    ///         assert!(poll_once(worker.as_mut()).is_pending());
    ///     }
    /// }
    /// assert_eq!(given_up, [(17, "no reply".to_string())]);
    /// assert_eq!(queue.failures(&17), 0);
    /// ```
    pub async fn run_with<E, A: IntoAction<Error = E>>(
        &self,
        limits: RunLimits<impl RunTimeout>,
        mut reconcile: impl AsyncFnMut(&K, RunContext) -> A,
        mut on_error: impl FnMut(&K, &Failure<E>, u32),
        mut on_give_up: impl FnMut(&K, Failure<E>),
    ) -> Result<(), WaitError>
    where
        K: Clone,
    {
        let mut next = self.get().await;
        loop {
            let guard = match next {
                Ok(guard) => guard,
                Err(WaitError::Closed) => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut context = guard.context();
            context.deadline = limits.timeout.limit().map(|limit| self.now() + limit);
            let run = reconcile(&guard, context);
            let bounded = limits.timeout.bound(self.clock(), context.deadline, run);
            // An error is retried at the priority of its run.
            let (mut action, failure) = match bounded.await.map(A::into_action) {
                Some(Ok(action)) => (action, Failure::of(action)),
                Some(Err(error)) => (Action::Retry, Some(Failure::Error(error))),
                None => {
                    let limit = limits.timeout.limit().unwrap_or_default();
                    (Action::Retry, Some(Failure::TimedOut(limit)))
                }
            };
            if let Some(failure) = failure {
                let attempt = guard.attempt();
                on_error(&guard, &failure, attempt);
                let is_allowed = limits.allow(guard.failures());
                if is_allowed && !matches!(failure, Failure::GiveUp) {
                    #[cfg(feature = "log")]
                    log::debug!(target: "requeue", "attempt {attempt} failed");
                } else {
                    #[cfg(feature = "log")]
                    log::warn!(target: "requeue", "attempt {attempt} failed: the key is given up");
                    on_give_up(&guard, failure);
                    action = Action::GiveUp;
                }
            }
            // The run is over from here on, even if the next is never asked for.
            let turn = self.next(guard, action);
            // Otherwise keys that run again at once would keep a task busy for ever if its
            // reconciler awaits nothing.
            yield_now().await;
            next = turn.await;
        }
    }
}

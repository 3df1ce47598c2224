//! A reconciler's workers: tasks that work on keys until the queue is shut down.

use core::future::poll_fn;
use core::hash::Hash;
use core::task::Poll;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{Action, Completion, Index, Metrics, Priorities, RateLimiter, Retries};

use crate::clock::Timer;
use crate::get_error::GetError;
use crate::queue::WorkQueue;
use crate::sync::TooManyWaiters;
use crate::told;

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash + Clone,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
    C: Timer,
{
    /// Works on keys with `reconcile`, one at a time, until the queue is shut down and nothing is
    /// ready. A task that awaits this is a worker; several tasks are several workers.
    ///
    /// | `reconcile` answers | and the key |
    /// |---|---|
    /// | `Ok(Action::Done)` | is at rest; its failures are forgotten |
    /// | `Ok(Action::RequeueAfter(d))` | runs again after `d`; its failures are forgotten |
    /// | `Ok(Action::PutOff(d))` | runs again after `d`; its failures stay remembered |
    /// | `Err(_)` | runs again when its rate limiter says so |
    ///
    /// Two runs of one key never overlap, whichever tasks do them. Other tasks are let run between
    /// any two keys.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait for a key: there are more workers than the
    /// queue was made for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run that is under way, and its key is requeued rate-limited,
    /// as is every [`Guard`](crate::Guard) that is dropped. A run that has ended counts as it
    /// ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::convert::Infallible;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Action, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many(1..=16, |_| {});
    /// queue.shut_down();
    ///
    /// let mut sum = 0;
    /// let worker = queue.run(async |key| {
    ///     sum += key;
    ///     Ok::<_, Infallible>(Action::Done)
    /// });
    /// embassy_futures::block_on(worker).unwrap();
    /// assert_eq!(sum, 136);
    /// ```
    pub async fn run<E>(
        &self,
        reconcile: impl AsyncFnMut(&K) -> Result<Action, E>,
    ) -> Result<(), TooManyWaiters> {
        let keep = |_: &K, _: E| {};
        self.run_with(Retries::UNLIMITED, reconcile, keep).await
    }

    /// As [`run`](Self::run), but a key that fails is tried again `retries` times at most. Then it
    /// is given up: `give_up` gets it and why its last run failed, and its failures are forgotten.
    ///
    /// The count is the rate limiter's: with one that remembers no key
    /// ([`NoLimit`](requeue_core::NoLimit), a [`Bucket`](requeue_core::Bucket) alone) it stays
    /// zero.
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
    /// use requeue_embassy::core::{ItemFastSlow, NoMetrics};
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Action, Retries, WorkQueue};
    ///
    /// const AT_ONCE: ItemFastSlow = ItemFastSlow::new(Duration::ZERO, Duration::ZERO, 1);
    /// let queue: WorkQueue<NoopRawMutex, u16, 16, ItemFastSlow> = WorkQueue::new(AT_ONCE);
    /// queue.add(17).unwrap();
    ///
    /// let mut given_up = Vec::new();
    /// {
    ///     let fail = async |_: &u16| Err::<Action, _>("no answer");
    ///     let keep = |sensor: &u16, why| given_up.push((*sensor, why));
    ///     let mut worker = pin!(queue.run_with(Retries::at_most(2), fail, keep));
    ///     for _ in 0..4 {
    ///         assert!(poll_once(worker.as_mut()).is_pending());
    ///     }
    /// }
    /// assert_eq!(given_up, [(17, "no answer")]);
    /// assert_eq!(queue.num_requeues(&17), 0);
    /// ```
    pub async fn run_with<E>(
        &self,
        retries: Retries,
        mut reconcile: impl AsyncFnMut(&K) -> Result<Action, E>,
        mut give_up: impl FnMut(&K, E),
    ) -> Result<(), TooManyWaiters> {
        let mut next = self.get().await;
        loop {
            let guard = match next {
                Ok(guard) => guard,
                Err(GetError::TooManyWaiters) => return Err(TooManyWaiters),
                Err(_) => return Ok(()),
            };
            let completion = match reconcile(&guard).await {
                Ok(action) => action.completion(),
                Err(error) => match retries.completion(guard.requeues()) {
                    Some(retry) => {
                        told::run_failed(guard.attempt());
                        retry
                    }
                    None => {
                        told::gave_up(guard.attempt());
                        give_up(&guard, error);
                        Completion::Succeeded
                    }
                },
            };
            // The run is over from here on, even if the next is never asked for.
            let turn = self.next(guard, completion);
            let_others_run().await;
            next = turn.await;
        }
    }
}

/// Is pending once. Where a reconciler awaits nothing, keys that come back at once would otherwise
/// keep their task from ever ending its turn.
async fn let_others_run() {
    let mut had_their_turn = false;
    poll_fn(|context| {
        if had_their_turn {
            return Poll::Ready(());
        }
        had_their_turn = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

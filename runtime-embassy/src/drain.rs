//! Waiting until a queue that is shut down has drained.

use core::future::poll_fn;
use core::hash::Hash;
use core::task::Poll;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{
    Drained, Effect, Index, Instant, Lock, Metrics, Priorities, RateLimiter, Wake, Waker,
};

use crate::clock::Timer;
use crate::queue::{Held, WorkQueue};
use crate::sync::{For, Place, TooManyWaiters, Wakers};
use crate::told;
use crate::waiting::Alarm;

impl<R, K, const N: usize, L, const WAITERS: usize, M, I, C, P>
    WorkQueue<R, K, N, L, WAITERS, M, I, C, P>
where
    R: RawMutex,
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    I: Index,
    P: Priorities,
    C: Timer,
{
    /// Takes no more keys and waits until nothing is ready, dirty or in work. Answers how it ended:
    /// a [`shut_down`](requeue_core::WorkQueue::shut_down) meanwhile interrupts it.
    ///
    /// Somebody has to do the work: without workers this waits for ever. A worker that calls it
    /// while it holds a guard waits for itself. Delayed keys are not waited for:
    /// [`leftovers`](requeue_core::WorkQueue::leftovers) hands them back.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait: the queue takes no more keys all the same.
    ///
    /// # Cancel safety
    ///
    /// The queue takes no more keys from the first poll on. Dropping the future ends the wait and
    /// nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use embassy_futures::block_on;
    /// use embassy_futures::join::join;
    /// use requeue_embassy::core::default_item_based;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Drained, WorkQueue};
    ///
    /// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
    /// queue.add_many([17, 18], |_| {});
    /// let work = async {
    ///     while let Ok(guard) = queue.get().await {
    ///         guard.forget().unwrap();
    ///     }
    /// };
    /// let (drained, ()) = block_on(join(queue.shut_down_with_drain(), work));
    /// assert_eq!(drained, Ok(Drained::Complete));
    /// assert!(!queue.contains(&18));
    /// ```
    pub async fn shut_down_with_drain(&self) -> Result<Drained, TooManyWaiters> {
        self.drain(Instant::NEVER).await
    }

    /// As [`shut_down_with_drain`](Self::shut_down_with_drain), but waits no longer than `timeout`:
    /// [`Drained::Pending`] says that it was not enough. The queue takes no more keys all the same.
    ///
    /// # Errors
    ///
    /// As [`shut_down_with_drain`](Self::shut_down_with_drain).
    ///
    /// # Cancel safety
    ///
    /// As [`shut_down_with_drain`](Self::shut_down_with_drain).
    pub async fn drain_timeout(&self, timeout: Duration) -> Result<Drained, TooManyWaiters> {
        self.drain(self.clock().now() + timeout).await
    }

    /// Waits until the queue has been shut down, by whomever, and nothing is ready, dirty or in
    /// work.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`] if there is no place to wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub async fn drained(&self) -> Result<(), TooManyWaiters> {
        let is_drained = |state: &mut Held<K, N, L, M, I, P>| Effect {
            value: state.is_drained().then_some(()),
            wake: Wake::None,
        };
        let ended = self.wait_for_drain(is_drained, Instant::NEVER).await;
        ended.map(Option::unwrap_or_default)
    }

    async fn drain(&self, deadline: Instant) -> Result<Drained, TooManyWaiters> {
        let drain = self.begin_drain();
        let ended = |state: &mut Held<K, N, L, M, I, P>| {
            let drained = state.drained(&drain);
            Effect {
                value: (drained != Drained::Pending).then_some(drained),
                wake: Wake::None,
            }
        };
        let ended = self.wait_for_drain(ended, deadline).await;
        ended.map(|drained| drained.unwrap_or(Drained::Pending))
    }

    /// Waits until `ended` has an answer, and no longer than until `deadline`.
    async fn wait_for_drain<T>(
        &self,
        ended: impl Fn(&mut Held<K, N, L, M, I, P>) -> Effect<Option<T>>,
        deadline: Instant,
    ) -> Result<Option<T>, TooManyWaiters> {
        let mut drainer = Drainer {
            line: self.waker(),
            place: Place::NONE,
        };
        let mut late = Alarm::new();
        poll_fn(|context| {
            loop {
                let is_late = !deadline.is_never() && self.clock().now() >= deadline;
                let (stands, Effect { value, wake }) = self.lock().with(|state| {
                    let effect = ended(state);
                    let stands = if effect.value.is_some() || is_late {
                        Ok(())
                    } else {
                        // Under the queue's lock, as in `Waiting::poll`.
                        let place = &mut drainer.place;
                        drainer.line.stand(place, For::Drain, context.waker())
                    };
                    (stands, effect)
                });
                self.waker().obey(wake);
                if stands.is_err() {
                    told::no_place(WAITERS);
                }
                if value.is_some() || is_late || stands.is_err() {
                    return Poll::Ready(stands.map(|()| value));
                }
                late.set(self.clock(), Some(deadline));
                if late.poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

/// A call that waits for the drain. Nobody has to take its place.
struct Drainer<'q, R: RawMutex, const WAITERS: usize> {
    line: &'q Wakers<R, WAITERS>,
    place: Place,
}

impl<R: RawMutex, const WAITERS: usize> Drop for Drainer<'_, R, WAITERS> {
    fn drop(&mut self) {
        self.line.step_out(&mut self.place);
    }
}

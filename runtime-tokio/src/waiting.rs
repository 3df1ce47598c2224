//! How a task waits for a key.

use std::hash::Hash;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use requeue_core::{
    Clock, Effect, GetError, Getter, Instant, Metrics, Next, Queue, RateLimiter, Storage, Waker,
};
use tokio::task::coop;
use tokio::time::Sleep;

use crate::queue::Shared;
use crate::sync::Place;

/// What the lock of a [`WorkQueue`](crate::WorkQueue) holds.
pub(crate) type State<K, S, L, M> = Queue<K, S, L, M>;

/// A call that waits, from poll to poll. Whoever holds one calls [`end`](Self::end) at last.
///
/// The timer is not kept here, so that its owner can pin it where it likes.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    getter: Getter,
    place: Place,
    /// The queue has to know if this goes away: it counts the getter among those that sleep, or a
    /// look has been broken off by a panic.
    is_asleep: bool,
}

impl Waiting {
    /// The loop of every getter: look, return, or sleep until woken or until the deadline. It looks
    /// twice at most, and twice more for each deadline that comes while it goes to sleep.
    ///
    /// The waker goes into the line **under the queue's lock**, in the same look that counts the
    /// getter as asleep. Between the two locks an `add` could see a sleeper, send its one wake to
    /// an empty line, and send no other: the key would wait for a task that waits for the key.
    pub(crate) fn poll<K, L, M, S, T>(
        &mut self,
        queue: &Shared<K, L, M, S>,
        context: &mut Context<'_>,
        mut timer: Pin<&mut Option<Sleep>>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Poll<Result<T, GetError>>
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        S: Storage,
    {
        // A task whose every `get` finds a key must let others run now and then.
        let budget = ready!(coop::poll_proceed(context));
        let line = &queue.waker().getters;
        // Polled for another reason: neither the look nor the place in line is due.
        let stands = self.is_asleep && line.renew(&self.place, context.waker());
        if stands && ring(timer.as_mut(), context).is_pending() {
            return Poll::Pending;
        }
        let mut waker = None;
        loop {
            // Declared before the lock, so as to be dropped behind it.
            let _stale;
            let mut state = queue.lock().lock();
            _stale = line.step_out(&self.place);
            let now = if state.needs_time() || deadline.is_some() {
                queue.clock().now()
            } else {
                Instant::EPOCH
            };
            self.is_asleep = true;
            let Effect { value, wake } = look(&mut state, now, &mut self.getter);
            self.is_asleep = matches!(value, Next::Wait { .. });
            let until = match value {
                Next::Wait { until } => until,
                Next::Work(work) => {
                    drop(state);
                    queue.waker().obey(wake);
                    timer.set(None);
                    budget.made_progress();
                    return Poll::Ready(Ok(work));
                }
                Next::Closed => {
                    drop(state);
                    queue.waker().obey(wake);
                    return Poll::Ready(Err(GetError::Closed));
                }
            };
            let is_late = deadline.is_some_and(|deadline| now >= deadline);
            // A waker is cloned only by those who have to wait, and not under the lock: this look
            // counts for nothing, and the next may find what came meanwhile.
            let stands = waker.take().map(|waker| line.stand(&mut self.place, waker));
            drop(state);
            queue.waker().obey(wake);
            if is_late {
                return Poll::Ready(Err(GetError::TimedOut));
            }
            if stands.is_none() {
                waker = Some(context.waker().clone());
                continue;
            }
            // The clock judges whether a deadline has come, the timer only says when to look.
            let until = [until, deadline].into_iter().flatten().min();
            queue.clock().arm(timer.as_mut(), until);
            if ring(timer.as_mut(), context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Goes away. If the getter counts as asleep, the queue is told and wakes another in its place,
    /// if need be.
    pub(crate) fn end<K, L, M, S>(&mut self, queue: &Shared<K, L, M, S>)
    where
        K: Eq + Hash,
        L: RateLimiter,
        M: Metrics,
        S: Storage,
    {
        if mem::take(&mut self.is_asleep) {
            // The line first: a wake that came afterwards to somebody who no longer counts as
            // asleep would be passed on by nobody.
            drop(queue.waker().getters.step_out(&self.place));
            queue.leave(&mut self.getter);
        }
    }
}

/// Whether a timer that is set has come to its end.
fn ring(timer: Pin<&mut Option<Sleep>>, context: &mut Context<'_>) -> Poll<()> {
    match timer.as_pin_mut() {
        Some(sleep) => sleep.poll(context),
        None => Poll::Pending,
    }
}

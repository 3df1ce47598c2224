//! How a task waits for a key.

use core::hash::Hash;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::{
    Clock, Effect, Getter, Instant, Lock, Metrics, Next, Queue, RateLimiter, Storage, Waker,
};

use crate::clock::Timer;
use crate::get_error::GetError;
use crate::sync::{For, Locked, Place, Wakers};
use crate::told;

/// What the lock holds, whatever its storage.
pub(crate) type State<K, S, L, M> = Queue<K, S, L, M>;

/// [`Shared`](crate::Shared), whatever its storage.
pub(crate) type Stored<R, K, S, L, const WAITERS: usize, M, C> =
    requeue_core::WorkQueue<Locked<R, State<K, S, L, M>>, C, Wakers<R, WAITERS>>;

/// A call that waits, from poll to poll. Whoever holds one calls [`end`](Self::end) at last.
#[derive(Debug)]
pub(crate) struct Waiting<Z> {
    getter: Getter,
    place: Place,
    alarm: Alarm<Z>,
    /// The queue has to know if this goes away: it counts the getter among those that sleep, or a
    /// look has been broken off by a panic.
    is_asleep: bool,
}

impl<Z> Waiting<Z> {
    pub(crate) const fn new() -> Self {
        Self {
            getter: Getter::new(),
            place: Place::NONE,
            alarm: Alarm::new(),
            is_asleep: false,
        }
    }

    /// The loop of every getter: look, return, or sleep until woken or until the deadline.
    ///
    /// The waker goes into the line **under the queue's lock**, in the same look that counts the
    /// getter as asleep. Between the two locks an `add` could see a sleeper, send its one wake to
    /// an empty line, and send no other: the key would wait for a task that waits for the key.
    pub(crate) fn poll<R, K, S, L, const WAITERS: usize, M, C, T>(
        &mut self,
        queue: &Stored<R, K, S, L, WAITERS, M, C>,
        context: &mut Context<'_>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Poll<Result<T, GetError>>
    where
        R: RawMutex,
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
        C: Timer<Sleep = Z>,
        Z: Future<Output = ()> + Unpin,
    {
        // Polled for another reason: neither the look nor the place in line is due.
        let stands = self.is_asleep && queue.waker().renew(&self.place, context.waker());
        if stands && self.alarm.poll(context).is_pending() {
            return Poll::Pending;
        }
        loop {
            let Effect { value, wake } = queue.lock().with(|state| {
                let now = if state.needs_time() || deadline.is_some() {
                    queue.clock().now()
                } else {
                    Instant::EPOCH
                };
                self.is_asleep = true;
                let effect = look(state, now, &mut self.getter);
                self.settle(queue, state, effect, deadline, now, context)
            });
            queue.waker().obey(wake);
            let until = match value {
                Sleep::Until(until) => until,
                Sleep::Not(result) => {
                    if matches!(result, Err(GetError::TooManyWaiters)) {
                        told::no_place(WAITERS);
                    }
                    return Poll::Ready(result);
                }
            };
            // The clock judges whether a deadline has come, the timer only says when to look.
            self.alarm.set(queue.clock(), until);
            if self.alarm.poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// What a look means for the one who looked, still under the lock: a place in line for one who
    /// has to wait, and none for one who need not.
    fn settle<R, K, S, L, const WAITERS: usize, M, C, T>(
        &mut self,
        queue: &Stored<R, K, S, L, WAITERS, M, C>,
        state: &mut State<K, S, L, M>,
        Effect { value, wake }: Effect<Next<T>>,
        deadline: Option<Instant>,
        now: Instant,
        context: &Context<'_>,
    ) -> Effect<Sleep<Result<T, GetError>>>
    where
        R: RawMutex,
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
    {
        let line = queue.waker();
        let result = match value {
            Next::Work(work) => Ok(work),
            Next::Closed => Err(GetError::Closed),
            Next::Wait { until } => {
                let is_late = deadline.is_some_and(|deadline| now >= deadline);
                let refused = if is_late {
                    GetError::TimedOut
                } else {
                    match line.stand(&mut self.place, For::Key, context.waker()) {
                        Ok(()) => {
                            let until = [until, deadline].into_iter().flatten().min();
                            let value = Sleep::Until(until);
                            return Effect { value, wake };
                        }
                        Err(error) => error.into(),
                    }
                };
                self.is_asleep = false;
                line.step_out(&mut self.place);
                // The look has woken nobody, since nothing was there. To leave may have to.
                let value = Sleep::Not(Err(refused));
                return state.leave(&mut self.getter).map(|()| value);
            }
        };
        self.is_asleep = false;
        line.step_out(&mut self.place);
        let value = Sleep::Not(result);
        Effect { value, wake }
    }

    /// Goes away. If the getter counts as asleep, the queue is told and wakes another in its place,
    /// if need be.
    pub(crate) fn end<R, K, S, L, const WAITERS: usize, M, C>(
        &mut self,
        queue: &Stored<R, K, S, L, WAITERS, M, C>,
    ) where
        R: RawMutex,
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
        C: Clock,
    {
        // The line first: a wake that came afterwards to somebody who no longer counts as asleep
        // would be passed on by nobody.
        queue.waker().step_out(&mut self.place);
        if mem::take(&mut self.is_asleep) {
            queue.leave(&mut self.getter);
        }
    }
}

/// What one who has looked does next.
enum Sleep<T> {
    /// Sleeps until woken, or until an instant.
    Until(Option<Instant>),
    Not(T),
}

/// The timer of one that waits, set while there is an instant to wait for.
#[derive(Debug)]
pub(crate) struct Alarm<Z>(Option<(Instant, Z)>);

impl<Z> Alarm<Z> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }
}

impl<Z: Future<Output = ()> + Unpin> Alarm<Z> {
    /// Sets the alarm; stops it if there is nothing to wait for. One that is set for the same
    /// instant already is left alone.
    pub(crate) fn set(&mut self, clock: &impl Timer<Sleep = Z>, until: Option<Instant>) {
        let until = until.filter(|due| !due.is_never());
        if self.0.as_ref().map(|(due, _)| *due) != until {
            self.0 = until.map(|due| (due, clock.sleep_until(due)));
        }
    }

    /// Whether an alarm that is set has rung. It rings once.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((_, sleep)) = &mut self.0 else {
            return Poll::Pending;
        };
        let rung = Pin::new(sleep).poll(context);
        if rung.is_ready() {
            self.0 = None;
        }
        rung
    }
}

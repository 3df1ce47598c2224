//! What a call that waits holds, and each of its looks under the lock.

use core::hash::Hash;
use core::task;

use super::{Look, TooManyWaiters, WaitList, WaitsFor};
use crate::Instant;
use crate::action::Action;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Effect, GetError, Next};
use crate::queue::Queue;
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::time::Clock;
use crate::work::Ticket;
use crate::work_queue::State;

/// The state of a call between two looks.
#[derive(Debug)]
pub struct Waiting<I> {
    getter: Getter,
    pub(super) waiter: I,
    waits_for: WaitsFor,
    /// The run that this call ends with its first look.
    ends: Option<(Ticket, Action)>,
}

impl<I: Default + PartialEq> Waiting<I> {
    pub(super) fn new(waits_for: WaitsFor, ends: Option<(Ticket, Action)>) -> Self {
        Self {
            getter: Getter::new(),
            waiter: I::default(),
            waits_for,
            ends,
        }
    }

    /// Whether the queue does not know the call, so that it may be dropped without the lock.
    pub(crate) fn is_unknown(&self) -> bool {
        self.ends.is_none() && self.getter.is_awake() && self.waiter == I::default()
    }

    /// The time, if the next look needs it.
    pub(super) fn now<K, S, L, M>(
        &self,
        queue: &Queue<K, S, L, M>,
        clock: &impl Clock,
        deadline: Option<Instant>,
    ) -> Instant
    where
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
    {
        let ends = self.ends.as_ref();
        let ends_need_time = ends.is_some_and(|(_, action)| action.needs_time());
        if ends_need_time || deadline.is_some() || queue.needs_time() {
            clock.now()
        } else {
            Instant::EPOCH
        }
    }

    /// Ends the run that the call has to end, then looks.
    pub(super) fn see<K, S, L, M, W, T>(
        &mut self,
        state: &mut State<K, S, L, M, W>,
        now: Instant,
        look: impl FnOnce(&mut Queue<K, S, L, M>, Instant, &mut Getter) -> Effect<Next<T>>,
    ) -> Effect<Next<T>>
    where
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
    {
        if let Some((ticket, action)) = self.ends.take() {
            // An error says that the run was ended by its key: nothing is left to do.
            let _ = state.queue.finish_quietly(ticket, action, now);
        }
        look(&mut state.queue, now, &mut self.getter)
    }

    /// Decides what the call does after a look, still under the lock. `None` if it has to look
    /// again with a waker of its own.
    pub(super) fn judge<K, S, L, M, W, T>(
        &mut self,
        state: &mut State<K, S, L, M, W>,
        Effect { value, wake }: Effect<Next<T>>,
        deadline_and_now: Option<(Instant, Instant)>,
        own: &mut Option<task::Waker>,
        stale: &mut Option<task::Waker>,
    ) -> Effect<Option<Look<T>>>
    where
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
        W: WaitList<Id = I>,
    {
        let result = match value {
            Next::Work(work) => Ok(work),
            Next::Closed => Err(GetError::Closed),
            Next::Wait { until } => {
                let deadline = deadline_and_now.map(|(deadline, _)| deadline);
                let refused = if deadline_and_now.is_some_and(|(deadline, now)| now >= deadline) {
                    GetError::TimedOut
                } else {
                    let Some(own) = own.take() else {
                        return Effect { value: None, wake };
                    };
                    match state
                        .waiters
                        .register(&mut self.waiter, self.waits_for, own)
                    {
                        Ok(replaced) => {
                            *stale = replaced;
                            let until = [until, deadline].into_iter().flatten().min();
                            let value = Some(Look::Sleep { until });
                            return Effect { value, wake };
                        }
                        Err((TooManyWaiters, own)) => {
                            *stale = Some(own);
                            GetError::TooManyWaiters
                        }
                    }
                };
                let left = self.leave(state, stale);
                let value = Some(Look::Done(Err(refused)));
                return Effect {
                    value,
                    wake: wake | left.wake,
                };
            }
        };
        let removed = state.waiters.remove(&mut self.waiter);
        *stale = removed;
        let value = Some(Look::Done(result));
        Effect { value, wake }
    }

    /// Removes the call, which has no result. If it has slept and a wake is needed, another call is
    /// woken in its place.
    pub(crate) fn leave<K, S, L, M, W>(
        &mut self,
        state: &mut State<K, S, L, M, W>,
        stale: &mut Option<task::Waker>,
    ) -> Effect<()>
    where
        K: Eq + Hash,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
        W: WaitList<Id = I>,
    {
        if let Some(removed) = state.waiters.remove(&mut self.waiter) {
            *stale = Some(removed);
        }
        state.queue.leave(&mut self.getter)
    }

    /// Takes the run that still has to be ended, because the call never looked.
    pub(crate) fn take_end(&mut self) -> Option<(Ticket, Action)> {
        self.ends.take()
    }
}

//! A run that ends as the next begins, under one lock.

use core::hash::Hash;
use core::ops::Deref;

use crate::Instant;
use crate::guard::{Complete, Guard};
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Completion, Effect, Next};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waiting::Getter;
use crate::waker::Waker;
use crate::work::{Ticket, WorkOf};
use crate::work_queue::WorkQueue;

/// A run that its owner has declared over: completed by the first look for the next key, or on
/// drop. For runtimes, whose `next` is a `get` that looks with it.
///
/// # Examples
///
/// ```
#[doc = include_str!("work_queue/example.txt")]
/// queue.add_many(["node-7", "node-8"], |_| {});
/// let guard = queue.try_get().unwrap();
///
/// let mut getter = Getter::new();
/// let mut turn = Turn::new(&queue, guard, Completion::Succeeded);
/// let Next::Work(work) = queue.act(|state, now| turn.look(state, now, &mut getter)) else {
///     panic!("a key is ready");
/// };
/// assert_eq!(work.key, "node-8");
/// assert!(!queue.contains(&"node-7"), "its run is over");
/// # let _ = queue.complete(work.ticket, Completion::Done);
/// ```
#[derive(Debug)]
#[must_use = "dropping a turn completes its run"]
pub struct Turn<'q, T: Complete> {
    queue: &'q T,
    /// Present until the run is completed.
    ticket: Option<Ticket>,
    completion: Completion,
}

impl<'q, T: Complete> Turn<'q, T> {
    /// The run of `guard`. That of another queue is completed at once: what became of it matters to
    /// that queue alone, which loses nothing. O(1), else as [`Guard::complete`].
    pub fn new<K, H>(queue: &'q T, guard: Guard<K, H>, completion: Completion) -> Self
    where
        H: Deref<Target = T>,
    {
        let mut ticket = None;
        if core::ptr::eq(guard.queue(), queue) {
            ticket = guard.into_ticket();
        } else {
            let _ = guard.complete(completion);
        }
        Self {
            queue,
            ticket,
            completion,
        }
    }
}

impl<K, S, L, M, Q, C, W> Turn<'_, WorkQueue<Q, C, W>>
where
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// Completes the run and takes the next key; from then on takes the next key. Costs as
    /// [`WorkQueue::complete`] and [`WorkQueue::poll_get`]. `state` is that of the turn's queue,
    /// whose clock is read only if the completion needs the time.
    pub fn look(
        &mut self,
        state: &mut Queue<K, S, L, M>,
        now: Instant,
        getter: &mut Getter,
    ) -> Effect<Next<WorkOf<K, S, M>>> {
        let Some(ticket) = self.ticket.take() else {
            return state.get(now, getter);
        };
        let now = if self.completion.needs_time() {
            self.queue.clock().now()
        } else {
            now
        };
        let step = state.next(ticket, self.completion, now, getter);
        step.map(|step| step.next)
    }
}

impl<T: Complete> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            // Somebody may have completed the key by name: then there is nothing left to do.
            let _ = self.queue.complete(ticket, self.completion);
        }
    }
}

//! The workers of one run, and the thread that supervises them: the one that called it.
//!
//! The supervisor starts workers, dismisses surplus ones and reports runs that are overdue. In
//! between it sleeps, as a call that waits for the queue: so the clock of the queue is its timer,
//! and a test that moves the clock wakes it. A run with a timeout wakes it only if it sleeps
//! without a timer; otherwise it finds the run when its timer rings.
//!
//! Locks are taken in one order: the queue's, then the roster's or that of the number of workers.
//! No code of a key or of a hook runs under the last two.

use std::hash::Hash;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use requeue_core::binding::{Changes, Member, Next, Wait};
use requeue_core::{Action, Failure, Instant, RateLimiter, RunContext, Storage, Workers};

use super::roster::Roster;
use crate::queue::{Guard, Shared, WorkQueue};
use crate::sync::{Parker, thread};
use crate::waiting::Call;

/// What the threads of one run share.
pub(super) struct Crew<'r, 'w, K, L, S, E, F>
where
    K: Eq + Hash,
    L: RateLimiter,
    S: Storage,
{
    pub(super) queue: &'r WorkQueue<K, L, S>,
    pub(super) workers: Workers<'w, K, E>,
    pub(super) reconcile: F,
    pub(super) roster: Roster<K>,
}

impl<'r, K, L, S, E, F> Crew<'r, '_, K, L, S, E, F>
where
    K: Eq + Hash + Clone + Send + Sync,
    L: RateLimiter,
    S: Storage,
    Shared<K, L, S>: Send + Sync,
    F: Fn(&K, RunContext) -> Result<Action, E> + Sync,
{
    /// Keeps the chosen number of workers until the queue is closed and all have ended.
    pub(super) fn work_off(&self) -> io::Result<()> {
        let waker = Parker::with(|parker| parker.waker().clone());
        let mut changes = self.workers.wanted().changes();
        // `scope` waits for the workers, and passes a panic on.
        thread::scope(|scope| {
            let mut refused = None;
            loop {
                let asked = changes.get();
                // A drain has to end.
                let is_draining = asked == 0 && self.queue.shutting_down();
                let wanted = if is_draining { 1 } else { asked };
                let review = self.roster.review(self.roster.allowed(wanted), |number| {
                    let thread = thread::Builder::new().name(format!("requeue-worker-{number}"));
                    thread.spawn_scoped(scope, move || self.work(number))?;
                    Ok(())
                });
                let review = match review {
                    Ok(review) => review,
                    Err(error) => {
                        refused = Some(error);
                        continue;
                    }
                };
                if review.is_over {
                    return refused.map_or(Ok(()), Err);
                }
                if review.has_surplus {
                    // Those that wait for a key see that they are surplus, and pass on their wake.
                    self.queue.wake_all();
                }
                self.sleep(&mut changes, &waker, review.alarm);
                self.report_overdue();
            }
        })
    }

    /// Sleeps until the supervisor has something to do.
    fn sleep(&self, changes: &mut Changes, waker: &Waker, alarm: Option<Instant>) {
        let call = Wait::for_state(&*self.queue.shared);
        // An error says that it is time for the alarm.
        let _ = self.queue.wait(call, alarm, |session, _| {
            // Registers at every look, because a wake removes the waker.
            let is_set = changes.poll_set(waker).is_ready();
            if is_set || self.roster.has_news(session.shutting_down()) {
                Next::Work(())
            } else {
                Next::Wait { until: None }
            }
        });
    }

    fn report_overdue(&self) {
        for key in self.roster.take_overdue(|| self.queue.clock().now()) {
            self.workers.overdue(&key);
        }
    }

    /// One worker's loop: each turn ends a run and takes the next key under one lock.
    fn work(&self, number: usize) {
        let Some(mut joined) = self.roster.join(number, self.workers.drain_limit()) else {
            return;
        };
        let shared = &*self.queue.shared;
        let mut call = Wait::for_key(shared);
        while let Some(guard) = self.take(&mut joined.member, call) {
            let action = self.reconcile(number, &guard);
            call = Wait::after(guard, action, shared);
        }
    }

    /// Returns the next key, and ends a run before, if that is part of the call. `None` if there is
    /// none any more, or the worker is surplus.
    fn take(&self, member: &mut Member, mut call: Call<'r, K, L, S>) -> Option<Guard<'r, K, L, S>> {
        let shared = &*self.queue.shared;
        if !member.has_to_look(self.allowed())
            && let Some(work) = call.try_get()
        {
            return Some(Guard::new(work, shared));
        }
        let work = self.queue.wait(call, None, |session, getter| {
            member.poll_get(self.allowed(), session, self.queue.clock(), getter)
        });
        let work = work.ok()?;
        Some(Guard::new(work, shared))
    }

    /// Returns how many workers may take keys.
    fn allowed(&self) -> usize {
        self.roster.allowed(self.workers.wanted().get())
    }

    /// One run of one key, by the worker with this number.
    fn reconcile(&self, number: usize, guard: &Guard<'_, K, L, S>) -> Action {
        let (queue, workers) = (guard.queue(), &self.workers);
        let begun = workers.begin(guard, guard.context(), queue);
        let deadline = begun.context().deadline;
        if let Some(deadline) = deadline {
            self.roster.watch(number, guard.key().clone(), deadline);
        }
        // The reconciler answers for its own state, as after any panic on a thread.
        let run = || begun.in_scope(|| (self.reconcile)(guard, begun.context()));
        let result = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result.map_err(Failure::Error),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        if deadline.is_some() {
            self.roster.unwatch(number);
        }
        workers.end(guard, begun, result, queue)
    }
}

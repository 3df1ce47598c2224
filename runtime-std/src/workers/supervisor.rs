//! The workers of one run, and the thread that supervises them: the one that called it.
//!
//! The supervisor spawns workers, dismisses surplus ones and reports runs that are overdue. In
//! between it sleeps, as a call that waits for the queue: so the clock of the queue is its timer,
//! and a test that moves the clock wakes it. A run with a timeout wakes it only if it sleeps
//! without a timer; otherwise it finds the run when its timer fires.
//!
//! Locks are taken in one order: the queue's, then that of the state or of the number of workers.
//! No code of a key or of a hook runs under the last two.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use requeue_core::binding::{Changes, Host, Next, Shared, Slots, Wait, Worker};
use requeue_core::{Action, Failure, Guard, Instant, RunContext, Workers};

use crate::clock::QueueClock;
use crate::sync::{Mutex, Parker, thread};
use crate::waiting::block_on;

/// What the threads of one run share.
pub(super) struct Supervised<'r, 'w, H: Host, E, F> {
    queue: &'r Shared<H>,
    workers: Workers<'w, H::Key, E>,
    reconcile: F,
    state: Mutex<State<H::Key>>,
    /// A thread could not be spawned: those that were spawned with it do not begin, and the others
    /// end.
    is_refused: AtomicBool,
    supervisor: Waker,
}

/// What the workers and the supervisor know of each other.
struct State<K> {
    slots: Slots,
    /// A worker has ended, or the supervisor needs another alarm.
    has_news: bool,
    /// The runs that have a deadline and are not overdue yet, in the order in which they began.
    timed: Vec<TimedRun<K>>,
    /// When the supervisor wakes up by itself.
    alarm: Option<Instant>,
}

struct TimedRun<K> {
    /// The number of its worker.
    worker: usize,
    key: K,
    deadline: Instant,
}

impl<'r, 'w, H, E, F> Supervised<'r, 'w, H, E, F>
where
    H: Host<Key: Clone + Send + Sync, Clock = QueueClock>,
    Shared<H>: Send + Sync,
    F: Fn(&H::Key, RunContext) -> Result<Action, E> + Sync,
{
    pub(super) fn new(queue: &'r Shared<H>, workers: Workers<'w, H::Key, E>, reconcile: F) -> Self {
        let state = State {
            slots: Slots::new(),
            has_news: false,
            timed: Vec::new(),
            alarm: None,
        };
        Self {
            queue,
            workers,
            reconcile,
            state: Mutex::new(state),
            is_refused: AtomicBool::new(false),
            supervisor: Parker::with(|parker| parker.waker().clone()),
        }
    }

    /// Keeps the chosen number of workers until the queue is closed and all have ended.
    pub(super) fn supervise(&self) -> io::Result<()> {
        let mut changes = self.workers.wanted().changes();
        // `scope` waits for the workers, and passes a panic on.
        thread::scope(|scope| {
            let mut result = Ok(());
            loop {
                let wanted = self.allowed(changes.wanted(self.queue.is_shutting_down()));
                let mut state = self.state.lock();
                state.has_news = false;
                let filled = state.slots.fill(wanted, |number| {
                    let thread = thread::Builder::new().name(format!("requeue-worker-{number}"));
                    thread.spawn_scoped(scope, move || self.work(number))?;
                    Ok(())
                });
                let has_surplus = filled.unwrap_or_else(|error| {
                    self.is_refused.store(true, Ordering::Release);
                    result = Err(error);
                    true
                });
                if state.slots.is_over() && state.slots.is_empty() {
                    return result;
                }
                let alarm = state.timed.iter().map(|run| run.deadline).min();
                state.alarm = alarm;
                drop(state);
                if has_surplus {
                    // Those that wait for a key see that they are surplus, and pass on their wake.
                    self.queue.wake_all();
                }
                self.sleep(&mut changes, alarm);
                self.report_overdue();
            }
        })
    }

    /// Sleeps until the supervisor has something to do.
    fn sleep(&self, changes: &mut Changes, alarm: Option<Instant>) {
        let call = Wait::for_state(self.queue);
        // An error says that it is time for the alarm.
        let _ = block_on(call, alarm, |session, _| {
            // Registers at every look, because a wake removes the waker.
            let is_set = changes.poll_set(&self.supervisor).is_ready();
            let state = self.state.lock();
            // A queue that was closed needs a worker to drain it.
            let has_to_drain = session.is_shutting_down() && state.slots.is_empty();
            if is_set || state.has_news || has_to_drain {
                Next::Work(())
            } else {
                Next::Wait { until: None }
            }
        });
    }

    /// Reports the runs that are overdue now, each once.
    fn report_overdue(&self) {
        let mut state = self.state.lock();
        if state.timed.is_empty() {
            return;
        }
        let now = self.queue.clock().now();
        let overdue = state.timed.extract_if(.., |run| run.deadline <= now);
        let overdue: Vec<_> = overdue.collect();
        drop(state);
        for run in overdue {
            self.workers.overdue(&run.key);
        }
    }

    /// One worker's loop: each turn ends a run and takes the next key under one lock.
    fn work(&self, number: usize) {
        let mut present = Present {
            state: &self.state,
            supervisor: &self.supervisor,
            worker: Worker::new(number).drain_limit(self.workers.drain_limit()),
        };
        // Until all have been spawned.
        drop(self.state.lock());
        if self.is_refused.load(Ordering::Acquire) {
            return;
        }
        let mut call = Wait::for_key(self.queue);
        while let Some(guard) = self.take(&mut present.worker, call) {
            let action = self.reconcile(number, &guard);
            call = Wait::after(guard, action, self.queue);
        }
    }

    /// Returns the next key, and ends a run before, if that is part of the call. `None` if there is
    /// none any more, or the worker is surplus.
    fn take(
        &self,
        worker: &mut Worker,
        mut call: Wait<H, &'r Shared<H>>,
    ) -> Option<Guard<H, &'r Shared<H>>> {
        let wanted = || self.allowed(self.workers.wanted().get());
        let work = match worker.try_get(wanted(), &mut call) {
            Some(work) => Ok(work),
            None => block_on(call, None, |session, getter| {
                worker.poll_get(wanted(), session, self.queue.clock(), getter)
            }),
        };
        Some(Guard::new(work.ok()?, self.queue))
    }

    /// Returns how many of these workers may take keys.
    fn allowed(&self, wanted: usize) -> usize {
        if self.is_refused.load(Ordering::Acquire) {
            0
        } else {
            wanted
        }
    }

    /// One run of one key, by the worker with this number.
    fn reconcile(&self, number: usize, guard: &Guard<H, &Shared<H>>) -> Action {
        let (queue, workers) = (guard.queue(), &self.workers);
        let begun = workers.begin(guard, guard.context(), queue);
        let deadline = begun.context().deadline;
        if let Some(deadline) = deadline {
            self.watch(number, guard.key().clone(), deadline);
        }
        // The reconciler answers for its own state, as after any panic on a thread.
        let run = || begun.in_scope(|| (self.reconcile)(guard, begun.context()));
        let result = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result.map_err(Failure::Error),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        if deadline.is_some() {
            self.unwatch(number);
        }
        workers.end(guard, begun, result, queue)
    }

    /// Notes the run of a worker, which has a deadline, until [`unwatch`](Self::unwatch).
    fn watch(&self, worker: usize, key: H::Key, deadline: Instant) {
        let mut state = self.state.lock();
        state.timed.push(TimedRun {
            worker,
            key,
            deadline,
        });
        // An alarm for an earlier run finds this one as well.
        let needs_alarm = state.alarm.is_none_or(|alarm| alarm > deadline);
        if needs_alarm {
            state.alarm = Some(deadline);
            state.has_news = true;
        }
        drop(state);
        if needs_alarm {
            self.supervisor.wake_by_ref();
        }
    }

    /// Notes that the run of a worker has ended.
    fn unwatch(&self, worker: usize) {
        let mut state = self.state.lock();
        let at = state.timed.iter().position(|run| run.worker == worker);
        let ended = at.map(|at| state.timed.remove(at));
        drop(state);
        // The key's `Drop` is foreign code.
        drop(ended);
    }
}

/// A worker that has a slot, which it leaves when this is dropped.
struct Present<'c, K> {
    state: &'c Mutex<State<K>>,
    supervisor: &'c Waker,
    worker: Worker,
}

impl<K> Drop for Present<'_, K> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.slots.leave(&self.worker);
        state.has_news = true;
        drop(state);
        self.supervisor.wake_by_ref();
    }
}

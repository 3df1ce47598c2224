//! What the workers of one run and their supervisor know of each other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Member, Seats};

use crate::sync::Mutex;

/// The workers there are, and their runs that have a deadline.
pub(super) struct Roster<K> {
    state: Mutex<State<K>>,
    /// A thread could not be started: those that were started with it do not begin, and the others
    /// end.
    is_refused: AtomicBool,
    supervisor: Waker,
}

struct State<K> {
    seats: Seats,
    /// A worker has ended, or the supervisor needs another alarm.
    has_news: bool,
    /// The runs that are not overdue yet, in the order in which they began.
    timed: Vec<Timed<K>>,
    /// When the supervisor wakes up by itself.
    alarm: Option<Instant>,
}

struct Timed<K> {
    /// The number of its worker.
    worker: usize,
    key: K,
    deadline: Instant,
}

/// What the supervisor finds.
pub(super) struct Review {
    /// Whether there are more workers than wanted.
    pub(super) has_surplus: bool,
    /// Whether all workers have ended by themselves.
    pub(super) is_over: bool,
    /// When a run is overdue, if the supervisor sleeps.
    pub(super) alarm: Option<Instant>,
}

impl<K> Roster<K> {
    pub(super) fn new(supervisor: Waker) -> Self {
        let state = State {
            seats: Seats::new(),
            has_news: false,
            timed: Vec::new(),
            alarm: None,
        };
        Self {
            state: Mutex::new(state),
            is_refused: AtomicBool::new(false),
            supervisor,
        }
    }

    /// Starts the workers that are missing, each with its number. They begin once all have been
    /// started: see [`join`](Self::join). What happens from here on is [news](Self::has_news).
    pub(super) fn review(
        &self,
        wanted: usize,
        mut start: impl FnMut(usize) -> io::Result<()>,
    ) -> io::Result<Review> {
        let mut state = self.state.lock();
        state.has_news = false;
        while let Some(number) = state.seats.hire(wanted) {
            if let Err(error) = start(number) {
                state.seats.leave(&Member::new(number));
                self.is_refused.store(true, Ordering::Release);
                return Err(error);
            }
        }
        state.alarm = state.timed.iter().map(|run| run.deadline).min();
        let has_ended = state.seats.is_over() || self.is_refused();
        Ok(Review {
            has_surplus: state.seats.has_surplus(wanted),
            is_over: has_ended && state.seats.is_empty(),
            alarm: state.alarm,
        })
    }

    /// A worker joins, until what this returns is dropped. It takes keys for `limit` after
    /// shutdown. `None` if it may not begin.
    pub(super) fn join(&self, number: usize, limit: Option<Duration>) -> Option<Joined<'_, K>> {
        let joined = Joined {
            roster: self,
            member: Member::new(number).drain_limit(limit),
        };
        drop(self.state.lock());
        (!self.is_refused()).then_some(joined)
    }

    /// Returns how many of these workers may go on.
    pub(super) fn allowed(&self, asked: usize) -> usize {
        if self.is_refused() { 0 } else { asked }
    }

    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }

    /// Returns whether there is something to review, in a queue that is closed or not.
    pub(super) fn has_news(&self, is_closed: bool) -> bool {
        let state = self.state.lock();
        // A queue that was closed needs a worker to drain it.
        state.has_news || (is_closed && state.seats.is_empty())
    }

    /// Notes the run of a worker, which has a deadline, until [`unwatch`](Self::unwatch).
    pub(super) fn watch(&self, worker: usize, key: K, deadline: Instant) {
        let run = Timed {
            worker,
            key,
            deadline,
        };
        let mut state = self.state.lock();
        state.timed.push(run);
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

    /// Notes that the run of a worker has ended, if it had a deadline.
    pub(super) fn unwatch(&self, worker: usize) {
        let mut state = self.state.lock();
        let at = state.timed.iter().position(|run| run.worker == worker);
        let ended = at.map(|at| state.timed.remove(at));
        drop(state);
        // The key's `Drop` is foreign code.
        drop(ended);
    }

    /// Returns the runs that are overdue now, each once.
    pub(super) fn take_overdue(&self, now: impl FnOnce() -> Instant) -> Vec<K> {
        let mut state = self.state.lock();
        if state.timed.is_empty() {
            return Vec::new();
        }
        let now = now();
        let overdue = state.timed.extract_if(.., |run| run.deadline <= now);
        overdue.map(|run| run.key).collect()
    }
}

/// A worker that has joined.
pub(super) struct Joined<'c, K> {
    roster: &'c Roster<K>,
    pub(super) member: Member,
}

impl<K> Drop for Joined<'_, K> {
    fn drop(&mut self) {
        let mut state = self.roster.state.lock();
        state.seats.leave(&self.member);
        state.has_news = true;
        drop(state);
        self.roster.supervisor.wake_by_ref();
    }
}

//! Which workers a run has, and which are surplus: the same for every runtime.

use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::Next;
use crate::queue::Session;
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::time::Clock;
use crate::work::Work;

/// The workers that a `run` has, numbered from 0. A worker is surplus if its number is not less
/// than the number of workers wanted. For runtimes, which put this behind a lock.
///
/// # Examples
///
/// ```
/// use requeue_core::binding::{Member, Seats};
///
/// let mut seats = Seats::new();
/// assert_eq!([(); 3].map(|()| seats.hire(2)), [Some(0), Some(1), None]);
/// let first = Member::new(0);
/// seats.leave(&first);
/// assert!(seats.is_over(), "it has left by itself: no more are started");
/// assert_eq!(seats.hire(2), None);
/// ```
#[derive(Debug, Default)]
pub struct Seats {
    /// By number.
    taken: Vec<bool>,
    is_over: bool,
}

impl Seats {
    /// Creates the seats of a run without workers. O(1).
    pub const fn new() -> Self {
        Self {
            taken: Vec::new(),
            is_over: false,
        }
    }

    /// Takes the first free seat, if fewer than `wanted` workers are there, and returns its number:
    /// the runtime starts a worker for it. `None` once a worker has left by itself. O(n) in the
    /// workers.
    pub fn hire(&mut self, wanted: usize) -> Option<usize> {
        if self.is_over {
            return None;
        }
        let free = self.taken.iter().position(|is_taken| !is_taken);
        let number = free.unwrap_or(self.taken.len());
        if number >= wanted {
            return None;
        }
        match self.taken.get_mut(number) {
            Some(taken) => *taken = true,
            None => self.taken.push(true),
        }
        Some(number)
    }

    /// Notes a worker that ends. If that was not because it was surplus, no more are started. O(1).
    pub fn leave(&mut self, member: &Member) {
        if let Some(taken) = self.taken.get_mut(member.number) {
            *taken = false;
        }
        self.is_over |= !member.is_surplus;
    }

    /// Returns whether there is a worker with a number that is not less than `wanted`. O(n).
    pub fn has_surplus(&self, wanted: usize) -> bool {
        self.taken.iter().skip(wanted).any(|is_taken| *is_taken)
    }

    /// Returns whether there are no workers. O(n).
    pub fn is_empty(&self) -> bool {
        !self.has_surplus(0)
    }

    /// Returns whether a worker has ended by itself, because the queue is closed, or by a panic.
    /// O(1).
    pub const fn is_over(&self) -> bool {
        self.is_over
    }
}

/// One worker of a `run`. For runtimes. [`Seats`] has an example.
#[derive(Debug)]
pub struct Member {
    number: usize,
    /// Whether it ends because it is surplus.
    is_surplus: bool,
    /// For how long after shutdown it takes keys.
    drain_limit: Option<Duration>,
}

impl Member {
    /// Creates a worker with this number, which is not surplus. O(1).
    pub const fn new(number: usize) -> Self {
        Self {
            number,
            is_surplus: false,
            drain_limit: None,
        }
    }

    /// Sets for how long after shutdown the worker takes keys:
    /// [`Workers::drain_limit`](crate::Workers::drain_limit).
    pub const fn drain_limit(mut self, limit: Option<Duration>) -> Self {
        self.drain_limit = limit;
        self
    }

    /// Returns whether the worker has to look with [`poll_get`](Self::poll_get). If not, it may
    /// take a key in any way. O(1).
    pub const fn has_to_look(&self, wanted: usize) -> bool {
        self.number >= wanted || self.drain_limit.is_some()
    }

    /// As [`Session::poll_get`], but ends the call of a surplus worker, and of every worker once
    /// the time for draining is over, as in a queue that is closed and has no ready key. A wake
    /// that was sent to the worker passes on. A worker that has to wait in a queue that is closed
    /// looks again when that time is over.
    ///
    /// While the queue drains no worker is surplus: the others may have ended, and a key that was
    /// added during its last run is ready again.
    ///
    /// `clock` is the queue's. It is read only in a queue that is closed, if there is a limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::binding::{Clock, Getter, Member, Next};
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// struct At(u64);
    /// impl Clock for At {
    ///     fn now(&self) -> Instant {
    ///         Instant::EPOCH + Duration::from_secs(self.0)
    ///     }
    /// }
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// queue.at(now).shut_down();
    ///
    /// let mut member = Member::new(0).drain_limit(Some(Duration::from_secs(10)));
    /// let late = member.poll_get(1, &mut queue.at(now), &At(10), &mut Getter::new());
    /// assert_eq!(late, Next::Closed);
    /// let taken = member.poll_get(1, &mut queue.at(now), &At(9), &mut Getter::new());
    /// assert!(matches!(taken, Next::Work(_)));
    /// ```
    pub fn poll_get<K, S, L, M>(
        &mut self,
        wanted: usize,
        session: &mut Session<'_, K, S, L, M>,
        clock: &impl Clock,
        getter: &mut Getter,
    ) -> Next<Work<K>>
    where
        K: Eq + Hash + Clone,
        S: Storage,
        L: RateLimiter,
        M: Metrics,
    {
        self.is_surplus = self.number >= wanted && !session.shutting_down();
        let ends_at = match (session.closed_at(), self.drain_limit) {
            (Some(closed_at), Some(limit)) => Some(closed_at + limit),
            _ => None,
        };
        if ends_at.is_some() {
            // A queue that needs no time was given none.
            session.move_to(clock.now());
        }
        if self.is_surplus || ends_at.is_some_and(|end| session.now() >= end) {
            session.leave(getter);
            return Next::Closed;
        }
        match session.poll_get(getter) {
            Next::Wait { until } => Next::Wait {
                until: [until, ends_at].into_iter().flatten().min(),
            },
            other => other,
        }
    }
}

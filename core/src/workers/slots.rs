//! The workers of a run, and which of them are surplus: the same for every runtime. Owns their
//! numbers, and whether a worker may take a key; never starts a worker.

use alloc::vec::Vec;
use core::hash::Hash;
use core::ops::Deref;
use core::time::Duration;

use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::Next;
use crate::priority::Priorities;
use crate::queue::Session;
use crate::shared::{Host, Shared};
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::Wait;
use crate::work::Work;

/// The slots of the workers that a `run` has, numbered from 0. A worker is surplus if the number of
/// its slot is not less than the number of workers wanted. For runtimes, which put this behind a
/// lock.
///
/// # Examples
///
/// ```
/// use core::convert::Infallible;
/// use requeue::binding::{Slots, Worker};
///
/// let mut slots = Slots::new();
/// let mut spawned = Vec::new();
/// let Ok(has_surplus) = slots.fill(2, |number| -> Result<(), Infallible> {
///     spawned.push(Worker::new(number));
///     Ok(())
/// });
/// assert_eq!((spawned.len(), has_surplus), (2, false));
/// assert!(slots.has_surplus(1), "the second");
///
/// slots.leave(&spawned[0]);
/// assert!(slots.is_over(), "a worker has ended by itself: no more are spawned");
/// ```
#[derive(Debug, Default)]
pub struct Slots {
    /// By number.
    taken: Vec<bool>,
    is_over: bool,
}

impl Slots {
    /// Creates the slots of a run without workers. O(1).
    pub const fn new() -> Self {
        Self {
            taken: Vec::new(),
            is_over: false,
        }
    }

    /// Spawns workers with `spawn` until there are as many as `wanted`, the lowest free number
    /// first. Spawns none once a worker has left by itself. Returns whether there are surplus
    /// workers. O(n) in the workers, and O(n) for each that is spawned.
    ///
    /// # Errors
    ///
    /// That of `spawn`: no more workers are spawned from then on.
    pub fn fill<E>(
        &mut self,
        wanted: usize,
        mut spawn: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        while !self.is_over {
            let free = self.taken.iter().position(|is_taken| !is_taken);
            let number = free.unwrap_or(self.taken.len());
            if number >= wanted {
                break;
            }
            if let Err(error) = spawn(number) {
                self.is_over = true;
                return Err(error);
            }
            match self.taken.get_mut(number) {
                Some(taken) => *taken = true,
                None => self.taken.push(true),
            }
        }
        Ok(self.has_surplus(wanted))
    }

    /// Notes a worker that ends. If that was not because it was surplus, no more are spawned. O(1).
    pub fn leave(&mut self, worker: &Worker) {
        if let Some(taken) = self.taken.get_mut(worker.number) {
            *taken = false;
        }
        self.is_over |= !worker.is_surplus;
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

/// One worker of a `run`. For runtimes. [`Slots`] has an example.
#[derive(Debug)]
pub struct Worker {
    /// The number of its slot.
    number: usize,
    /// Whether it ends because it is surplus.
    is_surplus: bool,
    /// How long after shutdown it still takes keys.
    drain_limit: Option<Duration>,
}

impl Worker {
    /// Creates the worker of the slot with this number, which is not surplus. O(1).
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

    /// As [`Wait::try_get`], but takes no key if the worker may have to end: then it has to look
    /// with [`poll_get`](Self::poll_get).
    #[inline]
    pub fn try_get<H, R>(&self, wanted: usize, call: &mut Wait<H, R>) -> Option<Work<H::Key>>
    where
        H: Host<Key: Clone>,
        R: Deref<Target = Shared<H>>,
    {
        let has_to_look = self.number >= wanted || self.drain_limit.is_some();
        if has_to_look { None } else { call.try_get() }
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
    /// use requeue::binding::{Clock, Getter, Next, Worker};
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// struct At(u64);
    /// impl Clock for At {
    ///     fn now(&self) -> Instant {
    ///         Instant::EPOCH + Duration::from_secs(self.0)
    ///     }
    /// }
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// queue.at(now).shut_down();
    ///
    /// let mut worker = Worker::new(0).drain_limit(Some(Duration::from_secs(10)));
    /// let late = worker.poll_get(1, &mut queue.at(now), &At(10), &mut Getter::new());
    /// assert_eq!(late, Next::Closed);
    /// let taken = worker.poll_get(1, &mut queue.at(now), &At(9), &mut Getter::new());
    /// assert!(matches!(taken, Next::Work(_)));
    /// ```
    pub fn poll_get<K, P, L, S, M>(
        &mut self,
        wanted: usize,
        session: &mut Session<'_, K, P, L, S, M>,
        clock: &impl Clock,
        getter: &mut Getter,
    ) -> Next<Work<K>>
    where
        K: Eq + Hash + Clone,
        P: Priorities,
        L: RateLimiter,
        S: Storage,
        M: Metrics,
    {
        self.is_surplus = self.number >= wanted && !session.is_shutting_down();
        let ends_at = match (session.closed_at(), self.drain_limit) {
            (Some(closed_at), Some(limit)) => Some(closed_at + limit),
            _ => None,
        };
        if ends_at.is_some() {
            // A queue that does not need the time did not get it.
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

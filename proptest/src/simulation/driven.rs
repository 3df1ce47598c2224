//! The queue that is simulated.

use std::any::Any;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Suspends, Ticket, Wake, Work};
use requeue_core::limiter::RateLimiter;
use requeue_core::metrics::Metrics;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_core::{Action, AddOptions, Finished, Instant, Leftover, Queue, Rejected, Scheduled};

/// A queue that a [`Simulation`](super::Simulation) can drive: core's [`Queue`], whatever its
/// limiter and metrics, or one that wraps it. A [`Fixed`](requeue_core::storage::Fixed) one needs
/// [`WithSuspension`](requeue_core::priority::WithSuspension).
///
/// The methods mean what those of [`Queue`] mean.
pub trait Driven<K>: Any {
    /// Adds a key.
    fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Result<Scheduled, Rejected<K>>;
    /// One look of a worker that may have to wait.
    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Taken<K>>;
    /// A worker goes, and may have slept before.
    fn leave(&mut self, getter: &mut Getter);
    /// Completes the run of a key, and says what becomes of it.
    fn finish(&mut self, ticket: Ticket, key: &K, action: Action, now: Instant) -> Finished;
    /// Suspends a key, now or when its run ends, and for so long at most.
    fn suspend(&mut self, key: &K, timeout: Duration, now: Instant) -> bool;
    /// Ends the suspension of a key: the event has come that it waits for.
    fn resume(&mut self, key: &K, now: Instant) -> bool;
    /// The deadline that a key waits for, active or not, and not the end of its suspension.
    fn due(&mut self, key: &K, now: Instant) -> Option<Instant>;
    /// Takes no more keys, and lets those that are ready be worked on.
    fn shut_down(&mut self, now: Instant);
    /// Whether the queue is shut down, and nothing is ready or active.
    fn is_drained(&self) -> bool;
    /// After shutdown: takes out a key that was not worked on.
    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<K>>;
    /// The calls to wake after what was done since the last time.
    fn wake(&mut self) -> Wake;
    /// Whether a key that is to be run has to wait until then although a worker sleeps: its group
    /// may be at its limit, say, or have no token sooner. At first none has to.
    ///
    /// A queue with limits is wrapped, and its wrapper says so by the calls that the queue got, and
    /// not by what it does: otherwise a key that it forgets goes unnoticed.
    fn holds_back(&self, key: &K, until: Instant) -> bool {
        let _ = (key, until);
        false
    }
    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold; the simulation reports it.
    fn assert_valid(&self) {}
}

/// A key that was handed out.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// Completes its run.
    pub ticket: Ticket,
    /// How many failures were remembered of it.
    pub failures: u32,
    /// For how long it was ready; zero where the queue does not keep that.
    pub waited: Duration,
    /// Whether the timeout of its suspension has ended, and not a resume.
    pub timed_out: bool,
}

impl<K> From<Work<K>> for Taken<K> {
    fn from(work: Work<K>) -> Self {
        Self {
            waited: work.waited,
            timed_out: work.timed_out,
            key: work.key,
            ticket: work.ticket,
            failures: work.failures,
        }
    }
}

impl<K, P, L, S, M> Driven<K> for Queue<K, P, L, S, M>
where
    K: Eq + Hash + Clone + 'static,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + Suspends<P> + 'static,
    M: Metrics + 'static,
{
    fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Result<Scheduled, Rejected<K>> {
        self.at(now).add_with(key, options)
    }

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Taken<K>> {
        match self.at(now).poll_get(getter) {
            Next::Work(work) => Next::Work(Taken::from(work)),
            Next::Wait { until } => Next::Wait { until },
            Next::Closed => Next::Closed,
        }
    }

    fn leave(&mut self, getter: &mut Getter) {
        self.at(Instant::EPOCH).leave(getter);
    }

    fn finish(&mut self, ticket: Ticket, _key: &K, action: Action, now: Instant) -> Finished {
        self.at(now).finish(ticket, action)
    }

    fn suspend(&mut self, key: &K, timeout: Duration, now: Instant) -> bool {
        self.at(now).suspend(key, timeout)
    }

    fn resume(&mut self, key: &K, now: Instant) -> bool {
        self.at(now).resume(key)
    }

    fn due(&mut self, key: &K, now: Instant) -> Option<Instant> {
        self.at(now).state(key)?.due
    }

    fn shut_down(&mut self, now: Instant) {
        let _ = self.at(now).begin_drain();
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<K>> {
        let mut session = self.at(now);
        session.take_ready().or_else(|| session.take_delayed())
    }

    fn wake(&mut self) -> Wake {
        self.at(Instant::EPOCH).close()
    }

    fn assert_valid(&self) {
        self.assert_valid();
    }
}

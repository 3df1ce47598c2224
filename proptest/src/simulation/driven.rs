//! The queue that is simulated.

use std::any::Any;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Effect, Getter, Next, Ticket, Work};
use requeue_core::{
    Action, AddOptions, Finished, Instant, Leftover, Metrics, NotActive, Queue, RateLimiter,
    Rejected, Scheduled, Storage,
};

/// A queue that a [`Simulation`](super::Simulation) can drive: core's [`Queue`], whatever its
/// storage, limiter and metrics, or one that wraps it.
///
/// The methods mean what those of [`Queue`] mean.
pub trait Driven<K>: Any {
    /// Adds a key.
    fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Effect<Result<Scheduled, Rejected<K>>>;
    /// One look of a worker that may have to wait.
    fn get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<Taken<K>>>;
    /// A worker goes, and may have slept before.
    fn leave(&mut self, getter: &mut Getter) -> Effect<()>;
    /// Completes the run of a key, and says what becomes of it.
    fn finish(
        &mut self,
        ticket: Ticket,
        key: &K,
        action: Action,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>>;
    /// The deadline that a key waits for, active or not.
    fn due(&mut self, key: &K, now: Instant) -> Effect<Option<Instant>>;
    /// Takes no more keys, and lets those that are ready be worked on.
    fn shut_down(&mut self, now: Instant) -> Effect<()>;
    /// Whether the queue is shut down, and nothing is ready or active.
    fn is_drained(&self) -> bool;
    /// After shutdown: takes out a key that was not worked on.
    fn take_leftover(&mut self, now: Instant) -> Effect<Option<Leftover<K>>>;
    /// Whether a key that is to be run has to wait until then although a worker sleeps: its group
    /// may be at its limit, say, or have no token sooner. At first none has to.
    ///
    /// A queue with limits is wrapped, and its wrapper says so by the calls that the queue got, and
    /// not by what it does: otherwise a key that it forgets goes unnoticed. An example is
    /// `tests/simulation/tenants.rs`.
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
    pub requeues: u32,
    /// For how long it was ready; zero where the queue does not keep that.
    pub waited: Duration,
}

impl<K> From<Work<K>> for Taken<K> {
    fn from(work: Work<K>) -> Self {
        Self {
            waited: work.waited,
            key: work.key,
            ticket: work.ticket,
            requeues: work.requeues,
        }
    }
}

impl<K, S, L, M> Driven<K> for Queue<K, S, L, M>
where
    K: Eq + Hash + Clone + 'static,
    S: Storage + 'static,
    L: RateLimiter + 'static,
    M: Metrics + 'static,
{
    fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Effect<Result<Scheduled, Rejected<K>>> {
        self.add_with(key, options, now)
    }

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<Taken<K>>> {
        self.poll_get(now, getter).map(|next| match next {
            Next::Work(work) => Next::Work(Taken::from(work)),
            Next::Wait { until } => Next::Wait { until },
            Next::Closed => Next::Closed,
        })
    }

    fn leave(&mut self, getter: &mut Getter) -> Effect<()> {
        self.leave(getter)
    }

    fn finish(
        &mut self,
        ticket: Ticket,
        _key: &K,
        action: Action,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>> {
        self.finish(ticket, action, now)
    }

    fn due(&mut self, key: &K, now: Instant) -> Effect<Option<Instant>> {
        self.state(key, now)
            .map(|state| state.and_then(|state| state.due))
    }

    fn shut_down(&mut self, now: Instant) -> Effect<()> {
        self.begin_drain(now).map(|_| ())
    }

    fn is_drained(&self) -> bool {
        self.is_drained()
    }

    fn take_leftover(&mut self, now: Instant) -> Effect<Option<Leftover<K>>> {
        let ready = self.take_ready();
        if ready.value.is_some() {
            return ready;
        }
        let delayed = self.take_delayed(now);
        ready.map(|_| delayed)
    }

    fn assert_valid(&self) {
        self.assert_valid();
    }
}

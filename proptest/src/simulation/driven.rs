//! The queue that is simulated: core's own, whatever its limiter, its storage and its metrics.

use std::any::Any;
use std::hash::Hash;
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Suspends, Ticket, Wake, Work};
use requeue_core::limiter::RateLimiter;
use requeue_core::metrics::Metrics;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_core::{Action, AddOptions, Finished, Instant, Leftover, Queue, Rejected, Scheduled};

/// The methods mean what those of [`Queue`] mean.
pub trait Driven<K>: Any {
    fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Result<Scheduled, Rejected<K>>;
    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Work<K>>;
    fn leave(&mut self, getter: &mut Getter);
    fn finish(&mut self, ticket: Ticket, action: Action, now: Instant) -> Finished;
    fn suspend(&mut self, key: &K, timeout: Duration, now: Instant) -> bool;
    fn resume(&mut self, key: &K, now: Instant) -> bool;
    fn is_idle(&mut self, now: Instant) -> bool;
    fn shut_down(&mut self, now: Instant);
    fn is_shutting_down(&self) -> bool;
    /// After shutdown: takes out a key that was not worked on.
    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<K>>;
    /// The calls to wake after what was done since the last time.
    fn wake(&mut self) -> Wake;
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

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Work<K>> {
        self.at(now).poll_get(getter)
    }

    fn leave(&mut self, getter: &mut Getter) {
        self.at(Instant::EPOCH).leave(getter);
    }

    fn finish(&mut self, ticket: Ticket, action: Action, now: Instant) -> Finished {
        self.at(now).finish(ticket, action)
    }

    fn suspend(&mut self, key: &K, timeout: Duration, now: Instant) -> bool {
        self.at(now).suspend(key, timeout)
    }

    fn resume(&mut self, key: &K, now: Instant) -> bool {
        self.at(now).resume(key)
    }

    fn is_idle(&mut self, now: Instant) -> bool {
        self.at(now).is_idle()
    }

    fn shut_down(&mut self, now: Instant) {
        let _ = self.at(now).begin_drain();
    }

    fn is_shutting_down(&self) -> bool {
        self.is_shutting_down()
    }

    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<K>> {
        let mut session = self.at(now);
        session.take_ready().or_else(|| session.take_delayed())
    }

    fn wake(&mut self) -> Wake {
        self.at(Instant::EPOCH).close()
    }
}

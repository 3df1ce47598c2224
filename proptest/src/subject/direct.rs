//! The state machine itself: core's `Queue`, with the time handed in.

use std::time::Duration;

use requeue_core::{
    AddOptions, Added, AddedMany, Completion, Drained, Effect, Finished, Fixed, Getter, Growable,
    Index, Instant, Metrics, Next, NoMetrics, NotActive, Priorities, Queue, RandomState, Rejected,
    Step, Storage, Wake,
};

use super::{
    Drain, Handed, Key, Known, Left, Retried, Setup, Subject, Ticket, Totals, Turn, map_next,
};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// core's `Queue` with storage `S` and metrics `M`.
///
/// Without metrics the time handed in is nonsense wherever the queue says that it does not need it.
pub struct Direct<S: Storage, M: Metrics = Figures> {
    queue: Queue<Key, S, AnyLimiter, M>,
    now: Instant,
    wake: Wake,
    nonsense: bool,
}

/// A storage that a queue under test can be made of.
pub trait Home: Storage + Sized {
    /// An empty queue.
    fn build<M: Metrics>(setup: &Setup, metrics: M) -> Queue<Key, Self, AnyLimiter, M>;
}

impl<const N: usize, I: Index, P: Priorities> Home for Fixed<N, I, P> {
    fn build<M: Metrics>(setup: &Setup, metrics: M) -> Queue<Key, Self, AnyLimiter, M> {
        Queue::with_metrics(setup.limiter.build(), metrics)
    }
}

impl<P: Priorities> Home for Growable<RandomState, P> {
    fn build<M: Metrics>(setup: &Setup, metrics: M) -> Queue<Key, Self, AnyLimiter, M> {
        let mut queue =
            Queue::from_parts(setup.limiter.build(), metrics, RandomState::default(), 0);
        queue.limit_memories(setup.memories_max);
        queue
    }
}

/// Metrics that a test can look at, or none.
pub trait Note: Metrics + Default {
    /// What was written down.
    fn figures(&self) -> Option<Figures>;
}

impl Note for Figures {
    fn figures(&self) -> Option<Figures> {
        Some(self.clone())
    }
}

impl Note for NoMetrics {
    fn figures(&self) -> Option<Figures> {
        None
    }
}

impl<S: Storage, M: Metrics> Direct<S, M> {
    /// The time, or anything if it does not matter.
    fn any_time(&mut self) -> Instant {
        if self.queue.needs_time() {
            return self.now;
        }
        self.nonsense = !self.nonsense;
        if self.nonsense {
            Instant::NEVER
        } else {
            Instant::EPOCH
        }
    }

    fn time_for(&mut self, completion: Completion) -> Instant {
        if completion.needs_time() {
            self.now
        } else {
            self.any_time()
        }
    }

    /// Takes note of whom an operation wakes.
    fn obey<T>(&mut self, effect: Effect<T>) -> T {
        match (self.wake, effect.wake) {
            (_, Wake::None) | (Wake::All, _) => {}
            (_, wake) => self.wake = wake,
        }
        effect.value
    }
}

impl<S: Home, M: Note> Subject for Direct<S, M> {
    fn new(setup: &Setup) -> Self {
        Self {
            queue: S::build(setup, M::default()),
            now: Instant::EPOCH,
            wake: Wake::None,
            nonsense: false,
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.queue.capacity()
    }

    fn levels(&self) -> u8 {
        S::Priorities::LEVELS
    }

    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        let now = self.any_time();
        let effect = self.queue.add(key, now);
        self.obey(effect)
    }

    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>> {
        let effect = self.queue.add_after(key, delay, self.now);
        self.obey(effect)
    }

    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        let effect = self.queue.add_at(key, due, self.now);
        self.obey(effect)
    }

    fn add_rate_limited(&mut self, key: Key) -> Result<Retried, Rejected<Key>> {
        let effect = self.queue.add_rate_limited(key, self.now);
        self.obey(effect).map(Retried::from)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Retried, Rejected<Key>> {
        let now = if options.needs_time() {
            self.now
        } else {
            self.any_time()
        };
        let effect = self.queue.add_with(key, options, now);
        self.obey(effect).map(Retried::from)
    }

    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        let now = self.any_time();
        let mut rejected = Vec::new();
        let keys = keys.iter().copied();
        let effect = self.queue.add_many(keys, now, |key| rejected.push(key));
        (self.obey(effect), rejected)
    }

    fn forget(&mut self, key: Key) -> u32 {
        self.queue.forget(&key)
    }

    fn try_get(&mut self) -> Option<Handed> {
        let now = self.any_time();
        let effect = self.queue.try_get(now);
        self.obey(effect).map(Handed::from)
    }

    fn get(&mut self, getter: &mut Getter) -> Next<Handed> {
        let now = self.any_time();
        let effect = self.queue.get(now, getter);
        map_next(self.obey(effect), Handed::from)
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>> {
        let now = self.any_time();
        let mut taken = Vec::new();
        let effect = self
            .queue
            .get_many(max, now, getter, |work| taken.push(Handed::from(work)));
        map_next(self.obey(effect), |count| {
            assert_eq!(count, taken.len(), "as many keys as the queue says");
            taken
        })
    }

    fn next(&mut self, ticket: Ticket, completion: Completion, getter: &mut Getter) -> Turn {
        let Ok(ticket) = ticket.core() else {
            return (Err(NotActive), self.get(getter));
        };
        let now = self.time_for(completion);
        let effect = self.queue.next(ticket, completion, now, getter);
        let Step { finished, next, .. } = self.obey(effect);
        (finished, map_next(next, Handed::from))
    }

    fn leave(&mut self, getter: &mut Getter) {
        let effect = self.queue.leave(getter);
        self.obey(effect);
    }

    fn done_key(&mut self, key: Key) -> Result<(), NotActive> {
        let now = self.any_time();
        let effect = self.queue.done_key(&key, now);
        self.obey(effect)
    }

    fn done(&mut self, ticket: Ticket) -> Result<(), NotActive> {
        let now = self.any_time();
        let effect = self.queue.done(ticket.core()?, now);
        self.obey(effect)
    }

    fn complete_many(
        &mut self,
        tickets: Vec<Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        let now = self.time_for(completion);
        let tickets = tickets.into_iter().filter_map(|ticket| ticket.core().ok());
        let effect = self.queue.complete_many(tickets, completion, now);
        self.obey(effect)
    }

    fn complete(&mut self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        let now = self.time_for(completion);
        let effect = self.queue.complete(ticket.core()?, completion, now);
        self.obey(effect)
    }

    fn shut_down(&mut self) {
        let effect = self.queue.shut_down(self.now);
        self.obey(effect);
    }

    fn begin_drain(&mut self) -> Drain {
        let effect = self.queue.shut_down_with_drain(self.now);
        Drain::Core(self.obey(effect))
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        match drain {
            Drain::Core(drain) => self.queue.drained(drain),
            Drain::Numbered(_) => Drained::Pending,
        }
    }

    fn take_delayed(&mut self) -> Option<Left> {
        self.queue.take_delayed(self.now).map(Left::from)
    }

    fn take_ready(&mut self) -> Option<Left> {
        let effect = self.queue.take_ready();
        self.obey(effect).map(Left::from)
    }

    fn len(&mut self) -> usize {
        let now = self.any_time();
        let effect = self.queue.len(now);
        self.obey(effect)
    }

    fn state(&mut self, key: Key) -> Option<Known> {
        let now = self.any_time();
        let effect = self.queue.state(&key, now);
        self.obey(effect).map(Known::from)
    }

    fn contains(&mut self, key: Key) -> bool {
        self.queue.contains(&key)
    }

    fn num_requeues(&mut self, key: Key) -> u32 {
        self.queue.num_requeues(&key)
    }

    fn totals(&mut self) -> Totals {
        Totals {
            active: self.queue.active_len(),
            delayed: self.queue.delayed_len(),
            held: self.queue.held_len(),
            next_deadline: self.queue.next_deadline(),
        }
    }

    fn shutting_down(&mut self) -> bool {
        self.queue.shutting_down()
    }

    fn report_running(&mut self) {
        let effect = self.queue.report_running(self.now);
        self.obey(effect);
    }

    fn figures(&mut self) -> Option<Figures> {
        self.queue.metrics().figures()
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    fn asleep(&mut self) -> Option<usize> {
        Some(self.queue.asleep())
    }

    fn wakes(&mut self) -> Option<Wake> {
        Some(std::mem::take(&mut self.wake))
    }

    fn assert_valid(&mut self) {
        self.queue.assert_valid();
    }
}

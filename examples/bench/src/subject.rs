//! One interface for all measured layouts.

use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use requeue_core::binding::Reporter;
use requeue_core::binding::Ticket;
use requeue_core::limiter::Exponential;
use requeue_core::priority::{Groups, Plain, Priorities};
use requeue_core::storage::Growable;
use requeue_core::{Instant, Queue, Session};
use requeue_std::{Guard, WorkQueue};

use crate::port::Port;

/// A keyed queue as plain data. Time is a number of nanoseconds.
pub trait Subject<K> {
    /// The ticket that completes a run, besides the key.
    type Run;

    /// Marks a key as having work to do.
    fn add(&mut self, key: K, now: u64);
    /// Adds a key at a point in time.
    fn add_at(&mut self, key: K, due: u64, now: u64);
    /// Counts a failure, adds the key after the limiter's delay, and returns the delay.
    fn add_rate_limited(&mut self, key: K, now: u64) -> u64;
    /// Makes due keys ready, and hands out the first ready key.
    fn get(&mut self, now: u64) -> Option<(K, Self::Run)>;
    /// Completes a run.
    fn done(&mut self, key: &K, run: Self::Run, now: u64);
    /// Forgets the failures of a key.
    fn forget(&mut self, key: &K);
}

/// The queue of this project, with growable storage and client-go's limiter per key.
pub type Ours<K, H = RandomState> = Queue<K, Plain, Exponential, Growable<H>>;

pub use foldhash::fast::RandomState;

/// An empty queue of ours.
pub fn ours<K: Eq + Hash, H: BuildHasher + Default>() -> Ours<K, H> {
    Queue::from_parts(
        requeue_core::limiter::default_item_based(),
        (),
        H::default(),
        0,
    )
}

/// The same with groups: `group_of` computes the group of a key.
pub fn grouped<K: Eq + Hash, H: BuildHasher + Default>(
    group_of: fn(&K) -> u64,
) -> Queue<K, Groups<u64>, Exponential, Growable<H>> {
    let limiter = requeue_core::limiter::default_item_based();
    Queue::growable_with_groups(limiter, (), H::default(), 0, group_of)
}

impl<K, H, P> Subject<K> for Queue<K, P, Exponential, Growable<H>>
where
    K: Eq + Hash + Clone,
    H: BuildHasher,
    P: Priorities,
{
    type Run = Ticket;

    #[inline]
    fn add(&mut self, key: K, now: u64) {
        closed(self, now, |session| session.add(key).is_ok());
    }

    #[inline]
    fn add_at(&mut self, key: K, due: u64, now: u64) {
        closed(self, now, |session| {
            session.add_at(key, Instant::from_nanos(due)).is_ok()
        });
    }

    #[inline]
    fn add_rate_limited(&mut self, key: K, now: u64) -> u64 {
        let limited = closed(self, now, |session| session.add_rate_limited(key));
        limited.map_or(0, |limited| nanos(limited.delay))
    }

    #[inline]
    fn get(&mut self, now: u64) -> Option<(K, Ticket)> {
        let work = closed(self, now, |session| session.try_get())?;
        Some((work.key, work.ticket))
    }

    #[inline]
    fn done(&mut self, _: &K, run: Ticket, now: u64) {
        let _ = closed(self, now, |session| session.release(run));
    }

    #[inline]
    fn forget(&mut self, key: &K) {
        self.at(Instant::EPOCH).forget(key);
    }
}

/// A session of one operation, closed as a runtime closes it.
#[inline(always)]
fn closed<K, H, P, T>(
    queue: &mut Queue<K, P, Exponential, Growable<H>>,
    now: u64,
    work: impl FnOnce(&mut Session<'_, K, P, Exponential, Growable<H>>) -> T,
) -> T
where
    K: Eq + Hash,
    H: BuildHasher,
    P: Priorities,
{
    let mut session = queue.at(Instant::from_nanos(now));
    let value = work(&mut session);
    let _ = session.close();
    value
}

/// The queue of `requeue-std`, with its lock and its guards. Never dropped, so that guards can be
/// kept.
pub struct Locked<K, P, H>(&'static WorkQueue<K, P, Exponential, Growable<H>>)
where
    K: Eq + Hash + 'static,
    P: Priorities + 'static,
    H: BuildHasher + 'static;

impl<K: Eq + Hash, H: BuildHasher + Default> Locked<K, Plain, H> {
    /// Without groups.
    pub fn plain() -> Self {
        let limiter = requeue_core::limiter::default_item_based();
        let metrics = Reporter::default();
        Self::of(Queue::from_parts(limiter, metrics, H::default(), 0))
    }
}

impl<K: Eq + Hash, H: BuildHasher + Default> Locked<K, Groups<u64>, H> {
    /// With groups: `group_of` computes the group of a key.
    pub fn grouped(group_of: fn(&K) -> u64) -> Self {
        let limiter = requeue_core::limiter::default_item_based();
        let (metrics, hasher) = (Reporter::default(), H::default());
        Self::of(Queue::growable_with_groups(
            limiter, metrics, hasher, 0, group_of,
        ))
    }
}

impl<K: Eq + Hash, P: Priorities, H: BuildHasher> Locked<K, P, H> {
    fn of(queue: Queue<K, P, Exponential, Growable<H>, Reporter>) -> Self {
        let clock = requeue_std::ManualClock::new();
        Self(Box::leak(Box::new(WorkQueue::from_queue(queue, clock))))
    }
}

impl<K, P, H> Subject<K> for Locked<K, P, H>
where
    K: Eq + Hash + Clone + 'static,
    P: Priorities + 'static,
    H: BuildHasher + 'static,
{
    type Run = Guard<'static, K, P, Exponential, Growable<H>>;

    #[inline]
    fn add(&mut self, key: K, _: u64) {
        let _ = self.0.add(key);
    }

    fn add_at(&mut self, key: K, due: u64, _: u64) {
        let _ = self.0.add_at(key, Instant::from_nanos(due));
    }

    fn add_rate_limited(&mut self, key: K, _: u64) -> u64 {
        let limited = self.0.add_rate_limited(key);
        limited.map_or(0, |limited| nanos(limited.delay))
    }

    #[inline]
    fn get(&mut self, _: u64) -> Option<(K, Self::Run)> {
        let guard = self.0.try_get()?;
        Some((guard.key().clone(), guard))
    }

    #[inline]
    fn done(&mut self, _: &K, run: Self::Run, _: u64) {
        run.release();
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Subject<K> for Port<K, H> {
    type Run = ();

    #[inline]
    fn add(&mut self, key: K, _: u64) {
        Port::add(self, key);
    }

    #[inline]
    fn add_at(&mut self, key: K, due: u64, now: u64) {
        Port::add_at(self, key, due, now);
    }

    #[inline]
    fn add_rate_limited(&mut self, key: K, now: u64) -> u64 {
        Port::add_rate_limited(self, key, now)
    }

    #[inline]
    fn get(&mut self, now: u64) -> Option<(K, ())> {
        self.release_due(now);
        Some((Port::get(self)?, ()))
    }

    #[inline]
    fn done(&mut self, key: &K, (): (), _: u64) {
        Port::done(self, key);
    }

    #[inline]
    fn forget(&mut self, key: &K) {
        Port::forget(self, key);
    }
}

/// A subject that does nothing but hand out the key that was added last: what a workload itself
/// costs.
#[derive(Debug)]
pub struct Nothing<K>(Option<K>);

impl<K> Default for Nothing<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K> Subject<K> for Nothing<K> {
    type Run = ();

    #[inline(never)]
    fn add(&mut self, key: K, _: u64) {
        self.0 = Some(key);
    }

    fn add_at(&mut self, _: K, _: u64, _: u64) {}

    fn add_rate_limited(&mut self, _: K, _: u64) -> u64 {
        0
    }

    #[inline(never)]
    fn get(&mut self, _: u64) -> Option<(K, ())> {
        Some((self.0.take()?, ()))
    }

    #[inline(never)]
    fn done(&mut self, _: &K, (): (), _: u64) {}

    fn forget(&mut self, _: &K) {}
}

/// A subject that writes down what it hands out, to compare two that are to agree.
#[derive(Debug)]
pub struct Traced<Q, K> {
    subject: Q,
    handed_out: Vec<K>,
}

impl<Q, K> Traced<Q, K> {
    /// Writes down what `subject` hands out.
    pub const fn new(subject: Q) -> Self {
        Self {
            subject,
            handed_out: Vec::new(),
        }
    }

    /// The keys that were handed out, in order.
    pub fn handed_out(&self) -> &[K] {
        &self.handed_out
    }
}

impl<K: Clone, Q: Subject<K>> Subject<K> for Traced<Q, K> {
    type Run = Q::Run;

    fn add(&mut self, key: K, now: u64) {
        self.subject.add(key, now);
    }

    fn add_at(&mut self, key: K, due: u64, now: u64) {
        self.subject.add_at(key, due, now);
    }

    fn add_rate_limited(&mut self, key: K, now: u64) -> u64 {
        self.subject.add_rate_limited(key, now)
    }

    fn get(&mut self, now: u64) -> Option<(K, Q::Run)> {
        let (key, run) = self.subject.get(now)?;
        self.handed_out.push(key.clone());
        Some((key, run))
    }

    fn done(&mut self, key: &K, run: Q::Run, now: u64) {
        self.subject.done(key, run, now);
    }

    fn forget(&mut self, key: &K) {
        self.subject.forget(key);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

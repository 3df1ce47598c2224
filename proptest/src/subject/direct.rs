//! The state machine itself: core's `Queue`, with the time handed in.

use std::time::Duration;

use requeue_core::binding::{Index, Next, Session, Sweep, Wake};
use requeue_core::metrics::Metrics;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Added, Finished, GroupState, Instant, Policy, Rejected};

use super::groups::Keys;
use super::held::Held;
use super::{
    Abilities, Answer, Configuration, GroupFigures, Handed, Key, Kind, Operation, Scheduled,
    Sleeper, Subject, in_order, map_next,
};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// core's `Queue` with priorities `P`, storage `S` and metrics `M`, for at most `MAX` keys if `S`
/// grows.
///
/// Without metrics the time handed in is nonsense wherever the queue says that it does not need it.
pub struct Direct<P: Kind, S: Storage, M: Metrics = Figures, const MAX: usize = { usize::MAX }> {
    queue: Keys<P, S, M>,
    due_keys_max: u8,
    now: Instant,
    wake: Wake,
    nonsense: bool,
    held: Held,
}

/// A session of a queue under test.
pub(super) type Access<'q, P, S, M> = Session<'q, Key, P, AnyLimiter, S, M>;

/// A storage that a queue under test can be made of.
pub trait Home: Storage + Sized {
    /// Whether how many keys fit can be changed.
    const LIMITS_KEYS: bool;

    /// Whether a queue of this kind can have a policy, and debounces.
    fn governs<P: Kind>() -> bool;

    /// Whether a queue of this kind can suspend keys.
    fn suspends<P: Kind>() -> bool;

    /// Suspends a key, or resumes it without a timeout.
    fn suspend<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        timeout: Option<Duration>,
    ) -> bool;

    /// Changes how many keys fit, if that can be changed.
    fn limit_keys<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, keys: usize);

    /// Changes how many keys may be kept for their failures alone. Returns whether it can be.
    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> bool;

    /// Changes the policy.
    fn set_policy<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, policy: Policy);

    /// Debounces an add.
    fn add_debounced<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        times: [Duration; 2],
    ) -> Result<Added, Rejected<Key>>;

    /// An empty queue.
    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M>;
}

impl<const N: usize, I: Index> Home for Fixed<N, I> {
    const LIMITS_KEYS: bool = false;

    fn governs<P: Kind>() -> bool {
        P::GOVERNS
    }

    fn suspends<P: Kind>() -> bool {
        P::SUSPENDS
    }

    fn suspend<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        timeout: Option<Duration>,
    ) -> bool {
        P::suspend(session, key, timeout)
    }

    fn limit_keys<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, keys: usize) {
        let _ = (session, keys);
    }

    fn limit_failure_records<P: Kind, M: Metrics>(_: &mut Keys<P, Self, M>, _: usize) -> bool {
        false
    }

    fn set_policy<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, policy: Policy) {
        P::set_policy(session, policy);
    }

    fn add_debounced<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        times: [Duration; 2],
    ) -> Result<Added, Rejected<Key>> {
        P::add_debounced(session, key, times)
    }

    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M> {
        let mut queue = P::fixed(setup.limiter.build(), metrics);
        P::set_policy(&mut queue.at(Instant::EPOCH), setup.policy.build());
        queue.limit_due_keys(setup.due_keys_max);
        queue
    }
}

impl Home for Growable {
    const LIMITS_KEYS: bool = true;

    fn governs<P: Kind>() -> bool {
        true
    }

    fn suspends<P: Kind>() -> bool {
        true
    }

    fn suspend<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        timeout: Option<Duration>,
    ) -> bool {
        match timeout {
            Some(timeout) => session.suspend(&key, timeout),
            None => session.resume(&key),
        }
    }

    fn limit_keys<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, keys: usize) {
        session.limit_keys(keys);
    }

    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> bool {
        queue.limit_failure_records(keys);
        true
    }

    fn set_policy<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, policy: Policy) {
        session.set_policy(policy);
    }

    fn add_debounced<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        key: Key,
        [quiet, max]: [Duration; 2],
    ) -> Result<Added, Rejected<Key>> {
        session.add_debounced(key, quiet, max)
    }

    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M> {
        let mut queue = P::growable(setup.limiter.build(), metrics);
        if !setup.policy.is_default() {
            queue.at(Instant::EPOCH).set_policy(setup.policy.build());
        }
        queue.at(Instant::EPOCH).limit_keys(setup.max_keys);
        queue.limit_failure_records(setup.failure_records_max);
        queue.limit_due_keys(setup.due_keys_max);
        queue
    }
}

/// The figures of a group, if it has keys.
pub(super) fn figures(state: GroupState) -> Option<GroupFigures> {
    (state.total > 0).then_some(GroupFigures {
        ready: state.ready,
        active: state.active,
        held: state.total,
        blocked: state.blocked,
        paused: state.paused,
    })
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

impl Note for () {
    fn figures(&self) -> Option<Figures> {
        None
    }
}

impl<P: Kind, S: Storage, M: Metrics, const MAX: usize> Direct<P, S, M, MAX> {
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

    /// An operation that reads the clock, or one that need not. Records which getters it wakes.
    fn with<T>(&mut self, is_timed: bool, work: impl FnOnce(&mut Access<'_, P, S, M>) -> T) -> T {
        let now = if is_timed { self.now } else { self.any_time() };
        let mut session = self.queue.at(now);
        let value = work(&mut session);
        self.wake = self.wake | session.close();
        value
    }

    fn timed<T>(&mut self, work: impl FnOnce(&mut Access<'_, P, S, M>) -> T) -> T {
        self.with(true, work)
    }

    fn untimed<T>(&mut self, work: impl FnOnce(&mut Access<'_, P, S, M>) -> T) -> T {
        self.with(false, work)
    }

    /// Steps, until one was the last.
    fn swept(
        &mut self,
        mut step: impl FnMut(&mut Access<'_, P, S, M>, &mut Sweep) -> bool,
    ) -> Sweep {
        let mut sweep = Sweep::new();
        while self.untimed(|session| step(session, &mut sweep)) {}
        sweep
    }
}

impl<P: Kind, S: Home, M: Note, const MAX: usize> Direct<P, S, M, MAX> {
    /// One look of a call that may wait, after something else.
    fn look<T>(
        &mut self,
        sleeper: Sleeper,
        is_timed: bool,
        before: impl FnOnce(&mut Access<'_, P, S, M>) -> T,
    ) -> (T, Next<Handed>) {
        let mut getter = self.held.getter(sleeper);
        let (value, next) = self.with(is_timed, |queue| {
            (before(queue), queue.poll_get(&mut getter))
        });
        self.held.keep(sleeper, getter, &next);
        (value, self.held.hand_next(next))
    }
}

impl<P: Kind, S: Home, M: Note, const MAX: usize> Subject for Direct<P, S, M, MAX> {
    fn new(setup: &Configuration) -> Self {
        Self {
            queue: S::build(&setup.for_at_most(MAX), M::default()),
            due_keys_max: setup.due_keys_max,
            now: Instant::EPOCH,
            wake: Wake::NONE,
            nonsense: false,
            held: Held::default(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.queue.stats().max_keys
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            due_keys_max: Some(self.due_keys_max),
            levels: P::LEVELS,
            groups: P::GROUPS,
            ages: P::AGES,
            limits_keys: S::LIMITS_KEYS,
            governs: S::governs::<P>(),
            suspends: S::suspends::<P>(),
            ..Abilities::default()
        }
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        match *operation {
            Operation::Add(key) => Answer::Added(self.untimed(|queue| queue.add(key))),
            Operation::AddAfter(key, delay) => {
                Answer::Added(self.timed(|queue| queue.add_after(key, delay)))
            }
            Operation::AddAt(key, due) => Answer::Added(self.timed(|queue| queue.add_at(key, due))),
            Operation::AddRateLimited(key) => {
                let added = self.timed(|queue| queue.add_rate_limited(key));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddWith(key, options) => {
                let added = self.with(options.needs_time(), |queue| queue.add_with(key, options));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddDisplacing(key, options) => {
                let add = |queue: &mut Access<'_, P, S, M>| queue.add_displacing(key, options);
                let added = self.with(options.needs_time(), add);
                Answer::Displaced(added.map(|(scheduled, left)| (scheduled.into(), left)))
            }
            Operation::AddDebounced(key, quiet, max) => {
                let times = [quiet, max];
                Answer::Added(self.timed(|queue| S::add_debounced(queue, key, times)))
            }
            Operation::AddMany(ref keys) => {
                let mut rejected = Vec::new();
                let keys = keys.iter().copied();
                let many = self.untimed(|queue| queue.add_many(keys, |key| rejected.push(key)));
                Answer::AddedMany(many, rejected)
            }
            Operation::Restore(left) => {
                let is_timed = !left.left.is_zero();
                Answer::Restored(self.with(is_timed, |queue| queue.restore(left)))
            }
            Operation::Forget(key) => {
                Answer::Count(self.timed(|queue| queue.forget(&key)) as usize)
            }
            Operation::CancelKey(key) => Answer::State(self.untimed(|queue| queue.cancel(&key))),
            Operation::CancelDelay(key) => {
                Answer::Due(self.untimed(|queue| queue.cancel_delay(&key)))
            }
            Operation::Expedite(key) => Answer::Is(self.untimed(|queue| queue.expedite(&key))),
            Operation::ExpediteAll => {
                let _ = self.swept(|queue, sweep| queue.expedite_some(sweep));
                Answer::Done
            }
            Operation::RetainBelow(key) => {
                let sweep = self.swept(|queue, sweep| queue.retain_some(sweep, |it| *it < key));
                Answer::Count(sweep.cancelled())
            }
            Operation::Pause => {
                self.timed(|queue| queue.pause());
                Answer::Done
            }
            Operation::Unpause => {
                self.timed(|queue| queue.unpause());
                Answer::Done
            }
            Operation::Suspend(key, timeout) => {
                Answer::Is(self.timed(|queue| S::suspend(queue, key, Some(timeout))))
            }
            Operation::Resume(key) => {
                Answer::Is(self.untimed(|queue| S::suspend(queue, key, None)))
            }
            Operation::Order(ref order) => {
                self.untimed(|queue| P::order(queue, order));
                Answer::Done
            }
            Operation::AgeAfter(after) => {
                self.timed(|queue| P::age(queue, after));
                Answer::Done
            }
            Operation::LimitKeys(keys) => {
                self.timed(|queue| S::limit_keys(queue, keys));
                Answer::Done
            }
            Operation::LimitFailureRecords(keys) => {
                match S::limit_failure_records(&mut self.queue, keys) {
                    true => Answer::Done,
                    false => Answer::Lacking,
                }
            }
            Operation::LimitDueKeys(keys) => {
                self.due_keys_max = keys;
                self.queue.limit_due_keys(keys);
                Answer::Done
            }
            Operation::SetPolicy(ref policy) => {
                self.untimed(|queue| S::set_policy(queue, policy.build()));
                Answer::Done
            }
            Operation::TryGet => {
                let work = self.untimed(|queue| queue.try_get());
                Answer::Work(work.map(|work| self.held.hand(work)))
            }
            Operation::Get(sleeper) => Answer::Next(self.look(sleeper, false, |_| ()).1),
            Operation::GetMany(max, sleeper) => {
                let (mut getter, mut taken) = (self.held.getter(sleeper), Vec::new());
                let next = self.untimed(|queue| {
                    queue.poll_get_many(max, &mut getter, |work| taken.push(work))
                });
                self.held.keep(sleeper, getter, &next);
                Answer::NextMany(map_next(next, |count| {
                    assert_eq!(count, taken.len(), "as many keys as the queue says");
                    taken.into_iter().map(|work| self.held.hand(work)).collect()
                }))
            }
            Operation::Next(run, action, sleeper) => {
                let ticket = self.held.ticket(run);
                let (finished, next) = self.look(sleeper, action.needs_time(), |queue| {
                    ticket.map_or(Finished::Stale, |ticket| queue.finish(ticket, action))
                });
                Answer::Turn(finished, next)
            }
            Operation::Leave(sleeper) => {
                let mut getter = self.held.getter(sleeper);
                self.timed(|queue| queue.leave(&mut getter));
                Answer::Done
            }
            Operation::DoneKey(key) => {
                Answer::Finished(self.untimed(|queue| queue.release_key(&key)))
            }
            Operation::Done(run) => Answer::Finished(match self.held.ticket(run) {
                Some(ticket) => self.untimed(|queue| queue.release(ticket)),
                None => Finished::Stale,
            }),
            Operation::Complete(run, action) => Answer::Finished(match self.held.ticket(run) {
                Some(ticket) => {
                    self.with(action.needs_time(), |queue| queue.finish(ticket, action))
                }
                None => Finished::Stale,
            }),
            Operation::CompleteMany(ref runs, action) => {
                let tickets = self.held.tickets(runs);
                let used = runs.len() - tickets.len();
                let finish = |queue: &mut Access<'_, P, S, M>| queue.finish_many(tickets, action);
                Answer::Count(used + self.with(action.needs_time(), finish))
            }
            Operation::ReportRunning => {
                self.timed(|queue| queue.report_running());
                Answer::Done
            }
            Operation::ShutDown => {
                self.timed(|queue| queue.shut_down());
                Answer::Done
            }
            Operation::BeginDrain => {
                let drain = self.timed(|queue| queue.begin_drain());
                Answer::Drain(self.held.keep_drain(drain))
            }
            Operation::Drained(drain) => match self.held.drain(drain) {
                Some(drain) => Answer::Drained(self.queue.drain_status(drain)),
                None => Answer::Lacking,
            },
            Operation::TakeDelayed => Answer::Left(self.timed(|queue| queue.take_delayed())),
            Operation::TakeReady => Answer::Left(self.timed(|queue| queue.take_ready())),
            Operation::Len => Answer::Count(self.untimed(|queue| queue.len())),
            Operation::Snapshot => {
                let mut entries = Vec::new();
                let _ = self.swept(|queue, sweep| {
                    queue.snapshot_some(sweep, |key: &Key, state| entries.push((*key, state)))
                });
                Answer::Snapshot(in_order(entries))
            }
            Operation::State(key) => Answer::State(self.untimed(|queue| queue.state(&key))),
            Operation::Contains(key) => Answer::Is(self.queue.contains(&key)),
            Operation::Failures(key) => Answer::Count(self.queue.failures(&key) as usize),
            Operation::Why(key) => Answer::Why(self.untimed(|queue| queue.why(&key))),
            Operation::Stats => Answer::Stats(self.queue.stats()),
            Operation::Group(group) => {
                Answer::Group(P::group(&self.queue, group).and_then(figures))
            }
            Operation::IsPaused => Answer::Is(self.queue.is_paused()),
            Operation::IsIdle => Answer::Is(self.untimed(|queue| queue.is_idle())),
            Operation::IsSettled => Answer::Is(self.queue.is_settled()),
            Operation::IsShuttingDown => Answer::Is(self.queue.is_shutting_down()),
            _ => Answer::Lacking,
        }
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

//! The state machine itself: core's `Queue`, with the time handed in.

use std::time::Duration;

use requeue_core::binding::Index;
use requeue_core::binding::{Getter, Next, Session, Wake};
use requeue_core::metrics::Metrics;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Entry, Finished, GroupState, Instant, Policy,
    Rejected, Stats, Sweep, Why,
};

use super::groups::Keys;
use super::{
    Abilities, Configuration, Displaced, Drain, GroupFigures, GroupOrder, Handed, Key, Kind, Known,
    Left, PolicySpec, Scheduled, Subject, Ticket, Turn, in_order, map_next, refused,
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
    (state.held > 0).then_some(GroupFigures {
        ready: state.ready,
        active: state.active,
        held: state.held,
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

    fn time_for(&mut self, action: Action) -> Instant {
        if action.needs_time() {
            self.now
        } else {
            self.any_time()
        }
    }

    /// Records which getters an operation wakes.
    fn obey<T>(&mut self, value: T) -> T {
        self.wake = self.wake | self.queue.at(self.now).close();
        value
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
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.queue.stats().max_keys
    }

    fn limit_keys(&mut self, keys: usize) {
        S::limit_keys(&mut self.queue.at(self.now), keys);
        self.obey(());
    }

    fn limit_failure_records(&mut self, keys: usize) -> bool {
        S::limit_failure_records(&mut self.queue, keys)
    }

    fn limit_due_keys(&mut self, keys: u8) {
        self.queue.limit_due_keys(keys);
        self.due_keys_max = keys;
    }

    fn set_policy(&mut self, policy: &PolicySpec) {
        let now = self.any_time();
        S::set_policy(&mut self.queue.at(now), policy.build());
        self.obey(());
    }

    fn levels(&self) -> u8 {
        P::LEVELS
    }

    fn groups(&self) -> bool {
        P::GROUPS
    }

    fn ages(&self) -> bool {
        P::AGES
    }

    fn order(&mut self, order: &GroupOrder) {
        let now = self.any_time();
        P::order(&mut self.queue.at(now), order);
        self.obey(());
    }

    fn group(&mut self, group: u8) -> Option<GroupFigures> {
        figures(P::group(&self.queue, group)?)
    }

    fn age_after(&mut self, after: Option<Duration>) {
        P::age(&mut self.queue.at(self.now), after);
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            due_keys_max: Some(self.due_keys_max),
            limits_keys: S::LIMITS_KEYS,
            governs: S::governs::<P>(),
            suspends: S::suspends::<P>(),
            ..Abilities::default()
        }
    }

    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        let now = self.any_time();
        let value = self.queue.at(now).add(key);
        self.obey(value)
    }

    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>> {
        let value = self.queue.at(self.now).add_after(key, delay);
        self.obey(value)
    }

    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        let value = self.queue.at(self.now).add_at(key, due);
        self.obey(value)
    }

    fn add_rate_limited(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>> {
        let value = self.queue.at(self.now).add_rate_limited(key);
        self.obey(value).map(Scheduled::from)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>> {
        let now = if options.needs_time() {
            self.now
        } else {
            self.any_time()
        };
        let value = self.queue.at(now).add_with(key, options);
        self.obey(value).map(Scheduled::from)
    }

    fn add_displacing(&mut self, key: Key, options: AddOptions) -> Displaced {
        let now = if options.needs_time() {
            self.now
        } else {
            self.any_time()
        };
        let value = self.queue.at(now).add_displacing(key, options);
        let added = self.obey(value);
        added.map(|(scheduled, left)| (scheduled.into(), left.map(Left::from)))
    }

    fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        let value = S::add_debounced(&mut self.queue.at(self.now), key, [quiet, max]);
        self.obey(value)
    }

    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        let now = self.any_time();
        let mut rejected = Vec::new();
        let keys = keys.iter().copied();
        let value = self.queue.at(now).add_many(keys, |key| rejected.push(key));
        (self.obey(value), rejected)
    }

    fn forget(&mut self, key: Key) -> u32 {
        self.queue.at(self.now).forget(&key)
    }

    fn cancel_key(&mut self, key: Key) -> Option<Known> {
        let now = self.any_time();
        let value = self.queue.at(now).cancel(&key);
        self.obey(value).map(Known::from)
    }

    fn cancel_delay(&mut self, key: Key) -> Option<Instant> {
        let now = self.any_time();
        let value = self.queue.at(now).cancel_delay(&key);
        self.obey(value)
    }

    fn expedite(&mut self, key: Key) -> bool {
        let now = self.any_time();
        let value = self.queue.at(now).expedite(&key);
        self.obey(value)
    }

    fn expedite_all(&mut self) {
        let mut sweep = Sweep::new();
        loop {
            let now = self.any_time();
            let value = self.queue.at(now).expedite_some(&mut sweep);
            if !self.obey(value) {
                return;
            }
        }
    }

    fn retain_below(&mut self, key: Key) -> usize {
        let mut sweep = Sweep::new();
        loop {
            let now = self.any_time();
            let keep = |other: &Key| *other < key;
            let value = self.queue.at(now).retain_some(&mut sweep, keep);
            if !self.obey(value) {
                return sweep.cancelled();
            }
        }
    }

    fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        let now = if left.left.is_zero() {
            self.any_time()
        } else {
            self.now
        };
        let value = self.queue.at(now).restore(left.into());
        self.obey(value).map_err(refused)
    }

    fn pause(&mut self) {
        self.queue.at(self.now).pause();
    }

    fn unpause(&mut self) {
        self.queue.at(self.now).unpause();
        self.obey(());
    }

    fn suspend(&mut self, key: Key, timeout: Duration) -> bool {
        let value = S::suspend(&mut self.queue.at(self.now), key, Some(timeout));
        self.obey(value)
    }

    fn resume(&mut self, key: Key) -> bool {
        let now = self.any_time();
        let value = S::suspend(&mut self.queue.at(now), key, None);
        self.obey(value)
    }

    fn is_paused(&mut self) -> bool {
        self.queue.is_paused()
    }

    fn is_idle(&mut self) -> bool {
        let now = self.any_time();
        let value = self.queue.at(now).is_idle();
        self.obey(value)
    }

    fn is_settled(&mut self) -> bool {
        self.queue.is_settled()
    }

    fn try_get(&mut self) -> Option<Handed> {
        let now = self.any_time();
        let value = self.queue.at(now).try_get();
        self.obey(value).map(Handed::from)
    }

    fn get(&mut self, getter: &mut Getter) -> Next<Handed> {
        let now = self.any_time();
        let value = self.queue.at(now).poll_get(getter);
        map_next(self.obey(value), Handed::from)
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>> {
        let now = self.any_time();
        let mut taken = Vec::new();
        let value = self
            .queue
            .at(now)
            .poll_get_many(max, getter, |work| taken.push(Handed::from(work)));
        map_next(self.obey(value), |count| {
            assert_eq!(count, taken.len(), "as many keys as the queue says");
            taken
        })
    }

    fn next(&mut self, ticket: Ticket, action: Action, getter: &mut Getter) -> Turn {
        let Some(ticket) = ticket.core() else {
            return (Finished::Stale, self.get(getter));
        };
        let now = self.time_for(action);
        let mut session = self.queue.at(now);
        let turn = (session.finish(ticket, action), session.poll_get(getter));
        let (finished, next) = self.obey(turn);
        (finished, map_next(next, Handed::from))
    }

    fn leave(&mut self, getter: &mut Getter) {
        self.queue.at(self.now).leave(getter);
        self.obey(());
    }

    fn release_key(&mut self, key: Key) -> Finished {
        let now = self.any_time();
        let value = self.queue.at(now).release_key(&key);
        self.obey(value)
    }

    fn release(&mut self, ticket: Ticket) -> Finished {
        let Some(ticket) = ticket.core() else {
            return Finished::Stale;
        };
        let now = self.any_time();
        let value = self.queue.at(now).release(ticket);
        self.obey(value)
    }

    fn finish_many(&mut self, tickets: Vec<Ticket>, action: Action) -> usize {
        let now = self.time_for(action);
        let tickets = tickets.into_iter().filter_map(Ticket::core);
        let value = self.queue.at(now).finish_many(tickets, action);
        self.obey(value)
    }

    fn finish(&mut self, ticket: Ticket, action: Action) -> Finished {
        let Some(ticket) = ticket.core() else {
            return Finished::Stale;
        };
        let now = self.time_for(action);
        let value = self.queue.at(now).finish(ticket, action);
        self.obey(value)
    }

    fn shut_down(&mut self) {
        self.queue.at(self.now).shut_down();
        self.obey(());
    }

    fn begin_drain(&mut self) -> Drain {
        let value = self.queue.at(self.now).begin_drain();
        Drain::Core(self.obey(value))
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        match drain {
            Drain::Core(drain) => self.queue.drain_status(drain),
            Drain::Numbered(_) => Drained::Pending,
        }
    }

    fn take_delayed(&mut self) -> Option<Left> {
        self.queue.at(self.now).take_delayed().map(Left::from)
    }

    fn take_ready(&mut self) -> Option<Left> {
        let value = self.queue.at(self.now).take_ready();
        self.obey(value).map(Left::from)
    }

    fn len(&mut self) -> usize {
        let now = self.any_time();
        let value = self.queue.at(now).len();
        self.obey(value)
    }

    fn snapshot(&mut self) -> Vec<(Key, Known)> {
        let (mut sweep, mut entries) = (Sweep::new(), Vec::new());
        loop {
            let now = self.any_time();
            let visit = |entry: Entry<&Key>| entries.push(entry.cloned());
            if !self.queue.at(now).snapshot_some(&mut sweep, visit) {
                return in_order(entries);
            }
        }
    }

    fn state(&mut self, key: Key) -> Option<Known> {
        let now = self.any_time();
        let value = self.queue.at(now).state(&key);
        self.obey(value).map(Known::from)
    }

    fn contains(&mut self, key: Key) -> bool {
        self.queue.contains(&key)
    }

    fn failures(&mut self, key: Key) -> u32 {
        self.queue.failures(&key)
    }

    fn why(&mut self, key: Key) -> Why {
        let now = self.any_time();
        let value = self.queue.at(now).why(&key);
        self.obey(value)
    }

    fn stats(&mut self) -> Stats {
        self.queue.stats()
    }

    fn is_shutting_down(&mut self) -> bool {
        self.queue.is_shutting_down()
    }

    fn report_running(&mut self) {
        self.queue.at(self.now).report_running();
        self.obey(());
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

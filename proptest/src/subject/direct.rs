//! The state machine itself: core's `Queue`, with the time handed in.

use std::time::Duration;

use requeue_core::binding::{Index, Session, Sweep, Wake};
use requeue_core::metrics::Metrics;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Finished, GroupState, Instant};

use super::apply::{answer, lack};
use super::groups::{Keys, governed, suspended};
use super::held::Held;
use super::{
    Abilities, Answer, Configuration, GroupFigures, Key, Kind, Operation, Scheduled, Subject,
    in_order, map_next,
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

    /// Whether a queue of this kind uses slack.
    fn slackens<P: Kind>() -> bool;

    /// Does what only a queue with a policy or with slack can, and changes how many keys fit, if it
    /// can.
    fn govern<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        operation: &Operation,
    ) -> Answer;

    /// Changes how many keys may be kept for their failures alone. Returns whether it can be.
    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> bool;

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

    fn slackens<P: Kind>() -> bool {
        P::SLACKENS
    }

    fn govern<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        operation: &Operation,
    ) -> Answer {
        match *operation {
            Operation::AddWithin(key, delay, slack) => P::within(session, key, delay, slack),
            _ => P::govern(session, operation),
        }
    }

    fn limit_failure_records<P: Kind, M: Metrics>(_: &mut Keys<P, Self, M>, _: usize) -> bool {
        false
    }

    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M> {
        let mut queue = P::fixed(setup.limiter.build(), metrics);
        let policy = Operation::SetPolicy(setup.policy.clone());
        let _ = P::govern(&mut queue.at(Instant::EPOCH), &policy);
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

    fn slackens<P: Kind>() -> bool {
        true
    }

    fn govern<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        operation: &Operation,
    ) -> Answer {
        match *operation {
            Operation::LimitKeys(keys) => {
                session.limit_keys(keys);
                Answer::Done
            }
            Operation::AddWithin(key, delay, slack) => {
                Answer::Added(session.add_within(key, delay, slack))
            }
            _ => suspended!(session, operation),
        }
    }

    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> bool {
        queue.limit_failure_records(keys);
        true
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
    /// Sets the clock, which the queue's contract lets go forward only.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

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

    /// Steps, until one was the last.
    fn swept(
        &mut self,
        mut step: impl FnMut(&mut Access<'_, P, S, M>, &mut Sweep) -> bool,
    ) -> Sweep {
        let mut sweep = Sweep::new();
        while self.with(false, |session| step(session, &mut sweep)) {}
        sweep
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
            slackens: S::slackens::<P>(),
            ..Abilities::default()
        }
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        if lack::<P>(operation) {
            return Answer::Lacking;
        }
        let this = self;
        macro_rules! session {
            ($timed:expr, |$queue:ident| $work:expr) => {
                this.with($timed, |$queue: &mut Access<'_, P, S, M>| $work)
            };
        }
        macro_rules! look {
            (|$queue:ident| $work:expr) => {{
                let $queue = &this.queue;
                $work
            }};
        }
        match *operation {
            Operation::TryGet => {
                let work = this.with(false, |queue| queue.try_get());
                Answer::Work(work.map(|work| this.held.hand(work)))
            }
            Operation::ExpediteAll => {
                let _ = this.swept(|queue, sweep| queue.expedite_some(sweep));
                Answer::Done
            }
            Operation::RetainBelow(key) => {
                let sweep = this.swept(|queue, sweep| queue.retain_some(sweep, |it| *it < key));
                Answer::Count(sweep.cancelled())
            }
            Operation::Snapshot => {
                let mut entries = Vec::new();
                let _ = this.swept(|queue, sweep| {
                    queue.snapshot_some(sweep, |key: &Key, state| entries.push((*key, state)))
                });
                Answer::Snapshot(in_order(entries))
            }
            Operation::LimitFailureRecords(keys) => {
                match S::limit_failure_records(&mut this.queue, keys) {
                    true => Answer::Done,
                    false => Answer::Lacking,
                }
            }
            Operation::LimitDueKeys(keys) => {
                this.due_keys_max = keys;
                this.queue.limit_due_keys(keys);
                Answer::Done
            }
            _ => answer!(operation, this.held, <P, S>, session, session, look, look),
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

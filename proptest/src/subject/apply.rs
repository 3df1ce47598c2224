//! Every operation, as core's queue does it and as a queue behind a lock does.

use std::panic::resume_unwind;
use std::time::Duration;

use requeue_core::binding::{
    Governs, Host, Index, Lock, Nodes, RandomState, Session, Shared, Suspends,
};
use requeue_core::metrics::Metrics;
use requeue_core::priority::{
    Aging, Groups, Levels, Plain, Priorities, WithPolicy, WithSlack, WithSuspension,
};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Finished, GroupState, Instant, Queue};

use super::held::Held;
use super::{
    Abilities, Answer, Cap, Configuration, Direct, GroupFigures, GroupOrder, Key, Operation,
    Scheduled, group_of, in_order, map_next, panicking,
};
use crate::limiter::AnyLimiter;

/// A queue whose keys are `u16`.
pub(super) type Keys<P, S, M> = Queue<Key, P, AnyLimiter, S, M>;

/// A session of a queue under test.
pub(super) type Access<'q, P, S, M> = Session<'q, Key, P, AnyLimiter, S, M>;

/// Does an operation. `call!` does it to a session, or to the queue behind the lock, which has the
/// same methods, and is told whether it needs the time. `session!` does it to a session in any
/// case. `look!` does it to the state machine, or to the queue behind the lock, and `machine!` to
/// the state machine in any case.
macro_rules! answer {
    ($operation:expr, $held:expr, <$kind:ty, $home:ty>) => {
        match *$operation {
            Operation::Add(key) => Answer::Added(call!(false, |queue| queue.add(key))),
            Operation::AddAfter(key, delay) => {
                Answer::Added(call!(true, |queue| queue.add_after(key, delay)))
            }
            Operation::AddAt(key, due) => {
                Answer::Added(call!(true, |queue| queue.add_at(key, due)))
            }
            Operation::AddRateLimited(key) => {
                let added = call!(true, |queue| queue.add_rate_limited(key));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddWith(key, options) => {
                let added = call!(options.needs_time(), |queue| queue.add_with(key, options));
                Answer::Scheduled(added.map(Scheduled::from))
            }
            Operation::AddDisplacing(key, options) => {
                let timed = options.needs_time();
                let added = call!(timed, |queue| queue.add_displacing(key, options));
                Answer::Displaced(added.map(|(scheduled, left)| (scheduled.into(), left)))
            }
            Operation::AddMany(ref keys) => {
                let (keys, mut rejected) = (keys.iter().copied(), Vec::new());
                let many = call!(false, |queue| queue
                    .add_many(keys, |key| rejected.push(key)));
                Answer::AddedMany(many, rejected)
            }
            Operation::Restore(left) => {
                Answer::Restored(call!(!left.left.is_zero(), |queue| queue.restore(left)))
            }
            Operation::Forget(key) => {
                Answer::Count(call!(true, |queue| queue.forget(&key)) as usize)
            }
            Operation::CancelKey(key) => Answer::State(call!(false, |queue| queue.cancel(&key))),
            Operation::CancelDelay(key) => {
                Answer::Due(call!(false, |queue| queue.cancel_delay(&key)))
            }
            Operation::Expedite(key) => Answer::Is(call!(false, |queue| queue.expedite(&key))),
            Operation::Pause => {
                call!(true, |queue| queue.pause());
                Answer::Done
            }
            Operation::Unpause => {
                call!(true, |queue| queue.unpause());
                Answer::Done
            }
            Operation::AddDebounced(..)
            | Operation::AddWithin(..)
            | Operation::Suspend(..)
            | Operation::LimitKeys(_) => {
                session!(true, |queue| <$home>::apply_rare(queue, $operation))
            }
            Operation::SetPolicy(_) | Operation::Resume(_) => {
                session!(false, |queue| <$home>::apply_rare(queue, $operation))
            }
            Operation::AgeAfter(after) => session!(true, |queue| {
                <$kind as Priorities>::Age::age_after(queue, after)
            }),
            Operation::Order(ref order) => session!(false, |queue| <$kind>::order(queue, order)),
            Operation::Get(sleeper) => {
                let mut getter = $held.getter(sleeper);
                let next = session!(false, |queue| queue.poll_get(&mut getter));
                $held.keep(sleeper, getter, &next);
                Answer::Next($held.hand_next(next))
            }
            Operation::GetMany(max, sleeper) => {
                let (mut getter, mut taken) = ($held.getter(sleeper), Vec::new());
                let next = session!(false, |queue| {
                    queue.poll_get_many(max, &mut getter, |work| taken.push(work))
                });
                $held.keep(sleeper, getter, &next);
                Answer::NextMany(map_next(next, |count| {
                    assert_eq!(count, taken.len(), "as many keys as the queue says");
                    taken.into_iter().map(|work| $held.hand(work)).collect()
                }))
            }
            Operation::Next(run, action, sleeper) => {
                let (mut getter, ticket) = ($held.getter(sleeper), $held.ticket(run));
                let (finished, next) = session!(action.needs_time(), |queue| {
                    let finish = |ticket| queue.finish(ticket, action);
                    let finished = ticket.map_or(Finished::Stale, finish);
                    (finished, queue.poll_get(&mut getter))
                });
                $held.keep(sleeper, getter, &next);
                Answer::Turn(finished, $held.hand_next(next))
            }
            Operation::Leave(sleeper) => {
                let mut getter = $held.getter(sleeper);
                session!(true, |queue| queue.leave(&mut getter));
                Answer::Done
            }
            Operation::DoneKey(key) => {
                Answer::Finished(call!(false, |queue| queue.release_key(&key)))
            }
            Operation::Done(run) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => session!(false, |queue| queue.release(ticket)),
                None => Finished::Stale,
            }),
            Operation::Complete(run, action) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => {
                    call!(action.needs_time(), |queue| queue.finish(ticket, action))
                }
                None => Finished::Stale,
            }),
            Operation::CompleteMany(ref runs, action) => {
                let tickets = $held.tickets(runs);
                let used = runs.len() - tickets.len();
                let timed = action.needs_time();
                Answer::Count(used + call!(timed, |queue| queue.finish_many(tickets, action)))
            }
            Operation::ReportRunning => {
                call!(true, |queue| queue.report_running());
                Answer::Done
            }

            Operation::ShutDown => {
                call!(true, |queue| queue.shut_down());
                Answer::Done
            }
            Operation::BeginDrain => {
                let drain = call!(true, |queue| queue.begin_drain());
                Answer::Drain($held.keep_drain(drain))
            }
            Operation::Drained(drain) => match $held.drain(drain) {
                Some(drain) => Answer::Drained(look!(|queue| queue.drain_status(drain))),
                None => Answer::Lacking,
            },
            Operation::TakeDelayed => Answer::Left(call!(true, |queue| queue.take_delayed())),
            Operation::TakeReady => Answer::Left(call!(true, |queue| queue.take_ready())),

            Operation::Len => Answer::Count(call!(false, |queue| queue.len())),
            Operation::State(key) => Answer::State(call!(false, |queue| queue.state(&key))),
            Operation::Contains(key) => Answer::Is(look!(|queue| queue.contains(&key))),
            Operation::Failures(key) => Answer::Count(look!(|queue| queue.failures(&key)) as usize),
            Operation::Why(key) => Answer::Why(session!(false, |queue| queue.why(&key))),
            Operation::Stats => Answer::Stats(machine!(|queue| queue.stats())),
            Operation::Group(group) => {
                Answer::Group(machine!(|queue| <$kind>::group(queue, group)).and_then(figures))
            }
            Operation::IsPaused => Answer::Is(look!(|queue| queue.is_paused())),
            Operation::IsIdle => Answer::Is(call!(false, |queue| queue.is_idle())),
            Operation::IsSettled => Answer::Is(look!(|queue| queue.is_settled())),
            Operation::IsShuttingDown => Answer::Is(look!(|queue| queue.is_shutting_down())),
            Operation::NextLook => Answer::Look(session!(false, |queue| queue.next_look())),
            Operation::IsWithin(ready_max, run_max) if !<$kind>::GROUPS => {
                Answer::Is(call!(true, |queue| queue.is_within(ready_max, run_max)))
            }
            _ => Answer::Lacking,
        }
    };
}

/// Does an operation that neither waits nor names a run to a queue behind a lock.
pub fn answer_of<H>(queue: &Shared<H>, operation: &Operation) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    behind_lock(queue, &mut Held::default(), operation)
}

/// Does an operation that never waits to a queue behind a lock, as its users do.
pub(super) fn behind_lock<H>(shared: &Shared<H>, held: &mut Held, operation: &Operation) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    macro_rules! call {
        ($timed:expr, |$queue:ident| $work:expr) => {{
            let _ = $timed;
            let $queue = shared;
            $work
        }};
    }
    macro_rules! session {
        ($timed:expr, |$queue:ident| $work:expr) => {
            shared.timed($timed, |$queue| $work)
        };
    }
    macro_rules! look {
        (|$queue:ident| $work:expr) => {{
            let $queue = shared;
            $work
        }};
    }
    macro_rules! machine {
        (|$queue:ident| $work:expr) => {
            shared.look(|$queue| $work)
        };
    }
    match *operation {
        Operation::TryGet => {
            let work = shared.with(|session| session.try_get());
            Answer::Work(work.map(|work| held.hand(work)))
        }
        Operation::ExpediteAll => {
            shared.expedite_all();
            Answer::Done
        }
        Operation::RetainBelow(0) => Answer::Count(shared.clear()),
        Operation::RetainBelow(key) => Answer::Count(shared.retain(|other| *other < key)),
        Operation::Snapshot => Answer::Snapshot(in_order(shared.snapshot())),
        Operation::PanicUnderLock => {
            let panic = || resume_unwind(Box::new("a panic while the lock is held"));
            Answer::Is(panicking(|| shared.lock().with(|_| panic())))
        }
        _ => answer!(operation, held, <H::Priorities, H::Storage>),
    }
}

impl<P: Kind, S: Home, M: Metrics, const MAX: usize> Direct<P, S, M, MAX> {
    /// Does an operation that never waits to the state machine.
    pub(super) fn answer(&mut self, operation: &Operation) -> Answer {
        let this = self;
        macro_rules! call {
            ($timed:expr, |$queue:ident| $work:expr) => {
                this.with($timed, |$queue: &mut Access<'_, P, S, M>| $work)
            };
        }
        macro_rules! session {
            ($timed:expr, |$queue:ident| $work:expr) => {
                call!($timed, |$queue| $work)
            };
        }
        macro_rules! look {
            (|$queue:ident| $work:expr) => {{
                let $queue = &this.queue;
                $work
            }};
        }
        macro_rules! machine {
            (|$queue:ident| $work:expr) => {
                look!(|$queue| $work)
            };
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
            Operation::LimitFailureRecords(keys) => S::limit_failure_records(&mut this.queue, keys),
            Operation::LimitDueKeys(keys) => {
                this.due_keys_max = keys;
                this.queue.limit_due_keys(keys);
                Answer::Done
            }
            _ => answer!(operation, this.held, <P, S>),
        }
    }
}

/// A storage that a queue under test can be made of.
pub trait Home: Storage + Sized {
    /// Makes an empty queue.
    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M>;

    /// What a queue in this storage can do.
    fn abilities<P: Kind>() -> Abilities;

    /// Does what not every queue can.
    fn apply_rare<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        operation: &Operation,
    ) -> Answer;

    /// Changes how many keys may be kept for their failures alone.
    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> Answer {
        let _ = (queue, keys);
        Answer::Lacking
    }
}

impl<const N: usize, I: Index> Home for Fixed<N, I> {
    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M> {
        let mut queue = P::fixed(setup.limiter.build(), metrics);
        let policy = Operation::SetPolicy(setup.policy.clone());
        let _ = Self::apply_rare(&mut queue.at(Instant::EPOCH), &policy);
        queue.limit_due_keys(setup.due_keys_max);
        queue
    }

    fn abilities<P: Kind>() -> Abilities {
        let [governs, suspends] = P::POLICY;
        Abilities {
            governs,
            suspends,
            slackens: P::FixedSlack::IS_KEPT,
            ..P::abilities()
        }
    }

    fn apply_rare<P: Kind, M: Metrics>(
        session: &mut Access<'_, P, Self, M>,
        operation: &Operation,
    ) -> Answer {
        match *operation {
            Operation::AddWithin(key, delay, slack) => {
                P::FixedSlack::add_within(session, key, delay, slack)
            }
            _ => P::govern(session, operation),
        }
    }
}

impl Home for Growable {
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

    fn abilities<P: Kind>() -> Abilities {
        Abilities {
            limits_keys: true,
            ..P::abilities()
        }
    }

    fn apply_rare<P: Kind, M: Metrics>(
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
            _ => suspend(session, operation),
        }
    }

    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> Answer {
        queue.limit_failure_records(keys);
        Answer::Done
    }
}

/// Does what a queue with a policy can.
fn govern<P: Priorities, S: Governs<P>, M: Metrics>(
    session: &mut Access<'_, P, S, M>,
    operation: &Operation,
) -> Answer {
    match *operation {
        Operation::AddDebounced(key, quiet, max) => {
            Answer::Added(session.add_debounced(key, quiet, max))
        }
        Operation::SetPolicy(ref policy) => {
            session.set_policy(policy.build());
            Answer::Done
        }
        _ => Answer::Lacking,
    }
}

/// Does what a queue that can suspend keys can.
fn suspend<P: Priorities, S: Suspends<P>, M: Metrics>(
    session: &mut Access<'_, P, S, M>,
    operation: &Operation,
) -> Answer {
    match *operation {
        Operation::Suspend(key, timeout) => Answer::Is(session.suspend(&key, timeout)),
        Operation::Resume(key) => Answer::Is(session.resume(&key)),
        _ => govern(session, operation),
    }
}

/// What a queue keeps of each key if it can: the slack of a delay, or since when the key waits.
/// `()` if it cannot.
pub trait PerKey {
    /// Whether it is kept.
    const IS_KEPT: bool = true;

    /// Adds a key within a window.
    fn add_within<P: Priorities, S: Storage<Nodes<P>: Nodes<Slack = Self>>, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        key: Key,
        delay: Duration,
        slack: Duration,
    ) -> Answer {
        let _ = (session, key, delay, slack);
        Answer::Lacking
    }

    /// Sets after which time keys age.
    fn age_after<P: Priorities<Age = Self>, S: Storage, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        after: Option<Duration>,
    ) -> Answer {
        let _ = (session, after);
        Answer::Lacking
    }
}

impl PerKey for () {
    const IS_KEPT: bool = false;
}

impl PerKey for u64 {
    fn add_within<P: Priorities, S: Storage<Nodes<P>: Nodes<Slack = Self>>, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        key: Key,
        delay: Duration,
        slack: Duration,
    ) -> Answer {
        Answer::Added(session.add_within(key, delay, slack))
    }
}

impl PerKey for Instant {
    fn age_after<P: Priorities<Age = Self>, S: Storage, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        after: Option<Duration>,
    ) -> Answer {
        session.age_after(after);
        Answer::Done
    }
}

/// Priorities that a queue under test can have.
pub trait Kind: Priorities<FixedSlack: PerKey, Age: PerKey> + Sized {
    /// Whether there are groups.
    const GROUPS: bool = false;
    /// Whether a queue of a fixed size can have a policy, and can suspend keys.
    const POLICY: [bool; 2];

    /// An empty queue of a fixed size.
    fn fixed<const N: usize, I: Index, M: Metrics>(
        limiter: AnyLimiter,
        metrics: M,
    ) -> Keys<Self, Fixed<N, I>, M>;

    /// An empty queue that grows.
    fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M>;

    /// Does to a queue of a fixed size what one with a policy can.
    fn govern<P: Priorities, S: Storage<Policy<P> = Self::FixedPolicy>, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        operation: &Operation,
    ) -> Answer;

    /// What a queue with these priorities can do, in any storage.
    fn abilities() -> Abilities {
        Abilities {
            levels: Self::LEVELS,
            groups: Self::GROUPS,
            ages: Self::Age::IS_KEPT,
            ..Abilities::default()
        }
    }

    /// Changes the limits of groups.
    fn order<S: Storage, M: Metrics>(
        session: &mut Access<'_, Self, S, M>,
        order: &GroupOrder,
    ) -> Answer {
        let _ = (session, order);
        Answer::Lacking
    }

    /// The state of a group, if it is there.
    fn group<S: Storage, M: Metrics>(queue: &Keys<Self, S, M>, group: u8) -> Option<GroupState> {
        let _ = (queue, group);
        None
    }
}

macro_rules! without_groups {
    ($([$($generics:tt)*] $kind:ty, $policy:expr, $govern:path;)+) => {$(
        impl<$($generics)*> Kind for $kind {
            const POLICY: [bool; 2] = $policy;

            fn fixed<const N: usize, I: Index, M: Metrics>(
                limiter: AnyLimiter,
                metrics: M,
            ) -> Keys<Self, Fixed<N, I>, M> {
                Queue::with_metrics(limiter, metrics)
            }

            fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M> {
                Queue::from_parts(limiter, metrics, RandomState::default(), 0)
            }

            fn govern<P: Priorities, S: Storage<Policy<P> = Self::FixedPolicy>, M: Metrics>(
                session: &mut Access<'_, P, S, M>,
                operation: &Operation,
            ) -> Answer {
                $govern(session, operation)
            }
        }
    )+};
}

without_groups! {
    [] Plain, [false, false], lack;
    [const L: usize] Levels<L>, [false, false], lack;
    [Q: Kind<Naming<Key> = ()>] WithPolicy<Q>, [true, false], govern;
    [Q: Kind<Naming<Key> = ()>] WithSuspension<Q>, [true, true], suspend;
    [Q: Kind<Naming<Key> = ()>] WithSlack<Q>, Q::POLICY, Q::govern;
    [Q: Kind<Naming<Key> = ()>] Aging<Q>, Q::POLICY, Q::govern;
}

fn lack<P: Priorities, S: Storage, M: Metrics>(
    _: &mut Access<'_, P, S, M>,
    _: &Operation,
) -> Answer {
    Answer::Lacking
}

impl<Q: Kind, const MAX: usize> Kind for Groups<u8, Q, MAX> {
    const GROUPS: bool = true;
    const POLICY: [bool; 2] = Q::POLICY;

    fn fixed<const N: usize, I: Index, M: Metrics>(
        limiter: AnyLimiter,
        metrics: M,
    ) -> Keys<Self, Fixed<N, I>, M> {
        Queue::with_groups(limiter, metrics, group_of)
    }

    fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M> {
        Queue::growable_with_groups(limiter, metrics, RandomState::default(), 0, group_of)
    }

    fn govern<P: Priorities, S: Storage<Policy<P> = Self::FixedPolicy>, M: Metrics>(
        session: &mut Access<'_, P, S, M>,
        operation: &Operation,
    ) -> Answer {
        Q::govern(session, operation)
    }

    fn order<S: Storage, M: Metrics>(
        session: &mut Access<'_, Self, S, M>,
        order: &GroupOrder,
    ) -> Answer {
        let changed = match order {
            GroupOrder::LimitAll(cap) => {
                session.limit_groups(cap.limits());
                Ok(())
            }
            GroupOrder::Limit(group, cap) => {
                session.limit_group(*group, cap.as_ref().map(Cap::limits))
            }
            GroupOrder::Pause(group) => session.pause_group(*group),
            GroupOrder::Unpause(group) => {
                session.unpause_group(group);
                Ok(())
            }
        };
        assert_eq!(changed, Ok(()), "there is room for every group");
        Answer::Done
    }

    fn group<S: Storage, M: Metrics>(queue: &Keys<Self, S, M>, group: u8) -> Option<GroupState> {
        queue.group(&group)
    }
}

/// The figures of a group, if it has keys.
fn figures(state: GroupState) -> Option<GroupFigures> {
    (state.total > 0).then_some(GroupFigures {
        ready: state.ready,
        active: state.active,
        held: state.total,
        blocked: state.blocked,
        paused: state.paused,
    })
}

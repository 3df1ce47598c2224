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
    Abilities, Answer, Cap, Configuration, Direct, GroupFigures, GroupOrder, Key, Operation as O,
    group_of, in_order, map_next, panicking,
};
use crate::limiter::AnyLimiter;

/// A queue whose keys are `u16`.
pub(super) type Keys<P, S, M> = Queue<Key, P, AnyLimiter, S, M>;

/// A session of a queue under test.
pub(super) type Access<'q, P, S, M> = Session<'q, Key, P, AnyLimiter, S, M>;

/// The answer to an operation that returns nothing.
macro_rules! done {
    ($work:expr) => {{
        $work;
        Answer::Done
    }};
}

/// Does an operation. `call!` calls a method of a session, or the same method of the queue behind
/// the lock. Its second argument says if a session needs the time. `session!` always uses a session.
macro_rules! answer {
    ($operation:expr, $held:expr, <$kind:ty, $home:ty>) => {
        match *$operation {
            O::Add(key) => Answer::Added(call!(add(key))),
            O::AddAfter(key, delay) => Answer::Added(call!(add_after(key, delay), true)),
            O::AddAt(key, due) => Answer::Added(call!(add_at(key, due), true)),
            O::AddRateLimited(key) => {
                Answer::Scheduled(call!(add_rate_limited(key), true).map(Into::into))
            }
            O::AddWith(key, options) => {
                let added = call!(add_with(key, options), options.needs_time());
                Answer::Scheduled(added.map(Into::into))
            }
            O::AddDisplacing(key, options) => {
                let added = call!(add_displacing(key, options), options.needs_time());
                Answer::Displaced(added.map(|(scheduled, left)| (scheduled.into(), left)))
            }
            O::AddMany(ref keys) => {
                let (keys, mut rejected) = (keys.iter().copied(), Vec::new());
                let many = call!(add_many(keys, |key| rejected.push(key)));
                Answer::AddedMany(many, rejected)
            }
            O::Restore(left) => Answer::Restored(call!(restore(left), !left.left.is_zero())),
            O::Forget(key) => Answer::Count(call!(forget(&key), true) as usize),
            O::CancelKey(key) => Answer::State(call!(cancel(&key))),
            O::CancelDelay(key) => Answer::Due(call!(cancel_delay(&key))),
            O::Expedite(key) => Answer::Is(call!(expedite(&key))),
            O::Pause => done!(call!(pause(), true)),
            O::Unpause => done!(call!(unpause(), true)),
            O::AddDebounced(..) | O::AddWithin(..) | O::Suspend(..) | O::LimitKeys(_) => {
                session!(true, |queue| <$home>::apply_rare(queue, $operation))
            }
            O::SetPolicy(_) | O::Resume(_) => {
                session!(false, |queue| <$home>::apply_rare(queue, $operation))
            }
            O::AgeAfter(after) => session!(true, |queue| {
                <$kind as Priorities>::Age::age_after(queue, after)
            }),
            O::Order(ref order) => session!(false, |queue| <$kind>::order(queue, order)),
            O::Get(sleeper) => {
                let mut getter = $held.getter(sleeper);
                let next = session!(false, |queue| queue.poll_get(&mut getter));
                $held.keep(sleeper, getter, &next);
                Answer::Next($held.hand_next(next))
            }
            O::GetMany(max, sleeper) => {
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
            O::Next(run, action, sleeper) => {
                let (mut getter, ticket) = ($held.getter(sleeper), $held.ticket(run));
                let (finished, next) = session!(action.needs_time(), |queue| {
                    let finish = |ticket| queue.finish(ticket, action);
                    let finished = ticket.map_or(Finished::Stale, finish);
                    (finished, queue.poll_get(&mut getter))
                });
                $held.keep(sleeper, getter, &next);
                Answer::Turn(finished, $held.hand_next(next))
            }
            O::Leave(sleeper) => {
                let mut getter = $held.getter(sleeper);
                done!(session!(true, |queue| queue.leave(&mut getter)))
            }
            O::DoneKey(key) => Answer::Finished(call!(release_key(&key))),
            O::Done(run) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => session!(false, |queue| queue.release(ticket)),
                None => Finished::Stale,
            }),
            O::Complete(run, action) => Answer::Finished(match $held.ticket(run) {
                Some(ticket) => call!(finish(ticket, action), action.needs_time()),
                None => Finished::Stale,
            }),
            O::CompleteMany(ref runs, action) => {
                let tickets = $held.tickets(runs);
                let used = runs.len() - tickets.len();
                let stale = call!(finish_many(tickets, action), action.needs_time());
                Answer::Count(used + stale)
            }
            O::ReportRunning => done!(call!(report_running(), true)),

            O::ShutDown => done!(call!(shut_down(), true)),
            O::BeginDrain => {
                let drain = call!(begin_drain(), true);
                Answer::Drain($held.keep_drain(drain))
            }
            O::TakeDelayed => Answer::Left(call!(take_delayed(), true)),
            O::TakeReady => Answer::Left(call!(take_ready(), true)),

            O::Len => Answer::Count(call!(len())),
            O::State(key) => Answer::State(call!(state(&key))),
            O::Contains(key) => Answer::Is(call!(contains(&key))),
            O::Failures(key) => Answer::Count(call!(failures(&key)) as usize),
            O::Why(key) => Answer::Why(session!(false, |queue| queue.why(&key))),
            O::Stats => Answer::Stats(session!(false, |queue| queue.stats())),
            O::Group(group) => Answer::Group(session!(false, |queue| <$kind>::group(queue, group))),
            O::IsPaused => Answer::Is(call!(is_paused())),
            O::IsIdle => Answer::Is(call!(is_idle())),
            O::IsSettled => Answer::Is(call!(is_settled())),
            O::IsShuttingDown => Answer::Is(call!(is_shutting_down())),
            O::NextLook => Answer::Look(session!(false, |queue| queue.next_look())),
            O::IsWithin(ready_max, run_max) if <$kind>::GROUPS == 0 => {
                Answer::Is(call!(is_within(ready_max, run_max), true))
            }
            _ => Answer::Lacking,
        }
    };
}

/// Does an operation that neither waits nor names a run to a queue behind a lock.
pub fn answer_of<H>(queue: &Shared<H>, operation: &O) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    behind_lock(queue, &mut Held::default(), operation)
}

/// Does an operation that never waits to a queue behind a lock, as its users do.
pub(super) fn behind_lock<H>(shared: &Shared<H>, held: &mut Held, operation: &O) -> Answer
where
    H: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>,
{
    macro_rules! call {
        ($method:ident($($argument:expr),*) $(, $timed:expr)?) => {
            shared.$method($($argument),*)
        };
    }
    macro_rules! session {
        ($timed:expr, |$queue:ident| $work:expr) => {
            shared.timed($timed, |$queue| $work)
        };
    }
    match *operation {
        O::TryGet => {
            let work = shared.with(|session| session.try_get());
            Answer::Work(work.map(|work| held.hand(work)))
        }
        O::ExpediteAll => done!(shared.expedite_all()),
        O::RetainBelow(0) => Answer::Count(shared.clear()),
        O::RetainBelow(key) => Answer::Count(shared.retain(|other| *other < key)),
        O::Snapshot => Answer::Snapshot(in_order(shared.snapshot())),
        O::Drained(drain) => held.drained(drain, |drain| shared.drain_status(drain)),
        O::PanicUnderLock => {
            let panic = || resume_unwind(Box::new("a panic while the lock is held"));
            Answer::Is(panicking(|| shared.lock().with(|_| panic())))
        }
        _ => answer!(operation, held, <H::Priorities, H::Storage>),
    }
}

impl<P: Kind, S: Home, M: Metrics, const MAX: usize> Direct<P, S, M, MAX> {
    /// Does an operation that never waits to the state machine.
    pub(super) fn answer(&mut self, operation: &O) -> Answer {
        let this = self;
        macro_rules! session {
            ($timed:expr, |$queue:ident| $work:expr) => {
                this.with($timed, |$queue: &mut Access<'_, P, S, M>| $work)
            };
        }
        macro_rules! call {
            ($method:ident($($argument:expr),*)) => {
                call!($method($($argument),*), false)
            };
            ($method:ident($($argument:expr),*), $timed:expr) => {
                session!($timed, |queue| queue.$method($($argument),*))
            };
        }
        match *operation {
            O::TryGet => {
                let work = this.with(false, |queue| queue.try_get());
                Answer::Work(work.map(|work| this.held.hand(work)))
            }
            O::ExpediteAll => {
                let _ = this.swept(|queue, sweep| queue.expedite_some(sweep));
                Answer::Done
            }
            O::RetainBelow(key) => {
                let sweep = this.swept(|queue, sweep| queue.retain_some(sweep, |it| *it < key));
                Answer::Count(sweep.cancelled())
            }
            O::Snapshot => {
                let mut entries = Vec::new();
                let _ = this.swept(|queue, sweep| {
                    queue.snapshot_some(sweep, |key: &Key, state| entries.push((*key, state)))
                });
                Answer::Snapshot(in_order(entries))
            }
            O::Drained(drain) => this
                .held
                .drained(drain, |drain| this.queue.drain_status(drain)),
            O::LimitFailureRecords(keys) => S::limit_failure_records(&mut this.queue, keys),
            O::LimitDueKeys(keys) => {
                this.due_keys_max = keys;
                done!(this.queue.limit_due_keys(keys))
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
    fn apply_rare<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, rare: &O) -> Answer;

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
        let policy = O::SetPolicy(setup.policy.clone());
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

    fn apply_rare<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, rare: &O) -> Answer {
        match *rare {
            O::AddWithin(key, delay, slack) => {
                P::FixedSlack::add_within(session, key, delay, slack)
            }
            _ => P::govern(session, rare),
        }
    }
}

impl Home for Growable {
    fn build<P: Kind, M: Metrics>(setup: &Configuration, metrics: M) -> Keys<P, Self, M> {
        let mut queue = P::growable(setup.limiter.build(), metrics);
        // A queue without a policy keeps nothing of it for its keys.
        if setup.policy != Default::default() {
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
            groups: if P::GROUPS > 0 { usize::MAX } else { 0 },
            ..P::abilities()
        }
    }

    fn apply_rare<P: Kind, M: Metrics>(session: &mut Access<'_, P, Self, M>, rare: &O) -> Answer {
        match *rare {
            O::LimitKeys(keys) => done!(session.limit_keys(keys)),
            O::AddWithin(key, delay, slack) => u64::add_within(session, key, delay, slack),
            _ => suspend(session, rare),
        }
    }

    fn limit_failure_records<P: Kind, M: Metrics>(
        queue: &mut Keys<P, Self, M>,
        keys: usize,
    ) -> Answer {
        done!(queue.limit_failure_records(keys))
    }
}

/// Does what a queue with a policy can.
fn govern<P: Priorities, S: Governs<P>, M: Metrics>(
    session: &mut Access<'_, P, S, M>,
    operation: &O,
) -> Answer {
    match *operation {
        O::AddDebounced(key, quiet, max) => Answer::Added(session.add_debounced(key, quiet, max)),
        O::SetPolicy(ref policy) => done!(session.set_policy(policy.build())),
        _ => Answer::Lacking,
    }
}

/// Does what a queue that can suspend keys can.
fn suspend<P: Priorities, S: Suspends<P>, M: Metrics>(
    session: &mut Access<'_, P, S, M>,
    operation: &O,
) -> Answer {
    match *operation {
        O::Suspend(key, timeout) => Answer::Is(session.suspend(&key, timeout)),
        O::Resume(key) => Answer::Is(session.resume(&key)),
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
        _: &mut Access<'_, P, S, M>,
        _: Key,
        _: Duration,
        _: Duration,
    ) -> Answer {
        Answer::Lacking
    }

    /// Sets after which time keys age.
    fn age_after<P: Priorities<Age = Self>, S: Storage, M: Metrics>(
        _: &mut Access<'_, P, S, M>,
        _: Option<Duration>,
    ) -> Answer {
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
        done!(session.age_after(after))
    }
}

/// Priorities that a queue under test can have.
pub trait Kind: Priorities<FixedSlack: PerKey, Age: PerKey> + Sized {
    /// How many groups there can be in a queue of a fixed size. Zero if there are none.
    const GROUPS: usize = 0;
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
        operation: &O,
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
    fn order<S: Storage, M: Metrics>(_: &mut Access<'_, Self, S, M>, _: &GroupOrder) -> Answer {
        Answer::Lacking
    }

    /// The figures of a group, if it has keys.
    fn group<S: Storage, M: Metrics>(_: &Keys<Self, S, M>, _: u8) -> Option<GroupFigures> {
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
                operation: &O,
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

fn lack<P: Priorities, S: Storage, M: Metrics>(_: &mut Access<'_, P, S, M>, _: &O) -> Answer {
    Answer::Lacking
}

impl<Q: Kind, const MAX: usize> Kind for Groups<u8, Q, MAX> {
    const GROUPS: usize = MAX;
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
        operation: &O,
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
        changed.map_or(Answer::NoPlace, |()| Answer::Done)
    }

    fn group<S: Storage, M: Metrics>(queue: &Keys<Self, S, M>, group: u8) -> Option<GroupFigures> {
        let state = queue.group(&group).filter(|state| state.total > 0)?;
        let GroupState {
            ready,
            active,
            total: held,
            blocked,
            paused,
            ..
        } = state;
        Some(GroupFigures {
            ready,
            active,
            held,
            blocked,
            paused,
        })
    }
}

//! Queues with groups, and those without.

use std::time::Duration;

use requeue_core::binding::Index;
use requeue_core::binding::{Nodes, RandomState};
use requeue_core::metrics::Metrics;
use requeue_core::priority::{
    Aging, Groups, Levels, Plain, Priorities, WithPolicy, WithSlack, WithSuspension,
};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{GroupLimits, GroupState, Queue};

use super::direct::Access;
use super::{Answer, Key, Operation};
use crate::limiter::{AnyLimiter, FloatBits};

/// Returns the group of a key, in queues that have groups.
pub fn group_of(key: &Key) -> u8 {
    (key % 3) as u8
}

/// What is changed about groups.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOrder {
    /// The limits of groups that have none of their own.
    LimitAll(Cap),
    /// The limits of a group.
    Limit(u8, Option<Cap>),
    /// A group is paused.
    Pause(u8),
    /// It is paused no longer.
    Unpause(u8),
}

/// The limits of a group, as a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    /// How many keys are active at most.
    pub max_active: Option<usize>,
    /// How many keys it gives in a turn.
    pub weight: u16,
    /// How many keys a second.
    pub rate: Option<Rate>,
}

/// The rate of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Keys per second.
    pub per_second: FloatBits,
    /// How many at once.
    pub burst: u32,
}

/// What is known of a group that has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// How many of its keys are ready.
    pub ready: usize,
    /// How many are active.
    pub active: usize,
    /// How many the queue holds.
    pub held: usize,
    /// It may not start a run at present.
    pub blocked: bool,
    /// It is paused.
    pub paused: bool,
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            max_active: None,
            weight: 1,
            rate: None,
        }
    }
}

impl Cap {
    /// How many keys are active at most, as the queue understands it.
    pub(crate) fn most_active(&self) -> usize {
        match (self.rate, self.max_active) {
            (Some(rate), _) if !rate.is_valid() => 0,
            (_, max) => max.unwrap_or(usize::MAX),
        }
    }

    fn limits(&self) -> GroupLimits {
        let mut limits = GroupLimits::new().weight(self.weight);
        if let Some(keys) = self.max_active {
            limits = limits.max_active(keys);
        }
        match self.rate {
            Some(rate) => limits.rate(rate.per_second.0, rate.burst),
            None => limits,
        }
    }
}

impl Rate {
    pub(crate) fn is_valid(&self) -> bool {
        self.per_second.0 > 0.0 && self.burst > 0
    }
}

impl GroupOrder {
    /// The group that is meant, zero if all are.
    pub(crate) fn group(&self) -> u8 {
        match self {
            Self::LimitAll(_) => 0,
            Self::Limit(group, _) | Self::Pause(group) | Self::Unpause(group) => *group,
        }
    }
}

/// A queue whose keys are `u16`, on the storages of core.
pub(super) type Keys<P, S, M> = Queue<Key, P, AnyLimiter, S, M>;

/// Priorities, groups and a policy, as a test makes them.
pub trait Kind: Priorities + Sized {
    /// Whether a queue of a fixed size can have a policy.
    const GOVERNS: bool = false;
    /// Whether a queue of a fixed size can suspend keys.
    const SUSPENDS: bool = false;
    /// Whether a queue of a fixed size uses slack.
    const SLACKENS: bool = false;
    /// Whether there are groups.
    const GROUPS: bool = false;
    /// Whether keys age.
    const AGES: bool = false;

    /// An empty queue of a fixed size.
    fn fixed<const N: usize, I: Index, M: Metrics>(
        limiter: AnyLimiter,
        metrics: M,
    ) -> Keys<Self, Fixed<N, I>, M>;

    /// An empty queue that grows.
    fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M>;

    /// Changes the limits of groups. Nothing without them.
    fn order<S: Storage, M: Metrics>(session: &mut Access<'_, Self, S, M>, order: &GroupOrder) {
        let _ = (session, order);
    }

    /// The figures of a group, if it is there.
    fn group<S: Storage, M: Metrics>(queue: &Keys<Self, S, M>, group: u8) -> Option<GroupState> {
        let _ = (queue, group);
        None
    }

    /// Sets after which time keys age, if they do.
    fn age<Q, S, M>(session: &mut Access<'_, Q, S, M>, after: Option<Duration>)
    where
        Q: Priorities<Age = Self::Age>,
        S: Storage,
        M: Metrics,
    {
        let _ = (session, after);
    }

    /// Does to a queue of a fixed size what only one with a policy can.
    fn govern<Q, S, M>(session: &mut Access<'_, Q, S, M>, operation: &Operation) -> Answer
    where
        Q: Priorities,
        S: Storage<Policy<Q> = Self::FixedPolicy>,
        M: Metrics,
    {
        let _ = (session, operation);
        Answer::Lacking
    }

    /// Adds a key within a window to a queue of a fixed size, if it uses slack.
    fn within<Q, S, M>(
        session: &mut Access<'_, Q, S, M>,
        key: Key,
        delay: Duration,
        slack: Duration,
    ) -> Answer
    where
        Q: Priorities,
        S: Storage<Nodes<Q>: Nodes<Slack = Self::FixedSlack>>,
        M: Metrics,
    {
        let _ = (session, key, delay, slack);
        Answer::Lacking
    }
}

/// Does what a queue with a policy can.
macro_rules! governed {
    ($session:expr, $operation:expr) => {
        match *$operation {
            Operation::AddDebounced(key, quiet, max) => {
                Answer::Added($session.add_debounced(key, quiet, max))
            }
            Operation::SetPolicy(ref policy) => {
                $session.set_policy(policy.build());
                Answer::Done
            }
            _ => Answer::Lacking,
        }
    };
}

/// Does what a queue that can suspend keys can.
macro_rules! suspended {
    ($session:expr, $operation:expr) => {
        match *$operation {
            Operation::Suspend(key, timeout) => Answer::Is($session.suspend(&key, timeout)),
            Operation::Resume(key) => Answer::Is($session.resume(&key)),
            _ => governed!($session, $operation),
        }
    };
}

pub(super) use {governed, suspended};

macro_rules! govern {
    ($session:ident, $operation:ident => $answer:expr) => {
        fn govern<Q, S, M>($session: &mut Access<'_, Q, S, M>, $operation: &Operation) -> Answer
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            $answer
        }
    };
}

macro_rules! within {
    ($session:ident, $key:ident, $delay:ident, $slack:ident => $answer:expr) => {
        fn within<Q, S, M>(
            $session: &mut Access<'_, Q, S, M>,
            $key: Key,
            $delay: Duration,
            $slack: Duration,
        ) -> Answer
        where
            Q: Priorities,
            S: Storage<Nodes<Q>: Nodes<Slack = Self::FixedSlack>>,
            M: Metrics,
        {
            $answer
        }
    };
}

macro_rules! age {
    ($session:ident, $after:ident => $set:expr) => {
        fn age<Q, S, M>($session: &mut Access<'_, Q, S, M>, $after: Option<Duration>)
        where
            Q: Priorities<Age = Self::Age>,
            S: Storage,
            M: Metrics,
        {
            $set;
        }
    };
}

macro_rules! without_groups {
    () => {
        fn fixed<const N: usize, I: Index, M: Metrics>(
            limiter: AnyLimiter,
            metrics: M,
        ) -> Keys<Self, Fixed<N, I>, M> {
            Queue::with_metrics(limiter, metrics)
        }

        fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M> {
            Queue::from_parts(limiter, metrics, RandomState::default(), 0)
        }
    };
}

impl Kind for Plain {
    without_groups!();
}

impl<const P: usize> Kind for Levels<P> {
    without_groups!();
}

impl<P: Kind<Naming<Key> = ()>> Kind for WithPolicy<P> {
    const GOVERNS: bool = true;
    const SLACKENS: bool = P::SLACKENS;
    const AGES: bool = P::AGES;

    without_groups!();
    age!(session, after => P::age(session, after));
    govern!(session, operation => governed!(session, operation));
    within!(session, key, delay, slack => P::within(session, key, delay, slack));
}

impl<P: Kind<Naming<Key> = ()>> Kind for WithSuspension<P> {
    const GOVERNS: bool = true;
    const SLACKENS: bool = P::SLACKENS;
    const AGES: bool = P::AGES;
    const SUSPENDS: bool = true;

    without_groups!();
    age!(session, after => P::age(session, after));
    govern!(session, operation => suspended!(session, operation));
    within!(session, key, delay, slack => P::within(session, key, delay, slack));
}

impl<P: Kind<Naming<Key> = ()>> Kind for WithSlack<P> {
    const GOVERNS: bool = P::GOVERNS;
    const SUSPENDS: bool = P::SUSPENDS;
    const SLACKENS: bool = true;
    const AGES: bool = P::AGES;

    without_groups!();
    age!(session, after => P::age(session, after));
    govern!(session, operation => P::govern(session, operation));
    within!(session, key, delay, slack => {
        Answer::Added(session.add_within(key, delay, slack))
    });
}

impl<P: Kind<Naming<Key> = ()>> Kind for Aging<P> {
    const GOVERNS: bool = P::GOVERNS;
    const SUSPENDS: bool = P::SUSPENDS;
    const SLACKENS: bool = P::SLACKENS;
    const AGES: bool = true;

    without_groups!();
    age!(session, after => session.age_after(after));
    govern!(session, operation => P::govern(session, operation));
    within!(session, key, delay, slack => P::within(session, key, delay, slack));
}

impl<P: Kind, const MAX: usize> Kind for Groups<u8, P, MAX> {
    const GROUPS: bool = true;
    const GOVERNS: bool = P::GOVERNS;
    const SUSPENDS: bool = P::SUSPENDS;
    const SLACKENS: bool = P::SLACKENS;
    const AGES: bool = P::AGES;

    age!(session, after => P::age(session, after));
    govern!(session, operation => P::govern(session, operation));
    within!(session, key, delay, slack => P::within(session, key, delay, slack));

    fn fixed<const N: usize, I: Index, M: Metrics>(
        limiter: AnyLimiter,
        metrics: M,
    ) -> Keys<Self, Fixed<N, I>, M> {
        Queue::with_groups(limiter, metrics, group_of)
    }

    fn growable<M: Metrics>(limiter: AnyLimiter, metrics: M) -> Keys<Self, Growable, M> {
        Queue::growable_with_groups(limiter, metrics, RandomState::default(), 0, group_of)
    }

    fn order<S: Storage, M: Metrics>(session: &mut Access<'_, Self, S, M>, order: &GroupOrder) {
        let there_is_room = |changed: Result<(), u8>| {
            assert_eq!(changed, Ok(()), "there is room for every group");
        };
        match order {
            GroupOrder::LimitAll(cap) => session.limit_groups(cap.limits()),
            GroupOrder::Limit(group, cap) => {
                there_is_room(session.limit_group(*group, cap.as_ref().map(Cap::limits)));
            }
            GroupOrder::Pause(group) => there_is_room(session.pause_group(*group)),
            GroupOrder::Unpause(group) => session.unpause_group(group),
        }
    }

    fn group<S: Storage, M: Metrics>(queue: &Keys<Self, S, M>, group: u8) -> Option<GroupState> {
        queue.group(&group)
    }
}

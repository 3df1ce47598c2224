//! Queues with groups, and those without.

use std::time::Duration;

use requeue_core::binding::Index;
use requeue_core::binding::RandomState;
use requeue_core::limiter::TokenBucket;
use requeue_core::metrics::Metrics;
use requeue_core::priority::{
    Aging, Groups, Levels, Plain, Priorities, WithPolicy, WithSuspension,
};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Added, GroupLimits, GroupState, Policy, Queue, Rejected};

use super::Key;
use super::direct::Access;
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

    /// A full bucket; none if nothing passes at this rate.
    pub(crate) fn bucket(&self) -> Option<TokenBucket> {
        let bucket = TokenBucket::new(self.per_second.0, self.burst);
        self.is_valid().then_some(bucket)
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

    /// Sets the policy of a queue of a fixed size, if it can have one.
    fn set_policy<Q, S, M>(session: &mut Access<'_, Q, S, M>, policy: Policy)
    where
        Q: Priorities,
        S: Storage<Policy<Q> = Self::FixedPolicy>,
        M: Metrics,
    {
        let _ = (session, policy);
    }

    /// Debounces an add to a queue of a fixed size. The key comes back if it cannot.
    fn add_debounced<Q, S, M>(
        session: &mut Access<'_, Q, S, M>,
        key: Key,
        [quiet, max]: [Duration; 2],
    ) -> Result<Added, Rejected<Key>>
    where
        Q: Priorities,
        S: Storage<Policy<Q> = Self::FixedPolicy>,
        M: Metrics,
    {
        let _ = (session, quiet, max);
        Err(Rejected::Full(key))
    }

    /// Suspends a key in a queue of a fixed size, or resumes it without a timeout.
    fn suspend<Q, S, M>(
        session: &mut Access<'_, Q, S, M>,
        key: Key,
        timeout: Option<Duration>,
    ) -> bool
    where
        Q: Priorities,
        S: Storage<Policy<Q> = Self::FixedPolicy>,
        M: Metrics,
    {
        let _ = (session, key, timeout);
        false
    }
}

/// What a kind around `P` does as `P` does.
macro_rules! policy_of {
    ($inner:ident) => {
        fn set_policy<Q, S, M>(session: &mut Access<'_, Q, S, M>, policy: Policy)
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            $inner::set_policy(session, policy);
        }

        fn add_debounced<Q, S, M>(
            session: &mut Access<'_, Q, S, M>,
            key: Key,
            times: [Duration; 2],
        ) -> Result<Added, Rejected<Key>>
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            $inner::add_debounced(session, key, times)
        }

        fn suspend<Q, S, M>(
            session: &mut Access<'_, Q, S, M>,
            key: Key,
            timeout: Option<Duration>,
        ) -> bool
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            $inner::suspend(session, key, timeout)
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

/// What a kind that can have a policy does.
macro_rules! governs {
    () => {
        const GOVERNS: bool = true;
        const AGES: bool = P::AGES;

        without_groups!();

        fn age<Q, S, M>(session: &mut Access<'_, Q, S, M>, after: Option<Duration>)
        where
            Q: Priorities<Age = Self::Age>,
            S: Storage,
            M: Metrics,
        {
            P::age(session, after);
        }

        fn set_policy<Q, S, M>(session: &mut Access<'_, Q, S, M>, policy: Policy)
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            session.set_policy(policy);
        }

        fn add_debounced<Q, S, M>(
            session: &mut Access<'_, Q, S, M>,
            key: Key,
            [quiet, max]: [Duration; 2],
        ) -> Result<Added, Rejected<Key>>
        where
            Q: Priorities,
            S: Storage<Policy<Q> = Self::FixedPolicy>,
            M: Metrics,
        {
            session.add_debounced(key, quiet, max)
        }
    };
}

impl<P: Kind<Naming<Key> = ()>> Kind for WithPolicy<P> {
    governs!();
}

impl<P: Kind<Naming<Key> = ()>> Kind for WithSuspension<P> {
    const SUSPENDS: bool = true;

    governs!();

    fn suspend<Q, S, M>(
        session: &mut Access<'_, Q, S, M>,
        key: Key,
        timeout: Option<Duration>,
    ) -> bool
    where
        Q: Priorities,
        S: Storage<Policy<Q> = Self::FixedPolicy>,
        M: Metrics,
    {
        match timeout {
            Some(timeout) => session.suspend(&key, timeout),
            None => session.resume(&key),
        }
    }
}

impl<P: Kind<Naming<Key> = ()>> Kind for Aging<P> {
    const GOVERNS: bool = P::GOVERNS;
    const SUSPENDS: bool = P::SUSPENDS;
    const AGES: bool = true;

    without_groups!();
    policy_of!(P);

    fn age<Q, S, M>(session: &mut Access<'_, Q, S, M>, after: Option<Duration>)
    where
        Q: Priorities<Age = Self::Age>,
        S: Storage,
        M: Metrics,
    {
        session.age_after(after);
    }
}

impl<P: Kind, const MAX: usize> Kind for Groups<u8, P, MAX> {
    const GROUPS: bool = true;
    const GOVERNS: bool = P::GOVERNS;
    const SUSPENDS: bool = P::SUSPENDS;
    const AGES: bool = P::AGES;

    policy_of!(P);

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

    fn age<Q, S, M>(session: &mut Access<'_, Q, S, M>, after: Option<Duration>)
    where
        Q: Priorities<Age = Self::Age>,
        S: Storage,
        M: Metrics,
    {
        P::age(session, after);
    }
}

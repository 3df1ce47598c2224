//! Histories of operations that never wait, drawn.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use requeue_core::{Action, AddOptions, Instant};

use super::{MERGES, Operation};
use crate::limiter::{FloatBits, LimiterSpec};
use crate::operation::{Run, Sleeper, left_over};
use crate::subject::{Cap, Configuration, GroupOrder, Key, Left, PolicySpec, Rate};

/// How many keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// So few that they meet in every state, and that small queues are full.
    Few,
    /// So many that the heap of deadlines has three levels.
    Many,
}

/// Queues of all kinds.
pub fn setups() -> impl Strategy<Value = Configuration> {
    let records = select(vec![usize::MAX, 0, 1, 2]);
    let releases = select(vec![1, 2, 16]);
    (select(delays_and_policies()), records, releases).prop_map(
        |((limiter, policy), failure_records_max, due_keys_max)| Configuration {
            policy,
            failure_records_max,
            due_keys_max,
            ..Configuration::new(limiter)
        },
    )
}

/// Limiters that remember failures and that do not, that delay and that do not, and one that
/// delays for ever; some of them with a policy.
fn delays_and_policies() -> Vec<(LimiterSpec, PolicySpec)> {
    let exponential = |base_ns| LimiterSpec::Exponential {
        base_ns,
        max_ns: 20,
    };
    let bucket = |rate: f64, burst| LimiterSpec::TokenBucket {
        rate_bits: FloatBits(rate),
        burst,
    };
    let max_of = |limiters| LimiterSpec::MaxOf { limiters };
    let holds = |cool_down_ns, hold_failures| PolicySpec {
        cool_down_ns,
        hold_failures,
        run_rate: None,
    };
    let paces = |rate, burst| {
        let per_second = FloatBits(rate);
        Some(Rate { per_second, burst })
    };
    let fast_slow = LimiterSpec::FastSlow {
        fast_ns: 2,
        slow_ns: 9,
        max_fast_attempts: 1,
    };
    let none = PolicySpec::default;
    vec![
        (exponential(1), none()),
        (exponential(0), none()),
        (fast_slow, none()),
        (max_of(vec![exponential(2), bucket(5e8, 1)]), none()),
        (max_of(vec![]), none()),
        (bucket(0.0, 1), none()),
        (exponential(1), holds(0, true)),
        (exponential(0), holds(3, false)),
        (bucket(5e8, 1), holds(2, true)),
        (max_of(vec![exponential(2), exponential(1)]), holds(1, true)),
        (
            exponential(1),
            PolicySpec {
                run_rate: paces(4e8, 2),
                ..none()
            },
        ),
        (
            exponential(1),
            PolicySpec {
                run_rate: paces(1e8, 1),
                ..holds(1, true)
            },
        ),
    ]
}

/// Draws histories of a busy queue, which may be shut down towards the end.
pub fn operations(crowd: Crowd) -> impl Strategy<Value = Vec<Operation>> {
    // A crowd forms where keys come faster than they go.
    let (keys, length, adds) = match crowd {
        Crowd::Few => (6, 60, 10),
        Crowd::Many => (40, 150, 60),
    };
    let late = prop_oneof![1 => busy(keys, 10), 1 => closing()];
    (vec(busy(keys, adds), 0..length), vec(late, 0..40)).prop_map(|(mut steps, late)| {
        steps.extend(late);
        steps
    })
}

/// Boxed, since the name of its type would fill pages of a backtrace.
fn busy(keys: Key, adds: u32) -> BoxedStrategy<Operation> {
    prop_oneof![
        adds => adding(keys),
        10 => getting(),
        8 => completing(keys),
        4 => passing(),
        4 => controlling(keys),
    ]
    .boxed()
}

fn controlling(keys: Key) -> impl Strategy<Value = Operation> {
    let key = || 1..=keys;
    prop_oneof![
        8 => key().prop_map(Operation::CancelKey),
        3 => key().prop_map(Operation::CancelDelay),
        3 => key().prop_map(Operation::Expedite),
        1 => Just(Operation::ExpediteAll),
        1 => (0..=keys).prop_map(Operation::RetainBelow),
        1 => Just(Operation::Snapshot),
        4 => key().prop_map(Operation::Why),
        1 => Just(Operation::Pause),
        2 => Just(Operation::Unpause),
        5 => (key(), delay()).prop_map(|(key, timeout)| Operation::Suspend(key, timeout)),
        5 => key().prop_map(Operation::Resume),
        4 => order().prop_map(Operation::Order),
        2 => proptest::option::of(delay()).prop_map(Operation::AgeAfter),
        2 => select(vec![0, 1, 2, 3, 5, 20, usize::MAX]).prop_map(Operation::LimitKeys),
        1 => select(vec![0, 1, 2, usize::MAX]).prop_map(Operation::LimitFailureRecords),
        1 => (1..4u8).prop_map(Operation::LimitDueKeys),
        2 => select(delays_and_policies()).prop_map(|(_, policy)| Operation::SetPolicy(policy)),
    ]
}

fn order() -> impl Strategy<Value = GroupOrder> {
    let group = || 0..3u8;
    prop_oneof![
        2 => cap().prop_map(GroupOrder::LimitAll),
        3 => (group(), proptest::option::weighted(0.8, cap()))
            .prop_map(|(group, cap)| GroupOrder::Limit(group, cap)),
        1 => group().prop_map(GroupOrder::Pause),
        2 => group().prop_map(GroupOrder::Unpause),
    ]
}

/// Limits that let something pass, more often than not.
fn cap() -> impl Strategy<Value = Cap> {
    let max_active = select(vec![None, None, Some(0), Some(1), Some(1), Some(2)]);
    let rate = select(vec![
        None,
        None,
        Some((5e8, 1)),
        Some((1e9, 2)),
        Some((0.0, 1)),
        Some((1.0, 0)),
    ]);
    let rate = rate.prop_map(|rate: Option<(f64, u32)>| {
        rate.map(|(per_second, burst)| Rate {
            per_second: FloatBits(per_second),
            burst,
        })
    });
    (max_active, select(vec![1, 1, 2, 0]), rate).prop_map(|(max_active, weight, rate)| Cap {
        max_active,
        weight,
        rate,
    })
}

fn adding(keys: Key) -> impl Strategy<Value = Operation> {
    let key = || 1..=keys;
    prop_oneof![
        5 => key().prop_map(Operation::Add),
        5 => (key(), delay()).prop_map(|(key, delay)| Operation::AddAfter(key, delay)),
        2 => (key(), instant()).prop_map(|(key, due)| Operation::AddAt(key, due)),
        4 => key().prop_map(Operation::AddRateLimited),
        4 => (key(), options()).prop_map(|(key, options)| Operation::AddWith(key, options)),
        1 => vec(key(), 0..5).prop_map(Operation::AddMany),
        1 => key().prop_map(Operation::Forget),
        3 => (key(), delay(), delay())
            .prop_map(|(key, quiet, max)| Operation::AddDebounced(key, quiet, max)),
        1 => left(keys).prop_map(Operation::Restore),
        3 => (key(), options()).prop_map(|(key, options)| Operation::AddDisplacing(key, options)),
    ]
}

fn left(keys: Key) -> impl Strategy<Value = Left> {
    let drawn = (1..=keys, delay(), 0..4u32, 0..3u8);
    drawn.prop_map(|(key, left, failures, priority)| left_over(key, left, failures, priority))
}

/// Levels that most queues under test have, and one that none has.
fn options() -> impl Strategy<Value = AddOptions> {
    let priority = prop_oneof![
        2 => Just(None),
        6 => (0..3u8).prop_map(Some),
        1 => Just(Some(3)),
    ];
    let after = proptest::option::of(delay());
    (after, any::<bool>(), priority, select(&MERGES[..])).prop_map(
        |(after, rate_limited, priority, merge)| AddOptions {
            after,
            rate_limited,
            priority,
            merge,
        },
    )
}

fn getting() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::TryGet),
        4 => Just(Operation::Get(Sleeper::New)),
        1 => (0..4usize).prop_map(|max| Operation::GetMany(max, Sleeper::New)),
        3 => any::<u8>().prop_map(Operation::LookAgain),
        1 => any::<u8>().prop_map(|pick| Operation::Leave(Sleeper::Pick(pick))),
    ]
}

fn completing(keys: Key) -> impl Strategy<Value = Operation> {
    let run = || any::<u8>().prop_map(Run::Pick);
    let picks = vec(run(), 0..4);
    prop_oneof![
        2 => (1..=keys).prop_map(Operation::DoneKey),
        2 => run().prop_map(Operation::Done),
        4 => (run(), action()).prop_map(|(run, how)| Operation::Complete(run, how)),
        1 => (picks, action()).prop_map(|(runs, how)| Operation::CompleteMany(runs, how)),
        2 => (run(), action()).prop_map(|(run, how)| Operation::Next(run, how, Sleeper::New)),
        1 => Just(Operation::PanicAtWork),
    ]
}

fn passing() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => delay().prop_map(Operation::Advance),
        2 => Just(Operation::AdvanceToDeadline),
        1 => Just(Operation::ReportRunning),
    ]
}

fn closing() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => Just(Operation::ShutDown),
        1 => Just(Operation::BeginDrain),
        2 => Just(Operation::TakeDelayed),
        4 => Just(Operation::TakeReady),
        1 => controlling(6),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Release),
        Just(Action::Success),
        delay().prop_map(Action::RequeueAfter),
        Just(Action::Retry),
        Just(Action::GiveUp),
        delay().prop_map(Action::Snooze),
        delay().prop_map(Action::Suspend),
    ]
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(Duration::ZERO),
        8 => (1..=5u64).prop_map(Duration::from_nanos),
        3 => (6..=1000u64).prop_map(Duration::from_nanos),
        1 => select(vec![
            Duration::from_nanos(u64::MAX - 1),
            Duration::from_nanos(u64::MAX),
            Duration::MAX,
        ]),
    ]
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![
        8 => (0..1000u64).prop_map(Instant::from_nanos),
        1 => select(vec![Instant::from_nanos(u64::MAX - 1), Instant::NEVER]),
    ]
}

//! A queue, and what is done to it, made of bytes.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use requeue_core::{Action, AddOptions};
use requeue_proptest::histories::{MERGES, Operation, Run, Sleeper};
use requeue_proptest::limiter::{FloatBits, LimiterSpec};
use requeue_proptest::subject::{
    Cap, Configuration, GroupOrder, Key, Left, PolicySpec, Rate, left_over,
};

use crate::draw;

/// How many operations are done at most. A sequence that fails need not be long, and one that is
/// takes long.
pub(crate) const OPS_MAX: usize = 200;

/// A queue of any kind.
pub(crate) fn setup(bytes: &mut Unstructured) -> Result<Configuration> {
    let mut policy = PolicySpec::default();
    let limiter = limiter_and_policy(bytes, 2, &mut policy)?;
    Ok(Configuration {
        policy,
        failure_records_max: match bytes.int_in_range(0..=4)? {
            4 => usize::MAX,
            few => few,
        },
        due_keys_max: bytes.int_in_range(1..=3)?,
        ..Configuration::new(limiter)
    })
}

/// A limiter of any kind, which has others within down to a depth.
pub(crate) fn limiter(bytes: &mut Unstructured, depth: u8) -> Result<LimiterSpec> {
    limiter_and_policy(bytes, depth, &mut PolicySpec::default())
}

/// The same, and what the bytes say of the policy.
fn limiter_and_policy(
    bytes: &mut Unstructured,
    depth: u8,
    policy: &mut PolicySpec,
) -> Result<LimiterSpec> {
    let kinds = if depth == 0 { 4 } else { 8 };
    Ok(match bytes.int_in_range(0..=kinds)? {
        0 => LimiterSpec::Exponential {
            base_ns: draw::nanos(bytes)?,
            max_ns: draw::nanos(bytes)?,
        },
        1 => LimiterSpec::FastSlow {
            fast_ns: draw::nanos(bytes)?,
            slow_ns: draw::nanos(bytes)?,
            max_fast_attempts: draw::count(bytes)?.into(),
        },
        2 => LimiterSpec::TokenBucket {
            rate_bits: FloatBits(draw::float(bytes)?),
            burst: draw::count(bytes)?,
        },
        3 => LimiterSpec::DefaultController,
        4 => LimiterSpec::DefaultItemBased,
        5 => LimiterSpec::WithMaxWait {
            inner: Box::new(limiter_and_policy(bytes, depth - 1, policy)?),
            max_ns: draw::nanos(bytes)?,
        },
        6 => {
            let limiter = limiter_and_policy(bytes, depth - 1, policy)?;
            policy.cool_down_ns = draw::nanos(bytes)?;
            policy.hold_failures = bytes.arbitrary()?;
            limiter
        }
        7 => {
            let limiter = limiter_and_policy(bytes, depth - 1, policy)?;
            let per_second = FloatBits(draw::float(bytes)?);
            let burst = draw::count(bytes)?;
            policy.run_rate = Some(Rate { per_second, burst });
            limiter
        }
        _ => {
            let count = bytes.int_in_range(0..=3)?;
            let limiters = (0..count).map(|_| limiter_and_policy(bytes, depth - 1, policy));
            LimiterSpec::MaxOf {
                limiters: limiters.collect::<Result<_>>()?,
            }
        }
    })
}

/// Operations on keys `1..=keys`, until the bytes are used up.
pub(crate) fn ops(bytes: &mut Unstructured, keys: Key) -> Vec<Operation> {
    let mut ops = Vec::new();
    while ops.len() < OPS_MAX && !bytes.is_empty() {
        match op(bytes, keys) {
            Ok(op) => ops.push(op),
            Err(_) => break,
        }
    }
    ops
}

fn op(bytes: &mut Unstructured, keys: Key) -> Result<Operation> {
    Ok(match bytes.int_in_range(0..=57_u8)? {
        32..=35 => Operation::AddWith(key(bytes, keys)?, options(bytes)?),
        0..=2 => Operation::Add(key(bytes, keys)?),
        3 => Operation::Why(key(bytes, keys)?),
        4..=5 => Operation::AddAfter(key(bytes, keys)?, draw::duration(bytes)?),
        6 => Operation::AddAt(key(bytes, keys)?, draw::instant(bytes)?),
        7..=8 => Operation::AddRateLimited(key(bytes, keys)?),
        9 => Operation::AddMany(several(bytes, |bytes| key(bytes, keys))?),
        10 => Operation::Forget(key(bytes, keys)?),
        11..=12 => Operation::TryGet,
        13..=14 => Operation::Get(Sleeper::New),
        15 => Operation::GetMany(bytes.int_in_range(0..=3)?, Sleeper::New),
        16 => Operation::LookAgain(bytes.arbitrary()?),
        17 => Operation::Leave(Sleeper::Pick(bytes.arbitrary()?)),
        18 => Operation::DoneKey(key(bytes, keys)?),
        19 => Operation::Done(run(bytes)?),
        20..=22 => Operation::Complete(run(bytes)?, action(bytes)?),
        23 => Operation::CompleteMany(several(bytes, run)?, action(bytes)?),
        24 => Operation::Next(run(bytes)?, action(bytes)?, Sleeper::New),
        25 => Operation::ReportRunning,
        26 => Operation::Advance(step(bytes)?),
        27 => Operation::AdvanceToDeadline,
        28 => Operation::ShutDown,
        29 => Operation::BeginDrain,
        30 => Operation::TakeDelayed,
        31 => Operation::TakeReady,
        36 => Operation::CancelKey(key(bytes, keys)?),
        37 => Operation::CancelDelay(key(bytes, keys)?),
        38 => Operation::Expedite(key(bytes, keys)?),
        39 => Operation::ExpediteAll,
        41 => Operation::Pause,
        42 => Operation::Unpause,
        44 => Operation::Snapshot,
        43 => Operation::Restore(left(bytes, keys)?),
        45..=46 => Operation::AddDebounced(
            key(bytes, keys)?,
            draw::duration(bytes)?,
            draw::duration(bytes)?,
        ),
        52..=53 => Operation::Suspend(key(bytes, keys)?, draw::duration(bytes)?),
        54 => Operation::Resume(key(bytes, keys)?),
        48 => Operation::Order(order(bytes)?),
        49 => Operation::AgeAfter(age(bytes)?),
        51 => Operation::LimitKeys(max_keys(bytes)?),
        55 => Operation::LimitFailureRecords(max_keys(bytes)?),
        56 => Operation::LimitDueKeys(bytes.int_in_range(1..=3)?),
        57 => {
            let mut policy = PolicySpec::default();
            limiter_and_policy(bytes, 2, &mut policy)?;
            Operation::SetPolicy(policy)
        }
        47 => Operation::AddDisplacing(key(bytes, keys)?, options(bytes)?),
        40 => Operation::RetainBelow(bytes.int_in_range(0..=keys)?),
        _ => Operation::PanicAtWork,
    })
}

/// One of the runs that have begun.
fn run(bytes: &mut Unstructured) -> Result<Run> {
    Ok(Run::Pick(bytes.arbitrary()?))
}

/// One of a few keys.
pub(crate) fn key(bytes: &mut Unstructured, keys: Key) -> Result<Key> {
    bytes.int_in_range(1..=keys)
}

/// What another queue may have left.
pub(crate) fn left(bytes: &mut Unstructured, keys: Key) -> Result<Left> {
    Ok(left_over(
        key(bytes, keys)?,
        draw::duration(bytes)?,
        draw::count(bytes)?,
        level(bytes)?,
    ))
}

/// What an add may ask for; one in eight for a level that no queue here has.
pub(crate) fn options(bytes: &mut Unstructured) -> Result<AddOptions> {
    let after = bytes.arbitrary()?;
    let priority = bytes.arbitrary()?;
    Ok(AddOptions {
        after: if after {
            Some(draw::duration(bytes)?)
        } else {
            None
        },
        rate_limited: bytes.arbitrary()?,
        priority: if priority { Some(level(bytes)?) } else { None },
        merge: *bytes.choose(&MERGES)?,
    })
}

fn level(bytes: &mut Unstructured) -> Result<u8> {
    Ok(match bytes.int_in_range(0..=7_u8)? {
        7 => bytes.arbitrary()?,
        others => others % 3,
    })
}

/// What may be changed about groups.
fn order(bytes: &mut Unstructured) -> Result<GroupOrder> {
    let group = bytes.int_in_range(0..=2)?;
    Ok(match bytes.int_in_range(0..=5_u8)? {
        0..=1 => GroupOrder::LimitAll(cap(bytes)?),
        2..=3 => {
            let own = bytes.arbitrary()?;
            GroupOrder::Limit(group, if own { Some(cap(bytes)?) } else { None })
        }
        4 => GroupOrder::Pause(group),
        _ => GroupOrder::Unpause(group),
    })
}

/// After which time keys may age, if they do.
fn age(bytes: &mut Unstructured) -> Result<Option<Duration>> {
    let ages = bytes.arbitrary()?;
    Ok(if ages {
        Some(draw::duration(bytes)?)
    } else {
        None
    })
}

fn cap(bytes: &mut Unstructured) -> Result<Cap> {
    let max_active = match bytes.int_in_range(0..=3)? {
        3 => None,
        few => Some(few),
    };
    let rate = match bytes.int_in_range(0..=2_u8)? {
        0 => Some(Rate {
            per_second: FloatBits(draw::float(bytes)?),
            burst: draw::count(bytes)?,
        }),
        _ => None,
    };
    let weight = bytes.int_in_range(0..=2)?;
    Ok(Cap {
        max_active,
        weight,
        rate,
    })
}

/// How a run may end.
pub(crate) fn action(bytes: &mut Unstructured) -> Result<Action> {
    Ok(match bytes.int_in_range(0..=6_u8)? {
        0 => Action::Release,
        1 => Action::Success,
        2 => Action::RequeueAfter(draw::duration(bytes)?),
        3 => Action::Retry,
        4 => Action::GiveUp,
        5 => Action::Suspend(draw::duration(bytes)?),
        _ => Action::Snooze(draw::duration(bytes)?),
    })
}

/// Few keys, or any number.
fn max_keys(bytes: &mut Unstructured) -> Result<usize> {
    Ok(match bytes.int_in_range(0..=7)? {
        7 => usize::MAX,
        few => few,
    })
}

/// How far a clock moves. A jump to the end of time leaves little to be tried after it.
fn step(bytes: &mut Unstructured) -> Result<Duration> {
    match bytes.int_in_range(0..=3_u8)? {
        0 => draw::duration(bytes),
        _ => bytes.int_in_range(0..=9).map(Duration::from_nanos),
    }
}

fn several<T>(
    bytes: &mut Unstructured,
    mut one: impl FnMut(&mut Unstructured) -> Result<T>,
) -> Result<Vec<T>> {
    let count = bytes.int_in_range(0..=5_u8)?;
    (0..count).map(|_| one(bytes)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// An operation that is added here is added to [`op`] too.
    fn kind(op: &Operation) -> u8 {
        match op {
            Operation::Add(_) => 0,
            Operation::AddAfter(..) => 1,
            Operation::AddAt(..) => 2,
            Operation::AddRateLimited(_) => 3,
            Operation::AddWith(..) => 4,
            Operation::AddMany(_) => 5,
            Operation::Forget(_) => 6,
            Operation::TryGet => 7,
            Operation::Get(_) => 8,
            Operation::GetMany(..) => 9,
            Operation::LookAgain(_) => 10,
            Operation::Leave(_) => 11,
            Operation::DoneKey(_) => 12,
            Operation::Done(_) => 13,
            Operation::Complete(..) => 14,
            Operation::CompleteMany(..) => 15,
            Operation::Next(..) => 16,
            Operation::ReportRunning => 17,
            Operation::Advance(_) => 18,
            Operation::AdvanceToDeadline => 19,
            Operation::ShutDown => 20,
            Operation::BeginDrain => 21,
            Operation::TakeDelayed => 22,
            Operation::TakeReady => 23,
            Operation::PanicAtWork => 24,
            Operation::CancelKey(_) => 25,
            Operation::CancelDelay(_) => 26,
            Operation::Expedite(_) => 27,
            Operation::ExpediteAll => 28,
            Operation::RetainBelow(_) => 29,
            Operation::Pause => 30,
            Operation::Unpause => 31,
            Operation::Restore(_) => 32,
            Operation::Snapshot => 33,
            Operation::AddDebounced(..) => 34,
            Operation::AddDisplacing(..) => 35,
            Operation::Order(_) => 36,
            Operation::AgeAfter(_) => 37,
            Operation::LimitKeys(_) => 38,
            Operation::Why(_) => 39,
            Operation::Suspend(..) => 40,
            Operation::Resume(_) => 41,
            Operation::LimitFailureRecords(_) => 42,
            Operation::LimitDueKeys(_) => 43,
            Operation::SetPolicy(_) => 44,
            // Calls that wait are drawn elsewhere, and looks are taken after each operation.
            Operation::PanicUnderLock
            | Operation::Drained(_)
            | Operation::Len
            | Operation::State(_)
            | Operation::Contains(_)
            | Operation::Failures(_)
            | Operation::Stats
            | Operation::Group(_)
            | Operation::IsPaused
            | Operation::IsIdle
            | Operation::IsSettled
            | Operation::IsShuttingDown
            | Operation::Start(_)
            | Operation::NextUnrun(_)
            | Operation::Cancel(_)
            | Operation::Nudge(_)
            | Operation::Settle => u8::MAX,
        }
    }

    #[test]
    fn every_operation_is_drawn() {
        let bytes: Vec<u8> = (0..=255).cycle().take(4000).collect();
        let drawn: BTreeSet<u8> = (0..bytes.len())
            .flat_map(|from| op(&mut Unstructured::new(&bytes[from..]), 3))
            .map(|op| kind(&op))
            .collect();
        assert_eq!(drawn, (0..45).collect());
    }
}

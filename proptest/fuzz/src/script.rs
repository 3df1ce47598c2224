//! A queue, and what is done to it, made of bytes.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use requeue_core::{Action, AddOptions};
use requeue_proptest::histories::{MERGES, Step};
use requeue_proptest::limiter::{FloatBits, LimiterSpec};
use requeue_proptest::subject::{Cap, Configuration, GroupOrder, Key, Left, PolicySpec, Rate};

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
pub(crate) fn ops(bytes: &mut Unstructured, keys: Key) -> Vec<Step> {
    let mut ops = Vec::new();
    while ops.len() < OPS_MAX && !bytes.is_empty() {
        match op(bytes, keys) {
            Ok(op) => ops.push(op),
            Err(_) => break,
        }
    }
    ops
}

fn op(bytes: &mut Unstructured, keys: Key) -> Result<Step> {
    Ok(match bytes.int_in_range(0..=57_u8)? {
        32..=35 => Step::AddWith(key(bytes, keys)?, options(bytes)?),
        0..=2 => Step::Add(key(bytes, keys)?),
        3 => Step::Why(key(bytes, keys)?),
        4..=5 => Step::AddAfter(key(bytes, keys)?, draw::duration(bytes)?),
        6 => Step::AddAt(key(bytes, keys)?, draw::instant(bytes)?),
        7..=8 => Step::AddRateLimited(key(bytes, keys)?),
        9 => Step::AddMany(several(bytes, |bytes| key(bytes, keys))?),
        10 => Step::Forget(key(bytes, keys)?),
        11..=12 => Step::TryGet,
        13..=14 => Step::Get,
        15 => Step::GetMany(bytes.int_in_range(0..=3)?),
        16 => Step::LookAgain(bytes.arbitrary()?),
        17 => Step::Leave(bytes.arbitrary()?),
        18 => Step::DoneKey(key(bytes, keys)?),
        19 => Step::Done(bytes.arbitrary()?),
        20..=22 => Step::Complete(bytes.arbitrary()?, action(bytes)?),
        23 => Step::CompleteMany(several(bytes, |bytes| bytes.arbitrary())?, action(bytes)?),
        24 => Step::Next(bytes.arbitrary()?, action(bytes)?),
        25 => Step::ReportRunning,
        26 => Step::Advance(step(bytes)?),
        27 => Step::AdvanceToDeadline,
        28 => Step::ShutDown,
        29 => Step::BeginDrain,
        30 => Step::TakeDelayed,
        31 => Step::TakeReady,
        36 => Step::CancelKey(key(bytes, keys)?),
        37 => Step::CancelDelay(key(bytes, keys)?),
        38 => Step::Expedite(key(bytes, keys)?),
        39 => Step::ExpediteAll,
        41 => Step::Pause,
        42 => Step::Unpause,
        44 => Step::Snapshot,
        43 => Step::Restore(left(bytes, keys)?),
        45..=46 => Step::AddDebounced(
            key(bytes, keys)?,
            draw::duration(bytes)?,
            draw::duration(bytes)?,
        ),
        52..=53 => Step::Suspend(key(bytes, keys)?, draw::duration(bytes)?),
        54 => Step::Resume(key(bytes, keys)?),
        48 => Step::Order(order(bytes)?),
        49 => Step::AgeAfter(age(bytes)?),
        51 => Step::LimitKeys(max_keys(bytes)?),
        55 => Step::LimitFailureRecords(max_keys(bytes)?),
        56 => Step::LimitDueKeys(bytes.int_in_range(1..=3)?),
        57 => {
            let mut policy = PolicySpec::default();
            limiter_and_policy(bytes, 2, &mut policy)?;
            Step::SetPolicy(policy)
        }
        47 => Step::AddDisplacing(key(bytes, keys)?, options(bytes)?),
        40 => Step::RetainBelow(bytes.int_in_range(0..=keys)?),
        _ => Step::PanicAtWork,
    })
}

/// One of a few keys.
pub(crate) fn key(bytes: &mut Unstructured, keys: Key) -> Result<Key> {
    bytes.int_in_range(1..=keys)
}

/// What another queue may have left.
pub(crate) fn left(bytes: &mut Unstructured, keys: Key) -> Result<Left> {
    Ok(Left {
        key: key(bytes, keys)?,
        left: draw::duration(bytes)?,
        failures: draw::count(bytes)?,
        priority: level(bytes)?,
    })
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
    fn kind(op: &Step) -> u8 {
        match op {
            Step::Add(_) => 0,
            Step::AddAfter(..) => 1,
            Step::AddAt(..) => 2,
            Step::AddRateLimited(_) => 3,
            Step::AddWith(..) => 4,
            Step::AddMany(_) => 5,
            Step::Forget(_) => 6,
            Step::TryGet => 7,
            Step::Get => 8,
            Step::GetMany(_) => 9,
            Step::LookAgain(_) => 10,
            Step::Leave(_) => 11,
            Step::DoneKey(_) => 12,
            Step::Done(_) => 13,
            Step::Complete(..) => 14,
            Step::CompleteMany(..) => 15,
            Step::Next(..) => 16,
            Step::ReportRunning => 17,
            Step::Advance(_) => 18,
            Step::AdvanceToDeadline => 19,
            Step::ShutDown => 20,
            Step::BeginDrain => 21,
            Step::TakeDelayed => 22,
            Step::TakeReady => 23,
            Step::PanicAtWork => 24,
            Step::CancelKey(_) => 25,
            Step::CancelDelay(_) => 26,
            Step::Expedite(_) => 27,
            Step::ExpediteAll => 28,
            Step::RetainBelow(_) => 29,
            Step::Pause => 30,
            Step::Unpause => 31,
            Step::Restore(_) => 32,
            Step::Snapshot => 33,
            Step::AddDebounced(..) => 34,
            Step::AddDisplacing(..) => 35,
            Step::Order(_) => 36,
            Step::AgeAfter(_) => 37,
            Step::LimitKeys(_) => 38,
            Step::Why(_) => 39,
            Step::Suspend(..) => 40,
            Step::Resume(_) => 41,
            Step::LimitFailureRecords(_) => 42,
            Step::LimitDueKeys(_) => 43,
            Step::SetPolicy(_) => 44,
            // Calls that wait are no operations.
            Step::Start(_)
            | Step::NextUnrun(_)
            | Step::Cancel(_)
            | Step::Nudge(_)
            | Step::Settle => u8::MAX,
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

//! A queue, and what is done to it, made of bytes.

use arbitrary::{Result, Unstructured};
use requeue_core::{Action, AddOptions};
use requeue_proptest::histories::MERGES;
use requeue_proptest::limiter::{FloatBits, LimiterSpec};
use requeue_proptest::subject::{Configuration, Key, Left, PolicySpec, Rate, left_over};

use crate::draw;

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
        ..AddOptions::new()
    })
}

fn level(bytes: &mut Unstructured) -> Result<u8> {
    Ok(match bytes.int_in_range(0..=7_u8)? {
        7 => bytes.arbitrary()?,
        others => others % 3,
    })
}

/// How a run may end.
pub(crate) fn action(bytes: &mut Unstructured) -> Result<Action> {
    let action = match bytes.int_in_range(0..=7_u8)? {
        0 => Action::Release,
        1 => Action::Success,
        2 => Action::RequeueAfter(draw::duration(bytes)?),
        3 => Action::Retry,
        4 => Action::GiveUp,
        5 => Action::Suspend(draw::duration(bytes)?),
        6 => Action::poll(draw::duration(bytes)?, draw::duration(bytes)?),
        _ => Action::Snooze(draw::duration(bytes)?),
    };
    Ok(if bytes.ratio(1, 4_u8)? {
        action.with_priority(level(bytes)?)
    } else {
        action
    })
}

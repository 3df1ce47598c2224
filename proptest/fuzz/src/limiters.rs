//! Limiters, alone, composed, and with a memory of their own.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use requeue_core::limiter::{
    Exponential, FastSlow, KeyedLimiter, RateLimiter, TokenBucket, WithMaxWait,
};
use requeue_core::storage::{Fixed, Storage};
use requeue_proptest::limiter::{AnyLimiter, AnyRecord, FloatBits, LimiterSpec};

use crate::draw;

/// Asks limiters with any parameters at any times, and holds every delay against what is promised.
///
/// # Panics
///
/// If a delay breaks a promise.
pub fn limiters(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that run out have tried enough.
    let _ = match bytes.int_in_range(0..=4_u8) {
        Ok(0) => exponential(&mut bytes),
        Ok(1) => fast_slow(&mut bytes),
        Ok(2) => bucket(&mut bytes),
        Ok(3) => composed(&mut bytes),
        _ => keyed(&mut bytes),
    };
}

/// A limiter of any kind, which has others within down to a depth.
fn limiter(bytes: &mut Unstructured, depth: u8) -> Result<LimiterSpec> {
    let kinds = if depth == 0 { 4 } else { 6 };
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
            inner: Box::new(limiter(bytes, depth - 1)?),
            max_ns: draw::nanos(bytes)?,
        },
        _ => LimiterSpec::MaxOf {
            limiters: some(bytes, depth - 1)?,
        },
    })
}

/// Up to three limiters.
fn some(bytes: &mut Unstructured, depth: u8) -> Result<Vec<LimiterSpec>> {
    let count = bytes.int_in_range(0..=3)?;
    (0..count).map(|_| limiter(bytes, depth)).collect()
}

/// How many delays are asked for at most: enough for the delay of the smallest base to reach its
/// end.
const DELAYS_MAX: usize = 80;

fn delays(bytes: &mut Unstructured) -> Result<usize> {
    bytes.int_in_range(0..=DELAYS_MAX)
}

/// The base, doubled for each failure, as Go's floats are, and one failure more each time.
fn exponential(bytes: &mut Unstructured) -> Result<()> {
    let (base, max) = (draw::duration(bytes)?, draw::duration(bytes)?);
    let mut failures = draw::count(bytes)?;
    let mut limiter = Exponential::new(base, max);
    // What does not take less than the greatest number of nanoseconds counts as never.
    let fits = max.as_nanos() < u64::MAX.into();
    let max = if fits { max } else { Duration::MAX };
    for _ in 0..delays(bytes)? {
        let earlier = failures;
        let delay = limiter.when(&mut failures, draw::instant(bytes)?);
        let doubled = base.as_nanos() as f64 * 2_f64.powi(earlier.min(1_000) as i32);
        // Go's durations end at 2^63 ns.
        let expected = match doubled < 2_f64.powi(63) {
            true => max.min(Duration::from_nanos(doubled as u64)),
            false => max,
        };
        let expected = (expected, earlier.saturating_add(1));
        assert_eq!((delay, failures), expected, "{limiter:?}");
        assert_eq!(limiter.failures(&failures), failures, "{limiter:?}");
    }
    Ok(())
}

/// So many fast ones, and only slow ones after them.
fn fast_slow(bytes: &mut Unstructured) -> Result<()> {
    let (fast, slow) = (draw::duration(bytes)?, draw::duration(bytes)?);
    let max_fast_attempts = draw::count(bytes)?;
    let mut failures = draw::count(bytes)?;
    let mut limiter = FastSlow::new(fast, slow, max_fast_attempts);
    for _ in 0..delays(bytes)? {
        let attempt = failures.saturating_add(1);
        let delay = limiter.when(&mut failures, draw::instant(bytes)?);
        let is_fast = attempt <= max_fast_attempts;
        let expected = (if is_fast { fast } else { slow }, attempt);
        let seen = (delay, limiter.failures(&failures));
        assert_eq!(seen, expected, "{limiter:?}");
    }
    Ok(())
}

/// A burst at most, then delays that grow while no time passes, and never longer than the longest.
fn bucket(bytes: &mut Unstructured) -> Result<()> {
    let burst = draw::count(bytes)?;
    let (mut bucket, rate) = if bytes.arbitrary()? {
        let interval = draw::duration(bytes)?;
        let bucket = TokenBucket::every(interval, burst);
        (bucket, 1.0 / interval.as_secs_f64())
    } else {
        let rate = draw::float(bytes)?;
        (TokenBucket::new(rate, burst), rate)
    };
    let (mut now, mut before, mut at_once) = (draw::instant(bytes)?, Duration::ZERO, 0);
    for _ in 0..delays(bytes)? {
        if bytes.int_in_range(0..=7_u8)? == 0 {
            now = draw::instant(bytes)?;
            (before, at_once) = (Duration::ZERO, 0);
        }
        let delay = bucket.when(&mut (), now);
        at_once += u32::from(delay.is_zero());
        let is_right = before <= delay
            && delay <= TokenBucket::INFINITE_DELAY
            && if rate >= TokenBucket::UNLIMITED_RATE {
                delay.is_zero()
            } else if burst == 0 {
                delay == TokenBucket::INFINITE_DELAY
            } else if rate > 0.0 {
                at_once <= burst || rate >= 1e9
            } else {
                at_once <= burst && (delay.is_zero() || delay == TokenBucket::INFINITE_DELAY)
            };
        let seen = (before, delay, at_once);
        assert!(is_right, "{bucket:?}: {seen:?}");
        before = delay;
    }
    Ok(())
}

/// The longest delay of all, and at most the longest allowed: as if each part were asked alone.
fn composed(bytes: &mut Unstructured) -> Result<()> {
    let limiters = some(bytes, 1)?;
    let max = draw::duration(bytes)?;
    let mut parts: Vec<AnyLimiter> = limiters.iter().map(LimiterSpec::build).collect();
    let mut all = WithMaxWait::new(LimiterSpec::MaxOf { limiters }.build(), max);
    let mut record = AnyRecord::default();
    let mut records = vec![AnyRecord::default(); parts.len()];
    for _ in 0..delays(bytes)? {
        let now = draw::instant(bytes)?;
        let alone = parts.iter_mut().zip(&mut records);
        let expected = alone.map(|(part, record)| part.when(record, now)).max();
        let expected = expected.unwrap_or_default().min(max);
        assert_eq!(all.when(&mut record, now), expected, "{all:?}");
        let alone = parts.iter().zip(&records);
        let failures = alone.map(|(part, record)| part.failures(record)).max();
        assert_eq!(
            all.failures(&record),
            failures.unwrap_or_default(),
            "{all:?}"
        );
        if bytes.int_in_range(0..=15_u8)? == 0 {
            record = AnyRecord::default();
            records.fill(AnyRecord::default());
        }
    }
    Ok(())
}

/// A memory for each key, beside a list of them.
fn keyed(bytes: &mut Unstructured) -> Result<()> {
    let spec = limiter(bytes, 1)?;
    let remembers_two = |limiter| {
        let mut keyed = KeyedLimiter::growable(limiter);
        keyed.limit_failure_records(2);
        keyed
    };
    match bytes.int_in_range(0..=3_u8)? {
        0 => remembers(KeyedLimiter::<_, _, Fixed<1>>::new, Some(1), &spec, bytes),
        1 => remembers(KeyedLimiter::<_, _, Fixed<3>>::new, Some(3), &spec, bytes),
        2 => remembers(KeyedLimiter::growable, None, &spec, bytes),
        _ => remembers(remembers_two, Some(2), &spec, bytes),
    }
}

fn remembers<S: Storage>(
    new: impl FnOnce(AnyLimiter) -> KeyedLimiter<u8, AnyLimiter, S>,
    mut max: Option<usize>,
    spec: &LimiterSpec,
    bytes: &mut Unstructured,
) -> Result<()> {
    let (mut keyed, mut limiter) = (new(spec.build()), spec.build());
    // The key that failed longest ago comes first.
    let mut records: Vec<(u8, AnyRecord)> = Vec::new();
    let forget_oldest = |records: &mut Vec<(u8, AnyRecord)>, max: Option<usize>| {
        let too_many = records.len().saturating_sub(max.unwrap_or(usize::MAX));
        records.drain(..too_many);
    };
    for _ in 0..delays(bytes)? {
        let key = bytes.int_in_range(1..=5_u8)?;
        let at = records.iter().position(|(other, _)| *other == key);
        let mut record = at.map(|at| records.remove(at).1).unwrap_or_default();
        if bytes.int_in_range(0..=7_u8)? == 0 {
            assert_eq!(keyed.forget(&key), limiter.failures(&record), "{limiter:?}");
        } else {
            let now = draw::instant(bytes)?;
            let expected = limiter.when(&mut record, now);
            assert_eq!(keyed.when(&key, now), expected, "{limiter:?}");
            if record != AnyRecord::default() {
                records.push((key, record));
            }
        }
        forget_oldest(&mut records, max);
        if max.is_some() && bytes.int_in_range(0..=31_u8)? == 0 {
            let fewer = bytes.int_in_range(0..=4)?;
            keyed.limit_failure_records(fewer);
            max = Some(fewer.min(S::CAPACITY.unwrap_or(fewer)));
            forget_oldest(&mut records, max);
        }
        assert_eq!(keyed.len(), records.len(), "{limiter:?}");
        for (key, record) in &records {
            assert_eq!(keyed.failures(key), limiter.failures(record), "{limiter:?}");
        }
    }
    Ok(())
}

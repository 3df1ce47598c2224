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
        _ => {
            let count = bytes.int_in_range(0..=3)?;
            let limiters = (0..count).map(|_| limiter(bytes, depth - 1));
            LimiterSpec::MaxOf {
                limiters: limiters.collect::<Result<_>>()?,
            }
        }
    })
}

/// How many delays are asked for at most: enough for the delay of the smallest base to reach its
/// end.
const DELAYS_MAX: usize = 80;

fn delays(bytes: &mut Unstructured) -> Result<usize> {
    bytes.int_in_range(0..=DELAYS_MAX)
}

/// Never more than the maximum, never less than before, and one failure more each time.
fn exponential(bytes: &mut Unstructured) -> Result<()> {
    let (base, max) = (draw::duration(bytes)?, draw::duration(bytes)?);
    let mut failures = draw::count(bytes)?;
    let mut limiter = Exponential::new(base, max);
    // What does not take less than the greatest number of nanoseconds counts as never.
    let fits = max.as_nanos() < u64::MAX.into();
    let max = if fits { max } else { Duration::MAX };
    let mut before = Duration::ZERO;
    for _ in 0..delays(bytes)? {
        let earlier = failures;
        let delay = limiter.when(&mut failures, draw::instant(bytes)?);
        assert!(delay <= max, "{limiter:?}: {delay:?}");
        // Go's durations end at 2^63 ns.
        assert!(
            delay.as_nanos() < 1 << 63 || delay == max,
            "{limiter:?}: {delay:?}"
        );
        assert!(delay >= before, "{limiter:?}: {before:?}, then {delay:?}");
        assert!(
            delay <= doubled(base, earlier) || delay == max,
            "{limiter:?}: {delay:?}"
        );
        assert_eq!(failures, earlier.saturating_add(1), "{limiter:?}");
        assert_eq!(limiter.failures(&failures), failures, "{limiter:?}");
        before = delay;
    }
    Ok(())
}

/// The delay without a limit, and one part in 2^52 more, since the base is rounded.
fn doubled(base: Duration, times: u32) -> Duration {
    let base = base.as_nanos().saturating_add(base.as_nanos() >> 52);
    let nanos = match times {
        0..64 => base.saturating_mul(1 << times),
        _ if base == 0 => 0,
        _ => u128::MAX,
    };
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
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
        let expected = if attempt <= max_fast_attempts {
            fast
        } else {
            slow
        };
        assert_eq!(delay, expected, "{limiter:?}, attempt {attempt}");
        assert_eq!(limiter.failures(&failures), attempt, "{limiter:?}");
    }
    Ok(())
}

/// A burst at most, then delays that grow while no time passes, and never longer than the longest.
fn bucket(bytes: &mut Unstructured) -> Result<()> {
    let burst = draw::count(bytes)?;
    let (mut bucket, rate) = if bytes.arbitrary()? {
        let interval = draw::duration(bytes)?;
        (
            TokenBucket::every(interval, burst),
            1.0 / interval.as_secs_f64(),
        )
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
        assert!(
            delay <= TokenBucket::INFINITE_DELAY,
            "{bucket:?}: {delay:?}"
        );
        assert!(delay >= before, "{bucket:?}: {before:?}, then {delay:?}");
        if rate >= TokenBucket::UNLIMITED_RATE {
            assert_eq!(delay, Duration::ZERO, "{bucket:?}");
        } else if burst == 0 {
            assert_eq!(delay, TokenBucket::INFINITE_DELAY, "{bucket:?}");
        } else if rate > 0.0 {
            assert!(
                at_once <= burst || rate >= 1e9,
                "{bucket:?}: {at_once} at once"
            );
        } else {
            let holds = delay.is_zero() || delay == TokenBucket::INFINITE_DELAY;
            assert!(at_once <= burst && holds, "{bucket:?}: {delay:?}");
        }
        before = delay;
    }
    Ok(())
}

/// The longest delay of all, and at most the longest allowed: as if each part were asked alone.
fn composed(bytes: &mut Unstructured) -> Result<()> {
    let count = bytes.int_in_range(0..=3)?;
    let parts = (0..count).map(|_| limiter(bytes, 1));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let max = draw::duration(bytes)?;
    let mut alone = parts
        .iter()
        .map(|part| (part.build(), AnyRecord::default()))
        .collect::<Vec<_>>();
    let mut all = WithMaxWait::new(LimiterSpec::MaxOf { limiters: parts }.build(), max);
    let mut record = AnyRecord::default();
    for _ in 0..delays(bytes)? {
        let now = draw::instant(bytes)?;
        let expected = alone
            .iter_mut()
            .map(|(part, record)| part.when(record, now));
        let expected = expected.max().unwrap_or_default().min(max);
        assert_eq!(all.when(&mut record, now), expected, "{all:?}");
        let failures = alone.iter().map(|(part, record)| part.failures(record));
        let failures = failures.max().unwrap_or_default();
        assert_eq!(all.failures(&record), failures, "{all:?}");
        if bytes.int_in_range(0..=15_u8)? == 0 {
            record = AnyRecord::default();
            alone
                .iter_mut()
                .for_each(|(_, record)| *record = AnyRecord::default());
        }
    }
    Ok(())
}

/// A memory for each key, beside a list of them.
fn keyed(bytes: &mut Unstructured) -> Result<()> {
    let spec = limiter(bytes, 1)?;
    let limiter = spec.build();
    match bytes.int_in_range(0..=3_u8)? {
        0 => remembers(
            KeyedLimiter::<_, _, Fixed<1>>::new(limiter),
            Some(1),
            &spec,
            bytes,
        ),
        1 => remembers(
            KeyedLimiter::<_, _, Fixed<3>>::new(limiter),
            Some(3),
            &spec,
            bytes,
        ),
        2 => remembers(KeyedLimiter::growable(limiter), None, &spec, bytes),
        _ => {
            let mut keyed = KeyedLimiter::growable(limiter);
            keyed.limit_failure_records(2);
            remembers(keyed, Some(2), &spec, bytes)
        }
    }
}

fn remembers<S: Storage>(
    mut keyed: KeyedLimiter<u8, AnyLimiter, S>,
    mut max: Option<usize>,
    spec: &LimiterSpec,
    bytes: &mut Unstructured,
) -> Result<()> {
    let mut limiter = spec.build();
    // The key that failed longest ago comes first.
    let mut records: Vec<(u8, AnyRecord)> = Vec::new();
    for _ in 0..delays(bytes)? {
        let key = bytes.int_in_range(1..=5_u8)?;
        let at = records.iter().position(|(other, _)| *other == key);
        let mut record = at.map(|at| records.remove(at).1).unwrap_or_default();
        match bytes.int_in_range(0..=7_u8)? {
            0 => assert_eq!(keyed.forget(&key), limiter.failures(&record), "{spec:?}"),
            _ => {
                let now = draw::instant(bytes)?;
                let expected = limiter.when(&mut record, now);
                assert_eq!(keyed.when(&key, now), expected, "{spec:?}");
                if record != AnyRecord::default() {
                    records.push((key, record));
                }
            }
        }
        forget_oldest(&mut records, max);
        if max.is_some() && bytes.int_in_range(0..=31_u8)? == 0 {
            let fewer = bytes.int_in_range(0..=4)?;
            keyed.limit_failure_records(fewer);
            max = Some(fewer.min(S::CAPACITY.unwrap_or(fewer)));
            forget_oldest(&mut records, max);
        }
        assert_eq!(keyed.len(), records.len(), "{spec:?}");
        for (key, record) in &records {
            assert_eq!(keyed.failures(key), limiter.failures(record), "{spec:?}");
        }
    }
    Ok(())
}

fn forget_oldest(records: &mut Vec<(u8, AnyRecord)>, max: Option<usize>) {
    let too_many = records.len().saturating_sub(max.unwrap_or(usize::MAX));
    records.drain(..too_many);
}

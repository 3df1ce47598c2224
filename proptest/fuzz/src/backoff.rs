//! Backoffs, and what is built on them.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use requeue_core::backoff::{Backoff, BackoffUntil, no_jitter};

use crate::draw;

/// Steps a backoff with any parameters, and holds every pause against what is promised of it.
///
/// # Panics
///
/// If a pause breaks a promise.
pub fn backoff(bytes: &[u8]) {
    // Bytes that run out have tried enough.
    let _ = try_any(&mut Unstructured::new(bytes));
}

fn try_any(bytes: &mut Unstructured) -> Result<()> {
    let backoff = Backoff {
        duration: draw::duration(bytes)?,
        factor: draw::float(bytes)?,
        jitter: draw::float(bytes)?,
        steps: draw::count(bytes)?,
        cap: draw::duration(bytes)?,
    };
    steps(backoff, bytes)?;
    managers(backoff, bytes)
}

/// How many pauses are asked for at most.
const PAUSES_MAX: usize = 64;

fn steps(mut backoff: Backoff, bytes: &mut Unstructured) -> Result<()> {
    for _ in 0..bytes.int_in_range(0..=PAUSES_MAX)? {
        let before = backoff;
        let drawn: u64 = bytes.arbitrary()?;
        let pause = backoff.step(&mut || drawn);
        assert!(is_jittered(&before, pause), "{before:?}: {pause:?}");
        assert!(follows(&before, &backoff), "{before:?} became {backoff:?}");
        let mut plain = before;
        assert_eq!(plain.step(&mut no_jitter), before.duration);
        let is_same = plain.duration == backoff.duration;
        assert!(is_same, "jitter does not add up: {before:?}");
    }
    Ok(())
}

/// Whether a pause is at least the duration, and longer by jitter alone.
fn is_jittered(before: &Backoff, pause: Duration) -> bool {
    if before.jitter.is_nan() || before.jitter <= 0.0 {
        return pause == before.duration;
    }
    // Rounding may add one part in 2^52.
    let factor = (1.0 + before.jitter) * (1.0 + f64::EPSILON * 4.0);
    let longest = before.duration.as_nanos() as f64 * factor;
    let is_saturated = longest >= u64::MAX as f64 || pause == Duration::MAX;
    let is_short = pause.as_nanos() as f64 <= longest.max(1.0);
    pause >= before.duration && (is_short || is_saturated)
}

/// Whether a backoff is what a step leaves behind.
fn follows(before: &Backoff, after: &Backoff) -> bool {
    let is_constant = before.steps == 0 || before.factor == 0.0;
    if is_constant && after.duration != before.duration {
        return false;
    }
    if before.steps == 0 {
        return after.steps == 0;
    }
    let has_cap = !before.cap.is_zero();
    let is_capped = after.steps == 0 && after.duration == before.cap && has_cap;
    let is_one_less = after.steps == before.steps - 1;
    // No more nanoseconds than these fit.
    let [was, is] = [before, after].map(|it| it.duration.as_nanos().min(u64::MAX.into()) as f64);
    let is_in_order = match before.factor {
        factor if factor >= 1.0 => is >= was,
        factor if factor < 0.0 || factor.is_nan() => after.duration.is_zero(),
        _ => true,
    };
    let fits = before.factor == 0.0 || !has_cap || after.duration <= before.cap;
    (is_capped || is_one_less && is_in_order) && fits
}

/// Those that start over, on a clock that may do anything: no pause is longer than the first or the
/// cap, and none ends before it has begun.
fn managers(backoff: Backoff, bytes: &mut Unstructured) -> Result<()> {
    let (interval, start) = (draw::duration(bytes)?, draw::instant(bytes)?);
    let plain = Backoff {
        jitter: 0.0,
        ..backoff
    };
    let with_reset = || plain.delay_with_reset(interval, start, no_jitter);
    let with_idle_reset = || plain.delay_with_idle_reset(interval, start, no_jitter);
    let mut sliding = BackoffUntil::sliding(with_idle_reset());
    let mut non_sliding = BackoffUntil::non_sliding(with_reset());
    let (mut with_reset, mut with_idle_reset) = (with_reset(), with_idle_reset());
    for _ in 0..bytes.int_in_range(0..=PAUSES_MAX)? {
        let (now, end) = (draw::instant(bytes)?, draw::instant(bytes)?);
        for pause in [with_reset(now), with_idle_reset(now)] {
            let longest = plain.duration.max(plain.cap);
            assert!(plain.cap.is_zero() || pause <= longest, "{plain:?}");
        }
        sliding.start(now);
        assert!(sliding.finish(end) >= end, "{plain:?}");
        non_sliding.start(now);
        assert!(non_sliding.finish(end) >= now, "{plain:?}");
    }
    Ok(())
}

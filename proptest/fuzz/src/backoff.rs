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
    let mut bytes = Unstructured::new(bytes);
    // Bytes that run out have tried enough.
    let _ = draw_backoff(&mut bytes).and_then(|backoff| {
        steps(backoff, &mut bytes)?;
        managers(backoff, &mut bytes)
    });
}

/// How many pauses are asked for at most.
const PAUSES_MAX: usize = 64;

fn draw_backoff(bytes: &mut Unstructured) -> Result<Backoff> {
    Ok(Backoff {
        duration: draw::duration(bytes)?,
        factor: draw::float(bytes)?,
        jitter: draw::float(bytes)?,
        steps: draw::count(bytes)?,
        cap: draw::duration(bytes)?,
    })
}

fn steps(mut backoff: Backoff, bytes: &mut Unstructured) -> Result<()> {
    for _ in 0..bytes.int_in_range(0..=PAUSES_MAX)? {
        let before = backoff;
        let drawn: u64 = bytes.arbitrary()?;
        let pause = backoff.step(&mut || drawn);
        assert_jittered(&before, pause);
        assert_next(&before, &backoff);
        let mut plain = before;
        assert_eq!(plain.step(&mut no_jitter), before.duration);
        assert_eq!(
            plain.duration, backoff.duration,
            "jitter does not add up: {before:?}"
        );
    }
    Ok(())
}

/// A pause is at least the duration, and longer by jitter alone.
fn assert_jittered(before: &Backoff, pause: Duration) {
    assert!(pause >= before.duration, "{before:?}: {pause:?}");
    if before.jitter > 0.0 {
        // Rounding may add one part in 2^52.
        let factor = (1.0 + before.jitter) * (1.0 + f64::EPSILON * 4.0);
        let longest = before.duration.as_nanos() as f64 * factor;
        let pause_ns = pause.as_nanos() as f64;
        let saturated = longest >= u64::MAX as f64 || pause == Duration::MAX;
        assert!(
            pause_ns <= longest.max(1.0) || saturated,
            "{before:?}: {pause:?}"
        );
    } else {
        assert_eq!(pause, before.duration, "{before:?}");
    }
}

/// What the backoff of the next pause is.
fn assert_next(before: &Backoff, after: &Backoff) {
    let context = || format!("{before:?} became {after:?}");
    if before.steps == 0 || before.factor == 0.0 {
        assert_eq!(after.duration, before.duration, "{}", context());
    }
    if before.steps == 0 {
        assert_eq!(after.steps, 0, "{}", context());
        return;
    }
    let capped = after.steps == 0 && after.duration == before.cap && !before.cap.is_zero();
    let one_less = after.steps == before.steps - 1;
    assert!(one_less || capped, "{}", context());
    let grows = before.factor >= 1.0;
    if grows && !capped {
        let (grown, from) = (nanos(after.duration) as f64, nanos(before.duration) as f64);
        assert!(grown >= from, "{}", context());
    }
    let shrinks = before.factor < 0.0 || before.factor.is_nan();
    if shrinks && !capped {
        assert_eq!(after.duration, Duration::ZERO, "{}", context());
    }
    if before.factor != 0.0 && !before.cap.is_zero() {
        assert!(after.duration <= before.cap, "{}", context());
    }
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

/// What a duration counts as where only nanoseconds fit.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

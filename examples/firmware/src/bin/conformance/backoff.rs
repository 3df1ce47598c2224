//! apimachinery's backoffs: pauses, the state that each leaves behind, and the times of retries.

use core::time::Duration;

use requeue_embassy::Instant;
use requeue_embassy::backoff::{Backoff, jitter, no_jitter};

use crate::judge::Judge;
use crate::recording::Bytes;

/// Replays the next recording: `build/backoff.rs` is the other end of this.
pub fn replay(bytes: &mut Bytes<'_>, judge: &mut Judge) {
    let kind = bytes.byte();
    let backoff = Backoff {
        duration: bytes.duration(),
        factor: f64::from_bits(bytes.word()),
        jitter: f64::from_bits(bytes.word()),
        steps: bytes.small(),
        cap: bytes.duration(),
    };
    let reset = bytes.duration();
    let start = Instant::EPOCH;
    let steps = bytes.small();
    judge.steps += steps;
    match kind {
        0 => step(bytes, judge, backoff, steps),
        1 => pause(bytes, judge, backoff.delay_func(no_jitter), steps),
        2 => {
            let next = backoff.delay_with_reset(reset, start, no_jitter);
            pause(bytes, judge, next, steps);
        }
        3 => {
            let next = backoff.delay_with_idle_reset(reset, start, no_jitter);
            pause(bytes, judge, next, steps);
        }
        4 => step_with_jitter(bytes, judge, backoff, steps),
        5 => (0..steps).for_each(|_| draw(bytes, judge, backoff.jitter)),
        _ => (0..steps).for_each(|_| retry(bytes, judge, backoff)),
    }
}

fn step(bytes: &mut Bytes<'_>, judge: &mut Judge, mut backoff: Backoff, steps: u32) {
    for index in 0..steps {
        let delay = backoff.step(&mut no_jitter);
        judge.expect(index, "a pause", delay, bytes.duration());
        expect_left(bytes, judge, &[backoff]);
    }
}

/// Compares the state that a step leaves behind, unless Go's depends on the processor.
fn expect_left(bytes: &mut Bytes<'_>, judge: &mut Judge, left: &[Backoff]) {
    let is_open = bytes.byte() == 1;
    if is_open {
        return;
    }
    let recorded = (bytes.duration(), bytes.small());
    for backoff in left {
        let left = (backoff.duration, backoff.steps);
        judge.expect("a step", "what is left", left, recorded);
    }
}

fn pause(
    bytes: &mut Bytes<'_>,
    judge: &mut Judge,
    mut next: impl FnMut(Instant) -> Duration,
    steps: u32,
) {
    let mut now = Instant::EPOCH;
    for _ in 0..steps {
        if bytes.byte() == 1 {
            now = now + bytes.duration();
        } else {
            let delay = next(now);
            judge.expect(now, "a pause", delay, bytes.duration());
        }
    }
}

/// The least draw and the greatest: the ends of the range, and what is left does not depend on it.
fn step_with_jitter(bytes: &mut Bytes<'_>, judge: &mut Judge, backoff: Backoff, steps: u32) {
    let (mut least, mut greatest) = (backoff, backoff);
    for _ in 0..steps {
        let delays = [least.step(&mut no_jitter), greatest.step(&mut largest)];
        expect_range(bytes, judge, delays);
        expect_left(bytes, judge, &[least, greatest]);
    }
}

fn draw(bytes: &mut Bytes<'_>, judge: &mut Judge, max_factor: f64) {
    let duration = bytes.duration();
    let delays = [
        jitter(duration, max_factor, &mut no_jitter),
        jitter(duration, max_factor, &mut largest),
    ];
    expect_range(bytes, judge, delays);
}

fn expect_range(bytes: &mut Bytes<'_>, judge: &mut Judge, [least, greatest]: [Duration; 2]) {
    let (low, high) = (bytes.duration(), bytes.duration());
    judge.expect("a draw", "the least", least, low);
    let is_within = (low..=high).contains(&greatest);
    judge.expect(
        greatest.as_nanos(),
        "the greatest is in range",
        is_within,
        true,
    );
}

/// The loop that a caller would write, on a clock that only its pauses move.
fn retry(bytes: &mut Bytes<'_>, judge: &mut Judge, mut backoff: Backoff) {
    let succeeds = bytes.small();
    let calls_recorded = bytes.small();
    let (mut calls, mut elapsed) = (0, Duration::ZERO);
    let mut timed_out = true;
    while backoff.steps > 0 {
        calls += 1;
        if calls <= calls_recorded {
            judge.expect(calls, "the time of a call", elapsed, bytes.duration());
        }
        if calls == succeeds {
            timed_out = false;
            break;
        }
        elapsed += backoff.retry_delay(&mut no_jitter).unwrap_or_default();
    }
    // What is not read would be taken for what follows.
    for _ in calls..calls_recorded {
        let _ = bytes.duration();
    }
    judge.expect("the end", "calls", calls, calls_recorded);
    judge.expect("the end", "the time", elapsed, bytes.duration());
    judge.expect("the end", "timed out", timed_out, bytes.byte() == 1);
}

/// The largest number each time.
fn largest() -> u64 {
    u64::MAX
}

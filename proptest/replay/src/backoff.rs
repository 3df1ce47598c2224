//! Replays recorded backoffs: pauses, the state they leave behind, and the times of retried calls.

use std::time::Duration;

use requeue_core::Instant;
use requeue_core::backoff::{Backoff, jitter, no_jitter};
use requeue_proptest::limiter::FloatBits;
use requeue_test_tools::Rng;
use serde::Deserialize;

use crate::report::{BadTrace, Mismatch, Progress, Report, replay_lines};

/// Go leaves a duration past 2^63 ns to the processor; this saturates. The recording ends there.
pub const DURATION_PAST_2_POW_63: &str = "a next duration past 2^63 ns";

/// Replays a file of backoff recordings, one JSON object per line.
///
/// # Examples
///
/// ```
/// use requeue_replay::backoff::replay;
///
/// let recorded = r#"{"id":"a","kind":"delay_func","params":{"duration_ns":7,
///     "factor_bits":"4000000000000000","jitter_bits":"0000000000000000","steps":2,"cap_ns":0},
///     "ops":[{"op":"next","delay":7},{"op":"next","delay":14},{"op":"next","delay":28}]}"#;
/// let found = replay(&recorded.replace('\n', ""))?;
/// assert_eq!((found.steps, found.mismatches), (3, 0));
/// # Ok::<(), requeue_replay::BadTrace>(())
/// ```
///
/// # Errors
///
/// [`BadTrace`] for a line that cannot be read.
pub fn replay(jsonl: &str) -> Result<Report, BadTrace> {
    replay_lines(jsonl, |trace: Trace, progress| {
        progress.begin(&trace.id, &(trace.kind, &trace.params));
        let backoff = trace.params.backoff();
        let reset = trace.params.reset();
        let start = Instant::EPOCH;
        match trace.kind {
            Kind::Step => steps(&trace, backoff, progress),
            Kind::DelayFunc => delays(&trace, backoff.delay_func(no_jitter), progress),
            Kind::DelayWithReset => {
                let next = backoff.delay_with_reset(reset, start, no_jitter);
                delays(&trace, next, progress)
            }
            Kind::ExponentialManager => {
                let next = backoff.delay_with_idle_reset(reset, start, no_jitter);
                delays(&trace, next, progress)
            }
            Kind::JitterStep => jittered_steps(&trace, backoff, progress),
            Kind::JitterFn => jitters(&trace, progress),
            Kind::RetryLoop => retries(&trace, progress),
        }
    })
}

#[derive(Deserialize)]
struct Trace {
    id: String,
    kind: Kind,
    params: Params,
    ops: Vec<BackoffOp>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Step,
    DelayFunc,
    DelayWithReset,
    ExponentialManager,
    JitterStep,
    JitterFn,
    RetryLoop,
}

#[derive(Debug, Deserialize)]
struct Params {
    duration_ns: u64,
    factor_bits: FloatBits,
    jitter_bits: FloatBits,
    steps: i64,
    cap_ns: u64,
    reset_ns: Option<i64>,
}

impl Params {
    fn backoff(&self) -> Backoff {
        Backoff {
            duration: nanos(self.duration_ns),
            factor: self.factor_bits.0,
            jitter: self.jitter_bits.0,
            steps: u32::try_from(self.steps.max(0)).unwrap_or(u32::MAX),
            cap: nanos(self.cap_ns),
        }
    }

    /// Zero where Go's is negative: to `DelayWithReset`, which alone is recorded with one, they are
    /// the same.
    fn reset(&self) -> Duration {
        nanos(self.reset_ns.unwrap_or(0).max(0).unsigned_abs())
    }
}

/// A step of any kind. Which members there are depends on the kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BackoffOp {
    op: String,
    delay: Option<u64>,
    lo: u64,
    hi: u64,
    duration_after: u64,
    steps_after: u32,
    impl_defined_next: bool,
    d: u64,
    t: u64,
    succeed_on_call: i64,
    call_times_ns: Vec<u128>,
    elapsed_ns: u128,
    timed_out: bool,
}

impl BackoffOp {
    /// Whether `backoff` is what the step left behind.
    fn left(&self, backoff: &Backoff) -> bool {
        backoff.duration == nanos(self.duration_after) && backoff.steps == self.steps_after
    }
}

fn steps(trace: &Trace, mut backoff: Backoff, progress: &mut Progress) -> Result<(), Mismatch> {
    for op in &trace.ops {
        let delay = backoff.step(&mut no_jitter);
        if op.impl_defined_next {
            progress.differs(DURATION_PAST_2_POW_63);
        }
        let matches =
            op.delay.map(nanos) == Some(delay) && (op.impl_defined_next || op.left(&backoff));
        progress.step(op, matches, &(delay, backoff))?;
    }
    Ok(())
}

fn delays(
    trace: &Trace,
    mut next: impl FnMut(Instant) -> Duration,
    progress: &mut Progress,
) -> Result<(), Mismatch> {
    let mut now = Instant::EPOCH;
    for op in &trace.ops {
        if op.op == "advance" {
            now = now + nanos(op.d);
            progress.step(op, now.as_nanos() == op.t, &now)?;
        } else {
            let delay = next(now);
            progress.step(op, op.delay.map(nanos) == Some(delay), &delay)?;
        }
    }
    Ok(())
}

/// The least, the greatest and any other draw, side by side: the pause must stay in its range, and
/// what is left must not depend on the draw.
fn jittered_steps(
    trace: &Trace,
    mut least: Backoff,
    progress: &mut Progress,
) -> Result<(), Mismatch> {
    let (mut greatest, mut other, mut draws) = (least, least, any());
    for op in &trace.ops {
        let delays = [
            least.step(&mut no_jitter),
            greatest.step(&mut the_greatest),
            other.step(&mut draws),
        ];
        let matches = in_range(op, delays) && [least, greatest, other].iter().all(|it| op.left(it));
        progress.step(op, matches, &(delays, least))?;
    }
    Ok(())
}

fn jitters(trace: &Trace, progress: &mut Progress) -> Result<(), Mismatch> {
    let max_factor = trace.params.jitter_bits.0;
    let mut draws = any();
    for op in &trace.ops {
        let duration = nanos(op.d);
        let delays = [
            jitter(duration, max_factor, &mut no_jitter),
            jitter(duration, max_factor, &mut the_greatest),
            jitter(duration, max_factor, &mut draws),
        ];
        progress.step(op, in_range(op, delays), &delays)?;
    }
    Ok(())
}

/// Whether all `delays` are in the recorded range, and the first, which was drawn without jitter,
/// is its lower end.
fn in_range(op: &BackoffOp, delays: [Duration; 3]) -> bool {
    let range = nanos(op.lo)..=nanos(op.hi);
    delays[0] == *range.start() && delays.iter().all(|delay| range.contains(delay))
}

fn retries(trace: &Trace, progress: &mut Progress) -> Result<(), Mismatch> {
    for op in &trace.ops {
        let run = retry(trace.params.backoff(), op.succeed_on_call);
        let matches = run.call_times_ns == op.call_times_ns
            && run.elapsed_ns == op.elapsed_ns
            && run.timed_out == op.timed_out;
        progress.step(op, matches, &run)?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Retried {
    call_times_ns: Vec<u128>,
    elapsed_ns: u128,
    timed_out: bool,
}

/// The loop that a caller would write, on a clock that only moves in its pauses. Calls are counted
/// from zero; one that is negative never comes.
fn retry(mut backoff: Backoff, succeed_on_call: i64) -> Retried {
    let mut run = Retried::default();
    while backoff.steps > 0 {
        run.call_times_ns.push(run.elapsed_ns);
        if usize::try_from(succeed_on_call) == Ok(run.call_times_ns.len() - 1) {
            return run;
        }
        let pause = backoff.retry_delay(&mut no_jitter).unwrap_or_default();
        run.elapsed_ns += pause.as_nanos();
    }
    run.timed_out = true;
    run
}

/// The greatest number each time.
fn the_greatest() -> u64 {
    u64::MAX
}

/// Numbers that are the same in each replay.
fn any() -> impl FnMut() -> u64 {
    let mut draws = Rng::new(1);
    move || draws.any()
}

const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, steps: i64, cap: u64, op: &str) -> String {
        let two = "4000000000000000";
        let half = "3fe0000000000000";
        let params = format!(
            r#"{{"duration_ns":7,"factor_bits":"{two}","jitter_bits":"{half}","steps":{steps},
                "cap_ns":{cap}}}"#
        );
        let trace = format!(r#"{{"id":"a","kind":"{kind}","params":{params},"ops":[{op}]}}"#);
        trace.replace('\n', "")
    }

    fn mismatches(line: &str) -> u64 {
        replay(line).unwrap().mismatches
    }

    #[test]
    fn a_pause_before_giving_up_counts() {
        let op = r#"{"op":"run","succeed_on_call":-1,"call_times_ns":[0],"elapsed_ns":7,
            "timed_out":true}"#;
        assert_eq!(mismatches(&line("retry_loop", 5, 10, op)), 0);
        let op = op.replace("\"elapsed_ns\":7", "\"elapsed_ns\":0");
        assert_eq!(mismatches(&line("retry_loop", 5, 10, &op)), 1);
    }

    #[test]
    fn a_range_that_is_too_narrow_is_noticed() {
        let op =
            |hi| format!(r#"{{"op":"step","lo":7,"hi":{hi},"duration_after":14,"steps_after":4}}"#);
        assert_eq!(mismatches(&line("jitter_step", 5, 0, &op(10))), 0);
        assert_eq!(mismatches(&line("jitter_step", 5, 0, &op(9))), 1);
    }
}

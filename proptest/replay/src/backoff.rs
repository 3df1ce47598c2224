//! Replays recorded backoffs: pauses, the state they leave behind, and the times of retried calls.

use std::fmt::Debug;
use std::time::Duration;

use fastrand::Rng;
use requeue_core::Instant;
use requeue_core::backoff::{Backoff, jitter, no_jitter};
use requeue_proptest::limiter::FloatBits;
use serde::Deserialize;

use crate::report::{Report, replay_lines};

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
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
///
/// The first line that cannot be read, and why.
pub fn replay(jsonl: &str) -> Result<Report, String> {
    replay_lines(jsonl, |trace: &Trace, report| {
        report.note(format!(
            "{}: {:?}, {:?}",
            trace.id, trace.kind, trace.params
        ));
        let mut replay = Replay::new(trace);
        trace.ops.iter().try_for_each(|op| {
            report.step(format!("{op:?}"));
            replay.step(op, report)
        })
    })
}

#[derive(Deserialize)]
struct Trace {
    id: String,
    kind: Kind,
    params: Params,
    ops: Vec<Op>,
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
    #[serde(default)]
    reset_ns: i64,
}

/// A step, and what it returned. Times are nanoseconds. Which members there are depends on `op`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Op {
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

struct Replay {
    /// Stepped with the least draws, the greatest and any others, side by side.
    backoffs: [Backoff; 3],
    draws: [Box<dyn FnMut() -> u64>; 3],
    next: Box<dyn FnMut(Instant) -> Duration>,
    now: Instant,
}

impl Replay {
    fn new(Trace { kind, params, .. }: &Trace) -> Self {
        let backoff = Backoff {
            duration: nanos(params.duration_ns),
            factor: params.factor_bits.0,
            jitter: params.jitter_bits.0,
            steps: u32::try_from(params.steps.max(0)).unwrap_or(u32::MAX),
            cap: nanos(params.cap_ns),
        };
        // Zero where Go's is negative: to DelayWithReset, which alone is recorded with one, they
        // are the same.
        let reset = nanos(params.reset_ns.max(0).unsigned_abs());
        let start = Instant::EPOCH;
        let mut random = Rng::with_seed(1);
        Self {
            backoffs: [backoff; 3],
            draws: [
                Box::new(no_jitter),
                Box::new(|| u64::MAX),
                Box::new(move || random.u64(..)),
            ],
            next: match kind {
                Kind::DelayWithReset => Box::new(backoff.delay_with_reset(reset, start, no_jitter)),
                Kind::ExponentialManager => {
                    Box::new(backoff.delay_with_idle_reset(reset, start, no_jitter))
                }
                _ => Box::new(backoff.delay_func(no_jitter)),
            },
            now: start,
        }
    }

    fn step(&mut self, op: &Op, report: &mut Report) -> Result<(), String> {
        match op.op.as_str() {
            "step" => {
                let pairs = self.backoffs.iter_mut().zip(&mut self.draws);
                let delays = pairs.map(|(backoff, draw)| backoff.step(draw));
                op.has_in_range(delays.collect())?;
                if op.impl_defined_next {
                    report.differs(DURATION_PAST_2_POW_63);
                    return Ok(());
                }
                // What is left behind does not depend on the draw.
                let left = self.backoffs.map(|it| (it.duration, it.steps));
                same(left, [(nanos(op.duration_after), op.steps_after); 3])
            }
            "jitter" => {
                let pairs = self.backoffs.iter().zip(&mut self.draws);
                let delays = pairs.map(|(backoff, draw)| jitter(nanos(op.d), backoff.jitter, draw));
                op.has_in_range(delays.collect())
            }
            "next" => same(Some((self.next)(self.now)), op.delay.map(nanos)),
            "advance" => {
                self.now = self.now + nanos(op.d);
                same(self.now.as_nanos(), op.t)
            }
            "run" => {
                let recorded = (op.call_times_ns.clone(), op.elapsed_ns, op.timed_out);
                same(retry(self.backoffs[0], op.succeed_on_call), recorded)
            }
            other => Err(format!("there is no operation {other:?}")),
        }
    }
}

impl Op {
    /// Whether `delays` are in the recorded range, and the first, which was drawn without jitter, is
    /// its lower end. A pause without jitter is a range of one.
    fn has_in_range(&self, delays: Vec<Duration>) -> Result<(), String> {
        let [lo, hi] = [self.lo, self.hi].map(|end| nanos(self.delay.unwrap_or(end)));
        let is_right = delays[0] == lo && delays.iter().all(|delay| (lo..=hi).contains(delay));
        is_right.then_some(()).ok_or(format!("got {delays:?}"))
    }
}

fn same<T: Debug + PartialEq>(ours: T, recorded: T) -> Result<(), String> {
    (ours == recorded)
        .then_some(())
        .ok_or(format!("got {ours:?}, recorded {recorded:?}"))
}

/// The loop that a caller would write, on a clock that only moves in its pauses. Returns the times
/// of the calls, the time of the end, and whether no call succeeded.
fn retry(mut backoff: Backoff, succeed_on_call: i64) -> (Vec<u128>, u128, bool) {
    let (mut calls, mut elapsed) = (Vec::new(), 0);
    while backoff.steps > 0 {
        calls.push(elapsed);
        if i64::try_from(calls.len() - 1) == Ok(succeed_on_call) {
            return (calls, elapsed, false);
        }
        let pause = backoff.retry_delay(&mut no_jitter).unwrap_or_default();
        elapsed += pause.as_nanos();
    }
    (calls, elapsed, true)
}

const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &str = r#""duration_ns":7,"factor_bits":"4000000000000000",
        "jitter_bits":"3fe0000000000000","steps":5,"cap_ns":10"#;

    /// The pause before giving up counts.
    const RUN: &str =
        r#""run","succeed_on_call":-1,"call_times_ns":[0],"timed_out":true,"elapsed_ns":N"#;

    #[test]
    fn what_is_not_as_recorded_is_noticed() {
        for (op, right, wrong) in [
            (r#""next","delay":N"#, 7, 8),
            (r#""advance","d":2,"t":N"#, 2, 3),
            (r#""step","lo":7,"hi":N,"duration_after":10"#, 10, 9),
            (r#""step","lo":7,"hi":10,"duration_after":N"#, 10, 14),
            (r#""jitter","d":7,"lo":N,"hi":10"#, 7, 6),
            (RUN, 7, 0),
        ] {
            for (value, mismatches) in [(right, 0), (wrong, 1)] {
                let op = op.replace('N', &value.to_string());
                let op = format!(r#"{{"op":{op}}}"#);
                let start = r#""id":"a","kind":"delay_func","params""#;
                let line = format!("{{{start}:{{{PARAMS}}},\"ops\":[{op}]}}").replace('\n', "");
                assert_eq!(replay(&line).unwrap().mismatches, mismatches, "{op}");
            }
        }
    }

    #[test]
    fn a_kind_that_is_not_known_cannot_be_read() {
        let line = r#"{"id":"a","kind":"unknown","params":{PARAMS},"ops":[]}"#;
        let line = line.replace("PARAMS", PARAMS).replace('\n', "");
        assert!(replay(&line).unwrap_err().contains("unknown variant"));
        let known = line.replace("unknown", "step");
        assert_eq!(replay(&known).unwrap().mismatches, 0);
    }
}

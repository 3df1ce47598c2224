//! Replays recorded limiter calls: the delays have to be equal to the nanosecond.

use std::collections::HashMap;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::limiter::RateLimiter;
use requeue_proptest::limiter::{AnyLimiter, AnyRecord, LimiterSpec};
use serde::Deserialize;

use crate::report::{BadTrace, Report, replay_lines};

/// Go leaves the delay to the processor if an exponential limiter computes exactly 2^63 ns.
pub const DELAY_OF_2_POW_63: &str = "an exponential delay of exactly 2^63 ns";

/// Replays a file of limiter recordings, one JSON object per line.
///
/// # Examples
///
/// ```
/// use requeue_replay::limiters::replay;
///
/// let recorded = r#"{"id":"a","limiter":{"type":"default_item_based"},"ops":[
///     {"op":"when","k":1,"delay":1000000},{"op":"num_requeues","k":1,"n":1}]}"#;
/// let found = replay(&recorded.replace('\n', ""))?;
/// assert_eq!((found.steps, found.mismatches), (2, 0));
/// # Ok::<(), requeue_replay::BadTrace>(())
/// ```
///
/// # Errors
///
/// [`BadTrace`] for a line that cannot be read.
pub fn replay(jsonl: &str) -> Result<Report, BadTrace> {
    replay_lines(jsonl, |trace: Trace, progress| {
        let mut limiter = Subject::new(&trace.limiter);
        progress.begin(&trace.id, &trace.limiter);
        trace.ops.iter().try_for_each(|op| {
            let compared = limiter.apply(op);
            let is_left_open = matches!(
                op,
                LimiterOp::When {
                    impl_defined: true,
                    ..
                }
            );
            if is_left_open {
                progress.differs(DELAY_OF_2_POW_63);
            }
            let is_as_recorded = compared
                .as_ref()
                .is_none_or(|it| i128::try_from(it.ours) == Ok(it.recorded));
            progress.step(op, is_left_open || is_as_recorded, &compared)
        })
    })
}

#[derive(Deserialize)]
struct Trace {
    id: String,
    limiter: LimiterSpec,
    ops: Vec<LimiterOp>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum LimiterOp {
    When {
        k: u32,
        delay: i64,
        #[serde(default)]
        impl_defined: bool,
    },
    Forget {
        k: u32,
    },
    NumRequeues {
        k: u32,
        n: u32,
    },
    Advance {
        d: u64,
        t: u64,
    },
}

/// What the limiter says, beside what the recorded one did.
#[derive(Debug)]
struct Compared {
    ours: u128,
    recorded: i128,
}

/// A limiter with the records that a queue would keep for it, and the time.
struct Subject {
    limiter: AnyLimiter,
    records: HashMap<u32, AnyRecord>,
    now: Instant,
}

impl Subject {
    fn new(spec: &LimiterSpec) -> Self {
        Self {
            limiter: spec.build(),
            records: HashMap::new(),
            now: Instant::EPOCH,
        }
    }

    /// Returns `None` if there is nothing to compare.
    fn apply(&mut self, op: &LimiterOp) -> Option<Compared> {
        let (ours, recorded) = match *op {
            LimiterOp::When { k, delay, .. } => {
                let record = self.records.entry(k).or_default();
                let ours = self.limiter.when(record, self.now).as_nanos();
                (ours, delay.into())
            }
            LimiterOp::Forget { k } => {
                self.records.remove(&k);
                return None;
            }
            LimiterOp::NumRequeues { k, n } => {
                let fresh = AnyRecord::default();
                let record = self.records.get(&k).unwrap_or(&fresh);
                (self.limiter.failures(record).into(), n.into())
            }
            LimiterOp::Advance { d, t } => {
                self.now = self.now + Duration::from_nanos(d);
                (self.now.as_nanos().into(), t.into())
            }
        };
        Some(Compared { ours, recorded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ops: &str) -> String {
        let limiter = r#"{"type":"exponential","base_ns":4,"max_ns":1000}"#;
        format!(r#"{{"id":"a","limiter":{limiter},"ops":[{ops}]}}"#)
    }

    #[test]
    fn a_wrong_delay_is_shown_with_its_history() {
        let ops = r#"{"op":"advance","d":3,"t":3},{"op":"when","k":1,"delay":4},
            {"op":"when","k":1,"delay":7},{"op":"when","k":1,"delay":16}"#;
        let found = replay(&line(&ops.replace('\n', ""))).unwrap();
        assert_eq!((found.steps, found.mismatches), (3, 1));
        let mismatch = found.first_mismatch.unwrap();
        assert!(mismatch.starts_with("a: Exponential"), "{mismatch}");
        assert!(mismatch.contains("ours: 8, recorded: 7"), "{mismatch}");
        assert!(mismatch.ends_with("<- not as recorded"), "{mismatch}");
        assert_eq!(mismatch.lines().count(), 4, "{mismatch}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        let found = replay(&format!("{}\n{{\"id\":", line("")));
        assert_eq!(found.unwrap_err().line, 2);
    }

    #[test]
    fn what_go_leaves_open_counts_as_a_failure_and_is_not_compared() {
        let ops = r#"{"op":"when","k":1,"delay":-1,"impl_defined":true},
            {"op":"num_requeues","k":1,"n":1}"#;
        let found = replay(&line(&ops.replace('\n', ""))).unwrap();
        assert_eq!(found.mismatches, 0);
        assert_eq!(found.differences.get(DELAY_OF_2_POW_63), Some(&1));
    }
}

//! Replays recorded limiter calls: the delays have to be equal to the nanosecond.

use std::collections::{BTreeMap, HashMap, VecDeque};

use requeue_core::{Instant, RateLimiter};
use serde::Deserialize;

use super::limiter::{AnyLimiter, AnyMemory, LimiterSpec, nanos};

/// How many steps before a mismatch are told with it.
const HISTORY: usize = 20;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// How many recorded steps were replayed.
    pub steps: u64,
    /// The first step that went otherwise than recorded, and what led to it. The replay ends there.
    pub mismatch: Option<String>,
    /// How often a step was not compared, by the reason why it is allowed to differ.
    pub differences: BTreeMap<&'static str, u64>,
}

/// Go leaves the delay to the processor where an exponential limiter computes exactly 2^63 ns.
pub const DELAY_OF_2_POW_63: &str = "an exponential delay of exactly 2^63 ns";

/// Replays a file of limiter recordings, one JSON object per line.
///
/// # Examples
///
/// ```
/// use requeue_proptest::trace::limiter_replay::replay;
///
/// let recorded = r#"{"id":"a","limiter":{"type":"default_item_based"},"ops":[
///     {"op":"when","k":1,"delay":1000000},{"op":"num_requeues","k":1,"n":1}]}"#;
/// let found = replay(&recorded.replace('\n', ""));
/// assert_eq!((found.steps, found.mismatch), (2, None));
/// ```
pub fn replay(jsonl: &str) -> Replay {
    replay_lines(jsonl, |trace: Trace, progress| {
        let mut limiter = Subject::new(&trace.limiter);
        progress.begin(&trace.id, &trace.limiter);
        trace.ops.iter().try_for_each(|op| {
            let answer = limiter.apply(op);
            if let Answer::NotCompared(reason) = answer {
                progress.differs(reason);
            }
            progress.step(op, answer.is_as_recorded(), &answer)
        })
    })
}

#[derive(Deserialize)]
struct Trace {
    id: String,
    limiter: LimiterSpec,
    ops: Vec<Op>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Op {
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

/// What the replayed limiter said, beside what the recorded one did.
#[derive(Debug)]
enum Answer {
    Nothing,
    NotCompared(&'static str),
    Nanos { ours: u128, recorded: i64 },
    Requeues { ours: u32, recorded: u32 },
    Time { ours: u64, recorded: u64 },
}

impl Answer {
    fn is_as_recorded(&self) -> bool {
        match *self {
            Self::Nothing | Self::NotCompared(_) => true,
            Self::Nanos { ours, recorded } => u128::try_from(recorded) == Ok(ours),
            Self::Requeues { ours, recorded } => ours == recorded,
            Self::Time { ours, recorded } => ours == recorded,
        }
    }
}

/// A limiter with the memories that a queue would keep for it, and the time.
struct Subject {
    limiter: AnyLimiter,
    memories: HashMap<u32, AnyMemory>,
    now: Instant,
}

impl Subject {
    fn new(spec: &LimiterSpec) -> Self {
        Self {
            limiter: spec.build(),
            memories: HashMap::new(),
            now: Instant::EPOCH,
        }
    }

    fn apply(&mut self, op: &Op) -> Answer {
        match *op {
            Op::When {
                k,
                delay,
                impl_defined,
            } => {
                let memory = self.memories.entry(k).or_default();
                let ours = self.limiter.when(memory, self.now).as_nanos();
                if impl_defined {
                    return Answer::NotCompared(DELAY_OF_2_POW_63);
                }
                Answer::Nanos {
                    ours,
                    recorded: delay,
                }
            }
            Op::Forget { k } => {
                self.memories.remove(&k);
                Answer::Nothing
            }
            Op::NumRequeues { k, n } => {
                let fresh = AnyMemory::default();
                let memory = self.memories.get(&k).unwrap_or(&fresh);
                Answer::Requeues {
                    ours: self.limiter.requeues(memory),
                    recorded: n,
                }
            }
            Op::Advance { d, t } => {
                self.now = self.now + nanos(d);
                Answer::Time {
                    ours: self.now.as_nanos(),
                    recorded: t,
                }
            }
        }
    }
}

/// Replays each line with `run`, up to the first mismatch.
///
/// A line that cannot be read is a mismatch: a recording that is skipped proves nothing.
pub(super) fn replay_lines<T: for<'de> Deserialize<'de>>(
    jsonl: &str,
    mut run: impl FnMut(T, &mut Progress) -> Result<(), String>,
) -> Replay {
    let mut progress = Progress::default();
    for (index, line) in jsonl.lines().enumerate() {
        let outcome = match serde_json::from_str(line) {
            Ok(trace) => run(trace, &mut progress),
            Err(error) => Err(format!("line {}: {error}", index + 1)),
        };
        if let Err(mismatch) = outcome {
            progress.replay.mismatch = Some(mismatch);
            break;
        }
    }
    progress.replay
}

/// The replay so far, and enough of its past to explain a mismatch.
#[derive(Default)]
pub(super) struct Progress {
    replay: Replay,
    title: String,
    history: VecDeque<String>,
}

impl Progress {
    /// Begins the recording `id` of `subject`.
    pub(super) fn begin(&mut self, id: &str, subject: &impl std::fmt::Debug) {
        self.title = format!("{id}: {subject:?}");
        self.history.clear();
    }

    /// Notes that something is not compared, and why that is allowed.
    pub(super) fn differs(&mut self, reason: &'static str) {
        *self.replay.differences.entry(reason).or_default() += 1;
    }

    /// Notes a step.
    ///
    /// # Errors
    ///
    /// The history, if the step went otherwise than recorded.
    pub(super) fn step(
        &mut self,
        op: &impl std::fmt::Debug,
        is_as_recorded: bool,
        answer: &impl std::fmt::Debug,
    ) -> Result<(), String> {
        self.replay.steps += 1;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(format!("{op:?} -> {answer:?}"));
        if is_as_recorded {
            return Ok(());
        }
        let history = Vec::from_iter(self.history.iter().map(String::as_str)).join("\n  ");
        Err(format!("{}\n  {history}   <- not as recorded", self.title))
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
    fn a_wrong_delay_is_told_with_its_history() {
        let ops = r#"{"op":"advance","d":3,"t":3},{"op":"when","k":1,"delay":4},
            {"op":"when","k":1,"delay":7},{"op":"when","k":1,"delay":16}"#;
        let found = replay(&line(&ops.replace('\n', "")));
        assert_eq!(found.steps, 3);
        let mismatch = found.mismatch.unwrap();
        assert!(mismatch.starts_with("a: Exponential"), "{mismatch}");
        assert!(mismatch.contains("ours: 8, recorded: 7"), "{mismatch}");
        assert!(mismatch.ends_with("<- not as recorded"), "{mismatch}");
        assert_eq!(mismatch.lines().count(), 4, "{mismatch}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_a_mismatch() {
        let found = replay(&format!("{}\n{{\"id\":", line("")));
        assert!(found.mismatch.unwrap().starts_with("line 2: "));
    }

    #[test]
    fn what_go_leaves_open_counts_as_a_failure_and_is_not_compared() {
        let ops = r#"{"op":"when","k":1,"delay":-1,"impl_defined":true},
            {"op":"num_requeues","k":1,"n":1}"#;
        let found = replay(&line(&ops.replace('\n', "")));
        assert_eq!(found.mismatch, None);
        assert_eq!(found.differences.get(DELAY_OF_2_POW_63), Some(&1));
    }
}

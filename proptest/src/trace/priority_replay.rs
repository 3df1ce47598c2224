//! Replays recordings of controller-runtime's priority queue on a subject that has levels.
//!
//! controller-runtime takes any integer for a priority; here the integers of a recording are its
//! levels, in their order. Every add expedites, since that is what controller-runtime does.
//!
//! Six differences are documented, and a recording is held to the letter up to the first
//! operation in which one of them changes a result:
//!
//! - A key that is added while it is in work takes its place when its run ends; there, when it is
//!   added. This shows when keys of its level came in between.
//! - A key whose delay is ended by an add goes to the end of its level; there it takes the place
//!   that it had when the delay began.
//! - Equal deadlines leave in the order in which they were set, whatever their levels; there the
//!   higher level first, and then the key that was added first. Which level is served first is the
//!   same.
//! - A key that is added while it is in work is not counted as ready; there it is. The two counts
//!   are made equal, so that this does not end the comparison.
//! - After shutdown ready keys are handed out; there they are not.
//! - A retry whose delay is zero is counted as one; there it is not.
//!
//! That a result may differ is not taken on trust: the [reference model](crate::Model) with
//! controller-runtime's rules must predict what was recorded, and with ours what the subject did.

use std::time::Duration;

use requeue_core::AddOptions;

use super::differences::{
    ADDED_IN_WORK, DELAY_ENDED, LEN_COUNTS_READY, RETRY_WITHOUT_DELAY, SHUT_DOWN_HANDS_OUT,
    TIES_IN_ORDER,
};
use super::player::{Gauges, Player};
use super::priority::{Add, LEVELS, Op, Step, Trace};
use super::queue::Got;
use super::report::{Progress, Stop};
use crate::subject::{Setup, Subject};
use crate::{Figures, Model, Rules};

/// Replays one recording on a new `S`, which has [`LEVELS`] levels.
pub(super) fn replay<S: Subject>(trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
    trace.check().map_err(Stop::Bad)?;
    progress.begin(&trace.id, &trace.limiter);
    progress.guard(|progress| run::<S>(trace, progress))
}

fn run<S: Subject>(trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
    let mut replay = Replay::<S>::new(trace);
    for step in &trace.steps {
        let at = replay.subject.subject.now();
        progress.tell(format!("{at}: {}, len {}", step.op, step.len), true);
        replay.step(step, progress)?;
    }
    progress.tell(String::from("the end"), false);
    replay.end(trace, progress)
}

struct Replay<S: Subject> {
    subject: Player<S>,
    ours: Player<Model>,
    theirs: Player<Model>,
    priorities: Vec<i64>,
    /// How many retries had no delay, so far as recorded.
    undelayed: u64,
    /// A result has differed: from here on only the model is compared with the recording.
    has_differed: bool,
}

/// What an operation answers, as far as recordings tell.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    /// How long each key has to wait.
    Delays(Vec<Duration>),
    Got(Got, i64),
    /// Whether the key was in work.
    Done(bool),
    Count(u32),
    Time(u64, Gauges),
}

impl<S: Subject> Replay<S> {
    fn new(trace: &Trace) -> Self {
        let setup = Setup::new(trace.limiter.clone());
        let model = |rules| Model::new(rules, &setup, None).with_levels(LEVELS as u8);
        Self {
            subject: Player::new(S::new(&setup)),
            ours: Player::new(model(Rules::Requeue)),
            theirs: Player::by_name(model(Rules::ControllerRuntime)),
            priorities: trace.priorities(),
            undelayed: 0,
            has_differed: false,
        }
    }

    fn step(&mut self, step: &Step, progress: &mut Progress) -> Result<(), Stop> {
        let recorded = recorded(&step.op);
        if let Outcome::Delays(delays) = &recorded {
            let undelayed = delays.iter().filter(|delay| delay.is_zero());
            self.undelayed += undelayed.count() as u64;
        }
        let theirs = play(&mut self.theirs, &step.op, &self.priorities);
        if theirs != recorded {
            let why = format!("recorded {recorded:?}, controller-runtime's rules say {theirs:?}");
            return Err(progress.mismatch(&format!("\n  {why}")));
        }
        let len = self.theirs.subject.len();
        if len != step.len {
            let why = format!("recorded, and {len} by controller-runtime's rules");
            return Err(progress.mismatch(&format!("\n  len {}: {why}", step.len)));
        }
        if !self.has_differed {
            progress.covers();
            self.compare(step, &recorded, progress)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        step: &Step,
        recorded: &Outcome,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let subject = play(&mut self.subject, &step.op, &self.priorities);
        let ours = play(&mut self.ours, &step.op, &self.priorities);
        if subject != ours {
            let why = format!("expected {ours:?}, got {subject:?} (recorded: {recorded:?})");
            return Err(progress.mismatch(&format!("\n  {why}")));
        }
        self.subject.subject.assert_valid();
        let (ready, dirty) = (self.subject.subject.len(), self.ours.subject.dirty_len());
        if subject == *recorded && ready + dirty == step.len {
            if dirty > 0 {
                progress.differs(LEN_COUNTS_READY);
            }
            return Ok(());
        }
        self.has_differed = true;
        let name = match step.op {
            _ if self.ours.subject.shutting_down() => SHUT_DOWN_HANDS_OUT,
            Op::Get { .. } if self.theirs.subject.has_kept_place() => DELAY_ENDED,
            Op::Get { .. } if self.theirs.subject.has_added_in_work() => ADDED_IN_WORK,
            Op::Get { .. } if self.theirs.subject.has_tied() => TIES_IN_ORDER,
            _ => {
                let why = format!("recorded {recorded:?}, got {subject:?}, len {ready} + {dirty}");
                return Err(progress.mismatch(&format!("\n  {why}")));
            }
        };
        progress.differs(name);
        Ok(())
    }

    /// The figures, if all of the recording was covered.
    fn end(&mut self, trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
        let end = &trace.end;
        let depths = end.depth_by_priority.iter().map(|(priority, keys)| {
            let level = self.priorities.iter().position(|other| other == priority);
            (level.unwrap_or(usize::MAX) as u8, *keys)
        });
        let recorded = Figures {
            depth: i64::try_from(end.len).unwrap_or(i64::MAX),
            adds: end.adds,
            retries: end.retries + self.undelayed,
            latencies: durations(&end.latency_ns),
            work_durations: durations(&end.work_duration_ns),
            unfinished: Duration::from_nanos(end.unfinished_work_ns),
            longest: Duration::from_nanos(end.longest_running_ns),
            reports: end.metric_ticks,
            depths: depths.collect(),
        };
        let theirs = self.theirs.subject.figures();
        if theirs.as_ref() != Some(&recorded) {
            let why = format!("recorded {recorded:?}\n  controller-runtime's rules say {theirs:?}");
            return Err(progress.mismatch(&format!("\n  {why}")));
        }
        if self.has_differed {
            return Ok(());
        }
        if self.undelayed > 0 {
            progress.differs(RETRY_WITHOUT_DELAY);
        }
        let subject = self.subject.subject.figures();
        if subject.as_ref().is_some_and(|subject| *subject != recorded) {
            let why = format!("recorded {recorded:?}\n  got {subject:?}");
            return Err(progress.mismatch(&format!("\n  {why}")));
        }
        Ok(())
    }
}

fn play<S: Subject>(player: &mut Player<S>, op: &Op, priorities: &[i64]) -> Outcome {
    match op {
        Op::Add(add) => Outcome::Delays(play_add(player, add, priorities)),
        Op::Get { .. } => {
            let (got, level) = player.get_with_priority();
            let priority = priorities.get(usize::from(level)).copied();
            let priority = match got {
                Got::Key(_) => priority.unwrap_or(i64::MAX),
                Got::ShutDown | Got::WouldBlock => 0,
            };
            Outcome::Got(got, priority)
        }
        Op::Done { k, .. } => Outcome::Done(player.done(*k)),
        Op::Forget { k } => {
            player.subject.forget(*k);
            Outcome::Nothing
        }
        Op::NumRequeues { k, .. } => Outcome::Count(player.subject.num_requeues(*k)),
        Op::Len => Outcome::Nothing,
        Op::ShutDown => {
            player.subject.shut_down();
            Outcome::Nothing
        }
        Op::Advance { d, .. } => {
            player.advance(Duration::from_nanos(*d));
            let gauges = player.gauges().unwrap_or_default();
            Outcome::Time(player.subject.now().as_nanos(), gauges)
        }
    }
}

/// Adds one key after the other. Answers how long the limiter would have each wait.
fn play_add<S: Subject>(player: &mut Player<S>, add: &Add, priorities: &[i64]) -> Vec<Duration> {
    let priority = add.priority.unwrap_or(0);
    let level = priorities.iter().position(|other| *other == priority);
    let options = AddOptions {
        after: after(add),
        rate_limited: add.rate_limited,
        priority: Some(level.unwrap_or(usize::MAX) as u8),
        expedite: true,
    };
    let mut delays = Vec::new();
    for &key in &add.ks {
        // What comes of it shows later; after shutdown nothing does.
        if let Ok(retried) = player.subject.add_with(key, options)
            && add.rate_limited
        {
            delays.push(retried.delay);
        }
    }
    delays
}

/// Zero stands for no delay of its own. What lies in the past is due at once, which counts against
/// the limiter's delay.
fn after(add: &Add) -> Option<Duration> {
    match u64::try_from(add.after) {
        Ok(0) => None,
        Ok(nanos) => Some(Duration::from_nanos(nanos)),
        Err(_) => add.rate_limited.then_some(Duration::ZERO),
    }
}

fn recorded(op: &Op) -> Outcome {
    match op {
        Op::Add(add) => {
            let delays = add.delays.iter().map(|delay| {
                let delay = Duration::from_nanos(u64::try_from(*delay).unwrap_or(0));
                after(add).map_or(delay, |after| after.min(delay))
            });
            Outcome::Delays(delays.collect())
        }
        Op::Get {
            k,
            priority,
            shutdown,
            ..
        } => {
            let got = match k {
                Some(key) => Got::Key(*key),
                None if *shutdown => Got::ShutDown,
                None => Got::WouldBlock,
            };
            Outcome::Got(got, priority.unwrap_or(0))
        }
        Op::Done { unpaired, .. } => Outcome::Done(!unpaired),
        Op::NumRequeues { n, .. } => Outcome::Count(*n),
        Op::Advance {
            t,
            unfinished_ns,
            longest_ns,
            ..
        } => Outcome::Time(
            *t,
            Gauges {
                unfinished: Duration::from_nanos(*unfinished_ns),
                longest: Duration::from_nanos(*longest_ns),
            },
        ),
        Op::Forget { .. } | Op::Len | Op::ShutDown => Outcome::Nothing,
    }
}

fn durations(nanos: &[u64]) -> Vec<Duration> {
    nanos.iter().copied().map(Duration::from_nanos).collect()
}

//! Replays recordings of client-go's queue on a subject, and compares everything that was recorded.

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::{Drained, Instant};

use super::differences::{
    ADD_AFTER_SHUTDOWN, DONE_OF_INACTIVE, DRAIN_WAITS, EVERY_DRAINER, LIMITER_AFTER_SHUTDOWN,
    QUEUED_ONCE, SHUT_DOWN_INTERRUPTS,
};
use super::player::{Gauges, Outcome, Player};
use super::queue::{Op, Step, Trace};
use super::report::{Progress, Stop};
use crate::subject::{Key, Setup, Subject};
use crate::{Figures, Model, Rules};

/// Replays one recording on a new `S`.
pub(super) fn replay<S: Subject>(trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
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

/// The subject, and what each rule book says of the same operations.
struct Replay<S: Subject> {
    subject: Player<S>,
    ours: Player<Model>,
    go: Player<Model>,
    keys: Key,
}

/// One result, four times.
struct Seen<T> {
    recorded: T,
    subject: T,
    ours: T,
    go: T,
}

impl<T: Debug + PartialEq> Seen<T> {
    /// Whether the subject differs from the recording, as it should.
    ///
    /// Where both rule books say the same, the recording counts and nothing else.
    fn differs(&self) -> Result<bool, String> {
        let expected = if self.ours == self.go {
            &self.recorded
        } else {
            &self.ours
        };
        if self.subject != *expected {
            return Err(format!(
                "expected {expected:?}, got {:?} (recorded: {:?})",
                self.subject, self.recorded
            ));
        }
        if self.subject == self.recorded {
            return Ok(false);
        }
        if self.recorded != self.go {
            return Err(format!(
                "recorded {:?}, which is not what client-go's rules say: {:?}",
                self.recorded, self.go
            ));
        }
        Ok(true)
    }
}

impl<S: Subject> Replay<S> {
    fn new(trace: &Trace) -> Self {
        let setup = Setup::new(trace.limiter.clone());
        let model = |rules| Model::new(rules, &setup, None);
        Self {
            subject: Player::new(S::new(&setup)),
            ours: Player::new(model(Rules::Requeue)),
            go: Player::by_name(model(Rules::ClientGo)),
            keys: trace.keys,
        }
    }

    fn step(&mut self, step: &Step, progress: &mut Progress) -> Result<(), Stop> {
        let seen = Seen {
            recorded: recorded(&step.op),
            subject: self.subject.play(&step.op),
            ours: self.ours.play(&step.op),
            go: self.go.play(&step.op),
        };
        let name = self.name(&seen);
        self.compare("the result", seen, name, progress)?;

        let gauges = match step.op {
            Op::Advance {
                unfinished,
                longest,
                ..
            } => Some(Gauges {
                unfinished: Duration::from_nanos(unfinished),
                longest: Duration::from_nanos(longest),
            }),
            _ => None,
        };
        if let Some(recorded) = gauges
            && let Some(subject) = self.subject.gauges()
        {
            let (ours, go) = (self.ours.gauges(), self.go.gauges());
            let seen = Seen {
                recorded: Some(recorded),
                subject: Some(subject),
                ours,
                go,
            };
            self.compare("the gauges", seen, None, progress)?;
        }
        let len = Seen {
            recorded: step.len,
            subject: self.subject.subject.len(),
            ours: self.ours.subject.len(),
            go: self.go.subject.len(),
        };
        self.compare("len", len, None, progress)?;
        self.compare_drains(&step.drained, progress)?;
        self.subject.subject.assert_valid();
        Ok(())
    }

    /// Compares a result. If it differs, `name` says why that is allowed; without a name that is
    /// the case only after a key was queued twice.
    fn compare<T: Debug + PartialEq>(
        &mut self,
        what: &str,
        seen: Seen<T>,
        name: Option<&'static str>,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let later = self.go.subject.has_duplicates().then_some(QUEUED_ONCE);
        match (seen.differs(), name.or(later)) {
            (Ok(false), _) => Ok(()),
            (Ok(true), Some(name)) => {
                progress.differs(name);
                Ok(())
            }
            (Ok(true), None) => {
                let why = format!("recorded {:?}, got {:?}", seen.recorded, seen.subject);
                Err(self.mismatch(what, &why, progress))
            }
            (Err(why), _) => Err(self.mismatch(what, &why, progress)),
        }
    }

    /// The difference that a result of this kind may show.
    fn name(&mut self, seen: &Seen<Outcome>) -> Option<&'static str> {
        let closed = self.ours.subject.shutting_down();
        match seen.ours {
            Outcome::Taken(false) if closed => Some(ADD_AFTER_SHUTDOWN),
            Outcome::Limited(None) | Outcome::Count(_) if closed => Some(LIMITER_AFTER_SHUTDOWN),
            Outcome::Done(false) => Some(DONE_OF_INACTIVE),
            _ => None,
        }
    }

    /// Of the calls of client-go that wait for the drain one is woken, and which is left open: the
    /// recording is held to how many have returned.
    fn compare_drains(&mut self, recorded: &[bool], progress: &mut Progress) -> Result<(), Stop> {
        let (subject, ours) = (self.subject.drained(), self.ours.drained());
        let go = self.go.drained();
        if subject != ours {
            let why = format!("expected {ours:?}, got {subject:?} (recorded: {recorded:?})");
            return Err(self.mismatch("the drains", &why, progress));
        }
        let returned = |drained: &Drained| *drained != Drained::Pending;
        let returned_go = go.iter().filter(|drained| returned(drained)).count();
        let returned_recorded = recorded.iter().filter(|returned| **returned).count();
        if recorded.len() != go.len() || returned_recorded != returned_go {
            let why = format!("recorded {recorded:?}, which is not what client-go's rules say");
            return Err(self.mismatch("the drains", &why, progress));
        }
        for (recorded, ours) in recorded.iter().zip(&ours) {
            match (recorded, ours) {
                (true, Drained::Pending) => progress.differs(DRAIN_WAITS),
                (false, Drained::Complete) => progress.differs(EVERY_DRAINER),
                (false, Drained::Interrupted) => progress.differs(SHUT_DOWN_INTERRUPTS),
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
        let end = &trace.end;
        let recorded = Last {
            len: end.len,
            shutting_down: end.shutting_down,
            t: Instant::from_nanos(end.t),
        };
        let seen = Seen {
            recorded,
            subject: last(&mut self.subject.subject),
            ours: last(&mut self.ours.subject),
            go: last(&mut self.go.subject),
        };
        self.compare("the last state", seen, None, progress)?;

        self.figure("depth", end.depth, progress, |it| it.depth)?;
        self.figure("adds", end.adds, progress, |it| it.adds)?;
        self.figure("retries", end.retries, progress, |it| it.retries)?;
        let latencies = durations(&end.latency_ns);
        self.figure("latency_ns", latencies, progress, |it| it.latencies)?;
        let work = durations(&end.work_duration_ns);
        self.figure("work_duration_ns", work, progress, |it| it.work_durations)?;
        let unfinished = Duration::from_nanos(end.unfinished_work_ns);
        self.figure("unfinished_work_ns", unfinished, progress, |it| {
            it.unfinished
        })?;
        let longest = Duration::from_nanos(end.longest_running_ns);
        self.figure("longest_running_ns", longest, progress, |it| it.longest)?;
        self.figure("metric_ticks", end.metric_ticks, progress, |it| it.reports)?;

        let closed = self.ours.subject.shutting_down();
        let name = closed.then_some(LIMITER_AFTER_SHUTDOWN);
        for (key, &recorded) in (1..=self.keys).zip(&end.num_requeues) {
            let seen = Seen {
                recorded,
                subject: self.subject.subject.num_requeues(key),
                ours: self.ours.subject.num_requeues(key),
                go: self.go.subject.num_requeues(key),
            };
            self.compare("num_requeues", seen, name, progress)?;
        }
        Ok(())
    }

    /// Compares a figure, if the subject has figures.
    fn figure<T: Debug + PartialEq>(
        &mut self,
        what: &str,
        recorded: T,
        progress: &mut Progress,
        look: impl Fn(Figures) -> T,
    ) -> Result<(), Stop> {
        let Some(subject) = self.subject.subject.figures() else {
            return Ok(());
        };
        let seen = Seen {
            recorded: Some(recorded),
            subject: Some(look(subject)),
            ours: self.ours.subject.figures().map(&look),
            go: self.go.subject.figures().map(&look),
        };
        self.compare(what, seen, None, progress)
    }

    fn mismatch(&mut self, what: &str, why: &str, progress: &Progress) -> Stop {
        let subject = describe(&mut self.subject.subject, self.keys);
        let ours = describe(&mut self.ours.subject, self.keys);
        progress.mismatch(&format!(
            "\n  {what}: {why}\n  the queue:{subject}\n  the model of it:{ours}"
        ))
    }
}

/// How things stand in the end, beside the figures.
#[derive(Debug, PartialEq)]
struct Last {
    len: usize,
    shutting_down: bool,
    t: Instant,
}

fn last(subject: &mut impl Subject) -> Last {
    Last {
        len: subject.len(),
        shutting_down: subject.shutting_down(),
        t: subject.now(),
    }
}

/// client-go takes every key, and says nothing of done.
fn recorded(op: &Op) -> Outcome {
    match *op {
        Op::Add(_) | Op::AddAfter(..) => Outcome::Taken(true),
        Op::AddRateLimited(_, delay) => {
            Outcome::Limited(u64::try_from(delay).ok().map(Duration::from_nanos))
        }
        Op::Get(got) => Outcome::Got(got),
        Op::Done(_) => Outcome::Done(true),
        Op::NumRequeues(_, count) => Outcome::Count(count),
        Op::ShuttingDown(answer) => Outcome::Answer(answer),
        Op::Advance { until, .. } => Outcome::Time(until),
        Op::Forget(_) | Op::Len | Op::ShutDown | Op::ShutDownWithDrain => Outcome::Nothing,
    }
}

fn durations(nanos: &[u64]) -> Vec<Duration> {
    nanos.iter().copied().map(Duration::from_nanos).collect()
}

/// What a subject shows of itself, one line for each key that it holds.
fn describe(subject: &mut impl Subject, keys: Key) -> String {
    let mut text = format!(
        " at {}, len {}, {:?}, shutting down {}",
        subject.now(),
        subject.len(),
        subject.totals(),
        subject.shutting_down()
    );
    for key in 1..=keys {
        if let Some(known) = subject.state(key) {
            text += &format!("\n    {key}: {known:?}");
        }
    }
    text
}

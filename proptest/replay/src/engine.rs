//! Replays a recording on a queue, and compares everything that was recorded.
//!
//! Every operation is done three times: to the queue, to the [reference model](Model) and to the
//! model of the upstream queue.
//!
//! - What was recorded must be what the model of the upstream queue says, to the letter and to the
//!   end.
//! - What our queue does must be what the reference model says.
//! - Where the two differ a documented difference must allow it.

use std::fmt::Debug;

use requeue_core::binding::Drained;
use requeue_proptest::Model;
use requeue_proptest::subject::{Abilities, Configuration, NewSubject, Operation, Subject};

use crate::differences::{DRAIN_WAITS, EVERY_DRAINER, SHUT_DOWN_INTERRUPTS, allowed, parts};
use crate::recorder::Recorder;
use crate::recording::{Kind, LEVELS, Op, Recording, Step};
use crate::report::Report;
use crate::upstream::Upstream;

/// Replays one recording on a new queue.
///
/// # Errors
///
/// What is not as recorded.
pub(crate) fn replay(
    kind: Kind,
    recording: &Recording,
    new: NewSubject,
    report: &mut Report,
) -> Result<(), String> {
    report.note(format!("{}: {:?}", recording.id, recording.limiter));
    let setup = Configuration::new(recording.limiter.clone());
    let mut abilities = Abilities::default();
    if kind == Kind::Priority {
        abilities.levels = LEVELS as u8;
    }
    let model = Model::new(&setup, None).with_abilities(&abilities);
    let mut replay = Replay {
        kind,
        queue: Recorder::new(new(&setup), recording),
        ours: Recorder::new(Box::new(model), recording),
        theirs: Recorder::new(Box::new(Upstream::of(kind, &setup)), recording),
        has_parted: false,
    };
    replay.run(recording, report).map_err(|why| {
        let queue = describe(&mut *replay.queue.subject);
        let ours = describe(&mut *replay.ours.subject);
        format!("{why}\n  the queue: {queue}\n  the model of it: {ours}")
    })
}

/// A queue, and what both models say of the same operations.
struct Replay {
    kind: Kind,
    queue: Recorder<dyn Subject>,
    ours: Recorder<Model>,
    theirs: Recorder<Upstream>,
    /// A difference has changed a result after which nothing can be compared with the queue.
    has_parted: bool,
}

impl Replay {
    fn run(&mut self, recording: &Recording, report: &mut Report) -> Result<(), String> {
        for step in &recording.ops {
            report.step(format!("{}: {step:?}", self.queue.subject.now()));
            self.step(step, report)?;
        }
        report.note(String::from("the end"));
        for (k, n) in (1..).zip(recording.end.num_requeues.iter().copied()) {
            self.compare(&Op::NumRequeues { k, n }, report)?;
        }
        let mut members = recording.end.members.clone();
        // controller-runtime has no depth but that of each priority: as many keys as are ready.
        if self.kind == Kind::Priority
            && let Some(len) = members.remove("len")
        {
            members.insert(String::from("depth"), len);
        }
        members
            .into_iter()
            .try_for_each(|(name, value)| self.compare(&Op::Final { name, value }, report))
    }

    fn step(&mut self, step: &Step, report: &mut Report) -> Result<(), String> {
        if self.kind == Kind::Priority && !self.has_parted {
            *report.covered.get_or_insert(0) += 1;
        }
        self.compare(&step.op.clone().told(self.kind), report)?;
        match step.len {
            Some(len) => self.compare(&Op::Ready(len), report)?,
            None if self.kind == Kind::Limiter => {}
            None => return Err(String::from("the step has no \"len\"")),
        }
        self.compare_drains(&step.drained, report)
    }

    fn compare(&mut self, recorded: &Op, report: &mut Report) -> Result<(), String> {
        let theirs = self.theirs.again(recorded);
        if *recorded != theirs && !recorded.leaves_open(&theirs) {
            return Err(not_upstream(recorded, &theirs));
        }
        if self.has_parted {
            return Ok(());
        }
        let (ours, queue) = (self.ours.again(recorded), self.queue.again(recorded));
        if queue != ours {
            return Err(unexpected(recorded, &ours, &queue));
        }
        self.queue.subject.assert_valid();
        if queue == *recorded {
            return Ok(());
        }
        let (model, upstream) = (&mut self.ours.subject, &self.theirs.subject);
        let Some(name) = allowed(self.kind, recorded, &ours, model, upstream) else {
            return Err(format!(
                "recorded {recorded:?}, got {queue:?}, for no documented reason"
            ));
        };
        report.differs(name);
        self.has_parted = parts(self.kind, name);
        Ok(())
    }

    /// Of the calls of client-go that wait for the drain one is woken, and which one is left open:
    /// the recording is held to how many have returned.
    fn compare_drains(&mut self, recorded: &[bool], report: &mut Report) -> Result<(), String> {
        let theirs = self.theirs.drained();
        let (ours, queue) = (self.ours.drained(), self.queue.drained());
        if queue != ours {
            return Err(unexpected(&recorded, &ours, &queue));
        }
        let returned = recorded.iter().filter(|returned| **returned).count();
        let pending = theirs.iter().filter(|it| **it == Drained::Pending).count();
        if recorded.len() != theirs.len() || returned + pending != theirs.len() {
            return Err(not_upstream(&recorded, &theirs));
        }
        for pair in recorded.iter().zip(&ours) {
            match pair {
                (true, Drained::Pending) => report.differs(DRAIN_WAITS),
                (false, Drained::Complete) => report.differs(EVERY_DRAINER),
                (false, Drained::Interrupted) => report.differs(SHUT_DOWN_INTERRUPTS),
                _ => {}
            }
        }
        Ok(())
    }
}

fn unexpected(recorded: &dyn Debug, ours: &dyn Debug, queue: &dyn Debug) -> String {
    format!("expected {ours:?}, got {queue:?}, recorded {recorded:?}")
}

fn not_upstream(recorded: &dyn Debug, theirs: &dyn Debug) -> String {
    format!("recorded {recorded:?}, which is not what the rules of that queue say: {theirs:?}")
}

/// The counts of a queue, and what it knows of each key.
fn describe(subject: &mut dyn Subject) -> String {
    let [counts, keys] = [Operation::Stats, Operation::Snapshot].map(|it| subject.apply(&it));
    format!("{counts}; {keys}")
}

#[cfg(test)]
mod tests {
    use requeue_proptest::subject::boxed;

    use super::*;

    /// Replays steps on such a queue. Returns what is not as recorded.
    fn mismatch(kind: Kind, new: NewSubject, steps: &str) -> Option<String> {
        let text = format!(r#"{{"id":"a","keys":1,"ops":[{steps}]}}"#);
        let recording = serde_json::from_str(&text).unwrap();
        replay(kind, &recording, new, &mut Report::default()).err()
    }

    const AFTER_SHUTDOWN: &str =
        r#"{"op":"shut_down","len":0,"drained":[]},{"op":"add","k":1,"len":0}"#;

    #[test]
    fn a_difference_is_demanded_and_not_only_allowed() {
        let ours: NewSubject = |setup| Box::new(Model::new(setup, None));
        assert_eq!(mismatch(Kind::Queue, ours, AFTER_SHUTDOWN), None);
        let why = mismatch(Kind::Queue, boxed::<Upstream>, AFTER_SHUTDOWN).unwrap();
        let expected = "expected Add(One { k: 1, refused: true })";
        assert!(why.contains(expected), "{why}");
    }

    #[test]
    fn what_differs_for_no_documented_reason_is_a_mismatch() {
        let why = mismatch(Kind::Ties, boxed::<Model>, AFTER_SHUTDOWN).unwrap();
        assert!(why.contains("for no documented reason"), "{why}");
    }
}

//! Replays a recording of a queue on a subject, and compares everything that was recorded.
//!
//! Every operation is done three times: on the subject, on the [reference model](Model) and on the
//! model of the queue that was recorded.
//!
//! - What was recorded must be what the model of that queue says, to the letter and to the end.
//! - What the subject does must be what the reference model says.
//! - Where the two differ a documented difference must allow it.

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Drained;
use requeue_proptest::subject::{Configuration, Key, NewSubject, Operate, Subject};
use requeue_proptest::{Figures, Model};

use crate::differences::{
    DRAIN_WAITS, EVERY_DRAINER, LEN_COUNTS_READY, RETRY_WITHOUT_DELAY, SHUT_DOWN_INTERRUPTS,
};
use crate::kind::{Kind, Place, What};
use crate::player::{Outcome, Player, Seen};
use crate::recording::{End, Op, Recording, Step};
use crate::report::{Mismatch, Progress};
use crate::upstream::Upstream;

/// Replays one recording on a new subject.
pub(crate) fn replay(
    kind: Kind,
    recording: &Recording,
    subject: NewSubject,
    progress: &mut Progress,
) -> Result<(), Mismatch> {
    progress.begin(&recording.id, &recording.limiter);
    progress.guard(|progress| {
        let mut replay = Replay::new(kind, recording, subject);
        for step in &recording.steps {
            let now = replay.queue.subject.now();
            progress.record(format!("{now}: {}", step.text), true);
            replay.step(step, progress)?;
        }
        match &recording.end {
            Some(end) => {
                progress.record(String::from("the end"), false);
                replay.end(end, progress)
            }
            None => Ok(()),
        }
    })
}

/// The subject, and what both sets of rules say of the same operations.
struct Replay<'r> {
    kind: Kind,
    recording: &'r Recording,
    queue: Player<dyn Subject>,
    ours: Player<Model>,
    theirs: Player<Upstream>,
    /// How many retries had no delay, of those that were recorded so far.
    undelayed: u64,
    /// A difference has changed a result after which nothing can be compared with the subject.
    has_parted: bool,
}

impl<'r> Replay<'r> {
    fn new(kind: Kind, recording: &'r Recording, subject: NewSubject) -> Self {
        let setup = Configuration::new(recording.limiter.clone());
        let ours = Model::new(&setup, None).with_abilities(&kind.abilities());
        let theirs = Upstream::new(kind, &setup);
        Self {
            kind,
            recording,
            queue: Player::new(subject(&setup), recording),
            ours: Player::new(Box::new(ours), recording),
            theirs: Player::by_name(Box::new(theirs), recording),
            undelayed: 0,
            has_parted: false,
        }
    }

    fn step(&mut self, step: &Step, progress: &mut Progress) -> Result<(), Mismatch> {
        self.undelayed += undelayed(&step.op);
        let recorded = Seen::recorded(step, self.kind == Kind::Priority);
        let theirs = self.theirs.play(step);
        if recorded != theirs && !step.leaves_open([&recorded, &theirs]) {
            return Err(self.not_upstream(&recorded, &theirs, progress));
        }
        if self.has_parted {
            return Ok(());
        }
        if self.kind.parts_at_differences() {
            progress.covers();
        }
        let ours = self.ours.play(step);
        let subject = self.queue.play(step);
        if subject != ours {
            return Err(self.unexpected(&ours, &subject, &recorded, progress));
        }
        self.queue.subject.assert_valid();
        for (what, is_same) in [
            (What::Outcome, recorded.outcome == subject.outcome),
            (What::Gauges, recorded.gauges == subject.gauges),
            (What::Len, recorded.len == subject.len),
        ] {
            if !is_same && !self.has_parted {
                let place = Place { step, seen: &ours };
                self.differs(what, Some(place), &recorded, &subject, progress)?;
            }
        }
        self.compare_drains(&step.drained, progress)
    }

    /// Of the calls of client-go that wait for the drain one is woken, and which one is left open:
    /// the recording is held to how many have returned.
    fn compare_drains(
        &mut self,
        recorded: &[bool],
        progress: &mut Progress,
    ) -> Result<(), Mismatch> {
        let (subject, ours) = (self.queue.drained(), self.ours.drained());
        if subject != ours {
            return Err(self.unexpected(&ours, &subject, &recorded, progress));
        }
        let theirs = self.theirs.drained();
        let returned_theirs = theirs
            .iter()
            .filter(|drained| **drained != Drained::Pending);
        let returned = recorded.iter().filter(|returned| **returned);
        if recorded.len() != theirs.len() || returned.count() != returned_theirs.count() {
            return Err(self.not_upstream(&recorded, &theirs, progress));
        }
        for pair in recorded.iter().zip(&ours) {
            match pair {
                (true, Drained::Pending) => progress.differs(DRAIN_WAITS),
                (false, Drained::Complete) => progress.differs(EVERY_DRAINER),
                (false, Drained::Interrupted) => progress.differs(SHUT_DOWN_INTERRUPTS),
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, end: &End, progress: &mut Progress) -> Result<(), Mismatch> {
        if let Some(is_shutting_down) = end.shutting_down {
            let recorded = (end.len, is_shutting_down, Instant::from_nanos(end.t));
            self.compare(What::State, recorded, state, progress)?;
        }
        let figures = end.figures(&self.recording.priorities(), self.undelayed);
        for (name, text) in FIGURES {
            let look = |it: &mut dyn Subject| (name, text(&it.figures().unwrap_or_default()));
            self.compare(What::Figures, (name, text(&figures)), look, progress)?;
        }
        for (key, recorded) in (1..).zip(&end.failures) {
            let look = |it: &mut dyn Subject| (key, it.failures(key));
            self.compare(What::NumRequeues, (key, *recorded), look, progress)?;
        }
        if self.undelayed > 0 && !self.has_parted {
            progress.differs(RETRY_WITHOUT_DELAY);
        }
        Ok(())
    }

    fn compare<T: Debug + PartialEq>(
        &mut self,
        what: What,
        recorded: T,
        look: impl Fn(&mut dyn Subject) -> T,
        progress: &mut Progress,
    ) -> Result<(), Mismatch> {
        let theirs = look(&mut *self.theirs.subject);
        if recorded != theirs {
            return Err(self.not_upstream(&recorded, &theirs, progress));
        }
        if self.has_parted {
            return Ok(());
        }
        let (ours, subject) = (
            look(&mut *self.ours.subject),
            look(&mut *self.queue.subject),
        );
        if subject != ours {
            return Err(self.unexpected(&ours, &subject, &recorded, progress));
        }
        if subject != recorded {
            self.differs(what, None, &recorded, &subject, progress)?;
        }
        Ok(())
    }

    /// Counts a documented difference, if one allows what differs.
    fn differs(
        &mut self,
        what: What,
        place: Option<Place<'_>>,
        recorded: &dyn Debug,
        subject: &dyn Debug,
        progress: &mut Progress,
    ) -> Result<(), Mismatch> {
        let (ours, theirs) = (&mut *self.ours.subject, &*self.theirs.subject);
        let Some(name) = self.kind.difference(what, place, ours, theirs) else {
            let why = format!("recorded {recorded:?}, got {subject:?}, for no documented reason");
            return Err(self.mismatch(&why, progress));
        };
        progress.differs(name);
        self.has_parted |= self.kind.parts_at_differences() && name != LEN_COUNTS_READY;
        Ok(())
    }

    fn not_upstream(
        &mut self,
        recorded: &dyn Debug,
        theirs: &dyn Debug,
        progress: &Progress,
    ) -> Mismatch {
        let name = self.kind.upstream_name();
        let why =
            format!("recorded {recorded:?}, which is not what {name}'s rules say: {theirs:?}");
        self.mismatch(&why, progress)
    }

    fn unexpected(
        &mut self,
        ours: &dyn Debug,
        subject: &dyn Debug,
        recorded: &dyn Debug,
        progress: &Progress,
    ) -> Mismatch {
        let why = format!("expected {ours:?}, got {subject:?} (recorded: {recorded:?})");
        self.mismatch(&why, progress)
    }

    fn mismatch(&mut self, why: &str, progress: &Progress) -> Mismatch {
        let keys = self.recording.keys;
        let subject = describe(&mut *self.queue.subject, keys);
        let ours = describe(&mut *self.ours.subject, keys);
        progress.mismatch(&format!(
            "\n  {why}\n  the queue:{subject}\n  the model of it:{ours}"
        ))
    }
}

/// How many keys are ready, whether the queue is shutting down, and the time.
fn state(subject: &mut dyn Subject) -> (usize, bool, Instant) {
    (subject.len(), subject.is_shutting_down(), subject.now())
}

/// All that a queue shows of itself, with a line for each key that it holds.
fn describe(subject: &mut dyn Subject, keys: Key) -> String {
    let (len, is_shutting_down, now) = state(subject);
    let stats = subject.stats();
    let mut text = format!(" at {now}, len {len}, {stats:?}, shutting down {is_shutting_down}");
    for key in 1..=keys {
        if let Some(known) = subject.state(key) {
            text += &format!("\n    {key}: {known:?}");
        }
    }
    text
}

type Text = fn(&Figures) -> String;

/// Each figure, compared as text.
const FIGURES: [(&str, Text); 9] = [
    ("depth", |figures| figures.depth.to_string()),
    ("adds", |figures| figures.adds.to_string()),
    ("retries", |figures| figures.retries.to_string()),
    ("latencies", |figures| format!("{:?}", figures.latencies)),
    ("work_durations", |figures| {
        format!("{:?}", figures.work_durations)
    }),
    ("unfinished", |figures| format!("{:?}", figures.unfinished)),
    ("longest", |figures| format!("{:?}", figures.longest)),
    ("reports", |figures| figures.reports.to_string()),
    ("depths", |figures| format!("{:?}", figures.depths)),
];

/// How many retries of an operation had no delay: controller-runtime does not count them.
fn undelayed(op: &Op) -> u64 {
    let Op::AddWithOpts(add) = op else {
        return 0;
    };
    let delays = add.delays().into_iter();
    delays.filter(Duration::is_zero).count() as u64
}

impl Step {
    /// Whether the order of equal deadlines, which client-go leaves open, is all that differs.
    pub(crate) fn leaves_open<const N: usize>(&self, seen: [&Seen; N]) -> bool {
        let Op::DrainAll { groups, .. } = &self.op else {
            return false;
        };
        seen.iter().all(|seen| match &seen.outcome {
            Outcome::Order(order) => seen.len == self.len && in_groups(order, groups),
            _ => false,
        })
    }
}

/// Whether `taken` has the keys of each group, one group after the other.
fn in_groups(mut taken: &[Key], groups: &[Vec<Key>]) -> bool {
    let sorted = |keys: &[Key]| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys
    };
    for group in groups {
        match taken.split_at_checked(group.len()) {
            Some((now, later)) if sorted(now) == sorted(group) => taken = later,
            _ => return false,
        }
    }
    taken.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays steps on such a subject. Returns the history of the mismatch.
    fn mismatch(kind: Kind, subject: NewSubject, steps: &str) -> Option<String> {
        let text = format!(r#"{{"id":"a","keys":1,"ops":[{steps}]}}"#);
        let recording = serde_json::from_str(&text).unwrap();
        let replayed = replay(kind, &recording, subject, &mut Progress::default());
        replayed.err().map(|Mismatch(history)| history)
    }

    fn ours(setup: &Configuration) -> Box<dyn Subject> {
        Box::new(Model::new(setup, None))
    }

    fn clients(setup: &Configuration) -> Box<dyn Subject> {
        Box::new(Upstream::new(Kind::Queue, setup))
    }

    const AFTER_SHUTDOWN: &str =
        r#"{"op":"shut_down","len":0,"drained":[]},{"op":"add","k":1,"len":0}"#;

    #[test]
    fn a_difference_is_demanded_and_not_only_allowed() {
        assert_eq!(mismatch(Kind::Queue, ours, AFTER_SHUTDOWN), None);
        let history = mismatch(Kind::Queue, clients, AFTER_SHUTDOWN).unwrap();
        assert!(
            history.contains("expected Seen { outcome: Taken(false)"),
            "{history}"
        );
    }

    #[test]
    fn what_differs_for_no_documented_reason_is_a_mismatch() {
        let history = mismatch(Kind::Ties, ours, AFTER_SHUTDOWN).unwrap();
        assert!(history.contains("for no documented reason"), "{history}");
    }

    #[test]
    fn groups_come_one_after_the_other_in_any_order_within() {
        let groups = [vec![1], vec![2, 4], vec![3]];
        assert!(in_groups(&[1, 4, 2, 3], &groups));
        assert!(!in_groups(&[4, 1, 2, 3], &groups));
        assert!(!in_groups(&[1, 4, 2], &groups));
        assert!(!in_groups(&[1, 4, 2, 3, 5], &groups));
        assert!(!in_groups(&[1, 4, 4, 3], &groups));
    }
}

//! A queue and its model, side by side.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::time::Duration;

use requeue_core::binding::Wake;
use requeue_core::{Instant, KeyState};

use super::judge::{For, Outstanding};
use super::{Failure, Looks};
use crate::Model;
use crate::caught::guarded;
use crate::operation::{Answer, Drain, Handed, Key, Operate, Operation, Sleeper, Ticket};
use crate::subject::{Abilities, CallId, Configuration, GroupOrder, PolicySpec, Returned, Subject};
use crate::watched::begins;

pub(super) struct Pair {
    pub(super) subject: Box<dyn Subject>,
    pub(super) model: Model,
    /// Runs that are under way.
    pub(super) tickets: Vec<Ticket>,
    pub(super) sleepers: Vec<Asleep>,
    /// Numbers the sleepers.
    pub(super) last_sleeper: u32,
    /// Waits for the drain, each as the queue and as the model know it.
    pub(super) drains: Vec<(Drain, Drain)>,
    /// Keys are `1..=keys`.
    pub(super) keys: Key,
    /// A sleeper was woken, and none has come back since.
    pub(super) woken: bool,
    /// Calls that have begun and not ended, in the order in which they began.
    pub(super) calls: Vec<Outstanding>,
    /// What calls have answered that were not expected to yet.
    pub(super) answers: BTreeMap<CallId, Returned<Handed>>,
    /// Numbers the calls.
    pub(super) last: CallId,
    /// What the last operation has answered.
    pub(super) answer: Option<Answer>,
    /// What calls have returned since a story has last settled.
    pub(super) returned: Vec<String>,
    pub(super) abilities: Abilities,
    pub(super) patience: Duration,
    /// The steps that are done have been checked before.
    pub(super) is_known: bool,
    /// It is not specified which of two states the queue is in: the history ends here.
    pub(super) is_open: bool,
    /// What has been done, and what came of it.
    pub(super) timeline: Vec<String>,
}

/// A call that waits.
pub(super) struct Asleep {
    pub(super) number: u32,
    /// When it comes back by itself.
    pub(super) until: Option<Instant>,
    /// How it looks again.
    pub(super) again: Operation,
}

/// What an operation answered; or what is wrong with it. `None` if there was nothing to do.
pub(super) type Outcome = Result<Option<String>, String>;
/// Whether something holds; or what is wrong.
pub(super) type Check = Result<(), String>;

impl Pair {
    pub(super) fn new(
        mut subject: Box<dyn Subject>,
        setup: &Configuration,
        keys: Key,
        patience: Duration,
    ) -> Self {
        let (abilities, capacity) = (subject.abilities(), subject.capacity());
        let mut setup = setup.clone();
        if capacity.is_some() && !abilities.limits_keys {
            setup.failure_records_max = usize::MAX;
        }
        if !abilities.governs {
            setup.policy = PolicySpec::default();
        }
        let mut model = Model::new(&setup, capacity)
            .with_abilities(&abilities)
            .with_times(subject.figures().is_some());
        if let Some(cap) = setup.groups.filter(|_| abilities.groups > 0) {
            let order = GroupOrder::LimitAll(cap);
            subject.order(&order);
            model.order(&order);
        }
        if abilities.ages {
            subject.age_after(setup.age_limit);
            model.age_after(setup.age_limit);
        }
        Self {
            model,
            tickets: Vec::new(),
            sleepers: Vec::new(),
            last_sleeper: 0,
            drains: Vec::new(),
            keys,
            woken: false,
            calls: Vec::new(),
            answers: BTreeMap::new(),
            last: 0,
            answer: None,
            returned: Vec::new(),
            abilities,
            patience,
            is_known: false,
            is_open: false,
            timeline: Vec::new(),
            subject,
        }
    }

    /// Does something that may panic, which is a failure of the queue.
    pub(super) fn guarded<T>(
        &mut self,
        what: impl Fn() -> String,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        begins(&what);
        guarded(|| work(self)).unwrap_or_else(|panic| {
            Err(self.failure(format!("{}: the queue panicked: {panic}", what())))
        })
    }

    /// Does a step to both, and compares.
    pub(super) fn step(&mut self, step: &Operation, looks: Looks) -> Result<(), Failure> {
        match step {
            _ if self.is_open => return Ok(()),
            Operation::Start(call) => return self.start(*call),
            Operation::Nudge(pick) => return self.nudge(*pick),
            Operation::Settle => return self.settle("all settles"),
            Operation::NextUnrun(action) => self.next_unrun(*action),
            Operation::Cancel(pick) => self.cancel(*pick),
            _ => self.compare(step, looks)?,
        }
        if self.abilities.runs_by_itself && self.last > 0 {
            self.settle("")?;
        }
        Ok(())
    }

    /// Everything settles and is looked at, and everyone is sent home.
    pub(super) fn conclude(&mut self, looks: Looks) -> Result<(), Failure> {
        while let Some(asleep) = self.sleepers.pop() {
            let leave = Operation::Leave(Sleeper::Of(asleep.number));
            let _ = self.subject.apply(&leave);
        }
        self.subject.assert_valid();
        if !self.is_open {
            self.settle("in the end all settles")?;
        }
        if self.is_open {
            let _ = self.subject.apply(&Operation::ShutDown);
            return Ok(());
        }
        self.see_deadlines_come()?;
        if looks != Looks::Never {
            let looked = self.look();
            looked.map_err(|wrong| {
                self.failure_of_runs(format!("in the end everything that can be seen: {wrong}"))
            })?;
            self.see_reasons_hold()?;
        }
        self.compare(&Operation::ShutDown, Looks::Never)?;
        self.settle("in the end all settles")?;
        // Keys may still be handed out at a rate.
        self.see_deadlines_come()
    }

    /// A step that does not wait.
    pub(super) fn compare(&mut self, step: &Operation, looks: Looks) -> Result<(), Failure> {
        let drains = self.pending_drains();
        match self.apply(step) {
            Ok(Some(outcome)) => self.timeline.push(format!("{step:?}: {outcome}")),
            Ok(None) => {}
            Err(wrong) => return Err(self.failure_of_runs(format!("{step:?}: {wrong}"))),
        }
        self.check_wakes(step, drains)
            .map_err(|wrong| self.failure(wrong))?;
        if self.is_known {
            return Ok(());
        }
        if self.abilities.due_keys_max.is_some() {
            same("stats", self.subject.stats(), self.model.stats())
                .map_err(|wrong| self.failure(wrong))?;
        }
        self.subject.assert_valid();
        self.model.assert_valid();
        let passes = matches!(step, Operation::Advance(_) | Operation::AdvanceToDeadline);
        if looks == Looks::Always && !passes {
            self.look()
                .map_err(|wrong| self.failure(format!("everything that can be seen: {wrong}")))?;
        }
        Ok(())
    }

    /// Every call that waits for a key gets one while there are deadlines that come. One that has
    /// passed and stays changes nothing: a group may have its token, and be at its limit.
    fn see_deadlines_come(&mut self) -> Result<(), Failure> {
        let mut passed = None;
        while self.getters() > 0 {
            let due = self.model.next_deadline();
            if due.is_none() || due == passed {
                break;
            }
            self.compare(&Operation::AdvanceToDeadline, Looks::Never)?;
            self.settle("in the end all settles")?;
            passed = due;
        }
        Ok(())
    }

    /// How many calls wait for a key.
    fn getters(&self) -> usize {
        let waits = |call: &&Outstanding| matches!(call.waits, For::Key);
        self.calls.iter().filter(waits).count()
    }

    /// What went wrong, and which keys are active that should not be.
    pub(super) fn failure_of_runs(&mut self, mut wrong: String) -> Failure {
        let is_active = |known: Option<KeyState>| known.is_some_and(|known| known.active);
        let mut model = self.model.clone();
        for key in 1..=self.keys {
            if is_active(self.subject.state(key)) && !is_active(model.state(key)) {
                wrong += &format!("; key {key} is still active");
            }
        }
        self.failure(wrong)
    }

    /// What went wrong, after everything that has been done.
    pub(super) fn failure(&self, wrong: String) -> Failure {
        Failure {
            timeline: self.timeline.clone(),
            wrong,
            model: self.model.to_string(),
        }
    }

    /// Compares everything that can be seen.
    fn look(&mut self) -> Check {
        let asleep = self.sleepers.len() + self.getters();
        let (subject, model) = (&mut self.subject, &mut self.model);
        for look in Operation::looks(self.keys) {
            let (seen, expected) = (subject.apply(&look), model.apply(&look));
            same(format_args!("{look:?}"), seen, expected)?;
        }
        same("now", subject.now(), model.now())?;
        for (drain, expected) in &self.drains {
            same("drained", subject.drained(drain), model.drained(expected))?;
        }
        if let Some(sleepers) = subject.asleep() {
            same("how many sleep", sleepers, asleep)?;
        }
        if let Some(figures) = subject.figures() {
            same("the figures", Some(figures), model.figures())?;
        }
        subject.assert_valid();
        match subject.wakes() {
            Some(wake) => {
                self.woken |= wake != Wake::NONE;
                self.check_watch()
            }
            None => Ok(()),
        }
    }
}

pub(super) fn same<T: Debug + PartialEq>(what: impl Display, subject: T, model: T) -> Check {
    if subject == model {
        Ok(())
    } else {
        Err(format!("{what}: expected {model:?}, got {subject:?}"))
    }
}

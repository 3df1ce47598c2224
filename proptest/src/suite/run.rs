//! A queue and its model, side by side.

mod apply;
mod watch;

use std::fmt::Debug;

use requeue_core::{Instant, Wake};

use super::{Failure, Looks, Op, blame};
use crate::conformance::Rule;
use crate::subject::{Key, Setup, Subject};
use crate::{Model, ModelDrain, ModelTicket, Rules};

pub(crate) struct Run<S: Subject> {
    pub(crate) subject: S,
    pub(crate) model: Model,
    pub(crate) tickets: Vec<(S::Ticket, ModelTicket)>,
    sleepers: Vec<Sleeper<S>>,
    drains: Vec<(S::Drain, ModelDrain)>,
    /// Keys are `1..=keys`.
    keys: Key,
    /// A sleeper was woken, and none has come back since.
    woken: bool,
    /// What has been done, and what came of it.
    pub(crate) story: Vec<String>,
}

/// A call that was told to wait.
struct Sleeper<S: Subject> {
    getter: S::Getter,
    /// When it comes back by itself.
    until: Option<Instant>,
    /// How many keys it waits for, if it would take several.
    max: Option<usize>,
}

/// What an operation answered; or what is wrong with it. Nothing if there was nothing to do.
type Outcome = Result<Option<String>, String>;
/// Whether something holds; or what is wrong.
type Check = Result<(), String>;

impl<S: Subject> Run<S> {
    pub(crate) fn new(setup: &Setup, keys: Key) -> Self {
        let subject = S::new(setup);
        let model = Model::new(Rules::Requeue, setup, subject.capacity());
        let model = model.with_levels(subject.levels());
        Self {
            subject,
            model,
            tickets: Vec::new(),
            sleepers: Vec::new(),
            drains: Vec::new(),
            keys,
            woken: false,
            story: Vec::new(),
        }
    }

    /// Does an operation to both, and compares.
    pub(crate) fn step(&mut self, op: &Op, looks: Looks) -> Result<(), Failure> {
        let drains = self.pending_drains();
        let outcome = self.apply(op);
        match outcome {
            Ok(Some(told)) => self.story.push(format!("{op:?}: {told}")),
            Ok(None) => {}
            Err(wrong) => {
                let rule = blame::of_an_operation(op, &wrong);
                return Err(self.failure(rule, format!("{op:?}: {wrong}")));
            }
        }
        self.check_wakes(op, drains)
            .map_err(|wrong| self.failure(blame::of_a_wake(), wrong))?;
        self.subject.assert_valid();
        self.model.assert_valid();
        let time_passes = matches!(op, Op::Advance(_) | Op::AdvanceToDeadline);
        if looks == Looks::Always && !time_passes {
            self.look_from_outside(Some(op))?;
        }
        Ok(())
    }

    /// Everybody goes home, and the test looks.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        while let Some(mut sleeper) = self.sleepers.pop() {
            self.subject.leave(&mut sleeper.getter);
        }
        self.subject.assert_valid();
        self.look_from_outside(None)
    }

    /// Compares everything that can be seen after an operation, or in the end.
    fn look_from_outside(&mut self, after: Option<&Op>) -> Result<(), Failure> {
        let asleep = self.sleepers.len();
        let Err(wrong) = self.look(asleep) else {
            return Ok(());
        };
        let wrong = format!("everything that can be seen: {wrong}");
        let rule = after.and_then(|op| blame::of_an_operation(op, &wrong));
        Err(self.failure(rule, wrong))
    }

    /// What went wrong in the end, after everything that has been done.
    pub(crate) fn failure(&self, rule: Option<&'static Rule>, wrong: String) -> Failure {
        Failure {
            story: self.story.clone(),
            wrong,
            model: self.model.to_string(),
            rule,
        }
    }

    /// Compares everything that can be seen, while so many calls sleep.
    pub(crate) fn look(&mut self, asleep: usize) -> Check {
        let (subject, model) = (&mut self.subject, &mut self.model);
        // First of all, since it releases what is due.
        same("len", subject.len(), model.len())?;
        for key in 1..=self.keys {
            same("state", (key, subject.state(key)), (key, model.state(key)))?;
            let contains = (key, subject.contains(key));
            same("contains", contains, (key, model.contains(key)))?;
            let requeues = (key, subject.num_requeues(key));
            same("num_requeues", requeues, (key, model.num_requeues(key)))?;
        }
        same("totals", subject.totals(), model.totals())?;
        let closed = subject.shutting_down();
        same("shutting_down", closed, model.shutting_down())?;
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
                self.woken |= wake != Wake::None;
                self.check_watch()
            }
            None => Ok(()),
        }
    }
}

fn same<T: Debug + PartialEq>(what: &str, subject: T, model: T) -> Check {
    if subject == model {
        Ok(())
    } else {
        Err(format!("{what}: expected {model:?}, got {subject:?}"))
    }
}

/// As [`same`], and tells what both answered.
fn both<T: Debug + PartialEq>(subject: T, model: T) -> Outcome {
    if subject == model {
        Ok(Some(format!("{subject:?}")))
    } else {
        Err(format!("expected {model:?}, got {subject:?}"))
    }
}

/// Something was done that answers nothing.
fn done() -> Outcome {
    Ok(Some(String::from("done")))
}

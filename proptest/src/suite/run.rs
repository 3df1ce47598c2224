//! A queue and its model, side by side.

mod watch;

use std::fmt::Debug;

use requeue_core::{Instant, Next, Wake};

use super::{Looks, Op};
use crate::subject::{Handed, Key, Setup, Subject};
use crate::{Model, ModelDrain, ModelTicket, Rules};

pub(super) struct Run<S: Subject> {
    subject: S,
    model: Model,
    tickets: Vec<(S::Ticket, ModelTicket)>,
    sleepers: Vec<Sleeper<S>>,
    drains: Vec<(S::Drain, ModelDrain)>,
    /// Keys are `1..=keys`.
    keys: Key,
    /// A sleeper was woken, and none has come back since.
    woken: bool,
}

/// A call that was told to wait.
struct Sleeper<S: Subject> {
    getter: S::Getter,
    /// When it comes back by itself.
    until: Option<Instant>,
    /// How many keys it waits for, if it would take several.
    max: Option<usize>,
}

type Outcome = Result<(), String>;

impl<S: Subject> Run<S> {
    pub(super) fn new(setup: &Setup, keys: Key) -> Self {
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
        }
    }

    pub(super) fn step(&mut self, op: &Op, looks: Looks) -> Outcome {
        let drains = self.pending_drains();
        let outcome = self
            .apply(op)
            .and_then(|()| self.check_wakes(op, drains))
            .and_then(|()| {
                self.subject.assert_valid();
                self.model.assert_valid();
                let time_passes = matches!(op, Op::Advance(_) | Op::AdvanceToDeadline);
                if looks == Looks::Always && !time_passes {
                    self.look()
                } else {
                    Ok(())
                }
            });
        outcome.map_err(|reason| format!("{op:?}: {reason}\nthe model: {:?}", self.model))
    }

    /// Everybody goes home, and the test looks.
    pub(super) fn finish(&mut self) -> Outcome {
        while let Some(mut sleeper) = self.sleepers.pop() {
            self.subject.leave(&mut sleeper.getter);
        }
        self.subject.assert_valid();
        self.look()
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::TryGet | Op::Get | Op::GetMany(_) | Op::LookAgain(_) | Op::Leave(_) => self.get(op),
            Op::DoneKey(_)
            | Op::Done(_)
            | Op::Complete(..)
            | Op::CompleteMany(..)
            | Op::Next(..) => self.complete(op),
            Op::ShutDown | Op::BeginDrain | Op::TakeDelayed | Op::TakeReady => self.close(op),
            _ => self.add(op),
        }
    }

    fn add(&mut self, op: &Op) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match *op {
            Op::Add(key) => same("add", subject.add(key), model.add(key)),
            Op::AddAfter(key, delay) => same(
                "add_after",
                subject.add_after(key, delay),
                model.add_after(key, delay),
            ),
            Op::AddAt(key, due) => same("add_at", subject.add_at(key, due), model.add_at(key, due)),
            Op::AddRateLimited(key) => same(
                "add_rate_limited",
                subject.add_rate_limited(key),
                model.add_rate_limited(key),
            ),
            Op::AddWith(key, options) => same(
                "add_with",
                subject.add_with(key, options),
                model.add_with(key, options),
            ),
            Op::AddMany(ref keys) => same("add_many", subject.add_many(keys), model.add_many(keys)),
            Op::Forget(key) => same("forget", subject.forget(key), model.forget(key)),
            Op::ReportRunning => {
                subject.report_running();
                model.report_running();
                Ok(())
            }
            Op::Advance(by) => {
                subject.advance(by);
                model.advance(by);
                Ok(())
            }
            Op::AdvanceToDeadline => {
                if let Some(due) = model.totals().next_deadline {
                    let by = due.saturating_since(model.now());
                    subject.advance(by);
                    model.advance(by);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn get(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::TryGet => {
                let (subject, model) = (self.subject.try_get(), self.model.try_get());
                self.handed(subject, model)
            }
            Op::Get => self.look_for_work(S::Getter::default()),
            Op::GetMany(max) => self.get_many(max, S::Getter::default()),
            Op::LookAgain(pick) => match self.wake_up(pick) {
                Some(Sleeper { getter, max, .. }) => match max {
                    Some(max) => self.get_many(max, getter),
                    None => self.look_for_work(getter),
                },
                None => Ok(()),
            },
            Op::Leave(pick) => {
                if let Some(mut sleeper) = self.wake_up(pick) {
                    self.subject.leave(&mut sleeper.getter);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn get_many(&mut self, max: usize, mut getter: S::Getter) -> Outcome {
        let subject = self.subject.get_many(max, &mut getter);
        match (subject, self.model.get_many(max, &mut ())) {
            (Next::Work(subject), Next::Work(model)) => {
                same("how many keys", subject.len(), model.len())?;
                subject
                    .into_iter()
                    .zip(model)
                    .try_for_each(|(subject, model)| self.handed(Some(subject), Some(model)))
            }
            (subject, model) => self.no_work(getter, Some(max), subject, model),
        }
    }

    /// One look of a call that may wait; it sleeps if there is nothing.
    fn look_for_work(&mut self, mut getter: S::Getter) -> Outcome {
        let subject = self.subject.get(&mut getter);
        let model = self.model.get(&mut ());
        self.next(getter, subject, model)
    }

    fn next(
        &mut self,
        getter: S::Getter,
        subject: Next<Handed<S::Ticket>>,
        model: Next<Handed<ModelTicket>>,
    ) -> Outcome {
        match (subject, model) {
            (Next::Work(subject), Next::Work(model)) => self.handed(Some(subject), Some(model)),
            (subject, model) => self.no_work(getter, None, subject, model),
        }
    }

    fn no_work<T: Debug, U: Debug>(
        &mut self,
        getter: S::Getter,
        max: Option<usize>,
        subject: Next<T>,
        model: Next<U>,
    ) -> Outcome {
        match (subject, model) {
            (Next::Wait { until }, Next::Wait { .. }) => {
                self.sleepers.push(Sleeper { getter, until, max });
                Ok(())
            }
            (Next::Closed, Next::Closed) => Ok(()),
            (subject, model) => Err(format!("expected {model:?}, got {subject:?}")),
        }
    }

    fn complete(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::DoneKey(key) => same("done", self.subject.done_key(key), self.model.done_key(key)),
            Op::Done(pick) => match self.pick_ticket(pick) {
                Some((subject, model)) => {
                    same("done", self.subject.done(subject), self.model.done(model))
                }
                None => Ok(()),
            },
            Op::Complete(pick, how) => match self.pick_ticket(pick) {
                Some((subject, model)) => same(
                    "complete",
                    self.subject.complete(subject, how),
                    self.model.complete(model, how),
                ),
                None => Ok(()),
            },
            Op::CompleteMany(ref picks, how) => {
                let picked = picks.iter().filter_map(|&pick| self.pick_ticket(pick));
                let (subjects, models) = picked.unzip();
                same(
                    "complete_many",
                    self.subject.complete_many(subjects, how),
                    self.model.complete_many(models, how),
                )
            }
            Op::Next(pick, how) => {
                let Some((subject, model)) = self.pick_ticket(pick) else {
                    return Ok(());
                };
                let mut getter = S::Getter::default();
                let subject = self.subject.next(subject, how, &mut getter);
                let model = self.model.next(model, how, &mut ());
                same("next: what became of the key", subject.0, model.0)?;
                self.next(getter, subject.1, model.1)
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, op: &Op) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match op {
            Op::ShutDown => {
                subject.shut_down();
                model.shut_down();
                Ok(())
            }
            Op::BeginDrain => {
                let drain = (subject.begin_drain(), model.begin_drain());
                self.drains.push(drain);
                Ok(())
            }
            Op::TakeDelayed => same("take_delayed", subject.take_delayed(), model.take_delayed()),
            Op::TakeReady => same("take_ready", subject.take_ready(), model.take_ready()),
            _ => Ok(()),
        }
    }

    /// Both have handed out the same key, or none.
    fn handed(
        &mut self,
        subject: Option<Handed<S::Ticket>>,
        model: Option<Handed<ModelTicket>>,
    ) -> Outcome {
        let what =
            |key, level, requeues| format!("key {key} at level {level} with {requeues} failures");
        same(
            "get",
            subject
                .as_ref()
                .map(|it| what(it.key, it.priority, it.requeues)),
            model
                .as_ref()
                .map(|it| what(it.key, it.priority, it.requeues)),
        )?;
        if let (Some(subject), Some(model)) = (subject, model) {
            self.tickets.push((subject.ticket, model.ticket));
        }
        Ok(())
    }

    fn pick_ticket(&mut self, pick: u8) -> Option<(S::Ticket, ModelTicket)> {
        let index = usize::from(pick).checked_rem(self.tickets.len())?;
        Some(self.tickets.remove(index))
    }

    /// A sleeper comes back: whoever it was, the wake under way has arrived.
    fn wake_up(&mut self, pick: u8) -> Option<Sleeper<S>> {
        let index = usize::from(pick).checked_rem(self.sleepers.len())?;
        self.woken = false;
        Some(self.sleepers.remove(index))
    }

    /// Compares everything that can be seen.
    fn look(&mut self) -> Outcome {
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
        if let Some(asleep) = subject.asleep() {
            same("how many sleep", asleep, self.sleepers.len())?;
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

fn same<T: Debug + PartialEq>(what: &str, subject: T, model: T) -> Outcome {
    if subject == model {
        Ok(())
    } else {
        Err(format!("{what}: expected {model:?}, got {subject:?}"))
    }
}

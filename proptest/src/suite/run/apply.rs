//! What each operation is, for a queue and for the model.

use std::fmt::Debug;

use requeue_core::{Completion, Next};

use super::{Outcome, Run, Sleeper, both, done, same};
use crate::ModelTicket;
use crate::subject::{Handed, Subject};
use crate::suite::Op;

const NO_KEY: &str = "no key";

impl<S: Subject> Run<S> {
    pub(super) fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::TryGet | Op::Get | Op::GetMany(_) | Op::LookAgain(_) | Op::Leave(_) => self.get(op),
            Op::DoneKey(_)
            | Op::Done(_)
            | Op::Complete(..)
            | Op::CompleteMany(..)
            | Op::Next(..)
            | Op::PanicAtWork => self.complete(op),
            Op::ShutDown | Op::BeginDrain | Op::TakeDelayed | Op::TakeReady => self.close(op),
            _ => self.add(op),
        }
    }

    fn add(&mut self, op: &Op) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match *op {
            Op::Add(key) => both(subject.add(key), model.add(key)),
            Op::AddAfter(key, delay) => {
                both(subject.add_after(key, delay), model.add_after(key, delay))
            }
            Op::AddAt(key, due) => both(subject.add_at(key, due), model.add_at(key, due)),
            Op::AddRateLimited(key) => {
                both(subject.add_rate_limited(key), model.add_rate_limited(key))
            }
            Op::AddWith(key, options) => {
                both(subject.add_with(key, options), model.add_with(key, options))
            }
            Op::AddMany(ref keys) => both(subject.add_many(keys), model.add_many(keys)),
            Op::Forget(key) => both(subject.forget(key), model.forget(key)),
            Op::ReportRunning => {
                subject.report_running();
                model.report_running();
                done()
            }
            Op::Advance(by) => {
                subject.advance(by);
                model.advance(by);
                Ok(Some(format!("it is {}", model.now())))
            }
            Op::AdvanceToDeadline => {
                let Some(due) = model.totals().next_deadline else {
                    return Ok(None);
                };
                let by = due.saturating_since(model.now());
                subject.advance(by);
                model.advance(by);
                Ok(Some(format!("it is {}", model.now())))
            }
            _ => Ok(None),
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
                None => Ok(None),
            },
            Op::Leave(pick) => match self.wake_up(pick) {
                Some(mut sleeper) => {
                    self.subject.leave(&mut sleeper.getter);
                    done()
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn get_many(&mut self, max: usize, mut getter: S::Getter) -> Outcome {
        let subject = self.subject.get_many(max, &mut getter);
        match (subject, self.model.get_many(max, &mut ())) {
            (Next::Work(subject), Next::Work(model)) => {
                same("how many keys", subject.len(), model.len())?;
                let mut told = Vec::new();
                for (subject, model) in subject.into_iter().zip(model) {
                    told.extend(self.handed(Some(subject), Some(model))?);
                }
                Ok(Some(told.join(", ")))
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
                Ok(Some(String::from("it sleeps")))
            }
            (Next::Closed, Next::Closed) => Ok(Some(String::from("closed"))),
            (subject, model) => Err(format!("expected {model:?}, got {subject:?}")),
        }
    }

    fn complete(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::DoneKey(key) => both(self.subject.done_key(key), self.model.done_key(key)),
            Op::Done(pick) => match self.pick_ticket(pick) {
                Some((subject, model)) => both(self.subject.done(subject), self.model.done(model)),
                None => Ok(None),
            },
            Op::Complete(pick, how) => match self.pick_ticket(pick) {
                Some((subject, model)) => both(
                    self.subject.complete(subject, how),
                    self.model.complete(model, how),
                ),
                None => Ok(None),
            },
            Op::CompleteMany(ref picks, how) => {
                let picked = picks.iter().filter_map(|&pick| self.pick_ticket(pick));
                let (subjects, models) = picked.unzip();
                both(
                    self.subject.complete_many(subjects, how),
                    self.model.complete_many(models, how),
                )
            }
            Op::Next(pick, how) => {
                let Some((subject, model)) = self.pick_ticket(pick) else {
                    return Ok(None);
                };
                let mut getter = S::Getter::default();
                let subject = self.subject.next(subject, how, &mut getter);
                let model = self.model.next(model, how, &mut ());
                same("what became of the key", subject.0, model.0)?;
                self.next(getter, subject.1, model.1)
            }
            Op::PanicAtWork => self.panic_at_work(),
            _ => Ok(None),
        }
    }

    fn panic_at_work(&mut self) -> Outcome {
        if !S::GIVES_BACK {
            return Ok(None);
        }
        let Some(handed) = self.model.try_get() else {
            return Ok(None);
        };
        self.subject.panic_at_work();
        let given_back = self.model.complete(handed.ticket, Completion::Retry);
        let now = (handed.key, self.model.state(handed.key));
        same(
            "the key that was in work",
            (handed.key, self.subject.state(handed.key)),
            now,
        )?;
        Ok(Some(format!(
            "key {} is given back: {given_back:?}",
            handed.key
        )))
    }

    fn close(&mut self, op: &Op) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match op {
            Op::ShutDown => {
                subject.shut_down();
                model.shut_down();
                done()
            }
            Op::BeginDrain => {
                let drain = (subject.begin_drain(), model.begin_drain());
                self.drains.push(drain);
                done()
            }
            Op::TakeDelayed => both(subject.take_delayed(), model.take_delayed()),
            Op::TakeReady => both(subject.take_ready(), model.take_ready()),
            _ => Ok(None),
        }
    }

    /// Both have handed out the same key, or none.
    fn handed(
        &mut self,
        subject: Option<Handed<S::Ticket>>,
        model: Option<Handed<ModelTicket>>,
    ) -> Outcome {
        let got = subject.as_ref().map_or(NO_KEY.into(), Handed::to_string);
        let expected = model.as_ref().map_or(NO_KEY.into(), Handed::to_string);
        if got != expected {
            return Err(format!("expected {expected}, got {got}"));
        }
        if let (Some(subject), Some(model)) = (subject, model) {
            self.tickets.push((subject.ticket, model.ticket));
        }
        Ok(Some(got))
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
}

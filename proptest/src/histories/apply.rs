//! What each operation is, for a queue and for the model.

use std::fmt::Debug;

use requeue_core::Action;
use requeue_core::binding::{Getter, Next};

use super::Step;
use super::pair::{Outcome, Pair, Sleeper, same, see_as};
use crate::subject::{Handed, Subject, Ticket};

const NO_KEY: &str = "no key";

impl Pair {
    pub(super) fn apply(&mut self, op: &Step) -> Outcome {
        match op {
            Step::TryGet | Step::Get | Step::GetMany(_) | Step::LookAgain(_) | Step::Leave(_) => {
                self.get(op)
            }
            Step::DoneKey(_)
            | Step::Done(_)
            | Step::Complete(..)
            | Step::CompleteMany(..)
            | Step::Next(..)
            | Step::PanicAtWork => self.finish(op),
            Step::ShutDown | Step::BeginDrain | Step::TakeDelayed | Step::TakeReady => {
                self.close(op)
            }
            Step::CancelKey(_)
            | Step::CancelDelay(_)
            | Step::Expedite(_)
            | Step::ExpediteAll
            | Step::Pause
            | Step::Unpause
            | Step::Suspend(..)
            | Step::Resume(_)
            | Step::Snapshot
            | Step::Why(_)
            | Step::Order(_)
            | Step::AgeAfter(_)
            | Step::LimitKeys(_)
            | Step::LimitFailureRecords(_)
            | Step::LimitDueKeys(_)
            | Step::SetPolicy(_)
            | Step::RetainBelow(_) => self.control(op),
            _ => self.add(op),
        }
    }

    fn control(&mut self, op: &Step) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match *op {
            Step::CancelKey(key) => both(subject.cancel_key(key), model.cancel_key(key)),
            Step::CancelDelay(key) => both(subject.cancel_delay(key), model.cancel_delay(key)),
            Step::Expedite(key) => both(subject.expedite(key), model.expedite(key)),
            Step::ExpediteAll if model.ends_delays_in_order() => {
                subject.expedite_all();
                model.expedite_all();
                done()
            }
            Step::Suspend(key, timeout) if self.abilities.suspends => {
                both(subject.suspend(key, timeout), model.suspend(key, timeout))
            }
            Step::Resume(key) if self.abilities.suspends => {
                both(subject.resume(key), model.resume(key))
            }
            Step::Snapshot => both(subject.snapshot(), model.snapshot()),
            Step::Why(key) => both(subject.why(key), see_as(subject, model.why(key))),
            Step::Pause => {
                subject.pause();
                model.pause();
                done()
            }
            Step::Unpause => {
                subject.unpause();
                model.unpause();
                done()
            }
            Step::Order(ref order) if subject.groups() => {
                subject.order(order);
                model.order(order);
                done()
            }
            Step::AgeAfter(after) if subject.ages() => {
                subject.age_after(after);
                model.age_after(after);
                done()
            }
            Step::LimitKeys(keys) if self.abilities.limits_keys => {
                subject.limit_keys(keys);
                model.limit_keys(keys);
                both(subject.capacity(), model.capacity())
            }
            Step::LimitFailureRecords(keys) => {
                if !subject.limit_failure_records(keys) {
                    return Ok(None);
                }
                model.limit_failure_records(keys);
                done()
            }
            Step::LimitDueKeys(keys) if self.abilities.due_keys_max.is_some() => {
                subject.limit_due_keys(keys);
                model.limit_due_keys(keys);
                done()
            }
            Step::SetPolicy(ref policy) if self.abilities.governs => {
                subject.set_policy(policy);
                model.set_policy(policy);
                done()
            }
            Step::RetainBelow(key) if model.cancels_in_order(key) => {
                both(subject.retain_below(key), model.retain_below(key))
            }
            _ => Ok(None),
        }
    }

    fn add(&mut self, op: &Step) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match *op {
            Step::Add(key) => both(subject.add(key), model.add(key)),
            Step::AddAfter(key, delay) => {
                both(subject.add_after(key, delay), model.add_after(key, delay))
            }
            Step::AddAt(key, due) => both(subject.add_at(key, due), model.add_at(key, due)),
            Step::AddRateLimited(key) => {
                both(subject.add_rate_limited(key), model.add_rate_limited(key))
            }
            Step::AddDisplacing(key, options) => both(
                subject.add_displacing(key, options),
                model.add_displacing(key, options),
            ),
            Step::AddWith(key, options) => {
                both(subject.add_with(key, options), model.add_with(key, options))
            }
            Step::AddDebounced(..) if !self.abilities.governs => Ok(None),
            Step::AddDebounced(key, quiet, max) => both(
                subject.add_debounced(key, quiet, max),
                model.add_debounced(key, quiet, max),
            ),
            Step::AddMany(ref keys) => both(subject.add_many(keys), model.add_many(keys)),
            Step::Restore(left) => both(subject.restore(left), model.restore(left)),
            Step::Forget(key) => both(subject.forget(key), model.forget(key)),
            Step::ReportRunning => {
                subject.report_running();
                model.report_running();
                done()
            }
            Step::Advance(by) => {
                subject.advance(by);
                model.advance(by);
                Ok(Some(format!("it is {}", model.now())))
            }
            Step::AdvanceToDeadline => {
                let Some(due) = model.next_deadline() else {
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

    fn get(&mut self, op: &Step) -> Outcome {
        match *op {
            Step::TryGet => {
                let (subject, model) = (self.subject.try_get(), self.model.try_get());
                self.handed(subject, model)
            }
            Step::Get => self.look_for_work(Getter::default()),
            Step::GetMany(max) => self.get_many(max, Getter::default()),
            Step::LookAgain(pick) => match self.wake_up(pick) {
                Some(Sleeper { getter, max, .. }) => match max {
                    Some(max) => self.get_many(max, getter),
                    None => self.look_for_work(getter),
                },
                None => Ok(None),
            },
            Step::Leave(pick) => match self.wake_up(pick) {
                Some(mut sleeper) => {
                    self.subject.leave(&mut sleeper.getter);
                    done()
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn get_many(&mut self, max: usize, mut getter: Getter) -> Outcome {
        let subject = self.subject.get_many(max, &mut getter);
        match (subject, self.model.get_many(max, &mut Getter::default())) {
            (Next::Work(subject), Next::Work(model)) => {
                same("how many keys", subject.len(), model.len())?;
                let mut keys = Vec::new();
                for (subject, model) in subject.into_iter().zip(model) {
                    keys.extend(self.handed(Some(subject), Some(model))?);
                }
                Ok(Some(keys.join(", ")))
            }
            (subject, model) => self.no_work(getter, Some(max), subject, model),
        }
    }

    /// One look of a call that may wait; it sleeps if there is nothing.
    fn look_for_work(&mut self, mut getter: Getter) -> Outcome {
        let subject = self.subject.get(&mut getter);
        let model = self.model.get(&mut Getter::default());
        self.next(getter, subject, model)
    }

    fn next(&mut self, getter: Getter, subject: Next<Handed>, model: Next<Handed>) -> Outcome {
        match (subject, model) {
            (Next::Work(subject), Next::Work(model)) => self.handed(Some(subject), Some(model)),
            (subject, model) => self.no_work(getter, None, subject, model),
        }
    }

    fn no_work<T: Debug, U: Debug>(
        &mut self,
        getter: Getter,
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

    fn finish(&mut self, op: &Step) -> Outcome {
        match *op {
            Step::DoneKey(key) => both(self.subject.release_key(key), self.model.release_key(key)),
            Step::Done(pick) => match self.pick_ticket(pick) {
                Some((subject, model)) => {
                    both(self.subject.release(subject), self.model.release(model))
                }
                None => Ok(None),
            },
            Step::Complete(pick, how) => match self.pick_ticket(pick) {
                Some((subject, model)) => both(
                    self.subject.finish(subject, how),
                    self.model.finish(model, how),
                ),
                None => Ok(None),
            },
            Step::CompleteMany(ref picks, how) => {
                let picked = picks.iter().filter_map(|&pick| self.pick_ticket(pick));
                let (subjects, models) = picked.unzip();
                both(
                    self.subject.finish_many(subjects, how),
                    self.model.finish_many(models, how),
                )
            }
            Step::Next(pick, how) => {
                let Some((subject, model)) = self.pick_ticket(pick) else {
                    return Ok(None);
                };
                let mut getter = Getter::default();
                let subject = self.subject.next(subject, how, &mut getter);
                let model = self.model.next(model, how, &mut Getter::default());
                same("what became of the key", subject.0, model.0)?;
                self.next(getter, subject.1, model.1)
            }
            Step::PanicAtWork => self.panic_at_work(),
            _ => Ok(None),
        }
    }

    fn panic_at_work(&mut self) -> Outcome {
        if !self.model.has_a_key_now() || !self.subject.panic_at_work() {
            return Ok(None);
        }
        let Some(handed) = self.model.try_get() else {
            return Ok(None);
        };
        let given_back = self.model.finish(handed.ticket, Action::Retry);
        let now = (handed.key, self.model.state(handed.key));
        same(
            "the key that was active",
            (handed.key, self.subject.state(handed.key)),
            now,
        )?;
        Ok(Some(format!(
            "key {} is given back: {given_back:?}",
            handed.key
        )))
    }

    fn close(&mut self, op: &Step) -> Outcome {
        let (subject, model) = (&mut self.subject, &mut self.model);
        match op {
            Step::ShutDown => {
                subject.shut_down();
                model.shut_down();
                done()
            }
            Step::BeginDrain => {
                let drain = (subject.begin_drain(), model.begin_drain());
                self.drains.push(drain);
                done()
            }
            Step::TakeDelayed => both(subject.take_delayed(), model.take_delayed()),
            Step::TakeReady => both(subject.take_ready(), model.take_ready()),
            _ => Ok(None),
        }
    }

    /// Both have handed out the same key, or none.
    fn handed(&mut self, subject: Option<Handed>, model: Option<Handed>) -> Outcome {
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

    fn pick_ticket(&mut self, pick: u8) -> Option<(Ticket, Ticket)> {
        let index = usize::from(pick).checked_rem(self.tickets.len())?;
        Some(self.tickets.remove(index))
    }

    /// A sleeper returns: whichever it was, the wake under way has arrived.
    fn wake_up(&mut self, pick: u8) -> Option<Sleeper> {
        let index = usize::from(pick).checked_rem(self.sleepers.len())?;
        self.woken = false;
        Some(self.sleepers.remove(index))
    }
}

/// As [`same`], and returns what both answered.
fn both<T: Debug + PartialEq>(subject: T, model: T) -> Outcome {
    if subject == model {
        Ok(Some(format!("{subject:?}")))
    } else {
        Err(format!("expected {model:?}, got {subject:?}"))
    }
}

/// Something was done that returns nothing.
fn done() -> Outcome {
    Ok(Some(String::from("done")))
}

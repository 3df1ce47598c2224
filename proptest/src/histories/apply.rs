//! An operation, done to a queue and to the model.

use requeue_core::Action;
use requeue_core::binding::Next;

use super::pair::{Asleep, Outcome, Pair};
use crate::operation::{Answer, Operate, Operation, Run, Sleeper, Ticket};
use crate::subject::Subject;

impl Pair {
    /// Does an operation to both, unless there is nothing to do it to.
    pub(super) fn apply(&mut self, operation: &Operation) -> Outcome {
        let (Some(operation), max) = self.resolved(operation) else {
            return Ok(None);
        };
        if operation == Operation::PanicAtWork {
            return self.panic_at_work();
        }
        if operation == Operation::PanicUnderLock {
            let _ = self.subject.apply(&operation);
            self.answer = Some(Answer::Done);
            return Ok(Some(String::from("it is caught")));
        }
        if let Operation::Advance(by) = operation {
            self.subject.advance(by);
            self.model.advance(by);
            self.answer = Some(Answer::Done);
            return Ok(Some(format!("it is {}", self.model.now())));
        }
        let answer = self.subject.apply(&operation);
        if answer == Answer::Lacking {
            return Ok(None);
        }
        let expected = self.model.apply(&operation);
        if !answer.agrees(&expected) {
            return Err(format!("expected {expected}, got {answer}"));
        }
        self.keep(&operation, max, &answer, &expected);
        let shown = answer.to_string();
        self.answer = Some(answer);
        Ok(Some(shown))
    }

    /// The same operation on the runs and sleepers that it picks, and for how many keys the sleeper
    /// looks; no operation if there is none to pick, or where it means nothing.
    fn resolved(&mut self, operation: &Operation) -> (Option<Operation>, Option<usize>) {
        let mut max = None;
        let resolved = match *operation {
            Operation::AdvanceToDeadline => {
                let due = self.model.next_deadline();
                let left = due.map(|due| due.saturating_since(self.model.now()));
                left.map(Operation::Advance)
            }
            Operation::Get(_) => Some(Operation::Get(self.new_sleeper())),
            Operation::GetMany(most, _) => {
                max = Some(most);
                Some(Operation::GetMany(most, self.new_sleeper()))
            }
            Operation::LookAgain(pick) => self.wake_up(pick).map(|asleep| {
                max = asleep.max;
                let sleeper = Sleeper::Of(asleep.number);
                match max {
                    Some(max) => Operation::GetMany(max, sleeper),
                    None => Operation::Get(sleeper),
                }
            }),
            Operation::Leave(Sleeper::Pick(pick)) => {
                let asleep = self.wake_up(pick);
                asleep.map(|asleep| Operation::Leave(Sleeper::Of(asleep.number)))
            }
            Operation::Done(Run::Pick(pick)) => self.pick(pick).map(Operation::Done),
            Operation::Complete(Run::Pick(pick), action) => {
                self.pick(pick).map(|run| Operation::Complete(run, action))
            }
            Operation::CompleteMany(ref runs, action) => {
                let picked = runs.iter().filter_map(|run| match run {
                    Run::Pick(pick) => self.pick(*pick),
                    Run::Of(_) => Some(*run),
                });
                Some(Operation::CompleteMany(picked.collect(), action))
            }
            Operation::Next(run, action, _) => {
                let run = match run {
                    Run::Pick(pick) => self.pick(pick),
                    Run::Of(_) => Some(run),
                };
                run.map(|run| Operation::Next(run, action, self.new_sleeper()))
            }
            Operation::ExpediteAll if !self.model.ends_delays_in_order() => None,
            Operation::RetainBelow(key) if !self.model.cancels_in_order(key) => None,
            ref other => Some(other.clone()),
        };
        (resolved, max)
    }

    /// Keeps what later operations may pick.
    fn keep(&mut self, operation: &Operation, max: Option<usize>, answer: &Answer, model: &Answer) {
        match answer {
            Answer::Work(Some(handed))
            | Answer::Next(Next::Work(handed))
            | Answer::Turn(_, Next::Work(handed)) => self.tickets.push(handed.ticket),
            Answer::NextMany(Next::Work(handed)) => {
                self.tickets
                    .extend(handed.iter().map(|handed| handed.ticket));
            }
            Answer::Next(Next::Wait { until })
            | Answer::NextMany(Next::Wait { until })
            | Answer::Turn(_, Next::Wait { until }) => {
                if let Operation::Get(Sleeper::Of(number))
                | Operation::GetMany(_, Sleeper::Of(number))
                | Operation::Next(_, _, Sleeper::Of(number)) = *operation
                {
                    let until = *until;
                    self.sleepers.push(Asleep { number, until, max });
                }
            }
            Answer::Drain(drain) => {
                if let Answer::Drain(expected) = model {
                    self.drains.push((*drain, *expected));
                }
            }
            _ => {}
        }
    }

    fn panic_at_work(&mut self) -> Outcome {
        if !self.model.has_a_key_now()
            || self.subject.apply(&Operation::PanicAtWork) != Answer::Is(true)
        {
            return Ok(None);
        }
        let Some((key, given_back)) = self.model.work_unseen(Action::Retry) else {
            return Ok(None);
        };
        let states = [self.subject.state(key), self.model.state(key)];
        let [now, expected] = states.map(|state| Answer::State(state).to_string());
        if now != expected {
            return Err(format!("key {key} is: expected {expected}, got {now}"));
        }
        self.answer = Some(Answer::Done);
        Ok(Some(format!("key {key} is given back: {given_back:?}")))
    }

    fn pick(&mut self, pick: u8) -> Option<Run> {
        let index = usize::from(pick).checked_rem(self.tickets.len())?;
        let ticket: Ticket = self.tickets.remove(index);
        Some(ticket.into())
    }

    fn new_sleeper(&mut self) -> Sleeper {
        self.last_sleeper += 1;
        Sleeper::Of(self.last_sleeper)
    }

    /// A sleeper returns: whichever it was, the wake under way has arrived.
    fn wake_up(&mut self, pick: u8) -> Option<Asleep> {
        let index = usize::from(pick).checked_rem(self.sleepers.len())?;
        self.woken = false;
        Some(self.sleepers.remove(index))
    }
}

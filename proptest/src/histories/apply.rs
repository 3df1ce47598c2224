//! An operation, done to a queue and to the model.

use requeue_core::Action;

use super::pair::{Asleep, Outcome, Pair};
use crate::operation::{Answer, Operate, Operation, Run, Sleeper};
use crate::subject::Subject;

impl Pair {
    /// Does an operation to both, unless there is nothing to do it to.
    pub(super) fn apply(&mut self, operation: &Operation) -> Outcome {
        let Some(mut operation) = self.resolved(operation) else {
            return Ok(None);
        };
        match operation {
            Operation::PanicAtWork => return self.panic_at_work(),
            Operation::PanicUnderLock => {
                let _ = self.subject.apply(&operation);
                self.answer = Some(Answer::Done);
                return Ok(Some(String::from("it is caught")));
            }
            Operation::Advance(by) => {
                self.subject.advance(by);
                self.model.advance(by);
                self.answer = Some(Answer::Done);
                return Ok(Some(format!("it is {}", self.model.now())));
            }
            _ => {}
        }
        let answer = self.subject.apply(&operation);
        if answer == Answer::Lacking {
            return Ok(None);
        }
        let expected = self.model.apply(&operation);
        if !answer.agrees(&expected) {
            return Err(format!("expected {expected}, got {answer}"));
        }
        // Later operations may pick these.
        let handed = answer.handed().iter();
        self.tickets.extend(handed.map(|handed| handed.ticket));
        if let (Answer::Drain(drain), Answer::Drain(expected)) = (&answer, &expected) {
            self.drains.push((*drain, *expected));
        }
        if let (Some(until), Some(Sleeper::Of(number))) =
            (answer.waits(), operation.sleeper_mut().copied())
        {
            let again = match operation {
                Operation::Next(_, _, sleeper) => Operation::Get(sleeper),
                looks => looks,
            };
            self.sleepers.push(Asleep {
                number,
                until,
                again,
            });
        }
        let shown = answer.to_string();
        self.answer = Some(answer);
        Ok(Some(shown))
    }

    /// The same operation on the runs and sleepers that it picks. `None` if there is none to pick,
    /// or where it means nothing.
    fn resolved(&mut self, operation: &Operation) -> Option<Operation> {
        let mut resolved = match operation {
            Operation::AdvanceToDeadline => {
                let due = self.model.next_deadline()?;
                Operation::Advance(due.saturating_since(self.model.now()))
            }
            Operation::LookAgain(pick) => self.wake_up(*pick)?.again,
            Operation::ExpediteAll if !self.model.ends_delays_in_order() => return None,
            Operation::RetainBelow(key) if !self.model.cancels_in_order(*key) => return None,
            other => other.clone(),
        };
        let runs = resolved.runs_mut();
        for run in runs.iter_mut() {
            if let Run::Pick(pick) = *run
                && let Some(index) = usize::from(pick).checked_rem(self.tickets.len())
            {
                *run = self.tickets.remove(index).into();
            }
        }
        let is_missing = |run: &Run| matches!(run, Run::Pick(_));
        if !runs.is_empty() && runs.iter().all(is_missing) {
            return None;
        }
        if let Some(sleeper) = resolved.sleeper_mut() {
            match *sleeper {
                Sleeper::New => {
                    self.last_sleeper += 1;
                    *sleeper = Sleeper::Of(self.last_sleeper);
                }
                Sleeper::Pick(pick) => *sleeper = Sleeper::Of(self.wake_up(pick)?.number),
                Sleeper::Of(_) => {}
            }
        }
        Some(resolved)
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

    /// A sleeper returns: whichever it was, the wake under way has arrived.
    fn wake_up(&mut self, pick: u8) -> Option<Asleep> {
        let index = usize::from(pick).checked_rem(self.sleepers.len())?;
        self.woken = false;
        Some(self.sleepers.remove(index))
    }
}

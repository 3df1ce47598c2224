//! Stories: steps with the answers that are written beside them, on a queue and its model.

use std::time::Duration;

use requeue_core::binding::Next;

use super::pair::Pair;
use super::{Failure, Looks, Operation};
use crate::operation::{Answer, Key, Sleeper, name};
use crate::stories::{BACKOFF, Line, Rule, Step, step};
use crate::subject::{Call, CallId, Configuration, NewSubject, Subject};
use crate::watched::restarts;

/// Keys that fill a queue have higher numbers than those of a story.
const FILLERS: Key = 1000;

/// Plays the story of a rule. Threads are waited for with this patience.
///
/// # Errors
///
/// If a step has another answer than the story says, or than the model has.
pub(crate) fn play(rule: &Rule, new: NewSubject, patience: Duration) -> Result<(), String> {
    let lines = rule.lines()?;
    let steps = steps(&lines)?;
    let keys = steps.iter().map(|step| match step {
        Step::Operation(operation) => operation.highest_key(),
        _ => 0,
    });
    let keys = keys.max().unwrap_or(0);
    let mut pair = Pair::new(new(&plain()), &plain(), keys, patience);
    restarts();
    for line in &lines {
        let what = || String::from(line.parts().0);
        let played = pair.guarded(what, |pair| pair.play(line, new));
        played.map_err(|failure| line.wrong(&failure.to_string()))?;
        if pair.is_open {
            break;
        }
    }
    let end = || String::from("in the end");
    let end = pair.guarded(end, |pair| pair.conclude(Looks::Last));
    end.map_err(|failure| failure.to_string())
}

impl Pair {
    fn play(&mut self, line: &Line, new: NewSubject) -> Result<(), Failure> {
        let (text, expected) = line.parts();
        let tickets = self.tickets.clone();
        let last = |key: Key| {
            let of_key = tickets.iter().filter(|ticket| ticket.key == key);
            of_key.map(|ticket| ticket.run).max().unwrap_or(0)
        };
        let answer = match step(text, &last).map_err(|wrong| self.failure(wrong))? {
            Step::Queue(setup) => {
                self.conclude(Looks::Last)?;
                *self = Self::new(new(&setup), &setup, self.keys, self.patience);
                self.timeline.push(String::from(text));
                String::new()
            }
            Step::Room(keys) => self.make_room(keys, text)?,
            Step::Operation(Operation::Get(_)) => self.get()?,
            // There may be none, if a call was served as soon as it could be.
            Step::Operation(Operation::Cancel(nth) | Operation::Nudge(nth))
                if (1..=nth.into()).contains(&self.calls.len()) =>
            {
                let waiting = self.calls.len();
                return Err(self.failure(format!("{text}: only {waiting} of the calls wait")));
            }
            Step::Operation(operation) => self.operate(&operation)?,
        };
        if answer == expected || self.is_open {
            return Ok(());
        }
        let wrong = format!("{text}: expected {expected:?}, got {answer:?}");
        Err(self.failure_of_runs(wrong))
    }

    /// Leaves room for so many keys.
    fn make_room(&mut self, keys: Key, text: &str) -> Result<String, Failure> {
        if self.abilities.limits_keys {
            return self.operate(&Operation::LimitKeys(keys.into()));
        }
        let capacity = self.subject.capacity().unwrap_or_default();
        for filler in (FILLERS..).take(capacity.saturating_sub(keys.into())) {
            let add = Operation::AddAfter(filler, Duration::MAX);
            let _ = (self.subject.apply(&add), self.model.apply(&add));
        }
        self.timeline.push(String::from(text));
        Ok(String::new())
    }

    fn get(&mut self) -> Result<String, Failure> {
        self.step(&Operation::TryGet, Looks::Never)?;
        match self.answer.take() {
            Some(Answer::Work(Some(handed))) => Ok(handed.key.to_string()),
            _ => self.operate(&Operation::Get(Sleeper::New)),
        }
    }

    fn operate(&mut self, operation: &Operation) -> Result<String, Failure> {
        use Operation::{Cancel, NextUnrun, Nudge, Settle, Start};
        self.answer = None;
        self.step(operation, Looks::Never)?;
        let answer = self.answer.take();
        if answer.as_ref().is_some_and(|it| it.waits().is_some()) {
            let last = self.sleepers.len() - 1;
            let leave = Operation::Leave(Sleeper::Pick(last as u8));
            self.step(&leave, Looks::Never)?;
        }
        Ok(match (operation, answer) {
            (Settle, _) => {
                // Refusals depend on how many calls may wait, and are judged.
                self.returned.retain(|it| it != "refused");
                self.returned.sort();
                let returned = std::mem::take(&mut self.returned);
                returned.join(", ")
            }
            (Start(_) | Cancel(_) | Nudge(_) | NextUnrun(_), _)
            | (_, Some(Answer::Done | Answer::Drain(_))) => String::new(),
            (_, None) => String::from("nothing is done"),
            (_, Some(Answer::NextMany(Next::Work(handed)))) => {
                let keys = handed.iter().map(|handed| handed.key.to_string());
                keys.collect::<Vec<_>>().join(" ")
            }
            (_, Some(answer)) => answer.to_string(),
        })
    }
}

/// Why the story of a rule cannot be played: what the queue lacks.
pub(crate) fn skipped(rule: &Rule, new: NewSubject) -> Option<String> {
    let mut subject = new(&plain());
    // What cannot be read is no reason: the story fails.
    let steps = rule
        .lines()
        .and_then(|lines| steps(&lines))
        .unwrap_or_default();
    let lacks = steps.iter().find_map(|step| match step {
        Step::Operation(operation) => lacks(operation, new),
        Step::Room(_) if subject.capacity().is_none() && !subject.abilities().limits_keys => {
            Some(String::from("the queue has no capacity"))
        }
        _ => None,
    });
    lacks.or_else(|| rule.skipped(&mut *subject))
}

/// What a queue lacks for a step.
fn lacks(step: &Operation, new: NewSubject) -> Option<String> {
    let abilities = new(&plain()).abilities();
    let lacks = match step {
        Operation::Cancel(_) | Operation::NextUnrun(_) if !abilities.cancels => {
            "its calls cannot be cancelled"
        }
        Operation::Start(_) | Operation::NextUnrun(_) if !starts(new, Call::Get) => {
            "the queue has no calls that wait"
        }
        Operation::Start(call) if !starts(new, *call) => {
            return Some(format!("the queue has no call {}", name(call)));
        }
        Operation::NextUnrun(how) if !with_a_key(new).next_unrun(*how) => {
            "the binding does not override next_unrun"
        }
        _ => return None,
    };
    Some(String::from(lacks))
}

/// Says so if a queue leaves waiting to others.
pub(crate) fn without_calls(new: NewSubject) -> Option<String> {
    lacks(&Operation::Start(Call::Get), new)
}

/// Whether a queue has such a call: tried on one of which nothing else is asked.
fn starts(new: NewSubject, call: Call) -> bool {
    const ONLY: CallId = 1;
    let mut subject = with_a_key(new);
    let starts = subject.start(ONLY, call);
    if subject.answer(ONLY).is_none() {
        subject.cancel(ONLY);
    }
    starts
}

fn with_a_key(new: NewSubject) -> Box<dyn Subject> {
    let mut subject = new(&plain());
    // A key that is refused is missed by the story.
    let _ = subject.apply(&Operation::Add(1));
    subject
}

/// A queue as a story has it that says nothing of it.
fn plain() -> Configuration {
    Configuration::new(BACKOFF)
}

/// The steps of a story, with runs that have no numbers yet.
pub(super) fn steps(lines: &[Line]) -> Result<Vec<Step>, String> {
    let steps = lines.iter().map(|line| {
        let step = step(line.parts().0, &|_| 0);
        step.map_err(|wrong| line.wrong(&wrong))
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::subject::boxed;

    fn played(steps: &'static str) -> Result<(), String> {
        let mut rule = Rule::read("order", "name\n  A rule.\n  Source: here\n", 1)?;
        rule.steps = steps.trim_start_matches('\n');
        play(&rule, boxed::<Model>, Duration::ZERO)
    }

    #[test]
    fn a_story_with_the_right_answers_is_played() {
        let steps = "
  for KEY NEW in 1 4, 2 5
    2 times
      queue
      add KEY 3    -> Ready
      add 7..9     -> Ready
      run KEY      -> Idle
      get          -> 3 7..9
      not_before 2ms
      add_with NEW after 2ms, Keep,
          level 1  -> Delayed 2ms";
        assert_eq!(played(steps), Ok(()));
    }

    #[test]
    fn a_wrong_answer_is_found() {
        for (step, wrong) in [
            ("  add 1 2 -> Dirty", "expected \"Dirty\", got \"Ready\""),
            ("  add 1", "expected \"\", got \"Ready\""),
            ("  pause -> Ready", "expected \"Ready\", got \"\""),
            (
                "  start get\n  settle -> key 1",
                "expected \"key 1\", got \"\"",
            ),
            ("  get -> 1", "got \"waits\""),
        ] {
            let failure = played(step).unwrap_err();
            assert!(failure.contains(wrong), "{failure}");
            assert!(
                failure.contains("\nIn proptest/src/stories/order.txt:"),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for step in [
            "  add",
            "  add 1 2ms",
            "  jump 1",
            "  add_with 1 later",
            "  add 1\n    get",
            "  x times\n    get",
        ] {
            let failure = played(step).unwrap_err();
            assert!(failure.contains("order.txt:4"), "{failure}");
        }
    }
}

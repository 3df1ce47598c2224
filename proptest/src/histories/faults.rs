//! What is reported if calls answer otherwise than the model says.

use super::judge::{Fault, Outstanding};
use super::pair::Pair;
use crate::operation::{Handed, Operate};
use crate::subject::{CallId, Returned};

impl Pair {
    /// A key is ready, and a getter that should have got it has not.
    pub(super) fn missing_key(&self, missing: &Handed, empty_handed: &[Outstanding]) -> Fault {
        let answer = |call: &Outstanding| self.answers.get(&call.id);
        let ended = empty_handed
            .iter()
            .find_map(|call| answer(call).map(|answer| (call.id, answer)));
        let asleep = empty_handed.iter().find(|call| answer(call).is_none());
        let should = format!("should have answered key {}", missing.key);
        let wrong = match (asleep, ended) {
            (Some(call), _) => format!("call #{} {should}, {STILL_WAITING}", call.id),
            (None, Some((id, answer))) => format!("call #{id} {should}, and it answers {answer:?}"),
            (None, None) => format!("a call {should}"),
        };
        let may_come = asleep.is_some();
        Fault { wrong, may_come }
    }

    /// A call has a key that it should not have.
    pub(super) fn unexpected_key(&self, id: CallId, got: &Handed) -> Fault {
        let key = got.key;
        let has_it_too = |(other, answer): (&CallId, &Returned<Handed>)| match answer {
            Returned::Work(handed) if handed.key == key && *other != id => Some(*other),
            _ => None,
        };
        let known = self.model.clone().state(key);
        let wrong = match self.answers.iter().find_map(has_it_too) {
            Some(other) => format!("call #{other} has key {key}, and call #{id} too"),
            None if known.is_some_and(|known| known.active) => {
                format!("call #{id} has key {key}, which is active")
            }
            None => format!("call #{id} has {got}, which is not to be handed out"),
        };
        let may_come = false;
        Fault { wrong, may_come }
    }

    /// A call has not ended as it should have, or has ended.
    pub(super) fn wrong_end(
        id: CallId,
        expected: &[Returned<Handed>],
        answer: Option<&Returned<Handed>>,
    ) -> Fault {
        let ends: Vec<_> = expected.iter().map(|end| format!("{end:?}")).collect();
        let should = match &ends[..] {
            [] => String::from("should wait"),
            ends => format!("should have ended: {}", ends.join(" or ")),
        };
        let wrong = match answer {
            Some(answer) => format!("call #{id} {should}, and it answers {answer:?}"),
            None => format!("call #{id} {should}, {STILL_WAITING}"),
        };
        let may_come = answer.is_none();
        Fault { wrong, may_come }
    }

    /// Not every call comes to rest.
    pub(super) fn no_rest(&self) -> Fault {
        let deadline = self.model.next_deadline();
        let deadline = deadline.map_or(String::new(), |due| format!(", and a key is due at {due}"));
        let what = "a call with nothing to do does not sleep, or none watches the clock";
        Fault {
            wrong: format!("{what}{deadline}"),
            may_come: true,
        }
    }
}

const STILL_WAITING: &str = "but it is still waiting";

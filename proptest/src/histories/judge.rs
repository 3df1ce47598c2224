//! Which calls have to have answered, and what.

use requeue_core::binding::Drained;
use requeue_core::{Instant, Rejected};

use super::pair::Pair;
use crate::Model;
use crate::operation::{Answer, Drain, Handed, Key, Operate};
use crate::subject::{CallId, Returned, Subject};

/// A call that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub(super) id: CallId,
    pub(super) waits: For,
    /// Until when at most.
    pub(super) deadline: Option<Instant>,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum For {
    Key,
    Drain(Drain),
    /// That no key is ready or active.
    Idle,
    /// That no key is ready, active or delayed.
    Settled,
    Work {
        key: Key,
        /// The model's number of the wait.
        flush: usize,
        /// What the call returns then.
        end: Returned<Handed>,
    },
    Room(Key),
}

/// All is as it has to be.
pub(super) struct Verdict {
    /// The model once those have looked who had to.
    pub(super) model: Model,
    /// The calls do not tell which of two states the queue is in.
    pub(super) is_open: bool,
    /// Who has ended, and how.
    pub(super) ended: Vec<(CallId, String)>,
}

/// Something is not as it has to be.
pub(super) struct Fault {
    pub(super) wrong: String,
    /// It may be only a question of time.
    pub(super) may_come: bool,
}

impl Pair {
    /// Holds the answers of the calls `ids`, who have all had their chance to look, against what
    /// the model says.
    pub(super) fn judge(&self, ids: &[CallId]) -> Result<Verdict, Fault> {
        let room_first = self.judge_in_order(ids, true);
        let waits_for_room = |call: &Outstanding| matches!(call.waits, For::Room(_));
        if self.abilities.groups == 0 || !self.calls.iter().any(waits_for_room) {
            return room_first;
        }
        // A key that is added before another is handed out has an earlier turn of its group.
        match (room_first, self.judge_in_order(ids, false)) {
            (Ok(one), Ok(other)) => {
                let is_open = one.model.fingerprint() != other.model.fingerprint();
                Ok(Verdict { is_open, ..one })
            }
            (Err(_), Ok(other)) => Ok(other),
            (room_first, _) => room_first,
        }
    }

    /// The same if all who wait for room look first, or all who wait for a key.
    fn judge_in_order(&self, ids: &[CallId], room_first: bool) -> Result<Verdict, Fault> {
        let mut verdict = Verdict {
            model: self.model.clone(),
            is_open: false,
            ended: Vec::new(),
        };
        let calls = || self.calls.iter().filter(|call| ids.contains(&call.id));
        let getters = calls().filter(|call| matches!(call.waits, For::Key));
        let getters: Vec<Outstanding> = getters.copied().collect();
        let mut expected = Vec::new();
        if !room_first {
            let served = getters.iter().filter(|call| self.has_key(call)).count();
            expected.extend((0..served).map_while(|_| verdict.model.get()));
        }
        // Those who wait for room are served in their order, and others get the keys that they add.
        for call in calls().filter(|call| matches!(call.waits, For::Room(_))) {
            self.judge_end(*call, &mut verdict)?;
        }
        let empty_handed = self.judge_keys(getters, expected, &mut verdict)?;
        let is_other = |call: &&Outstanding| !matches!(call.waits, For::Key | For::Room(_));
        for call in empty_handed.iter().chain(calls().filter(is_other)) {
            self.judge_end(*call, &mut verdict)?;
        }
        Ok(verdict)
    }

    /// The first keys have to be with as many calls, whichever. Returns those that have none.
    fn judge_keys(
        &self,
        getters: Vec<Outstanding>,
        mut expected: Vec<Handed>,
        verdict: &mut Verdict,
    ) -> Result<Vec<Outstanding>, Fault> {
        let served = self.served_at_least(&getters, &verdict.model);
        let served = served.max(getters.iter().filter(|call| self.has_key(call)).count());
        let model = &mut verdict.model;
        while expected.len() < served {
            let Some(handed) = model.get() else {
                break;
            };
            expected.push(handed);
        }
        let mut empty_handed = Vec::new();
        for call in getters {
            let Some(Returned::Work(got)) = self.answers.get(&call.id) else {
                empty_handed.push(call);
                continue;
            };
            let what = |key, failures, priority| (key, failures, priority);
            let got_what = what(got.key, got.failures, got.priority);
            let same = |it: &Handed| what(it.key, it.failures, it.priority) == got_what;
            let Some(index) = expected.iter().position(same) else {
                return Err(self.unexpected_key(call.id, got));
            };
            let handed = expected.remove(index);
            verdict.ended.push((call.id, format!("key {}", handed.key)));
        }
        let Some(missing) = expected.first() else {
            return Ok(empty_handed);
        };
        let should = format!("should have answered key {}", missing.key);
        // One that still waits tells most.
        let has_ended = |call: &&Outstanding| self.answer_of(call).is_some();
        Err(match empty_handed.iter().min_by_key(has_ended) {
            Some(call) => self.wrong_end(call, &should),
            None => Fault {
                wrong: format!("a call {should}"),
                may_come: false,
            },
        })
    }

    /// How many of these calls have a key at the least, as the model stands once those have been
    /// served who wait for room. One whose time has come may have looked before them, and has
    /// missed what they add. One that looks only once may miss what is behind a backlog.
    fn served_at_least(&self, getters: &[Outstanding], model: &Model) -> usize {
        let has_backlog = self.model.has_backlog();
        let looked_once = |call: &&Outstanding| match self.answer_of(call) {
            Some(Returned::TimedOut) => true,
            Some(Returned::Refused) => has_backlog,
            _ => false,
        };
        let patient = getters.len() - getters.iter().filter(looked_once).count();
        let looked = if has_backlog { patient } else { getters.len() };
        let there_before = handed_out(self.model.clone(), looked);
        handed_out(model.clone(), patient).max(there_before)
    }

    fn has_key(&self, call: &Outstanding) -> bool {
        matches!(self.answer_of(call), Some(Returned::Work(_)))
    }

    fn answer_of(&self, call: &Outstanding) -> Option<&Returned<Handed>> {
        self.answers.get(&call.id)
    }

    fn judge_end(&self, call: Outstanding, verdict: &mut Verdict) -> Result<(), Fault> {
        let expected = self.expected_ends(call, &mut verdict.model);
        let answer = self.answer_of(&call);
        if answer.is_none() && self.may_wait_on(call, &mut verdict.model) {
            return Ok(());
        }
        let is_right = answer.map_or(expected.is_empty(), |answer| expected.contains(answer));
        if !is_right {
            let ends: Vec<_> = expected.iter().map(|end| format!("{end:?}")).collect();
            let should = match &ends[..] {
                [] => String::from("should wait"),
                ends => format!("should have ended: {}", ends.join(" or ")),
            };
            return Err(self.wrong_end(&call, &should));
        }
        let what = match answer {
            Some(Returned::Drained(drained)) => format!("the drain is {drained:?}"),
            Some(Returned::Added(added)) => Answer::Added(*added).to_string(),
            Some(Returned::Cancelled(was)) => Answer::State(*was).to_string(),
            Some(Returned::TimedOut) => String::from("timed out"),
            Some(answer) => format!("{answer:?}").to_lowercase(),
            None => return Ok(()),
        };
        verdict.ended.push((call.id, what));
        Ok(())
    }

    /// A call has not ended as it should have, or has ended.
    fn wrong_end(&self, call: &Outstanding, should: &str) -> Fault {
        let answer = self.answer_of(call);
        let but = match answer {
            Some(answer) => format!("and it answers {answer:?}"),
            None => String::from("but it is still waiting"),
        };
        Fault {
            wrong: format!("call #{} {should}, {but}", call.id),
            may_come: answer.is_none(),
        }
    }

    /// A call has a key that it should not have.
    fn unexpected_key(&self, id: CallId, got: &Handed) -> Fault {
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

    /// How a call may have ended for which there is no key. In no way if it waits.
    fn expected_ends(&self, call: Outstanding, model: &mut Model) -> Vec<Returned<Handed>> {
        let is_late = call.deadline.is_some_and(|due| model.now() >= due);
        let end_if = |is_over: bool, end| Vec::from_iter(is_over.then_some(end));
        let mut ends = match call.waits {
            For::Key => {
                // A runtime may look at either first.
                let late = end_if(is_late, Returned::TimedOut);
                let closed = end_if(model.is_over(), Returned::Closed);
                late.into_iter().chain(closed).collect()
            }
            For::Drain(drain) => match model.drained(&drain) {
                Drained::Pending if !is_late => Vec::new(),
                // A timeout around the call comes after its look for a place.
                Drained::Pending if self.is_without_place(call) => {
                    vec![Returned::Drained(Drained::Pending), Returned::Refused]
                }
                drained => vec![Returned::Drained(drained)],
            },
            For::Idle => end_if(
                model.is_idle() || self.model.clone().is_idle(),
                Returned::Done,
            ),
            For::Settled => end_if(
                model.is_settled() || self.model.clone().is_settled(),
                Returned::Done,
            ),
            For::Work { flush, end, .. } => end_if(model.is_flushed(flush), end),
            For::Room(key) => match model.add(key) {
                Err(Rejected::Full(_)) => Vec::new(),
                added => vec![Returned::Added(added)],
            },
        };
        if ends.is_empty() {
            ends = end_if(self.is_without_place(call), Returned::Refused);
        }
        ends
    }

    /// Whether a call may wait that need not: others who are served at the same time may be first,
    /// and a call may have missed that its key was added or handed out once more.
    fn may_wait_on(&self, call: Outstanding, model: &mut Model) -> bool {
        match call.waits {
            For::Idle => !model.is_idle(),
            For::Settled => !model.is_settled(),
            For::Work {
                key,
                end: Returned::Done,
                ..
            } => model
                .state(key)
                .is_some_and(|known| known.ready || known.active),
            _ => false,
        }
    }

    /// Whether the places were taken when a call came that has to wait.
    fn is_without_place(&self, call: Outstanding) -> bool {
        let before = self.calls.iter().filter(|other| other.id < call.id).count();
        let places = self.abilities.places;
        places.is_some_and(|places| before >= places)
    }
}

/// How many keys a queue hands out to so many calls.
fn handed_out(mut model: Model, calls: usize) -> usize {
    (0..calls).map_while(|_| model.get()).count()
}

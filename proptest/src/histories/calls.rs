//! Calls that wait: they begin, are cancelled, and are held against what the model says.

use std::time::Instant;

use requeue_core::Action;

use super::Failure;
use super::judge::{For, Outstanding, Verdict};
use super::pair::Pair;
use crate::operation::Operate;
use crate::subject::{Call, CallId, Returned, Subject};

impl Pair {
    pub(super) fn start(&mut self, call: Call) -> Result<(), Failure> {
        if matches!(call, Call::Next(_)) && !self.model.has_a_key_now() {
            return Ok(());
        }
        // At the end of time a time limit is over, and never comes.
        let limit = match call {
            Call::GetTimeout(limit) | Call::DrainTimeout(limit) => Some(limit),
            _ => None,
        };
        if limit.is_some() && self.model.now().is_never() {
            return Ok(());
        }
        // Which of two that wait with one key is the first to add it is unknown.
        if let Call::AddWait(key) = call
            && self.calls.iter().any(|other| other.waits == For::Room(key))
        {
            return Ok(());
        }
        let id = self.last + 1;
        if !self.subject.start(id, call) {
            return Ok(());
        }
        self.last = id;
        let model = &mut self.model;
        let deadline = limit.map(|limit| model.now() + limit);
        let deadline = deadline.filter(|due| !due.is_never());
        let waits = match call {
            Call::Get | Call::GetTimeout(_) => For::Key,
            Call::Next(action) => {
                // It takes a key and completes it first.
                let _ = model.work_unseen(action);
                For::Key
            }
            Call::Drain | Call::DrainTimeout(_) => For::Drain(model.begin_drain()),
            Call::WaitIdle => For::Idle,
            Call::WaitSettled => For::Settled,
            Call::Flush(key) => {
                let (flush, end) = (model.begin_flush(key), Returned::Done);
                For::Work { key, flush, end }
            }
            Call::CancelAndWait(key) => {
                let end = Returned::Cancelled(model.cancel_key(key));
                let flush = model.begin_flush(key);
                For::Work { key, flush, end }
            }
            Call::AddWait(key) => For::Room(key),
        };
        self.calls.push(Outstanding {
            id,
            waits,
            deadline,
        });
        let what = format!("call #{id}: {call:?}");
        if self.abilities.runs_by_itself {
            return self.settle(&what);
        }
        self.reckon(&what, &[id])
    }

    pub(super) fn next_unrun(&mut self, action: Action) {
        if !self.model.has_a_key_now() || !self.abilities.cancels {
            return;
        }
        let call = Call::Next(action);
        if !self.subject.next_unrun(action) {
            return;
        }
        let _ = self.model.work_unseen(action);
        self.timeline.push(format!(
            "a call {call:?} is made, and dropped before it runs"
        ));
    }

    pub(super) fn cancel(&mut self, pick: u8) {
        let Some(index) = usize::from(pick).checked_rem(self.calls.len()) else {
            return;
        };
        if self.abilities.cancels {
            let id = self.calls.remove(index).id;
            self.subject.cancel(id);
            self.timeline.push(format!("call #{id} is cancelled"));
        }
    }

    /// A call that is nudged may look or not.
    pub(super) fn nudge(&mut self, pick: u8) -> Result<(), Failure> {
        let Some(index) = usize::from(pick).checked_rem(self.calls.len()) else {
            return Ok(());
        };
        if self.abilities.runs_by_itself {
            return Ok(());
        }
        let id = self.calls[index].id;
        self.subject.nudge(id);
        self.collect();
        let what = format!("call #{id} is polled, woken or not");
        if self.answers.contains_key(&id) {
            return self.reckon(&what, &[id]);
        }
        self.timeline.push(what);
        Ok(())
    }

    /// Lets everything run that can, and holds all answers against the model.
    pub(super) fn settle(&mut self, what: &str) -> Result<(), Failure> {
        if self.calls.is_empty() && self.subject.settle() {
            return Ok(());
        }
        let begin = Instant::now();
        let ids: Vec<CallId> = self.calls.iter().map(|call| call.id).collect();
        loop {
            let at_rest = self.subject.settle();
            self.collect();
            let judged = self.judge(&ids);
            let may_change = self.abilities.runs_by_itself && begin.elapsed() < self.patience;
            match judged {
                Ok(verdict) if at_rest => {
                    self.commit(what, verdict);
                    return Ok(());
                }
                Err(fault) if !(may_change && fault.may_come) => {
                    return Err(self.fail(what, fault.wrong));
                }
                _ if may_change => {}
                _ => {
                    let due = self.model.next_deadline();
                    let due =
                        due.map_or(String::new(), |due| format!(", and a key is due at {due}"));
                    let wrong =
                        "a call with nothing to do does not sleep, or none watches the clock";
                    return Err(self.fail(what, format!("{wrong}{due}")));
                }
            }
        }
    }

    /// Holds the answers of some calls against the model.
    fn reckon(&mut self, what: &str, ids: &[CallId]) -> Result<(), Failure> {
        self.collect();
        let judged = self.judge(ids);
        let verdict = judged.map_err(|fault| self.fail(what, fault.wrong))?;
        self.commit(what, verdict);
        Ok(())
    }

    fn collect(&mut self) {
        for call in &self.calls {
            let answer = self.subject.answer(call.id);
            self.answers.extend(answer.map(|answer| (call.id, answer)));
        }
    }

    /// What was expected has come about.
    fn commit(&mut self, what: &str, verdict: Verdict) {
        self.model = verdict.model;
        self.is_open |= verdict.is_open;
        let mut answered = Vec::new();
        for (id, answer) in verdict.ended {
            if let Some(Returned::Work(handed)) = self.answers.remove(&id) {
                self.tickets.push(handed.ticket);
            }
            self.calls.retain(|call| call.id != id);
            answered.push(match what.starts_with(&format!("call #{id}:")) {
                true => answer.clone(),
                false => format!("call #{id} has {answer}"),
            });
            self.returned.push(answer);
        }
        let happened = [String::from(what), answered.join("; ")];
        let happened = happened.into_iter().filter(|it| !it.is_empty());
        let happened = happened.collect::<Vec<_>>().join(": ");
        if !happened.is_empty() {
            self.timeline.push(happened);
        }
    }

    fn fail(&mut self, what: &str, wrong: String) -> Failure {
        let what = if what.is_empty() { "all settles" } else { what };
        self.failure_of_runs(format!("{what}: {wrong}"))
    }
}

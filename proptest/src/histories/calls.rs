//! Calls that wait: they begin, are cancelled, and are held against what the model says.

use std::time::{Duration, Instant};

use requeue_core::Action;

use super::Failure;
use super::judge::{Fault, For, Outstanding, Verdict};
use super::pair::Pair;
use crate::operation::Operate;
use crate::subject::{Call, CallId, Returned, Subject};

impl Pair {
    pub(super) fn start(&mut self, call: Call) -> Result<(), Failure> {
        if matches!(call, Call::Next(_)) && !self.model.has_a_key_now() {
            return Ok(());
        }
        // At the end of time a time limit is over, and never comes.
        let is_limited = matches!(call, Call::GetTimeout(_) | Call::DrainTimeout(_));
        if is_limited && self.model.now().is_never() {
            return Ok(());
        }
        // Which of two that wait with one key is the first to add it is unknown.
        let is_same = |other: &Outstanding| match (call, other.waits) {
            (Call::AddWait(key), For::Room { key: other }) => key == other,
            _ => false,
        };
        if self.calls.iter().any(is_same) {
            return Ok(());
        }
        let id = self.last + 1;
        if !self.subject.start(id, call) {
            return Ok(());
        }
        self.last = id;
        let model = &mut self.model;
        let deadline = |limit: Duration| Some(model.now() + limit).filter(|due| !due.is_never());
        let waits = match call {
            Call::GetTimeout(limit) => For::Key {
                deadline: deadline(limit),
            },
            Call::DrainTimeout(limit) => For::Drain {
                deadline: deadline(limit),
                drain: model.begin_drain(),
            },
            Call::Drain => For::Drain {
                deadline: None,
                drain: model.begin_drain(),
            },
            Call::Get | Call::Next(_) => For::Key { deadline: None },
            Call::WaitIdle => For::Idle,
            Call::WaitSettled => For::Settled,
            Call::Flush(key) => For::Work {
                key,
                flush: model.begin_flush(key),
                cancelled: None,
            },
            Call::CancelAndWait(key) => {
                let was = model.cancel_key(key);
                For::Work {
                    key,
                    flush: model.begin_flush(key),
                    cancelled: Some(was),
                }
            }
            Call::AddWait(key) => For::Room { key },
        };
        if let Call::Next(action) = call {
            self.complete_first(action);
        }
        self.calls.push(Outstanding { id, waits });
        let what = format!("call #{id}: {call:?}");
        if self.abilities.runs_by_itself {
            return self.settle(&what);
        }
        self.reckon(&what, &[id])
    }

    /// The model's part of a call that takes a key, completes it and waits for the next.
    fn complete_first(&mut self, action: Action) {
        let _ = self.model.work_unseen(action);
    }

    pub(super) fn next_unrun(&mut self, action: Action) {
        if !self.model.has_a_key_now() || !self.abilities.cancels {
            return;
        }
        let call = Call::Next(action);
        if !self.subject.next_unrun(action) {
            return;
        }
        self.complete_first(action);
        self.note(format!(
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
            self.note(format!("call #{id} is cancelled"));
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
        self.note(what);
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
                Err(fault) if !(may_change && fault.may_come) => return Err(self.fail(what, fault)),
                _ if may_change => {}
                _ => {
                    let fault = self.no_rest();
                    return Err(self.fail(what, fault));
                }
            }
        }
    }

    /// Holds the answers of some calls against the model.
    fn reckon(&mut self, what: &str, ids: &[CallId]) -> Result<(), Failure> {
        self.collect();
        match self.judge(ids) {
            Ok(verdict) => {
                self.commit(what, verdict);
                Ok(())
            }
            Err(fault) => Err(self.fail(what, fault)),
        }
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
        for id in verdict.handed {
            if let Some(Returned::Work(handed)) = self.answers.remove(&id) {
                self.tickets.push(handed.ticket);
            }
            self.calls.retain(|call| call.id != id);
        }
        for id in verdict.ended {
            self.answers.remove(&id);
            self.calls.retain(|call| call.id != id);
        }
        let returned = verdict.answered.iter().map(|(_, answer)| answer.clone());
        self.returned.extend(returned);
        let answered = verdict.answered.into_iter().map(|(id, answer)| {
            if what.starts_with(&format!("call #{id}:")) {
                answer
            } else {
                format!("call #{id} has {answer}")
            }
        });
        let answered = answered.collect::<Vec<_>>().join("; ");
        match (what.is_empty(), answered.is_empty()) {
            (true, true) => {}
            (false, true) => self.note(String::from(what)),
            (true, false) => self.note(answered),
            (false, false) => self.note(format!("{what}: {answered}")),
        }
    }

    fn fail(&mut self, what: &str, fault: Fault) -> Failure {
        let what = if what.is_empty() { "all settles" } else { what };
        let wrong = format!("{what}: {}", fault.wrong);
        self.failure_of_runs(wrong)
    }

    fn note(&mut self, what: String) {
        self.timeline.push(what);
    }
}

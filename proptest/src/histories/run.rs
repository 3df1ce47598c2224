//! A queue on which calls wait, and its model, side by side.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use requeue_core::Completion;

use super::blame::{self, Since};
use super::judge::{Fault, For, Outstanding, Verdict};
use super::{Sight, Step};
use crate::subject::{Answer, Call, CallId, Key, Setup, Subject, Waits};
use crate::suite::run::Run as Pair;
use crate::suite::{Failure, Looks, Op};

pub(super) struct Run<S: Waits> {
    pub(super) pair: Pair<S>,
    /// Those that have begun and not ended, in the order in which they began.
    pub(super) calls: Vec<Outstanding>,
    /// What calls have answered that were not expected to yet.
    pub(super) answers: BTreeMap<CallId, Answer<S::Ticket>>,
    /// Numbers the calls.
    last: CallId,
    pub(super) since: Since,
    /// What the queue was asked for and does not have.
    pub(super) missing: Vec<Call>,
    patience: Duration,
}

impl<S: Waits> Run<S> {
    pub(super) fn new(setup: &Setup, keys: Key, patience: Duration) -> Self {
        Self {
            pair: Pair::new(setup, keys),
            calls: Vec::new(),
            answers: BTreeMap::new(),
            last: 0,
            since: Since::default(),
            missing: Vec::new(),
            patience,
        }
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Do(op) => self.operate(op)?,
            Step::Start(call) => return self.start(*call),
            Step::NextUnrun(completion) => self.next_unrun(*completion),
            Step::Cancel(pick) => self.cancel(*pick),
            Step::Nudge(pick) => return self.nudge(*pick),
            Step::Settle => return self.settle("all settles"),
        }
        self.settle_if_it_does()
    }

    /// Everything settles and is looked at, and everybody is sent home.
    pub(super) fn finish(&mut self, sight: Sight) -> Result<(), Failure> {
        self.settle("in the end all settles")?;
        self.see_deadlines_come()?;
        if sight == Sight::InTheEnd {
            self.look()?;
        }
        self.operate(&Op::ShutDown)?;
        self.settle("in the end all settles")
    }

    /// Whoever waits for a key gets one while there are deadlines that come.
    fn see_deadlines_come(&mut self) -> Result<(), Failure> {
        while self.getters() > 0 && self.pair.model.totals().next_deadline.is_some() {
            self.operate(&Op::AdvanceToDeadline)?;
            self.settle("in the end all settles")?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Failure> {
        self.pair.look(self.getters()).map_err(|wrong| {
            let wrong = format!("in the end everything that can be seen: {wrong}");
            let rule = self.blame_for_a_leak();
            let rule = rule.or_else(|| self.since.blame_for_a_sight());
            self.pair.failure(rule, wrong)
        })
    }

    /// How many calls wait for a key.
    fn getters(&self) -> usize {
        let waits = |call: &&Outstanding| matches!(call.waits, For::Key { .. });
        self.calls.iter().filter(waits).count()
    }

    pub(super) fn panicked(&self, at: &str, panic: &str) -> Failure {
        self.pair
            .failure(None, format!("{at}: the queue panicked: {panic}"))
    }

    fn operate(&mut self, op: &Op) -> Result<(), Failure> {
        let before = self.pair.model.totals();
        let ready = self.pair.model.len();
        if let Err(failure) = self.pair.step(op, Looks::Last) {
            let is_leaked = self.since.dropped_unrun.contains(&op.highest_key());
            let leak = if is_leaked {
                Some(blame::leak())
            } else {
                self.blame_for_a_leak()
            };
            let rule = leak.or(failure.rule);
            return Err(Failure { rule, ..failure });
        }
        let became_ready = self.pair.model.len() > ready && self.getters() > 0;
        self.since
            .operation(op, before, self.pair.model.totals(), became_ready);
        Ok(())
    }

    fn start(&mut self, call: Call) -> Result<(), Failure> {
        let is_next = matches!(call, Call::Next(_));
        if is_next && self.pair.model.len() == 0 {
            return Ok(());
        }
        let id = self.last + 1;
        if !self.pair.subject.start(id, call) {
            self.missing.push(call);
            return Ok(());
        }
        self.last = id;
        let model = &mut self.pair.model;
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
        };
        if let Call::Next(completion) = call {
            self.complete_first(completion);
        }
        self.calls.push(Outstanding { id, waits });
        let what = format!("call #{id}: {call:?}");
        if S::RUNS_BY_ITSELF {
            return self.settle(&what);
        }
        self.reckon(&what, &[id])
    }

    /// The model's part of a call that takes a key, completes it and waits for the next.
    fn complete_first(&mut self, completion: Completion) -> Option<Key> {
        let model = &mut self.pair.model;
        let handed = model.try_get()?;
        // The run has just begun.
        let _ = model.complete(handed.ticket, completion);
        Some(handed.key)
    }

    fn next_unrun(&mut self, completion: Completion) {
        let is_ready = self.pair.model.len() > 0;
        if !is_ready || !S::CANCELS {
            return;
        }
        let call = Call::Next(completion);
        if !self.pair.subject.next_unrun(completion) {
            self.missing.push(call);
            return;
        }
        let key = self.complete_first(completion);
        self.since.dropped_unrun.extend(key);
        self.tell(format!(
            "a call {call:?} is made, and dropped before it runs"
        ));
    }

    fn cancel(&mut self, pick: u8) {
        let Some(index) = usize::from(pick).checked_rem(self.calls.len()) else {
            return;
        };
        if S::CANCELS {
            let id = self.calls.remove(index).id;
            self.pair.subject.cancel(id);
            self.since.cancelled();
            self.tell(format!("call #{id} is cancelled"));
        }
    }

    /// A call that is nudged may look or not.
    fn nudge(&mut self, pick: u8) -> Result<(), Failure> {
        let Some(index) = usize::from(pick).checked_rem(self.calls.len()) else {
            return Ok(());
        };
        if S::RUNS_BY_ITSELF {
            return Ok(());
        }
        let id = self.calls[index].id;
        self.pair.subject.nudge(id);
        self.collect();
        let what = format!("call #{id} is polled unasked");
        if self.answers.contains_key(&id) {
            return self.reckon(&what, &[id]);
        }
        self.tell(what);
        Ok(())
    }

    fn settle_if_it_does(&mut self) -> Result<(), Failure> {
        if S::RUNS_BY_ITSELF {
            self.settle("")
        } else {
            Ok(())
        }
    }

    /// Lets everything run that can, and holds all answers against the model.
    fn settle(&mut self, what: &str) -> Result<(), Failure> {
        let begin = Instant::now();
        let ids: Vec<CallId> = self.calls.iter().map(|call| call.id).collect();
        loop {
            let at_rest = self.pair.subject.settle();
            self.collect();
            let judged = self.judge(&ids);
            let may_change = S::RUNS_BY_ITSELF && begin.elapsed() < self.patience;
            match judged {
                Ok(verdict) if at_rest => {
                    self.commit(what, verdict);
                    self.since.settled();
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
            let answer = self.pair.subject.answer(call.id);
            self.answers.extend(answer.map(|answer| (call.id, answer)));
        }
    }

    /// What was expected has come about.
    fn commit(&mut self, what: &str, verdict: Verdict) {
        self.pair.model = verdict.model;
        for (id, ticket) in verdict.handed {
            if let Some(Answer::Work(handed)) = self.answers.remove(&id) {
                self.pair.tickets.push((handed.ticket, ticket));
            }
            self.calls.retain(|call| call.id != id);
        }
        for id in verdict.ended {
            self.answers.remove(&id);
            self.calls.retain(|call| call.id != id);
            self.since.gave_up = true;
        }
        let told = verdict.told.into_iter().map(|(id, answer)| {
            if what.starts_with(&format!("call #{id}:")) {
                answer
            } else {
                format!("call #{id} has {answer}")
            }
        });
        let told = told.collect::<Vec<_>>().join("; ");
        match (what.is_empty(), told.is_empty()) {
            (true, true) => {}
            (false, true) => self.tell(String::from(what)),
            (true, false) => self.tell(told),
            (false, false) => self.tell(format!("{what}: {told}")),
        }
    }

    fn fail(&mut self, what: &str, fault: Fault) -> Failure {
        let what = if what.is_empty() { "all settles" } else { what };
        let wrong = format!("{what}: {}", fault.wrong);
        let rule = self.blame_for_a_leak().unwrap_or(fault.rule);
        self.pair.failure(Some(rule), wrong)
    }

    fn tell(&mut self, what: String) {
        self.pair.story.push(what);
    }
}

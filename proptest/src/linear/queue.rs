//! The reference model as a specification.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use requeue_core::{
    Added, AddedMany, Completion, Drained, Finished, Getter, Next, NotActive, Rejected,
};

use super::Specification;
use crate::subject::{
    Drain, Handed, Key, Known, Left, NumberedRun, Retried, Setup, Subject, Ticket,
};
use crate::{Fingerprint, Model, Rules};

/// A call of a work queue. What is handed out gets a number from its caller, by which it is
/// completed: no two runs of a history have the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Adds a key.
    Add(Key),
    /// Adds a key after a delay.
    AddAfter(Key, Duration),
    /// Adds a key after a failure.
    AddRateLimited(Key),
    /// Adds keys together.
    AddMany(Vec<Key>),
    /// Forgets the failures of a key.
    Forget(Key),
    /// Asks for a key; the run gets this number.
    TryGet(u32),
    /// Waits for a key, for no time.
    GetNow(u32),
    /// Waits for a key.
    Get(u32),
    /// Waits for keys, so many at most. The runs get this number and those that follow.
    GetMany(u32, usize),
    /// Completes the run with this number.
    Complete(u32, Completion),
    /// Completes these runs together.
    CompleteMany(Vec<u32>, Completion),
    /// Completes a run, then waits for a key; the new run gets the second number. In a history
    /// this is [`Complete`](Self::Complete) and [`Get`](Self::Get).
    Next(u32, Completion, u32),
    /// Completes the run of a key by name.
    DoneKey(Key),
    /// How many keys are ready.
    Len,
    /// What the queue knows of a key.
    State(Key),
    /// How many failures are remembered of a key.
    NumRequeues(Key),
    /// Whether the queue is shutting down.
    ShuttingDown,
    /// Shuts down.
    ShutDown,
    /// Shuts down and waits for the drain, for no time; the wait gets this number. In a history
    /// this is [`BeginDrain`](Self::BeginDrain) and [`Drained`](Self::Drained).
    Drain(u32),
    /// Shuts down; the wait for the drain gets this number.
    BeginDrain(u32),
    /// How the wait with this number stands.
    Drained(u32),
    /// Takes out a delayed key.
    TakeDelayed,
    /// Takes out a ready key.
    TakeReady,
    /// Moves the clock.
    Advance(Duration),
}

/// What a work queue answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What became of a key that was added.
    Added(Result<Added, Rejected<Key>>),
    /// What became of a key that was added after a failure.
    Retried(Result<Retried, Rejected<Key>>),
    /// What became of keys that were added together, and those that were handed back.
    AddedMany(AddedMany, Vec<Rejected<Key>>),
    /// Keys that were handed out, each with how many failures were remembered of it.
    Work(Vec<(Key, u32)>),
    /// No key was ready in time.
    Nothing,
    /// No key is ready, and none will be.
    Closed,
    /// What became of a run.
    Finished(Result<Finished, NotActive>),
    /// Whether every run was completed that was to be.
    Completed(Result<(), NotActive>),
    /// A number.
    Count(usize),
    /// What the queue knows of a key.
    State(Option<Known>),
    /// Yes or no.
    Flag(bool),
    /// How a wait for the drain stands.
    Drained(Drained),
    /// A key that was left over.
    Left(Option<Left>),
    /// It is done.
    Done,
}

/// The state of a work queue: the reference model, and the runs that were handed out.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    model: Model,
    runs: Vec<(u32, NumberedRun)>,
    drains: Vec<(u32, Drain)>,
    fingerprint: Box<Compared>,
}

/// What tells two states apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    model: Fingerprint,
    /// Each run that is known by a number, and its key unless the run is over.
    runs: Vec<(u32, Option<Key>)>,
    drains: Vec<u32>,
}

impl QueueSpec {
    /// An empty queue of requeue's rules, with room for `capacity` keys.
    pub fn new(setup: &Setup, capacity: Option<usize>) -> Self {
        Self::after(Model::new(Rules::Requeue, setup, capacity), vec![], vec![])
    }

    fn after(model: Model, runs: Vec<(u32, NumberedRun)>, drains: Vec<(u32, Drain)>) -> Self {
        let fingerprint = Box::new(Compared::of(&model, &runs, &drains));
        Self {
            model,
            runs,
            drains,
            fingerprint,
        }
    }

    /// Does `op` and answers; nothing if it would wait.
    fn apply(&mut self, op: &Op) -> Option<Answer> {
        let model = &mut self.model;
        Some(match *op {
            Op::Add(key) => Answer::Added(model.add(key)),
            Op::AddAfter(key, delay) => Answer::Added(model.add_after(key, delay)),
            Op::AddRateLimited(key) => Answer::Retried(model.add_rate_limited(key)),
            Op::AddMany(ref keys) => {
                let (many, rejected) = model.add_many(keys);
                Answer::AddedMany(many, rejected)
            }
            Op::Forget(key) => Answer::Count(model.forget(key) as usize),
            Op::NumRequeues(key) => Answer::Count(model.num_requeues(key) as usize),
            Op::Len => Answer::Count(model.len()),
            Op::State(key) => Answer::State(model.state(key)),
            Op::ShuttingDown => Answer::Flag(model.shutting_down()),
            Op::DoneKey(key) => Answer::Completed(model.done_key(key)),
            Op::ShutDown => {
                model.shut_down();
                Answer::Done
            }
            Op::TakeDelayed => Answer::Left(model.take_delayed()),
            Op::TakeReady => Answer::Left(model.take_ready()),
            Op::Advance(by) => {
                model.advance(by);
                Answer::Done
            }
            Op::BeginDrain(wait) => {
                self.drains.push((wait, model.begin_drain()));
                Answer::Done
            }
            Op::Drained(wait) => {
                let drain = self.drains.iter().find(|(number, _)| *number == wait)?;
                Answer::Drained(model.drained(&drain.1))
            }
            Op::TryGet(_) | Op::GetNow(_) | Op::Get(_) | Op::GetMany(..) => return self.get(op),
            Op::Complete(run, how) => {
                let ticket = self.take_run(run)?;
                Answer::Finished(self.model.complete(Ticket::Numbered(ticket), how))
            }
            Op::CompleteMany(ref runs, how) => {
                let tickets = runs
                    .iter()
                    .map(|run| self.take_run(*run).map(Ticket::Numbered));
                let tickets: Option<Vec<_>> = tickets.collect();
                Answer::Completed(self.model.complete_many(tickets?, how))
            }
            // Two steps, which a history has as two calls.
            Op::Next(..) | Op::Drain(_) => return None,
        })
    }

    fn get(&mut self, op: &Op) -> Option<Answer> {
        match *op {
            Op::TryGet(run) => match self.model.try_get() {
                Some(handed) => Some(self.handed(run, vec![handed])),
                None => Some(Answer::Nothing),
            },
            Op::GetNow(run) | Op::Get(run) => match self.model.get(&mut Getter::default()) {
                Next::Work(handed) => Some(self.handed(run, vec![handed])),
                Next::Closed => Some(Answer::Closed),
                Next::Wait { .. } => matches!(op, Op::GetNow(_)).then_some(Answer::Nothing),
            },
            Op::GetMany(run, max) => match self.model.get_many(max, &mut Getter::default()) {
                Next::Work(handed) => Some(self.handed(run, handed)),
                Next::Closed => Some(Answer::Closed),
                Next::Wait { .. } => None,
            },
            _ => None,
        }
    }

    fn handed(&mut self, first: u32, handed: Vec<Handed>) -> Answer {
        let told = handed.iter().map(|handed| (handed.key, handed.requeues));
        let told = told.collect();
        let tickets = handed
            .into_iter()
            .filter_map(|handed| handed.ticket.numbered().ok());
        self.runs.extend((first..).zip(tickets));
        Answer::Work(told)
    }

    fn take_run(&mut self, run: u32) -> Option<NumberedRun> {
        let index = self.runs.iter().position(|(number, _)| *number == run)?;
        Some(self.runs.remove(index).1)
    }
}

impl Specification for QueueSpec {
    type Op = Op;
    type Answer = Answer;

    fn step(&mut self, op: &Op, answer: Option<&Answer>) -> bool {
        let Some(expected) = self.apply(op) else {
            return false;
        };
        if answer.is_some_and(|answer| *answer != expected) {
            return false;
        }
        *self.fingerprint = Compared::of(&self.model, &self.runs, &self.drains);
        true
    }
}

impl Compared {
    fn of(model: &Model, runs: &[(u32, NumberedRun)], drains: &[(u32, Drain)]) -> Self {
        let key = |&(run, ticket): &(u32, NumberedRun)| (run, model.key_of(ticket));
        let mut runs: Vec<_> = runs.iter().map(key).collect();
        runs.sort_unstable();
        Self {
            model: model.fingerprint(),
            runs,
            drains: drains.iter().map(|(number, _)| *number).collect(),
        }
    }
}

impl PartialEq for QueueSpec {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for QueueSpec {}

impl Hash for QueueSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.model.hash(state);
        self.fingerprint.runs.hash(state);
    }
}

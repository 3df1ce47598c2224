//! The reference model as a specification.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{Action, Added, AddedMany, Finished, KeyState, Rejected};
use requeue_proptest::subject::{
    Configuration, Drain, Handed, Key, Left, Operate, Scheduled, Subject, Ticket,
};
use requeue_proptest::{Fingerprint, Model, Rules};

use crate::Specification;

/// A call of a work queue. What is handed out gets a number from its caller, by which it is
/// completed: no two runs of a history have the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
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
    /// Takes a key without waiting; the run gets this number.
    TryGet(u32),
    /// Waits for a key, for no time.
    GetNow(u32),
    /// Waits for a key.
    Get(u32),
    /// Waits for keys, at most this many. The runs get this number and those that follow.
    GetMany(u32, usize),
    /// Completes the run with this number.
    Complete(u32, Action),
    /// Completes these runs together.
    CompleteMany(Vec<u32>, Action),
    /// Completes a run, then waits for a key; the new run gets the second number. In a history
    /// this is [`Complete`](Self::Complete) and [`Get`](Self::Get).
    Next(u32, Action, u32),
    /// Completes the run of a key by name.
    DoneKey(Key),
    /// How many keys are ready.
    Len,
    /// What the queue knows of a key.
    State(Key),
    /// How many failures of a key are recorded.
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

/// What a call of a work queue returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The outcome for a key that was added.
    Added(Result<Added, Rejected<Key>>),
    /// The outcome for a key that was added after a failure.
    Scheduled(Result<Scheduled, Rejected<Key>>),
    /// The outcome for keys that were added together, and those that were handed back.
    AddedMany(AddedMany, Vec<Rejected<Key>>),
    /// Keys that were handed out, each with its recorded failures.
    Work(Vec<(Key, u32)>),
    /// No key was ready in time.
    Nothing,
    /// No key is ready, and none will be.
    Closed,
    /// The outcome of a run.
    Finished(Finished),
    /// A number.
    Count(usize),
    /// What the queue knows of a key.
    State(Option<KeyState>),
    /// Yes or no.
    Flag(bool),
    /// How a wait for the drain stands.
    Drained(Drained),
    /// A key that was left over.
    Left(Option<Left>),
    /// The call returns nothing.
    Done,
}

/// The state of a work queue: the reference model, and what was handed out.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    model: Model,
    runs: Vec<(u32, Ticket)>,
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
    /// Returns an empty queue that follows requeue's rules.
    pub fn new(setup: &Configuration) -> Self {
        let model = Model::new(Rules::Requeue, setup, None).with_times(false);
        Self {
            fingerprint: Box::new(Compared::of(&model, &[], &[])),
            model,
            runs: Vec::new(),
            drains: Vec::new(),
        }
    }

    /// Applies `request`. Returns `None` if the call would wait.
    fn apply(&mut self, request: &Request) -> Option<Response> {
        let model = &mut self.model;
        Some(match *request {
            Request::Add(key) => Response::Added(model.add(key)),
            Request::AddAfter(key, delay) => Response::Added(model.add_after(key, delay)),
            Request::AddRateLimited(key) => Response::Scheduled(model.add_rate_limited(key)),
            Request::AddMany(ref keys) => {
                let (many, rejected) = model.add_many(keys);
                Response::AddedMany(many, rejected)
            }
            Request::Forget(key) => Response::Count(model.forget(key) as usize),
            Request::NumRequeues(key) => Response::Count(model.failures(key) as usize),
            Request::Len => Response::Count(model.len()),
            Request::State(key) => Response::State(model.state(key)),
            Request::ShuttingDown => Response::Flag(model.is_shutting_down()),
            Request::DoneKey(key) => Response::Finished(model.release_key(key)),
            Request::ShutDown => {
                model.shut_down();
                Response::Done
            }
            Request::TakeDelayed => Response::Left(model.take_delayed()),
            Request::TakeReady => Response::Left(model.take_ready()),
            Request::Advance(by) => {
                model.advance(by);
                Response::Done
            }
            Request::BeginDrain(wait) => {
                self.drains.push((wait, model.begin_drain()));
                Response::Done
            }
            Request::Drained(wait) => {
                let drain = self.drains.iter().find(|(number, _)| *number == wait)?;
                Response::Drained(model.drained(&drain.1))
            }
            Request::TryGet(_) | Request::GetNow(_) | Request::Get(_) | Request::GetMany(..) => {
                return self.get(request);
            }
            Request::Complete(run, how) => {
                let ticket = self.take_run(run)?;
                Response::Finished(self.model.finish(ticket, how))
            }
            Request::CompleteMany(ref runs, how) => {
                let tickets = runs.iter().map(|run| self.take_run(*run));
                let tickets: Option<Vec<_>> = tickets.collect();
                Response::Count(self.model.finish_many(tickets?, how))
            }
            // Two steps, which a history has as two calls.
            Request::Next(..) | Request::Drain(_) => return None,
        })
    }

    fn get(&mut self, request: &Request) -> Option<Response> {
        match *request {
            Request::TryGet(run) => match self.model.try_get() {
                Some(handed) => Some(self.handed(run, vec![handed])),
                None => Some(Response::Nothing),
            },
            Request::GetNow(run) | Request::Get(run) => match self.model.get(0) {
                Next::Work(handed) => Some(self.handed(run, vec![handed])),
                Next::Closed => Some(Response::Closed),
                Next::Wait { .. } => {
                    matches!(request, Request::GetNow(_)).then_some(Response::Nothing)
                }
            },
            Request::GetMany(run, max) => match self.model.get_many(max, 0) {
                Next::Work(handed) => Some(self.handed(run, handed)),
                Next::Closed => Some(Response::Closed),
                Next::Wait { .. } => None,
            },
            _ => None,
        }
    }

    fn handed(&mut self, first: u32, handed: Vec<Handed>) -> Response {
        let mut work = Vec::new();
        for (run, handed) in (first..).zip(handed) {
            work.push((handed.key, handed.failures));
            self.runs.push((run, handed.ticket));
        }
        Response::Work(work)
    }

    fn take_run(&mut self, run: u32) -> Option<Ticket> {
        let index = self.runs.iter().position(|(number, _)| *number == run)?;
        Some(self.runs.remove(index).1)
    }
}

impl Specification for QueueSpec {
    type Request = Request;
    type Response = Response;

    fn step(&mut self, request: &Request, response: Option<&Response>) -> bool {
        let Some(expected) = self.apply(request) else {
            return false;
        };
        if response.is_some_and(|response| *response != expected) {
            return false;
        }
        *self.fingerprint = Compared::of(&self.model, &self.runs, &self.drains);
        true
    }
}

impl Compared {
    fn of(model: &Model, runs: &[(u32, Ticket)], drains: &[(u32, Drain)]) -> Self {
        let key = |&(run, ticket): &(u32, Ticket)| (run, model.key_of(ticket));
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

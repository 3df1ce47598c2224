//! The reference model as a specification.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use requeue_core::binding::Next;
use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{
    Answer, Call, Configuration, Drain, Handed, Key, Run, Sleeper, Subject, Ticket,
};
use requeue_proptest::{Fingerprint, Model, Rules};

use crate::Specification;

/// The state of a work queue: the reference model, and what was handed out.
///
/// A call that waits is [`Operation::Get`] or [`Operation::GetMany`]. Whoever records a history
/// numbers the runs and the waits for the drain, and finds the numbers in the answers.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    model: Model,
    /// The runs under the names of the history. Of an answer that is not known only the key is.
    runs: Vec<(Option<Ticket>, Ticket)>,
    drains: Vec<(Drain, Drain)>,
    fingerprint: Box<Compared>,
}

/// What tells two states apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    model: Fingerprint,
    /// Each run that is known, and its key unless the run is over.
    runs: Vec<(Option<Ticket>, Option<Key>)>,
    drains: Vec<usize>,
}

impl QueueSpec {
    /// Returns an empty queue that follows requeue's rules.
    pub fn new(setup: &Configuration) -> Self {
        let model = Model::new(Rules::Requeue, setup, setup.storage).with_times(false);
        let mut spec = Self {
            fingerprint: Box::new(Compared {
                model: model.fingerprint(),
                runs: Vec::new(),
                drains: Vec::new(),
            }),
            model,
            runs: Vec::new(),
            drains: Vec::new(),
        };
        spec.compare();
        spec
    }

    /// The operation with the model's own numbers. `None` if it names a run or a wait that there
    /// is not.
    fn named(&mut self, operation: &Operation) -> Option<Operation> {
        Some(match *operation {
            Operation::Complete(Run::Of(ticket), action) => {
                Operation::Complete(self.take_run(ticket)?, action)
            }
            Operation::Done(Run::Of(ticket)) => Operation::Done(self.take_run(ticket)?),
            Operation::CompleteMany(ref runs, action) => {
                let runs = runs.iter().map(|run| match run {
                    Run::Of(ticket) => self.take_run(*ticket),
                    Run::Pick(_) => None,
                });
                Operation::CompleteMany(runs.collect::<Option<_>>()?, action)
            }
            Operation::Drained(drain) => {
                let known = self.drains.iter().find(|(name, _)| *name == drain)?;
                Operation::Drained(known.1)
            }
            Operation::Start(Call::GetTimeout(Duration::ZERO)) => Operation::Get(Sleeper::New),
            ref other => other.clone(),
        })
    }

    /// What the call returns. `None` if it would wait.
    fn apply(&mut self, operation: &Operation) -> Option<Answer> {
        if let Operation::Advance(by) = operation {
            self.model.advance(*by);
            return Some(Answer::Done);
        }
        let named = self.named(operation)?;
        match self.model.apply(&named) {
            Answer::Next(Next::Wait { .. }) => {
                matches!(operation, Operation::Start(_)).then_some(Answer::Work(None))
            }
            Answer::NextMany(Next::Wait { .. }) => None,
            answer => Some(answer),
        }
    }

    /// Keeps what was handed out under the names of the history.
    fn keep(&mut self, expected: &mut Answer, answer: Option<&Answer>) {
        if let (Answer::Drain(drain), Some(Answer::Drain(name))) = (&mut *expected, answer) {
            self.drains.push((*name, *drain));
            *drain = *name;
        }
        let mut answer = answer.cloned();
        let names = answer.iter_mut().flat_map(handed);
        let names: Vec<Ticket> = names.map(|handed| handed.ticket).collect();
        let mut names = names.into_iter();
        for handed in handed(expected) {
            let name = names.next().filter(|name| name.key == handed.key);
            self.runs.push((name, handed.ticket));
            handed.ticket = name.unwrap_or(handed.ticket);
        }
    }

    fn take_run(&mut self, name: Ticket) -> Option<Run> {
        let is_named = |run: &(Option<Ticket>, Ticket)| run.0 == Some(name);
        let may_be = |run: &(Option<Ticket>, Ticket)| run.0.is_none() && run.1.key == name.key;
        let index = self.runs.iter().position(is_named);
        let index = index.or_else(|| self.runs.iter().position(may_be))?;
        Some(self.runs.remove(index).1.into())
    }

    fn compare(&mut self) {
        let key = |&(name, ticket): &(Option<Ticket>, Ticket)| (name, self.model.key_of(ticket));
        let mut runs: Vec<_> = self.runs.iter().map(key).collect();
        runs.sort_unstable();
        *self.fingerprint = Compared {
            model: self.model.fingerprint(),
            runs,
            drains: self.drains.iter().map(|(Drain(name), _)| *name).collect(),
        };
    }
}

/// The keys that an answer hands out.
fn handed(answer: &mut Answer) -> Vec<&mut Handed> {
    match answer {
        Answer::Work(Some(handed)) | Answer::Next(Next::Work(handed)) => vec![handed],
        Answer::NextMany(Next::Work(handed)) => handed.iter_mut().collect(),
        _ => Vec::new(),
    }
}

impl Specification for QueueSpec {
    type Request = Operation;
    type Response = Answer;

    fn step(&mut self, request: &Operation, response: Option<&Answer>) -> bool {
        let Some(mut expected) = self.apply(request) else {
            return false;
        };
        self.keep(&mut expected, response);
        if response.is_some_and(|response| *response != expected) {
            return false;
        }
        self.compare();
        true
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

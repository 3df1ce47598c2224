//! Whether some order of calls that overlap explains every answer.
//!
//! It is the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
//! memory that Lowe gave it ("Testing for linearizability", 2017): a set of calls that has led to a
//! state once is not tried again. The state is the reference model.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::time::Duration;

use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{
    Answer, Call, Configuration, Drain, Handed, Run, Sleeper, Subject, Ticket,
};
use requeue_proptest::{Fingerprint, Model, Rules};
use requeue_std::binding::Next;

/// A call of a thread. Times are counted in events of the history.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) operation: Operation,
    /// `None` if it is not known: any will do.
    pub(crate) answer: Option<Answer>,
    pub(crate) called: u64,
    pub(crate) returned: u64,
}

/// The calls of each thread. They take effect in the order in which they begin.
pub(crate) type History = Vec<Vec<Called>>;

/// How many states the search remembers. The histories that are drawn here need some hundred.
const STATES_MAX: usize = 100_000;

/// Finds an order of the calls that explains every answer.
///
/// # Errors
///
/// The history, and how far it can be explained; or that the search was given up.
pub(crate) fn explain(setup: &Configuration, history: &History) -> Result<(), String> {
    let start = Place {
        happened: vec![0; history.len()],
        model: Model::new(Rules::Requeue, setup, setup.storage).with_times(false),
        runs: BTreeMap::new(),
        drains: Vec::new(),
    };
    let (mut seen, mut furthest) = (HashSet::new(), start.clone());
    let mut open = vec![start];
    while let Some(place) = open.pop() {
        let next = place.next(history);
        if next.is_empty() {
            return Ok(());
        }
        let count = |place: &Place| place.happened.iter().sum::<usize>();
        if count(&place) > count(&furthest) {
            furthest = place.clone();
        }
        for thread in next {
            let reached = place.after(history, thread);
            open.extend(reached.filter(|reached| seen.insert(reached.key())));
        }
        if seen.len() > STATES_MAX {
            return Err(format!("given up after {STATES_MAX} states"));
        }
    }
    Err(furthest.report(history))
}

/// How far the search has come: the calls of each thread that have happened, and what they have
/// led to.
#[derive(Clone)]
struct Place {
    happened: Vec<usize>,
    model: Model,
    /// The runs and the waits for the drain under their names in the history.
    runs: BTreeMap<Ticket, Ticket>,
    drains: Vec<(Drain, Drain)>,
}

/// What tells two places apart.
type PlaceKey = (Vec<usize>, Fingerprint, Vec<Ticket>, Vec<usize>);

impl Place {
    fn key(&self) -> PlaceKey {
        let current = |(name, run): (&Ticket, &Ticket)| self.model.key_of(*run).map(|_| *name);
        let runs = self.runs.iter().filter_map(current).collect();
        let drains = self.drains.iter().map(|(Drain(name), _)| *name).collect();
        (
            self.happened.clone(),
            self.model.fingerprint(),
            runs,
            drains,
        )
    }

    /// The threads whose next call was called before any that has not happened returned. The one
    /// that returned first stands last, and is tried first.
    fn next(&self, history: &History) -> Vec<usize> {
        let next = |thread: usize| history[thread].get(self.happened[thread]);
        let threads = 0..history.len();
        let first = threads.clone().filter_map(next).map(|call| call.returned);
        let first = first.min().unwrap_or(0);
        let mut ready: Vec<usize> = threads
            .filter(|thread| next(*thread).is_some_and(|call| call.called < first))
            .collect();
        ready.sort_by_key(|thread| std::cmp::Reverse(next(*thread).map(|call| call.returned)));
        ready
    }

    /// The next call of a thread happens, if it may answer as it did.
    fn after(&self, history: &History, thread: usize) -> Option<Self> {
        let Called {
            operation, answer, ..
        } = &history[thread][self.happened[thread]];
        let mut place = self.clone();
        place.happened[thread] += 1;
        let expected = place.answer(operation)?;
        let Some(answer) = answer else {
            return Some(place);
        };
        if let (Answer::Drain(name), Answer::Drain(drain)) = (answer, &expected) {
            place.drains.push((*name, *drain));
            return Some(place);
        }
        let (names, runs) = (handed(answer), handed(&expected));
        if names.len() != runs.len() || unnamed(answer.clone()) != unnamed(expected) {
            return None;
        }
        place.runs.extend(names.into_iter().zip(runs));
        Some(place)
    }

    /// What the model answers. `None` if the call would wait.
    fn answer(&mut self, operation: &Operation) -> Option<Answer> {
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

    /// The operation with the model's own numbers. `None` if it names a run or a wait that there is
    /// not.
    fn named(&mut self, operation: &Operation) -> Option<Operation> {
        let mut run = |run: &Run| match run {
            Run::Of(name) => self.runs.remove(name).map(Run::Of),
            Run::Pick(_) => None,
        };
        Some(match operation {
            Operation::Complete(name, action) => Operation::Complete(run(name)?, *action),
            Operation::Done(name) => Operation::Done(run(name)?),
            Operation::CompleteMany(names, action) => {
                let runs = names.iter().map(run);
                Operation::CompleteMany(runs.collect::<Option<_>>()?, *action)
            }
            Operation::Drained(drain) => {
                let known = self.drains.iter().find(|(name, _)| name == drain)?;
                Operation::Drained(known.1)
            }
            Operation::Start(Call::GetTimeout(Duration::ZERO)) => Operation::Get(Sleeper::New),
            other => other.clone(),
        })
    }

    /// The history in the order of time, and what was expected once no order explains more.
    fn report(&self, history: &History) -> String {
        let mut events = Vec::new();
        for (thread, calls) in history.iter().enumerate() {
            for (index, call) in calls.iter().enumerate() {
                let mark = if index < self.happened[thread] {
                    " "
                } else {
                    "!"
                };
                let answer = call.answer.as_ref();
                let answer = answer.map_or(String::from("not known"), Answer::to_string);
                let operation = &call.operation;
                events.push((
                    call.called,
                    format!("{mark} thread {thread}: {operation:?}"),
                ));
                events.push((
                    call.returned,
                    format!("{mark} thread {thread}:   -> {answer}"),
                ));
            }
        }
        events.sort();
        let mut text = String::from("no order explains the answers\n");
        for (_, line) in events {
            text += &(line + "\n");
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "without those marked, the queue is at {}", self.model);
        for thread in self.next(history) {
            let operation = &history[thread][self.happened[thread]].operation;
            let expected = self.clone().answer(operation);
            let expected = expected.map_or(String::from("a wait"), |answer| answer.to_string());
            let _ = writeln!(
                text,
                "thread {thread}: {operation:?} would answer {expected}"
            );
        }
        text
    }
}

/// The runs that an answer hands out.
fn handed(answer: &Answer) -> Vec<Ticket> {
    match answer {
        Answer::Work(Some(handed)) | Answer::Next(Next::Work(handed)) => vec![handed.ticket],
        Answer::NextMany(Next::Work(handed)) => handed.iter().map(|it| it.ticket).collect(),
        _ => Vec::new(),
    }
}

/// The same whatever the names of its runs.
fn unnamed(mut answer: Answer) -> Answer {
    let forget = |handed: &mut Handed| handed.ticket.run = 0;
    match &mut answer {
        Answer::Work(Some(handed)) | Answer::Next(Next::Work(handed)) => forget(handed),
        Answer::NextMany(Next::Work(handed)) => handed.iter_mut().for_each(forget),
        _ => {}
    }
    answer
}

/// Calls of three threads, each of an operation, its answer, and from when to when it lasted.
#[cfg(test)]
fn explained<const N: usize>(calls: [(usize, Operation, Answer, [u64; 2]); N]) -> bool {
    let mut history: History = vec![Vec::new(); 3];
    for (thread, operation, answer, [called, returned]) in calls {
        history[thread].push(Called {
            operation,
            answer: Some(answer),
            called,
            returned,
        });
    }
    explain(&Configuration::exponential(), &history).is_ok()
}

#[cfg(test)]
fn got(key: u16) -> Answer {
    let ticket = Ticket { key, run: 700 };
    Answer::Work(Some(Handed {
        key,
        ticket,
        failures: 0,
        priority: 0,
        timed_out: false,
    }))
}

#[test]
fn a_call_that_overlaps_an_add_may_see_it_or_not() {
    let added = || Answer::Added(Ok(requeue_std::Added::Ready));
    let add = || (0, Operation::Add(7), added(), [0, 3]);
    assert!(explained([
        add(),
        (1, Operation::Len, Answer::Count(0), [1, 2])
    ]));
    assert!(explained([
        add(),
        (1, Operation::Len, Answer::Count(1), [1, 2])
    ]));
    assert!(!explained([
        add(),
        (1, Operation::Len, Answer::Count(0), [4, 5])
    ]));
    assert!(explained([add(), (1, Operation::TryGet, got(7), [1, 2])]));
    let twice = [
        (1, Operation::TryGet, got(7), [1, 5]),
        (2, Operation::TryGet, got(7), [2, 6]),
    ];
    assert!(!explained([add(), twice[0].clone(), twice[1].clone()]));
}

#[test]
fn keys_come_in_the_order_in_which_they_were_added() {
    let add = |thread, key, lasts| {
        let added = Answer::Added(Ok(requeue_std::Added::Ready));
        (thread, Operation::Add(key), added, lasts)
    };
    let gets = [
        (2, Operation::TryGet, got(2), [5, 6]),
        (2, Operation::TryGet, got(1), [7, 8]),
    ];
    let [first, second] = gets;
    let overlapping = [
        add(0, 1, [0, 2]),
        add(1, 2, [1, 3]),
        first.clone(),
        second.clone(),
    ];
    assert!(explained(overlapping));
    assert!(!explained([
        add(0, 1, [0, 1]),
        add(1, 2, [2, 3]),
        first,
        second
    ]));
}

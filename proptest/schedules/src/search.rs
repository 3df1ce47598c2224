//! Whether some order of calls that overlap explains every answer, and every wait.
//!
//! It is the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
//! memory that Lowe gave it ("Testing for linearizability", 2017): a set of calls that has led to a
//! state once is not tried again. The state is the reference model.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::slice;

use requeue_embassy::binding::{Drained, Next};
use requeue_embassy::{Instant, Rejected};
use requeue_proptest::Model;
use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{
    Abilities, Answer, Call, Configuration, Drain, Handed, Operate, Run, Sleeper, Subject, Ticket,
};

/// A step of a thread. Times are counted in events of the history.
#[derive(Clone, Debug, PartialEq)]
struct Called {
    step: Step,
    outcome: Outcome,
    called: u64,
    returned: u64,
}

/// What happens at one moment of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An operation, once there is something to answer.
    Do(Operation),
    /// A call begins that will wait.
    Begin(Call),
    /// It ends.
    Await(Call),
    /// Every other thread has ended, or sleeps in a call that has nothing to answer.
    Quiet,
}

/// What has come of a step.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// Any answer will do.
    Unknown,
    Is(Answer),
    /// The call was dropped while it waited.
    Dropped,
}

/// What threads have done to a queue: the steps of each, in the order in which they take effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    threads: Vec<Vec<Called>>,
    /// How many events there were.
    events: u64,
}

impl History {
    /// Another thread begins. Returns its number.
    pub fn begin_thread(&mut self) -> usize {
        self.threads.push(Vec::new());
        self.threads.len() - 1
    }

    /// A thread begins steps, which lie between now and their end.
    pub fn begin(&mut self, thread: usize, steps: impl IntoIterator<Item = Step>) {
        self.events += 1;
        let called = self.events;
        self.threads[thread].extend(steps.into_iter().map(|step| Called {
            step,
            outcome: Outcome::Unknown,
            called,
            returned: u64::MAX,
        }));
    }

    /// The steps that a thread has begun end. `answer` is that of the call; `None` if it was
    /// dropped while it waited, or if its answer is not known.
    pub fn end(&mut self, thread: usize, answer: Option<&Answer>) {
        self.events += 1;
        let steps = self.threads[thread].iter_mut();
        let mut begun: Vec<_> = steps.filter(|step| step.returned == u64::MAX).collect();
        for step in &mut begun {
            step.returned = self.events;
        }
        // What a key was that is cancelled is known at once.
        if matches!(answer, Some(Answer::State(_))) {
            begun.truncate(1);
        }
        if let Some(call) = begun.last_mut() {
            call.outcome = match answer {
                Some(answer) => Outcome::Is(answer.clone()),
                None if call.step.waits() => Outcome::Dropped,
                None => Outcome::Unknown,
            };
        }
    }
}

impl Step {
    /// The steps of an operation, all of which lie between its call and its return.
    pub fn of(operation: &Operation) -> Vec<Self> {
        match *operation {
            Operation::Get(_) => vec![Self::Await(Call::Get)],
            Operation::Next(..) => vec![Self::Do(operation.clone()), Self::Await(Call::Get)],
            Operation::Start(
                call @ (Call::Get | Call::WaitIdle | Call::WaitSettled | Call::AddWait(_)),
            ) => vec![Self::Await(call)],
            Operation::Start(call) => vec![Self::Begin(call), Self::Await(call)],
            ref other => vec![Self::Do(other.clone())],
        }
    }

    /// Whether it may have to wait.
    fn waits(&self) -> bool {
        matches!(self, Self::Await(_) | Self::Do(Operation::GetMany(..)))
    }
}

/// How many states the search remembers. The histories that are drawn here need some hundred.
const STATES_MAX: usize = 100_000;

/// Finds an order of the steps that explains every answer, and why each call sleeps that does.
///
/// # Errors
///
/// The history, and how far it can be explained; or that the search was given up.
pub fn explain(setup: &Configuration, history: &History) -> Result<(), String> {
    let history = &history.threads;
    let limited = (setup.max_keys < usize::MAX).then_some(setup.max_keys);
    let capacity = setup.storage.or(limited);
    let mut abilities = Abilities::default();
    abilities.groups = setup.groups.map_or(0, |_| usize::MAX);
    let model = Model::new(setup, capacity).with_abilities(&abilities);
    let start = Place {
        order: Vec::new(),
        happened: vec![0; history.len()],
        model: model.with_times(false),
        runs: BTreeMap::new(),
        begun: vec![Begun::default(); history.len()],
    };
    let (mut seen, mut furthest) = (HashSet::new(), Vec::new());
    let mut open = vec![start.clone()];
    while let Some(place) = open.pop() {
        let next = place.next(history);
        let Some((first, others)) = next.split_last() else {
            return Ok(());
        };
        let (before, order) = (open.len(), place.order.clone());
        for thread in others {
            open.extend(place.clone().after(history, *thread));
        }
        // Usually only one step is possible. If there are several, a place may have been tried
        // before.
        let key = (open.len() > before).then(|| place.key());
        open.extend(place.after(history, *first));
        match open.len() - before {
            0 if furthest.len() < order.len() => furthest = order,
            2.. if key.is_some_and(|key| !seen.insert(key)) => open.truncate(before),
            _ if seen.len() > STATES_MAX => {
                return Err(format!("given up after {STATES_MAX} states"));
            }
            _ => {}
        }
    }
    let furthest = furthest
        .into_iter()
        .try_fold(start, |place, thread| place.after(history, thread));
    Err(furthest.map_or_else(String::new, |furthest| furthest.report(history)))
}

/// How far the search has come: the steps of each thread that have happened, and what they have
/// led to.
#[derive(Clone)]
struct Place {
    /// The threads of the steps that have happened. They lead here from the start.
    order: Vec<usize>,
    happened: Vec<usize>,
    model: Model,
    /// The runs under their names in the history.
    runs: BTreeMap<Ticket, Ticket>,
    /// The call of each thread.
    begun: Vec<Begun>,
}

/// What a call keeps while it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Begun {
    deadline: Option<Instant>,
    /// The model's number of the wait for the drain, or for the work of a key.
    wait: usize,
    /// What [`Operation::Next`] found as it ended its run, under the same lock.
    next: Option<Handed>,
}

impl Place {
    /// What tells two places apart.
    fn key(&self) -> impl Eq + Hash + use<> {
        let current = |(name, run): (&Ticket, &Ticket)| self.model.key_of(*run).map(|_| *name);
        let runs: Vec<Ticket> = self.runs.iter().filter_map(current).collect();
        let flushes = self.begun.iter().map(|call| self.model.flush(call.wait));
        let flushes: Vec<_> = flushes.collect();
        let happened = self.happened.clone();
        let model = self.model.fingerprint();
        (happened, model, runs, self.begun.clone(), flushes)
    }

    /// The threads whose next step began before any that has not happened was over. The one that
    /// was over first stands last, and is tried first.
    fn next(&self, history: &[Vec<Called>]) -> Vec<usize> {
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

    /// The next step of a thread happens, if it may come to what it has come to.
    fn after(mut self, history: &[Vec<Called>], thread: usize) -> Option<Self> {
        let Called {
            step,
            outcome,
            called,
            ..
        } = &history[thread][self.happened[thread]];
        if *step == Step::Quiet && self.missed(history, *called).is_some() {
            return None;
        }
        self.order.push(thread);
        self.happened[thread] += 1;
        let is_explained = match outcome {
            _ if *step == Step::Quiet => true,
            Outcome::Dropped => self.begun[thread].next.is_none(),
            Outcome::Unknown => self.answer(thread, step).is_some(),
            Outcome::Is(answer) => {
                let expected = self.answer(thread, step)?;
                let (names, answer) = unnamed(answer.clone());
                let (runs, expected) = unnamed(expected);
                self.runs.extend(names.into_iter().zip(runs));
                answer == expected
            }
        };
        is_explained.then_some(self)
    }

    /// What the model answers. `None` if the step has to wait.
    fn answer(&mut self, thread: usize, step: &Step) -> Option<Answer> {
        match step {
            Step::Do(Operation::Advance(by)) => {
                self.model.advance(*by);
                Some(Answer::Done)
            }
            Step::Do(operation) => {
                let named = self.named(operation)?;
                let answer = self.model.apply(&named);
                if let Answer::Turn(_, Next::Work(handed)) = answer {
                    self.begun[thread].next = Some(handed);
                }
                let waits = matches!(answer, Answer::NextMany(Next::Wait { .. }));
                (!waits).then_some(answer)
            }
            Step::Begin(call) => Some(self.begin(thread, *call)),
            Step::Await(call) => match self.begun[thread].next.take() {
                Some(handed) => Some(Answer::Next(Next::Work(handed))),
                None => self.end(self.begun[thread], *call),
            },
            Step::Quiet => Some(Answer::Done),
        }
    }

    fn begin(&mut self, thread: usize, call: Call) -> Answer {
        let (model, begun) = (&mut self.model, &mut self.begun[thread]);
        *begun = Begun::default();
        match call {
            Call::GetTimeout(limit) => begun.deadline = Some(model.now() + limit),
            Call::Drain | Call::DrainTimeout(_) => begun.wait = model.begin_drain().0,
            Call::Flush(key) => begun.wait = model.begin_flush(key),
            Call::CancelAndWait(key) => {
                let was = model.cancel_key(key);
                begun.wait = model.begin_flush(key);
                return Answer::State(was);
            }
            _ => {}
        }
        Answer::Done
    }

    fn end(&mut self, begun: Begun, call: Call) -> Option<Answer> {
        let model = &mut self.model;
        match call {
            Call::Get | Call::GetTimeout(_) => match model.apply(&Operation::Get(Sleeper::New)) {
                Answer::Next(Next::Wait { .. }) => {
                    let limit = begun.deadline.filter(|_| call != Call::Get);
                    let is_late = limit.is_some_and(|limit| model.now() >= limit);
                    is_late.then_some(Answer::Work(None))
                }
                answer => Some(answer),
            },
            Call::Drain | Call::DrainTimeout(_) => match model.drained(&Drain(begun.wait)) {
                Drained::Pending if call == Call::Drain => None,
                drained => Some(Answer::Drained(drained)),
            },
            Call::WaitIdle => model.is_idle().then_some(Answer::Done),
            Call::WaitSettled => model.is_settled().then_some(Answer::Done),
            Call::Flush(_) | Call::CancelAndWait(_) => {
                model.is_flushed(begun.wait).then_some(Answer::Done)
            }
            Call::AddWait(key) => match model.add(key) {
                Err(Rejected::Full(_)) => None,
                added => Some(Answer::Added(added)),
            },
            _ => None,
        }
    }

    /// A thread that sleeps at this time though its call has something to answer.
    fn missed(&self, history: &[Vec<Called>], at: u64) -> Option<usize> {
        let is_asleep = |thread: usize| {
            let begun = |call: &&Called| call.called < at;
            let begun = history[thread].iter().take_while(begun).count();
            let Some(last) = begun.checked_sub(1) else {
                return true;
            };
            let call = &history[thread][last];
            call.returned < at || self.happened[thread] == last && self.may_wait(thread, &call.step)
        };
        (0..history.len()).find(|thread| !is_asleep(*thread))
    }

    fn may_wait(&self, thread: usize, step: &Step) -> bool {
        let mut place = self.clone();
        if place.answer(thread, step).is_none() {
            return true;
        }
        match *step {
            // It may have missed that its key was handed out once more.
            Step::Await(Call::Flush(key)) => {
                let known = self.model.clone().state(key);
                known.is_some_and(|known| known.ready || known.active)
            }
            // The key may have come with another add, and needs no room any more.
            Step::Await(Call::AddWait(key)) => self.model.clone().state(key).is_some(),
            _ => false,
        }
    }

    /// The operation with the model's own numbers. `None` if it names a run that there is not.
    fn named(&mut self, operation: &Operation) -> Option<Operation> {
        let mut named = operation.clone();
        for run in named.runs_mut() {
            *run = match run {
                Run::Of(name) => Run::Of(self.runs.remove(name)?),
                Run::Pick(_) => return None,
            };
        }
        Some(named)
    }

    /// The history in the order of time, and what was expected once no order explains more.
    fn report(&self, history: &[Vec<Called>]) -> String {
        let mut lines = Vec::new();
        for (thread, calls) in history.iter().enumerate() {
            for (index, call) in calls.iter().enumerate() {
                let is_explained = index < self.happened[thread];
                let mark = if is_explained { ' ' } else { '!' };
                let outcome = match &call.outcome {
                    _ if call.returned == u64::MAX => String::from("sleeps"),
                    Outcome::Is(answer) => format!("{answer}, at {}", call.returned),
                    other => format!("{other:?}, at {}", call.returned),
                };
                let Called { called, step, .. } = call;
                let line = format!("{mark} {called}: thread {thread}: {step:?} -> {outcome}\n");
                lines.push((*called, line));
            }
        }
        lines.sort_by_key(|(called, _)| *called);
        let mut text: String = lines.into_iter().map(|(_, line)| line).collect();
        text += &format!("no order explains this. Without `!` it is {}\n", self.model);
        for thread in self.next(history) {
            let Called { step, called, .. } = &history[thread][self.happened[thread]];
            text += &match (
                self.missed(history, *called),
                self.clone().answer(thread, step),
            ) {
                (Some(thread), _) if *step == Step::Quiet => {
                    format!("thread {thread} sleeps, and should not\n")
                }
                (_, Some(answer)) => format!("thread {thread}: {step:?} would answer {answer}\n"),
                (_, None) => format!("thread {thread}: {step:?} would wait\n"),
            };
        }
        text
    }
}

/// The runs that an answer hands out, and what else it says.
fn unnamed(mut answer: Answer) -> (Vec<Ticket>, Answer) {
    let handed = match &mut answer {
        Answer::Work(Some(handed)) | Answer::Next(Next::Work(handed)) => slice::from_mut(handed),
        Answer::NextMany(Next::Work(handed)) => handed,
        _ => &mut [],
    };
    let names = handed.iter().map(|handed| handed.ticket).collect();
    handed.iter_mut().for_each(|handed| handed.ticket.run = 0);
    (names, answer)
}

#[cfg(test)]
mod tests {
    use requeue_embassy::Added;

    use super::*;

    /// Steps of three threads, each with its answer, and from when to when it lasted. One without
    /// an end sleeps.
    fn explained<const N: usize>(steps: [(usize, Step, Answer, [u64; 2]); N]) -> bool {
        let mut threads = vec![Vec::new(); 3];
        for (thread, step, answer, [called, returned]) in steps {
            let outcome = Outcome::Is(answer);
            threads[thread].push(Called {
                step,
                outcome,
                called,
                returned,
            });
        }
        let history = History { threads, events: 0 };
        explain(&Configuration::exponential(), &history).is_ok()
    }

    fn add(thread: usize, key: u16, lasts: [u64; 2]) -> (usize, Step, Answer, [u64; 2]) {
        let added = Answer::Added(Ok(Added::Ready));
        (thread, Step::Do(Operation::Add(key)), added, lasts)
    }

    fn get(thread: usize, key: u16, lasts: [u64; 2]) -> (usize, Step, Answer, [u64; 2]) {
        let ticket = Ticket { key, run: 700 };
        let got = Answer::Next(Next::Work(Handed {
            key,
            ticket,
            failures: 0,
            priority: 0,
            timed_out: false,
        }));
        (thread, Step::Await(Call::Get), got, lasts)
    }

    fn count(keys: usize, lasts: [u64; 2]) -> (usize, Step, Answer, [u64; 2]) {
        (1, Step::Do(Operation::Len), Answer::Count(keys), lasts)
    }

    #[test]
    fn a_call_that_overlaps_an_add_may_see_it_or_not() {
        let added = add(0, 7, [0, 3]);
        assert!(explained([added.clone(), count(0, [1, 2])]));
        assert!(explained([added.clone(), count(1, [1, 2])]));
        assert!(!explained([added.clone(), count(0, [4, 5])]));
        assert!(explained([added.clone(), get(1, 7, [1, 2])]));
        assert!(!explained([added, get(1, 7, [1, 5]), get(2, 7, [2, 6])]));
    }

    #[test]
    fn keys_come_in_the_order_in_which_they_were_added() {
        for (second_lasts, is_explained) in [([1, 4], true), ([3, 4], false)] {
            let adds_and_gets = [
                add(0, 1, [0, 2]),
                add(1, 2, second_lasts),
                get(2, 2, [5, 6]),
                get(2, 1, [7, 8]),
            ];
            assert_eq!(explained(adds_and_gets), is_explained);
        }
    }

    #[test]
    fn a_call_that_sleeps_beside_a_ready_key_has_missed_its_wake() {
        let quiet = |at| (2, Step::Quiet, Answer::Done, [at, at + 1]);
        let (added, got) = (add(0, 7, [4, 5]), get(1, 7, [1, 9]));
        assert!(explained([quiet(2), added.clone(), got.clone()]));
        assert!(!explained([added, quiet(6), got]));
    }
}

//! One run of a program.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use requeue_proptest::histories::{Operation, Run};
use requeue_proptest::subject::{Answer, Call, GroupOrder};
use requeue_schedules::{
    Called, Caller, History, Order, Outcome, Runs, SECOND, Shares, Step, begin, explain, quiet,
};
use requeue_std::Action;
use shuttle::future::block_on;

use crate::draw::{KEYS, Program};

/// Runs a program on a new queue, and judges what it has seen.
///
/// # Panics
///
/// If it cannot be explained, or a call sleeps for ever.
pub(crate) fn play<Q: Shares>(program: &Program) {
    let trial = Rc::new(Trial::<Q>::new(program));
    let mut conductor = trial.worker(program.threads.len());
    if let Some(cap) = program.setup.groups {
        block_on(conductor.call(Operation::Order(GroupOrder::LimitAll(cap))));
    }
    let threads = program.threads.iter().cloned().enumerate();
    let threads = threads.map(|(thread, steps)| {
        let trial = Rc::clone(&trial);
        async move { trial.run(thread, &steps).await }
    });
    begin(threads.collect());
    block_on(conductor.conclude());
    let judged = explain(&program.setup, &trial.history.borrow().1);
    let all_ended = trial.ended.get() == program.threads.len();
    match judged {
        Err(report) => panic!("{report}"),
        Ok(()) => assert!(all_ended, "a call sleeps for ever"),
    }
    trial.queue.shared().look(|queue| {
        queue.assert_valid();
        assert_eq!(queue.asleep(), 0, "who has left counts as asleep");
    });
}

struct Trial<Q> {
    queue: Arc<Q>,
    is_exact: bool,
    callers: Vec<Caller>,
    /// And how many events there were.
    history: RefCell<(u64, History)>,
    /// Threads that have done their steps keep their runs until it is open.
    is_open: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
    ended: Cell<usize>,
}

impl<Q: Shares> Trial<Q> {
    fn new(program: &Program) -> Self {
        let queue = Arc::new(Q::new(&program.setup));
        let caller = |_| {
            let queue = Arc::clone(&queue);
            let look = move || _ = queue.shared().look(|queue| queue.asleep());
            Caller::of_queue(look)
        };
        // The last thread is the one that concludes.
        let threads = 0..=program.threads.len();
        Self {
            callers: threads.clone().map(caller).collect(),
            is_exact: program.is_exact,
            history: RefCell::new((0, threads.map(|_| Vec::new()).collect())),
            is_open: Cell::new(false),
            waiting: RefCell::default(),
            ended: Cell::new(0),
            queue,
        }
    }

    fn worker(&self, thread: usize) -> Worker<'_, Q> {
        Worker {
            trial: self,
            thread,
            runs: Runs::new(thread),
        }
    }

    /// Runs one thread of a program. In the end it completes what is active.
    async fn run(&self, thread: usize, steps: &[Operation]) {
        let mut worker = self.worker(thread);
        for step in steps {
            worker.step(step).await;
        }
        poll_fn(|context| {
            if self.is_open.get() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        while let Some(run) = worker.runs.pick(Run::Pick(0)) {
            worker.call(Operation::Complete(run, Action::Release)).await;
        }
        self.ended.set(self.ended.get() + 1);
    }

    /// Another event happens to the history, and lasts for one of two moments.
    fn record(&self, change: impl FnOnce(u64, &mut History)) {
        let (now, history) = &mut *self.history.borrow_mut();
        *now += 2;
        change(*now, history);
    }
}

/// One thread of a trial.
struct Worker<'q, Q: Shares> {
    trial: &'q Trial<Q>,
    thread: usize,
    runs: Runs<Q::Host, Q::Handle<'q>>,
}

impl<Q: Shares> Worker<'_, Q> {
    async fn step(&mut self, step: &Operation) {
        let order = match step {
            Operation::Cancel(_) => Order::Drop,
            Operation::Nudge(_) => Order::Move,
            step => {
                if let Some(operation) = self.named(step) {
                    self.call(operation).await;
                }
                return;
            }
        };
        let others = self.trial.callers.iter();
        let _ = others.take_while(|caller| !caller.give(order)).count();
    }

    /// The step with the runs that it is about; `None` if there is none.
    fn named(&self, step: &Operation) -> Option<Operation> {
        Some(match *step {
            Operation::Done(run) => Operation::Done(self.runs.pick(run)?),
            Operation::Complete(run, how) => Operation::Complete(self.runs.pick(run)?, how),
            Operation::CompleteMany(_, how) => Operation::CompleteMany(self.runs.all(), how),
            Operation::Next(run, how, sleeper) => {
                Operation::Next(self.runs.pick(run)?, how, sleeper)
            }
            ref other => other.clone(),
        })
    }

    /// Makes a call and records it.
    async fn call(&mut self, operation: Operation) -> Option<Answer> {
        let steps = Step::of(&operation);
        let (trial, thread, count) = (self.trial, self.thread, steps.len());
        trial.record(|called, history| {
            history[thread].extend(steps.into_iter().map(|step| Called {
                step,
                outcome: Outcome::Unknown,
                called,
                returned: u64::MAX,
            }));
        });
        let caller = &trial.callers[thread];
        let answer = trial
            .queue
            .perform(caller, &operation, &mut self.runs)
            .await;
        trial.record(|returned, history| {
            let first = history[thread].len() - count;
            let steps = &mut history[thread][first..];
            steps.iter_mut().for_each(|step| step.returned = returned);
            // What the key was is known at once.
            let is_first = matches!(operation, Operation::Start(Call::CancelAndWait(_)));
            let place = if is_first && answer.is_some() {
                0
            } else {
                count - 1
            };
            steps[place].outcome = match &answer {
                Some(answer) => Outcome::Is(answer.clone()),
                None if steps[place].step.waits() => Outcome::Dropped,
                None => Outcome::Unknown,
            };
        });
        answer
    }

    /// Whenever nothing moves any more, lets something happen that may wake those who sleep: time,
    /// the end of runs, the end of the queue. Then looks at what is left, and takes it out.
    async fn conclude(&mut self) {
        let trial = self.trial;
        self.quiet();
        for _ in 0..2 {
            self.call(Operation::Advance(SECOND)).await;
            self.quiet();
        }
        trial.is_open.set(true);
        trial.waiting.take().into_iter().for_each(Waker::wake);
        self.quiet();
        self.call(Operation::Advance(4 * SECOND)).await;
        self.quiet();
        self.call(Operation::ShutDown).await;
        self.quiet();
        let keys = 1..=KEYS + 2;
        // A thread may wait for the end of its own run.
        for _ in 0..2 * KEYS {
            if trial.ended.get() == self.thread {
                break;
            }
            for key in keys.clone() {
                self.call(Operation::DoneKey(key)).await;
            }
            self.call(Operation::Advance(2 * SECOND)).await;
            self.quiet();
        }
        self.call(Operation::Len).await;
        for key in keys {
            self.call(Operation::State(key)).await;
        }
        for take in [Operation::TakeReady, Operation::TakeDelayed] {
            while self.call(take.clone()).await != Some(Answer::Left(None)) {}
        }
        self.quiet();
    }

    /// Waits until nothing moves any more.
    fn quiet(&self) {
        quiet();
        if self.trial.is_exact {
            self.trial.record(|called, history| {
                history[self.thread].push(Called {
                    step: Step::Quiet,
                    outcome: Outcome::Unknown,
                    called,
                    returned: called + 1,
                });
            });
        }
    }
}

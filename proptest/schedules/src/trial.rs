//! A queue that several threads or tasks call at once, and the history that they make.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{Answer, Configuration, Key};

use crate::SECOND;
use crate::caller::{Caller, Order};
use crate::queues::{Runs, Shares};
use crate::search::{History, Step};

/// A queue, and what is done to it.
pub struct Trial<Q> {
    /// The queue.
    pub queue: Arc<Q>,
    /// What has been done.
    pub history: RefCell<History>,
    /// How each thread waits, by its number.
    callers: RefCell<Vec<Rc<Caller>>>,
}

/// A thread of a trial, which makes calls one after another.
pub struct Worker<'q, Q: Shares> {
    /// Where it makes them.
    pub trial: &'q Trial<Q>,
    thread: usize,
    /// How it waits.
    pub caller: Rc<Caller>,
    /// The runs that it can end.
    pub runs: Rc<Runs<Q::Host, Q::Handle<'q>>>,
}

impl<Q: Shares> Trial<Q> {
    /// A trial of an empty queue.
    pub fn new(setup: &Configuration) -> Self {
        Self {
            queue: Arc::new(Q::new(setup)),
            history: RefCell::default(),
            callers: RefCell::default(),
        }
    }

    /// Another thread begins, whose wakers look at the queue. Returns its number.
    pub fn begin_thread(&self) -> usize {
        let queue = Arc::clone(&self.queue);
        self.begin_thread_as(Caller::new(move || {
            _ = queue.shared().look(|queue| queue.asleep())
        }))
    }

    /// Another thread begins, which waits so. Returns its number.
    pub fn begin_thread_as(&self, caller: Caller) -> usize {
        self.callers.borrow_mut().push(Rc::new(caller));
        self.history.borrow_mut().begin_thread()
    }

    /// What makes the calls of a thread, which has no runs.
    pub fn worker(&self, thread: usize) -> Worker<'_, Q> {
        Worker {
            trial: self,
            thread,
            caller: Rc::clone(&self.callers.borrow()[thread]),
            runs: Rc::new(Runs::new(thread)),
        }
    }

    /// Looks whether the queue is valid, and no call waits.
    ///
    /// # Panics
    ///
    /// If that is not so.
    pub fn assert_at_rest(&self) {
        self.queue.shared().look(|queue| {
            queue.assert_valid();
            assert_eq!(queue.asleep(), 0, "who has left counts as asleep");
        });
    }
}

impl<Q: Shares> Worker<'_, Q> {
    /// Makes a call on one of its runs, or drops or moves the first call that waits. Returns `None`
    /// if there is none, or if the answer is not known.
    pub async fn step(&self, step: &Operation) -> Option<Answer> {
        let order = match step {
            Operation::Cancel(_) => Order::Drop,
            Operation::Nudge(_) => Order::Move,
            step => return self.call(&self.runs.resolved(step)?).await,
        };
        let callers = self.trial.callers.borrow();
        let _ = callers.iter().find(|caller| caller.give(order));
        None
    }

    async fn call(&self, operation: &Operation) -> Option<Answer> {
        self.begin(operation);
        let queue = &self.trial.queue;
        let call = queue.perform(&self.caller, operation, &self.runs);
        let answer = call.await;
        self.end(answer.as_ref());
        answer
    }

    /// A call begins.
    pub fn begin(&self, operation: &Operation) {
        let mut history = self.trial.history.borrow_mut();
        history.begin(self.thread, Step::of(operation));
    }

    /// It ends. `answer` is `None` if it was dropped while it waited, or if that is not known.
    pub fn end(&self, answer: Option<&Answer>) {
        self.trial.history.borrow_mut().end(self.thread, answer);
    }

    /// Nothing moves any more: from here on a call that sleeps has to have a reason.
    pub fn note_quiet(&self) {
        let mut history = self.trial.history.borrow_mut();
        history.begin(self.thread, [Step::Quiet]);
        history.end(self.thread, None);
    }

    /// Ends the queue and every run, and lets all else settle after each step, until every thread
    /// has ended. Then looks at what is left of the keys, and takes it out.
    pub async fn conclude(&self, keys: &[Key], settle: impl Fn(), have_ended: impl Fn() -> bool) {
        self.step(&Operation::ShutDown).await;
        settle();
        // A thread may wait for the end of its own run.
        for _ in 0..2 * keys.len() {
            if have_ended() {
                break;
            }
            for key in keys {
                self.step(&Operation::DoneKey(*key)).await;
            }
            self.step(&Operation::Advance(2 * SECOND)).await;
            settle();
        }
        for take in [Operation::TakeReady, Operation::TakeDelayed] {
            while self.step(&take).await != Some(Answer::Left(None)) {}
        }
        settle();
    }
}

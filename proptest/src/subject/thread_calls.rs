//! Calls that block, each made by a thread of its own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use requeue_core::Instant;
use requeue_core::binding::Clock;

use super::{CallId, Drive, Returned, Runtime};

/// A call that a thread makes.
pub type ThreadCall = Box<dyn FnOnce() -> Returned + Send>;

/// A runtime whose calls are made by threads.
pub trait Sleeps {
    /// Returns how many threads sleep, and when the first of them looks again by itself.
    fn sleeping(&self) -> (usize, Option<Instant>);
}

/// Calls that are made by threads, each by one of its own.
///
/// No thread is ever asked to sleep for some time. The threads of a queue have settled once as many
/// are asleep as have not answered, and one of them watches the deadline that comes first; that is
/// found out by looking again and again.
pub struct ThreadCalls {
    waiting: usize,
    answers: BTreeMap<CallId, thread::Result<Returned>>,
    answered: (Sender<Answered>, Receiver<Answered>),
}

type Answered = (CallId, thread::Result<Returned>);

impl Default for ThreadCalls {
    fn default() -> Self {
        Self {
            waiting: 0,
            answers: BTreeMap::new(),
            answered: channel(),
        }
    }
}

impl<R: Runtime + Sleeps> Drive<R> for ThreadCalls {
    type Begun = ThreadCall;
    const RUNS_BY_ITSELF: bool = true;
    const CANCELS: bool = false;

    fn start(&mut self, id: CallId, call: ThreadCall) {
        self.waiting += 1;
        let answered = self.answered.0.clone();
        thread::spawn(move || {
            let answer = catch_unwind(AssertUnwindSafe(call));
            // If the test is over nothing reads it.
            let _ = answered.send((id, answer));
        });
    }

    /// The clock has woken the threads whose time has come, and no other. Now all threads sleep that
    /// wait, no alarm rings, and one that waits for a key will look when the next deadline comes.
    fn settle(&mut self, runtime: &R) -> bool {
        thread::yield_now();
        for (id, answer) in self.answered.1.try_iter() {
            self.waiting -= 1;
            self.answers.insert(id, answer);
        }
        let queue = runtime.queue();
        let (asleep, deadline) = queue.look(|queue| (queue.asleep(), queue.next_deadline()));
        let (sleeping, alarm) = runtime.sleeping();
        let is_watched = |due| alarm.is_some_and(|alarm| alarm <= due);
        sleeping == self.waiting
            && alarm.is_none_or(|alarm| alarm > queue.clock().now())
            && (asleep == 0 || deadline.is_none_or(is_watched))
    }

    fn answer(&mut self, id: CallId) -> Option<Returned> {
        let answer = self.answers.remove(&id)?;
        Some(answer.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// A thread cannot be cancelled.
    fn cancel(&mut self, _: CallId) {}

    /// Threads run by themselves.
    fn nudge(&mut self, _: CallId) {}

    fn end(&mut self, runtime: &R) {
        let queue = runtime.queue();
        queue.shut_down();
        queue.clear();
        for (key, _) in queue.snapshot() {
            // Not every key is active.
            let _ = queue.release_key(&key);
        }
    }
}

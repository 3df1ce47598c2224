//! Calls that block, each made by a thread of its own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use requeue_core::Instant;

use super::{CallId, Drive, Key, Returned};

/// A call that a thread makes.
pub type ThreadCall = Box<dyn FnOnce() -> Returned + Send>;

/// A queue whose calls are made by threads.
pub trait CallsOf {
    /// Returns who sleeps.
    fn seen(&self) -> Sleeping;

    /// Shuts the queue down, and takes all work back.
    fn end(&self);

    /// Ends the run of a key, if it is active. Returns whether any key is active.
    fn release(&self, key: Key) -> bool;
}

/// Who sleeps, at a moment.
#[derive(Debug)]
pub struct Sleeping {
    /// How many getters sleep, as the queue counts them.
    pub asleep: usize,
    /// The earliest deadline of the queue.
    pub deadline: Option<Instant>,
    /// How many threads sleep.
    pub waiting: usize,
    /// When the first of them looks again by itself.
    pub alarm: Option<Instant>,
    /// The time.
    pub now: Instant,
}

impl Sleeping {
    /// Whether no thread has its alarm ringing, and one that waits for a key will look when the
    /// next deadline comes.
    fn is_watched(&self) -> bool {
        let alarm = self.alarm;
        alarm.is_none_or(|alarm| alarm > self.now)
            && (self.asleep == 0
                || self
                    .deadline
                    .is_none_or(|due| alarm.is_some_and(|alarm| alarm <= due)))
    }
}

/// Calls that are made by threads, each by one of its own.
///
/// No thread is ever asked to sleep for some time. The threads of a queue have settled once as many
/// are asleep as have not answered, and one of them watches the deadline that comes first; that is
/// found out by looking again and again.
#[derive(Debug)]
pub struct ThreadCalls<Q: CallsOf> {
    pub(super) queue: Q,
    waiting: usize,
    answers: BTreeMap<CallId, thread::Result<Returned>>,
    answered: (Sender<Answered>, Receiver<Answered>),
}

type Answered = (CallId, thread::Result<Returned>);

impl<Q: CallsOf> ThreadCalls<Q> {
    pub(super) fn new(queue: Q) -> Self {
        Self {
            queue,
            waiting: 0,
            answers: BTreeMap::new(),
            answered: channel(),
        }
    }
}

impl<Q: CallsOf> Drive for ThreadCalls<Q> {
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

    /// The clock has woken the threads whose time has come, and no other.
    fn settle(&mut self) -> bool {
        thread::yield_now();
        for (id, answer) in self.answered.1.try_iter() {
            self.waiting -= 1;
            self.answers.insert(id, answer);
        }
        let seen = self.queue.seen();
        seen.waiting == self.waiting && seen.is_watched()
    }

    fn answer(&mut self, id: CallId) -> Option<Returned> {
        let answer = self.answers.remove(&id)?;
        Some(answer.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// A thread cannot be cancelled.
    fn cancel(&mut self, _: CallId) {}

    /// Threads run by themselves.
    fn nudge(&mut self, _: CallId) {}
}

/// Sends every waiting thread home.
impl<Q: CallsOf> Drop for ThreadCalls<Q> {
    fn drop(&mut self) {
        self.queue.end();
        let mut key = 0;
        while self.queue.release(key) && key < Key::MAX {
            key += 1;
        }
    }
}

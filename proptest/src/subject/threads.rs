//! requeue-std: its own lock, clock and way of waiting, on a clock that stands still.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use requeue_core::Rejected;
use requeue_core::binding::Reporter;
use requeue_core::binding::{AsShared, Shared};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_std::binding::ThreadHost;
use requeue_std::{ManualClock, WorkQueue};

use super::calls::{returned, waited};
use super::work_queue::{Runtime, handed, panicking};
use super::{Call, CallId, Configuration, Drive, Home, Key, Kind, Returned, Taken};
use crate::figures::{Figures, SharedFigures};
use crate::limiter::AnyLimiter;

type Inner<P, S> = WorkQueue<Key, P, AnyLimiter, S>;

/// requeue-std's queue.
#[derive(Debug)]
pub struct Threads<P: Kind = Plain, S: Home = Growable> {
    queue: Inner<P, S>,
    figures: SharedFigures,
    waits: bool,
    calls: ThreadCalls<P, S>,
}

impl<P: Kind + 'static, S: Home + 'static> Runtime for Threads<P, S>
where
    Inner<P, S>: Send,
{
    type Host = ThreadHost<Key, P, AnyLimiter, S>;
    type Calls = ThreadCalls<P, S>;

    fn new(setup: &Configuration) -> Self {
        let (figures, clock) = (SharedFigures::default(), ManualClock::new());
        let queue = S::build(setup, Reporter::new(figures.clone()));
        let queue = WorkQueue::from_queue(queue, clock.clone());
        Self {
            calls: ThreadCalls::new(queue.clone(), clock),
            queue,
            figures,
            waits: false,
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.calls.clock.advance(by);
    }

    /// In turns by asking, and by waiting for no time.
    fn try_get(&mut self) -> Option<Taken> {
        self.waits = !self.waits;
        let guard = if self.waits {
            self.queue.get_timeout(Duration::ZERO).ok()
        } else {
            self.queue.try_get()
        };
        guard.and_then(handed)
    }

    fn panic_at_work(&mut self) -> bool {
        panicking(|| self.queue.try_get())
    }

    fn begin(&self, call: Call) -> Option<ThreadCall> {
        let queue = self.queue.clone();
        Some(Box::new(move || {
            returned!(queue, call, [], |limit| queue.drain_timeout(limit))
        }))
    }

    fn figures(&self) -> Option<Figures> {
        Some(self.figures.get())
    }

    fn calls(&mut self) -> &mut ThreadCalls<P, S> {
        &mut self.calls
    }
}

/// A call that a thread makes.
pub type ThreadCall = Box<dyn FnOnce() -> Returned + Send>;

/// Calls that are made by threads, each by one of its own.
///
/// No thread is ever asked to sleep for some time. The threads of a queue have settled once as many
/// are asleep as have not answered, and one of them watches the deadline that comes first; that is
/// found out by looking again and again.
#[derive(Debug)]
pub struct ThreadCalls<P: Kind = Plain, S: Home = Growable> {
    queue: Inner<P, S>,
    clock: ManualClock,
    waiting: usize,
    answers: BTreeMap<CallId, thread::Result<Returned>>,
    answered: (Sender<Answered>, Receiver<Answered>),
    /// In the end all keys below this have been released.
    released: Key,
}

type Answered = (CallId, thread::Result<Returned>);

impl<P: Kind, S: Home> ThreadCalls<P, S> {
    fn new(queue: Inner<P, S>, clock: ManualClock) -> Self {
        Self {
            queue,
            clock,
            waiting: 0,
            answers: BTreeMap::new(),
            answered: channel(),
            released: 0,
        }
    }

    /// Whether a thread that waits for a key will look when the next deadline comes.
    fn is_watched(&self) -> bool {
        let queue = self.queue.as_shared();
        let (asleep, deadline) = queue.look(|queue| (queue.asleep(), queue.next_deadline()));
        let alarm = self.clock.next_alarm();
        asleep == 0 || deadline.is_none_or(|due| alarm.is_some_and(|alarm| alarm <= due))
    }
}

impl<P: Kind, S: Home> Drive for ThreadCalls<P, S> {
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
        let clock = &self.clock;
        let rings = clock.next_alarm().is_some_and(|alarm| alarm <= clock.now());
        clock.waiting() == self.waiting && !rings && self.is_watched()
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
impl<P: Kind, S: Home> Drop for ThreadCalls<P, S> {
    fn drop(&mut self) {
        self.queue.shut_down();
        self.queue.clear();
        while self.queue.stats().active > 0 && self.released < Key::MAX {
            // Not every key is active.
            let _ = self.queue.release_key(&self.released);
            self.released += 1;
        }
    }
}

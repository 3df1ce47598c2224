//! Who called what, and when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call, and what came of it. Times are counted in events of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O, A> {
    /// What was called.
    pub op: O,
    /// What was answered; nothing if that is not known.
    pub answer: Option<A>,
    /// When it was called.
    pub called: u64,
    /// When it was answered; nothing if it never was: then nobody knows whether it took effect.
    pub answered: Option<u64>,
}

/// A call of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// Which thread has called.
    pub thread: usize,
    /// Which of its calls, counted from zero.
    pub index: usize,
}

/// The calls of several threads, in the order in which each has made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<O, A> {
    pub(super) threads: Vec<Vec<Call<O, A>>>,
}

impl<O, A> History<O, A> {
    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The calls of each thread.
    pub fn threads(&self) -> &[Vec<Call<O, A>>] {
        &self.threads
    }

    /// How many calls were under way while a call of another thread was.
    pub fn overlaps(&self) -> usize {
        let end = |call: &Call<O, A>| call.answered.unwrap_or(u64::MAX);
        let meet = |one: &Call<O, A>, other: &Call<O, A>| {
            one.called < end(other) && other.called < end(one)
        };
        let is_met = |(id, call): &(CallId, &Call<O, A>)| {
            let others = self.threads.iter().enumerate();
            let mut others = others.filter(|(thread, _)| *thread != id.thread);
            others.any(|(_, calls)| calls.iter().any(|other| meet(call, other)))
        };
        self.calls().filter(is_met).count()
    }

    /// Every call, thread by thread.
    pub fn calls(&self) -> impl Iterator<Item = (CallId, &Call<O, A>)> {
        self.threads.iter().enumerate().flat_map(|(thread, calls)| {
            let id = move |index| CallId { thread, index };
            calls.iter().enumerate().map(move |(i, call)| (id(i), call))
        })
    }
}

/// Writes a history down while it happens. One atomic counter tells what came before what.
///
/// # Examples
///
/// ```
/// use requeue_proptest::linear::Recorder;
///
/// let recorder = Recorder::new(1);
/// let answer = recorder.record(0, "2 + 2", || 4);
/// assert_eq!((answer, recorder.history().len()), (4, 1));
/// ```
#[derive(Debug)]
pub struct Recorder<O, A> {
    events: AtomicU64,
    threads: Vec<Mutex<Vec<Call<O, A>>>>,
}

impl<O: Clone, A: Clone> Recorder<O, A> {
    /// For this many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            events: AtomicU64::new(0),
            threads: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// Call this immediately before `thread` calls `op`.
    ///
    /// A call that takes effect in two steps is two calls: begin both before it and answer both
    /// after it. Calls of one thread take effect in the order in which they begin.
    ///
    /// # Panics
    ///
    /// If there are not so many threads.
    pub fn call(&self, thread: usize, op: O) -> CallId {
        let mut calls = self.calls_of(thread);
        calls.push(Call {
            op,
            answer: None,
            called: 0,
            answered: None,
        });
        let index = calls.len() - 1;
        calls[index].called = self.events.fetch_add(1, Ordering::SeqCst);
        CallId { thread, index }
    }

    /// Call this immediately after a call has answered.
    pub fn answer(&self, call: CallId, answer: A) {
        self.end(call, Some(answer));
    }

    /// As [`answer`](Self::answer), for a call of which only the end is known.
    pub fn end(&self, call: CallId, answer: Option<A>) {
        let now = self.events.fetch_add(1, Ordering::SeqCst);
        if let Some(call) = self.calls_of(call.thread).get_mut(call.index) {
            call.answered = Some(now);
            call.answer = answer;
        }
    }

    /// Makes a call and writes it down.
    ///
    /// # Panics
    ///
    /// If there are not so many threads.
    pub fn record(&self, thread: usize, op: O, call: impl FnOnce() -> A) -> A {
        let id = self.call(thread, op);
        let answer = call();
        self.answer(id, answer.clone());
        answer
    }

    /// What has happened so far.
    pub fn history(&self) -> History<O, A> {
        let calls = |thread| self.calls_of(thread).clone();
        History {
            threads: (0..self.threads.len()).map(calls).collect(),
        }
    }

    fn calls_of(&self, thread: usize) -> MutexGuard<'_, Vec<Call<O, A>>> {
        let calls = self.threads[thread].lock();
        calls.unwrap_or_else(PoisonError::into_inner)
    }
}

//! Who called what, and when.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call and its response. Times are counted in events of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<I, R> {
    /// What was called.
    pub request: I,
    /// What the call returned; `None` if that is not known.
    pub response: Option<R>,
    /// When it was called.
    pub called: u64,
    /// When it returned; `None` if it never did. It may have taken effect then, or not.
    pub returned: Option<u64>,
}

/// A call of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The thread that has called.
    pub thread: usize,
    /// Which of its calls, counted from zero.
    pub index: usize,
}

/// The calls of several threads, each thread's in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<I, R> {
    pub(crate) threads: Vec<Vec<Call<I, R>>>,
}

impl<I, R> History<I, R> {
    /// Returns every call, thread by thread.
    pub fn calls(&self) -> impl Iterator<Item = (CallId, &Call<I, R>)> {
        self.threads.iter().enumerate().flat_map(|(thread, calls)| {
            let id = move |index| CallId { thread, index };
            calls.iter().enumerate().map(move |(i, call)| (id(i), call))
        })
    }
}

/// Records a history while it happens.
///
/// # Examples
///
/// ```
/// use requeue_linear::Recorder;
///
/// let recorder = Recorder::new(1);
/// let call = recorder.call(0, "2 + 2");
/// recorder.returned(call, 4);
/// assert_eq!(recorder.history().calls().count(), 1);
/// ```
#[derive(Debug)]
pub struct Recorder<I, R>(Mutex<Recorded<I, R>>);

#[derive(Debug)]
struct Recorded<I, R> {
    events: u64,
    history: History<I, R>,
}

impl<I: Clone, R: Clone> Recorder<I, R> {
    /// Returns a recorder for this many threads.
    pub fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| Vec::new()).collect();
        Self(Mutex::new(Recorded {
            events: 0,
            history: History { threads },
        }))
    }

    /// Records that `thread` is about to make a call.
    ///
    /// A call that takes effect in two steps is two calls: begin both before it and end both after
    /// it. Calls of one thread take effect in the order in which they begin.
    ///
    /// # Panics
    ///
    /// If there are not so many threads.
    pub fn call(&self, thread: usize, request: I) -> CallId {
        let (called, mut recorded) = self.next_event();
        let calls = &mut recorded.history.threads[thread];
        let index = calls.len();
        calls.push(Call {
            request,
            response: None,
            called,
            returned: None,
        });
        CallId { thread, index }
    }

    /// Records that a call has just returned.
    pub fn returned(&self, call: CallId, response: R) {
        self.end(call, Some(response));
    }

    /// Records that a call has just returned, and what if that is known.
    pub fn end(&self, call: CallId, response: Option<R>) {
        let (now, mut recorded) = self.next_event();
        let calls = recorded.history.threads.get_mut(call.thread);
        if let Some(call) = calls.and_then(|calls| calls.get_mut(call.index)) {
            call.returned = Some(now);
            call.response = response;
        }
    }

    /// Returns the history so far.
    pub fn history(&self) -> History<I, R> {
        self.recorded().history.clone()
    }

    fn next_event(&self) -> (u64, MutexGuard<'_, Recorded<I, R>>) {
        let mut recorded = self.recorded();
        let now = recorded.events;
        recorded.events += 1;
        (now, recorded)
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded<I, R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! How a thread sleeps until it is woken. Owns one waker for each thread; never decides for how
//! long to sleep.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Puts the current thread to sleep, and lets other threads wake it.
///
/// It uses the park token of std, so that a wake that comes before the sleep is not lost. Other
/// code that parks the same thread may wake up spuriously, which std allows.
pub(crate) struct Parker(Waker);

impl Parker {
    /// Calls `act` with the parker of the current thread.
    pub(crate) fn with<T>(mut act: impl FnMut(&Self) -> T) -> T {
        let done = PARKER.try_with(&mut act);
        // The thread is ending: its thread-locals are gone.
        done.unwrap_or_else(|_| act(&Self::new()))
    }

    fn new() -> Self {
        Self(Waker::from(Arc::new(Unpark(thread::current()))))
    }

    /// Returns the waker of the thread.
    pub(crate) fn waker(&self) -> &Waker {
        &self.0
    }

    /// Sleeps until woken, and no longer than `limit`; may return spuriously.
    pub(crate) fn park(&self, limit: Option<Duration>) {
        match limit {
            Some(limit) => thread::park_timeout(limit),
            None => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static PARKER: Parker = Parker::new();
}

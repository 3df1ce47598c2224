//! How a thread sleeps until it is woken.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Lets the present thread sleep, and others wake it.
///
/// It uses the thread's own token, so that a wake that comes before the sleep is not lost. Another
/// user of the token in the same thread may be woken without reason, as std says that it may be.
pub(crate) struct Parker(Waker);

impl Parker {
    /// For the present thread.
    pub(crate) fn new() -> Self {
        let own = WAKER.try_with(Waker::clone);
        // The thread is ending, and its own waker is gone already.
        Self(own.unwrap_or_else(|_| waker()))
    }

    /// Wakes the thread.
    pub(crate) fn waker(&self) -> &Waker {
        &self.0
    }

    /// Sleeps until woken, and no longer than `limit`; may return for no reason.
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

fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

thread_local! {
    static WAKER: Waker = waker();
}

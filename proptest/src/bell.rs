//! The waker of a task that is polled later, if it was woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

/// Whether the task was woken.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicBool);

impl Bell {
    pub(crate) fn rings(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The task is about to be polled. Returns whether it was woken.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

//! The names of `std::thread` over shuttle. In shuttle's own scopes a panic ends the test.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// As std's.
pub(crate) struct Scope<'scope, 'env: 'scope> {
    threads: &'scope shuttle::thread::Scope<'scope, 'env>,
    has_panicked: Arc<AtomicBool>,
}

/// As std's: panics if a thread of the scope has, once all have ended.
pub(crate) fn scope<'env, T>(work: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
    let has_panicked = Arc::new(AtomicBool::new(false));
    let answer = shuttle::thread::scope(|threads| {
        work(&Scope {
            threads,
            has_panicked: Arc::clone(&has_panicked),
        })
    });
    if has_panicked.load(Ordering::SeqCst) {
        // Skips the panic hook, which would end the test.
        resume_unwind(Box::new("a scoped thread panicked"));
    }
    answer
}

/// As std's. shuttle shows no names.
pub(crate) struct Builder;

impl Builder {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn name(self, _: String) -> Self {
        self
    }

    pub(crate) fn spawn_scoped<'scope>(
        self,
        scope: &Scope<'scope, '_>,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        let left = THREADS_LEFT.get();
        THREADS_LEFT.set(left.map(|left| left.saturating_sub(1)));
        if left == Some(0) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let has_panicked = Arc::clone(&scope.has_panicked);
        scope.threads.spawn(move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                has_panicked.store(true, Ordering::SeqCst);
            }
        });
        Ok(())
    }
}

/// From now on a queue can start no more than this many threads, as if the system had no more.
pub fn refuse_threads(left: Option<usize>) {
    THREADS_LEFT.set(left);
}

// As the time: all threads of a schedule share one thread of the system.
thread_local! {
    static THREADS_LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

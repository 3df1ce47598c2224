//! The number of workers, which can change while they work. Owns the number, and the wakers of the
//! runs that watch it; never starts or stops a worker.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{RunEvent, Workers};

/// The number of workers of a `run`, which can change while they work, down to zero. Clones change
/// the same runs.
///
/// With zero workers no key of that `run` is worked on, as in a
/// [paused](crate::Session::pause) queue. Shutdown counts zero as one, because a drain has to end.
///
/// # Examples
///
/// ```
/// use requeue::{Concurrency, Workers};
///
/// let concurrency = Concurrency::new(4);
/// let workers: Workers<'_, String, String> = Workers::new(1).concurrency(&concurrency);
/// assert_eq!(workers.count(), 4);
/// concurrency.set(0);
/// assert_eq!(workers.count(), 0);
/// ```
#[derive(Clone)]
pub struct Concurrency(Arc<Shared>);

struct Shared {
    /// Written under the lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often the number was set. Listeners compare this, because the number may have changed
    /// and changed back.
    version: u64,
    /// The calls that wait until the number is set again, each with a number of its own.
    waiting: Vec<(u64, Waker)>,
    last_id: u64,
}

impl Concurrency {
    /// Creates a number of workers. O(1).
    pub fn new(workers: usize) -> Self {
        Self(Arc::new(Shared {
            count: AtomicUsize::new(workers),
            state: Mutex::default(),
        }))
    }

    /// Changes the number of workers. O(n) in the runs that share it.
    ///
    /// Surplus workers finish their runs first, and then take no key. One that takes a key just as
    /// this is called still runs it. None is removed between shutdown and the end of the drain.
    pub fn set(&self, workers: usize) {
        let mut state = self.lock();
        self.0.count.store(workers, Ordering::SeqCst);
        state.version = state.version.wrapping_add(1);
        drop(state);
        self.wake_all();
    }

    /// Raises the number of workers to `workers` if it is lower. O(n) in the runs that share it.
    fn raise(&self, workers: usize) {
        let mut state = self.lock();
        if self.get() >= workers {
            return;
        }
        self.0.count.store(workers, Ordering::SeqCst);
        state.version = state.version.wrapping_add(1);
        drop(state);
        self.wake_all();
    }

    /// Wakes every listener, and changes nothing. For runtimes. O(n) in the listeners.
    pub fn wake_all(&self) {
        let waiting = mem::take(&mut self.lock().waiting);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Returns the number that was set last. O(1).
    pub fn get(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Returns a listener to changes. For runtimes. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Poll, Waker};
    /// use requeue::Concurrency;
    ///
    /// let concurrency = Concurrency::new(4);
    /// let mut changes = concurrency.changes();
    /// assert_eq!(changes.wanted(false), 4);
    /// assert_eq!(changes.poll_set(Waker::noop()), Poll::Pending);
    ///
    /// concurrency.set(0);
    /// concurrency.set(4);
    /// assert_eq!(changes.poll_set(Waker::noop()), Poll::Ready(()), "it was set meanwhile");
    /// ```
    pub fn changes(&self) -> Changes {
        let mut state = self.lock();
        state.last_id = state.last_id.wrapping_add(1);
        let (id, seen) = (state.last_id, state.version);
        drop(state);
        let of = self.clone();
        Changes { of, id, seen }
    }

    /// No foreign code runs under this lock, so a poisoned lock is harmless.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Concurrency").field(&self.get()).finish()
    }
}

/// Listens to changes of the number of workers. Made by [`Concurrency::changes`]. For runtimes.
#[derive(Debug)]
pub struct Changes {
    of: Concurrency,
    id: u64,
    /// The version at the last call of `wanted`.
    seen: u64,
}

impl Changes {
    /// Returns how many workers there should be, and notes the number as seen. In a queue that
    /// `is_closed` that is one at least, because a drain has to end. O(1).
    pub fn wanted(&mut self, is_closed: bool) -> usize {
        let state = self.of.lock();
        self.seen = state.version;
        self.of.get().max(usize::from(is_closed))
    }

    /// Returns whether the number was set since the last [`wanted`](Self::wanted), even to the same
    /// number. If not, has `waker` called by the next [`set`](Concurrency::set) or
    /// [`wake_all`](Concurrency::wake_all), and forgets the waker of the last call. O(n) in the
    /// runs that share the number.
    pub fn poll_set(&mut self, waker: &Waker) -> Poll<()> {
        // Cloned and dropped outside of the lock, because a waker is foreign code.
        let own = waker.clone();
        let mut state = self.of.lock();
        if state.version != self.seen {
            drop(state);
            return Poll::Ready(());
        }
        let stale = state.remove(self.id);
        state.waiting.push((self.id, own));
        drop(state);
        drop(stale);
        Poll::Pending
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let stale = self.of.lock().remove(self.id);
        drop(stale);
    }
}

impl State {
    fn remove(&mut self, id: u64) -> Option<(u64, Waker)> {
        let at = self.waiting.iter().position(|(other, _)| *other == id)?;
        Some(self.waiting.swap_remove(at))
    }
}

impl<K, E: fmt::Debug> Workers<'_, K, E> {
    /// Creates settings for as many workers as there are ready keys: no key waits for a worker. The
    /// number doubles whenever all workers are busy, and never shrinks. A worker that waits costs a
    /// task, or on threads a thread: there, prefer a number. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, u32, String> = Workers::unbounded();
    /// assert_eq!(workers.count(), 1, "until a run begins");
    /// ```
    pub fn unbounded() -> Self {
        let wanted = Concurrency::new(1);
        let (workers, active) = (Self::new(1).concurrency(&wanted), AtomicUsize::new(0));
        workers.on_event(move |_, event| match event {
            RunEvent::Started(_) => {
                let active = active.fetch_add(1, Ordering::SeqCst) + 1;
                if active >= wanted.get() {
                    wanted.raise(active.saturating_mul(2));
                }
            }
            RunEvent::Finished { .. } | RunEvent::Failed { .. } | RunEvent::Aborted => {
                active.fetch_sub(1, Ordering::SeqCst);
            }
            RunEvent::Overdue(_) => {}
        })
    }
}

impl<K, E> Workers<'_, K, E> {
    /// Takes the number of workers from `concurrency`, so that it can change while they work. O(1).
    pub fn concurrency(mut self, concurrency: &Concurrency) -> Self {
        self.count = concurrency.clone();
        self
    }

    /// Returns where the number of workers comes from. For runtimes. O(1).
    pub fn wanted(&self) -> &Concurrency {
        &self.count
    }
}

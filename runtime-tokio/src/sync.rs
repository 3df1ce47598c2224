//! The lock and the waker of tasks: parking_lot's `Mutex`, and two lines of tasks that wait.
//!
//! Everything here that synchronises, and the tasks that it starts, come through this file, so that
//! another library can be put in its place: `--cfg shuttle` explores schedules. parking_lot's mutex
//! is not poisoned by a panic, which suits a queue that is valid wherever foreign code may panic.
//!
//! # Order of locks
//!
//! The queue's lock comes first, a line's second, and nothing is awaited, woken or dropped under
//! either that could come back for one of them: a task's waker is foreign code, which may run or
//! drop the task on the spot.

use std::collections::BTreeMap;
use std::mem;
use std::task;

use requeue_core::{Lock, Waker};

#[cfg(shuttle)]
mod shuttle;

#[cfg(shuttle)]
pub(crate) use self::shuttle::{JoinSet, Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use tokio::task::JoinSet;

/// A [`Mutex`] as core's [`Lock`].
#[derive(Debug)]
pub struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

impl<T> Lock for Locked<T> {
    type State = T;

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }
}

/// Wakes tasks: those that wait for a key, and those that wait for the drain.
#[derive(Debug, Default)]
pub struct Wakers {
    pub(crate) getters: Line,
    pub(crate) drains: Line,
}

impl Waker for Wakers {
    fn wake_one(&self) {
        self.getters.wake_first();
    }

    fn wake_all(&self) {
        self.getters.wake_all();
        self.drains.wake_all();
    }

    /// Always: an aborted task drops its guards without a panic, so that a guard which is dropped
    /// cannot tell whether its work is over. Only being told counts.
    fn is_abandoned(&self) -> bool {
        true
    }
}

/// Tasks that wait, in the order in which they came. Every step is O(log n) in the tasks.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    taken: BTreeMap<u64, task::Waker>,
    /// Numbers the places. 64 bits outlast any program.
    next: u64,
}

/// Where somebody stands in a [`Line`]. It stays theirs when they are woken, so that whoever finds
/// nothing goes back to where they stood.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<u64>);

impl Line {
    /// Stands in line to be woken by `waker`: at the end the first time, then at the same place.
    /// Answers the waker that stood there before, to be dropped once nothing is locked.
    #[must_use = "a waker is dropped once nothing is locked"]
    pub(crate) fn stand(&self, place: &mut Place, waker: task::Waker) -> Option<task::Waker> {
        let mut places = self.0.lock();
        let number = *place.0.get_or_insert_with(|| {
            places.next += 1;
            places.next
        });
        places.taken.insert(number, waker)
    }

    /// Lets another waker stand at the place of one that has not been woken. Answers whether there
    /// was one.
    pub(crate) fn renew(&self, place: &Place, waker: &task::Waker) -> bool {
        let Some(number) = place.0 else {
            return false;
        };
        // Cloned before the lock and dropped behind it.
        let mut waker = waker.clone();
        let mut places = self.0.lock();
        let stands = places.taken.get_mut(&number);
        let stands = stands.map(|present| mem::swap(present, &mut waker));
        drop(places);
        stands.is_some()
    }

    /// Steps out of the line, and keeps the place. Answers the waker that stood there, to be
    /// dropped once nothing is locked; nothing if it was woken.
    #[must_use = "a waker is dropped once nothing is locked"]
    pub(crate) fn step_out(&self, place: &Place) -> Option<task::Waker> {
        let number = place.0?;
        self.0.lock().taken.remove(&number)
    }

    fn wake_first(&self) {
        let first = self.0.lock().taken.pop_first();
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    fn wake_all(&self) {
        let all = mem::take(&mut self.0.lock().taken);
        for waker in all.into_values() {
            waker.wake();
        }
    }
}

//! The port behind a lock, for threads.

use core::hash::{BuildHasher, Hash};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Port;

/// The port with a `Mutex` and a `Condvar`. As in client-go, the `Condvar` is notified under the
/// lock, even if no thread waits.
#[derive(Debug)]
pub struct SharedPort<K, H> {
    state: Mutex<State<K, H>>,
    ready: Condvar,
}

#[derive(Debug)]
struct State<K, H> {
    port: Port<K, H>,
    is_shutting_down: bool,
}

impl<K, H: Default> Default for SharedPort<K, H> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                port: Port::default(),
                is_shutting_down: false,
            }),
            ready: Condvar::new(),
        }
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> SharedPort<K, H> {
    /// `Add`.
    pub fn add(&self, key: K) {
        let mut state = self.lock();
        if state.port.add(key) {
            self.ready.notify_one();
        }
    }

    /// `Get`: waits for a key. `None` once the queue is shut down and empty.
    pub fn get(&self) -> Option<K> {
        let mut state = self.lock();
        while state.port.is_empty() && !state.is_shutting_down {
            state = self
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.port.get()
    }

    /// `Done`.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        if state.port.done(key) {
            self.ready.notify_one();
        }
    }

    /// `ShutDown`.
    pub fn shut_down(&self) {
        self.lock().is_shutting_down = true;
        self.ready.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<K, H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! How long each key has failed, so that workers can give it up. Owns the first failure of each
//! key; never ends a run.

use alloc::boxed::Box;
use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Workers;
use super::run::Runs;
use crate::Instant;
use crate::store::growable::RandomState;

/// When each key first failed since its last success.
struct FirstFailures<K> {
    limit: Duration,
    state: Mutex<State<K>>,
}

struct State<K> {
    firsts: HashMap<K, Instant, RandomState>,
    /// At this number of keys, keys that the queue no longer has are removed.
    sweep_at: usize,
}

const SWEEP_MIN: usize = 64;

impl<'w, K, E> Workers<'w, K, E> {
    /// Gives a key up once it has failed for this long: at the first failure that ends so long
    /// after the first one since the key last worked. There is no limit by default. With
    /// [`max_retries`](Self::max_retries), what comes first counts.
    ///
    /// A retry that waits for its backoff is not given up meanwhile. [`Duration::ZERO`] gives a key
    /// up at its first failure, [`Duration::MAX`] never.
    ///
    /// These workers keep the time of the first failure of each key that is to be retried: a copy
    /// of the key and 8 bytes, as long as the queue has the key. So only their own runs count.
    /// Costs O(1) per run, amortized: from time to time a failure looks for keys that the queue has
    /// let go, O(n) in the keys that are to be retried, each under a lock of its own.
    ///
    /// As [`max_retries`](Self::max_retries), it needs a limiter that counts failures. With
    /// another, each failure is the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, String, String> = Workers::new(4)
    ///     .max_retries(20)
    ///     .give_up_after(Duration::from_secs(3600))
    ///     .on_give_up(|node, failure| eprintln!("{node} is down: {failure}"));
    /// # let _ = workers;
    /// ```
    pub fn give_up_after(mut self, age: Duration) -> Self
    where
        K: Eq + Hash + Clone + Send + 'w,
    {
        let state = State {
            firsts: HashMap::default(),
            sweep_at: SWEEP_MIN,
        };
        let firsts = FirstFailures {
            limit: age,
            state: Mutex::new(state),
        };
        let is_too_old = move |key: &K, attempt, queue: &dyn Runs<K>| {
            let Some(attempt) = attempt else {
                firsts.forget(key);
                return false;
            };
            firsts.is_too_old(key, attempt, queue)
        };
        self.is_too_old = (age != Duration::MAX).then(|| Box::new(is_too_old) as _);
        self
    }
}

impl<K: Eq + Hash + Clone> FirstFailures<K> {
    fn is_too_old(&self, key: &K, attempt: u32, queue: &dyn Runs<K>) -> bool {
        let now = queue.now();
        let known = if attempt == 1 {
            None
        } else {
            self.lock().firsts.get(key).copied()
        };
        let first = known.unwrap_or(now);
        let is_too_old = now.saturating_since(first) >= self.limit;
        if !is_too_old && known.is_none() {
            self.insert(key.clone(), first, queue);
        }
        is_too_old
    }

    fn forget(&self, key: &K) {
        let forgotten = self.lock().firsts.remove_entry(key);
        drop(forgotten);
    }

    fn insert(&self, key: K, first: Instant, queue: &dyn Runs<K>) {
        let mut state = self.lock();
        if state.firsts.len() >= state.sweep_at {
            state.firsts.retain(|key, _| queue.contains(key));
            state.sweep_at = state.firsts.len().saturating_mul(2).max(SWEEP_MIN);
        }
        state.firsts.insert(key, first);
    }

    /// A key whose code panics leaves the table valid.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

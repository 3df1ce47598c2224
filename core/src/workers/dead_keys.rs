//! A list of keys that were given up. Owns their order and the limit on them; never adds a key to a
//! queue by itself.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::outcome::{Added, Rejected};
use crate::producer::Producer;

/// A list of the keys that were given up, and of the reasons. You can look at them, retry them and
/// drop them, as in a job server. Clones share the list.
///
/// It is filled in [`on_give_up`](super::Workers::on_give_up), and holds a fixed number of keys. If
/// it is full, the oldest key is evicted and passed to a hook, so no key is lost silently.
///
/// The list knows no queue. A key in the list can be added and run like any other.
///
/// # Examples
///
/// ```
/// use requeue::{DeadKeys, Failure, Workers};
///
/// let dead = DeadKeys::new(1000, |key: String, why| eprintln!("{key} is forgotten: {why}"));
/// let list = dead.clone();
/// let workers = Workers::new(4)
///     .max_retries(5)
///     .on_give_up(move |key: &String, failure: Failure<std::io::Error>| {
///         list.insert(key.clone(), failure.to_string());
///     });
/// # let _ = workers;
///
/// dead.insert(String::from("node-7"), String::from("no route"));
/// let shown: Vec<_> = dead.map(10, |key, why| format!("{key}: {why}"));
/// assert_eq!(shown, ["node-7: no route"]);
/// assert_eq!(dead.remove("node-7").as_deref(), Some("no route"));
/// assert!(dead.is_empty());
/// ```
pub struct DeadKeys<K, W>(Arc<Shared<K, W>>);

struct Shared<K, W> {
    /// Oldest first.
    keys: Mutex<VecDeque<(K, W)>>,
    capacity: usize,
    on_overflow: Box<OnOverflow<K, W>>,
}

type OnOverflow<K, W> = dyn Fn(K, W) + Send + Sync;

impl<K: Eq, W> DeadKeys<K, W> {
    /// Creates an empty list for `capacity` keys. `on_overflow` receives a key that is evicted: the
    /// oldest, or a new one if the capacity is zero. It runs on the thread that adds one, and may
    /// use the list. O(1): memory is taken as keys come.
    pub fn new(capacity: usize, on_overflow: impl Fn(K, W) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            keys: Mutex::new(VecDeque::new()),
            capacity,
            on_overflow: Box::new(on_overflow),
        }))
    }

    /// Inserts a key at the end, as the newest. A key that is in the list moves there, and what was
    /// known of it is returned. O(n) in the keys of the list, under its lock.
    pub fn insert(&self, key: K, why: W) -> Option<W> {
        let mut keys = self.lock();
        let known = position(&keys, &key).and_then(|at| keys.remove(at));
        keys.push_back((key, why));
        self.shrink(keys);
        known.map(|(_, why)| why)
    }

    /// Removes a key, and returns what is known of it. O(n) in the keys of the list, under its
    /// lock.
    pub fn remove<B>(&self, key: &B) -> Option<W>
    where
        K: Borrow<B>,
        B: Eq + ?Sized,
    {
        let mut keys = self.lock();
        let removed = position(&keys, key).and_then(|at| keys.remove(at));
        drop(keys);
        removed.map(|(_, why)| why)
    }

    /// Adds a key to a queue again, and removes it from the list. `None` if it is not in the list.
    /// O(n) in the keys of the list, under its lock, and one [`add`](Producer::add) after it.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with a copy of the key, if the queue does not accept it: then it stays in the
    /// list, in its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::DeadKeys;
    #[doc = include_str!("../shared/example.txt")]
    ///
    /// let dead = DeadKeys::new(1000, |_, _| {});
    /// dead.insert("node-7", "no route");
    /// assert_eq!(dead.retry("node-7", &queue), Some(Ok(Added::Ready)));
    /// assert!(dead.is_empty() && queue.contains("node-7"));
    ///
    /// queue.shut_down();
    /// dead.insert("node-8", "no route");
    /// assert!(matches!(dead.retry("node-8", &queue), Some(Err(_))));
    /// assert_eq!(dead.len(), 1);
    /// ```
    pub fn retry<B>(
        &self,
        key: &B,
        queue: &(impl Producer<K> + ?Sized),
    ) -> Option<Result<Added, Rejected<K>>>
    where
        K: Clone + Borrow<B>,
        B: Eq + ?Sized,
    {
        // Removed first, because the key may run and be inserted again before `add` returns.
        let mut keys = self.lock();
        let at = position(&keys, key)?;
        let (own, why) = keys.remove(at)?;
        drop(keys);
        let added = queue.add(own.clone());
        if added.is_err() {
            self.put_back(at, own, why);
        }
        Some(added)
    }

    /// Inserts a key in its former place, unless it was inserted meanwhile.
    fn put_back(&self, at: usize, key: K, why: W) {
        let mut keys = self.lock();
        if position(&keys, &key).is_none() {
            let at = at.min(keys.len());
            keys.insert(at, (key, why));
        }
        self.shrink(keys);
    }

    /// Removes the oldest key if there are too many.
    fn shrink(&self, mut keys: MutexGuard<'_, VecDeque<(K, W)>>) {
        let oldest = if keys.len() > self.0.capacity {
            keys.pop_front()
        } else {
            None
        };
        drop(keys);
        if let Some((key, why)) = oldest {
            (self.0.on_overflow)(key, why);
        }
    }

    /// Returns what `show` makes of the keys, oldest first, `limit` at most. `show` runs under the
    /// lock of the list, and must not use it. O(`limit`).
    pub fn map<T>(&self, limit: usize, mut show: impl FnMut(&K, &W) -> T) -> Vec<T> {
        let keys = self.lock();
        let shown = keys.iter().take(limit);
        shown.map(|(key, why)| show(key, why)).collect()
    }

    /// Removes and returns all keys, oldest first. O(1), and O(1) per key when they are taken.
    pub fn take_all(&self) -> impl Iterator<Item = (K, W)> + use<K, W> {
        core::mem::take(&mut *self.lock()).into_iter()
    }
}

impl<K, W> DeadKeys<K, W> {
    /// Returns the number of keys. O(1).
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether the list is empty. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A key whose code panics leaves the list valid.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(K, W)>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position<K: Borrow<B>, W, B: Eq + ?Sized>(keys: &VecDeque<(K, W)>, key: &B) -> Option<usize> {
    keys.iter().position(|(other, _)| other.borrow() == key)
}

impl<K, W> Clone for DeadKeys<K, W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, W> fmt::Debug for DeadKeys<K, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadKeys")
            .field("len", &self.len())
            .field("capacity", &self.0.capacity)
            .finish_non_exhaustive()
    }
}

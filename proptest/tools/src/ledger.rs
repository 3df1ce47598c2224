//! What keys were added for, and what has been acted upon.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A ledger of `N` keys, as a level-triggered program sees them: each stands for something that
/// changes, and a run acts upon all changes that it sees as it begins.
///
/// # Examples
///
/// ```
/// use requeue_test_tools::Ledger;
///
/// let ledger = Ledger::<2>::default();
/// let change = ledger.change(1);
/// ledger.accept(1, change);
/// assert!(!ledger.is_settled());
///
/// let run = ledger.begin(1);
/// assert!(!ledger.is_idle());
/// run.succeed();
/// assert!(ledger.is_settled() && ledger.is_idle());
/// ledger.assert_kept();
/// ```
#[derive(Debug)]
pub struct Ledger<const N: usize> {
    keys: [Key; N],
    active: AtomicUsize,
}

#[derive(Debug, Default)]
struct Key {
    /// The newest change.
    newest: AtomicU64,
    /// The newest for which the queue has accepted the key.
    accepted: AtomicU64,
    /// The newest that was acted upon.
    acted: AtomicU64,
    is_active: AtomicBool,
    /// It was handed back after shutdown, and so after all that was accepted of it.
    is_left: AtomicBool,
}

impl<const N: usize> Ledger<N> {
    /// Something has changed, for which the key is to be added. Returns the number of the change.
    pub fn change(&self, key: usize) -> u64 {
        self.keys[key].newest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The queue has accepted the key for this change.
    pub fn accept(&self, key: usize, change: u64) {
        self.keys[key].accepted.fetch_max(change, Ordering::SeqCst);
    }

    /// A run of the key begins, and goes on until the returned value is dropped.
    ///
    /// # Panics
    ///
    /// If another goes on.
    pub fn begin(&self, key: usize) -> Active<'_> {
        let (key, active) = (&self.keys[key], &self.active);
        let was_active = key.is_active.swap(true, Ordering::SeqCst);
        assert!(!was_active, "a key is worked on twice at once");
        active.fetch_add(1, Ordering::SeqCst);
        let sees = key.newest.load(Ordering::SeqCst);
        Active { key, active, sees }
    }

    /// The queue, which is closed, has handed the key back.
    pub fn leave(&self, key: usize) {
        self.keys[key].is_left.store(true, Ordering::SeqCst);
    }

    /// Whether all that was accepted has been acted upon.
    pub fn is_settled(&self) -> bool {
        self.keys.iter().all(Key::is_settled)
    }

    /// Whether no key is active.
    pub fn is_idle(&self) -> bool {
        self.active.load(Ordering::SeqCst) == 0
    }

    /// Nothing was lost: each key is settled, or was handed back.
    ///
    /// # Panics
    ///
    /// If that is not so.
    #[track_caller]
    pub fn assert_kept(&self) {
        for (index, key) in self.keys.iter().enumerate() {
            let is_left = key.is_left.load(Ordering::SeqCst);
            assert!(key.is_settled() || is_left, "key {index} was lost");
        }
    }
}

impl<const N: usize> Default for Ledger<N> {
    fn default() -> Self {
        Self {
            keys: std::array::from_fn(|_| Key::default()),
            active: AtomicUsize::new(0),
        }
    }
}

impl Key {
    fn is_settled(&self) -> bool {
        self.acted.load(Ordering::SeqCst) >= self.accepted.load(Ordering::SeqCst)
    }
}

/// A run that is under way, until it ends in whatever way.
#[derive(Debug)]
pub struct Active<'b> {
    key: &'b Key,
    active: &'b AtomicUsize,
    sees: u64,
}

impl Active<'_> {
    /// It has acted upon what it saw, and ends.
    pub fn succeed(self) {
        self.key.acted.fetch_max(self.sees, Ordering::SeqCst);
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.key.is_active.store(false, Ordering::SeqCst);
        self.active.fetch_sub(1, Ordering::SeqCst);
    }
}

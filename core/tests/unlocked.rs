//! Which foreign code runs while the lock is held, and which does not.

use std::cell::{Cell, RefCell};
#[cfg(feature = "alloc")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

#[cfg(feature = "alloc")]
use requeue_core::Batch;
use requeue_core::binding::{Clock, FixedWaitList, Host, Lock, Shared, State};
use requeue_core::limiter::{DefaultItemBased, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, AddOptions, Instant, Queue};

/// How often the lock was taken, whether it is held, and what was dropped meanwhile.
#[derive(Default)]
struct Seen {
    held: Cell<bool>,
    locks: Cell<u32>,
    dropped_under_lock: Cell<u32>,
    dropped: Cell<u32>,
    /// The key whose next drop panics.
    panics: Cell<Option<u16>>,
}

struct Watched<T> {
    state: RefCell<T>,
    seen: Rc<Seen>,
}

impl<T> Lock for Watched<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.state.borrow_mut();
        self.seen.locks.set(self.seen.locks.get() + 1);
        self.seen.held.set(true);
        let done = work(&mut state);
        self.seen.held.set(false);
        done
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::EPOCH
    }
}

#[derive(Clone)]
struct Key(u16, Rc<Seen>);

impl Key {
    fn new(number: u16, seen: &Rc<Seen>) -> Self {
        Self(number, Rc::clone(seen))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        let count = if self.1.held.get() {
            &self.1.dropped_under_lock
        } else {
            &self.1.dropped
        };
        count.set(count.get() + 1);
        if self.1.panics.get() == Some(self.0) {
            self.1.panics.set(None);
            panic!("key {} was dropped", self.0);
        }
    }
}

struct Inner;

impl Host for Inner {
    type Key = Key;
    type Priorities = Plain;
    type Limiter = DefaultItemBased;
    type Storage = Fixed<1000, u16>;
    type Metrics = ();
    type Waiters = FixedWaitList<2>;
    type Clock = Stopped;
    type Lock = Watched<State<Self>>;
}

type Watching = Shared<Inner>;

fn queue() -> (Watching, Rc<Seen>) {
    let seen = Rc::new(Seen::default());
    let lock = Watched {
        state: RefCell::new(State::new(
            Queue::new(default_item_based()),
            FixedWaitList::new(),
        )),
        seen: Rc::clone(&seen),
    };
    (Shared::new(lock, Stopped), seen)
}

#[test]
fn a_key_that_is_there_already_is_dropped_after_the_lock() {
    let (queue, seen) = queue();
    let key = || Key::new(7, &seen);
    queue.add(key()).unwrap();
    assert_eq!(seen.dropped.get(), 0, "a new key is stored");
    queue.add(key()).unwrap();
    queue.add_after(key(), Duration::from_secs(1)).unwrap();
    queue.add_at(key(), Instant::from_nanos(9)).unwrap();
    queue.add_rate_limited(key()).unwrap();
    queue.add_with(key(), AddOptions::new()).unwrap();
    let retried = AddOptions {
        rate_limited: true,
        ..AddOptions::new()
    };
    queue.add_with(key(), retried).unwrap();
    assert_eq!((seen.dropped.get(), seen.dropped_under_lock.get()), (6, 0));
    queue.shut_down();
    drop(queue.add(key()));
    assert_eq!((seen.dropped.get(), seen.dropped_under_lock.get()), (7, 0));
}

const KEYS: u16 = 1_000;
/// With every set of features: another crate of a program may turn `alloc` on.
const KEYS_PER_LOCK: usize = 8;
const CHUNKS: u32 = (KEYS as u32).div_ceil(KEYS_PER_LOCK as u32);

#[test]
fn a_batch_is_added_in_chunks_and_its_iterator_runs_unlocked() {
    let (queue, seen) = queue();
    let mut left = KEYS + 3;
    let keys = std::iter::from_fn(|| {
        assert!(!seen.held.get());
        left = left.checked_sub(1)?;
        Some(Key::new(left, &seen))
    });
    let mut refused = Vec::new();
    let many = queue.add_many(keys, |rejected| {
        assert!(!seen.held.get());
        refused.push(rejected.into_key().0);
    });
    assert_eq!((many.ready, many.rejected), (usize::from(KEYS), 3));
    assert_eq!(refused, [2, 1, 0]);
    assert_eq!(
        seen.locks.get(),
        (u32::from(KEYS) + 3).div_ceil(KEYS_PER_LOCK as u32)
    );

    let again = (3..KEYS + 3).map(|key| Key::new(key, &seen));
    assert_eq!(queue.add_many(again, |_| {}).coalesced, usize::from(KEYS));
    assert_eq!(seen.dropped_under_lock.get(), 0, "they are there already");
    assert_eq!(seen.dropped.get(), 3 + u32::from(KEYS));
}

#[test]
fn a_batch_that_fills_its_chunks_takes_no_further_lock_but_for_the_end() {
    let (queue, seen) = queue();
    let keys = (0..KEYS_PER_LOCK as u16).map(|key| Key::new(key, &seen));
    assert_eq!(queue.add_many(keys, |_| {}).ready, KEYS_PER_LOCK);
    assert_eq!(queue.add_many([], |_| {}).ready, 0);
    assert_eq!(seen.locks.get(), 1);
}

#[test]
fn many_runs_end_in_chunks() {
    let (queue, seen) = queue();
    queue.add_many((0..KEYS).map(|key| Key::new(key, &seen)), |_| {});
    let tickets: Vec<_> = std::iter::from_fn(|| queue.try_get()?.into_ticket()).collect();
    let before = seen.locks.get();
    let mut looks = Vec::new();
    let tickets = tickets.into_iter().inspect(|_| {
        assert!(!seen.held.get());
        looks.push(queue.stats().active);
    });
    queue.finish_many(tickets, Action::Success);
    assert_eq!(seen.locks.get() - before, CHUNKS + u32::from(KEYS));
    // Between two chunks others see those that have ended.
    let ended = |place: usize| place / KEYS_PER_LOCK * KEYS_PER_LOCK;
    let expected = (0..looks.len()).map(|place| usize::from(KEYS) - ended(place));
    assert!(looks.iter().copied().eq(expected));
}

#[cfg(feature = "alloc")]
#[test]
fn a_key_that_panics_does_not_keep_the_other_runs_of_its_batch_active() {
    let (queue, seen) = queue();
    queue.add_many((0..KEYS).map(|key| Key::new(key, &seen)), |_| {});
    let batch = Batch::take(&queue, usize::from(KEYS));
    seen.panics.set(Some(0));
    let ended = catch_unwind(AssertUnwindSafe(|| batch.success()));
    assert!(ended.is_err(), "the panic goes on");
    assert_eq!(queue.stats().total, 0);
}

#[cfg(feature = "alloc")]
#[test]
fn a_batch_is_taken_and_ended_in_chunks() {
    let (queue, seen) = queue();
    queue.add_many((0..KEYS).map(|key| Key::new(key, &seen)), |_| {});
    let before = seen.locks.get();
    let batch = Batch::take(&queue, usize::from(KEYS));
    assert!(batch.keys().map(|key| key.0).eq(0..KEYS));
    assert_eq!(seen.locks.get() - before, CHUNKS);
    batch.success();
    assert_eq!(seen.locks.get() - before, 2 * CHUNKS);
    assert_eq!(queue.stats().total, 0);

    queue.add_many((0..5).map(|key| Key::new(key, &seen)), |_| {});
    let batch = Batch::take(&queue, usize::MAX);
    assert_eq!(batch.len(), 5, "as many as there are");
    batch.success();
}

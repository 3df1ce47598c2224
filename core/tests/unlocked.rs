//! Which foreign code runs while the lock is held, and which does not.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::{Clock, FixedWaitList, Lock, State, WorkQueue};
use requeue_core::{
    AddOptions, DefaultItemBased, Fixed, Instant, NoMetrics, Queue, default_item_based,
};

/// How often the lock was taken, whether it is held, and what was dropped meanwhile.
#[derive(Default)]
struct Seen {
    held: Cell<bool>,
    locks: Cell<u32>,
    dropped_under_lock: Cell<u32>,
    dropped: Cell<u32>,
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
    }
}

type Inner = State<Key, Fixed<1000, u16>, DefaultItemBased, NoMetrics, FixedWaitList<2>>;
type Watching = WorkQueue<Watched<Inner>, Stopped>;

fn queue() -> (Watching, Rc<Seen>) {
    let seen = Rc::new(Seen::default());
    let lock = Watched {
        state: RefCell::new(State::new(
            Queue::new(default_item_based()),
            FixedWaitList::new(),
        )),
        seen: Rc::clone(&seen),
    };
    (WorkQueue::new(lock, Stopped), seen)
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

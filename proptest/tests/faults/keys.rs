//! Keys whose own code panics, in a queue that threads or tasks wait on.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use requeue_core::binding::{AsShared, Host, Shared};
use requeue_core::{Action, Guard, WaitError};
use requeue_test_tools::in_time;
use tokio::runtime::Builder;

/// A key whose code panics when its thread says so: at the n-th call from now.
#[derive(Debug)]
struct Fragile(u8);

thread_local! {
    static FUSE: Cell<u32> = const { Cell::new(0) };
}

/// What a key panics with.
#[derive(Debug)]
struct OnPurpose;

fn burn() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    if left == 1 {
        std::panic::resume_unwind(Box::new(OnPurpose));
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.0 == other.0
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        state.write_u8(self.0);
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        burn();
        Self(self.0)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if !thread::panicking() {
            burn();
        }
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const KEYS: u8 = 6;
/// More calls of a key's code than one thread makes.
const FUSE_MAX: u32 = 120;

/// Sees every key that is found, before it is completed.
type Find<'f> = &'f (dyn Fn(&Fragile) + Sync);

/// What waits, of the queues of threads and of tasks. The getter that takes a key completes it.
trait Keys: AsShared<Host: Host<Key = Fragile>> + Sync {
    fn new() -> Self;
    fn take_in_time(&self, find: Find<'_>);
    fn take_many(&self, find: Find<'_>);
    fn take_and_next(&self, find: Find<'_>);
    fn work(&self, find: Find<'_>);
    fn drain_all(&self) -> Result<(), WaitError>;

    fn add_key(&self, key: u8) -> bool {
        self.as_shared().add(Fragile(key)).is_ok()
    }

    fn asleep(&self) -> usize {
        self.as_shared().look(|queue| queue.asleep())
    }
}

/// Binds a queue. `$now` ends what may be a future.
macro_rules! bind {
    ($queue:ty, $now:ident) => {
        impl Keys for $queue {
            fn new() -> Self {
                Self::new()
            }

            fn take_in_time(&self, find: Find<'_>) {
                if let Ok(guard) = $now!(self.get_timeout(Duration::ZERO)) {
                    find(guard.key());
                    guard.success();
                }
            }

            fn take_many(&self, find: Find<'_>) {
                // Ready, so that no getter has to wait.
                self.add_key(KEYS);
                if let Ok(batch) = $now!(self.get_many(2)) {
                    batch.keys().for_each(find);
                    batch.release();
                }
            }

            fn take_and_next(&self, find: Find<'_>) {
                let Some(guard) = self.try_get() else {
                    return;
                };
                find(guard.key());
                // Dirty, so that there is a next one.
                self.add_key(guard.0);
                if let Ok(guard) = $now!(self.next(guard, Action::Release)) {
                    find(guard.key());
                    guard.success();
                }
            }

            fn work(&self, find: Find<'_>) {
                while let Ok(guard) = $now!(self.get()) {
                    find(guard.key());
                    guard.success();
                }
            }

            fn drain_all(&self) -> Result<(), WaitError> {
                $now!(self.drain())
            }
        }
    };
}

macro_rules! at_once {
    ($value:expr) => {
        $value
    };
}

/// On a runtime of its own, since each thread needs one.
macro_rules! awaited {
    ($future:expr) => {
        Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on($future)
    };
}

bind!(requeue_std::WorkQueue<Fragile>, at_once);
bind!(requeue_tokio::WorkQueue<Fragile>, awaited);

/// The key that is ready first, if there is one, which is completed.
fn take<H: Host<Key = Fragile>>(queue: &Shared<H>, find: Find<'_>) {
    if let Some(work) = queue.with(|session| session.try_get()) {
        let guard = Guard::new(work, queue);
        find(guard.key());
        guard.finish(Action::Release);
    }
}

/// Does a step with the fuse lit. Returns `None` if it panicked.
fn try_to<T>(step: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(value) => Some(value),
        Err(panic) => {
            assert!(panic.is::<OnPurpose>(), "another panic than that of a key");
            None
        }
    }
}

/// One thread does one step after the other, of which one panics; before or afterwards two others
/// come to work. Every key that was accepted is found. Returns whether a step panicked.
fn survives<Q: Keys>(fuse: u32, are_early: bool) -> bool {
    let queue = &Q::new();
    let shared = queue.as_shared();
    let found = Mutex::new(HashSet::new());
    let find = &|key: &Fragile| {
        found.lock().unwrap().insert(key.0);
    };
    let mut accepted = HashSet::new();
    let mut panicked = false;
    thread::scope(|scope| {
        let work = || {
            for _ in 0..2 {
                scope.spawn(|| queue.work(find));
            }
        };
        if are_early {
            work();
            while queue.asleep() < 2 {
                thread::yield_now();
            }
        }
        FUSE.set(fuse);
        for key in 0..KEYS {
            let added = try_to(|| match key % 3 {
                0 => shared.add(Fragile(key)).is_ok(),
                1 => shared.add_after(Fragile(key), HOUR).is_ok(),
                _ => shared.add_rate_limited(Fragile(key)).is_ok(),
            });
            panicked |= added.is_none();
            if added == Some(true) {
                accepted.insert(key);
            }
        }
        panicked |= try_to(|| take(shared, find)).is_none();
        if !are_early {
            panicked |= try_to(|| queue.take_many(find)).is_none();
        }
        panicked |= try_to(|| queue.add_key(0)).is_none();
        panicked |= try_to(|| queue.take_and_next(find)).is_none();
        panicked |= try_to(|| queue.add_key(3)).is_none();
        panicked |= try_to(|| queue.take_in_time(find)).is_none();
        panicked |= try_to(|| shared.forget(&Fragile(2))).is_none();
        FUSE.set(0);
        if !are_early {
            work();
        }
        assert!(queue.add_key(KEYS + 1), "it takes keys as before");
        accepted.insert(KEYS + 1);
        assert_eq!(queue.drain_all(), Ok(()));
    });
    for left in shared.leftovers() {
        find(&left.key);
    }
    let found = found.lock().unwrap();
    let lost: Vec<_> = accepted.difference(&found).collect();
    assert!(lost.is_empty(), "fuse {fuse}: lost {lost:?}");
    panicked
}

fn survives_all<Q: Keys + 'static>() {
    in_time(|| {
        let alone = (1..=FUSE_MAX).filter(|fuse| survives::<Q>(*fuse, false));
        let panicked = alone.count();
        assert!((20..FUSE_MAX as usize).contains(&panicked), "{panicked}");
        (1..=FUSE_MAX).for_each(|fuse| {
            survives::<Q>(fuse, true);
        });
    });
}

#[test]
fn a_key_that_panics_leaves_threads_a_queue_that_works() {
    survives_all::<requeue_std::WorkQueue<Fragile>>();
}

#[test]
fn a_key_that_panics_leaves_tasks_a_queue_that_works() {
    survives_all::<requeue_tokio::WorkQueue<Fragile>>();
}

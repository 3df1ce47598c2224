//! Keys whose `Clone` panics, which happens under the queue's lock.
//!
//! All threads of a schedule share one thread of the system: while one unwinds, the others seem to.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::iter::repeat_n;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use requeue_schedules::{Shares, Tasks, begin, explore, quiet};
use requeue_std::binding::{AsShared, Host};
use requeue_std::priority::Plain;
use requeue_std::storage::Growable;
use requeue_std::{Action, Leftover};
use shuttle::future::{block_on, yield_now};

/// A key that panics when it, or a copy, is copied for a certain time.
#[derive(Debug)]
struct Fragile {
    name: u32,
    copies: Arc<AtomicUsize>,
    breaks_at: usize,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.copies.fetch_add(1, Ordering::SeqCst) + 1 == self.breaks_at {
            // Without the hook, which would take it for the end of the test.
            resume_unwind(Box::new("broken"));
        }
        Self {
            name: self.name,
            copies: Arc::clone(&self.copies),
            breaks_at: self.breaks_at,
        }
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Three keys, of which the second panics when it is copied for the first time, or the second, and
/// so on.
fn fill<Q: AsShared<Host: Host<Key = Fragile>>>(queue: &Q, breaks_at: usize) {
    for name in [1, 2, 3] {
        let breaks_at = if name == 2 { breaks_at } else { 0 };
        let key = Fragile {
            name,
            copies: Arc::default(),
            breaks_at,
        };
        queue.as_shared().add(key).unwrap();
    }
}

#[derive(Clone, Default)]
struct Done(Arc<Mutex<Vec<u32>>>);

impl Done {
    fn push(&self, key: &Fragile) {
        self.0.lock().unwrap().push(key.name);
    }

    /// Each key is done, or left.
    #[track_caller]
    fn is_all(&self, left: impl IntoIterator<Item = Leftover<Fragile>>) {
        left.into_iter().for_each(|left| self.push(&left.key));
        let mut done = self.0.lock().unwrap();
        done.sort_unstable();
        done.dedup();
        assert_eq!(*done, [1, 2, 3]);
    }
}

/// Threads that do this. Returns how many have ended.
fn threads(works: Vec<impl FnOnce() + 'static>) -> Rc<Cell<usize>> {
    let ended = Rc::new(Cell::new(0));
    let threads = works.into_iter().map(|work| {
        let ended = Rc::clone(&ended);
        async move {
            work();
            ended.set(ended.get() + 1);
        }
    });
    begin(threads.collect());
    ended
}

/// A worker whose call panics makes it again. Each key that it cannot take is left to another call.
#[test]
fn a_key_that_cannot_be_copied_is_left_to_another() {
    let times = |_, count| (1..=3).cycle().take(count);
    explore::<usize, _>("keys that cannot be copied", times, |breaks_at| {
        let (queue, done) = (requeue_std::WorkQueue::new(), Done::default());
        let work = {
            let (queue, done) = (queue.clone(), done.clone());
            move || {
                let mut next = queue.get();
                while let Ok(guard) = next {
                    done.push(&guard);
                    next = queue.next(guard, Action::Success);
                }
            }
        };
        let worker = |()| {
            let work = work.clone();
            move || while catch_unwind(AssertUnwindSafe(&work)).is_err() {}
        };
        let ended = threads([(); 2].map(worker).into());
        fill(&queue, *breaks_at);
        quiet();
        done.is_all([]);
        queue.shut_down();
        quiet();
        assert_eq!(ended.get(), 2, "a worker sleeps for ever");
    });
}

/// The others go on, and the run panics once they have ended.
#[test]
fn a_worker_that_a_key_kills_leaves_all_keys_to_the_others() {
    explore::<usize, _>(
        "run, threads: a key that cannot be copied",
        once,
        |breaks_at| {
            let (queue, done) = (requeue_std::WorkQueue::<Fragile>::new(), Done::default());
            fill(&queue, *breaks_at);
            let (running, doing) = (queue.clone(), done.clone());
            let run = move || running.run(2, |key| doing.push(key));
            let run = move || _ = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            let ended = threads(vec![run]);
            done.is_all([]);
            queue.shut_down();
            quiet();
            assert_eq!(ended.get(), 1, "the run does not end");
        },
    );
}

/// The run panics at once, and another does the rest.
#[test]
fn a_key_that_kills_its_worker_ends_the_run_and_nothing_is_lost() {
    let scenario = |breaks_at: &usize| {
        let (queue, done) = (requeue_tokio::WorkQueue::<Fragile>::new(), Done::default());
        fill(&queue, *breaks_at);
        let run = || {
            let (queue, done) = (queue.clone(), done.clone());
            move || {
                let run = queue.run(2, move |key: Fragile| {
                    let done = done.clone();
                    async move {
                        yield_now().await;
                        done.push(&key);
                    }
                });
                block_on(run.into_future())
            }
        };
        let killed = run();
        let killed = move || _ = catch_unwind(AssertUnwindSafe(killed)).unwrap_err();
        let ended = threads(vec![killed]);
        assert!(ended.get() == 1 && !queue.is_shutting_down());
        queue.shut_down();
        let (second, left) = (run(), Rc::new(RefCell::default()));
        let leaves = Rc::clone(&left);
        let ended = threads(vec![move || _ = leaves.replace(second())]);
        assert_eq!(ended.get(), 1, "the second run does not end");
        done.is_all(left.take().into_iter().chain(queue.leftovers()));
    };
    Tasks::<Plain, Growable>::within(|| {
        explore("run, tasks: a key that cannot be copied", once, scenario);
    });
}

fn once(_: u64, count: usize) -> impl Iterator<Item = usize> {
    repeat_n(1, count)
}

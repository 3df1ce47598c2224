//! Who takes part in a scenario.

use std::sync::Arc;
use std::time::Duration;

use requeue_std::binding::{AsShared, Lock};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread::{self, JoinHandle};

use crate::waits::{Keys, Waits};

/// After which a key that has failed once comes back.
pub const SECOND: Duration = Duration::from_secs(1);

/// A thread that does something with the queue.
pub fn with<Q: Waits, T: Send + 'static>(
    queue: &Q,
    work: impl FnOnce(&Q) -> T + Send + 'static,
) -> JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || work(&queue))
}

/// A queue that is full of keys 1 and 2, which are ready.
pub fn full<Q: Waits>() -> Q::Bounded {
    let queue = Q::bounded();
    queue.as_shared().add_many([1, 2], |_| unreachable!());
    queue
}

/// A thread that shuts the queue down, sooner or later.
pub fn stopper<Q: Waits>(queue: &Q) -> JoinHandle<()> {
    with(queue, |queue| {
        at_any_moment();
        queue.as_shared().shut_down();
    })
}

/// Threads that each take this many keys, say which, and complete them.
pub fn getters<Q: Waits>(
    queue: &Q,
    getters: usize,
    count: usize,
) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    each(queue, getters, move |queue, taken| {
        for _ in 0..count {
            taken.send(run(queue)).unwrap();
        }
    })
}

/// Threads that take a key each, say which, and keep it active until the gate opens: ending its run
/// would wake others as well.
pub fn holders<Q: Waits>(
    queue: &Q,
    count: usize,
    gate: &Arc<Mutex<()>>,
) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let gate = Arc::clone(gate);
    each(queue, count, move |queue, taken| {
        let guard = queue.get().unwrap();
        taken.send(*guard).unwrap();
        drop(gate.lock().unwrap());
        finish::<Q>(guard);
    })
}

fn each<Q: Waits>(
    queue: &Q,
    count: usize,
    work: impl Fn(&Q, Sender<u32>) + Clone + Send + 'static,
) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let thread = |_| {
        let (work, sender) = (work.clone(), sender.clone());
        with(queue, move |queue| work(queue, sender))
    };
    (receiver, (0..count).map(thread).collect())
}

/// Waits for a key, and completes it.
pub fn run<Q: Waits>(queue: &Q) -> u32 {
    finish::<Q>(queue.get().unwrap())
}

/// Completes a key, and forgets its failures.
pub fn finish<Q: Waits>(guard: Keys<'_, Q>) -> u32 {
    let key = *guard;
    guard.success();
    key
}

/// Waits for threads to end.
pub fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// The next keys that threads say they have taken, in the order of their values.
pub fn next<const N: usize>(taken: &Receiver<u32>) -> [u32; N] {
    let mut keys = std::array::from_fn(|_| taken.recv().unwrap());
    keys.sort_unstable();
    keys
}

/// Lets another come first.
pub fn interrupt() {
    thread::sleep(Duration::ZERO);
}

/// Lets others come first, for a while that is drawn.
pub fn at_any_moment() {
    for _ in 0..thread_rng().gen_range(0..WHILE_MAX) {
        interrupt();
    }
}

/// Of a few dozen steps that others take in a scenario, those that one who waits can let pass.
const WHILE_MAX: u32 = 16;

/// Checks that nothing is left, and that no call counts as asleep.
///
/// # Panics
///
/// If that is not so.
#[track_caller]
pub fn is_at_rest<Q: AsShared>(queue: &Q) {
    queue.as_shared().lock().with(|state| {
        let queue = state.queue();
        queue.assert_valid();
        assert_eq!((queue.stats().total, queue.asleep()), (0, 0));
    });
}

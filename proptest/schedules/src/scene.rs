//! A queue, and the threads that use it in a scenario.

use std::time::Duration;

use requeue_std::binding::{AsShared, Lock};
use requeue_std::{Leftover, WaitError, Workers};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread::{self, JoinHandle};

use crate::ledger::{Ending, Ledger};
use crate::waits::{Keys, Runs, Waits};

/// After which a key that has failed once comes back.
pub const SECOND: Duration = Duration::from_secs(1);

/// A queue, and threads that use it. In the end all of them end, and the queue is empty.
pub struct Scene<Q: Waits> {
    /// The queue.
    pub queue: Q,
    /// What its workers have done.
    pub ledger: Ledger,
    taken: (Sender<u32>, Receiver<u32>),
    /// Threads that wait for keys, and others.
    waiting: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
    /// Keys are held for as long as these are there.
    gates: Vec<Sender<()>>,
}

impl<Q: Waits> Scene<Q> {
    /// A scene of this queue.
    pub fn new(queue: Q) -> Self {
        Self {
            queue,
            ledger: Ledger::default(),
            taken: channel(),
            waiting: Vec::new(),
            others: Vec::new(),
            gates: Vec::new(),
        }
    }

    /// Plays a scenario, and ends it.
    pub fn play(scenario: fn(&mut Self)) {
        let mut scene = Self::new(Q::new());
        scenario(&mut scene);
        scene.end();
    }

    /// Adds keys for which there is room.
    ///
    /// # Panics
    ///
    /// If a key is refused.
    pub fn add<const N: usize>(&self, keys: [u32; N]) {
        let queue = self.queue.as_shared();
        queue.add_many(keys, |key| panic!("{key:?} is refused"));
    }

    /// A thread that adds keys under one lock.
    pub fn adder<const N: usize>(&mut self, keys: [u32; N]) {
        self.also(move |queue| {
            let queue = queue.as_shared();
            queue.add_many(keys, |key| panic!("{key:?} is refused"));
        });
    }

    /// A thread that does something with the queue.
    pub fn also(&mut self, work: impl FnOnce(&Q) + Send + 'static) {
        self.others.push(with(&self.queue, work));
    }

    /// Threads that each take this many keys, say which, and complete them.
    pub fn getters(&mut self, getters: usize, count: usize) {
        for _ in 0..getters {
            let taken = self.taken.0.clone();
            self.waiting.push(with(&self.queue, move |queue| {
                for _ in 0..count {
                    taken.send(run(queue)).unwrap();
                }
            }));
        }
    }

    /// Threads that take a key each, say which, and keep it active until the scene ends: ending its
    /// run would wake others as well.
    pub fn holders(&mut self, count: usize) {
        for _ in 0..count {
            let taken = self.taken.0.clone();
            let (open, gate) = channel();
            self.gates.push(open);
            self.waiting.push(with(&self.queue, move |queue| {
                let guard = queue.get().unwrap();
                taken.send(*guard).unwrap();
                let _ = gate.recv();
                finish::<Q>(guard);
            }));
        }
    }

    /// A thread that takes keys until the queue is shut down, and does this to each.
    pub fn worker(&mut self, work: impl Fn(u32) + Send + 'static) {
        self.also(move |queue| {
            while let Ok(guard) = queue.get() {
                work(*guard);
                finish::<Q>(guard);
            }
        });
    }

    /// A thread that waits for a key no longer than this.
    pub fn hasty(&self, limit: Duration) -> JoinHandle<Result<u32, WaitError>> {
        let deadline = self.queue.as_shared().now() + limit;
        with(&self.queue, move |queue| {
            queue.get_deadline(deadline).map(finish::<Q>)
        })
    }

    /// Says that a key was taken, as getters do.
    pub fn teller(&self) -> Sender<u32> {
        self.taken.0.clone()
    }

    /// Waits until so many keys are taken, and returns them in the order of their values.
    pub fn taken<const N: usize>(&self) -> [u32; N] {
        let mut keys = std::array::from_fn(|_| self.taken.1.recv().unwrap());
        keys.sort_unstable();
        keys
    }

    /// Waits until these keys are taken, in any order.
    ///
    /// # Panics
    ///
    /// If others are.
    #[track_caller]
    pub fn takes<const N: usize>(&self, keys: [u32; N]) {
        assert_eq!(self.taken(), keys);
    }

    /// Waits for a call that may give up. If it has taken the first key, adds the second. Then
    /// another call that waits takes the key that is left.
    ///
    /// # Panics
    ///
    /// If it has got another, or has not given up in time.
    #[track_caller]
    pub fn either_takes(
        &self,
        hasty: JoinHandle<Result<u32, WaitError>>,
        [first, second]: [u32; 2],
    ) {
        match hasty.join().unwrap() {
            Ok(key) => {
                assert_eq!(key, first);
                self.add([second]);
                self.takes([second]);
            }
            Err(error) => {
                assert_eq!(error, WaitError::TimedOut);
                self.takes([first]);
            }
        }
    }

    /// Waits for the threads that wait for no key.
    pub fn others_end(&mut self) {
        join(self.others.drain(..));
    }

    /// A thread that shuts the queue down, sooner or later.
    pub fn stopper(&mut self) {
        self.also(|queue| {
            at_any_moment();
            queue.as_shared().shut_down();
        });
    }

    /// A thread that adds keys to the queue and to the ledger.
    pub fn producer<const N: usize>(&mut self, keys: [u32; N]) {
        self.others.push(self.ledger.producer(&self.queue, keys));
    }

    /// All threads have ended: see [`Ledger::settle`].
    pub fn settle(&mut self, leftovers: impl IntoIterator<Item = Leftover<u32>>) {
        self.others_end();
        self.ledger.settle(&self.queue, leftovers);
    }

    /// All threads have ended: see [`Ledger::settle_drained`].
    pub fn settle_drained(&mut self, leftovers: Vec<Leftover<u32>>) {
        self.others_end();
        self.ledger.settle_drained(&self.queue, leftovers);
    }

    /// See [`Ledger::run`].
    pub fn run(
        &self,
        workers: Workers<'static, u32, &'static str>,
        ending: impl Fn(u32, u32) -> Ending + Send + Sync + 'static,
    ) -> Vec<Leftover<u32>>
    where
        Q: Runs,
    {
        self.ledger.run(&self.queue, workers, ending)
    }

    /// Every thread ends, and the queue is empty.
    pub fn end(mut self) {
        self.gates.clear();
        join(self.waiting);
        join(self.others);
        is_at_rest(&self.queue);
    }
}

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

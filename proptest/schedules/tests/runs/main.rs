//! `run` of threads, of tasks and of microcontrollers' tasks under many schedules of drawn plans:
//! no key runs twice at once, none is lost, and what is handed back has not been done. While a run
//! goes on, as many workers wait as were last asked for, and none of them beside a ready key. Each
//! run returns once it is stopped, however that is.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod plan;
mod run;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use requeue_proptest::histories::Operation;
use requeue_proptest::limiter::LimiterSpec;
use requeue_proptest::subject::{Answer, Cap, Configuration, GroupOrder, Key, answer_of};
use requeue_schedules::{Caller, SECOND, Tasks, Threads, Trial, begin, explore, quiet};
use requeue_std::binding::{Drained, Host};
use requeue_std::priority::{Groups, Plain, WithSuspension};
use requeue_std::storage::{Growable, Storage};
use requeue_std::{Leftover, refuse_threads};
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};

use crate::plan::{DROPPED, KEYS, Plan, Stop, plans};
use crate::run::{Fixture, Works};

type Boards<P> = requeue_schedules::Boards<P, 16>;

macro_rules! explored {
    ($($name:ident: $queue:ty),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let name = concat!("run, ", stringify!($name));
            explore(name, plans(), play::<$queue>);
        }
    )+};
}

explored! {
    threads: Threads<Plain, Growable>,
    threads_with_groups: Threads<Groups<u8>, Growable>,
    tasks: Tasks<Plain, Growable>,
    tasks_with_groups: Tasks<Groups<u8>, Growable>,
    boards: Boards<WithSuspension>,
    boards_with_groups: Boards<Groups<u8, WithSuspension>>,
}

/// A queue, and what is done to it.
struct World<Q: Works> {
    trial: Trial<Q>,
    fixture: Arc<Fixture<Q>>,
    /// What the runs have handed back.
    left: RefCell<Vec<Leftover<Key>>>,
    ended: Cell<usize>,
}

type Thread = Pin<Box<dyn Future<Output = ()>>>;

fn play<Q: Works>(plan: &Plan) {
    // A failed key is retried after a second.
    let base_ns = SECOND.as_nanos() as u64;
    let max_ns = base_ns;
    let trial = Trial::<Q>::new(&Configuration {
        storage: <<Q::Host as Host>::Storage as Storage>::CAPACITY,
        ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
    });
    let world = Rc::new(World {
        fixture: Arc::new(Fixture::new(Arc::clone(&trial.queue), plan)),
        trial,
        left: RefCell::default(),
        ended: Cell::new(0),
    });
    let queue = &world.trial.queue;
    // One key of each group is active at most.
    let one = Cap {
        max_active: Some(1),
        ..Cap::default()
    };
    let _ = answer_of(queue.shared(), &Operation::Order(GroupOrder::LimitAll(one)));
    let threads = world.threads(plan);
    let count = threads.len();
    begin(threads);
    world.check_workers();
    for _ in 0..3 {
        queue.advance(SECOND);
        quiet();
        world.check_workers();
    }
    queue.shared().shut_down();
    // Each key may hang in two runs.
    for _ in 0..3 * KEYS {
        quiet();
        queue.advance(SECOND);
    }
    quiet();
    if plan.stops.contains(&DROPPED) {
        // A dropped run may give its key back after the others have ended. A drain waits for
        // that key.
        world.left.borrow_mut().extend(queue.shared().leftovers());
        quiet();
    }
    assert_eq!(world.ended.get(), count, "a thread sleeps for ever");
    world.settle();
}

impl<Q: Works> World<Q> {
    fn threads(self: &Rc<Self>, plan: &Plan) -> Vec<Thread> {
        let mut threads = Vec::new();
        // The runs come first: a stop drops the first call that waits.
        for _ in 0..plan.runs {
            threads.push(self.thread(async |world, thread| world.run(thread).await));
        }
        for keys in plan.adds.clone() {
            threads.push(self.thread(async move |world, _| {
                keys.into_iter().for_each(|key| world.fixture.add(key));
            }));
        }
        let changes = plan.changes.clone();
        threads.push(self.thread(async move |world, _| {
            for workers in changes {
                at_any_moment().await;
                world.fixture.concurrency.set(workers);
            }
        }));
        for stop in plan.stops.clone() {
            threads.push(self.thread(async move |world, thread| {
                at_any_moment().await;
                world.stop(thread, stop).await;
            }));
        }
        threads
    }

    fn thread(self: &Rc<Self>, work: impl AsyncFnOnce(&Self, usize) + 'static) -> Thread {
        // shuttle's handles of tasks wake under a lock of the system, where no other thread may run.
        let thread = self.trial.begin_thread_as(Caller::new(|| {}));
        let world = Rc::clone(self);
        Box::pin(async move {
            work(&world, thread).await;
            world.ended.set(world.ended.get() + 1);
        })
    }

    /// Runs workers. If they are dropped, or cannot begin, others do what is left.
    async fn run(&self, thread: usize) {
        let Self { trial, fixture, .. } = self;
        let caller = trial.worker(thread).caller;
        refuse_threads(fixture.plan.refused);
        let left = loop {
            let left = Q::run(fixture, &caller).await;
            refuse_threads(None);
            match left {
                Some(left) => break left,
                None => fixture.queue.shared().shut_down(),
            }
        };
        self.left.borrow_mut().extend(left);
    }

    async fn stop(&self, thread: usize, stop: Stop) {
        let worker = self.trial.worker(thread);
        let stopped = match stop {
            Stop::Token => return self.fixture.token.cancel(),
            Stop::Do(operation) => worker.step(&operation).await,
        };
        if stopped == Some(Answer::Drained(Drained::Complete)) {
            assert!(self.fixture.is_idle(), "it has not drained");
        }
    }

    /// When nothing moves any more, as many workers wait as were asked for, and for a reason.
    fn check_workers(&self) {
        let shared = self.fixture.queue.shared();
        let (asleep, stats) = shared.look(|queue| (queue.asleep(), queue.stats()));
        if shared.is_shutting_down() || !self.fixture.is_idle() {
            return;
        }
        let wanted = self.fixture.wanted();
        assert_eq!(asleep, wanted, "workers that wait");
        assert!(
            wanted == 0 || stats.ready == 0,
            "no worker is woken: {stats:?}"
        );
    }

    /// What workers have done and what is left are together what was accepted.
    fn settle(&self) {
        let Fixture { queue, plan, .. } = &*self.fixture;
        let mut left = [0; KEYS];
        let handed_back = self.left.take();
        for leftover in handed_back.into_iter().chain(queue.shared().leftovers()) {
            left[usize::from(leftover.key)] += 1;
        }
        for (key, (account, left)) in self.fixture.accounts().zip(left).enumerate() {
            assert!(!account.is_running, "key {key} is still active");
            let is_kept = left > 0 || !account.is_due();
            assert!(is_kept, "key {key} is lost: {account:?}");
            let is_repeated = account.runs + left > account.asked;
            assert!(
                !is_repeated,
                "key {key} has come twice: {account:?}, and {left}"
            );
            // The last run of a key sees all of its changes, unless it may be cut short.
            let may_be_cut =
                plan.grace.is_some() || plan.stops.contains(&DROPPED) || plan.refused.is_some();
            let is_tried = account.seen >= account.accepted || may_be_cut;
            assert!(is_tried, "no worker has tried key {key}: {account:?}");
        }
        self.trial.assert_at_rest();
    }
}

/// Lets others come first, for a while that is drawn.
async fn at_any_moment() {
    for _ in 0..thread_rng().gen_range(0..WHILE_MAX) {
        yield_now().await;
    }
}

/// Of a few dozen steps that others take, those that one who waits can let pass.
const WHILE_MAX: u32 = 16;

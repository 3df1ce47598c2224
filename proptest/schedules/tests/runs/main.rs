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

mod fragile;
mod plan;
mod run;

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{Answer, Call, Drain, GroupOrder, Key, answer_of};
use requeue_schedules::{
    Caller, Order, Runs, SECOND, Shares, Tasks, Threads, begin, explore, quiet,
};
use requeue_std::Leftover;
use requeue_std::binding::Drained;
use requeue_std::priority::{Groups, Plain, WithSuspension};
use requeue_std::storage::Growable;
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};

use crate::plan::{KEYS, ONE, Plan, Stop, plans};
use crate::run::{Fixture, Works};

type Boards<P> = requeue_schedules::Boards<P, 16>;

macro_rules! explored {
    ($($name:ident: $queue:ty),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let name = format!("runs, {}", <$queue>::NAME);
            <$queue>::within(|| explore(&name, plans, play::<$queue>));
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
struct Trial<Q: Works> {
    fixture: Arc<Fixture<Q>>,
    /// Where each run is waited for.
    callers: [Caller; 2],
    /// What the runs have handed back.
    left: RefCell<Vec<Leftover<Key>>>,
    ended: Cell<usize>,
}

type Thread = Pin<Box<dyn Future<Output = ()>>>;

fn play<Q: Works>(plan: &Plan) {
    let trial = Rc::new(Trial {
        fixture: Arc::new(Fixture::<Q>::new(plan)),
        callers: Default::default(),
        left: RefCell::default(),
        ended: Cell::new(0),
    });
    let shared = trial.fixture.queue.shared();
    let _ = answer_of(shared, &Operation::Order(GroupOrder::LimitAll(ONE)));
    let threads = trial.threads(plan);
    let count = threads.len();
    begin(threads);
    trial.check_workers();
    for _ in 0..3 {
        Q::advance(SECOND);
        quiet();
        trial.check_workers();
    }
    shared.shut_down();
    // Each key may hang in two runs.
    for _ in 0..3 * KEYS {
        quiet();
        Q::advance(SECOND);
    }
    quiet();
    assert_eq!(trial.ended.get(), count, "a thread sleeps for ever");
    trial.settle();
}

impl<Q: Works> Trial<Q> {
    fn threads(self: &Rc<Self>, plan: &Plan) -> Vec<Thread> {
        let mut threads = Vec::new();
        for keys in plan.adds.clone() {
            threads.push(self.thread(async move |trial| {
                keys.into_iter().for_each(|key| trial.fixture.add(key));
            }));
        }
        for number in 0..plan.runs {
            threads.push(self.thread(async move |trial| trial.run(number).await));
        }
        let changes = plan.changes.clone();
        threads.push(self.thread(async move |trial| {
            for workers in changes {
                at_any_moment().await;
                trial.fixture.concurrency.set(workers);
            }
        }));
        for stop in plan.stops.clone() {
            threads.push(self.thread(async move |trial| {
                at_any_moment().await;
                trial.stop(stop).await;
            }));
        }
        threads
    }

    fn thread(self: &Rc<Self>, work: impl AsyncFnOnce(&Self) + 'static) -> Thread {
        let trial = Rc::clone(self);
        Box::pin(async move {
            work(&trial).await;
            trial.ended.set(trial.ended.get() + 1);
        })
    }

    /// Runs workers. If they are dropped, or cannot begin, others do what is left.
    async fn run(&self, number: usize) {
        let Self {
            fixture, callers, ..
        } = self;
        let mut left = Q::run(fixture, &callers[number], fixture.plan.refused).await;
        if left.is_none() {
            fixture.queue.shared().shut_down();
            left = Q::run(fixture, &Caller::default(), None).await;
        }
        self.left.borrow_mut().extend(left.unwrap());
    }

    async fn stop(&self, stop: Stop) {
        let queue = &self.fixture.queue;
        let call = match stop {
            Stop::ShutDown => return queue.shared().shut_down(),
            Stop::Token => return self.fixture.token.cancel(),
            Stop::Dropped => {
                self.callers[0].give(Order::Drop);
                return;
            }
            Stop::Drain => Operation::Start(Call::Drain),
            Stop::WaitDrained => Operation::Drained(Drain(0)),
        };
        let (caller, mut runs) = (Caller::default(), Runs::new(0));
        let drained = queue.perform(&caller, &call, &mut runs).await;
        if drained == Some(Answer::Drained(Drained::Complete)) {
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
        let wanted = Q::wanted(&self.fixture);
        assert_eq!(asleep as usize, wanted, "workers that wait");
        assert!(
            wanted == 0 || stats.ready == 0,
            "no worker is woken: {stats:?}"
        );
    }

    /// What workers have done and what is left are together what was accepted.
    fn settle(&self) {
        let Fixture { queue, plan, .. } = &*self.fixture;
        let take = || {
            let ready = queue.shared().take_ready();
            ready.or_else(|| queue.shared().take_delayed())
        };
        let mut left = [0; KEYS];
        for leftover in self.left.take().into_iter().chain(std::iter::from_fn(take)) {
            left[usize::from(leftover.key)] += 1;
        }
        for (key, (account, left)) in self.fixture.accounts().iter().zip(left).enumerate() {
            assert!(!account.is_running, "key {key} is still active");
            let is_kept = left > 0 || !account.is_due();
            assert!(is_kept, "key {key} is lost: {account:?}");
            let is_repeated = account.runs + left > account.asked;
            assert!(
                !is_repeated,
                "key {key} has come twice: {account:?}, and {left}"
            );
            let is_tried = account.seen >= account.accepted || !plan.does_all();
            assert!(is_tried, "no worker has tried key {key}: {account:?}");
        }
        queue.shared().look(|queue| {
            queue.assert_valid();
            assert_eq!(queue.asleep(), 0, "who has left counts as asleep");
        });
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

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
use requeue_schedules::{Order, Runs, SECOND, Seat, Shares, Tasks, Threads, begin, explore, quiet};
use requeue_std::Leftover;
use requeue_std::binding::Drained;
use requeue_std::priority::{Groups, Plain, WithSuspension};
use requeue_std::storage::Growable;
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};

use crate::plan::{KEYS, ONE, Plan, Stop, plans};
use crate::run::{Shop, Works};

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
struct Scene<Q: Works> {
    shop: Arc<Shop<Q>>,
    /// Where each run is waited for.
    seats: [Seat; 2],
    /// What the runs have handed back.
    left: RefCell<Vec<Leftover<Key>>>,
    ended: Cell<usize>,
}

type Thread = Pin<Box<dyn Future<Output = ()>>>;

fn play<Q: Works>(plan: &Plan) {
    let scene = Rc::new(Scene {
        shop: Arc::new(Shop::<Q>::new(plan)),
        seats: [(); 2].map(|()| Seat::new(Arc::new(|| ()))),
        left: RefCell::default(),
        ended: Cell::new(0),
    });
    let shared = scene.shop.queue.shared();
    let _ = answer_of(shared, &Operation::Order(GroupOrder::LimitAll(ONE)));
    let threads = scene.threads(plan);
    let count = threads.len();
    begin(threads);
    scene.check_workers();
    for _ in 0..3 {
        Q::advance(SECOND);
        quiet();
        scene.check_workers();
    }
    shared.shut_down();
    // Each key may hang in two runs.
    for _ in 0..3 * KEYS {
        quiet();
        Q::advance(SECOND);
    }
    quiet();
    assert_eq!(scene.ended.get(), count, "a thread sleeps for ever");
    scene.settle();
}

impl<Q: Works> Scene<Q> {
    fn threads(self: &Rc<Self>, plan: &Plan) -> Vec<Thread> {
        let mut threads = Vec::new();
        for keys in plan.adds.clone() {
            threads.push(self.thread(async move |scene| {
                keys.into_iter().for_each(|key| scene.shop.add(key));
            }));
        }
        for number in 0..plan.runs {
            threads.push(self.thread(async move |scene| scene.run(number).await));
        }
        let changes = plan.changes.clone();
        threads.push(self.thread(async move |scene| {
            for workers in changes {
                at_any_moment().await;
                scene.shop.concurrency.set(workers);
            }
        }));
        for stop in plan.stops.clone() {
            threads.push(self.thread(async move |scene| {
                at_any_moment().await;
                scene.stop(stop).await;
            }));
        }
        threads
    }

    fn thread(self: &Rc<Self>, work: impl AsyncFnOnce(&Self) + 'static) -> Thread {
        let scene = Rc::clone(self);
        Box::pin(async move {
            work(&scene).await;
            scene.ended.set(scene.ended.get() + 1);
        })
    }

    /// Runs workers. If they are dropped, or cannot begin, others do what is left.
    async fn run(&self, number: usize) {
        let Self { shop, seats, .. } = self;
        let mut left = Q::run(shop, &seats[number], shop.plan.refused).await;
        if left.is_none() {
            shop.queue.shared().shut_down();
            let seat = Seat::new(Arc::new(|| ()));
            left = Q::run(shop, &seat, None).await;
        }
        self.left.borrow_mut().extend(left.unwrap());
    }

    async fn stop(&self, stop: Stop) {
        let queue = &self.shop.queue;
        let call = match stop {
            Stop::ShutDown => return queue.shared().shut_down(),
            Stop::Token => return self.shop.token.cancel(),
            Stop::Dropped => {
                self.seats[0].give(Order::Drop);
                return;
            }
            Stop::Drain => Operation::Start(Call::Drain),
            Stop::WaitDrained => Operation::Drained(Drain(0)),
        };
        let seat = Seat::new(Arc::new(|| ()));
        let drained = queue.perform(&seat, &call, &mut Runs::new(0)).await;
        if drained == Some(Answer::Drained(Drained::Complete)) {
            assert!(self.shop.is_idle(), "it has not drained");
        }
    }

    /// When nothing moves any more, as many workers wait as were asked for, and for a reason.
    fn check_workers(&self) {
        let shared = self.shop.queue.shared();
        let (asleep, stats) = shared.look(|queue| (queue.asleep(), queue.stats()));
        if shared.is_shutting_down() || !self.shop.is_idle() {
            return;
        }
        let wanted = Q::wanted(&self.shop);
        assert_eq!(asleep as usize, wanted, "workers that wait");
        assert!(
            wanted == 0 || stats.ready == 0,
            "no worker is woken: {stats:?}"
        );
    }

    /// What workers have done and what is left are together what was accepted.
    fn settle(&self) {
        let Shop { queue, plan, .. } = &*self.shop;
        let take = || {
            let ready = queue.shared().take_ready();
            ready.or_else(|| queue.shared().take_delayed())
        };
        let mut left = [0; KEYS];
        for leftover in self.left.take().into_iter().chain(std::iter::from_fn(take)) {
            left[usize::from(leftover.key)] += 1;
        }
        for (key, (account, left)) in self.shop.accounts().iter().zip(left).enumerate() {
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

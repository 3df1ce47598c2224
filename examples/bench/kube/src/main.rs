//! Deadlines, beside the scheduler of kube-runtime: what a controller in Rust has instead of a work
//! queue.
//!
//! `cargo run --release --manifest-path examples/bench/kube/Cargo.toml -- --bench`

#![forbid(unsafe_code)]

use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use futures_core::Stream;
use kube_runtime::scheduler::{ScheduleRequest, Scheduler, scheduler};
use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::{Key, Random};
use requeue_bench::peers::stopped_runtime;
use requeue_bench::subject::{RandomState, ours};
use requeue_bench::workloads::{
    Delayed, Round, SPAN_NANOS, Scale, Sooner, Workload, cpu_time, entries,
};
use tokio::runtime::Runtime;

fn main() {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Deadlines, beside the scheduler of kube-runtime");
    rows::<u64>(&mut suite);
    rows::<String>(&mut suite);
}

fn rows<K: Key>(suite: &mut Suite) {
    for (keys, rounds) in [(1_000, 15), (100_000, 15), (1_000_000, 5)] {
        let scale = Scale {
            keys,
            operations: 20_000,
        };
        let work = format!("delay, expire, take {keys}, {}", K::NAME);
        suite.row(&work, rounds, scale, |scale| {
            let seed = Random::any_seed();
            let mut ours = Delayed::<K, _>::set_up(ours::<K, RandomState>(), scale, seed);
            beside_kube::<K>(scale, seed, move || ours.round(), Kube::expire)
        });
    }
    let scale = Scale {
        keys: 100_000,
        operations: 1,
    };
    let work = format!("an earlier deadline, 100000 waiting, {}", K::NAME);
    suite.row(&work, 15, scale, |scale| {
        let seed = Random::any_seed();
        let mut ours = Sooner::<K, _>::set_up(ours::<K, RandomState>(), scale, seed);
        beside_kube::<K>(scale, seed, move || ours.round(), Kube::sooner)
    });
}

fn beside_kube<K: Key>(
    scale: Scale,
    seed: u64,
    ours: impl FnMut() -> Round + 'static,
    theirs: fn(&mut Kube<K>) -> Round,
) -> Vec<Contender<'static>> {
    let mut contenders = vec![Contender::new("requeue", ours)];
    if let Ok(runtime) = stopped_runtime() {
        let mut kube = Kube::new(runtime, scale, seed);
        let round = move || theirs(&mut kube);
        contenders.push(Contender::new("kube-runtime", round));
    }
    contenders
}

/// The scheduler, and the requests it is to read next.
struct Kube<K> {
    runtime: Runtime,
    requests: Requests<K>,
    scheduler: Pin<Box<Scheduler<K, Requests<K>>>>,
    random: Random,
    scale: Scale,
}

impl<K: Key> Kube<K> {
    fn new(runtime: Runtime, scale: Scale, seed: u64) -> Self {
        let requests = Requests::default();
        let scheduler = runtime.block_on(async { scheduler(requests.clone()) });
        Self {
            runtime,
            scheduler: Box::pin(scheduler),
            requests,
            random: Random::new(seed),
            scale,
        }
    }

    fn expire(&mut self) -> Round {
        self.waves(|this| {
            let entries = entries(&mut this.random, this.scale.keys, 0);
            this.request(entries) + this.advance_and_take()
        })
    }

    fn sooner(&mut self) -> Round {
        self.waves(|this| {
            let mut entries: Vec<(K, u64)> = entries(&mut this.random, this.scale.keys, 0);
            this.request(entries.clone());
            this.random.shuffle(&mut entries);
            let earlier = entries
                .iter()
                .map(|(key, due)| (key.clone(), 1 + this.random.next() % due))
                .collect();
            let time = this.request(earlier);
            this.advance_and_take();
            time
        })
    }

    fn waves(&mut self, wave: impl Fn(&mut Self) -> Duration) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        Round {
            time: (0..waves).map(|_| wave(self)).sum(),
            operations: waves * self.scale.keys,
        }
    }

    /// Lets the scheduler read requests until there are no more.
    fn request(&mut self, entries: Vec<(K, u64)>) -> Duration {
        let (requests, scheduler) = (&self.requests, &mut self.scheduler);
        self.runtime.block_on(tokio::task::unconstrained(async {
            let start = tokio::time::Instant::now();
            let entries = entries.into_iter().map(|(message, due)| ScheduleRequest {
                message,
                run_at: start + Duration::from_nanos(due),
            });
            *requests.0.borrow_mut() = entries.collect::<Vec<_>>().into_iter();
            cpu_time(|| assert!(next(scheduler).is_none(), "nothing is due"))
        }))
    }

    fn advance_and_take(&mut self) -> Duration {
        let scheduler = &mut self.scheduler;
        self.runtime.block_on(tokio::task::unconstrained(async {
            tokio::time::advance(Duration::from_nanos(SPAN_NANOS)).await;
            cpu_time(|| while next(scheduler).is_some() {})
        }))
    }
}

/// The next message that is due.
fn next<K: Key>(scheduler: &mut Pin<Box<Scheduler<K, Requests<K>>>>) -> Option<K> {
    let due = pin!(scheduler.as_mut().hold_unless(|_| true));
    match due.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(message) => message,
        Poll::Pending => None,
    }
}

/// A stream that never ends and never wakes.
#[derive(Clone)]
struct Requests<K>(Rc<RefCell<std::vec::IntoIter<ScheduleRequest<K>>>>);

impl<K> Default for Requests<K> {
    fn default() -> Self {
        Self(Rc::new(RefCell::new(Vec::new().into_iter())))
    }
}

impl<K> Stream for Requests<K> {
    type Item = ScheduleRequest<K>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.borrow_mut().next() {
            Some(request) => Poll::Ready(Some(request)),
            None => Poll::Pending,
        }
    }
}

//! Clocks that jump by years, stand still, and, against their contract, go backwards.
//!
//! No model says when a key leaves then. On every clock a queue stays valid, loses nothing, and
//! hands out no key before it has seen a time at which it was due.

mod waits;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use requeue_core::binding::Reporter;
use requeue_core::binding::{AsShared, Clock, FixedWaitList, Host, Lock, Shared, State};
use requeue_core::binding::{Drained, RandomState};
use requeue_core::limiter::{DefaultController, default_controller};
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::Plain;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Action, Finished, Guard, Instant, Queue};
use requeue_embassy::raw::NoopRawMutex;
use requeue_proptest::rounds;
use tokio::runtime;

use self::waits::Own;

const HOUR: Duration = Duration::from_secs(60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const KEYS: u8 = 4;

/// Metrics that ask for every time there is.
struct Timed;

impl Metrics for Timed {
    type Timestamps = Times;
}

#[derive(Clone, Debug)]
enum Step {
    Set(Instant),
    Add(u8),
    AddAfter(u8, Duration),
    AddRateLimited(u8),
    Take,
    Complete(Action),
    Report,
}

fn delay() -> impl Strategy<Value = Duration> {
    select(vec![Duration::from_millis(1), HOUR, 300 * YEAR, 580 * YEAR])
}

/// Times of a program, times years from it, and the last there are.
fn time() -> impl Strategy<Value = Instant> {
    let nanos = prop_oneof![
        0..2_000_000_u64,
        any::<u64>(),
        (0..2_000_000_u64).prop_map(|nanos| 300 * YEAR.as_nanos() as u64 + nanos),
        (0..3_u64).prop_map(|nanos| u64::MAX - nanos),
    ];
    nanos.prop_map(Instant::from_nanos)
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        Just(Action::Release),
        Just(Action::Success),
        Just(Action::Retry),
        Just(Action::GiveUp),
        delay().prop_map(Action::Snooze),
    ];
    prop_oneof![
        3 => time().prop_map(Step::Set),
        2 => (0..KEYS).prop_map(Step::Add),
        3 => (0..KEYS, delay()).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        1 => (0..KEYS).prop_map(Step::AddRateLimited),
        3 => Just(Step::Take),
        3 => action.prop_map(Step::Complete),
        1 => Just(Step::Report),
    ]
}

type Keys<S, M> = Queue<u8, Plain, DefaultController, S, M>;

/// What one key was added for and has not been handed out for.
#[derive(Debug, Default)]
struct Owed {
    /// It was added at once, or the queue has seen a time at which it was due.
    is_due: bool,
    later: Option<Instant>,
}

/// A queue on a clock that the script moves, and what it owes.
struct World<'q, H: Host> {
    queue: &'q Shared<H>,
    owed: BTreeMap<u8, Owed>,
    active: Vec<Guard<H, &'q Shared<H>>>,
}

impl<'q, H: Host<Key = u8>> World<'q, H> {
    fn new(queue: &'q Shared<H>) -> Self {
        Self {
            queue,
            owed: BTreeMap::new(),
            active: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        self.tell_time();
        match *step {
            Step::Add(key) => {
                self.queue.add(key).unwrap();
                self.owed.entry(key).or_default().is_due = true;
            }
            Step::AddAfter(key, delay) => {
                self.queue.add_after(key, delay).unwrap();
                self.owe(key, delay);
            }
            Step::AddRateLimited(key) => {
                let delay = self.queue.add_rate_limited(key).unwrap().delay;
                self.owe(key, delay);
            }
            Step::Take => self.take(),
            Step::Complete(action) if !self.active.is_empty() => self.finish(action),
            Step::Set(_) | Step::Complete(_) | Step::Report => self.queue.report_running(),
        }
        // One operation makes only some of the due keys ready. To count them it has to be all.
        let _ = self.queue.len();
        self.queue.as_shared().look(|queue| queue.assert_valid());
    }

    /// What is due now is handed out from now on, wherever the clock goes: every step looks.
    fn tell_time(&mut self) {
        let now = self.queue.clock().now();
        for owed in self.owed.values_mut() {
            let is_due = |due: &mut Instant| *due <= now && !due.is_never();
            owed.is_due |= owed.later.take_if(is_due).is_some();
        }
    }

    fn owe(&mut self, key: u8, delay: Duration) {
        let due = self.queue.clock().now() + delay;
        let owed = self.owed.entry(key).or_default();
        owed.later = Some(owed.later.map_or(due, |other| other.min(due)));
        self.tell_time();
    }

    fn take(&mut self) {
        if let Some(guard) = self.queue.try_get() {
            let owed = self.owed.entry(*guard).or_default();
            assert!(owed.is_due, "key {} was handed out early", *guard);
            owed.is_due = false;
            let twice = self.active.iter().any(|other| **other == *guard);
            assert!(!twice, "key {} is active twice", *guard);
            self.active.push(guard);
        } else {
            let is_active = |key: &u8| self.active.iter().any(|guard| **guard == *key);
            let due = self.owed.iter().filter(|(_, owed)| owed.is_due);
            let lost: Vec<_> = due.filter(|(key, _)| !is_active(key)).collect();
            assert!(lost.is_empty(), "due, and not handed out: {lost:?}");
        }
    }

    fn finish(&mut self, action: Action) {
        let guard = self.active.remove(0);
        let key = *guard;
        match (guard.finish(action), action) {
            (Finished::Stale, _) => panic!("the run of {key} had ended before"),
            (Finished::Delayed(delay) | Finished::Suspended(delay), _)
            | (_, Action::Snooze(delay)) => {
                self.owe(key, delay);
            }
            // The limiter has spoken, and the key that comes back sooner does not tell.
            (Finished::Ready, Action::Retry) => {
                let due = self.queue.state(&key).and_then(|state| state.due);
                self.owed.entry(key).or_default().later = due;
            }
            _ => {}
        }
    }

    /// What is due is handed out, and all else is handed back.
    fn end(mut self) {
        self.tell_time();
        for _ in 0..=2 * KEYS {
            self.take();
            if !self.active.is_empty() {
                self.finish(Action::Release);
            }
        }
        let drain = self.queue.begin_drain();
        assert_eq!(self.queue.drain_status(&drain), Drained::Complete);
        let left = std::iter::from_fn(|| self.queue.take_delayed());
        let left: BTreeSet<_> = left.map(|left| left.key).collect();
        let owed = self.owed.iter().filter(|(_, owed)| owed.later.is_some());
        assert_eq!(left, owed.map(|(key, _)| *key).collect());
        assert!(self.owed.values().all(|owed| !owed.is_due), "due, and lost");
        self.queue.as_shared().look(|queue| queue.assert_valid());
    }
}

fn survives<H: Host<Key = u8>>(queue: &Shared<H>, script: &[Step], mut set: impl FnMut(Instant)) {
    let mut world = World::new(queue);
    for step in script {
        match step {
            Step::Set(time) => set(*time),
            _ => world.step(step),
        }
    }
    world.end();
}

fn growable<M: Metrics>(metrics: M) -> Keys<Growable, M> {
    Queue::from_parts(default_controller(), metrics, RandomState::default(), 0)
}

fn fixed() -> Keys<Fixed<4>, Timed> {
    Queue::with_metrics(default_controller(), Timed)
}

struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

struct Bare<S>(PhantomData<S>);

impl<S: Storage> Host for Bare<S> {
    type Key = u8;
    type Priorities = Plain;
    type Limiter = DefaultController;
    type Storage = S;
    type Metrics = Timed;
    type Waiters = FixedWaitList<0>;
    type Clock = Own;
    type Lock = Single<State<Self>>;
}

fn bare<S: Storage>(queue: Keys<S, Timed>, script: &[Step]) {
    let state = State::new(queue, FixedWaitList::new());
    let queue = Shared::<Bare<S>>::new(Single(RefCell::new(state)), Own::default());
    survives(&queue, script, |now| queue.clock().set(now));
}

type OfEmbassy<C> =
    requeue_embassy::WorkQueue<NoopRawMutex, u8, 4, Plain, DefaultController, 3, (Timed, u8, C)>;

fn cases(base: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(rounds(base))
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_clock_that_goes_anywhere_loses_nothing(script in vec(step(), 1..40)) {
        bare(growable(Timed), &script);
        bare(fixed(), &script);

        let clock = requeue_std::ManualClock::new();
        let growable = growable(Reporter::new(Timed));
        let queue = requeue_std::WorkQueue::from_queue(growable, clock.clone());
        survives(queue.as_shared(), &script, |now| clock.set(now));

        let clock = requeue_embassy::ManualClock::<NoopRawMutex>::new();
        let queue = OfEmbassy::from_queue(fixed(), &clock);
        survives(queue.as_shared(), &script, |now| clock.set(now));
    }

    /// Tokio's clock is its runtime's, which cannot be put back.
    #[test]
    fn a_clock_of_tokio_that_jumps_by_years_loses_nothing(script in vec(step(), 1..40)) {
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        let _inside = runtime.enter();
        let queue = requeue_tokio::WorkQueue::from(growable(Reporter::new(Timed)));
        survives(queue.as_shared(), &script, |time| {
            let ahead = time.saturating_since(queue.clock().now());
            runtime.block_on(tokio::time::advance(ahead));
        });
    }
}

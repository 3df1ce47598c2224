//! Calls that wait: which of them is woken, and what is left of one that ends early. Wakes are
//! counted by wakers that do nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use clock::Hand;
use lock::Single;
use requeue_core::binding::*;
use requeue_core::{
    Action, DefaultItemBased, Drained, Fixed, GetError, Guard, Instant, NoMetrics,
    default_item_based,
};

#[path = "common/clock.rs"]
mod clock;
#[path = "common/lock.rs"]
mod lock;

/// A key that panics when it is hashed, if it is 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u8);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert_ne!(self.0, 13, "on purpose");
        state.write_u8(self.0);
    }
}

type Guarded<W> = State<Key, Fixed<8>, DefaultItemBased, NoMetrics, W>;
type Keys<W> = WorkQueue<Single<Guarded<W>>, Hand>;

fn queue<W: WaitList + Default>() -> Keys<W> {
    let queue = Queue::new(default_item_based());
    WorkQueue::new(
        Single::new(State::new(queue, W::default())),
        Hand::default(),
    )
}

/// Counts its wakes.
#[derive(Default)]
struct Bell(AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call and the waker by which it waits.
struct Call<'q, W: WaitList> {
    wait: Wait<&'q Keys<W>>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<'q, W: WaitList> Call<'q, W> {
    fn new(wait: Wait<&'q Keys<W>>) -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        Self { wait, bell, waker }
    }

    fn for_key(queue: &'q Keys<W>) -> Self {
        Self::new(Wait::for_key(queue))
    }

    /// A call that has looked, and waits for a key.
    #[track_caller]
    fn asleep(queue: &'q Keys<W>) -> Self {
        let mut call = Self::for_key(queue);
        assert!(matches!(call.look(), Look::Sleep { .. }));
        call
    }

    fn look(&mut self) -> Look<Work<Key>> {
        let look = self.wait.look(&self.waker, None, Queue::poll_get);
        let queue = self.wait.queue();
        queue.lock().with(|state| state.queue().assert_valid());
        look
    }

    fn look_before(&mut self, deadline: u64) -> Look<Work<Key>> {
        let deadline = Some(Instant::from_nanos(deadline));
        self.wait.look(&self.waker, deadline, Queue::poll_get)
    }

    fn wakes(&self) -> usize {
        self.bell.0.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn finds(&mut self, key: u8) -> Work<Key> {
        match self.look() {
            Look::Done(Ok(work)) => {
                assert_eq!(work.key, Key(key));
                work
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn sleeps(&mut self, until: Option<u64>) {
        let until = until.map(Instant::from_nanos);
        assert_eq!(self.look(), Look::Sleep { until });
    }
}

fn add<W: WaitList>(queue: &Keys<W>, key: u8) {
    queue.add(Key(key)).unwrap();
}

fn add_after<W: WaitList>(queue: &Keys<W>, key: u8, nanos: u64) {
    queue
        .add_after(Key(key), Duration::from_nanos(nanos))
        .unwrap();
}

fn sleeping<W: WaitList>(queue: &Keys<W>) -> usize {
    queue.lock().with(|state| state.queue().asleep())
}

macro_rules! with_both_lists {
    ($($rule:ident)+) => {$(
        #[test]
        fn $rule() {
            rules::$rule(&queue::<FixedWaitList<3>>());
            #[cfg(feature = "alloc")]
            rules::$rule(&queue::<GrowableWaitList>());
        }
    )+};
}

with_both_lists! {
    an_add_wakes_the_call_that_has_waited_longest
    a_call_that_is_woken_for_nothing_keeps_its_turn
    a_call_that_never_looked_leaves_nothing_behind
    a_call_that_is_dropped_while_it_sleeps_is_not_woken
    a_call_that_is_dropped_after_its_wake_passes_the_wake_on
    a_call_that_is_dropped_while_it_owns_the_timer_passes_the_timer_on
    a_call_that_times_out_passes_the_timer_on
    a_ready_key_is_taken_even_after_the_deadline
    a_call_that_returns_is_in_the_list_no_longer
    shutdown_wakes_every_call
    a_renewed_waker_replaces_the_old_one
    calls_that_wait_for_the_drain_are_not_woken_by_adds
    a_second_shutdown_ends_the_wait_for_a_drain
    a_key_that_panics_under_the_lock_wakes_every_call
    the_next_key_is_taken_in_the_look_that_ends_the_run
    a_call_that_never_looked_ends_its_run_when_it_is_dropped
    the_run_of_another_queue_ends_there
    a_next_that_does_not_wait_wakes_no_call_for_its_own_key
    a_next_that_does_not_wait_leaves_the_wake_of_a_sleeping_call
    a_next_that_finds_nothing_reports_the_end_of_a_drain
    a_task_that_is_polled_without_a_wake_does_not_look
}

mod rules {
    use super::*;

    pub(super) fn an_add_wakes_the_call_that_has_waited_longest<W: WaitList>(queue: &Keys<W>) {
        let [mut a, mut b, mut c] = [(); 3].map(|()| Call::asleep(queue));
        add(queue, 1);
        add(queue, 2);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 0, 0], "one is in flight");
        let _run = a.finds(1);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 1, 0], "the baton");
        let _run = b.finds(2);
        add(queue, 3);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 1, 1]);
        let _run = c.finds(3);
    }

    pub(super) fn a_call_that_is_woken_for_nothing_keeps_its_turn<W: WaitList>(queue: &Keys<W>) {
        let [mut first, second] = [(); 2].map(|()| Call::asleep(queue));
        add(queue, 1);
        queue.try_get().unwrap().release().unwrap();
        first.sleeps(None);
        add(queue, 2);
        assert_eq!((first.wakes(), second.wakes()), (2, 0));
    }

    pub(super) fn a_call_that_never_looked_leaves_nothing_behind<W: WaitList>(queue: &Keys<W>) {
        drop(Call::for_key(queue));
        assert_eq!(sleeping(queue), 0);
        let waits = Call::asleep(queue);
        add(queue, 1);
        assert_eq!(waits.wakes(), 1);
    }

    pub(super) fn a_call_that_is_dropped_while_it_sleeps_is_not_woken<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let first = Call::asleep(queue);
        let mut second = Call::asleep(queue);
        let bell = Arc::clone(&first.bell);
        drop(first);
        assert_eq!((sleeping(queue), second.wakes()), (1, 0));
        assert_eq!(Arc::strong_count(&bell), 1, "its waker is dropped");
        add(queue, 1);
        let _run = second.finds(1);
    }

    pub(super) fn a_call_that_is_dropped_after_its_wake_passes_the_wake_on<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let first = Call::asleep(queue);
        let mut second = Call::asleep(queue);
        add(queue, 1);
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        drop(first);
        assert_eq!(second.wakes(), 1);
        let _run = second.finds(1);
        assert_eq!(sleeping(queue), 0);
    }

    pub(super) fn a_call_that_is_dropped_while_it_owns_the_timer_passes_the_timer_on<W>(
        queue: &Keys<W>,
    ) where
        W: WaitList,
    {
        add_after(queue, 1, 50);
        let [mut owner, mut other] = [(); 2].map(|()| Call::for_key(queue));
        owner.sleeps(Some(50));
        other.sleeps(None);
        drop(owner);
        assert_eq!(other.wakes(), 1);
        other.sleeps(Some(50));
        queue.clock().set(50);
        let _run = other.finds(1);
    }

    pub(super) fn a_call_that_times_out_passes_the_timer_on<W: WaitList>(queue: &Keys<W>) {
        add_after(queue, 1, 50);
        let [mut impatient, mut other] = [(); 2].map(|()| Call::for_key(queue));
        let until = Some(Instant::from_nanos(20));
        assert_eq!(impatient.look_before(20), Look::Sleep { until });
        other.sleeps(None);
        queue.clock().set(20);
        assert_eq!(
            impatient.look_before(20),
            Look::Done(Err(GetError::TimedOut))
        );
        assert_eq!(other.wakes(), 1);
        other.sleeps(Some(50));
        assert_eq!(sleeping(queue), 1);
    }

    pub(super) fn a_ready_key_is_taken_even_after_the_deadline<W: WaitList>(queue: &Keys<W>) {
        add(queue, 1);
        queue.clock().set(30);
        assert!(matches!(
            Call::for_key(queue).look_before(20),
            Look::Done(Ok(_))
        ));
        let mut late = Call::for_key(queue);
        assert_eq!(late.look_before(30), Look::Done(Err(GetError::TimedOut)));
        assert_eq!(sleeping(queue), 0);
    }

    pub(super) fn a_call_that_returns_is_in_the_list_no_longer<W: WaitList>(queue: &Keys<W>) {
        let mut served = Call::asleep(queue);
        add(queue, 1);
        // Not woken again: it looks by chance, while its wake is under way.
        let _run = served.finds(1);
        assert_eq!(
            Arc::strong_count(&served.bell),
            2,
            "the bell and its waker here"
        );
        let next = Call::asleep(queue);
        add(queue, 2);
        assert_eq!((served.wakes(), next.wakes()), (1, 1));
    }

    pub(super) fn shutdown_wakes_every_call<W: WaitList>(queue: &Keys<W>) {
        let mut calls = [(); 3].map(|()| Call::asleep(queue));
        queue.shut_down();
        for call in &mut calls {
            assert_eq!(call.wakes(), 1);
            assert_eq!(call.look(), Look::Done(Err(GetError::Closed)));
        }
    }

    pub(super) fn a_renewed_waker_replaces_the_old_one<W: WaitList>(queue: &Keys<W>) {
        let mut call = Call::for_key(queue);
        assert!(!call.wait.renew(&call.waker), "it has to look first");
        call.sleeps(None);
        assert!(call.wait.renew(&call.waker), "by the same waker");

        let moved = Call::for_key(queue);
        assert!(call.wait.renew(&moved.waker));
        assert_eq!(Arc::strong_count(&call.bell), 2, "the old one is dropped");
        add(queue, 1);
        assert_eq!((call.wakes(), moved.wakes()), (0, 1));
        assert!(
            !call.wait.renew(&call.waker),
            "it was woken, and has to look"
        );
        let _run = call.finds(1);
    }

    pub(super) fn calls_that_wait_for_the_drain_are_not_woken_by_adds<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            call.wait
                .look(&call.waker, None, |queue, _, _| queue.poll_drain(None))
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        let mut getter = Call::asleep(queue);
        add(queue, 1);
        assert_eq!((drains.wakes(), getter.wakes()), (0, 1));
        let run = getter.finds(1);

        let _drain = queue.begin_drain();
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        queue.finish(run.ticket, Action::Success).unwrap();
        assert_eq!(drains.wakes(), 2);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Complete)));
    }

    pub(super) fn a_second_shutdown_ends_the_wait_for_a_drain<W: WaitList>(queue: &Keys<W>) {
        add(queue, 1);
        let drain = queue.begin_drain();
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            call.wait.look(&call.waker, None, |queue, _, _| {
                queue.poll_drain(Some(&drain))
            })
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        queue.shut_down();
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Interrupted)));
    }

    /// The wake of the operation is lost with its result, so all calls look for themselves.
    pub(super) fn a_key_that_panics_under_the_lock_wakes_every_call<W: WaitList>(queue: &Keys<W>) {
        let mut calls = [(); 3].map(|()| Call::asleep(queue));
        let panics = catch_unwind(AssertUnwindSafe(|| queue.add(Key(13))));
        assert!(panics.is_err());
        assert_eq!(calls.each_ref().map(Call::wakes), [1; 3]);
        calls.iter_mut().for_each(|call| call.sleeps(None));
        add(queue, 1);
        let _run = calls[0].finds(1);
    }

    pub(super) fn the_next_key_is_taken_in_the_look_that_ends_the_run<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        add(queue, 2);
        let guard = queue.try_get().unwrap();
        let mut next = Call::new(Wait::after(guard, Action::Retry, queue));
        assert_eq!(queue.active_len(), 1, "not before it looks");
        let run = next.finds(2);
        assert_eq!((queue.active_len(), queue.delayed_len()), (1, 1));
        assert_eq!(queue.num_requeues(&Key(1)), 1);

        // The key that comes next is the one whose run has ended.
        add(queue, 2);
        let guard = Guard::new(run, queue);
        let mut next = Call::new(Wait::after(guard, Action::Success, queue));
        let _run = next.finds(2);
    }

    pub(super) fn a_call_that_never_looked_ends_its_run_when_it_is_dropped<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let end = |action| {
            add(queue, 1);
            drop(Wait::after(queue.try_get().unwrap(), action, queue));
            assert_eq!((queue.active_len(), sleeping(queue)), (0, 0));
            queue.num_requeues(&Key(1))
        };
        assert_eq!(end(Action::Retry), 1, "by its action");
        assert_eq!(end(Action::Release), 1);
        assert_eq!(end(Action::Success), 0);
    }

    pub(super) fn the_run_of_another_queue_ends_there<W: WaitList>(queue: &Keys<W>) {
        let other: Keys<FixedWaitList<1>> = super::queue();
        let elsewhere: Keys<FixedWaitList<1>> = super::queue();
        add(&elsewhere, 1);
        add(&other, 2);
        add(queue, 3);
        let guard = elsewhere.try_get().unwrap();
        let mut wait = Wait::after(guard, Action::Retry, &other);
        assert_eq!(elsewhere.num_requeues(&Key(1)), 1, "already");
        let look = wait.look(Waker::noop(), None, Queue::poll_get);
        assert!(matches!(look, Look::Done(Ok(work)) if work.key == Key(2)));
    }

    pub(super) fn a_next_that_does_not_wait_wakes_no_call_for_its_own_key<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let sleeper = Call::asleep(queue);
        add(queue, 1);
        let guard = queue.try_next(guard, Action::Release).unwrap();
        assert_eq!((*guard, sleeper.wakes()), (Key(1), 0));

        add(queue, 1);
        let mut next = Call::new(Wait::after(guard, Action::Success, queue));
        let _run = next.wait.try_get().unwrap();
        assert_eq!((sleeper.wakes(), sleeping(queue)), (0, 1));
        queue.lock().with(|state| state.queue().assert_valid());
    }

    pub(super) fn a_next_that_does_not_wait_leaves_the_wake_of_a_sleeping_call<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let mut sleeper = Call::asleep(queue);
        add(queue, 2);
        // It takes the key for which the call was woken.
        let guard = queue.try_next(guard, Action::Success).unwrap();
        assert_eq!((*guard, sleeper.wakes()), (Key(2), 1));
        assert!(queue.try_next(guard, Action::Success).is_none());
        sleeper.sleeps(None);
        add(queue, 3);
        assert_eq!(sleeper.wakes(), 2);
        let _run = sleeper.finds(3);
    }

    pub(super) fn a_next_that_finds_nothing_reports_the_end_of_a_drain<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let drain = queue.begin_drain();
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            let look = |queue: &mut Queue<_, _, _, _>, _, _: &mut _| queue.poll_drain(Some(&drain));
            call.wait.look(&call.waker, None, look)
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        assert!(queue.try_next(guard, Action::Success).is_none());
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Complete)));
    }

    pub(super) fn a_task_that_is_polled_without_a_wake_does_not_look<W: WaitList>(queue: &Keys<W>) {
        add_after(queue, 1, 50);
        let looks = Cell::new(0);
        let mut call = Wait::for_key(queue);
        let mut task = pin!(call.wait(None, |queue, now, getter| {
            looks.set(looks.get() + 1);
            queue.poll_get(now, getter)
        }));
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut poll = || task.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        let first = looks.get();
        assert!(poll().is_pending());
        assert_eq!(looks.get(), first, "neither a wake nor its time");

        queue.wake_all();
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        assert!(poll().is_pending());
        assert!(looks.get() > first);
        queue.clock().set(50);
        assert!(matches!(poll(), Poll::Ready(Ok(work)) if work.key == Key(1)));
    }
}

impl Timer for Hand {
    type Alarm = Ring;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Ring>>, until: Option<Instant>) {
        alarm.set(until.map(|due| Ring(self.clone(), due)));
    }
}

/// Rings once the clock shows its time.
pub(crate) struct Ring(Hand, Instant);

impl Future for Ring {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(feature = "alloc")]
#[test]
fn a_batch_is_taken_without_waiting() {
    use requeue_core::Batch;

    let queue: Keys<FixedWaitList<3>> = queue();
    let mut sleeper = Call::asleep(&queue);
    assert!(Batch::take(&queue, 2).is_empty());
    assert_eq!(sleeping(&queue), 1);
    (1..=3).for_each(|key| add(&queue, key));
    let batch = Batch::take(&queue, 2);
    assert!(batch.keys().eq(&[Key(1), Key(2)]));
    assert_eq!(Batch::take(&queue, 0).len(), 1, "at least one");
    assert_eq!(sleeper.wakes(), 1);
    // The key for which it was woken is taken.
    assert!(matches!(sleeper.look(), Look::Sleep { until: Some(_) }));
    drop(batch);
    queue.clock().set(1_000_000);
    let _run = sleeper.finds(3);
}

#[test]
fn a_call_without_a_place_gets_an_error_and_changes_nothing() {
    let queue: Keys<FixedWaitList<1>> = queue();
    add_after(&queue, 1, 50);
    let mut waits = Call::for_key(&queue);
    waits.sleeps(Some(50));
    let mut refused = Call::for_key(&queue);
    assert_eq!(refused.look(), Look::Done(Err(GetError::TooManyWaiters)));
    assert_eq!((sleeping(&queue), waits.wakes()), (1, 0), "as before");
    drop(refused);

    let mut drains = Wait::for_state(&queue);
    let look = drains.look(Waker::noop(), None, |queue, _, _| queue.poll_drain(None));
    assert_eq!(look, Look::Done(Err(GetError::TooManyWaiters)));

    add(&queue, 2);
    assert_eq!(waits.wakes(), 1);
    let mut served = Call::for_key(&queue);
    let _run = served.finds(2);
    waits.sleeps(Some(50));
    queue.clock().set(50);
    let _run = waits.finds(1);
    let _free = Call::asleep(&queue);
}

#[test]
fn a_call_without_a_place_passes_a_wake_on() {
    let queue: Keys<FixedWaitList<1>> = queue();
    let mut waits = Call::asleep(&queue);
    // The refused call sleeps for a moment: the wake in flight must not be its own.
    add(&queue, 1);
    queue.try_get().unwrap().release().unwrap();
    assert_eq!(
        Call::for_key(&queue).look(),
        Look::Done(Err(GetError::TooManyWaiters))
    );
    add(&queue, 2);
    assert!(waits.wakes() >= 1);
    let _run = waits.finds(2);
}

/// A lock after whose next release something happens.
struct Interrupted<T> {
    state: RefCell<T>,
    next: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl<T> Lock for Interrupted<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let result = work(&mut self.state.borrow_mut());
        let next = self.next.borrow_mut().take();
        if let Some(happens) = next {
            happens();
        }
        result
    }
}

/// A call counts as asleep after its first look, before its waker is in the list.
fn a_wake_between_two_looks_is_seen<W: WaitList + Default + 'static>() {
    let state = State::new(Queue::new(default_item_based()), W::default());
    let lock: Interrupted<Guarded<W>> = Interrupted {
        state: RefCell::new(state),
        next: RefCell::default(),
    };
    let queue = Rc::new(WorkQueue::new(lock, Hand::default()));
    let producer = Rc::clone(&queue);
    let added = Box::new(move || assert!(producer.add(Key(1)).is_ok()));
    queue.lock().next.replace(Some(added));

    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut wait = Wait::for_key(&*queue);
    let look = wait.look(&waker, None, Queue::poll_get);
    let is_woken = bell.0.load(Ordering::Relaxed) == 1;
    assert!(is_woken || matches!(look, Look::Done(Ok(_))), "{look:?}");
}

#[test]
fn an_add_between_two_looks_is_not_lost() {
    a_wake_between_two_looks_is_seen::<FixedWaitList<1>>();
    #[cfg(feature = "alloc")]
    a_wake_between_two_looks_is_seen::<GrowableWaitList>();
}

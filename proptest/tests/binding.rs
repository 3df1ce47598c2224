//! The binding of the README, and a runtime for it: one thread, whose tasks stand in line for keys.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::{Fixed, NoMetrics, WorkQueue};
use requeue_proptest::subject::{
    Answer, Call, Futures, HandClock, Home, LocalCall, OnWorkQueue, Runtime, Setup, handed,
};

use my_runtime::{Line, Shared, Single, State, get};

struct Bound {
    queue: Rc<Shared>,
    calls: Futures,
}

impl Runtime for Bound {
    type Storage = Fixed<8>;
    type Metrics = NoMetrics;
    type Lock = Single<State>;
    type Clock = HandClock;
    type Waker = Line;
    type Calls = Futures;

    fn new(setup: &Setup) -> Self {
        let queue = Single(RefCell::new(Fixed::build(setup, NoMetrics)));
        let queue = WorkQueue::from_parts(queue, HandClock::new(), Line::default());
        let (queue, calls) = (Rc::new(queue), Futures::new());
        Self { queue, calls }
    }

    fn queue(&self) -> &Shared {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let get = get(&self.queue);
        match call {
            Call::Get => Some(Box::pin(async { Answer::from(get.await.and_then(handed)) })),
            // It has no calls with a time limit, and none that wait for the drain.
            _ => None,
        }
    }

    fn calls(&mut self) -> &mut Futures {
        &mut self.calls
    }
}

requeue_proptest::conformance!(OnWorkQueue<Bound>);

/// The runtime: its lock, its waker, and its way of waiting.
mod my_runtime {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{self, Context, Poll};

    use requeue_core::{Fixed, Getter, Guard, Lock, Next, NoMetrics, Queue, Waker, WorkQueue};
    use requeue_proptest::subject::{AnyLimiter, HandClock, Key, Sleep};

    pub(super) struct Single<T>(pub(super) RefCell<T>);

    impl<T> Lock for Single<T> {
        type State = T;

        fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
            work(&mut self.0.borrow_mut())
        }
    }

    /// Tasks that wait, in the order of their calls.
    #[derive(Default)]
    pub(super) struct Line {
        tasks: RefCell<BTreeMap<u64, task::Waker>>,
        last: Cell<u64>,
    }

    impl Waker for Line {
        fn wake_one(&self) {
            let first = self.tasks.borrow_mut().pop_first();
            first.into_iter().for_each(|(_, task)| task.wake());
        }

        fn wake_all(&self) {
            let all = self.tasks.take();
            all.into_values().for_each(task::Waker::wake);
        }

        fn is_abandoned(&self) -> bool {
            true
        }
    }

    pub(super) type State = Queue<Key, Fixed<8>, AnyLimiter, NoMetrics>;
    pub(super) type Shared = WorkQueue<Single<State>, HandClock, Line>;

    /// A task that waits for a key.
    pub(super) struct Get {
        queue: Rc<Shared>,
        getter: Getter,
        place: u64,
        timer: Option<Sleep>,
    }

    pub(super) fn get(queue: &Rc<Shared>) -> Get {
        let last = &queue.waker().last;
        last.set(last.get() + 1);
        Get {
            queue: Rc::clone(queue),
            getter: Getter::new(),
            place: last.get(),
            timer: None,
        }
    }

    impl Future for Get {
        type Output = Option<Guard<Key, Rc<Shared>>>;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            loop {
                let Self {
                    queue,
                    getter,
                    place,
                    timer,
                } = &mut *self;
                let line = &queue.waker().tasks;
                line.borrow_mut().remove(place);
                let until = match queue.poll_get(getter) {
                    Next::Work(work) => {
                        return Poll::Ready(Some(Guard::new(work, Rc::clone(queue))));
                    }
                    Next::Closed => return Poll::Ready(None),
                    Next::Wait { until } => until,
                };
                line.borrow_mut().insert(*place, context.waker().clone());
                *timer = until.map(|due| queue.clock().sleep_until(due));
                match timer.as_mut().map(|timer| Pin::new(timer).poll(context)) {
                    Some(Poll::Ready(())) => {}
                    _ => return Poll::Pending,
                }
            }
        }
    }

    /// A task that is dropped leaves the line, and passes its wake on.
    impl Drop for Get {
        fn drop(&mut self) {
            self.queue.waker().tasks.borrow_mut().remove(&self.place);
            self.queue.leave(&mut self.getter);
        }
    }
}

#[test]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed")]
fn the_readme_shows_this_binding() {
    let (this, readme) = (include_str!("binding.rs"), include_str!("../README.md"));
    let begins = this.find("struct Bound").unwrap();
    let ends = this.find("/// The runtime: its lock").unwrap();
    let binding = this[begins..ends].trim();
    assert!(readme.contains(binding), "the README shows another binding");
    assert!(binding.lines().count() <= 60);
}

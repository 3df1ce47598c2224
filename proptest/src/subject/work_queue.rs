//! Queues behind a lock: core's `Shared`, whatever its runtime.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use requeue_core::binding::{Clock, Host, Shared};
use requeue_core::{Action, Guard, Instant};

use super::apply::{Home, Kind, behind_lock};
use super::held::{Held, Taken};
use super::{
    Abilities, Answer, Call, CallId, Configuration, Drive, Handed, Key, Operation, Returned,
    Subject,
};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// A runtime's queue under test: where its [`Shared`] is, and how to move its clock.
///
/// This is all that an adapter has to say for itself. [`OnWorkQueue`] does the rest.
pub trait Runtime: Sized {
    /// The types that the runtime's queue is made of.
    type Host: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>;
    /// What keeps the calls that have begun.
    type Calls: Drive<Self>;

    /// As [`Abilities::grain`].
    const GRAIN: Duration = Duration::from_nanos(1);
    /// As [`Abilities::places`].
    const PLACES: Option<usize> = None;

    /// Makes an empty queue.
    fn new(setup: &Configuration) -> Self;

    /// The queue.
    fn queue(&self) -> &Shared<Self::Host>;

    /// Moves the clock, at most to [`Instant::NEVER`], and does nothing else. The suite goes there,
    /// although no real clock does.
    fn advance(&mut self, by: Duration);

    /// A call of the runtime's own, about to begin; `None` if the queue has no such call.
    fn begin(&self, call: Call) -> Option<<Self::Calls as Drive<Self>>::Begun>;

    /// As [`Subject::next_unrun`].
    fn next_unrun(&mut self, action: Action) -> bool {
        let _ = action;
        false
    }

    /// What was reported; `None` if the queue has no metrics.
    fn figures(&self) -> Option<Figures> {
        None
    }

    /// A worker takes the first ready key, panics with it, and is caught: [`panicking`] does that.
    /// Returns whether it did. Override it if your runtime has a guard of its own.
    fn panic_at_work(&mut self) -> bool {
        panicking(|| self.queue().try_get())
    }
}

/// Panics with what `take` returns, and catches that; prints nothing. Returns whether it did, which
/// it does where panics unwind. This is for [`Runtime::panic_at_work`].
///
/// # Examples
///
/// ```
/// let guard = String::from("what a runtime hands out");
/// assert!(requeue_proptest::subject::panicking(|| guard));
/// ```
pub fn panicking<G>(take: impl FnOnce() -> G) -> bool {
    let work = || {
        let _guard = take();
        resume_unwind(Box::new("a worker panics with a key"));
    };
    // A panic is what was asked for.
    cfg!(panic = "unwind") && catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// Takes a guard apart, so that a test can complete the key when it likes. `None` if its run has
/// been completed before.
pub fn handed<H, R>(guard: Guard<H, R>) -> Option<Taken>
where
    H: Host<Key = Key>,
    R: std::ops::Deref<Target = Shared<H>>,
{
    let (failures, priority) = (guard.failures(), guard.priority());
    let handed = Handed::of(*guard.key(), failures, priority, guard.timed_out());
    Some(Taken(handed, guard.into_ticket()?))
}

/// A [`Subject`] for every queue that is a [`Shared`] of core, for at most `MAX` keys if it
/// grows.
pub struct OnWorkQueue<R: Runtime, const MAX: usize = { usize::MAX }> {
    runtime: R,
    calls: R::Calls,
    held: Held,
}

/// Where the queue of a runtime keeps its keys.
type StorageOf<R> = <<R as Runtime>::Host as Host>::Storage;

/// The priorities of the queue of a runtime.
type KindOf<R> = <<R as Runtime>::Host as Host>::Priorities;

impl<R: Runtime, const MAX: usize> Subject for OnWorkQueue<R, MAX> {
    fn new(setup: &Configuration) -> Self {
        // A call may look several times, which the model cannot count.
        Self {
            runtime: R::new(&Configuration {
                due_keys_max: u8::MAX,
                ..setup.for_at_most(MAX)
            }),
            calls: R::Calls::default(),
            held: Held::default(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.runtime.queue().look(|queue| queue.stats().max_keys)
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            runs_by_itself: R::Calls::RUNS_BY_ITSELF,
            cancels: R::Calls::CANCELS,
            grain: R::GRAIN,
            places: R::PLACES,
            ..StorageOf::<R>::abilities::<KindOf<R>>()
        }
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        match *operation {
            Operation::TryGet => {
                let taken = self.runtime.queue().try_get().and_then(handed);
                Answer::Work(taken.map(|taken| self.held.hand(taken)))
            }
            Operation::PanicAtWork => Answer::Is(self.runtime.panic_at_work()),
            _ => behind_lock(self.runtime.queue(), &mut self.held, operation),
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        self.runtime.figures()
    }

    fn now(&self) -> Instant {
        self.runtime.queue().clock().now()
    }

    fn advance(&mut self, by: Duration) {
        self.runtime.advance(by);
    }

    fn asleep(&mut self) -> Option<usize> {
        Some(self.runtime.queue().look(|queue| queue.asleep()))
    }

    fn assert_valid(&mut self) {
        self.runtime.queue().look(|queue| queue.assert_valid());
    }

    fn start(&mut self, id: CallId, call: Call) -> bool {
        let begun = self.runtime.begin(call);
        let started = begun.map(|begun| self.calls.start(id, begun));
        started.is_some()
    }

    fn next_unrun(&mut self, action: Action) -> bool {
        self.runtime.next_unrun(action)
    }

    fn settle(&mut self) -> bool {
        self.calls.settle(&self.runtime)
    }

    fn answer(&mut self, id: CallId) -> Option<Returned<Handed>> {
        let returned = self.calls.answer(id)?;
        Some(returned.map(|taken| self.held.hand(taken)))
    }

    fn cancel(&mut self, id: CallId) {
        self.calls.cancel(id);
    }

    fn nudge(&mut self, id: CallId) {
        self.calls.nudge(id);
    }
}

impl<R: Runtime, const MAX: usize> Drop for OnWorkQueue<R, MAX> {
    fn drop(&mut self) {
        self.calls.end(&self.runtime);
    }
}

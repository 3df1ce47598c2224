//! How a runtime wakes those who wait for a queue.

use crate::outcome::Wake;

/// Wakes sleeping getters. Called after the queue is unlocked.
///
/// # Contract
///
/// - `wake_one` MUST wake one getter that sleeps now or has decided to sleep, if there is one. Any
///   will do; a fair runtime wakes the one that has slept longest.
/// - `wake_all` MUST wake every such getter, and everybody who waits for the queue to drain.
/// - A wake that finds nobody asleep may be lost: whoever was on the way looks at the queue again.
/// - A getter that was woken and then goes away without looking MUST call
///   [`Queue::leave`](crate::Queue::leave), which passes the wake on.
///
/// # Examples
///
/// ```
/// use requeue_core::Waker;
///
/// /// For a bare loop that looks at the queue again and again and never sleeps.
/// struct Restless;
///
/// impl Waker for Restless {
///     fn wake_one(&self) {}
///     fn wake_all(&self) {}
/// }
/// # Restless.wake_one();
/// ```
pub trait Waker {
    /// Wakes one sleeping getter.
    fn wake_one(&self);

    /// Wakes every sleeping getter, and everybody who waits for the drain.
    fn wake_all(&self);

    /// Whether a guard that is dropped here and now has been abandoned: its key is then given back
    /// as failed, and otherwise completed.
    ///
    /// Threads answer whether they unwind from a panic. A runtime whose tasks can be cancelled
    /// answers yes, since a cancelled task drops its guards like any other. One where neither
    /// happens keeps the no.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Obeys an answer of the state machine: call it once the lock is released.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// use requeue_core::{Fixed, Getter, Instant, NoLimit, Queue, Waker};
    ///
    /// #[derive(Default)]
    /// struct Counting(Cell<u32>);
    ///
    /// impl Waker for Counting {
    ///     fn wake_one(&self) {
    ///         self.0.set(self.0.get() + 1);
    ///     }
    ///     fn wake_all(&self) {}
    /// }
    ///
    /// let waker = Counting::default();
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.get(Instant::EPOCH, &mut Getter::new());
    /// for node in ["node-7", "node-8"] {
    ///     waker.obey(queue.add(node, Instant::EPOCH).wake);
    /// }
    /// assert_eq!(waker.0.get(), 1, "one wake for one sleeper");
    /// ```
    #[inline]
    fn obey(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::One => self.wake_one(),
            Wake::All => self.wake_all(),
        }
    }
}

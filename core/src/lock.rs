//! Mutual exclusion, as a runtime offers it.

/// Runs a piece of code on a state, alone.
///
/// # Contract
///
/// - `with` MUST run `work` exactly once, and nobody else's at the same time.
/// - `work` is short and bounded, and never calls back into the same lock: a lock that is not
///   re-entrant will do.
/// - If `work` panics the state stays usable: the queue is valid at every point where code that is
///   not its own runs.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use requeue_core::Lock;
///
/// /// For a program that has one thread and no interrupts.
/// struct Single<T>(RefCell<T>);
///
/// impl<T> Lock for Single<T> {
///     type State = T;
///
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.borrow_mut())
///     }
/// }
///
/// let lock = Single(RefCell::new(1));
/// lock.with(|state| *state += 1);
/// assert_eq!(lock.with(|state| *state), 2);
/// ```
pub trait Lock {
    /// What is locked.
    type State;

    /// Runs `work` on the state, alone.
    fn with<R>(&self, work: impl FnOnce(&mut Self::State) -> R) -> R;
}

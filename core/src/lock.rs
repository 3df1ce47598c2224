//! Mutual exclusion, as a runtime provides it.

/// Gives exclusive access to a state.
///
/// # Contract
///
/// - `with` MUST run `work` exactly once, and never two at the same time.
/// - `work` is short and bounded, and never calls back into the same lock, so the lock need not be
///   re-entrant.
/// - If `work` panics, the state MUST stay usable, so the lock MUST NOT be poisoned: the queue is
///   valid whenever foreign code runs.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use requeue_core::binding::Lock;
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
    /// What the lock protects.
    type State;

    /// Runs `work` with exclusive access to the state.
    fn with<R>(&self, work: impl FnOnce(&mut Self::State) -> R) -> R;

    /// Reports that a call has to wait and all `places` of the list are taken. Called while the
    /// lock is not held. Does nothing by default: a runtime may log it.
    #[inline]
    fn no_place(&self, places: usize) {
        let _ = places;
    }
}

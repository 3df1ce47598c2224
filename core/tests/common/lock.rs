//! The lock of a bare loop: for a program without threads and interrupts.

use std::cell::RefCell;

use requeue_core::binding::Lock;

#[derive(Debug)]
pub(crate) struct Single<T>(RefCell<T>);

impl<T> Single<T> {
    pub(crate) fn new(state: T) -> Self {
        Self(RefCell::new(state))
    }
}

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

//! parking_lot's names over [shuttle](::shuttle), which tries many schedules.

use std::sync::PoisonError;

pub(crate) use shuttle::sync::MutexGuard;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// As parking_lot's, it is not poisoned.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

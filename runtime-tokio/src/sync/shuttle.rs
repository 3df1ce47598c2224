//! parking_lot's names and Tokio's tasks over [shuttle](::shuttle), which tries many schedules.

use std::any::Any;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use shuttle::future::JoinHandle;

use shuttle::sync::MutexGuard;

use crate::workers::supervisor::caught;

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

/// As Tokio's, for tasks without an output. A panic is caught, because shuttle would end the test.
#[derive(Debug, Default)]
pub(crate) struct JoinSet(Vec<JoinHandle<std::thread::Result<()>>>);

impl JoinSet {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push(shuttle::future::spawn(caught(task)));
    }

    pub(crate) fn poll_join_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(), JoinError>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        for index in 0..self.0.len() {
            if let Poll::Ready(ended) = Pin::new(&mut self.0[index]).poll(context) {
                self.0.swap_remove(index);
                let ended = ended.map_err(|_| JoinError(None));
                let ended = ended.and_then(|ended| ended.map_err(|panic| JoinError(Some(panic))));
                return Poll::Ready(Some(ended));
            }
        }
        Poll::Pending
    }
}

impl Drop for JoinSet {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// As Tokio's: a panic, or none for a task that was aborted.
pub(crate) struct JoinError(Option<Box<dyn Any + Send>>);

impl JoinError {
    pub(crate) fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        self.0.ok_or(Self(None))
    }
}

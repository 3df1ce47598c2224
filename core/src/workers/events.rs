//! What happens to the runs of workers, for those who watch.

use alloc::boxed::Box;
use core::time::Duration;

use super::{Failure, Workers, contain};
use crate::action::{Action, RunContext};

/// What happens to a run, as [`Workers::on_event`] receives it.
///
/// Each run that has [`Started`](Self::Started) ends with one of [`Finished`](Self::Finished),
/// [`Failed`](Self::Failed) and [`Aborted`](Self::Aborted).
///
/// # Examples
///
/// ```
/// use requeue_core::{RunEvent, Workers};
///
/// let workers = Workers::new(4).on_event(|key: &u32, event: &RunEvent<'_, String>| match event {
/// RunEvent::Failed { is_given_up: true, failure, .. } => eprintln!("gave up {key}: {failure}"),
///     RunEvent::Finished { took, .. } => println!("{key} took {took:?}"),
///     _ => {}
/// });
/// # let _ = workers;
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'e, E> {
    /// A run begins.
    Started(RunContext),
    /// A run has not failed, and ends with this action.
    #[non_exhaustive]
    Finished {
        /// How it ends.
        action: Action,
        /// How long it took, on the queue's clock.
        took: Duration,
    },
    /// A run has failed.
    #[non_exhaustive]
    Failed {
        /// Why.
        failure: &'e Failure<E>,
        /// Which attempt it was, counted from 1.
        attempt: u32,
        /// Whether the key is given up, and not retried.
        is_given_up: bool,
        /// How long it took, on the queue's clock.
        took: Duration,
    },
    /// A run of a thread takes longer than this, and goes on.
    Overdue(Duration),
    /// A run of a task was aborted, because the future of its `run` was dropped. Its key is
    /// retried.
    Aborted,
}

/// What watches the runs of workers.
pub(super) type Observer<'w, K, E> = dyn Fn(&K, &RunEvent<'_, E>) + Send + Sync + 'w;

impl<'w, K, E> Workers<'w, K, E> {
    /// Adds an observer, which receives the key and each [event](RunEvent) of its runs. It may be
    /// called several times: observers are called in the order in which they were added, before the
    /// other hooks. Without observers the clock is not read for them. O(1) amortized.
    ///
    /// Adds have no event here, because producers do not pass through workers:
    /// [`Metrics::added`](crate::Metrics::added) counts them.
    ///
    /// An observer runs on the worker while the key is active. A panic in it is caught and ignored:
    /// the other observers and hooks are called all the same.
    pub fn on_event(mut self, observer: impl Fn(&K, &RunEvent<'_, E>) + Send + Sync + 'w) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Reports a run that was aborted to the observers. For runtimes. O(n) in the observers.
    pub fn aborted(&self, key: &K) {
        self.observe(key, &RunEvent::Aborted);
    }

    pub(super) fn observe(&self, key: &K, event: &RunEvent<'_, E>) {
        for observer in &self.observers {
            contain(|| observer(key, event));
        }
    }
}

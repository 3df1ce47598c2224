//! Figures for the runtimes whose metrics are values.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue_core::metrics::{Metrics, Times};

use super::Figures;

/// [`Figures`] that a queue writes and a test reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFigures(Arc<Mutex<Figures>>);

impl SharedFigures {
    /// What was reported so far.
    pub(crate) fn get(&self) -> Figures {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics for SharedFigures {
    type Timestamps = Times;

    fn depth(&mut self, keys: usize) {
        self.lock().depth(keys);
    }

    fn depth_at(&mut self, priority: u8, keys: usize) {
        self.lock().depth_at(priority, keys);
    }

    fn added(&mut self) {
        self.lock().added();
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.lock().queue_latency(latency);
    }

    fn work_duration(&mut self, duration: Duration) {
        self.lock().work_duration(duration);
    }

    fn time_to_success(&mut self, time: Duration) {
        self.lock().time_to_success(time);
    }

    fn attempts_at_success(&mut self, attempts: u32) {
        self.lock().attempts_at_success(attempts);
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.lock().unfinished_work(sum);
    }

    fn longest_running(&mut self, longest: Duration) {
        self.lock().longest_running(longest);
    }

    fn retry(&mut self) {
        self.lock().retry();
    }
}

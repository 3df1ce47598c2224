//! What a simulation is made with.

use std::rc::Rc;
use std::time::Duration;

use requeue_core::limiter::{RateLimiter, default_controller};
use requeue_core::{Queue, Workers};

use super::World;
use super::driven::Driven;

/// Shared by all simulations of a check.
pub(super) struct Settings<W: World> {
    pub(super) workers: Rc<Workers<'static, W::Key, W::Error>>,
    pub(super) queue: Rc<dyn Fn() -> Box<dyn Driven<W::Key>>>,
    /// How long one run may take.
    pub(super) run_max: Duration,
    /// How many steps a history may have.
    pub(super) steps_max: u64,
}

impl<W: World> Settings<W> {
    pub(super) fn new() -> Self {
        Self {
            workers: Rc::new(Workers::new(2)),
            queue: limited(default_controller),
            run_max: Duration::from_secs(600),
            steps_max: 100_000,
        }
    }
}

impl<W: World> Clone for Settings<W> {
    fn clone(&self) -> Self {
        Self {
            workers: Rc::clone(&self.workers),
            queue: Rc::clone(&self.queue),
            run_max: self.run_max,
            steps_max: self.steps_max,
        }
    }
}

/// How core's growable queue is made with a limiter.
pub(super) fn limited<K, L>(limiter: impl Fn() -> L + 'static) -> Rc<dyn Fn() -> Box<dyn Driven<K>>>
where
    K: Eq + std::hash::Hash + Clone + 'static,
    L: RateLimiter + 'static,
{
    // Its hashes are random, and no result depends on them: what counts are lists and a heap.
    Rc::new(move || Box::new(Queue::growable(limiter())))
}

//! The queues of a program, by their names. Owns the list, and what of it is open to whom.

use std::fmt;

use crate::inspector::Inspect;

/// The queues of a program, by their names.
///
/// # Examples
///
/// ```
/// use requeue::std::WorkQueue;
/// use requeue_inspect::{Inspect, Inspector, Registry};
///
/// let pods = WorkQueue::<String>::new();
/// let nodes = WorkQueue::<u32>::new();
/// let registry = Registry::new()
///     .with(Inspector::new("pods", &pods))
///     .with(Inspector::new("nodes", &nodes));
/// assert!(registry.queues().map(|queue| queue.name()).eq(["pods", "nodes"]));
/// assert!(registry.queue("services").is_none());
/// ```
#[derive(Default)]
pub struct Registry {
    queues: Vec<Box<dyn Inspect>>,
    #[cfg(feature = "http")]
    pub(crate) access: crate::http::Access,
}

impl Registry {
    /// Creates an empty registry. O(1).
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a queue. One that has the name of another replaces it. O(n) in the queues.
    #[must_use = "this returns the registry with the queue"]
    pub fn with(mut self, queue: impl Inspect + 'static) -> Self {
        self.queues.retain(|other| other.name() != queue.name());
        self.queues.push(Box::new(queue));
        self
    }

    /// Returns the queues, in the order in which they were added.
    pub fn queues(&self) -> impl Iterator<Item = &dyn Inspect> {
        self.queues.iter().map(|queue| &**queue)
    }

    /// Returns the queue of a name. O(n) in the queues.
    pub fn queue(&self, name: &str) -> Option<&dyn Inspect> {
        self.queues().find(|queue| queue.name() == name)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.queues().map(Inspect::name);
        f.debug_list().entries(names).finish()
    }
}

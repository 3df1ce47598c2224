//! What neither client-go nor controller-runtime has: work that is taken back.

use super::{Model, remove};
use crate::subject::{Key, Known};

impl Model {
    /// The key leaves the queue, the dirty set and the waiting entries. Its failures stay.
    pub(super) fn take_back(&mut self, key: Key) -> Option<Known> {
        self.arrive_at(key);
        let was = self.know(key).filter(|_| self.has_work(key))?;
        self.drop_work(key);
        Some(was)
    }

    fn drop_work(&mut self, key: Key) {
        if self.dirty.contains(&key) {
            self.figures.depth -= 1;
            remove(&mut self.added, key);
        }
        self.queue.retain(|other| *other != key);
        self.dirty.retain(|other| *other != key);
        self.stop_waiting(key);
        self.settle();
    }
}

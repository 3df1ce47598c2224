//! The electors that share an identity. To all others they are one holder.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Who of one identity may hold the lease. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Holders(Arc<Mutex<Shared>>);

#[derive(Default)]
struct Shared {
    count: usize,
    /// The newest end of all that these holders know. `None` while there is no holder, because
    /// the lease may be released then.
    works_until: Option<Instant>,
}

impl Holders {
    /// Adds a holder, until the result is dropped.
    pub(super) fn join(&self) -> Holder {
        self.lock().count += 1;
        Holder(self.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().count == 0
    }

    /// Notes until when the lease was renewed.
    pub(super) fn renewed(&self, works_until: Instant) {
        let mut shared = self.lock();
        shared.works_until = shared.works_until.max(Some(works_until));
    }

    /// Returns until when one of the holders has renewed the lease.
    pub(super) fn works_until(&self) -> Option<Instant> {
        self.lock().works_until
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the holders, until it is dropped.
pub(super) struct Holder(Holders);

impl Drop for Holder {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.count = shared.count.saturating_sub(1);
        if shared.count == 0 {
            shared.works_until = None;
        }
    }
}

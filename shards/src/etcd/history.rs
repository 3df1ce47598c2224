//! The revisions that etcd has shown. A revision that goes back means lost writes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_client::ResponseHeader;

use crate::error::EngineError;

/// The cluster and the revision of all replies, shared by the calls and watches of an engine.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    point: Point,
    /// Why the last era ended.
    why: String,
}

/// A point in a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// How often the state was lost. Sessions and watches end with their era.
    pub(super) era: u64,
    /// Zero before the first reply.
    cluster: u64,
    revision: i64,
}

impl History {
    /// The greatest point seen so far.
    pub(super) fn now(&self) -> Point {
        self.lock().point
    }

    /// The error for sessions and watches of an earlier era.
    pub(super) fn lost(&self) -> EngineError {
        EngineError::StateLost(self.lock().why.clone())
    }

    /// Records a reply. `before` was seen before the call, so the reply has to be at least as new.
    ///
    /// # Errors
    ///
    /// [`EngineError::StateLost`] if the reply is older or from another cluster. Then the era has
    /// ended.
    pub(super) fn check(
        &self,
        before: Point,
        header: Option<&ResponseHeader>,
    ) -> Result<(), EngineError> {
        let Some(header) = header else {
            let why = "a reply without a header".to_owned();
            return Err(EngineError::Unreadable(why));
        };
        self.compare(before, header.cluster_id(), header.revision())
    }

    fn compare(&self, before: Point, cluster: u64, revision: i64) -> Result<(), EngineError> {
        let mut seen = self.lock();
        if seen.point.era != before.era {
            // The reply may be from either era.
            return Err(EngineError::StateLost(seen.why.clone()));
        }
        let why = if before.cluster != 0 && cluster != before.cluster {
            format!(
                "the cluster is {cluster:x} now, and was {:x}",
                before.cluster
            )
        } else if revision < before.revision {
            format!("its revision is {revision} after {}", before.revision)
        } else {
            seen.point.cluster = cluster;
            seen.point.revision = seen.point.revision.max(revision);
            return Ok(());
        };
        seen.point = Point {
            era: before.era + 1,
            cluster,
            revision,
        };
        seen.why.clone_from(&why);
        drop(seen);
        let error = EngineError::StateLost(why);
        tracing::error!(%error);
        Err(error)
    }

    /// Records a response of a watch that has seen `revision` before. Returns whether the response
    /// fits. If it does not, the node lags or the state was lost.
    pub(super) fn fits(&self, revision: i64, header: Option<&ResponseHeader>) -> bool {
        let Some(header) = header else { return true };
        let seen = &mut self.lock().point;
        let fits = header.cluster_id() == seen.cluster && header.revision() >= revision;
        if fits {
            seen.revision = seen.revision.max(header.revision());
        }
        fits
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_lost(outcome: &Result<(), EngineError>) -> bool {
        matches!(outcome, Err(EngineError::StateLost(_)))
    }

    #[test]
    fn a_revision_that_goes_back_ends_the_era_once() {
        let history = History::default();
        let first = history.now();
        assert!(history.compare(first, 7, 900).is_ok());
        // A call that was sent before that reply may return an older revision.
        assert!(history.compare(first, 7, 899).is_ok());
        let before = history.now();
        assert!(is_lost(&history.compare(before, 7, 1)));
        // A reply to an earlier call may be from either era.
        assert!(is_lost(&history.compare(before, 7, 2)));
        let why = history.lost().to_string();
        assert!(why.ends_with("its revision is 1 after 900"), "{why}");
        let after = history.now();
        assert_eq!(after.era, before.era + 1);
        assert!(history.compare(after, 7, 1).is_ok());
        assert_eq!(history.now().era, after.era);
    }

    #[test]
    fn another_cluster_ends_the_era_however_far_it_has_come() {
        let history = History::default();
        assert!(history.compare(history.now(), 7, 900).is_ok());
        assert!(is_lost(&history.compare(history.now(), 8, 901)));
        assert!(history.compare(history.now(), 8, 901).is_ok());
    }
}

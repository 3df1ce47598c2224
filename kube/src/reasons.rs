//! Why an object runs: what its key was added for, until a run has dealt with it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tracing::Span;

/// One reason why an object runs.
///
/// # Examples
///
/// ```
/// use requeue_kube::{Cause, Reason};
///
/// let reason = Reason::new(Cause::Deleted, "secrets", "default/password");
/// assert_eq!(reason.to_string(), "deleted secrets default/password");
/// assert_eq!(Reason::from(Cause::Listed).to_string(), "listed");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reason {
    /// What happened.
    pub cause: Cause,
    /// The kind of the object that changed, such as `secrets` or `deployments.apps`. Empty if no
    /// watch is the cause.
    pub kind: Arc<str>,
    /// The object that changed, as `namespace/name`, or `name` if it has no namespace. Empty if no
    /// single object is the cause.
    pub object: Arc<str>,
    /// What the span of the run follows from.
    span: Span,
}

/// What made an object run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// An object was created or changed: this one, a part of it, or another one on which it depends.
    Applied,
    /// Such an object was deleted.
    Deleted,
    /// A stream of [`reconcile_on`](crate::Controller::reconcile_on) named the object.
    Requested,
    /// The object was in the first list.
    Listed,
    /// All objects run: a [resync](crate::Controller::resync), a stream of
    /// [`reconcile_all_on`](crate::Controller::reconcile_all_on), or a watch that listed again.
    Resync,
    /// The last run failed. Its reasons are listed as well.
    Retry,
    /// Nothing happened: the last run asked for this one, for instance with `RequeueAfter`. Also
    /// the cause if the last run has already reported the event.
    Requeue,
}

impl Cause {
    fn is_change(self) -> bool {
        matches!(self, Self::Applied | Self::Deleted | Self::Requested)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::Deleted => "deleted",
            Self::Requested => "requested",
            Self::Listed => "listed",
            Self::Resync => "resync",
            Self::Retry => "retry",
            Self::Requeue => "requeue",
        })
    }
}

impl Reason {
    /// Creates a reason, for the unit tests of a reconciler.
    pub fn new(cause: Cause, kind: impl Into<Arc<str>>, object: impl Into<Arc<str>>) -> Self {
        let (kind, object) = (kind.into(), object.into());
        let span = if cause.is_change() {
            tracing::debug_span!(target: "requeue", "changed", %cause, %kind, %object)
        } else {
            Span::none()
        };
        Self {
            cause,
            kind,
            object,
            span,
        }
    }
}

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Self {
        Self::new(cause, "", "")
    }
}

/// Two reasons are equal if the same happened to the same object.
impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        (self.cause, &self.kind, &self.object) == (other.cause, &other.kind, &other.object)
    }
}

impl Eq for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if !self.kind.is_empty() {
            write!(f, " {}", self.kind)?;
        }
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        Ok(())
    }
}

/// Why an object runs: everything that happened since its last successful run, as far as the
/// controller knows.
///
/// Reasons are merged as adds are: ten changes of one part are one reason. Up to eight different
/// ones are kept, and the others are counted. Do not decide by them what to do: a reconciler
/// compares what is with what should be. They are for logs, and for the question why it runs so
/// often.
///
/// # Examples
///
/// ```
/// use requeue_kube::{Cause, Reason, Reasons};
///
/// let part = || Reason::new(Cause::Applied, "secrets", "default/password");
/// let reasons: Reasons = [part(), Cause::Resync.into(), part()].into_iter().collect();
/// assert_eq!(reasons.iter().count(), 2);
/// assert_eq!(reasons.to_string(), "applied secrets default/password, resync");
/// assert!(reasons.has_change());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    kept: Vec<Reason>,
    omitted: usize,
    has_change: bool,
}

/// How many reasons of a key are kept.
const KEPT: usize = 8;

impl Reasons {
    /// Returns the reasons that are kept, in the order in which they first occurred.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        self.kept.iter()
    }

    /// Returns how many reasons were not kept. One that occurs again is counted again.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Returns whether something changed. Otherwise the object was listed, or its last run asked
    /// for this one.
    pub fn has_change(&self) -> bool {
        self.has_change
    }

    /// Adds a reason, unless it is known.
    pub fn push(&mut self, reason: Reason) {
        self.has_change |= reason.cause.is_change();
        if let Some(known) = self.kept.iter_mut().find(|known| **known == reason) {
            known.span = reason.span;
        } else if self.kept.len() < KEPT {
            self.kept.push(reason);
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    /// Shows the reasons in the span of the run, which follows from those of the changes.
    pub(crate) fn record(&self, run: &Span) {
        if run.is_disabled() {
            return;
        }
        run.record("reasons", tracing::field::display(self));
        for reason in &self.kept {
            run.follows_from(&reason.span);
        }
    }
}

impl Extend<Reason> for Reasons {
    fn extend<I: IntoIterator<Item = Reason>>(&mut self, reasons: I) {
        reasons.into_iter().for_each(|reason| self.push(reason));
    }
}

impl FromIterator<Reason> for Reasons {
    fn from_iter<I: IntoIterator<Item = Reason>>(reasons: I) -> Self {
        let mut collected = Self::default();
        collected.extend(reasons);
        collected
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.kept.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{reason}")?;
        }
        if self.omitted > 0 {
            write!(f, ", and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// The reasons of keys that have not run yet.
pub(crate) struct Pending<K: Resource>(Mutex<Map<K>>)
where
    K::DynamicType: Eq + Hash;

struct Map<K: Resource>
where
    K::DynamicType: Eq + Hash,
{
    reasons: HashMap<ObjectRef<K>, Reasons>,
    /// How many keys there may be before those are dropped that the queue does not hold.
    sweep_at: usize,
}

/// The least number of keys that are looked through.
const SWEEP: usize = 256;

impl<K> Pending<K>
where
    K: Resource,
    K::DynamicType: Eq + Hash + Clone,
{
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Map {
            reasons: HashMap::new(),
            sweep_at: SWEEP,
        }))
    }

    /// Notes why a key is about to be added. Forgets keys that left the queue without a run, such
    /// as those that were given up, once they are as many as the others. O(1) amortized.
    pub(crate) fn note(
        &self,
        key: &ObjectRef<K>,
        reason: Reason,
        is_held: impl Fn(&ObjectRef<K>) -> bool,
    ) {
        let mut map = self.lock();
        if let Some(reasons) = map.reasons.get_mut(key) {
            return reasons.push(reason);
        }
        if map.reasons.len() >= map.sweep_at {
            map.reasons.retain(|key, _| is_held(key));
            map.sweep_at = SWEEP.max(map.reasons.len().saturating_mul(2));
        }
        let reasons = Reasons {
            has_change: reason.cause.is_change(),
            // Room for one: most keys have one reason, and a first list has many keys.
            kept: vec![reason],
            omitted: 0,
        };
        map.reasons.insert(key.clone(), reasons);
    }

    /// Returns why a key runs, and forgets it.
    pub(crate) fn take(&self, key: &ObjectRef<K>) -> Reasons {
        let mut map = self.lock();
        let reasons = map.reasons.remove(key).unwrap_or_default();
        if map.reasons.is_empty() && map.reasons.capacity() > 4 * SWEEP {
            // A first list left room that is not needed again.
            map.reasons = HashMap::new();
        }
        reasons
    }

    /// Keeps the reasons of a run that failed, before those that came since.
    pub(crate) fn put_back(&self, key: &ObjectRef<K>, mut reasons: Reasons) {
        let mut map = self.lock();
        if let Some(since) = map.reasons.remove(key) {
            reasons.omitted = reasons.omitted.saturating_add(since.omitted);
            reasons.has_change |= since.has_change;
            reasons.extend(since.kept);
        }
        map.reasons.insert(key.clone(), reasons);
    }

    fn lock(&self) -> MutexGuard<'_, Map<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn keys_that_left_the_queue_without_a_run_are_forgotten() {
        let pending = Pending::<ConfigMap>::new();
        for number in 0..10_000 {
            let key = ObjectRef::new(&format!("m{number}"));
            // The queue holds one key in a hundred.
            let is_held = |key: &ObjectRef<ConfigMap>| key.name.ends_with("00");
            pending.note(&key, Cause::Listed.into(), is_held);
        }
        let kept = pending.lock().reasons.len();
        assert!((99..=SWEEP).contains(&kept), "{kept}");
        let held = pending.take(&ObjectRef::new("m9900"));
        assert_eq!(held.to_string(), "listed");
    }
}

//! What a reconciler gets beside the object.

use std::fmt;
use std::time::Duration;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tokio::time::Instant;

use crate::reasons::Reasons;

/// What is known about a run when it begins.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use requeue_kube::{Action, Context};
///
/// async fn reconcile(map: Arc<ConfigMap>, run: Context<ConfigMap>) -> kube::Result<Action> {
///     if run.attempt > 1 {
///         println!("{}: attempt {}", run.key, run.attempt);
///     }
///     # let _ = map;
///     Ok(Action::Success)
/// }
/// # let _ = reconcile;
/// ```
#[non_exhaustive]
pub struct Context<K: Resource> {
    /// The object: kind, name and namespace.
    pub key: ObjectRef<K>,
    /// Which attempt this is, counted from 1: one more than the failures on record.
    pub attempt: u32,
    /// How long the object was ready before its run began. Always zero unless there are metrics,
    /// which need the times: the feature `metrics`, and a [name](crate::Controller::named).
    pub waited: Duration,
    /// When the run is stopped, because it takes longer than
    /// [`Workers::timeout`](crate::Workers::timeout). `None` if there is no timeout.
    pub deadline: Option<Instant>,
    /// Whether something changed. Otherwise the object was listed, at the start or by a resync, or
    /// its last run asked for this one.
    pub changed: bool,
    /// Which events of which objects made it run. The span of the run shows them, too.
    pub reasons: Reasons,
}

impl<K: Resource> Context<K> {
    /// Creates the context of a first run that nothing but a requeue asked for: for unit tests of
    /// a reconciler, which may then set the fields.
    ///
    /// # Examples
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::reflector::ObjectRef;
    /// use requeue_kube::Context;
    ///
    /// let mut run = Context::new(ObjectRef::<ConfigMap>::new("web").within("default"));
    /// run.attempt = 3;
    /// assert!(run.deadline.is_none() && !run.changed);
    /// ```
    pub fn new(key: ObjectRef<K>) -> Self {
        Self {
            key,
            attempt: 1,
            waited: Duration::ZERO,
            deadline: None,
            changed: false,
            reasons: Reasons::default(),
        }
    }
}

impl<K: Resource> Clone for Context<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            reasons: self.reasons.clone(),
            ..*self
        }
    }
}

impl<K: Resource> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("key", &format_args!("{}", self.key))
            .field("attempt", &self.attempt)
            .field("waited", &self.waited)
            .field("deadline", &self.deadline)
            .field("changed", &self.changed)
            .field("reasons", &format_args!("{}", self.reasons))
            .finish()
    }
}

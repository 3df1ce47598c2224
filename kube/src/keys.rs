//! What is in the queue: references to objects, at two levels.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use requeue::binding::ClientGo;
use requeue::binding::Reporter;
use requeue::limiter::RateLimiter;
use requeue::priority::{Levels, Priorities};
use requeue::storage::Growable;
use requeue::tokio::binding::{Shared, TaskHost, Tasks};
use requeue::tokio::{
    Action, AddOptions, CancellationToken, Leftover, Policy, Rejected, RunContext, WorkQueue,
    Workers,
};
use requeue::{Builder, Instant, Merge};

/// The queue of a controller: references to objects, at two priority levels, [`LISTED`] below
/// [`CHANGED`].
pub type Keys<K> = WorkQueue<ObjectRef<K>, Levels<2>>;

/// What builds the queue of a controller.
pub(crate) type KeysBuilder<K> = Builder<ObjectRef<K>, Levels<2>, ClientGo<true>, Tasks, Reporter>;

/// A queue of objects' keys that a [`Controller`](crate::Controller) can use: a
/// [`WorkQueue`] with any levels, groups and limiter.
pub trait KeyQueue<K: Resource>: AnyQueue<K> {}

impl<K: Resource, Q: AnyQueue<K>> KeyQueue<K> for Q {}

/// What a controller asks of its queue.
pub trait AnyQueue<K: Resource>: Clone + Send + Sync + 'static {
    /// Adds a key at a level, or at the highest one there is. A refused key is handed back.
    fn add(&self, key: ObjectRef<K>, level: u8) -> Result<(), Rejected<ObjectRef<K>>>;

    /// As `add`, once the key has been quiet.
    fn add_debounced(
        &self,
        key: ObjectRef<K>,
        level: u8,
        debounce: (Duration, Duration),
    ) -> Result<(), Rejected<ObjectRef<K>>>;

    /// As `add`, once there is room.
    ///
    /// # Cancel safety
    ///
    /// The key is added, or it is not.
    fn add_wait(&self, key: ObjectRef<K>, level: u8) -> impl Future<Output = bool> + Send;

    fn holds(&self, key: &ObjectRef<K>) -> bool;

    fn suspend(&self, key: &ObjectRef<K>, timeout: Duration) -> bool;

    fn resume(&self, key: &ObjectRef<K>) -> bool;

    fn set_policy(&self, policy: Policy);

    fn report_running(&self);

    fn shut_down(&self);

    fn leftovers(&self) -> Vec<Leftover<ObjectRef<K>>>;

    /// The time of the queue, as Tokio's.
    fn to_tokio(&self, instant: Instant) -> Option<tokio::time::Instant>;

    fn run<E, F, R>(
        &self,
        workers: Workers<'static, ObjectRef<K>, E>,
        stop: CancellationToken,
        reconcile: F,
    ) -> BoxFuture<'static, Vec<Leftover<ObjectRef<K>>>>
    where
        E: Send + 'static,
        F: Fn(ObjectRef<K>, RunContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static;
}

impl<K, P, L> AnyQueue<K> for WorkQueue<ObjectRef<K>, P, L>
where
    K: Resource + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    Shared<TaskHost<ObjectRef<K>, P, L, Growable>>: Send + Sync,
{
    fn add(&self, key: ObjectRef<K>, level: u8) -> Result<(), Rejected<ObjectRef<K>>> {
        self.add_with(key, at::<P>(level)).map(drop)
    }

    fn add_debounced(
        &self,
        key: ObjectRef<K>,
        level: u8,
        (quiet, max): (Duration, Duration),
    ) -> Result<(), Rejected<ObjectRef<K>>> {
        WorkQueue::add_debounced(self, key.clone(), quiet, max)?;
        // It keeps the deadline, and raises the level.
        let raised = AddOptions {
            merge: Merge::Keep,
            ..at::<P>(level)
        };
        self.add_with(key, raised).map(drop)
    }

    async fn add_wait(&self, key: ObjectRef<K>, level: u8) -> bool {
        let added = self.add_wait_with(key, at::<P>(level), Duration::MAX);
        added.await.is_ok()
    }

    fn holds(&self, key: &ObjectRef<K>) -> bool {
        self.contains(key)
    }

    fn suspend(&self, key: &ObjectRef<K>, timeout: Duration) -> bool {
        WorkQueue::suspend(self, key, timeout)
    }

    fn resume(&self, key: &ObjectRef<K>) -> bool {
        WorkQueue::resume(self, key)
    }

    fn set_policy(&self, policy: Policy) {
        WorkQueue::set_policy(self, policy);
    }

    fn report_running(&self) {
        WorkQueue::report_running(self);
    }

    fn shut_down(&self) {
        WorkQueue::shut_down(self);
    }

    fn leftovers(&self) -> Vec<Leftover<ObjectRef<K>>> {
        WorkQueue::leftovers(self).collect()
    }

    fn to_tokio(&self, instant: Instant) -> Option<tokio::time::Instant> {
        self.clock().to_tokio(instant)
    }

    fn run<E, F, R>(
        &self,
        workers: Workers<'static, ObjectRef<K>, E>,
        stop: CancellationToken,
        reconcile: F,
    ) -> BoxFuture<'static, Vec<Leftover<ObjectRef<K>>>>
    where
        E: Send + 'static,
        F: Fn(ObjectRef<K>, RunContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
    {
        Box::pin(self.run_with(workers, reconcile).shut_down_on(stop))
    }
}
/// The priority level of an object that was merely listed: at the start, and by a resync.
pub const LISTED: u8 = 0;

/// The priority level of an object that has changed, or on which something changed depends.
pub const CHANGED: u8 = 1;

/// Returns a reference with the name and the namespace alone, without the uid and the resource
/// version that a reference may also carry, so that a queue holds no more of an object than it
/// compares.
pub(crate) fn bare<K: Resource>(key: ObjectRef<K>) -> ObjectRef<K> {
    named(&key.name, key.namespace.as_deref(), key.dyntype)
}

pub(crate) fn named<K: Resource>(
    name: &str,
    namespace: Option<&str>,
    dyntype: K::DynamicType,
) -> ObjectRef<K> {
    let key = ObjectRef::new_with(name, dyntype);
    match namespace {
        Some(namespace) => key.within(namespace),
        None => key,
    }
}

/// How a key is added at a level, or at the highest one there is. A pending resync or retry is no
/// longer needed then: the key runs once, at the sooner of the times.
pub(crate) fn at<P: Priorities>(level: u8) -> AddOptions {
    AddOptions {
        priority: Some(level.min(P::LEVELS.saturating_sub(1))),
        merge: Merge::Once,
        ..AddOptions::new()
    }
}

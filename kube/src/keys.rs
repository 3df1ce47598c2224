//! What is in the queue: references to objects, at two levels.

use std::hash::Hash;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use requeue::binding::ClientGo;
use requeue::metrics::Reporter;
use requeue::priority::Levels;
use requeue::tokio::binding::Tasks;
use requeue::tokio::{AddOptions, WorkQueue};
use requeue::{Builder, Merge};

/// The queue of a controller: references to objects, at two priority levels, [`LISTED`] below
/// [`CHANGED`].
pub type Keys<K> = WorkQueue<ObjectRef<K>, Levels<2>>;

/// What builds the queue of a controller.
pub(crate) type KeysBuilder<K> = Builder<ObjectRef<K>, Levels<2>, ClientGo<true>, Tasks, Reporter>;

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

/// Adds a key at a level. Returns whether the queue takes keys.
pub(crate) fn add<K>(queue: &Keys<K>, key: ObjectRef<K>, level: u8) -> bool
where
    K: Resource,
    K::DynamicType: Eq + Hash,
{
    queue.add_with(key, at(level)).is_ok()
}

/// How a key is added at a level. A pending resync or retry is no longer needed then: the key runs
/// once, at the sooner of the times.
pub(crate) fn at(level: u8) -> AddOptions {
    AddOptions {
        priority: Some(level),
        merge: Merge::Once,
        ..AddOptions::new()
    }
}

//! Which objects own another.

use kube::Resource;
use kube::runtime::reflector::ObjectRef;

use crate::keys::named;

/// Returns the owners of `part` that are of the kind `K`, in the namespace of the part. The version
/// of the API that a reference names is that with which it was written, and says nothing about the
/// kind; group and kind do, as in controller-runtime.
pub(crate) fn owners_of<K, C>(part: &C, dyntype: &K::DynamicType) -> Vec<ObjectRef<K>>
where
    K: Resource<DynamicType: Clone>,
    C: Resource,
{
    let (group, kind) = (K::group(dyntype), K::kind(dyntype));
    let meta = part.meta();
    let owners = meta.owner_references.iter().flatten().filter(|owner| {
        let owner_group = owner.api_version.rsplit_once('/');
        owner.kind == kind && owner_group.map_or("", |(group, _)| group) == group
    });
    let namespace = meta.namespace.as_deref();
    owners
        .map(|owner| named(&owner.name, namespace, dyntype.clone()))
        .collect()
}

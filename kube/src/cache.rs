//! The stores of a controller, and how far their watches have come.

use std::hash::Hash;
use std::sync::Arc;

use kube::Resource;
use kube::api::ApiResource;
use kube::runtime::reflector::{ObjectRef, Store};

use crate::keys::named;
use crate::tracker::Name;

/// A store that a watch of the controller fills.
pub(crate) struct Cache {
    /// As `deployments.apps`.
    pub(crate) kind: Arc<str>,
    pub(crate) resource: ApiResource,
    /// The only namespace that is watched.
    namespace: Option<String>,
    show: Box<Show>,
    /// The newest version that the watch has brought: the store has all changes until then.
    pub(crate) newest: Option<Number>,
}

type Show = dyn Fn(&Name) -> Option<Shown> + Send + Sync;

/// An object as a store has it.
pub(crate) struct Shown {
    pub(crate) uid: String,
    pub(crate) version: Version,
    pub(crate) is_deleting: bool,
}

/// A resource version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub(crate) String);

/// A resource version that is a number. By KEP-5504 these are compared by length, then as text. A
/// number has no limit and no leading zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(usize, String);

/// What an event has changed in a store.
pub(crate) enum News {
    /// The store is as before.
    Nothing,
    Object {
        name: Name,
        version: Version,
        /// The object that is gone.
        ended: Option<String>,
    },
    /// The whole store.
    Listed { newest: Option<Number> },
}

impl Cache {
    pub(crate) fn new<C>(
        kind: &Arc<str>,
        dyntype: C::DynamicType,
        namespace: Option<&str>,
        store: Store<C>,
    ) -> Self
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Eq + Hash + Clone + Send + Sync,
    {
        let resource = ApiResource::erase::<C>(&dyntype);
        let show = move |name: &Name| {
            let key: ObjectRef<C> = named(&name.name, name.namespace.as_deref(), dyntype.clone());
            let object = store.get(&key)?;
            let meta = object.meta();
            Some(Shown {
                uid: meta.uid.clone()?,
                version: Version(meta.resource_version.clone()?),
                is_deleting: meta.deletion_timestamp.is_some(),
            })
        };
        Self {
            kind: Arc::clone(kind),
            resource,
            namespace: namespace.map(str::to_owned),
            show: Box::new(show),
            newest: None,
        }
    }

    /// Returns whether the objects of a namespace are in the store, if no selector excludes them.
    pub(crate) fn covers(&self, kind: &str, namespace: Option<&str>) -> bool {
        let own = self.namespace.as_deref();
        *self.kind == *kind && (own.is_none() || own == namespace)
    }

    pub(crate) fn show(&self, name: &Name) -> Option<Shown> {
        (self.show)(name)
    }

    /// Returns whether the watch has brought all changes up to `version`.
    pub(crate) fn is_at_least(&self, version: &Version) -> bool {
        version
            .number()
            .is_some_and(|number| self.newest >= Some(number))
    }
}

impl Version {
    pub(crate) fn of<C: Resource>(object: &C) -> Self {
        Self(object.meta().resource_version.clone().unwrap_or_default())
    }

    pub(crate) fn number(&self) -> Option<Number> {
        let digits = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = digits && !self.0.starts_with('0');
        is_number.then(|| Number(self.0.len(), self.0.clone()))
    }

    /// Returns whether an object of this version has the change that made `wanted`. Versions that
    /// are no numbers are only equal or not.
    pub(crate) fn is_at_least(&self, wanted: &Self) -> bool {
        let number = self.number();
        *self == *wanted || (number >= wanted.number() && wanted.number().is_some())
    }
}

impl News {
    pub(crate) fn of<C: Resource>(object: &C, has_ended: bool) -> Self {
        Self::Object {
            name: Name::of(object),
            version: Version::of(object),
            ended: object.meta().uid.clone().filter(|_| has_ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    fn is_at_least(shown: &str, wanted: &str) -> bool {
        Version(shown.to_owned()).is_at_least(&Version(wanted.to_owned()))
    }

    #[test]
    fn versions_are_numbers_of_any_length() {
        assert!(is_at_least("10", "9"));
        assert!(!is_at_least("9", "10"));
        assert!(is_at_least("7", "7"));
        let long = "9".repeat(40);
        assert!(is_at_least(&format!("1{long}"), &long));
        assert!(!is_at_least(&long, &format!("1{long}")));
    }

    #[test]
    fn versions_that_are_no_numbers_are_only_equal_or_not() {
        for (one, other) in [
            ("b", "a"),
            ("010", "9"),
            ("0", ""),
            ("-2", "-3"),
            ("2", "x1"),
            ("x1", "2"),
        ] {
            assert!(!is_at_least(one, other), "{one} {other}");
            assert!(is_at_least(one, one));
        }
    }
}

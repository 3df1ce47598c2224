//! From the events of a watch to the keys that have to run.
//!
//! A watch may lose its place and list everything again. What happened in between shows only by
//! comparison: objects that are gone, and owners that an object no longer has. So the tracker
//! remembers which objects there are, and which keys each of them stands for.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;

use crate::cache::{News, Number, Version};
use crate::events::Judge;
use crate::keys::{bare, named};
use crate::reasons::{Cause, Reason};

/// The keys that an event of a watch asks for.
pub(crate) struct Changes<K: Resource> {
    /// Objects that were merely listed.
    pub(crate) listed: Vec<ObjectRef<K>>,
    pub(crate) changed: Vec<(ObjectRef<K>, Reason)>,
    /// Whether this was the end of a list.
    pub(crate) synced: bool,
    /// What has changed in the store that the watch fills.
    pub(crate) news: News,
}

/// Follows the watch of a kind `T`, and says which keys of the kind `K` its events concern.
pub(crate) struct Tracker<T, K: Resource> {
    /// As `deployments.apps`.
    kind: Arc<str>,
    keys_of: KeysOf<T, K>,
    known: Known<K>,
    /// What the list that is under way has brought so far.
    listing: Vec<(Name, Seen<K>)>,
    /// The newest version in that list.
    newest: Option<Number>,
    has_listed: bool,
    hasher: RandomState,
}

/// Which keys an object stands for.
pub(crate) enum KeysOf<T, K: Resource> {
    /// Itself: the watch is that of the controller's own kind.
    Itself(K::DynamicType),
    Others(Box<Others<T, K>>),
}

type Others<T, K> = dyn Fn(&T) -> Vec<ObjectRef<K>> + Send;

type Known<K> = HashMap<Name, Seen<K>>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

impl Name {
    pub(crate) fn new(name: &str, namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(Box::from),
            name: name.into(),
        }
    }

    pub(crate) fn of<T: Resource>(object: &T) -> Self {
        let meta = object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        Self::new(name, meta.namespace.as_deref())
    }
}

struct Seen<K: Resource> {
    /// The hash of the resource version, or of what a predicate looks at. A collision costs a
    /// change its priority, and one that a predicate looks at its run.
    version: u64,
    /// Whether the version is that of a predicate, so that a change without another one is none.
    is_judged: bool,
    /// Empty if the object stands for itself.
    keys: Box<[ObjectRef<K>]>,
}

/// The methods return what an event asks for. Nothing is asked for while a list is under way,
/// because a reflector replaces the objects of its store only at the end of the list: a run in
/// between would see the objects of before. O(1), and at the end of a list of n objects, of which g
/// are gone, O(n + g log g).
impl<T: Resource, K: Resource> Tracker<T, K>
where
    K::DynamicType: Clone + PartialEq,
{
    pub(crate) fn new(kind: Arc<str>, keys_of: KeysOf<T, K>) -> Self {
        Self {
            kind,
            keys_of,
            known: Known::new(),
            listing: Vec::new(),
            newest: None,
            has_listed: false,
            hasher: RandomState::new(),
        }
    }

    pub(crate) fn begin_list(&mut self) -> Changes<K> {
        self.listing.clear();
        self.newest = None;
        Changes::none()
    }

    pub(crate) fn listed(&mut self, object: &T, judge: Option<Judge<'_, T>>) -> Changes<K> {
        let seen = self.look(object, judge);
        self.listing.push(seen);
        self.newest = self.newest.take().max(Version::of(object).number());
        Changes::none()
    }

    pub(crate) fn applied(&mut self, object: &T, judge: Option<Judge<'_, T>>) -> Changes<K> {
        let (name, seen) = self.look(object, judge);
        let mut changed = self.keys(&name, &seen);
        let known = self.known.get(&name);
        let is_as_before = known.is_some_and(|known| seen.is_as(known));
        if seen.is_judged && is_as_before {
            return Changes::none().with(News::of(object, false));
        }
        let before = self.known.insert(name.clone(), seen);
        self.add_owners(&mut changed, before);
        let changes = self.changed(changed, Cause::Applied, &name);
        changes.with(News::of(object, false))
    }

    pub(crate) fn deleted(&mut self, object: &T) -> Changes<K> {
        let (name, seen) = self.look(object, None);
        let mut changed = self.keys(&name, &seen);
        let before = self.known.remove(&name);
        self.add_owners(&mut changed, before);
        let changes = self.changed(changed, Cause::Deleted, &name);
        changes.with(News::of(object, true))
    }

    /// An object of which only this is known: it is remembered only if it is judged, because
    /// nothing says when it is gone.
    pub(crate) fn touched(&mut self, object: &T, judge: Option<Judge<'_, T>>) -> Changes<K> {
        if judge.is_some() {
            return self.applied(object, judge);
        }
        let (name, seen) = self.look(object, None);
        let changes = self.changed(self.keys(&name, &seen), Cause::Applied, &name);
        changes.with(News::of(object, false))
    }

    /// The end of a list: what is new in it, what is not in it any more, and what is as before.
    pub(crate) fn end_list(&mut self) -> Changes<K> {
        let mut before = std::mem::take(&mut self.known);
        let mut changes = Changes::none();
        changes.synced = true;
        changes.news = News::Listed {
            newest: self.newest.take(),
        };
        for (name, seen) in std::mem::take(&mut self.listing) {
            let old = before.remove(&name);
            let is_old = old.as_ref().is_some_and(|old| seen.is_as(old));
            let mut keys = self.keys(&name, &seen);
            if is_old || !self.has_listed {
                changes.listed.append(&mut keys);
            } else {
                self.add_owners(&mut keys, old);
                let mut changed = self.changed(keys, Cause::Applied, &name);
                changes.changed.append(&mut changed.changed);
            }
            self.known.insert(name, seen);
        }
        // What is gone, by name: a map has another order in each process.
        let mut gone: Vec<_> = before.into_iter().collect();
        gone.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (name, seen) in &gone {
            let mut changed = self.changed(self.keys(name, seen), Cause::Deleted, name);
            changes.changed.append(&mut changed.changed);
        }
        self.has_listed = true;
        changes
    }

    fn look(&self, object: &T, judge: Option<Judge<'_, T>>) -> (Name, Seen<K>) {
        let meta = object.meta();
        let name = Name::of(object);
        let keys = match &self.keys_of {
            KeysOf::Itself(_) => Box::default(),
            KeysOf::Others(keys_of) => keys_of(object).into_iter().map(bare).collect(),
        };
        let judged = judge.and_then(|judge| judge(object));
        let version = match judged {
            // Another object of the same name has another uid.
            Some(judged) => self.hasher.hash_one((&meta.uid, judged)),
            None => self.hasher.hash_one(&meta.resource_version),
        };
        let seen = Seen {
            version,
            is_judged: judged.is_some(),
            keys,
        };
        (name, seen)
    }

    fn changed(&self, keys: Vec<ObjectRef<K>>, cause: Cause, name: &Name) -> Changes<K> {
        if keys.is_empty() {
            return Changes::none();
        }
        let object = match &name.namespace {
            Some(namespace) => format!("{namespace}/{}", name.name),
            None => String::from(&*name.name),
        };
        Changes::changed(keys, Reason::new(cause, Arc::clone(&self.kind), object))
    }

    fn keys(&self, name: &Name, seen: &Seen<K>) -> Vec<ObjectRef<K>> {
        match &self.keys_of {
            KeysOf::Itself(dyntype) => {
                vec![named(
                    &name.name,
                    name.namespace.as_deref(),
                    dyntype.clone(),
                )]
            }
            KeysOf::Others(_) => seen.keys.to_vec(),
        }
    }

    /// Adds the keys that an object stood for before. An owner that has lost a part has to run too.
    fn add_owners(&self, keys: &mut Vec<ObjectRef<K>>, before: Option<Seen<K>>) {
        for key in before.into_iter().flat_map(|seen| seen.keys) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
}

impl<K: Resource<DynamicType: PartialEq>> Seen<K> {
    /// Whether nothing has changed that counts. The keys of one version can differ if a predicate
    /// looks at less than they are computed from.
    fn is_as(&self, before: &Self) -> bool {
        self.version == before.version && self.keys == before.keys
    }
}

impl<K: Resource> Changes<K> {
    fn none() -> Self {
        Self {
            listed: Vec::new(),
            changed: Vec::new(),
            synced: false,
            news: News::Nothing,
        }
    }

    fn with(self, news: News) -> Self {
        Self { news, ..self }
    }

    pub(crate) fn changed(keys: Vec<ObjectRef<K>>, reason: Reason) -> Self {
        let changed = keys.into_iter().map(|key| (key, reason.clone()));
        Self {
            changed: changed.collect(),
            ..Self::none()
        }
    }

    pub(crate) fn synced() -> Self {
        Self {
            synced: true,
            ..Self::none()
        }
    }

    pub(crate) fn listed(listed: Vec<ObjectRef<K>>) -> Self {
        Self {
            listed,
            ..Self::none()
        }
    }
}

//! From the events of a watch to the keys that have to run.
//!
//! A watch may lose its place and list everything again. What happened in between shows only by
//! comparison: objects that are gone, and owners that an object no longer has. So the tracker
//! remembers which objects there are, and which keys each of them stands for.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;

use crate::keys::{bare, named};

/// The keys that an event of a watch asks for.
pub(crate) struct Changes<K: Resource> {
    /// Objects that were merely listed.
    pub(crate) listed: Vec<ObjectRef<K>>,
    pub(crate) changed: Vec<ObjectRef<K>>,
    /// Whether this was the end of a list.
    pub(crate) synced: bool,
}

/// Follows the watch of a kind `T`, and says which keys of the kind `K` its events concern.
pub(crate) struct Tracker<T, K: Resource> {
    keys_of: KeysOf<T, K>,
    known: Known<K>,
    /// What the list that is under way has brought so far.
    listing: Vec<(Name, Seen<K>)>,
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

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Name {
    namespace: Option<Box<str>>,
    name: Box<str>,
}

struct Seen<K: Resource> {
    /// The hash of the resource version. A collision costs a change its priority, nothing else.
    version: u64,
    /// Empty if the object stands for itself.
    keys: Box<[ObjectRef<K>]>,
}

impl<T: Resource, K: Resource> Tracker<T, K>
where
    K::DynamicType: Clone + PartialEq,
{
    pub(crate) fn new(keys_of: KeysOf<T, K>) -> Self {
        Self {
            keys_of,
            known: Known::new(),
            listing: Vec::new(),
            has_listed: false,
            hasher: RandomState::new(),
        }
    }

    /// Returns what an event asks for. Nothing is asked for while a list is under way, because a
    /// reflector replaces the objects of its store only at the end of the list: a run in between
    /// would see the objects of before. O(1), and at the end of a list of n objects, of which
    /// g are gone, O(n + g log g).
    pub(crate) fn see(&mut self, event: &Event<T>) -> Changes<K> {
        match event {
            Event::Init => {
                self.listing.clear();
                Changes::none()
            }
            Event::InitApply(object) => {
                let (name, seen) = self.look(object);
                self.listing.push((name, seen));
                Changes::none()
            }
            Event::InitDone => self.compare(),
            Event::Apply(object) => {
                let (name, seen) = self.look(object);
                let mut changed = self.keys(&name, &seen);
                let before = self.known.insert(name, seen);
                self.add_owners(&mut changed, before);
                Changes::changed(changed)
            }
            Event::Delete(object) => {
                let (name, seen) = self.look(object);
                let mut changed = self.keys(&name, &seen);
                let before = self.known.remove(&name);
                self.add_owners(&mut changed, before);
                Changes::changed(changed)
            }
        }
    }

    /// The end of a list: what is new in it, what is not in it any more, and what is as before.
    fn compare(&mut self) -> Changes<K> {
        let mut before = std::mem::take(&mut self.known);
        let (mut listed, mut changed) = (Vec::new(), Vec::new());
        for (name, seen) in std::mem::take(&mut self.listing) {
            let old = before.remove(&name);
            let is_old = old.as_ref().is_some_and(|old| old.version == seen.version);
            if is_old || !self.has_listed {
                listed.extend(self.keys(&name, &seen));
            } else {
                let mut keys = self.keys(&name, &seen);
                self.add_owners(&mut keys, old);
                changed.append(&mut keys);
            }
            self.known.insert(name, seen);
        }
        // What is gone, by name: a map has another order in each process.
        let mut gone: Vec<_> = before.into_iter().collect();
        gone.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (name, seen) in &gone {
            changed.extend(self.keys(name, seen));
        }
        self.has_listed = true;
        Changes {
            listed,
            changed,
            synced: true,
        }
    }

    fn look(&self, object: &T) -> (Name, Seen<K>) {
        let meta = object.meta();
        let name = Name {
            namespace: meta.namespace.as_deref().map(Box::from),
            name: meta.name.as_deref().unwrap_or_default().into(),
        };
        let keys = match &self.keys_of {
            KeysOf::Itself(_) => Box::default(),
            KeysOf::Others(keys_of) => keys_of(object).into_iter().map(bare).collect(),
        };
        let version = self.hasher.hash_one(&meta.resource_version);
        (name, Seen { version, keys })
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

impl<K: Resource> Changes<K> {
    fn none() -> Self {
        Self::changed(Vec::new())
    }

    pub(crate) fn changed(changed: Vec<ObjectRef<K>>) -> Self {
        Self {
            listed: Vec::new(),
            changed,
            synced: false,
        }
    }
}

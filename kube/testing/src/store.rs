//! The objects of a cluster, their history, and what each write does to their metadata.
//!
//! Everything happens at the time of the write. There are no addresses, clients or faults here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::kinds::{Kind, Kinds};

/// Which object: `deployments.apps`, namespace or nothing, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    /// Since the cluster began.
    pub(crate) at: Duration,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    /// `None` if the object was deleted.
    pub(crate) after: Option<Arc<Value>>,
    /// The object as a watch shows it: the last one, with the version of its end.
    pub(crate) shown: Arc<Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) kinds: Kinds,
    pub(crate) version: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    /// Every change since the cluster began.
    pub(crate) history: Vec<Change>,
    /// No watch can begin, and no page can be had, before this version.
    pub(crate) compacted: u64,
    names: u64,
    now: Duration,
}

/// How an object is deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) propagation: Option<String>,
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Store {
    pub(crate) fn new() -> Self {
        let mut store = Self {
            kinds: Kinds::built_in(),
            version: 0,
            objects: BTreeMap::new(),
            history: Vec::new(),
            compacted: 0,
            names: 0,
            now: Duration::ZERO,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let key = Key {
                resource: String::from("namespaces"),
                namespace: String::new(),
                name: name.to_owned(),
            };
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "status": {"phase": "Active"},
            });
            store.insert(key, namespace);
        }
        store
    }

    /// Moves the clock of the server.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// The time of the server, as metadata has it.
    pub(crate) fn time(&self) -> String {
        let since = SignedDuration::try_from(self.now).unwrap_or(SignedDuration::ZERO);
        let seconds = SignedDuration::from_secs(since.as_secs());
        let epoch = Timestamp::from_second(EPOCH).unwrap_or(Timestamp::UNIX_EPOCH);
        epoch.checked_add(seconds).unwrap_or(epoch).to_string()
    }

    pub(crate) fn find(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// The objects of a resource as they were at a version. O(changes since then).
    pub(crate) fn at_version(&self, resource: &str, version: u64) -> BTreeMap<Key, Arc<Value>> {
        let own = self
            .objects
            .iter()
            .filter(|(key, _)| key.resource == resource);
        let mut objects: BTreeMap<Key, Arc<Value>> = own
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        let later = self
            .history
            .partition_point(|change| change.version <= version);
        for change in self.history[later..].iter().rev() {
            if change.key.resource != resource {
                continue;
            }
            match &change.before {
                Some(object) => objects.insert(change.key.clone(), Arc::clone(object)),
                None => objects.remove(&change.key),
            };
        }
        objects
    }

    /// The last version that was there at this time.
    pub(crate) fn version_at(&self, time: Duration) -> u64 {
        let later = self.history.partition_point(|change| change.at <= time);
        later
            .checked_sub(1)
            .map_or(0, |last| self.history[last].version)
    }

    /// The end of a generated name. Five letters, as Kubernetes', but in order.
    pub(crate) fn next_name(&mut self) -> String {
        self.names += 1;
        let mut rest = self.names;
        let letters = (0..5).map(|_| {
            let letter = LETTERS[(rest % LETTERS.len() as u64) as usize];
            rest /= LETTERS.len() as u64;
            char::from(letter)
        });
        letters.collect::<String>().chars().rev().collect()
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// There is one, its namespace is not there, or it has no name.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        key: Key,
        mut object: Value,
    ) -> Result<Arc<Value>, Refusal> {
        if self.objects.contains_key(&key) {
            let message = format!("{} {:?} already exists", key.resource, key.name);
            let refusal = Refusal::new(409, "AlreadyExists", message);
            return Err(refusal.about(&key.resource, &key.name));
        }
        self.check_namespace(kind, &key)?;
        self.names += 1;
        let meta = &mut object["metadata"];
        for name in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            meta.as_object_mut().map(|meta| meta.remove(name));
        }
        meta["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", self.names));
        meta["creationTimestamp"] = json!(self.time());
        if kind.has_generation {
            meta["generation"] = json!(1);
        }
        if key.resource == "namespaces" {
            meta["labels"]["kubernetes.io/metadata.name"] = json!(key.name);
            object["status"] = json!({"phase": "Active"});
        }
        if key.resource == "customresourcedefinitions.apiextensions.k8s.io" {
            self.kinds.install(&object)?;
            let accepted = |kind: &str| {
                json!({"type": kind, "status": "True", "reason": "Accepted", "message": "",
                    "lastTransitionTime": self.time()})
            };
            object["status"] = json!({
                "conditions": [accepted("NamesAccepted"), accepted("Established")],
                "acceptedNames": object["spec"]["names"],
                "storedVersions": [],
            });
        }
        let object = self.insert(key, object);
        self.collect();
        Ok(object)
    }

    fn check_namespace(&self, kind: &Kind, key: &Key) -> Result<(), Refusal> {
        if !kind.is_namespaced {
            return Ok(());
        }
        let namespace = Key {
            resource: String::from("namespaces"),
            namespace: String::new(),
            name: key.namespace.clone(),
        };
        match self.objects.get(&namespace) {
            None => Err(Refusal::missing("namespaces", &key.namespace)),
            Some(namespace) if namespace["metadata"]["deletionTimestamp"].is_string() => {
                let name = &key.namespace;
                let message = format!(
                    "namespace {name} is being terminated, so {} is forbidden",
                    key.name
                );
                let mut refusal = Refusal::forbidden(message);
                refusal.details = json!({"causes": [
                    {"reason": "NamespaceTerminating", "field": "metadata.namespace"},
                ]});
                Err(refusal.about(&key.resource, &key.name))
            }
            Some(_) => Ok(()),
        }
    }

    /// Replaces an object by one whose metadata follows from the old one's.
    ///
    /// # Errors
    ///
    /// A finalizer was added to an object that is being deleted.
    pub(crate) fn replace(
        &mut self,
        kind: &Kind,
        key: &Key,
        mut object: Value,
    ) -> Result<Arc<Value>, Refusal> {
        let Some(old) = self.objects.get(key).map(Arc::clone) else {
            return Err(Refusal::missing(&key.resource, &key.name));
        };
        let meta = &mut object["metadata"];
        for name in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
            "generateName",
        ] {
            match old["metadata"].get(name) {
                Some(value) => meta[name] = value.clone(),
                None => {
                    meta.as_object_mut().map(|meta| meta.remove(name));
                }
            }
        }
        let is_deleted = meta["deletionTimestamp"].is_string();
        if is_deleted {
            let had = finalizers(&old);
            if let Some(added) = finalizers(&object).iter().find(|name| !had.contains(name)) {
                let message = format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, \
                     found new finalizer {added:?}"
                );
                return Err(Refusal::field("metadata.finalizers", "Forbidden", &message));
            }
        }
        // A write that changes nothing is no event.
        if without_times(&old) == without_times(&object) {
            return Ok(old);
        }
        if kind.has_generation && wanted(kind, &old) != wanted(kind, &object) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
            object["metadata"]["generation"] = json!(generation.saturating_add(1));
        }
        let object = if is_deleted && finalizers(&object).is_empty() {
            // Its last write is not stored: watches show it as it was.
            self.remove(key, (*old).clone());
            Arc::new(object)
        } else {
            self.insert(key.clone(), object)
        };
        self.collect();
        Ok(object)
    }

    /// Deletes an object, or marks it if it has finalizers. Returns it, and whether it is gone.
    ///
    /// # Errors
    ///
    /// It is not there, or not as the deletion asks for.
    pub(crate) fn delete(
        &mut self,
        key: &Key,
        deletion: &Deletion,
    ) -> Result<(Arc<Value>, bool), Refusal> {
        let old = self.objects.get(key).map(Arc::clone);
        let old = old.ok_or_else(|| Refusal::missing(&key.resource, &key.name))?;
        let meta = &old["metadata"];
        let differs = |wanted: &Option<String>, name: &str| {
            wanted
                .as_deref()
                .is_some_and(|wanted| meta[name] != *wanted)
        };
        if differs(&deletion.uid, "uid") || differs(&deletion.version, "resourceVersion") {
            let why = "the precondition does not hold";
            return Err(Refusal::conflict(&key.resource, &key.name, why));
        }
        let mut object = (*old).clone();
        let finalizer = match deletion.propagation.as_deref() {
            Some("Orphan") => Some(ORPHAN),
            Some("Foreground") => Some(FOREGROUND),
            _ => None,
        };
        let mut all = finalizers(&object);
        if let Some(finalizer) = finalizer.filter(|name| !all.iter().any(|own| own == name)) {
            all.push(finalizer.to_owned());
            object["metadata"]["finalizers"] = json!(all);
        }
        let has_content = key.resource == "namespaces"
            && self.objects.keys().any(|own| own.namespace == key.name);
        let answer = if all.is_empty() && !has_content {
            (self.remove(key, object), true)
        } else if old["metadata"]["deletionTimestamp"].is_string() {
            (old, false)
        } else {
            let time = self.time();
            let meta = &mut object["metadata"];
            meta["deletionTimestamp"] = json!(time);
            meta["deletionGracePeriodSeconds"] = json!(0);
            if let Some(generation) = meta["generation"].as_i64() {
                meta["generation"] = json!(generation.saturating_add(1));
            }
            if key.resource == "namespaces" {
                object["status"]["phase"] = json!("Terminating");
            }
            (self.insert(key.clone(), object), false)
        };
        self.collect();
        Ok(answer)
    }

    fn insert(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        drop_empty_metadata(&mut object);
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.history.push(Change {
            version: self.version,
            at: self.now,
            key,
            before,
            after: Some(Arc::clone(&object)),
            shown: Arc::clone(&object),
        });
        object
    }

    fn remove(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.remove(key);
        self.history.push(Change {
            version: self.version,
            at: self.now,
            key: key.clone(),
            before,
            after: None,
            shown: Arc::clone(&object),
        });
        object
    }

    /// What the garbage collector and the namespace controller do, until there is nothing left.
    /// Each step removes an object, a finalizer or an owner, so that it ends.
    fn collect(&mut self) {
        let mut todo: VecDeque<Step> = self.steps().into();
        while let Some(step) = todo.pop_front() {
            self.take(step);
            if todo.is_empty() {
                todo = self.steps().into();
            }
        }
    }

    fn take(&mut self, step: Step) {
        let (key, object) = match step {
            Step::Delete(key) => {
                let Some(old) = self.objects.get(&key).map(Arc::clone) else {
                    return;
                };
                if finalizers(&old).is_empty() {
                    self.remove(&key, (*old).clone());
                    return;
                }
                let mut object = (*old).clone();
                object["metadata"]["deletionTimestamp"] = json!(self.time());
                object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
                (key, object)
            }
            Step::Change(key, object) => (key, object),
        };
        let is_deleted = object["metadata"]["deletionTimestamp"].is_string();
        if is_deleted && finalizers(&object).is_empty() {
            self.remove(&key, object);
        } else {
            self.insert(key, object);
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let uid = |object: &Arc<Value>| object["metadata"]["uid"].as_str().map(str::to_owned);
        let all = self.objects.iter();
        let uids: BTreeMap<String, &Key> = all
            .filter_map(|(key, object)| Some((uid(object)?, key)))
            .collect();
        // An owner is in the same namespace, or in none.
        let is_there = |key: &Key, owner: &Value| {
            let found = owner["uid"].as_str().and_then(|uid| uids.get(uid));
            found.is_some_and(|own| own.namespace.is_empty() || own.namespace == key.namespace)
        };
        for (key, object) in &self.objects {
            let meta = &object["metadata"];
            let is_deleted = meta["deletionTimestamp"].is_string();
            if is_deleted && key.resource == "namespaces" {
                let inside: Vec<_> = self
                    .objects
                    .iter()
                    .filter(|(own, _)| own.namespace == key.name)
                    .collect();
                let remaining = inside.iter().filter(|(_, object)| !is_marked(object));
                steps.extend(remaining.map(|(key, _)| Step::Delete((*key).clone())));
                if inside.is_empty() && finalizers(object).is_empty() {
                    steps.push(Step::Change(key.clone(), (**object).clone()));
                }
            }
            if is_deleted && finalizers(object).iter().any(|name| name == ORPHAN) {
                for (key, part) in self.parts_of(object) {
                    let mut part = (**part).clone();
                    let owners = part.pointer_mut("/metadata/ownerReferences");
                    if let Some(owners) = owners.and_then(Value::as_array_mut) {
                        owners.retain(|owner| owner["uid"] != meta["uid"]);
                    }
                    steps.push(Step::Change(key.clone(), part));
                }
                if steps.is_empty() {
                    steps.push(Step::Change(key.clone(), without_finalizer(object, ORPHAN)));
                }
            } else if is_deleted && finalizers(object).iter().any(|name| name == FOREGROUND) {
                let parts: Vec<_> = self.parts_of(object).collect();
                let remaining = parts.iter().filter(|(_, part)| !is_marked(part));
                steps.extend(remaining.map(|(key, _)| Step::Delete((*key).clone())));
                let blocks = |part: &Value| {
                    owners(part).any(|owner| {
                        owner["uid"] == meta["uid"] && owner["blockOwnerDeletion"] == true
                    })
                };
                if !parts.iter().any(|(_, part)| blocks(part)) && steps.is_empty() {
                    steps.push(Step::Change(
                        key.clone(),
                        without_finalizer(object, FOREGROUND),
                    ));
                }
            }
            if !is_deleted && owners(object).next().is_some() {
                let exists = owners(object).any(|owner| is_there(key, owner));
                if !exists {
                    steps.push(Step::Delete(key.clone()));
                }
            }
        }
        steps
    }

    fn parts_of<'s>(
        &'s self,
        object: &'s Value,
    ) -> impl Iterator<Item = (&'s Key, &'s Arc<Value>)> {
        let uid = &object["metadata"]["uid"];
        self.objects
            .iter()
            .filter(move |(_, part)| owners(part).any(|owner| owner["uid"] == *uid))
    }
}

/// What the garbage collector does next.
enum Step {
    Delete(Key),
    Change(Key, Value),
}

/// Leaves out what is empty in the metadata, as an answer of Kubernetes does.
pub(crate) fn drop_empty_metadata(object: &mut Value) {
    let Some(meta) = object["metadata"].as_object_mut() else {
        return;
    };
    for name in ["annotations", "labels", "finalizers", "ownerReferences"] {
        let is_empty = match meta.get(name) {
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            meta.remove(name);
        }
    }
}

fn is_marked(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

fn finalizers(object: &Value) -> Vec<String> {
    let names = object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn without_finalizer(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    let rest: Vec<String> = finalizers(&object)
        .into_iter()
        .filter(|own| own != name)
        .collect();
    object["metadata"]["finalizers"] = json!(rest);
    object
}

/// What a generation counts.
fn wanted(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("apiVersion");
        fields.remove("kind");
        if kind.has_status {
            fields.remove("status");
        }
    }
    object
}

/// An object without the times at which its fields were written.
fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object["metadata"]
        .get_mut("managedFields")
        .and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        entry.as_object_mut().map(|entry| entry.remove("time"));
    }
    object
}

/// 2026-01-01.
const EPOCH: i64 = 1_767_225_600;
/// Those of Kubernetes' `rand.String`: no vowels, no bad words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

//! The objects of a cluster, and what requests do to them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::{Answer, Refusal};
use crate::path::Path;

#[derive(Default)]
pub(super) struct State {
    pub(super) version: u64,
    /// By resource (`deployments.apps`), namespace and name.
    pub(super) objects: BTreeMap<Key, Value>,
    pub(super) history: Vec<Change>,
    /// A watch cannot begin before this version.
    pub(super) compacted: u64,
    /// What follows a page of a list, by its token.
    pages: BTreeMap<String, (u64, Vec<Value>)>,
    /// How often the watches of a resource were cut.
    pub(super) cuts: BTreeMap<String, u64>,
    /// Resources that are refused: the status that a client gets instead.
    pub(super) refused: BTreeMap<String, (u16, &'static str)>,
    pub(super) refusals: usize,
    /// How often each resource was listed.
    pub(super) lists: BTreeMap<String, usize>,
    /// When its clock was looked at first.
    since: OnceCell<Instant>,
}

pub(super) type Key = (String, Option<String>, String);

#[derive(Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) at: Instant,
    pub(super) kind: &'static str,
    pub(super) resource: String,
    pub(super) object: Value,
}

impl State {
    /// The time of the API server, in whole seconds.
    fn now(&self) -> String {
        let since = *self.since.get_or_init(Instant::now);
        let year = Timestamp::from_second(1_767_225_600).unwrap();
        let seconds = i64::try_from(since.elapsed().as_secs()).unwrap();
        (year + SignedDuration::from_secs(seconds)).to_string()
    }

    pub(super) fn cuts_of(&self, resource: &str) -> u64 {
        self.cuts.get(resource).copied().unwrap_or_default()
    }

    pub(super) fn find(&self, key: &Key) -> Answer {
        let missing = || Refusal(404, "NotFound", format!("{} {} not found", key.0, key.2));
        self.objects.get(key).cloned().ok_or_else(missing)
    }

    /// The pages of a list are of one moment, which their token names.
    pub(super) fn list(&mut self, path: &Path) -> Answer {
        let limit = path.query.get("limit").and_then(|limit| limit.parse().ok());
        let limit = limit.unwrap_or(usize::MAX);
        let (version, rest) = match path.query.get("continue") {
            None => {
                let concerned = self.objects.iter().filter(|((resource, namespace, _), _)| {
                    let is_there = path.namespace.is_none() || path.namespace == *namespace;
                    *resource == path.resource && is_there
                });
                let all = concerned.map(|(_, object)| object);
                let all = all.filter(|object| path.selects(object));
                let all = all.map(|object| path.shown(object)).collect();
                *self.lists.entry(path.resource.clone()).or_default() += 1;
                (self.version, all)
            }
            Some(token) => {
                let page = self
                    .pages
                    .remove(token)
                    .filter(|(version, _)| *version >= self.compacted);
                let gone = || Refusal(410, "Expired", "the token is too old".to_owned());
                page.ok_or_else(gone)?
            }
        };
        let mut items: Vec<Value> = rest;
        let rest = items.split_off(limit.min(items.len()));
        let token =
            (!rest.is_empty()).then(|| format!("{}-{version}-{}", path.resource, rest.len()));
        if let Some(token) = &token {
            self.pages.insert(token.clone(), (version, rest));
        }
        Ok(json!({
            "kind": "List", "apiVersion": path.api_version,
            "metadata": {"resourceVersion": version.to_string(), "continue": token},
            "items": items,
        }))
    }

    pub(super) fn create(&mut self, path: &Path, mut object: Value) -> Answer {
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let key = (path.resource.clone(), path.namespace.clone(), name);
        if self.objects.contains_key(&key) {
            let message = format!("{} {} exists", key.0, key.2);
            return Err(Refusal(409, "AlreadyExists", message));
        }
        if let Some(namespace) = &path.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Ok(self.store(key, object))
    }

    pub(super) fn replace(&mut self, path: &Path, object: Value) -> Answer {
        let old = self.find(&path.key())?;
        let version = &object["metadata"]["resourceVersion"];
        if version.is_string() && *version != old["metadata"]["resourceVersion"] {
            let message = "the object has been modified".to_owned();
            return Err(Refusal(409, "Conflict", message));
        }
        Self::check_uid(&object["metadata"]["uid"], &old, 409, "Conflict")?;
        Ok(self.store(path.key(), object))
    }

    fn check_uid(
        uid: &Value,
        object: &Value,
        code: u16,
        reason: &'static str,
    ) -> Result<(), Refusal> {
        if uid.is_null() || *uid == object["metadata"]["uid"] {
            return Ok(());
        }
        Err(Refusal(code, reason, "another uid".to_owned()))
    }

    pub(super) fn patch(&mut self, path: &Path, kind: &str, body: &[u8]) -> Answer {
        let applies = kind.starts_with("application/apply-patch");
        let mut object = match self.find(&path.key()) {
            Ok(object) => object,
            Err(_) if applies => json!({}),
            Err(refusal) => return Err(refusal),
        };
        let failed = |error: String| Refusal(422, "Invalid", error);
        if kind.starts_with("application/json-patch") {
            let patch: json_patch::Patch =
                serde_json::from_slice(body).map_err(|error| failed(error.to_string()))?;
            // As the real one: what is absent passes a test for null.
            let finalizers = &mut object["metadata"]["finalizers"];
            let was_absent = finalizers.is_null();
            json_patch::patch(&mut object, &patch).map_err(|error| failed(error.to_string()))?;
            if was_absent && object["metadata"]["finalizers"].is_null() {
                json_patch::merge(&mut object, &json!({"metadata": {"finalizers": null}}));
            }
        } else {
            let patch = json_of(body);
            Self::check_uid(&patch["metadata"]["uid"], &object, 422, "Invalid")?;
            json_patch::merge(&mut object, &patch);
        }
        if let Some(namespace) = &path.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Ok(self.store(path.key(), object))
    }

    pub(super) fn store(&mut self, key: Key, mut object: Value) -> Value {
        let old = self.objects.get(&key);
        let is_new = old.is_none();
        let meta = &mut object["metadata"];
        meta["uid"] = old.map_or(json!(format!("uid-{}", self.version)), |old| {
            old["metadata"]["uid"].clone()
        });
        meta["creationTimestamp"] = old.map_or(json!(self.now()), |old| {
            old["metadata"]["creationTimestamp"].clone()
        });
        // A write that changes nothing is no event.
        meta["resourceVersion"] = old.map_or(Value::Null, |old| {
            old["metadata"]["resourceVersion"].clone()
        });
        if old == Some(&object) {
            return object;
        }
        let finalizers = object["metadata"]["finalizers"]
            .as_array()
            .map_or(0, Vec::len);
        if object["metadata"]["deletionTimestamp"].is_string() && finalizers == 0 {
            return self.remove(&key, object);
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.remember(if is_new { "ADDED" } else { "MODIFIED" }, &key, &object);
        self.objects.insert(key.clone(), object.clone());
        if self.is_orphan(&object) {
            return self.remove(&key, object);
        }
        object
    }

    /// Deletes it if it is as the request says.
    pub(super) fn delete_if(&mut self, key: &Key, body: &[u8]) -> Answer {
        let object = self.find(key)?;
        let options = match body {
            [] => Value::Null,
            body => json_of(body),
        };
        let conditions = &options["preconditions"];
        Self::check_uid(&conditions["uid"], &object, 409, "Conflict")?;
        let version = &conditions["resourceVersion"];
        if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
            let message = "the object has been modified".to_owned();
            return Err(Refusal(409, "Conflict", message));
        }
        self.delete(key)
    }

    pub(super) fn delete(&mut self, key: &Key) -> Answer {
        let mut object = self.find(key)?;
        if object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            return Ok(self.store(key.clone(), object));
        }
        Ok(self.remove(key, object))
    }

    /// Removes an object and what it owned.
    fn remove(&mut self, key: &Key, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.remove(key);
        self.remember("DELETED", key, &object);
        let orphans = self.objects.iter().filter(|(_, part)| self.is_orphan(part));
        let orphans: Vec<Key> = orphans.map(|(key, _)| key.clone()).collect();
        for orphan in orphans {
            let _ = self.delete(&orphan);
        }
        object
    }

    /// Whether an object has owners, and none of them is there.
    fn is_orphan(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let exists = |owner: &Value| {
            let owned = self
                .objects
                .values()
                .map(|object| &object["metadata"]["uid"]);
            owned.into_iter().any(|uid| *uid == owner["uid"])
        };
        owners.is_some_and(|owners| !owners.is_empty() && !owners.iter().any(exists))
    }

    fn remember(&mut self, kind: &'static str, key: &Key, object: &Value) {
        self.history.push(Change {
            version: self.version,
            at: Instant::now(),
            kind,
            resource: key.0.clone(),
            object: object.clone(),
        });
    }
}

pub(super) fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

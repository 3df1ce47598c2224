//! A Kubernetes API in memory: what kube's `Client` needs of a server, on the test's own time.
//!
//! Lists have pages, watches have bookmarks, resource versions make a write fail that comes too
//! late, a deleted object waits for its finalizers, and what an object owned goes with it. It
//! checks no schema. Faults are those that a client of the real one sees: a [`Link`] that is down,
//! slow or refuses, watches that end, and a history that has been compacted.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tower::service_fn;

use crate::path::Path;

/// The cluster. Clones are the same.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    /// Told whenever something has changed that a watch has to look at.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    version: u64,
    /// By resource (`deployments.apps`), namespace and name.
    objects: BTreeMap<Key, Value>,
    history: Vec<Change>,
    /// A watch cannot begin before this version.
    compacted: u64,
    /// What follows a page of a list, by its token.
    pages: BTreeMap<String, (u64, Vec<Value>)>,
    /// How often the watches of a resource were cut.
    cuts: BTreeMap<String, u64>,
    /// Resources that are refused: the status that a client gets instead.
    refused: BTreeMap<String, (u16, &'static str)>,
}

type Key = (String, Option<String>, String);

#[derive(Clone)]
struct Change {
    version: u64,
    kind: &'static str,
    resource: String,
    object: Value,
}

/// How one client reaches the cluster. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Faults>);

#[derive(Default)]
struct Faults {
    /// Requests are never answered.
    is_down: AtomicBool,
    /// How long a request and each event of a watch takes at most, in milliseconds.
    latency: AtomicU64,
    /// Of 100 requests so many fail, before or after they were carried out.
    failures: AtomicU64,
    /// Of 100 events of a watch so many come twice.
    repeats: AtomicU64,
    random: AtomicU64,
}

impl Link {
    pub(crate) fn seeded(seed: u64) -> Self {
        let link = Self::default();
        link.0.random.store(seed, Ordering::Relaxed);
        link
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::Relaxed);
    }

    pub(crate) fn set_faults(&self, latency: Duration, failures: u64, repeats: u64) {
        let millis = u64::try_from(latency.as_millis()).unwrap();
        self.0.latency.store(millis, Ordering::Relaxed);
        self.0.failures.store(failures, Ordering::Relaxed);
        self.0.repeats.store(repeats, Ordering::Relaxed);
    }

    /// splitmix64.
    fn random(&self, below: u64) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut x = self
            .0
            .random
            .fetch_add(step, Ordering::Relaxed)
            .wrapping_add(step);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % below.max(1)
    }

    /// What is sent while the link is down is lost, which is noticed when it is up again, or after
    /// half a minute.
    async fn travel(&self) -> io::Result<()> {
        let latency = self.0.latency.load(Ordering::Relaxed);
        if latency > 0 {
            sleep(Duration::from_millis(self.random(latency))).await;
        }
        for second in 0..30 {
            if self.0.is_down.load(Ordering::Relaxed) {
                sleep(Duration::from_secs(1)).await;
            } else if second == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("connection lost"))
    }

    fn fails(&self) -> bool {
        self.random(100) < self.0.failures.load(Ordering::Relaxed)
    }

    fn repeats(&self) -> bool {
        self.random(100) < self.0.repeats.load(Ordering::Relaxed)
    }
}

/// What the API says if it refuses.
pub(crate) struct Refusal(u16, &'static str, String);

type Answer = Result<Value, Refusal>;

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            news: watch::Sender::new(()),
        }
    }

    /// A client that reaches this cluster through `link`.
    pub(crate) fn client(&self, link: &Link) -> Client {
        let (cluster, link) = (self.clone(), link.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (cluster, link) = (cluster.clone(), link.clone());
            async move { cluster.serve(request, link).await }
        });
        Client::new(service, "default")
    }

    /// Ends every watch of a resource: clients begin again where they were.
    pub(crate) fn cut_watches(&self, resource: &str) {
        let mut state = self.state();
        *state.cuts.entry(resource.to_owned()).or_default() += 1;
        self.tell(state);
    }

    /// Forgets the history: a watch that begins before now is refused, and its client has to list
    /// again. Watches that go on are not concerned.
    pub(crate) fn compact(&self) {
        let mut state = self.state();
        state.compacted = state.version;
    }

    /// Refuses every request for a resource with this status.
    pub(crate) fn refuse(&self, resource: &str, code: u16, reason: &'static str) {
        self.state()
            .refused
            .insert(resource.to_owned(), (code, reason));
    }

    pub(crate) fn allow(&self, resource: &str) {
        self.state().refused.remove(resource);
    }

    /// The object as it is.
    pub(crate) fn get(&self, resource: &str, name: &str) -> Option<Value> {
        let key = (
            resource.to_owned(),
            Some("default".to_owned()),
            name.to_owned(),
        );
        self.state().objects.get(&key).cloned()
    }

    /// Creates an object, or changes what there is of it, as another client would.
    pub(crate) fn put(&self, resource: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let key = (resource.to_owned(), namespace, name);
        let mut state = self.state();
        let mut new = state
            .objects
            .get(&key)
            .cloned()
            .unwrap_or_else(|| json!({}));
        json_patch::merge(&mut new, &object);
        state.store(key, new);
        self.tell(state);
    }

    pub(crate) fn delete(&self, resource: &str, name: &str) {
        let key = (
            resource.to_owned(),
            Some("default".to_owned()),
            name.to_owned(),
        );
        let mut state = self.state();
        let _ = state.delete(&key);
        self.tell(state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.news.send_replace(());
    }

    async fn serve(
        &self,
        request: Request<Body>,
        link: Link,
    ) -> io::Result<Response<ResponseBody>> {
        link.travel().await?;
        let path = Path::parse(request.uri());
        let refused = self.state().refused.get(&path.resource).copied();
        if let Some((code, reason)) = refused {
            let message = format!("{} is refused", path.resource);
            return Ok(respond(&Err(Refusal(code, reason, message))));
        }
        let watches = path
            .query
            .get("watch")
            .is_some_and(|watch| watch == "true" || watch == "1");
        if request.method() == Method::GET && watches {
            return Ok(self.watch(&path, link));
        }
        if link.fails() {
            let message = "before it was carried out".to_owned();
            return Ok(respond(&Err(Refusal(500, "InternalError", message))));
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let kind = parts.headers.get("content-type");
        let kind = kind.map_or("", |kind| kind.to_str().unwrap());
        let answer = self.carry_out(&parts.method, &path, kind, &body);
        if link.fails() {
            let message = "after it was carried out".to_owned();
            return Ok(respond(&Err(Refusal(500, "InternalError", message))));
        }
        link.travel().await?;
        Ok(respond(&answer))
    }

    fn carry_out(&self, method: &Method, path: &Path, kind: &str, body: &[u8]) -> Answer {
        let mut state = self.state();
        let answer = match (method.as_str(), &path.name) {
            ("GET", None) => state.list(path),
            ("GET", Some(_)) => state.find(&path.key()),
            ("POST", None) => state.create(path, json_of(body)),
            ("PUT", Some(_)) => state.replace(path, json_of(body)),
            ("PATCH", Some(_)) => state.patch(path, kind, body),
            ("DELETE", Some(_)) => state.delete(&path.key()),
            _ => Err(Refusal(
                405,
                "MethodNotAllowed",
                format!("{method} {path:?}"),
            )),
        };
        self.tell(state);
        answer
    }

    fn watch(&self, path: &Path, link: Link) -> Response<ResponseBody> {
        let from = path
            .query
            .get("resourceVersion")
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        let seconds = path
            .query
            .get("timeoutSeconds")
            .and_then(|v| v.parse().ok())
            .unwrap_or(290);
        let news = self.news.subscribe();
        let (cuts, too_old) = {
            let state = self.state();
            (state.cuts_of(&path.resource), from < state.compacted)
        };
        let watching = Watching {
            too_old,
            cluster: self.clone(),
            link,
            news,
            cuts,
            resource: path.resource.clone(),
            namespace: path.namespace.clone(),
            seen: from,
            again: None,
            ends: Instant::now() + Duration::from_secs(seconds),
            has_ended: false,
        };
        let lines = stream::unfold(watching, |mut watching| async {
            let line = watching.next().await?;
            let frame = line.map(|line| Frame::data(Bytes::from(format!("{line}\n"))));
            Some((frame, watching))
        });
        Response::new(StreamBody::new(lines.boxed()))
    }
}

struct Watching {
    cluster: Cluster,
    link: Link,
    news: watch::Receiver<()>,
    cuts: u64,
    too_old: bool,
    resource: String,
    namespace: Option<String>,
    seen: u64,
    again: Option<Value>,
    ends: Instant,
    has_ended: bool,
}

impl Watching {
    async fn next(&mut self) -> Option<io::Result<Value>> {
        if let Some(again) = self.again.take() {
            return Some(Ok(again));
        }
        loop {
            self.news.mark_unchanged();
            if self.has_ended || self.is_cut() {
                return None;
            }
            match self.look() {
                Some(line) => {
                    if let Err(error) = self.link.travel().await {
                        self.has_ended = true;
                        return Some(Err(error));
                    }
                    if self.is_cut() {
                        return None;
                    }
                    self.again = self.link.repeats().then(|| line.clone());
                    return Some(Ok(line));
                }
                // A bookmark a minute, and the end at its time.
                None => {
                    let minute = Instant::now() + Duration::from_secs(60);
                    let until = minute.min(self.ends);
                    if timeout_at(until, self.news.changed()).await.is_err() {
                        self.has_ended = Instant::now() >= self.ends;
                        if !self.has_ended {
                            return Some(Ok(self.bookmark()));
                        }
                    }
                }
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cluster.state().cuts_of(&self.resource) != self.cuts
    }

    fn look(&mut self) -> Option<Value> {
        let state = self.cluster.state();
        if self.too_old {
            self.has_ended = true;
            let status = status(&Refusal(
                410,
                "Expired",
                "too old resource version".to_owned(),
            ));
            return Some(json!({"type": "ERROR", "object": status}));
        }
        let concerns = |change: &&Change| {
            let namespace = change.object["metadata"]["namespace"].as_str();
            change.version > self.seen
                && change.resource == self.resource
                && (self.namespace.is_none() || self.namespace.as_deref() == namespace)
        };
        let from = state
            .history
            .partition_point(|change| change.version <= self.seen);
        let Some(change) = state.history[from..].iter().find(concerns) else {
            self.seen = self.seen.max(state.version);
            return None;
        };
        self.seen = change.version;
        Some(json!({"type": change.kind, "object": change.object}))
    }

    fn bookmark(&mut self) -> Value {
        let state = self.cluster.state();
        // Nothing of this resource is newer than what was looked at.
        let version = state.version;
        self.seen = version;
        let object = json!({
            "kind": "Bookmark", "apiVersion": "v1",
            "metadata": {"resourceVersion": version.to_string()}
        });
        json!({"type": "BOOKMARK", "object": object})
    }
}

impl State {
    fn cuts_of(&self, resource: &str) -> u64 {
        self.cuts.get(resource).copied().unwrap_or_default()
    }

    fn find(&self, key: &Key) -> Answer {
        let missing = || Refusal(404, "NotFound", format!("{} {} not found", key.0, key.2));
        self.objects.get(key).cloned().ok_or_else(missing)
    }

    /// The pages of a list are of one moment, which their token names.
    fn list(&mut self, path: &Path) -> Answer {
        let limit = path.query.get("limit").and_then(|limit| limit.parse().ok());
        let limit = limit.unwrap_or(usize::MAX);
        let (version, rest) = match path.query.get("continue") {
            None => {
                let concerned = self.objects.iter().filter(|((resource, namespace, _), _)| {
                    let is_there = path.namespace.is_none() || path.namespace == *namespace;
                    *resource == path.resource && is_there
                });
                let all = concerned.map(|(_, object)| object.clone()).collect();
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

    fn create(&mut self, path: &Path, mut object: Value) -> Answer {
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

    fn replace(&mut self, path: &Path, object: Value) -> Answer {
        let old = self.find(&path.key())?;
        let version = &object["metadata"]["resourceVersion"];
        if version.is_string() && *version != old["metadata"]["resourceVersion"] {
            let message = "the object has been modified".to_owned();
            return Err(Refusal(409, "Conflict", message));
        }
        Ok(self.store(path.key(), object))
    }

    fn patch(&mut self, path: &Path, kind: &str, body: &[u8]) -> Answer {
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
            json_patch::merge(&mut object, &json_of(body));
        }
        if let Some(namespace) = &path.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Ok(self.store(path.key(), object))
    }

    fn store(&mut self, key: Key, mut object: Value) -> Value {
        let old = self.objects.get(&key);
        let is_new = old.is_none();
        let meta = &mut object["metadata"];
        meta["uid"] = old.map_or(json!(format!("uid-{}", self.version)), |old| {
            old["metadata"]["uid"].clone()
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

    fn delete(&mut self, key: &Key) -> Answer {
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
            kind,
            resource: key.0.clone(),
            object: object.clone(),
        });
    }
}

fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn status(Refusal(code, reason, message): &Refusal) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

type ResponseBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

fn respond(answer: &Answer) -> Response<ResponseBody> {
    let (code, value) = match answer {
        Ok(value) => (200, value.clone()),
        Err(refusal) => (refusal.0, status(refusal)),
    };
    let frame = Frame::data(Bytes::from(value.to_string()));
    let body = StreamBody::new(stream::iter([Ok(frame)]).boxed());
    Response::builder().status(code).body(body).unwrap()
}

//! A Kubernetes API in memory: what kube's `Client` needs of a server, on the test's own time.
//!
//! Lists have pages, watches have bookmarks, resource versions make a write fail that comes too
//! late, a deleted object waits for its finalizers, and what an object owned goes with it. It
//! checks no schema. Faults are those that a client of the real one sees: a [`Link`] that is down,
//! slow or refuses, watches that end, and a history that has been compacted.

mod answer;
mod link;
mod state;
mod watching;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::service_fn;

pub(crate) use self::link::Link;

use self::answer::{Answer, Refusal, ResponseBody, respond};
use self::state::{State, json_of};
use crate::path::Path;

/// The cluster. Clones are the same.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    /// Told whenever something has changed that a watch has to look at.
    news: Arc<Notify>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            news: Arc::default(),
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

    /// How many requests were refused.
    pub(crate) fn refusals(&self) -> usize {
        self.state().refusals
    }

    /// How often a resource was listed.
    pub(crate) fn lists(&self, resource: &str) -> usize {
        self.state()
            .lists
            .get(resource)
            .copied()
            .unwrap_or_default()
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

    /// How often objects of a resource were created, changed or deleted.
    #[cfg(feature = "shards")]
    pub(crate) fn writes(&self, resource: &str) -> usize {
        let state = self.state();
        let of_it = state
            .history
            .iter()
            .filter(|change| change.resource == resource);
        of_it.count()
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
        self.news.notify_waiters();
    }

    async fn serve(
        &self,
        request: Request<Body>,
        link: Link,
    ) -> io::Result<Response<ResponseBody>> {
        link.travel().await?;
        let mut path = Path::parse(request.uri());
        let accepts = request.headers().get("accept");
        path.metadata_only = accepts
            .and_then(|accepts| accepts.to_str().ok())
            .is_some_and(|accepts| accepts.contains("as=PartialObjectMetadata"));
        if link.loses(&path.resource) {
            return std::future::pending().await;
        }
        let refused = self.state().refused.get(&path.resource).copied();
        if let Some((code, reason)) = refused {
            self.state().refusals += 1;
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
            return Ok(respond(&Err(Refusal(504, "Timeout", message))));
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let kind = parts.headers.get("content-type");
        let kind = kind.map_or("", |kind| kind.to_str().unwrap());
        let answer = self.carry_out(&parts.method, &path, kind, &body);
        if link.loses_answer(&path.resource) {
            return std::future::pending().await;
        }
        if link.fails() || link.times_out(&path.resource) {
            let message = "after it was carried out".to_owned();
            return Ok(respond(&Err(Refusal(504, "Timeout", message))));
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
            ("DELETE", Some(_)) => state.delete_if(&path.key(), body),
            _ => Err(Refusal(
                405,
                "MethodNotAllowed",
                format!("{method} {path:?}"),
            )),
        };
        self.tell(state);
        answer
    }
}

//! The cluster: clients, the log of requests, and who else lives there.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request as HttpRequest, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use crate::answer::{Answer, Refusal, ResponseBody, UNSUPPORTED, busy, respond};
use crate::discovery::discover;
use crate::kinds::{Kind, resource_name};
use crate::link::{Fate, Link};
use crate::request::{Asked, Verb};
use crate::store::{Key, Store};
use crate::writes::{self, carry_out};

/// A Kubernetes API server in memory, with its garbage collector. Clones are the same cluster.
///
/// Its clock is Tokio's, so a test with paused time lives through hours in milliseconds. Create it
/// inside the runtime.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube::api::PostParams;
/// use requeue_kube_testing::{Cluster, Link};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::new();
/// let maps: Api<ConfigMap> = Api::namespaced(cluster.client(&Link::named("me")), "default");
/// let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}}))?;
/// maps.create(&PostParams::default(), &map).await?;
///
/// assert_eq!(cluster.list::<ConfigMap>().len(), 1);
/// assert_eq!(cluster.requests()[0].client, "me");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    state: Arc<Mutex<State>>,
    /// The number of changes: watches look again.
    news: Arc<watch::Sender<u64>>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    since: Instant,
    /// How often the watches of a resource were ended.
    cuts: BTreeMap<String, u64>,
    log: Vec<Request>,
    unsupported: Vec<String>,
    scripts: Vec<(String, Arc<Script>)>,
    observer: Option<Arc<Observer>>,
}

type Script = dyn Fn(Client, Value) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;
pub(crate) type Observer = dyn Fn(&Cluster, Seen<'_>) + Send + Sync;

/// What happens to requests.
pub(crate) enum Seen<'a> {
    Answered(&'a Request),
    /// The connection was lost before the request or the answer arrived.
    Lost(String),
}

/// A request that the cluster has answered.
///
/// # Examples
///
/// Writes that changed nothing, which a controller could have saved:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube::api::{Patch, PatchParams};
/// use requeue_kube_testing::{Cluster, Link};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::new();
/// let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(&Link::named("me")));
/// let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
/// for _ in 0..2 {
///     maps.patch("a", &PatchParams::apply("me"), &Patch::Apply(&map)).await?;
/// }
///
/// let requests = cluster.requests();
/// let idle = requests.iter().filter(|request| request.verb.is_write() && !request.changed);
/// let idle: Vec<String> = idle.map(ToString::to_string).collect();
/// assert_eq!(idle, ["me patch configmaps/a (no change)"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// When it was answered, since the cluster began.
    pub at: Duration,
    /// The name of the [`Link`] that it came over.
    pub client: String,
    /// What it does.
    pub verb: Verb,
    /// As `configmaps` or `deployments.apps`.
    pub resource: String,
    /// The namespace of its address.
    pub namespace: Option<String>,
    /// The name of the object. Of a `create`, the name that it was given.
    pub name: Option<String>,
    /// As `status`.
    pub subresource: Option<String>,
    /// The HTTP status. 0 for a write that landed after its client had been told of a timeout.
    pub status: u16,
    /// Why it was refused.
    pub refusal: Option<String>,
    /// Whether any object is now another one, whatever the status says.
    pub changed: bool,
    /// The object of a write that was carried out.
    pub object: Option<Value>,
}

impl Request {
    fn new(client: &str, asked: &Asked, at: Duration) -> Self {
        Self {
            at,
            client: client.to_owned(),
            verb: asked.verb,
            resource: asked.resource(),
            namespace: asked.namespace.clone(),
            name: asked.name.clone(),
            subresource: asked.subresource.clone(),
            status: 0,
            refusal: None,
            changed: false,
            object: None,
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.status = refusal.code;
        self.refusal = Some(refusal.message.clone());
    }

    /// Who asks for what.
    fn target(&self) -> String {
        let Self {
            client, resource, ..
        } = self;
        let verb = self.verb.as_str();
        let name = self.name.as_ref().map(|name| format!("/{name}"));
        let part = self.subresource.as_ref().map(|part| format!("/{part}"));
        let (name, part) = (name.unwrap_or_default(), part.unwrap_or_default());
        format!("{client} {verb} {resource}{name}{part}")
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target())?;
        match self.status {
            0 => f.write_str(" lands late")?,
            status if status >= 400 => write!(f, ": {status}")?,
            _ => {}
        }
        if let Some(refusal) = &self.refusal {
            write!(f, " {refusal}")?;
        }
        if self.verb.is_write() && self.status < 400 && !self.changed {
            f.write_str(" (no change)")?;
        }
        Ok(())
    }
}

impl Cluster {
    /// Creates a cluster with the built-in kinds and the namespace `default`.
    pub fn new() -> Self {
        let state = State {
            store: Store::new(),
            since: Instant::now(),
            cuts: BTreeMap::new(),
            log: Vec::new(),
            unsupported: Vec::new(),
            scripts: Vec::new(),
            observer: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            news: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Returns a client for any code that uses kube. Its default namespace is `default`.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime, as every `kube::Client`.
    pub fn client(&self, link: &Link) -> Client {
        let (cluster, link) = (self.clone(), link.clone());
        let service = service_fn(move |request: HttpRequest<Body>| {
            let (cluster, link) = (cluster.clone(), link.clone());
            async move { cluster.serve(request, &link).await }
        });
        Client::new(service, "default")
    }

    /// Serves the kind of a `CustomResourceDefinition`, as `MyKind::crd()` of kube's derive.
    ///
    /// # Errors
    ///
    /// The definition is none.
    pub fn install(&self, definition: &impl Serialize) -> Result<(), Error> {
        let value = serde_json::to_value(definition).map_err(|error| Error(error.to_string()))?;
        let mut state = self.state();
        let installed = state.store.kinds.install(&value);
        installed.map_err(|refusal| Error(refusal.message))
    }

    /// Runs a script for each object of a kind that is created, as the other controllers of a
    /// cluster would: with a client of its own, as a task.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::apps::v1::StatefulSet;
    /// use kube::api::{Patch, PatchParams};
    /// use kube::{Api, ResourceExt};
    /// use requeue_kube_testing::Cluster;
    /// use serde_json::json;
    ///
    /// let cluster = Cluster::new();
    /// // A StatefulSet is ready after 5 s.
    /// cluster.on_create(|client, set: StatefulSet| async move {
    ///     tokio::time::sleep(Duration::from_secs(5)).await;
    ///     let sets: Api<StatefulSet> = Api::namespaced(client, &set.namespace().unwrap_or_default());
    ///     let status = json!({"status": {"replicas": 1, "readyReplicas": 1}});
    ///     let patch = Patch::Merge(&status);
    ///     let _ = sets.patch_status(&set.name_any(), &PatchParams::default(), &patch).await;
    /// });
    /// ```
    pub fn on_create<K, F>(&self, script: impl Fn(Client, K) -> F + Send + Sync + 'static)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
        F: Future<Output = ()> + Send + 'static,
    {
        let script: Arc<Script> = Arc::new(move |client, object| {
            match serde_json::from_value(object) {
                Ok(object) => Box::pin(script(client, object)),
                // Not an object of this type: another version of the kind.
                Err(_) => Box::pin(std::future::ready(())),
            }
        });
        self.state().scripts.push((resource_of::<K>(), script));
    }

    /// Returns every object of a kind as it is, in the order of namespaces and names. It is no
    /// request, and knows no lag.
    pub fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let resource = resource_of::<K>();
        let state = self.state();
        let own = state
            .store
            .objects()
            .filter(|(key, _)| key.resource == resource);
        own.filter_map(|(_, object)| serde_json::from_value((**object).clone()).ok())
            .collect()
    }

    /// Returns an object as it is. The namespace of an object without one is empty.
    pub fn get<K>(&self, namespace: &str, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let key = Key {
            resource: resource_of::<K>(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let object = self
            .state()
            .store
            .find(&key)
            .map(|object| (**object).clone())?;
        serde_json::from_value(object).ok()
    }

    /// Returns all requests so far, but for watches and discovery.
    pub fn requests(&self) -> Vec<Request> {
        self.state().log.clone()
    }

    /// Returns the requests that were refused because this cluster does not do what they ask for.
    /// A test that uses no [`Simulation`](crate::Simulation) asserts that there is none.
    pub fn unsupported(&self) -> Vec<String> {
        self.state().unsupported.clone()
    }

    /// Ends every watch of a resource, as `secrets` or `deployments.apps`. An empty name ends all.
    pub fn end_watches(&self, resource: &str) {
        *self.state().cuts.entry(resource.to_owned()).or_default() += 1;
        self.tell();
    }

    /// Forgets the history, as etcd's compaction does: watches that begin earlier are refused with
    /// 410, and their clients have to list again.
    pub fn compact(&self) {
        let mut state = self.state();
        state.store.compacted = state.store.version;
    }

    /// Returns the time since the cluster began.
    pub fn elapsed(&self) -> Duration {
        self.state().now()
    }

    pub(crate) fn observe(&self, observer: Arc<Observer>) {
        self.state().observer = Some(observer);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = state.now();
        state.store.set_now(now);
        state
    }

    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn tell(&self) {
        self.news
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    async fn serve(
        &self,
        request: HttpRequest<Body>,
        link: &Link,
    ) -> io::Result<Response<ResponseBody>> {
        link.count();
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let body = link.sent(body);
        let asked = Asked::parse(&parts.method, &parts.uri, &parts.headers);
        let arrived = link.travel().await;
        let asked = match asked {
            Ok(asked) => asked,
            Err(refusal) => return Ok(self.refuse(refusal)),
        };
        if let Err(error) = arrived {
            self.log_loss(link, &asked, "the request");
            return Err(error);
        }
        if asked.verb == Verb::Discover {
            let answer = discover(&self.state().store, &asked);
            return Ok(answer.map_or_else(|refusal| self.refuse(refusal), |ok| respond(&Ok(ok))));
        }
        let fate = link.fate(asked.verb.is_write());
        match fate {
            Fate::Throttled => {
                self.log_failure(link, &asked, &Refusal::new(429, "", "throttled".to_owned()));
                return Ok(busy(1));
            }
            Fate::Refused => {
                let refusal = failed("before it was carried out");
                self.log_failure(link, &asked, &refusal);
                return Ok(respond(&Err(refusal)));
            }
            Fate::Done | Fate::Unanswered | Fate::Late(_) => {}
        }
        if asked.verb == Verb::Watch {
            return Ok(self
                .watch(&asked, link)
                .unwrap_or_else(|refusal| self.refuse(refusal)));
        }
        if let Fate::Late(after) = fate {
            let message = "the server was unable to return a response in the time allotted";
            let refusal = Refusal::new(504, "Timeout", message.to_owned());
            self.log_failure(link, &asked, &refusal);
            let (cluster, name) = (self.clone(), link.name().to_owned());
            tokio::spawn(async move {
                sleep(after).await;
                // Nobody waits for the answer.
                let _ = cluster.perform(&name, &asked, &body, Arrival::Late);
            });
            return Ok(respond(&Err(refusal)));
        }
        if matches!(fate, Fate::Unanswered) {
            let _ = self.perform(link.name(), &asked, &body, Arrival::Unanswered);
            link.travel().await?;
            return Ok(respond(&Err(failed(AFTER))));
        }
        let age = link.age_of_lists();
        let answer = self.perform(link.name(), &asked, &body, Arrival::InTime { age });
        if let Err(error) = link.travel().await {
            self.log_loss(link, &asked, "the answer");
            return Err(error);
        }
        Ok(match answer {
            Ok((code, value)) => respond(&Ok((code, link.received(shaped(&asked, value))))),
            Err(refusal) => self.refuse(refusal),
        })
    }

    fn refuse(&self, refusal: Refusal) -> Response<ResponseBody> {
        if refusal.reason == UNSUPPORTED {
            self.state().unsupported.push(refusal.message.clone());
        }
        respond(&Err(refusal))
    }

    /// Carries out a request, logs it, tells watches, and begins the scripts of what is new.
    fn perform(&self, client: &str, asked: &Asked, body: &[u8], arrival: Arrival) -> Answer {
        let mut state = self.state();
        let before = state.store.history.len();
        let answer = state.answer(asked, body, arrival);
        let changes = &state.store.history[before..];
        let changed = !changes.is_empty();
        let created: Vec<_> = changes
            .iter()
            .filter(|change| change.before.is_none())
            .filter_map(|change| Some((change.key.resource.clone(), change.after.clone()?)))
            .collect();
        let mut request = Request::new(client, asked, state.now());
        request.changed = changed;
        match &answer {
            Err(refusal) => request.refuse(refusal),
            Ok((code, value)) => {
                let named = value["metadata"]["name"].as_str();
                request.name = request.name.or_else(|| named.map(str::to_owned));
                request.object = asked.verb.is_write().then(|| value.clone());
                match arrival {
                    Arrival::InTime { .. } => request.status = *code,
                    Arrival::Late => {}
                    Arrival::Unanswered => request.refuse(&failed(AFTER)),
                }
            }
        }
        state.log.push(request.clone());
        let mut begun = Vec::new();
        for (resource, object) in created {
            let own = state.scripts.iter().filter(|(name, _)| *name == resource);
            begun.extend(own.map(|(_, script)| (Arc::clone(script), (*object).clone())));
        }
        let observer = state.observer.clone();
        drop(state);
        if changed {
            self.tell();
        }
        for (script, object) in begun {
            tokio::spawn(script(self.client(&Link::named("cluster")), object));
        }
        if let Some(observer) = observer {
            observer(self, Seen::Answered(&request));
        }
        answer
    }

    /// Logs a request that was not carried out, or will be later.
    fn log_failure(&self, link: &Link, asked: &Asked, refusal: &Refusal) {
        if asked.verb == Verb::Watch {
            return;
        }
        let mut state = self.state();
        let mut request = Request::new(link.name(), asked, state.now());
        request.refuse(refusal);
        state.log.push(request.clone());
        let observer = state.observer.clone();
        drop(state);
        if let Some(observer) = observer {
            observer(self, Seen::Answered(&request));
        }
    }

    fn log_loss(&self, link: &Link, asked: &Asked, what: &str) {
        let (observer, now) = {
            let state = self.state();
            (state.observer.clone(), state.now())
        };
        if let Some(observer) = observer.filter(|_| asked.verb != Verb::Watch) {
            let request = Request::new(link.name(), asked, now);
            observer(
                self,
                Seen::Lost(format!("{}: {what} is lost", request.target())),
            );
        }
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Cluster")
            .field("version", &state.store.version)
            .field("objects", &state.store.objects().count())
            .field("requests", &state.log.len())
            .finish()
    }
}

/// When a request reaches the store.
#[derive(Clone, Copy)]
enum Arrival {
    /// A list that allows it is of this time ago.
    InTime { age: Duration },
    /// After its client has been told of a timeout.
    Late,
    /// The answer is an error all the same.
    Unanswered,
}

impl State {
    fn answer(&mut self, asked: &Asked, body: &[u8], arrival: Arrival) -> Answer {
        // Only a list that says so may be old.
        let may_be_old =
            asked.verb == Verb::List && asked.query.get("resourceVersion") == Some("0");
        match arrival {
            Arrival::InTime { age } if may_be_old && age > Duration::ZERO => {
                let version = self.store.version_at(self.now().saturating_sub(age));
                let kind: Kind = writes::kind_of(&self.store, asked)?;
                writes::list_at(&self.store, asked, &kind, version, None, None)
            }
            _ => carry_out(&mut self.store, asked, body),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// When this time of the cluster is.
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.since + at
    }

    pub(crate) fn cuts_of(&self, resource: &str) -> u64 {
        let cuts = |name: &str| self.cuts.get(name).copied().unwrap_or_default();
        cuts(resource) + cuts("")
    }
}

/// What the test itself got wrong.
#[derive(Clone, Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The name by which the cluster knows a type.
pub(crate) fn resource_of<K: Resource<DynamicType = ()>>() -> String {
    resource_name(&K::plural(&()), &K::group(&()))
}

/// An object or a list as the client asked for it: whole, or the metadata alone.
pub(crate) fn shaped(asked: &Asked, value: Value) -> Value {
    if !asked.wants_metadata_only() || value["kind"] == "Status" {
        return value;
    }
    let partial = |object: &Value| {
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": object["metadata"],
        })
    };
    if let Some(items) = value["items"].as_array() {
        let items: Vec<Value> = items.iter().map(partial).collect();
        return json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": value["metadata"], "items": items,
        });
    }
    partial(&value)
}

const AFTER: &str = "after it was carried out";

fn failed(when: &str) -> Refusal {
    let message = format!("an internal error occurred {when}");
    Refusal::new(500, "InternalError", message)
}

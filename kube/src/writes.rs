//! What a run has written, and the client that records it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response};
use kube::client::Body;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource};
use serde::Deserialize;
use tower::service_fn;

use crate::cache::{Number, Version};
use crate::controller::{kind_of, named_kind};
use crate::tracker::Name;
use crate::waiting::Condition;

/// Records what a run has written, where its [`Context`](crate::Context) does not reach: in a
/// helper, in a task of its own. Clones record for the same run.
///
/// The key of the run waits until the controller's stores show what was recorded, as
/// [`Context::wrote`](crate::Context::wrote) describes. Recorded after the end of the run, a write
/// runs the key once more, when it has come back. If the [queue](crate::Controller::queue) is full,
/// the key waits for room too.
///
/// # Examples
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Secret;
/// use kube::Api;
/// use kube::api::PostParams;
/// use requeue_kube::Writes;
///
/// async fn create(secrets: Api<Secret>, secret: Secret, writes: Writes) -> kube::Result<()> {
///     let secret = secrets.create(&PostParams::default(), &secret).await?;
///     writes.wrote(&secret)?;
///     Ok(())
/// }
/// # let _ = create;
/// ```
#[derive(Clone, Default)]
pub struct Writes(Option<Arc<dyn Record>>);

/// The controller has no store that could show a write or an object: nothing watches the kind, or
/// only in another namespace. Let [`Controller::owns_cached`](crate::Controller::owns_cached) or
/// [`watches_cached`](crate::Controller::watches_cached) watch it.
///
/// In a reconciler that returns `kube::Error` it may be passed on with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCached {
    /// The kind, as `deployments.apps`.
    pub kind: String,
    /// The namespace of the object.
    pub namespace: Option<String>,
}

/// What records for a run, whatever its kind is.
pub(crate) trait Record: Send + Sync {
    fn record(&self, write: Write) -> Result<(), NotCached>;
    fn wait_for(&self, condition: Condition) -> Result<(), NotCached>;
    fn client(&self) -> Option<Client>;
}

/// A write of an object.
pub(crate) struct Write {
    pub(crate) kind: Arc<str>,
    pub(crate) name: Name,
    pub(crate) written: Written,
}

/// What a store has to show of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nobody knows: a live read decides.
    Unknown,
    /// This version or a later one.
    Version {
        uid: String,
        version: Version,
        /// Whether this version was the last, so that the store may show none at all.
        may_end: bool,
    },
    /// Its end, or that it is being deleted.
    Deleted { uid: String },
}

impl Written {
    pub(crate) fn uid(&self) -> Option<&str> {
        match self {
            Self::Unknown => None,
            Self::Version { uid, .. } | Self::Deleted { uid } => Some(uid),
        }
    }

    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Version { version, .. } => version.number(),
            Self::Unknown | Self::Deleted { .. } => None,
        }
    }

    /// Whether an earlier write of the same object need not be waited for beside this one.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Unknown, Self::Unknown) => true,
            (
                Self::Version { uid, version, .. },
                Self::Version {
                    uid: earlier,
                    version: before,
                    ..
                },
            ) => uid == earlier && (version.is_at_least(before) || before.number().is_none()),
            (Self::Deleted { uid }, Self::Deleted { uid: earlier }) => uid == earlier,
            _ => false,
        }
    }
}

tokio::task_local! {
    /// The run that this task is in.
    static CURRENT: Writes;
}

impl Writes {
    pub(crate) fn new(record: Arc<dyn Record>) -> Self {
        Self(Some(record))
    }

    /// Returns a future in which [`record_writes`] records for this run.
    pub(crate) fn scope<F: Future>(self, run: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, run)
    }

    /// The run that this task is in.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Lets the key wait until its controller's stores have this version of an object, as the API
    /// server returned it. See [`Context::wrote`](crate::Context::wrote).
    ///
    /// # Errors
    ///
    /// [`NotCached`] if the controller has no store of this kind. Nothing is waited for then.
    pub fn wrote<C>(&self, object: &C) -> Result<(), NotCached>
    where
        C: Resource<DynamicType: Default>,
    {
        self.wrote_with(object, &C::DynamicType::default())
    }

    /// As [`wrote`](Self::wrote), for a kind that is known only at run time.
    ///
    /// # Errors
    ///
    /// As [`wrote`](Self::wrote).
    pub fn wrote_with<C: Resource>(
        &self,
        object: &C,
        dyntype: &C::DynamicType,
    ) -> Result<(), NotCached> {
        let meta = object.meta();
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        let written = match (&meta.uid, &meta.resource_version) {
            (Some(uid), Some(version)) => Written::Version {
                uid: uid.clone(),
                version: Version(version.clone()),
                may_end: meta.deletion_timestamp.is_some() && finalizers.is_empty(),
            },
            // It is no answer of the API server.
            _ => Written::Unknown,
        };
        self.record(kind_of::<C>(dyntype), Name::of(object), written)
    }

    /// Lets the key wait until its controller's stores no longer have an object, or show that it is
    /// being deleted. See [`Context::deleted`](crate::Context::deleted).
    ///
    /// # Errors
    ///
    /// [`NotCached`] if the controller has no store of this kind. Nothing is waited for then.
    pub fn deleted<C>(&self, object: &C) -> Result<(), NotCached>
    where
        C: Resource<DynamicType: Default>,
    {
        self.deleted_with(object, &C::DynamicType::default())
    }

    /// As [`deleted`](Self::deleted), for a kind that is known only at run time.
    ///
    /// # Errors
    ///
    /// As [`deleted`](Self::deleted).
    pub fn deleted_with<C: Resource>(
        &self,
        object: &C,
        dyntype: &C::DynamicType,
    ) -> Result<(), NotCached> {
        let uid = object.meta().uid.clone();
        let written = uid.map_or(Written::Unknown, |uid| Written::Deleted { uid });
        self.record(kind_of::<C>(dyntype), Name::of(object), written)
    }

    /// Lets the key wait for a write whose end is not known, because it timed out or failed on the
    /// server. A live read decides what the stores have to show. See
    /// [`Context::unsure`](crate::Context::unsure).
    ///
    /// # Errors
    ///
    /// [`NotCached`] if the controller has no store of this kind. Nothing is waited for then.
    pub fn unsure<C: Resource>(&self, reference: &ObjectRef<C>) -> Result<(), NotCached> {
        let name = Name::new(&reference.name, reference.namespace.as_deref());
        self.record(kind_of::<C>(&reference.dyntype), name, Written::Unknown)
    }

    /// Returns a client that records what is written with it, also in tasks of their own: creating,
    /// replacing, patching, applying, deleting, subresources. Of kinds that the controller has no
    /// store of it records nothing. A request that fails on the way or on the server, or is
    /// dropped, is recorded as [`unsure`](Self::unsure). So is a request that the server refuses
    /// after `client` repeated it, as kube's clients do since kube 4: an earlier try may have been
    /// carried out.
    ///
    /// If such a try has created an object with a generated name, nobody knows the name: only the
    /// object of the last try is waited for.
    ///
    /// [`record_writes`] is for reconcilers that keep their client.
    pub fn client(&self, client: Client) -> Client {
        recording(client, Some(self.clone()))
    }

    /// The client of the controller, or one whose requests fail.
    pub(crate) fn own_client(&self) -> Client {
        let own = self.0.as_ref().and_then(|record| record.client());
        own.map_or_else(no_client, |own| self.client(own))
    }

    pub(crate) fn record(
        &self,
        kind: Arc<str>,
        name: Name,
        written: Written,
    ) -> Result<(), NotCached> {
        let write = Write {
            kind,
            name,
            written,
        };
        match &self.0 {
            Some(record) => record.record(write),
            None => Ok(()),
        }
    }

    pub(crate) fn wait_for(&self, condition: Condition) -> Result<(), NotCached> {
        match &self.0 {
            Some(record) => record.wait_for(condition),
            None => Ok(()),
        }
    }
}

/// Returns a client that records, for the run in whose task it is used, what is written with it. A
/// reconciler that keeps its client, as those written for kube-rs do, waits for its own writes with
/// this one line:
///
/// ```no_run
/// # async fn connect() -> kube::Result<()> {
/// let client = requeue_kube::record_writes(kube::Client::try_default().await?);
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
///
/// Outside of runs, and in tasks that a run spawns, the client records nothing.
/// [`Writes::client`] is for these tasks and says what is recorded.
pub fn record_writes(client: Client) -> Client {
    recording(client, None)
}

fn recording(client: Client, writes: Option<Writes>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let until = *client.valid_until();
    let service = service_fn(move |request: Request<Body>| {
        let (client, writes) = (client.clone(), writes.clone());
        // The caller's task polls this, although a client has a task of its own.
        async move {
            let target = Target::of(&request);
            match (target, writes.or_else(Writes::current)) {
                (Some(target), Some(writes)) => send(&client, request, target, writes).await,
                _ => client.send(request).await,
            }
        }
    });
    Client::new(service, namespace).with_valid_until(until)
}

fn no_client() -> Client {
    let fail = |_: Request<Body>| async {
        let error = "the controller of this run has no client";
        Err::<Response<Body>, kube::Error>(kube::Error::Service(error.into()))
    };
    Client::new(service_fn(fail), "default")
}

/// Sends a request that writes, and records what it has written.
async fn send(
    client: &Client,
    request: Request<Body>,
    mut target: Target,
    writes: Writes,
) -> kube::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    if target.name.is_none() {
        let object = serde_json::from_slice::<Answer>(&body).unwrap_or_default();
        target.name = object.metadata.name;
    }
    let mut sent = Sent {
        writes,
        target,
        is_known: false,
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    let copies = Copies::default();
    request.extensions_mut().insert(copies.watched());
    let response = client.send(request).await?;
    if !response.status().is_success() {
        // A refused write was not carried out. But what is refused may be the repetition of a try
        // that timed out, and that landed.
        sent.is_known = response.status().is_client_error() && !copies.may_be_sent();
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = body.collect_bytes().await?;
    sent.answered(&body);
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// Counts the copies of a request, as one of its extensions. Since kube 4, clients repeat requests
/// by themselves: [`RetryPolicy`](kube::client::retry::RetryPolicy) copies a request with its
/// extensions before each try, and sends the copy if that try fails.
#[derive(Default)]
struct Copies(Arc<AtomicUsize>);

impl Copies {
    /// The extension, whose clones count.
    fn watched(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Whether a copy may have been sent: if there is only one, it is the spare of the first try.
    fn may_be_sent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Clone for Copies {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.watched()
    }
}

/// What a request writes.
struct Target {
    path: Path,
    /// None if it creates an object, or deletes many.
    name: Option<String>,
    deletes: bool,
}

/// What the path of an address names.
pub(crate) struct Path {
    /// As `deployments.apps`.
    pub(crate) kind: Arc<str>,
    pub(crate) namespace: Option<String>,
    name: Option<String>,
}

impl Target {
    /// Returns `None` for a request that writes nothing.
    fn of(request: &Request<Body>) -> Option<Self> {
        let deletes = request.method() == Method::DELETE;
        let writes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
        let query = request.uri().query().unwrap_or_default();
        if !(deletes || writes) || query.split('&').any(|word| word.starts_with("dryRun=")) {
            return None;
        }
        let mut path = Path::parse(request.uri().path())?;
        Some(Self {
            name: path.name.take(),
            path,
            deletes,
        })
    }
}

impl Path {
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut words = path.split('/').filter(|word| !word.is_empty());
        let group = match words.next()? {
            "api" => "",
            "apis" => words.next()?,
            _ => return None,
        };
        let _version = words.next()?;
        let words: Vec<&str> = words.collect();
        let (namespace, plural, name) = match *words.as_slice() {
            // The kind of namespaces has these subresources.
            ["namespaces", name, "status" | "finalize"] => (None, "namespaces", Some(name)),
            ["namespaces", namespace, plural] => (Some(namespace), plural, None),
            ["namespaces", namespace, plural, name, ..] => (Some(namespace), plural, Some(name)),
            [plural] => (None, plural, None),
            [plural, name, ..] => (None, plural, Some(name)),
            [] => return None,
        };
        Some(Self {
            kind: named_kind(plural, group),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        })
    }
}

/// A request that was sent. If it is dropped, nobody knows whether it was carried out.
struct Sent {
    writes: Writes,
    target: Target,
    is_known: bool,
}

impl Sent {
    fn answered(&mut self, body: &[u8]) {
        let Ok(answer) = serde_json::from_slice::<Answer>(body) else {
            return;
        };
        self.is_known = true;
        match &answer.items {
            Some(items) => items.iter().for_each(|item| self.record(item)),
            None => self.record(&answer),
        }
    }

    fn record(&self, answer: &Answer) {
        let meta = &answer.metadata;
        let details = answer.details.as_ref();
        let uid = meta.uid.clone().or_else(|| details?.uid.clone());
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        let written = match (uid, &meta.resource_version) {
            (Some(uid), _) if self.target.deletes => Written::Deleted { uid },
            (Some(uid), Some(version)) => Written::Version {
                uid,
                version: Version(version.clone()),
                may_end: meta.deletion_timestamp.is_some() && finalizers.is_empty(),
            },
            // Such as an eviction, whose answer is a status.
            _ => Written::Unknown,
        };
        let name = meta.name.as_ref().or(self.target.name.as_ref());
        self.note(name, written);
    }

    fn note(&self, name: Option<&String>, written: Written) {
        if let Some(name) = name {
            let Path {
                kind, namespace, ..
            } = &self.target.path;
            let name = Name::new(name, namespace.as_deref());
            // Of a kind that is in no store there is nothing to wait for.
            let _ = self.writes.record(kind.clone(), name, written);
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.is_known {
            self.note(self.target.name.as_ref(), Written::Unknown);
        }
    }
}

/// What is read of an answer of the API server: an object, a list, or a status.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: Meta,
    details: Option<Details>,
    items: Option<Vec<Answer>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    uid: Option<String>,
}

impl NotCached {
    pub(crate) fn new(kind: &str, namespace: Option<&str>) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }
}

impl fmt::Display for NotCached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the controller has no store of {}", self.kind)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in the namespace {namespace}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotCached {}

impl From<NotCached> for kube::Error {
    fn from(error: NotCached) -> Self {
        Self::Service(Box::new(error))
    }
}

impl fmt::Debug for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writes").finish_non_exhaustive()
    }
}

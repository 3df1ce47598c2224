//! What a reconciler gets beside the object.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, Resource};
use tokio::time::Instant;

use crate::reasons::Reasons;
use crate::wait_for::WaitFor;
use crate::writes::{NotCached, Writes};

/// What is known about a run when it begins, and what the run says about itself.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use requeue_kube::{Action, Context};
///
/// async fn reconcile(map: Arc<ConfigMap>, run: Context<ConfigMap>) -> kube::Result<Action> {
///     if run.attempt > 1 {
///         println!("{}: attempt {}", run.key, run.attempt);
///     }
///     # let _ = map;
///     Ok(Action::Success)
/// }
/// # let _ = reconcile;
/// ```
#[non_exhaustive]
pub struct Context<K: Resource> {
    /// The object: kind, name and namespace.
    pub key: ObjectRef<K>,
    /// Which attempt this is, counted from 1: one more than the failures on record.
    pub attempt: u32,
    /// How long the object was ready before its run began. Always zero unless there are metrics,
    /// which need the times: the feature `metrics`, and a [name](crate::Controller::named).
    pub waited: Duration,
    /// When the run is stopped, because it takes longer than
    /// [`Workers::timeout`](crate::Workers::timeout). `None` if there is no timeout.
    pub deadline: Option<Instant>,
    /// Whether something changed. Otherwise the object was listed, at the start or by a resync, or
    /// its last run asked for this one.
    pub changed: bool,
    /// Which events of which objects made it run. The span of the run shows them, too.
    pub reasons: Reasons,
    /// Whether the last run [waited](Self::wait_for) for something that has not happened in time.
    pub timed_out: bool,
    pub(crate) maybe_stale: bool,
    pub(crate) writes: Writes,
}

impl<K: Resource> Context<K> {
    /// Creates the context of a first run that nothing but a requeue asked for: for unit tests of
    /// a reconciler, which may then set the fields.
    /// Nothing is recorded of what the reconciler writes.
    ///
    /// # Examples
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::reflector::ObjectRef;
    /// use requeue_kube::Context;
    ///
    /// let mut run = Context::new(ObjectRef::<ConfigMap>::new("web").within("default"));
    /// run.attempt = 3;
    /// assert!(run.deadline.is_none() && !run.changed);
    /// ```
    pub fn new(key: ObjectRef<K>) -> Self {
        Self {
            key,
            attempt: 1,
            waited: Duration::ZERO,
            deadline: None,
            changed: false,
            reasons: Reasons::default(),
            timed_out: false,
            maybe_stale: false,
            writes: Writes::default(),
        }
    }

    /// Records an object that this run has created or changed, as the API server returned it. After
    /// the run the key waits until the controller's store of that kind has this version of the
    /// object, or a later one, or its end. So the next run does not decide from objects that are
    /// older than its own writes.
    ///
    /// The key waits after an error or a panic too. It waits without a worker, and no failure is
    /// counted for it. What is added meanwhile runs it once, when the wait is over. A failure has its
    /// backoff as always, and if that ends later, the retry waits for it. A write that has changed
    /// nothing, or that the store shows already, is not waited for. After
    /// [`own_writes_timeout`](crate::Controller::own_writes_timeout) the key runs in any case, and
    /// [`maybe_stale`](Self::maybe_stale) returns true: an object that a selector excludes may
    /// never come.
    ///
    /// Versions are compared as numbers of any length (KEP-5504). One that is no number has come
    /// back when the store shows exactly this one.
    ///
    /// [`api`](Self::api) and [`record_writes`](crate::record_writes) do this by themselves.
    ///
    /// # Errors
    ///
    /// [`NotCached`] if the controller has no store of this kind, as that of
    /// [`owns_cached`](crate::Controller::owns_cached). Nothing is waited for then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::Api;
    /// use kube::api::PostParams;
    /// use kube::runtime::reflector::{ObjectRef, Store};
    /// use requeue_kube::{Action, Context};
    ///
    /// async fn reconcile(
    ///     map: Arc<ConfigMap>,
    ///     run: Context<ConfigMap>,
    ///     (api, secrets): (Api<Secret>, Store<Secret>),
    /// ) -> kube::Result<Action> {
    ///     let key = ObjectRef::new(&run.key.name).within("default");
    ///     // A secret that a run has created is here in the next run: none is created twice.
    ///     if secrets.get(&key).is_none() {
    ///         let mut secret = Secret::default();
    ///         secret.metadata.name = map.metadata.name.clone();
    ///         let secret = api.create(&PostParams::default(), &secret).await?;
    ///         run.wrote(&secret)?;
    ///     }
    ///     Ok(Action::Success)
    /// }
    /// # let _ = reconcile;
    /// ```
    pub fn wrote<C>(&self, object: &C) -> Result<(), NotCached>
    where
        C: Resource<DynamicType: Default>,
    {
        self.writes.wrote(object)
    }

    /// Records an object that this run has deleted. After the run the key waits, as after
    /// [`wrote`](Self::wrote), until the controller's store no longer has the object, or shows that
    /// it is being deleted.
    ///
    /// # Errors
    ///
    /// As [`wrote`](Self::wrote).
    pub fn deleted<C>(&self, object: &C) -> Result<(), NotCached>
    where
        C: Resource<DynamicType: Default>,
    {
        self.writes.deleted(object)
    }

    /// Records a write that may or may not have been carried out, because it timed out. After the
    /// run the key waits, as after [`wrote`](Self::wrote), until a live read has shown what there
    /// is, and the controller's store shows the same. A write that the API server carries out after
    /// that read is not noticed.
    ///
    /// # Errors
    ///
    /// As [`wrote`](Self::wrote).
    pub fn unsure<C: Resource>(&self, reference: &ObjectRef<C>) -> Result<(), NotCached> {
        self.writes.unsure(reference)
    }

    /// Returns an [`Api`] that records what is written with it, in the namespace of this run's
    /// object, or in the client's default one if it has none. See [`client`](Self::client).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::api::DeleteParams;
    /// use requeue_kube::{Action, Context};
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, run: Context<ConfigMap>) -> kube::Result<Action> {
    ///     let secrets = run.api::<Secret>();
    ///     // The next run begins when the store no longer has it.
    ///     secrets.delete("old-password", &DeleteParams::default()).await?;
    ///     # let _ = map;
    ///     Ok(Action::Success)
    /// }
    /// # let _ = reconcile;
    /// ```
    pub fn api<C>(&self) -> Api<C>
    where
        C: Resource<DynamicType: Default, Scope = NamespaceResourceScope>,
    {
        let client = self.client();
        match &self.key.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        }
    }

    /// Returns the controller's client, which records what is written with it, as
    /// [`Writes::client`] describes. Make it once a run: a client has a task.
    ///
    /// Its requests fail if the controller was made without a client, and in a context that you have
    /// made for a test.
    pub fn client(&self) -> Client {
        self.writes.own_client()
    }

    /// Returns what records for this run where the context does not reach.
    pub fn writes(&self) -> Writes {
        self.writes.clone()
    }

    /// Returns whether the run may see objects that are older than what the last run wrote, because
    /// a write has not come back in time. Read what matters from the API server then.
    pub fn maybe_stale(&self) -> bool {
        self.maybe_stale
    }

    /// Ends the run to wait for an object, with the action that [`at_most`](WaitFor::at_most) returns:
    /// the key runs again when `predicate` is true for what the store has of the object, or for
    /// `None` if it has nothing. Nothing is polled, no worker is taken, and no failure counted.
    ///
    /// The predicate is called when the run ends and at each event of the object, outside of the
    /// run. It should be short, and one that panics ends the wait. The store has to be the
    /// controller's own, such as [`owns_cached`](crate::Controller::owns_cached) returns, the
    /// object may be in any namespace. What is added meanwhile runs the key once, when the wait is
    /// over. The wait also ends after [`at_most`](WaitFor::at_most).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::runtime::reflector::{ObjectRef, Store};
    /// use requeue_kube::{Action, Context};
    ///
    /// async fn reconcile(
    ///     map: Arc<ConfigMap>,
    ///     run: Context<ConfigMap>,
    ///     secrets: Store<Secret>,
    /// ) -> kube::Result<Action> {
    ///     let token = ObjectRef::new("token").within("vault");
    ///     if secrets.get(&token).is_none() && !run.timed_out {
    ///         let wait = run.wait_for(&secrets, token, |token| token.is_some());
    ///         return Ok(wait.at_most(Duration::from_secs(600))?);
    ///     }
    ///     # let _ = map;
    ///     Ok(Action::Success)
    /// }
    /// # let _ = reconcile;
    /// ```
    pub fn wait_for<C>(
        &self,
        store: &Store<C>,
        reference: ObjectRef<C>,
        predicate: impl Fn(Option<&C>) -> bool + Send + Sync + 'static,
    ) -> WaitFor<'_>
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Eq + Hash + Clone + Send + Sync,
    {
        WaitFor::new(&self.writes).and(store, reference, predicate)
    }
}

impl<K: Resource> Clone for Context<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            reasons: self.reasons.clone(),
            writes: self.writes.clone(),
            ..*self
        }
    }
}

impl<K: Resource> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("key", &format_args!("{}", self.key))
            .field("attempt", &self.attempt)
            .field("waited", &self.waited)
            .field("deadline", &self.deadline)
            .field("changed", &self.changed)
            .field("reasons", &format_args!("{}", self.reasons))
            .field("timed_out", &self.timed_out)
            .field("maybe_stale", &self.maybe_stale)
            .finish()
    }
}

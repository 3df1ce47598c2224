//! The builder of a controller.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, reflector};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use requeue::tokio::{Action, CancellationToken, IntoAction, Leftover, WorkQueue, Workers};
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::Error;
use crate::health::Health;
use crate::keys::{Keys, bare};
use crate::lease::Leader;
use crate::metrics;
use crate::owners::owners_of;
use crate::tracker::{Changes, KeysOf, Tracker};
use crate::watching::watch;

mod feeder;
mod running;

use running::Crew;

/// A controller: it watches objects and what they depend on, and runs a reconciler for those that
/// may not be as wanted, with the guarantees of requeue's [work queue](requeue::tokio::WorkQueue).
///
/// What comes before the queue is kube-runtime's: `watcher`, `reflector`, `Store`, `ObjectRef`.
/// What comes after is requeue's: no two runs of one object at once, backoff per object,
/// priorities, a drain that hands back what is left. [The page of this crate](crate) compares both.
///
/// | what happens | and then |
/// |---|---|
/// | an object, or what it owns or depends on, changes | it runs, ahead of those merely listed |
/// | the first list, a resync | every object runs, behind those that changed |
/// | a watch loses its place and lists again | what changed or went runs, then the rest |
/// | the reconciler returns `Err` or panics | the object runs again after its backoff |
/// | an object is gone when its turn comes | nothing, unless [`run_keys`](Self::run_keys) is used |
/// | a kind cannot be listed in time | [`run`](Self::run) returns [`Error::NotSynced`] |
/// | a watch fails later | it is retried with backoff; the workers go on with what is known |
/// | an owner reference names another kind | it is not this controller's object: nothing |
/// | an owner is cluster-scoped and its part is not | the owner runs under its own name, once |
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
/// use requeue_kube::{Action, CancellationToken, Context, Controller, Error, Leader, Workers};
///
/// async fn reconcile(pods: Arc<Deployment>, _: Context<Deployment>) -> kube::Result<Action> {
///     println!("making {:?} what it should be", pods.metadata.name);
///     Ok(Action::Success)
/// }
///
/// # async fn controller(client: Client, stop: CancellationToken) -> Result<(), Error> {
/// let all = watcher::Config::default;
/// let left = Controller::new(Api::<Deployment>::all(client.clone()), all())
///     .owns(Api::<ReplicaSet>::all(client.clone()), all())
///     .named("deployment")
///     .backoff(Duration::from_millis(5), Duration::from_secs(1000))
///     .resync(Duration::from_secs(36_000))
///     .leader(Leader::lease(client, "default", "deployment-controller"))
///     .run(Workers::new(4).drain_timeout(Duration::from_secs(10)), stop, reconcile)
///     .await?;
/// println!("not done: {}", left.len());
/// # Ok(())
/// # }
/// ```
#[must_use = "a controller does nothing until it is run"]
pub struct Controller<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    store: Store<K>,
    dyntype: K::DynamicType,
    watches: Vec<Watch<K>>,
    requests: Vec<BoxStream<'static, Changes<K>>>,
    name: Option<String>,
    backoff: (Duration, Duration),
    retry_rate: Option<(f64, u32)>,
    resync: Option<Duration>,
    sync_timeout: Duration,
    leader: Option<Leader>,
    health: Health,
}

/// A watch of one kind.
struct Watch<K: Resource> {
    /// As `deployments.apps`.
    kind: String,
    changes: BoxStream<'static, Result<Changes<K>, watcher::Error>>,
}

/// How long a controller waits for its first lists: controller-runtime's `CacheSyncTimeout`.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

impl<K> Controller<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
{
    /// Creates a controller of the objects that `api` lists with this configuration.
    pub fn new(api: Api<K>, config: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(api, config, K::DynamicType::default())
    }

    /// Creates a controller of a kind that is known only at run time, such as `DynamicObject`.
    pub fn new_with(api: Api<K>, config: watcher::Config, dyntype: K::DynamicType) -> Self {
        let writer = Writer::<K>::new(dyntype.clone());
        let store = writer.as_reader();
        let events = reflector(writer, watch(api, config));
        let mut controller = Self {
            store,
            dyntype: dyntype.clone(),
            watches: Vec::new(),
            requests: Vec::new(),
            name: None,
            backoff: (Duration::from_millis(5), Duration::from_secs(1000)),
            retry_rate: None,
            resync: None,
            sync_timeout: SYNC_TIMEOUT,
            leader: None,
            health: Health::default(),
        };
        controller.watch(kind_of::<K>(&dyntype), events, KeysOf::Itself(dyntype));
        controller
    }

    /// Also watches objects that those of the controller own: an object runs if one that names it
    /// as an owner changes, or did until now. The version of the owner's API does not matter, its
    /// group and its kind do.
    pub fn owns<C>(self, api: Api<C>, config: watcher::Config) -> Self
    where
        C: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        self.owns_with(api, C::DynamicType::default(), config)
    }

    /// As [`owns`](Self::owns), for a kind that is known only at run time.
    pub fn owns_with<C>(self, api: Api<C>, dyntype: C::DynamicType, config: watcher::Config) -> Self
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let own = self.dyntype.clone();
        self.watches_with(api, dyntype, config, move |part: &C| owners_of(part, &own))
    }

    /// Also watches objects on which those of the controller depend in another way: `keys_of` says
    /// which of them run if one changes. It has to name the same objects for the same input. What
    /// it named before runs too, so that an object notices what it lost.
    pub fn watches<C, I>(
        self,
        api: Api<C>,
        config: watcher::Config,
        keys_of: impl Fn(&C) -> I + Send + 'static,
    ) -> Self
    where
        C: Resource<DynamicType: Default> + Clone + DeserializeOwned + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        self.watches_with(api, C::DynamicType::default(), config, keys_of)
    }

    /// As [`watches`](Self::watches), for a kind that is known only at run time.
    pub fn watches_with<C, I>(
        mut self,
        api: Api<C>,
        dyntype: C::DynamicType,
        config: watcher::Config,
        keys_of: impl Fn(&C) -> I + Send + 'static,
    ) -> Self
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let events = watch(api, config);
        let keys_of = Box::new(move |object: &C| keys_of(object).into_iter().collect());
        self.watch(kind_of::<C>(&dyntype), events, KeysOf::Others(keys_of));
        self
    }

    /// Also runs the objects that a stream names, for instance what an external system says.
    pub fn reconcile_on(mut self, keys: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        let changes = keys.map(|key| Changes::changed(vec![bare(key)]));
        self.requests.push(changes.boxed());
        self
    }

    /// Runs every object that is known, behind those that changed, whenever a stream asks for it:
    /// for instance when a file of configuration has changed.
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self {
        let (store, dyntype) = (self.store.clone(), self.dyntype.clone());
        let changes = trigger.map(move |()| {
            let key = |object: &Arc<K>| ObjectRef::from_obj_with(&**object, dyntype.clone());
            let listed = store.state().iter().map(key).map(bare).collect();
            Changes {
                listed,
                ..Changes::changed(Vec::new())
            }
        });
        self.requests.push(changes.boxed());
        self
    }

    /// Sets the name of the controller. With the feature `metrics` the queue's metrics have it as
    /// the label `name`, and those of the controller as the label `controller`. Without a name
    /// nothing is counted.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the delay after the first failure of an object, which doubles with each further
    /// failure, and the longest delay. The defaults are 5 ms and 1000 s, as in client-go.
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.backoff = (base, max);
        self
    }

    /// Limits the retries of all objects together: so many per second, after a burst. There is no
    /// such limit by default, as in controller-runtime's priority queue: if thousands of objects
    /// fail at once, each has its backoff.
    pub fn retry_rate(mut self, per_second: f64, burst: u32) -> Self {
        self.retry_rate = Some((per_second, burst));
        self
    }

    /// Runs every object again so often, behind those that changed. Up to a tenth of the time is
    /// added at random each time, so that many controllers do not do it at once. Off by default:
    /// a watch that lost its place lists again by itself.
    ///
    /// A time of zero counts as none.
    pub fn resync(mut self, every: Duration) -> Self {
        self.resync = Some(every).filter(|every| !every.is_zero());
        self
    }

    /// Sets how long the controller waits until every kind has been listed. The default is two
    /// minutes, as in controller-runtime; `Duration::MAX` means for ever.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Works only while this replica is the leader.
    pub fn leader(mut self, leader: Leader) -> Self {
        self.leader = Some(leader);
        self
    }

    /// Returns what `/healthz` and `/readyz` report.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Returns the objects as they were seen last. Empty until the controller runs.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Runs the controller until `stop` is cancelled; then drains the queue and returns the objects
    /// that are left: those that failed while it drained, those that wait for a time, and those for
    /// which the [deadline](Workers::drain_timeout) left no time.
    ///
    /// The workers begin when every kind has been listed, and if there is a
    /// [leader](Self::leader), when this replica is. Each run gets the newest object that was seen.
    /// An object that is gone is skipped. How a run ends is the table of
    /// [`WorkQueue::run`](requeue::tokio::WorkQueue::run). Each run has a `tracing` span, with the
    /// object as its `key`, unless [`Workers::trace_keys`] says what it shows.
    ///
    /// # Errors
    ///
    /// [`Error::NotSynced`] if a kind cannot be listed in time, [`Error::LeaseLost`] if the lease
    /// could not be renewed, and [`Error::LeaseTimes`]. The workers have ended then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the workers at their next `await`, and closes the watches. A
    /// lease is not released then, and expires.
    ///
    /// # Panics
    ///
    /// If a closure given to [`watches`](Self::watches) panics.
    pub fn run<E, R>(
        self,
        workers: impl Into<Workers<'static, ObjectRef<K>, E>>,
        stop: CancellationToken,
        reconcile: impl Fn(Arc<K>, Context<K>) -> R + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<Vec<Leftover<ObjectRef<K>>>, Error>>
    where
        E: Send + 'static,
        R: Future<Output: IntoAction<Error = E>> + Send + 'static,
    {
        self.run_keys(workers, stop, move |object, context| {
            let run = object.map(|object| reconcile(object, context));
            async move {
                match run {
                    Some(run) => run.await.into_action(),
                    None => Ok(Action::Success),
                }
            }
        })
    }

    /// As [`run`](Self::run), but the reconciler also runs for objects that are gone, with `None`,
    /// for instance to remove what is not in the cluster. It runs at least once after an object was
    /// deleted while the controller runs; what is deleted while no controller runs, only a
    /// [finalizer](crate::finalizer) notices.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_keys<E, R>(
        self,
        workers: impl Into<Workers<'static, ObjectRef<K>, E>>,
        stop: CancellationToken,
        reconcile: impl Fn(Option<Arc<K>>, Context<K>) -> R + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<Vec<Leftover<ObjectRef<K>>>, Error>>
    where
        E: Send + 'static,
        R: Future<Output: IntoAction<Error = E>> + Send + 'static,
    {
        let workers = workers.into();
        let reconcile = move |object, context| {
            let run = reconcile(object, context);
            async move { run.await.into_action() }
        };
        Box::pin(Crew::run(self, workers, stop, reconcile))
    }

    fn watch<C>(
        &mut self,
        kind: String,
        events: impl Stream<Item = Result<Event<C>, watcher::Error>> + Send + 'static,
        keys_of: KeysOf<C, K>,
    ) where
        C: Resource + Send + 'static,
    {
        let mut tracker = Tracker::new(keys_of);
        let changes = events.map(move |event| event.map(|event| tracker.see(&event)));
        let changes = changes.boxed();
        self.watches.push(Watch { kind, changes });
    }

    fn build_queue(&self) -> Keys<K> {
        let (base, max) = self.backoff;
        let builder = WorkQueue::builder().levels::<2>().backoff(base, max);
        let builder = match self.retry_rate {
            Some((per_second, burst)) => builder.retry_rate(per_second, burst),
            None => builder.no_retry_rate(),
        };
        metrics::attach(builder, self.name.as_deref()).build()
    }
}

fn kind_of<T: Resource>(dyntype: &T::DynamicType) -> String {
    let (plural, group) = (T::plural(dyntype), T::group(dyntype));
    if group.is_empty() {
        plural.into_owned()
    } else {
        format!("{plural}.{group}")
    }
}

impl<K: Resource> fmt::Debug for Controller<K>
where
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.watches.iter().map(|watch| &*watch.kind).collect();
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("kinds", &kinds)
            .field("leader", &self.leader)
            .finish_non_exhaustive()
    }
}

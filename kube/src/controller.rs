//! The builder of a controller.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, stream};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, reflector};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use requeue::limiter::RateLimiter;
use requeue::priority::{Groups, Levels, Priorities};
use requeue::tokio::{
    Action, CancellationToken, GroupLimits, IntoAction, Leftover, Policy, WorkQueue, Workers,
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::cache::Cache;
use crate::context::Context;
use crate::error::Error;
use crate::events::{WatchItem, watch};
use crate::health::Health;
use crate::keys::{KeyQueue, Keys, KeysBuilder, bare};
use crate::lease::Leader;
use crate::metrics;
use crate::owners::owners_of;
use crate::reasons::{Cause, Reason};
use crate::tracker::{Changes, KeysOf, Tracker};
use crate::wakers::StoreWaiter;
use crate::writes::Path;

mod feeder;
mod running;

pub(crate) use feeder::later;
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
pub struct Controller<K: Resource + 'static, Q = Keys<K>>
where
    K::DynamicType: Eq + Hash,
{
    parts: Parts<K>,
    queue: Box<BuildQueue<K, Q>>,
}

/// Builds the queue once everything is known.
type BuildQueue<K, Q> = dyn FnOnce(&Parts<K>) -> Q + Send;

/// Everything but the queue.
struct Parts<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    store: Store<K>,
    dyntype: K::DynamicType,
    watches: Vec<Watch<K>>,
    requests: Vec<BoxStream<'static, Changes<K>>>,
    client: Option<Client>,
    own_writes_timeout: Duration,
    name: Option<String>,
    backoff: (Duration, Duration),
    retry_rate: Option<(f64, u32)>,
    policy: Option<Policy>,
    /// How long a burst of changes has to be quiet, and how long it lasts at most.
    debounce: Option<(Duration, Duration)>,
    resync: Option<Duration>,
    sync_timeout: Duration,
    leader: Option<Leader>,
    health: Health,
    /// Whether the health is that of several controllers.
    is_managed: bool,
}

/// A watch of one kind.
struct Watch<K: Resource> {
    /// As `deployments.apps`.
    kind: Arc<str>,
    changes: BoxStream<'static, Result<Changes<K>, Arc<watcher::Error>>>,
    /// The store that the watch fills, if the controller knows one.
    cache: Option<Cache>,
    /// Whether it is a stream of events, and not only the end of a first list.
    has_events: bool,
}

/// How long a controller waits for its first lists: controller-runtime's `CacheSyncTimeout`.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// After how long a controller looks again whether a store has been filled: if the program waits
/// for the store too, kube's store may wake only the program.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long an object waits for its own writes: as long as a watch that has failed may take to be
/// retried.
const OWN_WRITES_TIMEOUT: Duration = Duration::from_secs(30);

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
        let client = api.clone().into_client();
        let namespace = Path::parse(api.resource_url()).and_then(|path| path.namespace);
        let writer = Writer::<K>::new(dyntype.clone());
        let store = writer.as_reader();
        let events = reflector(writer, watch(api, config));
        Self::of(events, store, dyntype, namespace.as_deref()).client(client)
    }
}

impl<K> Controller<K>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
{
    /// Creates a controller of the objects in a store, and of the stream that fills it.
    ///
    /// [`WatchItem`] lists the streams that are accepted: [`watch`](crate::watch) with what you drop
    /// from it, a [`Subscription`](crate::Subscription) with the
    /// [store](crate::SharedWatch::store) of its watch, or kube-runtime's own. The stream has to
    /// fill the store before it brings an event, as kube-runtime's `reflect` does. If the stream
    /// watches one namespace, name it with [`fills_within`](Self::fills_within).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::{WatchStreamExt, reflector, watcher};
    /// use kube::{Api, Client};
    /// use requeue_kube::{Controller, EventsExt, watch};
    ///
    /// fn controller(client: Client) -> Controller<ConfigMap> {
    ///     let (store, writer) = reflector::store();
    ///     let events = watch(Api::<ConfigMap>::all(client), watcher::Config::default())
    ///         .drop_managed_fields()
    ///         .reflect(writer);
    ///     Controller::for_stream(events, store)
    /// }
    /// ```
    pub fn for_stream<I: WatchItem<K>>(
        events: impl Stream<Item = I> + Send + 'static,
        store: Store<K>,
    ) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_stream_with(events, store, K::DynamicType::default())
    }

    /// As [`for_stream`](Self::for_stream), for a kind that is known only at run time.
    pub fn for_stream_with<I: WatchItem<K>>(
        events: impl Stream<Item = I> + Send + 'static,
        store: Store<K>,
        dyntype: K::DynamicType,
    ) -> Self {
        Self::of(events, store, dyntype, None)
    }

    fn of<I: WatchItem<K>>(
        events: impl Stream<Item = I> + Send + 'static,
        store: Store<K>,
        dyntype: K::DynamicType,
        namespace: Option<&str>,
    ) -> Self {
        let kind = kind_of::<K>(&dyntype);
        let cache = Cache::new(&kind, dyntype.clone(), namespace, store.clone());
        let parts = Parts {
            store: store.clone(),
            dyntype: dyntype.clone(),
            watches: Vec::new(),
            requests: Vec::new(),
            client: None,
            own_writes_timeout: OWN_WRITES_TIMEOUT,
            name: None,
            backoff: (Duration::from_millis(5), Duration::from_secs(1000)),
            retry_rate: None,
            policy: None,
            debounce: None,
            resync: None,
            sync_timeout: SYNC_TIMEOUT,
            leader: None,
            health: Health::default(),
            is_managed: false,
        };
        let mut controller = Self {
            parts,
            queue: Box::new(|parts| parts.builder().build()),
        };
        let is_listed = (!I::LISTS).then(|| store_of(store));
        controller.watch(
            kind,
            Some(cache),
            events,
            KeysOf::Itself(dyntype),
            is_listed,
        );
        controller
    }

    /// Sets the delay after the first failure of an object, which doubles with each further
    /// failure, and the longest delay. The defaults are 5 ms and 1000 s, as in client-go.
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.parts.backoff = (base, max);
        self
    }

    /// Limits the retries of all objects together: so many per second, after a burst. There is no
    /// such limit by default, as in controller-runtime's priority queue: if thousands of objects
    /// fail at once, each has its backoff.
    pub fn retry_rate(mut self, per_second: f64, burst: u32) -> Self {
        self.parts.retry_rate = Some((per_second, burst));
        self
    }

    /// Serves groups of objects in turn, so that the backlog of one delays no other, and limits
    /// each group: how many of its objects run at once, how many per second, and its
    /// [weight](GroupLimits::weight). `group_of` is a function, or a closure that captures nothing.
    ///
    /// For limits that differ from group to group, build a [`queue`](Self::queue). Call this after
    /// [`backoff`](Self::backoff) and [`retry_rate`](Self::retry_rate).
    ///
    /// # Examples
    ///
    /// No namespace has more than two runs at a time:
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::watcher;
    /// use kube::{Api, Client};
    /// use requeue_kube::{Controller, GroupLimits};
    ///
    /// # fn controller(client: Client) {
    /// let maps = Api::<ConfigMap>::all(client);
    /// let controller = Controller::new(maps, watcher::Config::default())
    ///     .groups(
    ///         |map| map.namespace.clone().unwrap_or_default(),
    ///         GroupLimits::new().max_active(2),
    ///     );
    /// # let _ = controller;
    /// # }
    /// ```
    pub fn groups<G>(
        self,
        group_of: fn(&ObjectRef<K>) -> G,
        limits: GroupLimits,
    ) -> Controller<K, WorkQueue<ObjectRef<K>, Groups<G, Levels<2>>>>
    where
        G: Eq + Hash + 'static,
    {
        self.with_queue(move |parts| {
            let queue = parts.builder().build_with_groups(group_of);
            queue.limit_groups(limits);
            queue
        })
    }

    /// Uses a queue of yours, with everything that its [builder](WorkQueue::builder) can do: levels,
    /// aging, groups, a limiter, metrics, a limit on its keys. To pause the queue, to add keys, or to
    /// ask it what it holds, keep a clone. [`shared_queue`](Self::shared_queue) returns the
    /// controller's own queue for that.
    ///
    /// Objects that change are added at the level [`CHANGED`](crate::CHANGED), and those that are
    /// listed at [`LISTED`](crate::LISTED), or at the highest level if the queue has fewer. Higher
    /// levels are yours. If the queue is full, the controller keeps the keys until there is room.
    ///
    /// The queue replaces that of the controller, with its [`backoff`](Self::backoff), its
    /// [`retry_rate`](Self::retry_rate), and its metrics under the [name](Self::named) of the
    /// controller. It is shut down when the controller stops, so give it to one controller.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher;
    /// use kube::{Api, Client};
    /// use requeue::limiter::FastSlow;
    /// use requeue::tokio::{GroupLimits, WorkQueue};
    /// use requeue_kube::Controller;
    ///
    /// # fn controller(client: Client) {
    /// let limiter = FastSlow::new(Duration::from_millis(50), Duration::from_secs(60), 5);
    /// let queue = WorkQueue::builder()
    ///     .levels::<3>()
    ///     .limiter(limiter)
    ///     .build_with_groups(|map: &ObjectRef<ConfigMap>| {
    ///         map.namespace.clone().unwrap_or_default()
    ///     });
    /// let system = GroupLimits::new().weight(8);
    /// let _ = queue.limit_group(String::from("kube-system"), system);
    ///
    /// let maps = Api::<ConfigMap>::all(client);
    /// let controller = Controller::new(maps, watcher::Config::default()).queue(queue.clone());
    /// # let _ = controller;
    /// println!("{} objects are ready", queue.len());
    /// # }
    /// ```
    pub fn queue<P, L>(
        self,
        queue: WorkQueue<ObjectRef<K>, P, L>,
    ) -> Controller<K, WorkQueue<ObjectRef<K>, P, L>>
    where
        P: Priorities,
        L: RateLimiter,
        WorkQueue<ObjectRef<K>, P, L>: KeyQueue<K>,
    {
        self.with_queue(|_| queue)
    }

    fn with_queue<Q>(
        self,
        queue: impl FnOnce(&Parts<K>) -> Q + Send + 'static,
    ) -> Controller<K, Q> {
        Controller {
            parts: self.parts,
            queue: Box::new(queue),
        }
    }
}

impl<K, Q> Controller<K, Q>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
{
    /// Also watches objects that those of the controller own: an object runs if one that names it
    /// as an owner changes, or did until now. The version of the owner's API does not matter, its
    /// group and its kind do.
    ///
    /// There is no store of these objects, so no run waits for its writes of this kind.
    /// [`owns_cached`](Self::owns_cached) makes a store.
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
        let own = self.parts.dyntype.clone();
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
        self,
        api: Api<C>,
        dyntype: C::DynamicType,
        config: watcher::Config,
        keys_of: impl Fn(&C) -> I + Send + 'static,
    ) -> Self
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        self.watches_stream_with(watch(api, config), dyntype, keys_of)
    }

    /// As [`owns`](Self::owns), and returns the objects that are watched, as they were seen last.
    /// Use it if the reconciler looks at them. An object that has [written](Context::wrote) one of
    /// them runs again when this store shows it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::runtime::watcher;
    /// use kube::{Api, Client};
    /// use requeue_kube::Controller;
    ///
    /// # fn controller(client: Client) {
    /// let all = watcher::Config::default;
    /// let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), all());
    /// let (controller, secrets) = controller.owns_cached(Api::<Secret>::all(client), all());
    /// # let _ = (controller, secrets);
    /// # }
    /// ```
    pub fn owns_cached<C>(self, api: Api<C>, config: watcher::Config) -> (Self, Store<C>)
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        C::DynamicType: Default + Debug + Eq + Hash + Clone + Send + Sync,
    {
        self.owns_cached_with(api, C::DynamicType::default(), config)
    }

    /// As [`owns_cached`](Self::owns_cached), for a kind that is known only at run time.
    pub fn owns_cached_with<C>(
        self,
        api: Api<C>,
        dyntype: C::DynamicType,
        config: watcher::Config,
    ) -> (Self, Store<C>)
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        C::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
    {
        let own = self.parts.dyntype.clone();
        let owners = move |part: &C| owners_of(part, &own);
        self.watches_cached_with(api, dyntype, config, owners)
    }

    /// As [`watches`](Self::watches), and returns the objects that are watched, as
    /// [`owns_cached`](Self::owns_cached) does.
    pub fn watches_cached<C, I>(
        self,
        api: Api<C>,
        config: watcher::Config,
        keys_of: impl Fn(&C) -> I + Send + 'static,
    ) -> (Self, Store<C>)
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        C::DynamicType: Default + Debug + Eq + Hash + Clone + Send + Sync,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        self.watches_cached_with(api, C::DynamicType::default(), config, keys_of)
    }

    /// As [`watches_cached`](Self::watches_cached), for a kind that is known only at run time.
    pub fn watches_cached_with<C, I>(
        mut self,
        api: Api<C>,
        dyntype: C::DynamicType,
        config: watcher::Config,
        keys_of: impl Fn(&C) -> I + Send + 'static,
    ) -> (Self, Store<C>)
    where
        C: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        C::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let namespace = Path::parse(api.resource_url()).and_then(|path| path.namespace);
        let writer = Writer::<C>::new(dyntype.clone());
        let store = writer.as_reader();
        let kind = kind_of::<C>(&dyntype);
        let cache = Cache::new(&kind, dyntype, namespace.as_deref(), store.clone());
        let events = reflector(writer, watch(api, config));
        let keys_of = Box::new(move |object: &C| keys_of(object).into_iter().collect());
        self.watch(kind, Some(cache), events, KeysOf::Others(keys_of), None);
        (self, store)
    }

    /// Names the store that the last stream of this kind fills, so that objects wait until it shows
    /// [their own writes](Context::wrote). [`owns_cached`](Self::owns_cached) does this by itself.
    /// Without a stream of this kind it does nothing.
    ///
    /// The store counts for all namespaces. If the stream watches only one of them, use
    /// [`fills_within`](Self::fills_within).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::runtime::{WatchStreamExt, reflector, watcher};
    /// use kube::{Api, Client};
    /// use requeue_kube::{Controller, watch};
    ///
    /// # fn controller(client: Client) {
    /// let all = watcher::Config::default;
    /// let (secrets, writer) = reflector::store();
    /// let events = watch(Api::<Secret>::all(client.clone()), all()).reflect(writer);
    /// let controller = Controller::new(Api::<ConfigMap>::all(client), all())
    ///     .owns_stream(events)
    ///     .fills(secrets.clone());
    /// # let _ = controller;
    /// # }
    /// ```
    pub fn fills<C>(self, store: Store<C>) -> Self
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
    {
        self.filling(store, None)
    }

    /// As [`fills`](Self::fills), for a stream that watches one namespace. A write to another
    /// namespace is not waited for, because the store never shows it. After
    /// [`for_stream`](Controller::for_stream) it also says so of the controller's own stream.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::{WatchStreamExt, reflector, watcher};
    /// use kube::{Api, Client};
    /// use requeue_kube::{Controller, watch};
    ///
    /// # fn controller(client: Client) {
    /// let (maps, writer) = reflector::store();
    /// let api = Api::<ConfigMap>::namespaced(client, "web");
    /// let events = watch(api, watcher::Config::default()).reflect(writer);
    /// let controller = Controller::for_stream(events, maps.clone()).fills_within(maps, "web");
    /// # let _ = controller;
    /// # }
    /// ```
    pub fn fills_within<C>(self, store: Store<C>, namespace: &str) -> Self
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
    {
        self.filling(store, Some(namespace))
    }

    fn filling<C>(mut self, store: Store<C>, namespace: Option<&str>) -> Self
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
    {
        let dyntype = C::DynamicType::default();
        let kind = kind_of::<C>(&dyntype);
        let mut watches = self.parts.watches.iter_mut().rev();
        if let Some(watch) = watches.find(|watch| watch.has_events && watch.kind == kind) {
            watch.cache = Some(Cache::new(&kind, dyntype, namespace, store));
        }
        self
    }

    /// As [`owns`](Self::owns), for a stream of yours. [`WatchItem`] lists the streams that are
    /// accepted.
    pub fn owns_stream<C, I>(self, events: impl Stream<Item = I> + Send + 'static) -> Self
    where
        C: Resource<DynamicType: Default> + Send + 'static,
        I: WatchItem<C>,
    {
        self.owns_stream_with(events, C::DynamicType::default())
    }

    /// As [`owns_stream`](Self::owns_stream), for a kind that is known only at run time.
    pub fn owns_stream_with<C, I>(
        self,
        events: impl Stream<Item = I> + Send + 'static,
        dyntype: C::DynamicType,
    ) -> Self
    where
        C: Resource + Send + 'static,
        I: WatchItem<C>,
    {
        let own = self.parts.dyntype.clone();
        self.watches_stream_with(events, dyntype, move |part: &C| owners_of(part, &own))
    }

    /// As [`watches`](Self::watches), for a stream of yours. [`WatchItem`] lists the streams that
    /// are accepted.
    ///
    /// # Examples
    ///
    /// The metadata of Secrets alone, without their contents (needs kube 3.1):
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::api::PartialObjectMeta;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::{predicates, watcher};
    /// use kube::{Api, Client, ResourceExt};
    /// use requeue_kube::{Controller, EventsExt, watch};
    ///
    /// fn map_of(secret: &PartialObjectMeta<Secret>) -> Option<ObjectRef<ConfigMap>> {
    ///     Some(ObjectRef::new(&secret.name_any()).within(&secret.namespace()?))
    /// }
    ///
    /// # fn controller(client: Client) {
    /// let all = watcher::Config::default;
    /// let secrets = Api::<PartialObjectMeta<Secret>>::all(client.clone());
    /// let controller = Controller::new(Api::<ConfigMap>::all(client), all())
    ///     .watches_stream(watch(secrets, all()).only_changed(predicates::labels), map_of);
    /// # let _ = controller;
    /// # }
    /// ```
    pub fn watches_stream<C, I, N>(
        self,
        events: impl Stream<Item = I> + Send + 'static,
        keys_of: impl Fn(&C) -> N + Send + 'static,
    ) -> Self
    where
        C: Resource<DynamicType: Default> + Send + 'static,
        I: WatchItem<C>,
        N: IntoIterator<Item = ObjectRef<K>>,
    {
        self.watches_stream_with(events, C::DynamicType::default(), keys_of)
    }

    /// As [`watches_stream`](Self::watches_stream), for a kind that is known only at run time.
    pub fn watches_stream_with<C, I, N>(
        mut self,
        events: impl Stream<Item = I> + Send + 'static,
        dyntype: C::DynamicType,
        keys_of: impl Fn(&C) -> N + Send + 'static,
    ) -> Self
    where
        C: Resource + Send + 'static,
        I: WatchItem<C>,
        N: IntoIterator<Item = ObjectRef<K>>,
    {
        let keys_of = Box::new(move |object: &C| keys_of(object).into_iter().collect());
        let is_listed = (!I::LISTS).then(|| std::future::ready(()).boxed());
        self.watch(
            kind_of::<C>(&dyntype),
            None,
            events,
            KeysOf::Others(keys_of),
            is_listed,
        );
        self
    }

    /// Lets the workers begin only when this store has been filled: one that the reconciler reads,
    /// and of which the controller has no stream that says when the first list is complete.
    /// [`Error::NotSynced`] and `/readyz` name its kind. Objects do not wait for their own writes of
    /// this kind: that needs [`fills`](Self::fills).
    pub fn waits_for<C>(mut self, store: Store<C>) -> Self
    where
        C: Resource<DynamicType: Default + Eq + Hash + Clone + Send + Sync>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let kind = kind_of::<C>(&C::DynamicType::default());
        let changes = stream::once(store_of(store).map(|()| Ok(Changes::synced()))).boxed();
        self.parts.watches.push(Watch {
            kind,
            changes,
            cache: None,
            has_events: false,
        });
        self
    }

    /// Also runs the objects that a stream names, for instance what an external system says.
    pub fn reconcile_on(mut self, keys: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        let reason = Reason::from(Cause::Requested);
        let changes = keys.map(move |key| Changes::changed(vec![bare(key)], reason.clone()));
        self.parts.requests.push(changes.boxed());
        self
    }

    /// Runs every object that is known, behind those that changed, whenever a stream asks for it:
    /// for instance when a file of configuration has changed.
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self {
        let (store, dyntype) = (self.parts.store.clone(), self.parts.dyntype.clone());
        let changes = trigger.map(move |()| {
            let key = |object: &Arc<K>| ObjectRef::from_obj_with(&**object, dyntype.clone());
            Changes::listed(store.state().iter().map(key).map(bare).collect())
        });
        self.parts.requests.push(changes.boxed());
        self
    }

    /// Sets the client of [`Context::client`], with which the controller also looks up
    /// [writes](Context::unsure) whose end is not known. A controller that was made with an `Api` has
    /// that one's.
    pub fn client(mut self, client: Client) -> Self {
        self.parts.client = Some(client);
        self
    }

    /// Sets how long an object waits for [its own writes](Context::wrote) at most. Then it runs, and
    /// [`Context::maybe_stale`] is true. The default is 30 s. With zero no object waits, and with
    /// `Duration::MAX` each waits for as long as it takes.
    pub fn own_writes_timeout(mut self, timeout: Duration) -> Self {
        self.parts.own_writes_timeout = timeout;
        self
    }

    /// Sets the name of the controller. With the feature `metrics` the queue's metrics have it as
    /// the label `name`, and those of the controller as the label `controller`. Without a name
    /// nothing is counted. Controllers of one [`Manager`](crate::Manager) need different names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.parts.name = Some(name.into());
        self
    }

    /// Holds each object for `pause` after each of its runs, however it changes meanwhile. Changes
    /// are merged, and make it run when the pause is over.
    ///
    /// This, [`hold_failures`](Self::hold_failures) and [`run_rate`](Self::run_rate) replace the
    /// [policy](Policy) of a [`queue`](Self::queue) of yours.
    pub fn cool_down(self, pause: Duration) -> Self {
        self.with_policy(|policy| policy.cool_down(pause))
    }

    /// Holds each object that failed until its backoff is over, however it changes meanwhile.
    /// Without this a change makes it run at once, and once more when its backoff ends. Use it if
    /// runs that fail change what the controller watches, for instance a status: they would repeat
    /// in a tight loop otherwise.
    pub fn hold_failures(self) -> Self {
        self.with_policy(Policy::hold_failures)
    }

    /// Limits how many runs begin per second, after a burst of at most `burst`.
    pub fn run_rate(self, per_second: f64, burst: u32) -> Self {
        self.with_policy(|policy| policy.run_rate(per_second, burst))
    }

    /// Waits with an object that changes until it has not changed for as long as `quiet`, but not
    /// longer than `max` after the first change: many changes that come one after another make one
    /// run. What is listed does not wait.
    ///
    /// A debounce delays each run. It does not make sure that the caches have what the last run
    /// wrote.
    pub fn debounce(mut self, quiet: Duration, max: Duration) -> Self {
        self.parts.debounce = Some((quiet, max)).filter(|_| !quiet.is_zero());
        self
    }

    fn with_policy(mut self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.parts.policy = Some(change(self.parts.policy.unwrap_or_default()));
        self
    }

    /// Runs every object again so often, behind those that changed. Up to a tenth of the time is
    /// added at random each time, so that many controllers do not do it at once. Off by default:
    /// a watch that lost its place lists again by itself.
    ///
    /// A time of zero counts as none.
    pub fn resync(mut self, every: Duration) -> Self {
        self.parts.resync = Some(every).filter(|every| !every.is_zero());
        self
    }

    /// Sets how long the controller waits until every kind has been listed. The default is two
    /// minutes, as in controller-runtime; `Duration::MAX` means for ever.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.parts.sync_timeout = timeout;
        self
    }

    /// Works only while this replica is the leader. It replaces the leader of a
    /// [`Manager`](crate::Manager) for this controller.
    pub fn leader(mut self, leader: Leader) -> Self {
        self.parts.leader = Some(leader);
        self
    }

    /// Returns a handle to what `/healthz` and `/readyz` report. Take it before [`run`](Self::run),
    /// which consumes the controller.
    pub fn health(&self) -> Health {
        self.parts.health.clone()
    }

    /// Returns the objects as they were seen last. Empty until the controller runs.
    pub fn store(&self) -> Store<K> {
        self.parts.store.clone()
    }

    /// Builds the queue now, and also returns it: to pause it, to add keys, to ask what it holds
    /// and why an object does not run, or to show it in the [window](crate#the-queue). The objects
    /// are in it from when the controller runs.
    ///
    /// Call this after [`named`](Self::named), [`backoff`](Controller::backoff),
    /// [`retry_rate`](Controller::retry_rate) and [`groups`](Controller::groups): they do not change
    /// a queue that is built. O(1).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::runtime::reflector::ObjectRef;
    /// use kube::runtime::watcher;
    /// use kube::{Api, Client};
    /// use requeue_kube::Controller;
    ///
    /// # fn controller(client: Client) {
    /// let maps = Api::<ConfigMap>::all(client);
    /// let (controller, queue) = Controller::new(maps, watcher::Config::default())
    ///     .named("maps")
    ///     .shared_queue();
    /// # let _ = controller;
    /// let settings = ObjectRef::<ConfigMap>::new("settings").within("default");
    /// println!("{settings}: {:?}", queue.why(&settings));
    /// # }
    /// ```
    pub fn shared_queue(self) -> (Self, Q)
    where
        Q: KeyQueue<K>,
    {
        let queue = (self.queue)(&self.parts);
        let shared = queue.clone();
        let controller = Self {
            parts: self.parts,
            queue: Box::new(|_| queue),
        };
        (controller, shared)
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
    /// If `stop` is cancelled while this replica waits for its lease, it looks at the lease once
    /// more and returns all objects that were seen.
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
        Q: KeyQueue<K>,
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
        Q: KeyQueue<K>,
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

    /// Adds a watch. If its items do not say when the first list is complete, `is_listed` does.
    fn watch<C, I>(
        &mut self,
        kind: Arc<str>,
        cache: Option<Cache>,
        events: impl Stream<Item = I> + Send + 'static,
        keys_of: KeysOf<C, K>,
        is_listed: Option<BoxFuture<'static, ()>>,
    ) where
        C: Resource + Send + 'static,
        I: WatchItem<C>,
    {
        let mut tracker = Tracker::new(Arc::clone(&kind), keys_of);
        let changes = events.map(move |item| item.observe(&mut tracker, None));
        let changes = match is_listed {
            None => changes.boxed(),
            Some(is_listed) => {
                let synced = stream::once(is_listed.map(|()| Ok(Changes::synced())));
                stream::select(changes, synced).boxed()
            }
        };
        self.parts.watches.push(Watch {
            kind,
            changes,
            cache,
            has_events: true,
        });
    }
}

impl<K: Resource, Q> Controller<K, Q>
where
    K::DynamicType: Eq + Hash,
{
    pub(crate) fn name(&self) -> Option<&str> {
        self.parts.name.as_deref()
    }

    /// Gives the controller what all controllers of a manager have in common.
    pub(crate) fn managed(mut self, leader: Option<&Leader>, health: Health) -> Self {
        self.parts.leader = self.parts.leader.or_else(|| leader.cloned());
        self.parts.health = health;
        self.parts.is_managed = true;
        self
    }
}

impl<K: Resource> Parts<K>
where
    K::DynamicType: Eq + Hash,
{
    fn builder(&self) -> KeysBuilder<K> {
        let (base, max) = self.backoff;
        let builder = WorkQueue::builder().levels::<2>().backoff(base, max);
        let builder = match self.retry_rate {
            Some((per_second, burst)) => builder.retry_rate(per_second, burst),
            None => builder.no_retry_rate(),
        };
        metrics::attach(builder, self.name.as_deref())
    }
}

/// Waits until a store has been filled. A store whose writer is gone never is.
fn store_of<C>(store: Store<C>) -> BoxFuture<'static, ()>
where
    C: Resource<DynamicType: Eq + Hash + Clone + Send + Sync> + Clone + Send + Sync + 'static,
{
    let ready = async move {
        let waiter = StoreWaiter::new();
        loop {
            let filled = pin!(store.wait_until_ready());
            match timeout(LOOK_AGAIN, waiter.poll(filled)).await {
                Ok(Ok(())) => return,
                Ok(Err(_)) => std::future::pending().await,
                Err(_) => {}
            }
        }
    };
    ready.boxed()
}

/// Returns the name of a kind, as `deployments.apps`.
pub(crate) fn kind_of<T: Resource>(dyntype: &T::DynamicType) -> Arc<str> {
    named_kind(&T::plural(dyntype), &T::group(dyntype))
}

pub(crate) fn named_kind(plural: &str, group: &str) -> Arc<str> {
    if group.is_empty() {
        plural.into()
    } else {
        format!("{plural}.{group}").into()
    }
}

impl<K: Resource, Q> fmt::Debug for Controller<K, Q>
where
    K::DynamicType: Eq + Hash,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self
            .parts
            .watches
            .iter()
            .map(|watch| &*watch.kind)
            .collect();
        f.debug_struct("Controller")
            .field("name", &self.parts.name)
            .field("kinds", &kinds)
            .field("leader", &self.parts.leader)
            .finish_non_exhaustive()
    }
}

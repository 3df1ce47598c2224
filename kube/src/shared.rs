//! One watch for several controllers.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, reflector};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::events::watch;
use crate::wakers::Wakers;

/// A watch and a store of one kind, for all controllers of a process that need it: the API server
/// is asked once, and each object is in memory once. Clones share the watch.
///
/// There is no task: the watch goes on while one of the subscriptions is polled, as controllers do.
/// Each subscription sees every change, also deletions, and each list. One that begins late begins
/// with a list of what the store has.
///
/// # Examples
///
/// Two controllers that depend on one kind:
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
/// use k8s_openapi::api::core::v1::Secret;
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
/// use requeue_kube::{Controller, SharedWatch};
///
/// fn controllers(client: &Client) -> (Controller<Deployment>, Controller<StatefulSet>) {
///     let all = watcher::Config::default;
///     let secrets = SharedWatch::new(Api::<Secret>::all(client.clone()), all());
///     let webs = Controller::new(Api::<Deployment>::all(client.clone()), all())
///         .owns_stream(secrets.subscribe());
///     let stores = Controller::new(Api::<StatefulSet>::all(client.clone()), all())
///         .owns_stream(secrets.subscribe());
///     (webs, stores)
/// }
/// ```
pub struct SharedWatch<C>
where
    C: Resource<DynamicType: Eq + Hash> + 'static,
{
    hub: Arc<Hub<C>>,
    store: Store<C>,
}

/// A stream of what happens to the objects of a [`SharedWatch`], for
/// [`Controller::for_stream`](crate::Controller::for_stream),
/// [`owns_stream`](crate::Controller::owns_stream) and
/// [`watches_stream`](crate::Controller::watches_stream).
///
/// It keeps up to 4,096 changes for a reader that is not polled. A reader that missed more begins
/// again with a list.
pub struct Subscription<C>
where
    C: Resource<DynamicType: Eq + Hash> + 'static,
{
    hub: Arc<Hub<C>>,
    store: Store<C>,
    id: u64,
}

/// An item of a [`Subscription`], for a [`Controller`](crate::Controller).
pub struct SharedEvent<C>(pub(crate) Change<C>);

pub(crate) enum Change<C> {
    Listed(Arc<[Arc<C>]>),
    Applied(Arc<C>),
    Deleted(Arc<C>),
}

struct Hub<C> {
    state: Mutex<State<C>>,
    /// The tasks of all readers.
    wakers: Arc<Wakers>,
}

struct State<C> {
    events: BoxStream<'static, watcher::Result<Event<C>>>,
    readers: Vec<Reader<C>>,
    next_id: u64,
    /// Whether the store has everything: the first list is complete, and no other is under way.
    is_synced: bool,
    has_ended: bool,
}

struct Reader<C> {
    id: u64,
    /// Whether it needs no list.
    has_listed: bool,
    news: VecDeque<News<C>>,
}

type News<C> = Result<SharedEvent<C>, Arc<watcher::Error>>;

/// How many changes a reader keeps that is not polled.
const KEPT: usize = 4096;

impl<C> SharedWatch<C>
where
    C: Resource<DynamicType: Eq + Hash + Clone + Send> + Clone + Debug + Send + Sync + 'static,
{
    /// Creates a watch of the objects that `api` lists with this configuration.
    pub fn new(api: Api<C>, config: watcher::Config) -> Self
    where
        C: DeserializeOwned,
        C::DynamicType: Default,
    {
        Self::of_stream(watch(api, config), C::DynamicType::default())
    }

    /// Creates a watch of a stream of events, such as [`watch`](crate::watch) returns, for instance
    /// one without managed fields, or of a kind that is known only at run time.
    pub fn of_stream(
        events: impl Stream<Item = watcher::Result<Event<C>>> + Send + 'static,
        dyntype: C::DynamicType,
    ) -> Self {
        let writer = Writer::<C>::new(dyntype);
        let store = writer.as_reader();
        let state = State {
            events: reflector(writer, events).boxed(),
            readers: Vec::new(),
            next_id: 0,
            is_synced: false,
            has_ended: false,
        };
        let hub = Arc::new(Hub {
            state: Mutex::new(state),
            wakers: Arc::default(),
        });
        Self { hub, store }
    }
}

impl<C: Resource<DynamicType: Eq + Hash + Clone>> SharedWatch<C> {
    /// Returns the objects as they were seen last. Empty until a subscription is polled. With
    /// [`Controller::fills`](crate::Controller::fills) objects wait until this store shows their own
    /// writes.
    pub fn store(&self) -> Store<C> {
        self.store.clone()
    }

    /// Returns a stream for one controller.
    pub fn subscribe(&self) -> Subscription<C> {
        let mut state = self.hub.lock();
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        state.readers.push(Reader {
            id,
            has_listed: false,
            news: VecDeque::new(),
        });
        drop(state);
        Subscription {
            hub: Arc::clone(&self.hub),
            store: self.store(),
            id,
        }
    }
}

impl<C> Hub<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clone> State<C> {
    /// Gives news to every reader. A list is in the store, from where each reader takes it.
    fn tell(&mut self, event: watcher::Result<Event<C>>) {
        let news = match event {
            Ok(Event::Init | Event::InitApply(_)) => {
                self.is_synced = false;
                return;
            }
            Ok(Event::InitDone) => {
                self.is_synced = true;
                for reader in &mut self.readers {
                    reader.news.clear();
                    reader.has_listed = false;
                }
                return;
            }
            Ok(Event::Apply(object)) => Ok(SharedEvent(Change::Applied(Arc::new(object)))),
            Ok(Event::Delete(object)) => Ok(SharedEvent(Change::Deleted(Arc::new(object)))),
            Err(error) => Err(Arc::new(error)),
        };
        for reader in &mut self.readers {
            // A change before its list is in that list.
            if !reader.has_listed && news.is_ok() {
                continue;
            }
            if reader.news.len() >= KEPT {
                reader.news.clear();
                reader.has_listed = false;
            } else {
                reader.news.push_back(news.clone());
            }
        }
    }
}

impl<C> Stream for Subscription<C>
where
    C: Resource<DynamicType: Eq + Hash + Clone> + Clone,
{
    type Item = Result<SharedEvent<C>, Arc<watcher::Error>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.hub.wakers.register(self.id, context.waker());
        let all = Waker::from(Arc::clone(&self.hub.wakers));
        let mut state = self.hub.lock();
        let mut has_news = false;
        // Bounded by what the watch has at hand: kube-runtime's yields at each response.
        let polled = loop {
            let (is_synced, has_ended) = (state.is_synced, state.has_ended);
            let Some(reader) = state.readers.iter_mut().find(|reader| reader.id == self.id) else {
                break Poll::Ready(None);
            };
            if let Some(news) = reader.news.pop_front() {
                break Poll::Ready(Some(news));
            }
            if !reader.has_listed && is_synced {
                reader.has_listed = true;
                break Poll::Ready(Some(Ok(SharedEvent(Change::Listed(self.list())))));
            }
            if has_ended {
                break Poll::Ready(None);
            }
            match state.events.poll_next_unpin(&mut Context::from_waker(&all)) {
                Poll::Ready(Some(event)) => state.tell(event),
                Poll::Ready(None) => state.has_ended = true,
                Poll::Pending => break Poll::Pending,
            }
            has_news = true;
        };
        drop(state);
        if has_news {
            self.hub.wakers.wake_others(self.id);
        }
        polled
    }
}

impl<C: Resource<DynamicType: Eq + Hash + Clone> + Clone> Subscription<C> {
    /// By name: a map has another order in each process.
    fn list(&self) -> Arc<[Arc<C>]> {
        let mut objects = self.store.state();
        let name = |object: &Arc<C>| (object.meta().namespace.clone(), object.meta().name.clone());
        objects.sort_by_cached_key(name);
        objects.into()
    }
}

impl<C: Resource<DynamicType: Eq + Hash>> Drop for Subscription<C> {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        let gone = state.readers.iter().position(|reader| reader.id == self.id);
        let gone = gone.map(|index| state.readers.swap_remove(index));
        drop(state);
        drop(gone);
        drop(self.hub.wakers.remove(self.id));
    }
}

impl<C: Resource<DynamicType: Eq + Hash>> Clone for SharedWatch<C> {
    fn clone(&self) -> Self {
        Self {
            hub: Arc::clone(&self.hub),
            store: self.store.clone(),
        }
    }
}

impl<C> Clone for SharedEvent<C> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Change::Listed(objects) => Change::Listed(Arc::clone(objects)),
            Change::Applied(object) => Change::Applied(Arc::clone(object)),
            Change::Deleted(object) => Change::Deleted(Arc::clone(object)),
        })
    }
}

impl<C: Resource<DynamicType: Eq + Hash>> Debug for SharedWatch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWatch").finish_non_exhaustive()
    }
}

impl<C: Resource<DynamicType: Eq + Hash>> Debug for Subscription<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<C> Debug for SharedEvent<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedEvent")
    }
}

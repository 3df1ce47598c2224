//! Streams of what happens to the objects of a kind: the watch itself, what may be dropped from it,
//! and what a controller accepts as one.

use std::fmt::{self, Debug};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt, stream};
use kube::runtime::utils::EventModify;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{Predicate, WatchStreamExt};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::shared::{Change, SharedEvent};
use crate::tracker::{Changes, Tracker};

/// Watches a kind, with kube-runtime's backoff: the watch of
/// [`Controller::new`](crate::Controller::new), for streams that you change before a controller
/// has them.
///
/// Unlike `watcher(api, config).default_backoff()`, the pauses between lists that fail grow:
/// kube-runtime's backoff takes the beginning of a list, which comes before its request, for a
/// success. `Event::Init` comes with the first object of a list.
///
/// # Examples
///
/// A controller that keeps no managed fields in memory, which are half of many objects, and that
/// does not run for changes of a status:
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube::runtime::{WatchStreamExt, predicates, reflector, watcher};
/// use kube::{Api, Client};
/// use requeue_kube::{Controller, EventsExt, watch};
///
/// fn controller(client: Client) -> Controller<Deployment> {
///     let (store, writer) = reflector::store();
///     let events = watch(Api::<Deployment>::all(client), watcher::Config::default())
///         .drop_managed_fields()
///         .reflect(writer)
///         .only_changed(predicates::generation);
///     Controller::for_stream(events, store)
/// }
/// ```
pub fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut begins = false;
    let events = watcher(api, config).flat_map(move |event| {
        let has_begun = std::mem::replace(&mut begins, matches!(event, Ok(Event::Init)));
        let event = (!begins).then_some(event);
        let brings = has_begun && matches!(event, Some(Ok(_)));
        let begin = brings.then_some(Ok(Event::Init));
        stream::iter(begin.into_iter().chain(event))
    });
    events.default_backoff()
}

/// An item of a stream that a controller accepts, about objects of the kind `C`.
///
/// | item | made by |
/// |---|---|
/// | `Result<Event<C>, watcher::Error>` | [`watch`], kube-runtime's `watcher`, `reflect` |
/// | `Result<C, watcher::Error>` | `touched_objects`, `applied_objects`, `predicate_filter` |
/// | `Arc<C>` | `subscribe` of kube-runtime's shared stores |
/// | those of a [`Subscription`](crate::Subscription) | [`SharedWatch::subscribe`](crate::SharedWatch::subscribe) |
/// | those of [`EventsExt::only_changed`] | any of these |
///
/// Prefer streams of events, or subscriptions. A stream of objects does not say when the first list
/// is complete, so the workers do not wait for it. It does not say what is gone either: of an
/// object that changed its owner, or disappeared while the watch was interrupted, the former owner
/// does not run.
pub trait WatchItem<C>: Observe<C> {}

impl<C, I: Observe<C>> WatchItem<C> for I {}

/// Computes what has to differ for a change to count.
pub(crate) type Judge<'j, C> = &'j dyn Fn(&C) -> Option<u64>;

/// How an item reaches the tracker of its stream.
pub trait Observe<C> {
    /// Whether the stream says when a list is complete.
    const LISTS: bool;

    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>>;
}

#[expect(private_interfaces, reason = "only this crate implements the trait")]
impl<C: Resource> Observe<C> for watcher::Result<Event<C>> {
    const LISTS: bool = true;

    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>> {
        Ok(match self.map_err(Arc::new)? {
            Event::Init => tracker.begin_list(),
            Event::InitApply(object) => tracker.listed(&object, judge),
            Event::InitDone => tracker.end_list(),
            Event::Apply(object) => tracker.applied(&object, judge),
            Event::Delete(object) => tracker.deleted(&object),
        })
    }
}

#[expect(private_interfaces, reason = "only this crate implements the trait")]
impl<C: Resource> Observe<C> for watcher::Result<C> {
    const LISTS: bool = false;

    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>> {
        let object = self.map_err(Arc::new)?;
        Ok(tracker.touched(&object, judge))
    }
}

#[expect(private_interfaces, reason = "only this crate implements the trait")]
impl<C: Resource> Observe<C> for Arc<C> {
    const LISTS: bool = false;

    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>> {
        Ok(tracker.touched(&self, judge))
    }
}

#[expect(private_interfaces, reason = "only this crate implements the trait")]
impl<C: Resource> Observe<C> for Result<SharedEvent<C>, Arc<watcher::Error>> {
    const LISTS: bool = true;

    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>> {
        Ok(match self?.0 {
            Change::Listed(objects) => {
                let _ = tracker.begin_list();
                for object in objects.iter() {
                    let _ = tracker.listed(object, judge);
                }
                tracker.end_list()
            }
            Change::Applied(object) => tracker.applied(&object, judge),
            Change::Deleted(object) => tracker.deleted(&object),
        })
    }
}

/// What can be dropped from a stream of events.
pub trait EventsExt: Stream + Sized {
    /// Removes the managed fields of each object, which a controller seldom reads. Call it before
    /// `reflect`, so that the store does not keep them.
    fn drop_managed_fields<C>(self) -> EventModify<Self, fn(&mut C)>
    where
        Self: Stream<Item = watcher::Result<Event<C>>>,
        C: Resource,
    {
        self.modify(|object| object.managed_fields_mut().clear())
    }

    /// Drops changes that `predicate` does not see: an object counts as changed only if the hash
    /// has another value. Deletions always count, and so does an object for which the predicate
    /// returns `None`. Call it after `reflect`, because the store needs each change.
    ///
    /// kube-runtime's `predicate_filter` drops deletions, and needs a stream of objects.
    /// Its predicates work here: `generation`, `labels`, `annotations`, `finalizers`, and closures
    /// of yours. A predicate that is called twice for an object has to return the same value.
    fn only_changed<C, P>(self, predicate: P) -> OnlyChanged<Self, P>
    where
        Self::Item: WatchItem<C>,
        P: Predicate<C> + Send + Sync + 'static,
    {
        OnlyChanged {
            stream: Box::pin(self),
            predicate: Arc::new(predicate),
        }
    }
}

impl<S: Stream> EventsExt for S {}

/// The stream of [`EventsExt::only_changed`].
pub struct OnlyChanged<S, P> {
    stream: Pin<Box<S>>,
    predicate: Arc<P>,
}

impl<S: Stream, P> Stream for OnlyChanged<S, P> {
    type Item = Judged<S::Item, P>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.stream.as_mut().poll_next(context));
        let predicate = Arc::clone(&self.predicate);
        Poll::Ready(item.map(|item| Judged { item, predicate }))
    }
}

impl<S, P> fmt::Debug for OnlyChanged<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnlyChanged").finish_non_exhaustive()
    }
}

/// An item of [`EventsExt::only_changed`].
pub struct Judged<I, P> {
    item: I,
    predicate: Arc<P>,
}

impl<I, P> fmt::Debug for Judged<I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judged").finish_non_exhaustive()
    }
}

#[expect(private_interfaces, reason = "only this crate implements the trait")]
impl<C: Resource, I: WatchItem<C>, P: Predicate<C>> Observe<C> for Judged<I, P> {
    const LISTS: bool = I::LISTS;

    fn observe<K: Resource<DynamicType: Clone + PartialEq>>(
        self,
        tracker: &mut Tracker<C, K>,
        judge: Option<Judge<'_, C>>,
    ) -> Result<Changes<K>, Arc<watcher::Error>> {
        let both = |object: &C| {
            let outer = judge.map(|judge| judge(object));
            let inner = self.predicate.hash_property(object)?;
            let Some(outer) = outer else {
                return Some(inner);
            };
            let mut hasher = DefaultHasher::new();
            (inner, outer?).hash(&mut hasher);
            Some(hasher.finish())
        };
        self.item.observe(tracker, Some(&both))
    }
}

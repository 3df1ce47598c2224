//! Streams of others, as kube-runtime's `trigger_with` makes them.

use std::fmt::Display;
use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use kube::Resource;
use kube::runtime::controller::{ReconcileReason, ReconcileRequest};
use kube::runtime::reflector::ObjectRef;
use requeue::limiter::RateLimiter;
use requeue::priority::Priorities;
use requeue::storage::Storage;
use requeue::tokio::WorkQueue;

use crate::keys::{CHANGED, LISTED, at, bare};

/// Adds the requests of a stream of kube-runtime to a queue of any kind, until the stream ends or
/// the queue is shut down. A [`Controller`](crate::Controller) needs no feed.
///
/// Requests for many objects at once have the level [`LISTED`], all others [`CHANGED`], or the
/// highest level if the queue has fewer. An error of the stream is logged, and
/// the stream goes on: give a watch its backoff with `default_backoff()`. A stream of *touched
/// objects* says nothing about the end of a list, so wait for the store before workers begin.
/// While a queue with a limit has no room, the stream waits.
///
/// # Cancel safety
///
/// Dropping the future loses no request that it has taken from the stream, unless that one waits
/// for room.
///
/// # Examples
///
/// ```no_run
/// use futures::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::runtime::controller::trigger_self;
/// use kube::runtime::reflector::{self, ObjectRef};
/// use kube::runtime::{WatchStreamExt, predicates, watcher};
/// use kube::{Api, Client};
/// use requeue::tokio::WorkQueue;
/// use requeue_kube::{Keys, feed};
///
/// # async fn watch(client: Client) {
/// let (store, writer) = reflector::store();
/// let maps: Api<ConfigMap> = Api::all(client);
/// let changes = watcher(maps, watcher::Config::default())
///     .default_backoff()
///     .reflect(writer)
///     .touched_objects()
///     .predicate_filter(predicates::generation, Default::default());
///
/// let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
/// tokio::spawn({
///     let queue = queue.clone();
///     async move { feed(trigger_self(changes, ()), &queue).await }
/// });
/// store.wait_until_ready().await.expect("the watch was spawned");
/// let run = queue.run(4, move |key: ObjectRef<ConfigMap>| {
///     let map = store.get(&key);
///     async move {
///         println!("{key} is {map:?}");
///     }
/// });
/// run.await;
/// # }
/// ```
pub async fn feed<K, R, E, P, L, S>(
    requests: impl Stream<Item = Result<R, E>>,
    queue: &WorkQueue<ObjectRef<K>, P, L, S>,
) where
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    K: Resource,
    K::DynamicType: Eq + Hash,
    R: Into<ReconcileRequest<K>>,
    E: Display,
{
    let mut requests = pin!(requests);
    let mut closed = pin!(closed(queue));
    // The queue is asked first: a stream that is always ready cannot hide its end.
    while let Either::Right((Some(request), _)) = select(&mut closed, requests.next()).await {
        let request = match request {
            Ok(request) => request.into(),
            Err(error) => {
                tracing::warn!(target: "requeue", %error, "a stream of requests failed");
                continue;
            }
        };
        let level = match request.reason {
            ReconcileReason::BulkReconcile => LISTED,
            _ => CHANGED,
        };
        // It waits for room, so what refuses the key is a queue that is shut down.
        let added = queue
            .add_wait_with(bare(request.obj_ref), at::<P>(level), Duration::MAX)
            .await;
        if added.is_err() {
            return;
        }
    }
}

/// Waits until the queue is shut down, which wakes every call that waits.
async fn closed<K, P, L, S>(queue: &WorkQueue<ObjectRef<K>, P, L, S>)
where
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    K: Resource,
    K::DynamicType: Eq + Hash,
{
    let mut drained = pin!(queue.wait_drained());
    poll_fn(|context| {
        // It waits from here on, so that no shutdown after the look is missed.
        let ended = drained.as_mut().poll(context);
        if queue.is_shutting_down() {
            Poll::Ready(())
        } else {
            ended
        }
    })
    .await;
}

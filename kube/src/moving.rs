//! What a reconciler that was written for kube-rs's `Controller` also needs.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::runtime::controller;
use kube::runtime::finalizer::{self as finalizers, Event};
use kube::{Api, Resource};
use requeue::tokio::{Action, IntoAction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::tracker::Name;
use crate::writes::{Path, Writes, Written};

/// The constructors of kube-runtime's `Action`, for requeue's.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_kube::{Action, ActionExt};
///
/// let hour = Duration::from_secs(3600);
/// assert_eq!(Action::requeue(hour), Action::RequeueAfter(hour));
/// assert_eq!(Action::await_change(), Action::Success);
/// ```
pub trait ActionExt: Sized {
    /// The object is as wanted, and runs again after this long.
    fn requeue(after: Duration) -> Self;

    /// The object is as wanted, and runs again when something changes.
    fn await_change() -> Self;
}

impl ActionExt for Action {
    fn requeue(after: Duration) -> Self {
        Self::RequeueAfter(after)
    }

    fn await_change() -> Self {
        Self::Success
    }
}

/// Makes a reconciler of the three arguments of kube-rs's `Controller::run`.
///
/// A reconciler of this kind has no [`Context`], so it cannot ask
/// [`maybe_stale`](Context::maybe_stale). Give it a client of
/// [`record_writes`](crate::record_writes), and an object waits for its own writes.
///
/// With an error policy the policy decides when an object that failed runs again, and the failure
/// is logged here, but not counted. Without one (`Controller::run` with the reconciler alone) a
/// failure counts, and the object runs again after its backoff, which is the reason to move. A
/// reconciler that has the [`Context`] and returns [`Action::Snooze`] for an error sets its own
/// pauses as a policy does.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
/// use requeue_kube::{Action, ActionExt, CancellationToken, Controller, with_error_policy};
///
/// struct Data {
///     client: Client,
/// }
///
/// async fn reconcile(map: Arc<ConfigMap>, data: Arc<Data>) -> Result<Action, kube::Error> {
///     let maps: Api<ConfigMap> = Api::default_namespaced(data.client.clone());
///     println!("{} of {}", map.metadata.name.as_deref().unwrap_or(""), maps.resource_url());
///     Ok(Action::await_change())
/// }
///
/// fn error_policy(_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Data>) -> Action {
///     Action::requeue(Duration::from_secs(5))
/// }
///
/// # async fn run(client: Client) -> Result<(), requeue_kube::Error> {
/// let data = Arc::new(Data { client: client.clone() });
/// Controller::new(Api::<ConfigMap>::all(client), watcher::Config::default())
///     .run(4, CancellationToken::new(), with_error_policy(reconcile, error_policy, data))
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn with_error_policy<K, C, E, R>(
    reconcile: impl Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
    error_policy: impl Fn(Arc<K>, &E, Arc<C>) -> Action + Send + Sync + 'static,
    data: Arc<C>,
) -> impl Fn(Arc<K>, Context<K>) -> futures::future::BoxFuture<'static, Result<Action, E>>
+ Send
+ Sync
+ 'static
where
    K: Resource + Send + Sync + 'static,
    C: Send + Sync + 'static,
    E: Debug + Send + 'static,
    R: Future<Output: IntoAction<Error = E>> + Send + 'static,
{
    let error_policy = Arc::new(error_policy);
    move |object, _| {
        let run = reconcile(Arc::clone(&object), Arc::clone(&data));
        let (data, error_policy) = (Arc::clone(&data), Arc::clone(&error_policy));
        Box::pin(async move {
            run.await.into_action().or_else(|error| {
                tracing::warn!(target: "requeue", ?error, "reconcile failed");
                let (action, priority) = error_policy(object, &error, data).into_parts();
                let action = match action {
                    // A failure must not forget failures.
                    Action::RequeueAfter(after) => Action::Snooze(after),
                    Action::Success => Action::Release,
                    action => action,
                };
                Ok(priority.map_or(action, |priority| action.with_priority(priority)))
            })
        })
    }
}

/// Calls kube-runtime's [`finalizer`](finalizers::finalizer), for a reconciler that returns
/// requeue's [`Action`]. The [`Event`] and the [`Error`](finalizers::Error) are kube-runtime's. In a
/// run of a [`Controller`](crate::Controller) the key waits until the finalizer that was added or
/// removed has come back, as after [`Context::unsure`](crate::Context::unsure), also if the client of
/// `api` records nothing.
///
/// # Errors
///
/// Those of kube-runtime's function: the reconciler's own error, or that the finalizer could not be
/// added or removed.
///
/// # Cancel safety
///
/// That of `reconcile`: the finalizer is removed only after the cleanup has succeeded.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube::runtime::finalizer::{Error, Event};
/// use requeue_kube::{Action, finalizer};
///
/// async fn reconcile(
///     maps: Api<ConfigMap>,
///     map: Arc<ConfigMap>,
/// ) -> Result<Action, Error<kube::Error>> {
///     finalizer(&maps, "example.dev/cleanup", map, async |event| match event {
///         Event::Apply(_) => Ok(Action::Success),
///         Event::Cleanup(_) => Ok(Action::Success),
///     })
///     .await
/// }
/// ```
pub async fn finalizer<K, E, R>(
    api: &Api<K>,
    name: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> R,
) -> Result<Action, finalizers::Error<E>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    E: StdError + 'static,
    R: Future<Output: IntoAction<Error = E>>,
{
    let meta = object.meta();
    let has_it = meta
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == name);
    // It is added before the work, and removed after the cleanup.
    let patches = has_it == meta.deletion_timestamp.is_some();
    let written = patches.then(|| Name::of(&*object));
    // kube-runtime's action cannot be looked into, so this one passes beside it.
    let action = Mutex::new(Action::Success);
    let returned = &action;
    let run = finalizers::finalizer(api, name, object, |event| {
        let run = reconcile(event);
        Box::pin(async move {
            *returned.lock().unwrap_or_else(PoisonError::into_inner) = run.await.into_action()?;
            Ok(controller::Action::await_change())
        })
    });
    let ended = run.await;
    let path = Path::parse(api.resource_url());
    if let (Some(name), Some(path), Some(writes)) = (written, path, Writes::current()) {
        // kube-runtime keeps the object for itself. Without a store there is nothing to wait for.
        let _ = writes.record(path.kind, name, Written::Unknown);
    }
    ended?;
    Ok(action.into_inner().unwrap_or_else(PoisonError::into_inner))
}

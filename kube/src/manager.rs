//! Several controllers in one process.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::panic::resume_unwind;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use kube::Resource;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use requeue::tokio::{CancellationToken, Leftover};
use tokio::task::JoinSet;

use crate::controller::Controller;
use crate::error::Error;
use crate::health::Health;
use crate::lease::Leader;

/// Several controllers that are one program: one leader, one health, one drain.
///
/// - They lead together: one lease is for all of them, and is released when the last one has
///   drained.
/// - [`health`](Self::health) answers for all of them. Its lines begin with the
///   [name](Controller::named) of the controller.
/// - When one of them fails, the others drain, and [`run`](Self::run) returns its error.
/// - Each has its metrics under its own name.
///
/// Each controller has a task of its own. To watch a kind once for several of them, use a
/// [`SharedWatch`](crate::SharedWatch).
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
/// use requeue_kube::{
///     Action, Context, Controller, Leader, Manager, SharedWatch, Workers, shutdown_on_signal,
/// };
///
/// async fn deploy(_: Arc<Deployment>, _: Context<Deployment>) -> kube::Result<Action> {
///     Ok(Action::Success)
/// }
///
/// async fn configure(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> kube::Result<Action> {
///     Ok(Action::Success)
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let stop = shutdown_on_signal()?;
///     let client = Client::try_default().await?;
///     let all = watcher::Config::default;
///     let secrets = SharedWatch::new(Api::<Secret>::all(client.clone()), all());
///     let deployments = Controller::new(Api::<Deployment>::all(client.clone()), all())
///         .owns_stream(secrets.subscribe())
///         .named("deployment");
///     let maps = Controller::new(Api::<ConfigMap>::all(client.clone()), all())
///         .owns_stream(secrets.subscribe())
///         .named("configmap");
///     let left = Manager::new()
///         .leader(Leader::lease(client, "default", "web"))
///         .add(deployments, |controller, stop| controller.run(4, stop, deploy))
///         .add(maps, |controller, stop| controller.run(Workers::unbounded(), stop, configure))
///         .run(stop)
///         .await?;
///     println!("not done: {}", left.len());
///     Ok(())
/// }
/// ```
#[derive(Default)]
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    leader: Option<Leader>,
    health: Health,
    names: Vec<String>,
    controllers: Vec<Box<Start>>,
}

/// Starts a controller, which stops when the token is cancelled.
type Start = dyn FnOnce(Option<&Leader>, CancellationToken) -> BoxFuture<'static, Ended> + Send;

type Ended = Result<Vec<Leftover<ObjectRef<DynamicObject>>>, Error>;

impl Manager {
    /// Creates a manager without controllers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the controllers work only while this process is the leader. A controller that has a
    /// [leader](Controller::leader) of its own keeps it.
    pub fn leader(mut self, leader: Leader) -> Self {
        self.leader = Some(leader);
        self
    }

    /// Adds a controller. `run` calls its [`run`](Controller::run) or
    /// [`run_keys`](Controller::run_keys) with its workers, the token that stops all controllers,
    /// and its reconciler.
    pub fn add<K, Q>(
        mut self,
        controller: Controller<K, Q>,
        run: impl FnOnce(
            Controller<K, Q>,
            CancellationToken,
        ) -> BoxFuture<'static, Result<Vec<Leftover<ObjectRef<K>>>, Error>>
        + Send
        + 'static,
    ) -> Self
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Eq + Hash + Send + Sync,
        Q: 'static,
    {
        self.names.extend(controller.name().map(str::to_owned));
        let health = self.health.clone();
        self.controllers.push(Box::new(move |leader, stop| {
            let controller = controller.managed(leader, health);
            run(controller, stop).map_ok(erased).boxed()
        }));
        self
    }

    /// Returns a handle to the health of all controllers. Take it before [`run`](Self::run), which
    /// consumes the manager.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs the controllers until `stop` is cancelled, and drains them at the same time. Returns
    /// the objects that are left, of whatever kind. Returns also when all controllers have ended by
    /// themselves.
    ///
    /// # Errors
    ///
    /// The first error of a controller: the others have drained then. [`Error::SameName`] before
    /// any begins.
    ///
    /// # Cancel safety
    ///
    /// As [`Controller::run`].
    ///
    /// # Panics
    ///
    /// As [`Controller::run`].
    pub async fn run(
        self,
        stop: CancellationToken,
    ) -> Result<Vec<Leftover<ObjectRef<DynamicObject>>>, Error> {
        let mut names = HashSet::new();
        for name in self.names {
            if let Some(name) = names.replace(name) {
                return Err(Error::SameName(name));
            }
        }
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        for start in self.controllers {
            tasks.spawn(start(self.leader.as_ref(), stop.clone()));
        }
        let (mut left, mut failed) = (Vec::new(), None);
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Ok(Ok(of_one)) => left.extend(of_one),
                Ok(Err(error)) => {
                    tracing::warn!(target: "requeue", %error, "a controller failed");
                    stop.cancel();
                    failed.get_or_insert(error);
                }
                Err(error) => {
                    // Only the end of the runtime aborts a task.
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                }
            }
        }
        failed.map_or(Ok(left), Err)
    }
}

fn erased<K: Resource>(
    left: Vec<Leftover<ObjectRef<K>>>,
) -> Vec<Leftover<ObjectRef<DynamicObject>>> {
    let erased = left.into_iter().map(|of_one| {
        let mut left = Leftover::new(of_one.key.erase());
        left.left = of_one.left;
        left.failures = of_one.failures;
        left.priority = of_one.priority;
        left
    });
    erased.collect()
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("controllers", &self.controllers.len())
            .field("leader", &self.leader)
            .finish_non_exhaustive()
    }
}

//! Controllers whose runs are noted: what tests begin and end with.

use std::future::Ready;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::{Action, CancellationToken, Context, Controller, Error, Leftover};
use tokio::task::JoinHandle;

use crate::api::{Cluster, Link};
use crate::{map, maps, name_of, wanted};

/// What ran, in order.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<Vec<String>>>);

impl Runs {
    pub(crate) fn push(&self, run: impl Into<String>) {
        self.0.lock().unwrap().push(run.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub(crate) type Reconciled = Result<Action, kube::Error>;

/// A reconciler that notes `name=want`.
pub(crate) fn note(
    runs: &Runs,
) -> impl Fn(Arc<ConfigMap>, Context<ConfigMap>) -> Ready<Reconciled> + Send + Sync + 'static {
    let runs = runs.clone();
    move |map, _| {
        runs.push(format!("{}={}", name_of(&map), wanted(&map)));
        std::future::ready(Ok(Action::Success))
    }
}

/// A controller whose one worker notes what it runs.
pub(crate) struct Noting {
    pub(crate) runs: Runs,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<Result<Vec<Leftover<ObjectRef<ConfigMap>>>, Error>>,
}

impl Noting {
    pub(crate) fn start(controller: Controller<ConfigMap>) -> Self {
        let (runs, stop) = (Runs::default(), CancellationToken::new());
        let running = tokio::spawn(controller.run(1, stop.clone(), note(&runs)));
        Self {
            runs,
            stop,
            running,
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        self.runs.take()
    }

    pub(crate) async fn stop(self) -> Vec<Leftover<ObjectRef<ConfigMap>>> {
        self.stop.cancel();
        self.running.await.unwrap().unwrap()
    }
}

/// A cluster with maps of these names, each of which wants `1`, and a client of it.
pub(crate) fn with_maps(names: &[&str]) -> (Cluster, Client) {
    let cluster = Cluster::new();
    for name in names {
        cluster.put("configmaps", map(name, "1"));
    }
    let client = cluster.client(&Link::default());
    (cluster, client)
}

/// A controller of maps, and of the secrets that they own.
pub(crate) fn maps_and_secrets(client: &Client) -> Controller<ConfigMap> {
    maps(client).owns(
        Api::<Secret>::all(client.clone()),
        watcher::Config::default(),
    )
}

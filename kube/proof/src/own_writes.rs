//! Runs that see the world as it was before their own last write, on a server whose watches are
//! late.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use requeue_kube::{Action, CancellationToken, Controller, Workers};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tower::service_fn;

use crate::server::Server;
use crate::world::{Problem, seconds, until};

const OBJECTS: usize = 10;
/// For how long objects change.
const SPAN: Duration = Duration::from_secs(45);
/// The longest lag of a watch.
const LAG: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Recording,
    NotRecording,
    KubeRuntime,
}

/// The same reconciler with own writes recorded, without, and on kube-runtime. Each controller's
/// watches are up to five seconds late.
///
/// # Errors
///
/// A run of the first is older than its own last write, none of the others is, or objects are not
/// as wanted in the end.
pub async fn own_writes(server: &Server) -> Result<String, Problem> {
    let mut told = Vec::new();
    let mut stale = Vec::new();
    for kind in [Kind::Recording, Kind::NotRecording, Kind::KubeRuntime] {
        let counted = simulate(server, kind).await?;
        told.push(format!("{kind:?} {} of {}", counted.stale, counted.runs));
        stale.push(counted.stale);
    }
    let told = format!("stale runs: {}", told.join(", "));
    if stale[0] > 0 || stale[1] == 0 || stale[2] == 0 {
        return Err(told.into());
    }
    Ok(told)
}

/// The runs of a controller.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    runs: usize,
    /// Those that began on an object older than its own last write.
    stale: usize,
    last: BTreeMap<String, u64>,
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A map is as wanted when its annotation says what its data wants.
    async fn reconcile(self, map: Arc<ConfigMap>, api: Api<ConfigMap>) -> kube::Result<Duration> {
        let name = map.name_any();
        {
            let mut counted = self.lock();
            counted.runs += 1;
            let last = counted.last.get(&name).copied().unwrap_or_default();
            counted.stale += usize::from(version_of(&map) < last);
        }
        let want = wanted(&map);
        if map.annotations().get("is") != want.as_ref() {
            let patch = json!({"metadata": {"annotations": {"is": want}}});
            let params = PatchParams::default();
            let patched = api.patch(&name, &params, &Patch::Merge(patch)).await?;
            self.lock().last.insert(name, version_of(&patched));
        }
        // It looks again soon, as many do.
        Ok(seconds(1))
    }
}

fn wanted(map: &ConfigMap) -> Option<String> {
    map.data.as_ref()?.get("want").cloned()
}

fn version_of(map: &ConfigMap) -> u64 {
    let version = map.resource_version();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

async fn simulate(server: &Server, kind: Kind) -> Result<Counted, Problem> {
    let client = server.client().await?;
    let namespace = format!("own-writes-{kind:?}").to_lowercase();
    let space = json!({"metadata": {"name": namespace}});
    let spaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
    spaces
        .create(&PostParams::default(), &serde_json::from_value(space)?)
        .await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let name = |object: usize| format!("object-{object}");
    for object in 0..OBJECTS {
        let map = json!({"metadata": {"name": name(object)}, "data": {"want": "0"}});
        maps.create(&PostParams::default(), &serde_json::from_value(map)?)
            .await?;
    }
    let (counts, stop) = (Counts::default(), CancellationToken::new());
    let (ask, asked) = mpsc::unbounded();
    let running = controller(
        kind,
        &late(client),
        &namespace,
        counts.clone(),
        asked,
        stop.clone(),
    );
    let running = tokio::spawn(running);

    let (began, mut random) = (Instant::now(), fastrand::Rng::with_seed(1));
    while began.elapsed() < SPAN {
        sleep(Duration::from_millis(random.u64(0..200))).await;
        if random.bool() {
            // Something else asks for a run of every object.
            ask.unbounded_send(())?;
            continue;
        }
        let want = json!({"data": {"want": random.u8(0..10).to_string()}});
        let object = name(random.usize(0..OBJECTS));
        let params = PatchParams::default();
        maps.patch(&object, &params, &Patch::Merge(want)).await?;
    }
    let as_wanted = until(seconds(60), seconds(1), || async {
        let all = maps.list(&Default::default()).await.ok()?;
        let is_right = |map: &ConfigMap| map.annotations().get("is") == wanted(map).as_ref();
        all.items.iter().all(is_right).then_some(())
    });
    as_wanted
        .await
        .ok_or(format!("{kind:?}: not all are as wanted"))?;
    stop.cancel();
    running.await?;
    Ok(std::mem::take(&mut counts.lock()))
}

fn controller(
    kind: Kind,
    client: &Client,
    namespace: &str,
    counts: Counts,
    asked: mpsc::UnboundedReceiver<()>,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let all = watcher::Config::default;
    if kind == Kind::KubeRuntime {
        use kube::runtime::controller::{Action, Controller};
        let reconcile = move |map, api: Arc<Api<ConfigMap>>| {
            let run = counts.clone().reconcile(map, (*api).clone());
            async { run.await.map(Action::requeue) }
        };
        let policy = |_, _: &kube::Error, _| Action::requeue(Duration::from_millis(20));
        let controller = Controller::new(maps.clone(), all()).reconcile_all_on(asked);
        let controller = controller.graceful_shutdown_on(stop.cancelled_owned());
        let runs = controller.run(reconcile, policy, Arc::new(maps));
        return Box::pin(runs.for_each(|_| async {}));
    }
    let controller = Controller::new(maps.clone(), all()).reconcile_all_on(asked);
    let namespace = namespace.to_owned();
    let run = controller.run(Workers::new(4), stop, move |map, run| {
        let api = match kind {
            Kind::Recording => Api::namespaced(run.client(), &namespace),
            _ => maps.clone(),
        };
        let run = counts.clone().reconcile(map, api);
        async { run.await.map(Action::RequeueAfter) }
    });
    Box::pin(async { drop(run.await) })
}

/// A client behind a proxy that forwards every request, and shows what watches bring a drawn time
/// later, in order.
fn late(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let proxy = service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            let watches = query.split('&').any(|word| word == "watch=true");
            let response = client.send(request).await?;
            Ok::<_, kube::Error>(response.map(|body| {
                let lag = if watches {
                    LAG.mul_f64(fastrand::f64())
                } else {
                    Duration::ZERO
                };
                StreamBody::new(delayed(body, lag))
            }))
        }
    });
    Client::new(proxy, namespace)
}

/// The frames of a body, each this much later than it came.
fn delayed(
    mut body: Body,
    lag: Duration,
) -> BoxStream<'static, io::Result<http_body::Frame<bytes::Bytes>>> {
    let (sender, receiver) = mpsc::unbounded();
    tokio::spawn(async move {
        while let Some(frame) = body.frame().await {
            if sender
                .unbounded_send((Instant::now() + lag, frame))
                .is_err()
            {
                return;
            }
        }
    });
    let frames = receiver.then(|(due, frame)| async move {
        sleep_until(due).await;
        frame.map_err(io::Error::other)
    });
    frames.boxed()
}

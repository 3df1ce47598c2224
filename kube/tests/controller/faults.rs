//! Input that is wrong: what the controller does with it, and what goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::Body;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::{Action, CancellationToken, Context, Controller, Failure, Workers};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use crate::api::{Cluster, Link};
use crate::{map, maps, name_of, seconds, wanted};

type Noted = Arc<Mutex<Vec<String>>>;

fn take(noted: &Noted) -> Vec<String> {
    std::mem::take(&mut noted.lock().unwrap())
}

/// Runs a controller that notes the key of each run, and what the object wants.
async fn noting(controller: Controller<ConfigMap>, stop: CancellationToken, noted: Noted) {
    let run = controller.run_keys(
        1,
        stop,
        move |map: Option<Arc<ConfigMap>>, run: Context<ConfigMap>| {
            let want = map.map(|map| wanted(&map));
            let namespace = run.key.namespace.as_deref().unwrap_or("-").to_owned();
            let line = format!("{namespace}/{} {want:?}", run.key.name);
            noted.lock().unwrap().push(line);
            async { Action::Success }
        },
    );
    run.await.unwrap();
}

/// A client that may list a kind, but not watch it, while `forbids` is set.
fn client_without_watch(
    cluster: &Cluster,
    resource: &'static str,
    forbids: &Arc<AtomicBool>,
) -> Client {
    let (inner, forbids) = (cluster.client(&Link::default()), Arc::clone(forbids));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, forbids) = (inner.clone(), Arc::clone(&forbids));
        async move {
            let uri = request.uri();
            let watches = uri.query().is_some_and(|query| query.contains("watch="));
            let is_it = uri.path().ends_with(&format!("/{resource}"));
            if watches && is_it && forbids.load(Ordering::Relaxed) {
                let message = format!("cannot watch resource \"{resource}\"");
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "code": 403, "reason": "Forbidden", "message": message,
                });
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(403).body(body).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

/// The workers begin, because the kind was listed, and go on with what is known. The health says
/// what is wrong; and when the right is granted, what was missed runs.
#[tokio::test(start_paused = true)]
async fn a_kind_that_may_be_listed_but_not_watched_is_named_and_the_rest_goes_on() {
    let (cluster, stop, noted) = (Cluster::new(), CancellationToken::new(), Noted::default());
    cluster.put("configmaps", map("a", "1"));
    let forbids = Arc::new(AtomicBool::new(true));
    let client = client_without_watch(&cluster, "secrets", &forbids);
    let secrets = Api::<Secret>::all(client.clone());
    let controller = maps(&client).watches(secrets, watcher::Config::default(), |_: &Secret| {
        Some(ObjectRef::<ConfigMap>::new("a").within("default"))
    });
    let health = controller.health();
    let running = tokio::spawn(noting(controller, stop.clone(), Arc::clone(&noted)));
    sleep(seconds(60)).await;
    assert_eq!(take(&noted), ["default/a Some(\"1\")"]);
    let ready = health.ready();
    assert!(
        ready.passes && ready.body.contains("secrets ok: "),
        "{}",
        ready.body
    );
    assert!(
        ready.body.contains("cannot watch resource \"secrets\""),
        "{}",
        ready.body
    );

    let secret = json!({"metadata": {"name": "s", "namespace": "default"}});
    cluster.put("secrets", secret);
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(1)).await;
    assert_eq!(
        take(&noted),
        ["default/a Some(\"2\")"],
        "the other kind is watched"
    );
    forbids.store(false, Ordering::Relaxed);
    sleep(seconds(120)).await;
    assert_eq!(take(&noted), ["default/a Some(\"2\")"], "what was missed");
    assert_eq!(
        health.ready().body,
        "[+]configmaps ok\n[+]secrets ok\nreadyz check passed\n"
    );
    stop.cancel();
    running.await.unwrap();
}

/// A namespaced object that is named without its namespace is none: nothing is in the store.
#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_is_not_another_ones_key() {
    let (cluster, stop, noted) = (Cluster::new(), CancellationToken::new(), Noted::default());
    cluster.put("configmaps", map("a", "1"));
    let client = cluster.client(&Link::default());
    // The owner of a part without a namespace has none either; a person has written this.
    let secrets = Api::<Secret>::all(client.clone());
    let controller = maps(&client).owns(secrets, watcher::Config::default());
    let bare = futures::stream::iter([ObjectRef::new("a"), ObjectRef::new("")]);
    let controller = controller.reconcile_on(bare);
    let running = tokio::spawn(noting(controller, stop.clone(), Arc::clone(&noted)));
    sleep(seconds(1)).await;
    let mut ran = take(&noted);
    ran.sort();
    assert_eq!(ran, ["-/ None", "-/a None", "default/a Some(\"1\")"]);

    cluster.put("secrets", part(&cluster, &[("ConfigMap", "v1", "a")]));
    sleep(seconds(1)).await;
    assert_eq!(take(&noted), ["-/a None"]);
    stop.cancel();
    running.await.unwrap();
}

/// A part with these owners: kind, version and name. Without a namespace.
fn part(cluster: &Cluster, owners: &[(&str, &str, &str)]) -> Value {
    let uid = cluster.get("configmaps", "a").unwrap()["metadata"]["uid"].clone();
    let owners: Vec<Value> = owners
        .iter()
        .map(|(kind, version, name)| {
            json!({"kind": kind, "apiVersion": version, "name": name, "uid": uid})
        })
        .collect();
    let meta = json!({"name": "part", "ownerReferences": owners});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
}

#[tokio::test(start_paused = true)]
async fn an_owner_reference_that_is_wrong_runs_nothing_and_spoils_no_other() {
    let (cluster, stop, noted) = (Cluster::new(), CancellationToken::new(), Noted::default());
    cluster.put("configmaps", map("a", "1"));
    let client = cluster.client(&Link::default());
    let secrets = Api::<Secret>::all(client.clone());
    let controller = maps(&client).owns(secrets, watcher::Config::default());
    let running = tokio::spawn(noting(controller, stop.clone(), Arc::clone(&noted)));
    sleep(seconds(1)).await;
    take(&noted);

    let owners = [
        ("", "", ""),
        ("ConfigMap", "a/b/c", "a"),
        ("configmap", "v1", "a"),
        ("Secret", "v1", "a"),
        ("ConfigMap", "/v1", "gone"),
        ("ConfigMap", "v1", "a"),
        ("ConfigMap", "v1", "a"),
    ];
    let mut wrong = part(&cluster, &owners);
    wrong["metadata"]["namespace"] = json!("default");
    cluster.put("secrets", wrong);
    sleep(seconds(1)).await;
    let mut ran = take(&noted);
    ran.sort();
    // An owner of the right kind that does not exist is a key; the reconciler is asked only by
    // `run_keys`.
    assert_eq!(ran, ["default/a Some(\"1\")", "default/gone None"]);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_stopped_and_has_its_backoff() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    cluster.put("configmaps", map("hangs", "1"));
    cluster.put("configmaps", map("works", "1"));
    let client = cluster.client(&Link::default());
    let (began, failed) = (Instant::now(), Noted::default());
    let noted = Arc::clone(&failed);
    let workers = Workers::new(1).timeout(seconds(5)).on_error(
        move |key: &ObjectRef<ConfigMap>, failure: &Failure<kube::Error>, attempt| {
            let at = began.elapsed().as_millis();
            let limit = match failure {
                Failure::TimedOut(limit) => *limit,
                other => panic!("{other:?}"),
            };
            noted
                .lock()
                .unwrap()
                .push(format!("{at} {} {attempt} {limit:?}", key.name));
        },
    );
    let worked = Noted::default();
    let runs = Arc::clone(&worked);
    let run = maps(&client).run(workers, stop.clone(), move |map, _| {
        let runs = Arc::clone(&runs);
        async move {
            if name_of(&map) == "hangs" {
                std::future::pending::<()>().await;
            }
            runs.lock().unwrap().push(name_of(&map));
            Ok(Action::Success)
        }
    });
    let running = tokio::spawn(run);
    sleep(seconds(16)).await;
    let expected = ["5000 hangs 1 5s", "10005 hangs 2 5s", "15015 hangs 3 5s"];
    assert_eq!(take(&failed), expected);
    assert_eq!(take(&worked), ["works"]);
    stop.cancel();
    let left = running.await.unwrap().unwrap();
    assert_eq!((left.len(), &*left[0].key.name), (1, "hangs"));
}

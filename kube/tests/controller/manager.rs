//! Several controllers in one process.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::{
    Action, CancellationToken, Controller, Error, Leader, Manager, SharedWatch, Workers,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::noting::{Reconciled, Runs, with_maps};
use crate::{maps, seconds};

const LEASES: &str = "leases.coordination.k8s.io";

fn secrets(client: &Client) -> Controller<Secret> {
    Controller::new(Api::all(client.clone()), watcher::Config::default()).named("secrets")
}

fn secret(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
    })
}

fn leader(client: &Client, who: &str) -> Leader {
    Leader::lease(client.clone(), "default", "test").identity(who)
}

fn holder(cluster: &Cluster) -> String {
    let lease = cluster.get(LEASES, "test").unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str();
    holder.unwrap_or_default().to_owned()
}

/// Two controllers, whose runs take so many seconds and note who ran.
fn two(client: &Client, who: &str, runs: &Runs, takes: [u64; 2]) -> Manager {
    let note = |kind: &str| {
        let (runs, note) = (runs.clone(), format!("{who} {kind}"));
        move |takes: u64| {
            runs.push(note.clone());
            async move {
                sleep(seconds(takes)).await;
                Reconciled::Ok(Action::RequeueAfter(seconds(3600)))
            }
        }
    };
    let (of_maps, of_secrets) = (note("map"), note("secret"));
    Manager::new()
        .leader(leader(client, who))
        .add(maps(client).named("maps"), move |controller, stop| {
            controller.run(1, stop, move |_, _| of_maps(takes[0]))
        })
        .add(secrets(client), move |controller, stop| {
            controller.run_keys(Workers::unbounded(), stop, move |_, _| of_secrets(takes[1]))
        })
}

#[tokio::test(start_paused = true)]
async fn controllers_lead_together_and_release_the_lease_when_the_last_one_has_drained() {
    let (cluster, client) = with_maps(&["a"]);
    cluster.put("secrets", secret("s"));
    let (runs, stop, other) = (
        Runs::default(),
        CancellationToken::new(),
        CancellationToken::new(),
    );
    let manager = two(&client, "one", &runs, [5, 20]);
    let health = manager.health();
    let first = tokio::spawn(manager.run(stop.clone()));
    sleep(seconds(1)).await;
    let second = tokio::spawn(two(&client, "two", &runs, [0, 0]).run(other.clone()));
    assert_eq!(holder(&cluster), "one");
    let ready = health.ready().body;
    assert_eq!(
        ready,
        "[+]maps: configmaps ok\n[+]secrets: secrets ok\nreadyz check passed\n"
    );
    let live = health.live().body;
    assert_eq!(live, "[+]lease default/test held\nhealthz check passed\n");

    let stopped = Instant::now();
    stop.cancel();
    sleep(seconds(10)).await;
    assert_eq!(holder(&cluster), "one", "a run is under way");
    let left = first.await.unwrap().unwrap();
    assert_eq!(stopped.elapsed(), seconds(19));
    assert_eq!(holder(&cluster), "");
    let mut left: Vec<String> = left.iter().map(|left| left.key.to_string()).collect();
    left.sort();
    assert_eq!(left, ["ConfigMap.v1./a.default", "Secret.v1./s.default"]);

    let mut ran = runs.take();
    ran.sort();
    assert_eq!(ran, ["one map", "one secret"]);
    sleep(seconds(4)).await;
    let mut ran = runs.take();
    ran.sort();
    assert_eq!(ran, ["two map", "two secret"]);
    other.cancel();
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_ends_the_others_after_their_drain() {
    let (cluster, client) = with_maps(&["a"]);
    cluster.refuse("secrets", 403, "Forbidden");
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let manager = two(&client, "one", &runs, [130, 0]);
    let began = Instant::now();
    let running = tokio::spawn(manager.run(stop.clone()));
    sleep(seconds(1)).await;
    assert_eq!(holder(&cluster), "one");
    let ended = running.await.unwrap();
    assert!(matches!(ended, Err(Error::NotSynced { kind, .. }) if kind == "secrets"));
    assert_eq!(
        began.elapsed(),
        seconds(130),
        "the run of the other controller"
    );
    assert_eq!(
        (runs.take(), holder(&cluster)),
        (vec!["one map".to_owned()], String::new())
    );
    assert!(!stop.is_cancelled(), "the token is the caller's");
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_an_error() {
    let (_cluster, client) = with_maps(&[]);
    let manager = two(&client, "one", &Runs::default(), [0, 0]).add(
        maps(&client).named("maps"),
        |controller, stop| {
            controller.run(1, stop, |_, _| async { Reconciled::Ok(Action::Success) })
        },
    );
    let ended = manager.run(CancellationToken::new()).await;
    assert!(matches!(ended, Err(Error::SameName(name)) if name == "maps"));
}

#[tokio::test(start_paused = true)]
async fn a_manager_without_controllers_ends_at_once() {
    let left = Manager::new().run(CancellationToken::new()).await.unwrap();
    assert!(left.is_empty());
}

/// The controller that drives the watch stops first.
#[tokio::test(start_paused = true)]
async fn controllers_with_a_shared_watch_drain_one_after_the_other() {
    let cluster = Cluster::new();
    cluster.put("secrets", secret("s"));
    let client = cluster.client(&Link::default());
    let all = SharedWatch::new(
        Api::<Secret>::all(client.clone()),
        watcher::Config::default(),
    );
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let mut manager = Manager::new();
    for (name, takes) in [("quick", 1), ("slow", 60)] {
        let controller = Controller::for_stream(all.subscribe(), all.store()).named(name);
        let runs = runs.clone();
        manager = manager.add(controller, move |controller, stop| {
            controller.run(1, stop, move |secret: Arc<Secret>, _| {
                let version = secret.metadata.resource_version.clone().unwrap();
                runs.push(format!("{name} {version}"));
                async move {
                    sleep(seconds(takes)).await;
                    Reconciled::Ok(Action::Success)
                }
            })
        });
    }
    let running = tokio::spawn(manager.run(stop.clone()));
    sleep(seconds(5)).await;
    // While the slow one is in its run, the object changes, and all are stopped.
    cluster.put(
        "secrets",
        json!({"metadata": {"name": "s", "namespace": "default"}, "data": {}}),
    );
    sleep(seconds(1)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    let mut ran = runs.take();
    ran.sort();
    assert_eq!(ran, ["quick 1", "quick 2", "slow 1", "slow 2"]);
}

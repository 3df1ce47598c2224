//! Reconcilers that were written for kube-rs's `Controller`.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::finalizer::Event;
use requeue_kube::{Action, ActionExt, CancellationToken, finalizer, with_error_policy};
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::{map, maps, name_of, seconds};

#[tokio::test(start_paused = true)]
async fn an_error_policy_decides_when_an_object_runs_again() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    cluster.put("configmaps", map("a", "1"));
    let client = cluster.client(&Link::default());
    let at: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let reconcile = |_: Arc<ConfigMap>, at: Arc<Mutex<Vec<Instant>>>| async move {
        at.lock().unwrap().push(Instant::now());
        Err::<Action, _>("down")
    };
    let policy =
        |_: Arc<ConfigMap>, _: &&str, _: Arc<Mutex<Vec<Instant>>>| Action::requeue(seconds(5));
    let reconcile = with_error_policy(reconcile, policy, Arc::clone(&at));
    let running = tokio::spawn(maps(&client).run(1, stop.clone(), reconcile));
    sleep(seconds(16)).await;
    let at = at.lock().unwrap().clone();
    let gaps: Vec<u64> = at
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(gaps, [5, 5, 5]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_before_the_work_and_removed_after_the_cleanup() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    let mut wanted = map("a", "1");
    wanted["metadata"]["finalizers"] = serde_json::Value::Null;
    cluster.put("configmaps", wanted);
    let client = cluster.client(&Link::default());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (noted, api) = (
        Arc::clone(&told),
        Api::<ConfigMap>::default_namespaced(client.clone()),
    );
    let run = maps(&client).run(1, stop.clone(), move |map, _| {
        let (told, api) = (Arc::clone(&noted), api.clone());
        async move {
            finalizer(&api, "example.dev/test", map, async |event| {
                let (word, map) = match &event {
                    Event::Apply(map) => ("apply", map),
                    Event::Cleanup(map) => ("clean", map),
                };
                told.lock()
                    .unwrap()
                    .push(format!("{word} {}", name_of(map)));
                Action::RequeueAfter(seconds(100))
            })
            .await
        }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    assert_eq!(*told.lock().unwrap(), ["apply a"]);
    sleep(seconds(100)).await;
    assert_eq!(
        *told.lock().unwrap(),
        ["apply a", "apply a"],
        "the action is the reconciler's"
    );

    cluster.delete("configmaps", "a");
    sleep(seconds(1)).await;
    assert_eq!(told.lock().unwrap().last().unwrap(), "clean a");
    assert!(cluster.get("configmaps", "a").is_none());
    stop.cancel();
    running.await.unwrap().unwrap();
}

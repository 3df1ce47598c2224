//! Which objects run when another changes.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use requeue_kube::{Action, CancellationToken, Context, Controller};
use serde_json::json;
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::noting::{Noting, Runs, maps_and_secrets, with_maps};
use crate::{map, maps, seconds};

#[tokio::test(start_paused = true)]
async fn parts_run_their_owner_by_kind_and_group() {
    let (cluster, client) = with_maps(&["a"]);
    let noting = Noting::start(maps_and_secrets(&client));
    sleep(seconds(1)).await;
    noting.take();

    let part = |name: &str, kind: &str, api_version: &str| {
        let uid = cluster.get("configmaps", "a").unwrap()["metadata"]["uid"].clone();
        let owner = json!({"kind": kind, "apiVersion": api_version, "name": "a", "uid": uid});
        let meta = json!({"name": name, "namespace": "default", "ownerReferences": [owner]});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    };
    for (kind, api_version, ran) in [
        ("ConfigMap", "v1", true),
        ("ConfigMap", "v1beta1", true),
        ("ConfigMap", "example.dev/v1", false),
        ("Web", "v1", false),
    ] {
        let name = format!("{kind}-{}", api_version.replace('/', "-")).to_lowercase();
        cluster.put("secrets", part(&name, kind, api_version));
        sleep(seconds(1)).await;
        assert_eq!(
            noting.take(),
            vec!["a=1"; usize::from(ran)],
            "{kind} {api_version}"
        );
    }
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_loses_a_part_to_another_runs_too() {
    let (cluster, client) = with_maps(&["a", "b"]);
    // A secret says in a label for which map it is.
    let keys = |secret: &Secret| {
        let labels = secret.metadata.labels.clone().unwrap_or_default();
        labels
            .get("for")
            .map(|name| ObjectRef::new(name).within("default"))
    };
    let controller = maps(&client).watches(
        Api::<Secret>::all(client.clone()),
        watcher::Config::default(),
        keys,
    );
    let noting = Noting::start(controller);
    let secret = |owner: &str| {
        let meta = json!({"name": "s", "namespace": "default", "labels": {"for": owner}});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    };
    sleep(seconds(1)).await;
    cluster.put("secrets", secret("a"));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "b=1", "a=1"]);
    cluster.put("secrets", secret("b"));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["b=1", "a=1"]);
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_owner_of_a_namespaced_part_has_one_key() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    cluster.put("namespaces", namespace);
    let client = cluster.client(&Link::default());
    let seen = Runs::default();
    let noted = seen.clone();
    let keys = |map: &ConfigMap| {
        map.metadata
            .namespace
            .as_ref()
            .map(|namespace| ObjectRef::new("n").within(namespace))
    };
    let run = Controller::new(
        Api::<Namespace>::all(client.clone()),
        watcher::Config::default(),
    )
    .watches(
        Api::<ConfigMap>::all(client.clone()),
        watcher::Config::default(),
        keys,
    )
    .run(4, stop.clone(), move |_, context: Context<Namespace>| {
        noted.push(context.key.to_string());
        async { Action::Success }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("a", "1"));
    sleep(seconds(1)).await;
    assert_eq!(seen.take(), ["Namespace.v1./n", "Namespace.v1./n"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

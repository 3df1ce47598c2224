//! Watches that lose their place.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::watcher;
use requeue_kube::{Action, CancellationToken};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::noting::{Noting, maps_and_secrets, with_maps};
use crate::{map, maps, name_of, seconds, wanted};

pub(crate) fn part_of(cluster: &Cluster, owner: &str) -> Value {
    let uid = cluster.get("configmaps", owner).unwrap()["metadata"]["uid"].clone();
    let owner = json!({"kind": "ConfigMap", "apiVersion": "v1", "name": owner, "uid": uid});
    let meta = json!({"name": "part", "namespace": "default", "ownerReferences": [owner]});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
}

fn cut(cluster: &Cluster) {
    for resource in ["configmaps", "secrets"] {
        cluster.cut_watches(resource);
    }
}

/// Everything happens while the watches cannot see it, and its history is forgotten: each list that
/// follows has to be compared with what was known.
#[tokio::test(start_paused = true)]
async fn what_happened_unseen_is_noticed_by_the_next_list() {
    let (cluster, link, stop) = (Cluster::new(), Link::default(), CancellationToken::new());
    for name in ["as-before", "changed", "has-part"] {
        cluster.put("configmaps", map(name, "1"));
    }
    cluster.put("secrets", part_of(&cluster, "has-part"));
    let client = cluster.client(&link);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&runs);
    let run = maps(&client)
        .owns(
            Api::<Secret>::all(client.clone()),
            watcher::Config::default(),
        )
        .run(1, stop.clone(), move |map, context| {
            let run = (name_of(&map), wanted(&map), context.changed);
            noted.lock().unwrap().push(run);
            async { Action::Success }
        });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    runs.lock().unwrap().clear();

    link.set_down(true);
    cut(&cluster);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("changed", "2"));
    cluster.put("configmaps", map("new", "1"));
    cluster.delete("secrets", "part");
    cluster.compact();
    sleep(seconds(1)).await;
    link.set_down(false);
    sleep(seconds(400)).await;

    let mut runs = std::mem::take(&mut *runs.lock().unwrap());
    runs.sort();
    runs.dedup();
    let run = |name: &str, want: &str, changed| (name.to_owned(), want.to_owned(), changed);
    let expected = [
        run("as-before", "1", false),
        run("changed", "2", true),
        run("has-part", "1", true),
        run("new", "1", true),
    ];
    for expected in expected {
        assert!(
            runs.contains(&expected),
            "{expected:?} is not among {runs:?}"
        );
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A part that came and went while its watch had lost its place is in no list, and only its owner
/// can tell that it is missing.
#[tokio::test(start_paused = true)]
async fn what_came_and_went_unseen_is_looked_for_by_every_object() {
    let (cluster, client) = with_maps(&["a", "b"]);
    let noting = Noting::start(maps_and_secrets(&client));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "b=1"]);
    cluster.put("configmaps", map("b", "2"));
    cluster.compact();
    cluster.cut_watches("secrets");
    sleep(Duration::from_millis(100)).await;
    cluster.put("secrets", part_of(&cluster, "a"));
    cluster.delete("secrets", "part");
    assert_eq!(noting.take(), ["b=2"]);
    sleep(seconds(10)).await;
    assert_eq!(noting.take(), ["a=1", "b=2"]);
    noting.stop().await;
}

/// A reflector replaces the objects of its store at the end of a list. A run before that would see
/// the object of before, and nothing would run again.
#[tokio::test(start_paused = true)]
async fn what_a_second_list_brings_runs_only_when_the_store_has_it() {
    let (cluster, link, stop) = (Cluster::new(), Link::default(), CancellationToken::new());
    for number in 0..20 {
        cluster.put("configmaps", map(&format!("m{number:02}"), "1"));
    }
    let client = cluster.client(&link);
    let last = Arc::new(Mutex::new(std::collections::BTreeMap::new()));
    let noted = Arc::clone(&last);
    // Two objects a page, and each page takes its time.
    let config = watcher::Config::default().page_size(2);
    let run = requeue_kube::Controller::new(
        Api::<k8s_openapi::api::core::v1::ConfigMap>::all(client.clone()),
        config,
    )
    .run(4, stop.clone(), move |map, _| {
        noted.lock().unwrap().insert(name_of(&map), wanted(&map));
        async { Action::Success }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    link.set_faults(seconds(1), 0, 0);
    for number in 0..20 {
        cluster.put("configmaps", map(&format!("m{number:02}"), "2"));
    }
    cluster.compact();
    cluster.cut_watches("configmaps");
    sleep(seconds(600)).await;
    let last = last.lock().unwrap().clone();
    assert_eq!(last.len(), 20);
    assert!(last.values().all(|want| want == "2"), "{last:?}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

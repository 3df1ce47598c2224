//! Kinds that cannot be listed or watched.

use std::time::Duration;

use requeue_kube::Error;
use serde_json::json;
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::noting::{Noting, maps_and_secrets, with_maps};
use crate::{map, maps, seconds};

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_ends_the_controller_with_its_name() {
    for (code, reason) in [(403, "Forbidden"), (404, "NotFound")] {
        let (cluster, client) = with_maps(&["a"]);
        cluster.refuse("secrets", code, reason);
        let controller = maps_and_secrets(&client).sync_timeout(seconds(30));
        let health = controller.health();
        let Noting { runs, running, .. } = Noting::start(controller);
        sleep(seconds(20)).await;
        let ready = health.ready();
        assert!(
            !ready.passes && ready.body.contains("[+]configmaps ok"),
            "{}",
            ready.body
        );
        assert!(
            ready.body.contains("[-]secrets not listed yet"),
            "{}",
            ready.body
        );

        let error = running.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, Error::NotSynced { kind, .. } if kind == "secrets"),
            "{error}"
        );
        assert!(error.to_string().contains("secrets is refused"), "{error}");
        assert!(runs.take().is_empty(), "no worker has begun");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_later_leaves_the_workers_at_work() {
    let (cluster, client) = with_maps(&["a"]);
    let controller = maps_and_secrets(&client);
    let health = controller.health();
    let noting = Noting::start(controller);
    sleep(seconds(1)).await;
    cluster.refuse("secrets", 403, "Forbidden");
    cluster.cut_watches("secrets");
    sleep(seconds(60)).await;
    assert!(health.ready().passes && health.ready().body.contains("secrets is refused"));
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "a=2"]);

    cluster.allow("secrets");
    sleep(seconds(120)).await;
    cluster.put(
        "secrets",
        json!({"metadata": {"name": "s", "namespace": "default"}}),
    );
    sleep(seconds(1)).await;
    assert_eq!(
        health.ready().body,
        "[+]configmaps ok\n[+]secrets ok\nreadyz check passed\n"
    );
    noting.stop().await;
}

/// The watch has lost its place, and the list that it needs is refused: it is retried with pauses
/// that grow, and the health says so all the time.
#[tokio::test(start_paused = true)]
async fn a_second_list_that_is_refused_is_retried_ever_more_seldom() {
    let cluster = Cluster::new();
    cluster.put("configmaps", map("a", "1"));
    let link = Link::default();
    let controller = maps_and_secrets(&cluster.client(&link));
    let health = controller.health();
    let noting = Noting::start(controller);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("a", "2"));
    cluster.compact();
    cluster.cut_watches("secrets");
    sleep(Duration::from_millis(100)).await;
    cluster.refuse("secrets", 403, "Forbidden");
    link.set_faults(seconds(1), 0, 0);
    sleep(seconds(10)).await;
    for _ in 0..6000 {
        sleep(Duration::from_millis(100)).await;
        let ready = health.ready();
        assert!(ready.body.contains("secrets is refused"), "{}", ready.body);
    }
    let refusals = cluster.refusals();
    assert!((10..30).contains(&refusals), "{refusals} in ten minutes");
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_first_list_ends_the_controller() {
    let cluster = Cluster::new();
    let link = Link::default();
    link.set_down(true);
    let client = cluster.client(&link);
    let noting = Noting::start(maps(&client));
    sleep(seconds(1)).await;
    assert!(noting.stop().await.is_empty());
}

//! Controllers of streams: what is dropped from them, and what several controllers share.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, predicates, watcher};
use kube::{Api, Client, ResourceExt};
use requeue_kube::{CancellationToken, Controller, Error, EventsExt, SharedWatch, watch};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::noting::{Noting, Reconciled, Runs, note, with_maps};
use crate::watches::part_of;
use crate::{map, maps, name_of, seconds, wanted};

fn all() -> watcher::Config {
    watcher::Config::default()
}

fn all_secrets(client: &Client) -> Api<Secret> {
    Api::all(client.clone())
}

fn labelled(name: &str, want: &str, label: &str) -> Value {
    let mut map = map(name, want);
    map["metadata"]["labels"] = json!({"label": label});
    map
}

#[tokio::test(start_paused = true)]
async fn workers_wait_until_every_stream_of_events_was_listed() {
    let (cluster, client) = with_maps(&["a"]);
    cluster.refuse("secrets", 403, "Forbidden");
    let (store, writer) = reflector::store();
    let events = watch(Api::<ConfigMap>::all(client.clone()), all()).reflect(writer);
    let secrets = watch(all_secrets(&client), all());
    let controller = Controller::for_stream(events, store)
        .owns_stream(secrets)
        .sync_timeout(seconds(60));
    let health = controller.health();
    let noting = Noting::start(controller);
    sleep(seconds(59)).await;
    assert_eq!(noting.take(), [""; 0]);
    let body = health.ready().body;
    assert!(body.contains("[+]configmaps ok"), "{body}");
    assert!(body.contains("[-]secrets not listed yet: "), "{body}");
    sleep(seconds(2)).await;
    let ended = noting.running.await.unwrap();
    assert!(matches!(ended, Err(Error::NotSynced { kind, .. }) if kind == "secrets"));
}

#[tokio::test(start_paused = true)]
async fn workers_wait_for_the_store_of_a_stream_of_objects_and_for_those_that_are_named() {
    let (cluster, client) = with_maps(&["a"]);
    cluster.refuse("secrets", 403, "Forbidden");
    let (store, writer) = reflector::store();
    let objects = watch(Api::<ConfigMap>::all(client.clone()), all())
        .reflect(writer)
        .touched_objects();
    let (secrets, writer) = reflector::store::<Secret>();
    let fill = watch(all_secrets(&client), all()).reflect(writer);
    let fill = tokio::spawn(fill.for_each(|_| async {}));
    let controller = Controller::for_stream(objects, store).waits_for(secrets.clone());
    let health = controller.health();
    let noting = Noting::start(controller);
    sleep(seconds(10)).await;
    assert_eq!(noting.take(), [""; 0]);
    assert!(health.ready().body.contains("[-]secrets not listed yet"));
    cluster.put("secrets", part_of(&cluster, "a"));
    cluster.allow("secrets");
    sleep(seconds(60)).await;
    assert!(health.ready().passes);
    assert_eq!((noting.take(), secrets.len()), (vec!["a=1".to_owned()], 1));
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=2"]);
    noting.stop().await;
    fill.abort();
}

/// kube's store wakes only the last that waits for it.
#[tokio::test(start_paused = true)]
async fn all_controllers_that_wait_for_a_store_begin_when_it_is_filled() {
    let (_, client) = with_maps(&["a"]);
    let (secrets, mut writer) = reflector::store::<Secret>();
    let waiting = [(); 3].map(|()| Noting::start(maps(&client).waits_for(secrets.clone())));
    sleep(Duration::from_millis(10_050)).await;
    writer.apply_watcher_event(&watcher::Event::Init);
    writer.apply_watcher_event(&watcher::Event::InitDone);
    sleep(Duration::from_millis(1)).await;
    for noting in waiting {
        assert_eq!(noting.take(), ["a=1"]);
        noting.stop().await;
    }
}

/// A part that is deleted runs its owner, as with `owns`, and one that moves runs both.
#[tokio::test(start_paused = true)]
async fn a_shared_watch_is_listed_once_and_reaches_every_controller() {
    let (cluster, client) = with_maps(&["a", "b"]);
    cluster.put("secrets", part_of(&cluster, "a"));
    let secrets = SharedWatch::new(all_secrets(&client), all());
    let early = [(); 2].map(|()| Noting::start(maps(&client).owns_stream(secrets.subscribe())));
    sleep(seconds(1)).await;
    // The third begins when the list was long ago.
    cluster.put("secrets", part_of(&cluster, "b"));
    sleep(seconds(1)).await;
    let late = Noting::start(maps(&client).owns_stream(secrets.subscribe()));
    sleep(seconds(1)).await;
    for noting in &early {
        assert_eq!(noting.take(), ["a=1", "b=1", "b=1", "a=1"]);
    }
    assert_eq!(late.take(), ["b=1", "a=1"]);
    cluster.delete("secrets", "part");
    sleep(seconds(1)).await;
    for noting in early.iter().chain([&late]) {
        assert_eq!(noting.take(), ["b=1"]);
    }
    assert_eq!(cluster.lists("secrets"), 1);
    assert!(secrets.store().is_empty());

    // The one that polled last ends: the others still hear.
    let [first, second] = early;
    late.stop().await;
    first.stop().await;
    cluster.put("secrets", part_of(&cluster, "b"));
    sleep(seconds(1)).await;
    assert_eq!(second.take(), ["b=1"]);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_watch_that_loses_its_place_tells_every_controller_what_is_gone() {
    let (cluster, client) = with_maps(&["a", "b"]);
    cluster.put("secrets", part_of(&cluster, "a"));
    let secrets = SharedWatch::new(all_secrets(&client), all());
    let controllers = [(); 2].map(|()| maps(&client).owns_stream(secrets.subscribe()));
    let health = controllers[1].health();
    let noting = controllers.map(Noting::start);
    sleep(seconds(1)).await;
    cluster.refuse("secrets", 403, "Forbidden");
    cluster.cut_watches("secrets");
    sleep(seconds(1)).await;
    assert!(
        health.ready().body.contains("secrets ok: "),
        "{}",
        health.ready().body
    );
    cluster.delete("secrets", "part");
    cluster.compact();
    cluster.allow("secrets");
    for noting in &noting {
        noting.take();
    }
    sleep(seconds(60)).await;
    for noting in noting {
        // What is gone, and then all, because something may have come and gone unseen.
        assert_eq!(noting.take(), ["a=1", "b=1"]);
        noting.stop().await;
    }
    assert_eq!(health.ready().body.matches("ok\n").count(), 2);
}

/// A reader that is not polled keeps a bounded number of changes, and misses none.
#[tokio::test(start_paused = true)]
async fn a_reader_that_fell_behind_begins_again_with_a_list() {
    let (cluster, client) = with_maps(&["a", "b"]);
    let secrets = SharedWatch::new(all_secrets(&client), all());
    let (mut slow, mut quick) = (secrets.subscribe(), secrets.subscribe());
    // The slow one polls last, and its task is never polled for an event.
    assert!(quick.next().await.unwrap().is_ok(), "its list");
    assert!(slow.next().await.unwrap().is_ok(), "its list");
    let reads = tokio::spawn(quick.for_each(|_| async {}));
    for turn in 0..5000 {
        let mut part = part_of(&cluster, "a");
        part["metadata"]["annotations"] = json!({"turn": turn.to_string()});
        cluster.put("secrets", part);
    }
    sleep(seconds(1)).await;
    let noting = Noting::start(maps(&client).owns_stream(slow));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "b=1"]);
    cluster.delete("secrets", "part");
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1"]);
    noting.stop().await;
    reads.abort();
}

#[tokio::test(start_paused = true)]
async fn a_predicate_drops_the_changes_that_it_does_not_see_and_no_deletion() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    cluster.put("configmaps", labelled("a", "1", "x"));
    cluster.put("configmaps", labelled("b", "1", "x"));
    let client = cluster.client(&Link::default());
    let (store, writer) = reflector::store();
    let events = watch(Api::<ConfigMap>::all(client.clone()), all())
        .reflect(writer)
        .only_changed(predicates::labels);
    let (runs, noted) = (Runs::default(), Runs::default());
    let noted_here = noted.clone();
    let run = Controller::for_stream(events, store).run_keys(1, stop.clone(), {
        let runs = runs.clone();
        move |map: Option<Arc<ConfigMap>>, run| {
            let want = map.map_or_else(|| "gone".to_owned(), |map| wanted(&map));
            runs.push(format!("{}={want} {}", run.key.name, run.changed));
            noted_here.push(run.reasons.to_string());
            std::future::ready(Reconciled::Ok(requeue_kube::Action::Success))
        }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), ["a=1 false", "b=1 false"]);
    cluster.put("configmaps", labelled("a", "2", "x"));
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), [""; 0]);
    cluster.put("configmaps", labelled("a", "3", "y"));
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), ["a=3 true"]);

    // A list in which nothing has changed that the predicate sees.
    cluster.put("configmaps", labelled("a", "4", "y"));
    cluster.compact();
    cluster.cut_watches("configmaps");
    cluster.put("configmaps", labelled("b", "4", "z"));
    sleep(seconds(60)).await;
    assert_eq!(runs.take(), ["b=4 true", "a=4 false"]);

    cluster.delete("configmaps", "a");
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), ["a=gone true"]);
    // Another object of the same name, with the same labels.
    cluster.put("configmaps", labelled("a", "5", "y"));
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), ["a=5 true"]);
    assert_eq!(noted.take().last().unwrap(), "applied configmaps default/a");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Two predicates count both, and a mapper that names other objects counts although neither does.
#[tokio::test(start_paused = true)]
async fn predicates_can_be_combined_and_hide_no_change_of_the_mapper() {
    let (cluster, client) = with_maps(&["a", "b"]);
    let named = |secret: &Secret| {
        let name = secret.annotations().get("map")?;
        Some(ObjectRef::<ConfigMap>::new(name).within("default"))
    };
    let secret = |map: &str, label: &str, finalizer: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": "s", "namespace": "default", "annotations": {"map": map},
                "labels": {"label": label}, "finalizers": [finalizer],
            },
        })
    };
    let secrets = watch(all_secrets(&client), all())
        .only_changed(predicates::labels)
        .only_changed(predicates::finalizers);
    let noting = Noting::start(maps(&client).watches_stream(secrets, named));
    sleep(seconds(1)).await;
    noting.take();
    for (map, label, finalizer, expected) in [
        ("a", "1", "f.dev/1", &["a=1"][..]),
        ("a", "1", "f.dev/1", &[]),
        ("a", "2", "f.dev/1", &["a=1"]),
        ("a", "2", "f.dev/2", &["a=1"]),
        ("b", "2", "f.dev/2", &["b=1", "a=1"]),
    ] {
        cluster.put("secrets", secret(map, label, finalizer));
        cluster.put(
            "secrets",
            json!({"metadata": {
                "name": "s", "namespace": "default", "annotations": {"other": label},
            }}),
        );
        sleep(seconds(1)).await;
        assert_eq!(noting.take(), expected, "{map} {label} {finalizer}");
    }
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_metadata_asks_for_nothing_else() {
    let (cluster, client) = with_maps(&["a", "b"]);
    let mut part = part_of(&cluster, "a");
    part["data"] = json!({"password": "c2VjcmV0"});
    cluster.put("secrets", part);
    let metadata = Api::<PartialObjectMeta<Secret>>::all(client.clone());
    let (store, writer) = reflector::store::<PartialObjectMeta<Secret>>();
    let events = watch(metadata, all()).reflect(writer).inspect(|event| {
        let Ok(watcher::Event::InitApply(secret)) = event else {
            return;
        };
        assert_eq!(secret.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    });
    let noting = Noting::start(maps(&client).owns_stream(events));
    sleep(seconds(1)).await;
    assert_eq!((noting.take().len(), store.len()), (2, 1));
    cluster.delete("secrets", "part");
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1"]);
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_dropped_before_the_store_has_them() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    let mut managed = map("a", "1");
    managed["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    cluster.put("configmaps", managed);
    let client = cluster.client(&Link::default());
    let (store, writer) = reflector::store();
    let events = watch(Api::<ConfigMap>::all(client), all())
        .drop_managed_fields()
        .reflect(writer);
    let controller = Controller::for_stream(events, store.clone());
    let running = tokio::spawn(controller.run(1, stop.clone(), note(&Runs::default())));
    sleep(Duration::from_secs(1)).await;
    let map = store.state().remove(0);
    assert_eq!(
        (name_of(&map).as_str(), map.managed_fields().len()),
        ("a", 0)
    );
    stop.cancel();
    running.await.unwrap().unwrap();
}

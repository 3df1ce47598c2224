//! What a controller does with objects, one rule each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use requeue_kube::{Action, CancellationToken, Workers};
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::noting::{Noting, Reconciled, Runs, note, with_maps};
use crate::{map, maps, name_of, seconds, wanted};

#[tokio::test(start_paused = true)]
async fn what_is_listed_runs_and_what_changes_runs_again() {
    let (cluster, client) = with_maps(&["a", "b"]);
    let noting = Noting::start(maps(&client));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "b=1"]);

    cluster.put("configmaps", map("b", "2"));
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["b=2"]);
    assert!(noting.stop().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_ahead_of_what_was_listed() {
    let (cluster, client) = with_maps(&["a", "b", "c", "d"]);
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let noted = runs.clone();
    let run = maps(&client).run(1, stop.clone(), move |map, context| {
        noted.push(format!(
            "{}={} {}",
            name_of(&map),
            wanted(&map),
            context.changed
        ));
        async {
            sleep(seconds(10)).await;
            Reconciled::Ok(Action::Success)
        }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("d", "2"));
    sleep(seconds(60)).await;
    assert_eq!(
        runs.take(),
        ["a=1 false", "d=2 true", "b=1 false", "c=1 false"]
    );
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failing_object_comes_back_with_backoff_of_its_own() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    cluster.put("configmaps", map("bad", ""));
    cluster.put("configmaps", map("good", ""));
    let client = cluster.client(&Link::default());
    let at = Arc::new(Mutex::new(BTreeMap::<String, Vec<Instant>>::new()));
    let noted = Arc::clone(&at);
    let run = maps(&client)
        .backoff(Duration::from_millis(5), seconds(1000))
        .run(
            Workers::new(2).on_error(|_, _, _| {}),
            stop.clone(),
            move |map, context| {
                let name = name_of(&map);
                noted
                    .lock()
                    .unwrap()
                    .entry(name.clone())
                    .or_default()
                    .push(Instant::now());
                async move {
                    match (name.as_str(), context.attempt) {
                        ("good", _) => Ok(Action::Success),
                        (_, attempt) if attempt % 2 == 0 => panic!("every second time"),
                        _ => Err("down"),
                    }
                }
            },
        );
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    let at = at.lock().unwrap().clone();
    let gaps = at["bad"]
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis());
    assert_eq!(gaps.collect::<Vec<_>>(), [5, 10, 20, 40, 80, 160, 320]);
    assert_eq!(at["good"].len(), 1);

    stop.cancel();
    let left = running.await.unwrap().unwrap();
    assert_eq!(
        (left.len(), left[0].key.name.as_str(), left[0].failures),
        (1, "bad", 8)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_knows_when_it_is_stopped() {
    for timeout in [None, Some(seconds(30))] {
        let (_cluster, client) = with_maps(&["a"]);
        let (runs, stop) = (Runs::default(), CancellationToken::new());
        let noted = runs.clone();
        let workers = Workers::new(1);
        let workers = match timeout {
            Some(timeout) => workers.timeout(timeout),
            None => workers,
        };
        let run = maps(&client).run(workers, stop.clone(), move |_, context| {
            let left = context.deadline.map(|deadline| deadline - Instant::now());
            noted.push(format!("{left:?} {:?}", context.waited));
            std::future::ready(Reconciled::Ok(Action::Success))
        });
        let running = tokio::spawn(run);
        sleep(seconds(1)).await;
        assert_eq!(runs.take(), [format!("{timeout:?} 0ns")]);
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_skipped_unless_asked_for() {
    for asked in [false, true] {
        let (cluster, client) = with_maps(&["a"]);
        let (runs, stop) = (Runs::default(), CancellationToken::new());
        let controller = maps(&client);
        let running = if asked {
            let runs = runs.clone();
            controller.run_keys(
                1,
                stop.clone(),
                move |map: Option<Arc<ConfigMap>>, context| {
                    let want = map.map(|map| wanted(&map));
                    runs.push(format!("{}={want:?}", context.key.name));
                    std::future::ready(Reconciled::Ok(Action::Success))
                },
            )
        } else {
            controller.run(1, stop.clone(), note(&runs))
        };
        let running = tokio::spawn(running);
        sleep(seconds(1)).await;
        cluster.delete("configmaps", "a");
        sleep(seconds(1)).await;
        let expected: &[&str] = if asked {
            &["a=Some(\"1\")", "a=None"]
        } else {
            &["a=1"]
        };
        assert_eq!(runs.take(), expected);
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_hands_back_what_is_left() {
    let (_cluster, client) = with_maps(&["a", "b", "c"]);
    let stop = CancellationToken::new();
    let workers = Workers::new(1).drain_timeout(seconds(5));
    let run = maps(&client).run(workers, stop.clone(), move |_, _| async {
        sleep(seconds(10)).await;
        Reconciled::Ok(Action::RequeueAfter(seconds(60)))
    });
    let running = tokio::spawn(run);
    sleep(seconds(11)).await;
    stop.cancel();
    let left = running.await.unwrap().unwrap();
    let mut names: Vec<(&str, u64)> = left
        .iter()
        .map(|left| (&*left.key.name, left.left.as_secs()))
        .collect();
    names.sort_unstable();
    assert_eq!(names, [("a", 50), ("b", 60), ("c", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_resync_runs_every_object_with_jitter() {
    let (_cluster, client) = with_maps(&["a", "b"]);
    let noting = Noting::start(maps(&client).resync(seconds(3600)));
    sleep(seconds(3599)).await;
    assert_eq!(noting.take(), ["a=1", "b=1"]);
    sleep(seconds(362)).await;
    assert_eq!(noting.take().len(), 2);
    sleep(seconds(10 * 3960)).await;
    assert_eq!(noting.take().len(), 20);
    noting.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_requests_runs_what_it_names() {
    let (_cluster, client) = with_maps(&["a"]);
    let (named, names) = tokio::sync::mpsc::unbounded_channel::<ObjectRef<ConfigMap>>();
    let names = futures::stream::unfold(names, |mut names| async {
        names.recv().await.map(|name| (name, names))
    });
    let noting = Noting::start(maps(&client).reconcile_on(names));
    sleep(seconds(1)).await;
    named.send(ObjectRef::new("a").within("default")).unwrap();
    named
        .send(ObjectRef::new("unknown").within("default"))
        .unwrap();
    drop(named);
    sleep(seconds(1)).await;
    assert_eq!(noting.take(), ["a=1", "a=1"]);
    noting.stop().await;
}

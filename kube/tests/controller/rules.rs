//! What a controller does with objects, one rule each.

use std::collections::BTreeMap;
use std::future::Ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::{Action, CancellationToken, Context, Controller, Error, Leftover, Workers};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::{map, maps, name_of, seconds, wanted};

/// What ran, in order.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<String>>>);

impl Runs {
    fn push(&self, run: impl Into<String>) {
        self.0.lock().unwrap().push(run.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

type Reconciled = Result<Action, kube::Error>;

/// A reconciler that notes `name=want`.
fn note(
    runs: &Runs,
) -> impl Fn(Arc<ConfigMap>, Context<ConfigMap>) -> Ready<Reconciled> + Send + Sync + 'static {
    let runs = runs.clone();
    move |map, _| {
        runs.push(format!("{}={}", name_of(&map), wanted(&map)));
        std::future::ready(Ok(Action::Success))
    }
}

/// A controller whose one worker notes what it runs.
struct Noting {
    runs: Runs,
    stop: CancellationToken,
    running: JoinHandle<Result<Vec<Leftover<ObjectRef<ConfigMap>>>, Error>>,
}

impl Noting {
    fn start(controller: Controller<ConfigMap>) -> Self {
        let (runs, stop) = (Runs::default(), CancellationToken::new());
        let running = tokio::spawn(controller.run(1, stop.clone(), note(&runs)));
        Self {
            runs,
            stop,
            running,
        }
    }

    fn take(&self) -> Vec<String> {
        self.runs.take()
    }

    async fn stop(self) -> Vec<Leftover<ObjectRef<ConfigMap>>> {
        self.stop.cancel();
        self.running.await.unwrap().unwrap()
    }
}

/// A cluster with maps of these names, each of which wants `1`, and a client of it.
fn with_maps(names: &[&str]) -> (Cluster, Client) {
    let cluster = Cluster::new();
    for name in names {
        cluster.put("configmaps", map(name, "1"));
    }
    let client = cluster.client(&Link::default());
    (cluster, client)
}

/// A controller of maps, and of the secrets that they own.
fn maps_and_secrets(client: &Client) -> Controller<ConfigMap> {
    maps(client).owns(
        Api::<Secret>::all(client.clone()),
        watcher::Config::default(),
    )
}

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
        (left.len(), left[0].key.name.as_str(), left[0].requeues),
        (1, "bad", 8)
    );
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
        async { Ok::<_, kube::Error>(Action::Success) }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("a", "1"));
    sleep(seconds(1)).await;
    assert_eq!(seen.take(), ["Namespace.v1./n", "Namespace.v1./n"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_hands_back_what_is_left() {
    let (_cluster, client) = with_maps(&["a", "b", "c"]);
    let stop = CancellationToken::new();
    let workers = Workers::new(1).drain_deadline(seconds(5));
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

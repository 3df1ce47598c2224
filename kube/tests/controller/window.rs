//! A controller whose queue is shown in the window: seen, asked why, and steered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use requeue_inspect::{Command, Inspect, Inspector, KeyQuery};
use requeue_kube::{
    Action, CancellationToken, Context, Controller, DeadKeys, GroupLimits, KeyQueue, Leader,
    Workers,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::noting::with_maps;
use crate::{map, maps, name_of, seconds};

/// How an object is named in the window.
fn id(name: &str) -> String {
    ObjectRef::<ConfigMap>::new(name)
        .within("default")
        .to_string()
}

/// Runs a controller: `hang` hangs, and what is named `fail…` fails until it is up.
fn start<Q: KeyQueue<ConfigMap>>(
    controller: Controller<ConfigMap, Q>,
    workers: Workers<'static, ObjectRef<ConfigMap>, &'static str>,
    is_up: &Arc<AtomicBool>,
) -> (CancellationToken, JoinHandle<()>) {
    let (stop, is_up) = (CancellationToken::new(), Arc::clone(is_up));
    let reconcile = move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
        let (name, is_up) = (name_of(&map), is_up.load(Ordering::Relaxed));
        async move {
            match &*name {
                "hang" => std::future::pending().await,
                name if name.starts_with("fail") && !is_up => Err("no route"),
                _ => Ok(Action::Success),
            }
        }
    };
    let run = controller.run(workers.on_error(|_, _, _| {}), stop.clone(), reconcile);
    (stop, tokio::spawn(async { drop(run.await) }))
}

#[tokio::test(start_paused = true)]
async fn a_controller_shows_its_runs_and_says_why_an_object_does_not_run() {
    let (_cluster, client) = with_maps(&["fail", "fine", "hang"]);
    let controller = maps(&client).backoff(seconds(100), seconds(1000));
    let (controller, queue) = controller.shared_queue();
    let window = Inspector::new("maps", &queue);
    assert!(window.key(&id("fine")).is_none(), "nothing was listed yet");

    let workers = window.watch(Workers::new(2));
    let (stop, running) = start(controller, workers, &Arc::default());
    sleep(seconds(10)).await;

    let view = window.view();
    assert_eq!((view.workers, view.active, view.delayed), (Some(2), 1, 1));
    assert_eq!((view.runs, view.failures), (2, 1));
    let runs = window.runs(10);
    assert!(runs.iter().map(|run| &*run.id).eq([&*id("hang")]));
    let keys = window.keys(&KeyQuery::default()).keys;
    assert_eq!(keys.len(), 2, "{keys:?}");
    let failed = window.key(&id("fail")).unwrap();
    assert_eq!(failed.history[0].error.as_deref(), Some("no route"));
    assert_eq!(
        failed.key.why,
        "It backs off after 1 failure, for 1 min 30 s more. It last failed with: no route"
    );
    let fine = window.key(&id("fine")).unwrap().key;
    assert!(fine.why.starts_with("Nothing asks for a run"), "{fine:?}");
    drop(running);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_waits_for_its_lease_says_so() {
    let (_cluster, client) = with_maps(&["a"]);
    let lease = |identity| Leader::lease(client.clone(), "default", "maps").identity(identity);
    let leader = maps(&client).leader(lease("one"));
    let (stop, leading) = start(leader, Workers::new(1), &Arc::default());
    sleep(seconds(1)).await;

    let (standby, queue) = maps(&client).leader(lease("two")).shared_queue();
    let window = Inspector::new("maps", &queue);
    let (_, waiting) = start(standby, window.watch(Workers::new(1)), &Arc::default());
    sleep(seconds(1)).await;
    let not_started = "No run has begun yet: the workers are not started.";
    assert_eq!(window.view().findings, [not_started]);
    let why = window.key(&id("a")).unwrap().key.why;
    assert_eq!(why, format!("It waits for a worker. {not_started}"));

    stop.cancel();
    leading.await.unwrap();
    sleep(seconds(1)).await;
    assert!(window.view().findings.is_empty() && window.view().runs == 1);
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_steered_from_the_window() {
    let (cluster, client) = with_maps(&["fail", "fine"]);
    let controller = maps(&client).backoff(seconds(100), seconds(1000));
    let (controller, queue) = controller.shared_queue();
    let window = Inspector::new("maps", &queue);
    let is_up = Arc::new(AtomicBool::new(false));
    let (stop, running) = start(controller, window.watch(Workers::new(1)), &is_up);
    sleep(seconds(10)).await;
    assert_eq!(window.view().failures, 1);

    is_up.store(true, Ordering::Relaxed);
    let expedite = Command::Expedite { id: id("fail") };
    window.control(&expedite).unwrap();
    sleep(seconds(1)).await;
    assert_eq!((window.view().runs, window.view().delayed), (3, 0));

    window.control(&Command::Pause).unwrap();
    cluster.put("configmaps", map("fine", "2"));
    sleep(seconds(1)).await;
    let why = window.key(&id("fine")).unwrap().key.why;
    assert!(why.starts_with("The queue is paused"), "{why}");
    window.control(&Command::Cancel { id: id("fine") }).unwrap();
    window.control(&Command::Unpause).unwrap();
    sleep(seconds(1)).await;
    assert_eq!(window.view().runs, 3, "it was cancelled");

    window.control(&Command::SetWorkers { workers: 0 }).unwrap();
    cluster.put("configmaps", map("fine", "3"));
    sleep(seconds(1)).await;
    let none = "There are no workers: their number is set to 0.";
    assert_eq!(window.view().findings, [none]);
    window.control(&Command::SetWorkers { workers: 3 }).unwrap();
    sleep(seconds(1)).await;
    assert_eq!((window.view().runs, window.view().ready), (4, 0));

    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_window_shows_groups_and_dead_objects_of_a_controller() {
    let (cluster, client) = with_maps(&["fail-1", "fine-1", "hang"]);
    cluster.put("configmaps", map("fail-2", "1"));
    let wanted_by = |map: &ObjectRef<ConfigMap>| map.name.chars().take(4).collect::<String>();
    let (controller, queue) = maps(&client)
        .groups(wanted_by, GroupLimits::new().max_active(1))
        .shared_queue();
    let dead = DeadKeys::new(10, |_, _| {});
    let given_up = dead.clone();
    let window = Inspector::new("maps", &queue)
        .with_groups()
        .with_dead_keys(&dead);
    let workers =
        Workers::new(4)
            .max_retries(0)
            .on_give_up(move |map: &ObjectRef<ConfigMap>, why| {
                given_up.insert(map.clone(), why.to_string());
            });
    let is_up = Arc::new(AtomicBool::new(false));
    let (stop, running) = start(controller, window.watch(workers), &is_up);
    sleep(seconds(10)).await;

    let groups = window.groups(10).groups;
    let of = |name: &str| groups.iter().find(|group| group.name == name);
    assert_eq!(of("hang").unwrap().active, 1);
    assert!(of("hang").unwrap().blocked);
    let ids: Vec<String> = window
        .dead_keys(10)
        .into_iter()
        .map(|dead| dead.id)
        .collect();
    assert_eq!(ids, [id("fail-1"), id("fail-2")]);

    is_up.store(true, Ordering::Relaxed);
    window
        .control(&Command::RetryDead { id: id("fail-1") })
        .unwrap();
    window
        .control(&Command::DropDead { id: id("fail-2") })
        .unwrap();
    sleep(seconds(1)).await;
    let retried = window.key(&id("fail-1")).unwrap();
    assert_eq!(retried.history[0].outcome, "success");
    assert!(window.dead_keys(10).is_empty());
    drop(running);
    stop.cancel();
}

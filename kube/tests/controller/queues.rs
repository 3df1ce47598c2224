//! What a controller can ask of its queue: holds, rates, debounces, groups, and queues of one's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use requeue::limiter::{Exponential, FastSlow};
use requeue::tokio::{AddOptions, WorkQueue};
use requeue_kube::{
    Action, CHANGED, CancellationToken, Context, Controller, GroupLimits, KeyQueue, Keys, Workers,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::api::{Cluster, Link};
use crate::noting::{Reconciled, Runs, note, with_maps};
use crate::{map, maps, name_of, seconds, wanted};

const TENTH: Duration = Duration::from_millis(100);

/// When something ran, in milliseconds since the start.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<u128>>>);

impl Times {
    fn take(&self) -> Vec<u128> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Runs a controller whose reconciler notes when it ran, and ends as it is told.
fn timed<Q: KeyQueue<ConfigMap>>(
    controller: Controller<ConfigMap, Q>,
    stop: &CancellationToken,
    end: fn() -> Result<Action, &'static str>,
) -> (Times, JoinHandle<()>) {
    let (times, began) = (Times::default(), Instant::now());
    let noted = times.clone();
    let workers = Workers::new(1).on_error(|_, _, _| {});
    let run = controller.run(workers, stop.clone(), move |_, _| {
        noted.0.lock().unwrap().push(began.elapsed().as_millis());
        std::future::ready(end())
    });
    let running = tokio::spawn(async { drop(run.await.unwrap()) });
    (times, running)
}

#[tokio::test(start_paused = true)]
async fn an_object_cools_down_after_each_run() {
    let (cluster, client) = with_maps(&["a"]);
    let stop = CancellationToken::new();
    let (times, running) = timed(maps(&client).cool_down(seconds(10)), &stop, || {
        Ok(Action::Success)
    });
    for turn in 0..300 {
        sleep(TENTH).await;
        cluster.put("configmaps", map("a", &turn.to_string()));
    }
    assert_eq!(times.take(), [0, 10_000, 20_000]);
    stop.cancel();
    running.await.unwrap();
}

/// kubernetes/kubernetes#136853: a run that fails changes what is watched, so that its key is added
/// at once.
#[tokio::test(start_paused = true)]
async fn an_object_that_fails_is_held_however_it_changes() {
    for holds in [false, true] {
        let (cluster, client) = with_maps(&["a"]);
        let stop = CancellationToken::new();
        let controller = maps(&client).backoff(seconds(1), seconds(8));
        let controller = if holds {
            controller.hold_failures()
        } else {
            controller
        };
        let (times, running) = timed(controller, &stop, || Err("down"));
        for turn in 0..231 {
            sleep(TENTH).await;
            cluster.put("configmaps", map("a", &turn.to_string()));
        }
        let times = times.take();
        if holds {
            assert_eq!(times, [0, 1000, 3000, 7000, 15_000, 23_000]);
        } else {
            assert!(times.len() > 200, "{}", times.len());
        }
        stop.cancel();
        running.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn runs_begin_at_a_rate() {
    let (_cluster, client) = with_maps(&["a", "b", "c", "d", "e"]);
    let stop = CancellationToken::new();
    let (times, running) = timed(maps(&client).run_rate(2.0, 2), &stop, || {
        Ok(Action::Success)
    });
    sleep(seconds(10)).await;
    assert_eq!(times.take(), [0, 0, 500, 1000, 1500]);
    stop.cancel();
    running.await.unwrap();
}

/// What is listed runs at once; of changes every 0.6 s for 12 s the quiet time never comes, and the
/// longest wait does.
#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_one_run_and_goes_ahead_of_what_was_listed() {
    let (cluster, client) = with_maps(&["a"]);
    let stop = CancellationToken::new();
    let controller = maps(&client).debounce(seconds(1), seconds(5));
    let (times, running) = timed(controller, &stop, || Ok(Action::Success));
    sleep(seconds(100)).await;
    for turn in 0..20 {
        cluster.put("configmaps", map("a", &turn.to_string()));
        sleep(Duration::from_millis(600)).await;
    }
    sleep(seconds(100)).await;
    assert_eq!(times.take(), [0, 105_000, 110_400, 112_400]);
    stop.cancel();
    running.await.unwrap();

    // Two runs of ten seconds are under way when `b` changes, and `c` was listed.
    let (cluster, client) = with_maps(&["a", "b", "c"]);
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let noted = runs.clone();
    let controller = maps(&client).debounce(seconds(1), seconds(5));
    let run = controller.run(1, stop.clone(), move |map, _| {
        noted.push(format!("{}={}", name_of(&map), wanted(&map)));
        async {
            sleep(seconds(10)).await;
            Reconciled::Ok(Action::Success)
        }
    });
    let running = tokio::spawn(run);
    sleep(seconds(1)).await;
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(60)).await;
    assert_eq!(runs.take(), ["a=1", "a=2", "b=1", "c=1"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

fn in_namespace(namespace: &str, name: &str) -> Value {
    let mut map = map(name, "1");
    map["metadata"]["namespace"] = json!(namespace);
    map
}

/// How many runs of each namespace there are, and how many there were at most.
type Active = Arc<Mutex<BTreeMap<String, [usize; 2]>>>;

/// How many runs of each namespace there are at most at once, and in which order they began.
fn count_active<Q: KeyQueue<ConfigMap>>(
    controller: Controller<ConfigMap, Q>,
    workers: usize,
    stop: &CancellationToken,
) -> (Runs, Active, JoinHandle<()>) {
    let (runs, active) = (Runs::default(), Active::default());
    let (noted, counted) = (runs.clone(), Arc::clone(&active));
    let run = controller.run(workers, stop.clone(), move |_, run: Context<ConfigMap>| {
        let namespace = run.key.namespace.unwrap();
        noted.push(format!("{namespace}/{}", run.key.name));
        let counted = Arc::clone(&counted);
        async move {
            {
                let mut counts = counted.lock().unwrap();
                let [now, most] = counts.entry(namespace.clone()).or_default();
                *now += 1;
                *most = (*most).max(*now);
            }
            sleep(seconds(1)).await;
            counted.lock().unwrap().get_mut(&namespace).unwrap()[0] -= 1;
            Reconciled::Ok(Action::Success)
        }
    });
    let running = tokio::spawn(async { drop(run.await.unwrap()) });
    (runs, active, running)
}

fn crowded() -> Cluster {
    let cluster = Cluster::new();
    for number in 0..10 {
        cluster.put("configmaps", in_namespace("busy", &format!("m{number}")));
    }
    cluster.put("configmaps", in_namespace("quiet", "m0"));
    cluster
}

#[tokio::test(start_paused = true)]
async fn no_namespace_has_more_runs_than_its_limit_or_delays_another() {
    let cluster = crowded();
    let stop = CancellationToken::new();
    let controller = maps(&cluster.client(&Link::default())).groups(
        |map| map.namespace.clone(),
        GroupLimits::new().max_active(2),
    );
    let (runs, active, running) = count_active(controller, 8, &stop);
    sleep(seconds(20)).await;
    let most = active.lock().unwrap().clone();
    assert_eq!((most["busy"][1], most["quiet"][1]), (2, 1));
    let runs = runs.take();
    assert_eq!(runs.len(), 11);
    assert!(runs[..3].contains(&"quiet/m0".to_owned()), "{runs:?}");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_ones_own_has_its_groups_its_weights_its_limiter_and_its_levels() {
    let cluster = crowded();
    let stop = CancellationToken::new();
    let limiter = FastSlow::new(seconds(1), seconds(60), 2);
    let queue = WorkQueue::builder()
        .levels::<3>()
        .limiter(limiter)
        .build_with_groups(|map: &ObjectRef<ConfigMap>| map.namespace.clone());
    queue
        .limit_group(Some("busy".to_owned()), GroupLimits::new().weight(3))
        .unwrap();
    let controller = maps(&cluster.client(&Link::default())).queue(queue.clone());
    let (runs, _, running) = count_active(controller, 1, &stop);
    sleep(Duration::from_millis(500)).await;
    let urgent = AddOptions {
        priority: Some(2),
        ..AddOptions::new()
    };
    let key = ObjectRef::new("m9").within("busy");
    queue.add_with(key, urgent).unwrap();
    sleep(seconds(20)).await;
    assert_eq!(
        runs.take()[..6],
        [
            "busy/m0", "busy/m9", "busy/m1", "busy/m2", "quiet/m0", "busy/m3"
        ]
    );
    stop.cancel();
    running.await.unwrap();
}

/// A queue without levels has one level, and one with room for one key delays the others.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_loses_no_object() {
    let names: Vec<String> = (0..9).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (cluster, client) = with_maps(&names);
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let limiter = Exponential::new(seconds(1), seconds(1));
    let queue = WorkQueue::builder().limiter(limiter).max_keys(1).build();
    let controller = maps(&client).queue(queue);
    let running = tokio::spawn(controller.run(2, stop.clone(), note(&runs)));
    sleep(seconds(1)).await;
    assert_eq!(runs.take().len(), 9);
    for name in &names {
        cluster.put("configmaps", map(name, "2"));
    }
    cluster.delete("configmaps", "m8");
    sleep(seconds(1)).await;
    let mut ran = runs.take();
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), 8, "{ran:?}");
    assert!(ran.iter().all(|run| run.ends_with("=2")), "{ran:?}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_ones_own_shows_what_the_controller_does() {
    let (cluster, client) = with_maps(&["a"]);
    let (runs, stop) = (Runs::default(), CancellationToken::new());
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
    let controller = maps(&client).queue(queue.clone());
    let running = tokio::spawn(controller.run(1, stop.clone(), note(&runs)));
    sleep(seconds(1)).await;
    queue.pause();
    cluster.put("configmaps", map("a", "2"));
    sleep(seconds(60)).await;
    assert_eq!(runs.take(), ["a=1"]);
    let key = ObjectRef::new("a").within("default");
    let state = queue.state(&key).unwrap();
    assert_eq!((queue.len(), state.priority), (1, CHANGED));
    queue.unpause();
    sleep(seconds(1)).await;
    assert_eq!(runs.take(), ["a=2"]);
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(queue.is_shutting_down());
}

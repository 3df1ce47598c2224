//! Beside kube-runtime: who gets a turn under overload, how long a change takes to its reconcile,
//! and the memory of 10,000 objects.
//!
//! `beside starvation` needs no server. `KUBE_APISERVER`, `ETCD` and `FOLDER` are as for
//! `scenarios`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::env;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{self, Config, ReconcileRequest};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use requeue_kube::{Action, CancellationToken, Keys, Workers, feed};
use requeue_kube_proof::{Problem, Server, seconds};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        [] => everything().await,
        ["starvation"] => {
            starvation().await;
            Ok(())
        }
        ["latency", who] => latency(who).await,
        ["memory", who] => memory(who).await,
        _ => Err("beside [starvation]".into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("beside: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn everything() -> Result<(), Problem> {
    starvation().await;
    let path = |name: &str| env::var_os(name).ok_or(format!("{name} is not set"));
    let (folder, apiserver, etcd) = (path("FOLDER")?, path("KUBE_APISERVER")?, path("ETCD")?);
    let server = Server::start(folder.as_ref(), apiserver.as_ref(), etcd.as_ref()).await?;
    for what in ["latency", "memory"] {
        if what == "memory" {
            let client = server.client().await?;
            fill(&client, 200, MEMORY_OBJECTS).await?;
        } else {
            fill(&server.client().await?, 0, 200).await?;
        }
        // Twice, because the first of two is at a disadvantage.
        for who in ["requeue", "kube-runtime", "requeue", "kube-runtime"] {
            let mut command = Command::new(env::current_exe()?);
            let ended = command
                .args([what, who])
                .env("KUBECONFIG", server.kubeconfig())
                .status()?;
            if !ended.success() {
                return Err(format!("{what} of {who} failed").into());
            }
        }
    }
    Ok(())
}

/// Ones that are triggered so often and take so long that one worker is not enough.
const KEYS: usize = 200;
/// Long enough for some forty rounds, so that the round in which it ends hardly counts.
const SPAN: Duration = Duration::from_secs(30);
/// How often all objects change, in milliseconds, and whether in another order each time.
const CHANGES: [(u64, bool); 4] = [(10, false), (100, false), (300, false), (300, true)];

async fn starvation() {
    println!("{KEYS} keys, one worker, a reconcile of 1 ms, {SPAN:?}: runs of each key");
    println!(
        "{:<14} {:>16} {:>6} {:>6} {:>6} {:>14} {:>10}",
        "", "all every", "least", "median", "most", "least/median", "at most 1"
    );
    for (period, shuffles) in CHANGES {
        for who in ["kube-runtime", "requeue"] {
            let runs = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
            let requests = requests(Duration::from_millis(period), shuffles);
            let contender: BoxFuture<'_, ()> = if who == "requeue" {
                Box::pin(ours(requests, Arc::clone(&runs)))
            } else {
                Box::pin(theirs(requests, Arc::clone(&runs)))
            };
            let _ = tokio::time::timeout(SPAN, contender).await;
            let runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            let mut counts: Vec<usize> = (0..KEYS)
                .map(|key| runs.get(&name(key)).copied().unwrap_or(0))
                .collect();
            counts.sort_unstable();
            let starved = counts.iter().filter(|count| **count <= 1).count();
            let (least, median, most) = (counts[0], counts[KEYS / 2], counts[KEYS - 1]);
            let every = format!("{period} ms{}", if shuffles { ", shuffled" } else { "" });
            let ratio = least as f64 / median.max(1) as f64;
            println!(
                "{who:<14} {every:>16} {least:>6} {median:>6} {most:>6} {ratio:>14.2} {starved:>10}"
            );
        }
    }
}

fn name(key: usize) -> String {
    format!("map-{key}")
}

fn map(key: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name(key));
    map.metadata.namespace = Some("default".to_owned());
    map
}

type Request = ReconcileRequest<ConfigMap>;

fn requests(period: Duration, shuffles: bool) -> Requests {
    let ticks = tokio::time::interval(period);
    let ticks = stream::unfold(ticks, |mut ticks| async {
        ticks.tick().await;
        Some(((), ticks))
    });
    let all = move |()| {
        let mut keys: Vec<usize> = (0..KEYS).collect();
        if shuffles {
            fastrand::shuffle(&mut keys);
        }
        let request = |key| Ok(Request::from(ObjectRef::from_obj(&map(key))));
        stream::iter(keys.into_iter().map(request))
    };
    ticks.flat_map(all).boxed()
}

type Requests = BoxStream<'static, Result<Request, Infallible>>;

async fn work(runs: &Mutex<HashMap<String, usize>>, name: String) {
    *runs
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(name)
        .or_default() += 1;
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn ours(requests: Requests, runs: Arc<Mutex<HashMap<String, usize>>>) {
    let queue: Keys<ConfigMap> = requeue::tokio::WorkQueue::builder().levels::<2>().build();
    let run = queue.run(1, move |key: ObjectRef<ConfigMap>| {
        let runs = Arc::clone(&runs);
        async move {
            work(&runs, key.name).await;
            Action::Success
        }
    });
    futures::join!(feed(requests, &queue), run);
}

async fn theirs(requests: Requests, runs: Arc<Mutex<HashMap<String, usize>>>) {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for key in 0..KEYS {
        writer.apply_watcher_event(&Event::InitApply(map(key)));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let reconcile = |map: Arc<ConfigMap>, runs: Arc<Mutex<HashMap<String, usize>>>| {
        Box::pin(async move {
            work(&runs, map.metadata.name.clone().unwrap_or_default()).await;
            Ok::<_, Infallible>(controller::Action::await_change())
        })
    };
    let policy = |_: Arc<ConfigMap>, _: &Infallible, _: Arc<_>| controller::Action::await_change();
    let config = Config::default().concurrency(1);
    let run = controller::applier(reconcile, policy, runs, store, requests, config);
    Box::pin(run).for_each(|_| async {}).await;
}

/// A kilobyte each.
async fn fill(client: &Client, from: usize, to: usize) -> Result<(), Problem> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let wishes = stream::iter((from..to).map(|key| {
        let (maps, mut map) = (maps.clone(), map(key));
        map.data = Some([("page".to_owned(), "x".repeat(1024))].into());
        async move {
            let created = maps.create(&Default::default(), &map).await;
            created.map(drop)
        }
    }));
    wishes.buffer_unordered(32).try_collect::<()>().await?;
    Ok(())
}

const PATCHES: usize = 500;
const MEMORY_OBJECTS: usize = 10_000;

/// Runs one of the two controllers, which calls this for every run.
fn contender(
    who: &str,
    client: &Client,
    ran: impl Fn(&ConfigMap) + Send + Sync + 'static,
) -> BoxFuture<'static, ()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let all = watcher::Config::default().timeout(290);
    let ran = Arc::new(ran);
    if who == "requeue" {
        let run = requeue_kube::Controller::new(maps, all).run(
            Workers::new(4),
            CancellationToken::new(),
            move |map, _| {
                ran(&map);
                async { Action::Success }
            },
        );
        Box::pin(async { drop(run.await) })
    } else {
        let run = controller::Controller::new(maps, all)
            .with_config(Config::default().concurrency(4))
            .run(
                move |map: Arc<ConfigMap>, _| {
                    ran(&map);
                    async { Ok::<_, Infallible>(controller::Action::await_change()) }
                },
                |_, _: &Infallible, _| controller::Action::await_change(),
                Arc::new(()),
            );
        Box::pin(run.for_each(|_| async {}))
    }
}

async fn latency(who: &str) -> Result<(), Problem> {
    let client = Client::try_default().await?;
    let (runs, mut ran) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(contender(who, &client, move |map| {
        let said = (
            map.metadata.name.clone(),
            map.metadata.labels.clone(),
            Instant::now(),
        );
        let _ = runs.send(said);
    }));
    tokio::time::sleep(seconds(3)).await;
    while ran.try_recv().is_ok() {}
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut took = Vec::new();
    for patch in 0..PATCHES {
        let label = format!("{who}-{}-{patch}", std::process::id());
        let body = json!({"metadata": {"labels": {"patch": label}}});
        let sent = Instant::now();
        // The run may come before the answer to the patch, and waits in the channel then.
        maps.patch(
            &name(patch % 200),
            &PatchParams::default(),
            &Patch::Merge(&body),
        )
        .await?;
        loop {
            let (_, labels, at) = ran.recv().await.ok_or("the controller has ended")?;
            if labels.is_some_and(|labels| labels.get("patch") == Some(&label)) {
                took.push(at.saturating_duration_since(sent));
                break;
            }
        }
    }
    running.abort();
    took.sort_unstable();
    let (p50, p99) = (took[PATCHES / 2], took[PATCHES * 99 / 100]);
    println!("{who:<14} patch to reconcile, of {PATCHES}: p50 {p50:.2?}, p99 {p99:.2?}");
    Ok(())
}

async fn memory(who: &str) -> Result<(), Problem> {
    let client = Client::try_default().await?;
    let before = resident()?;
    let (runs, mut ran) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(contender(who, &client, move |map| {
        let _ = runs.send(map.metadata.name.is_some());
    }));
    let began = Instant::now();
    for _ in 0..MEMORY_OBJECTS {
        ran.recv().await.ok_or("the controller has ended")?;
    }
    let took = began.elapsed();
    tokio::time::sleep(seconds(2)).await;
    let after = resident()?;
    running.abort();
    println!(
        "{who:<14} {MEMORY_OBJECTS} objects of 1 KB: {} MB, all run after {took:.1?}",
        (after - before) / 1024
    );
    Ok(())
}

/// In kilobytes.
fn resident() -> Result<u64, Problem> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no VmRSS")?.parse()?)
}

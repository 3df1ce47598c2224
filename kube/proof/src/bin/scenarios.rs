//! Controllers on a real API server: what is killed comes back, and everything is as wanted.
//!
//! `KUBE_APISERVER`, `KUBE_CONTROLLER_MANAGER` and `ETCD` are the programs of the server,
//! `WEB_CONTROLLER` that of `examples/web-controller`, `FOLDER` is for logs. `cargo xtask kube` sets
//! them.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use requeue_kube_proof::{
    Controller, Problem, Server, World, conform, seconds, share, until, writers,
};
use serde_json::json;

type Told = Result<String, Problem>;

const OBJECTS: usize = 1_000;

/// The names that a call may choose from.
const SCENARIOS: [&str; 11] = [
    "conformance",
    "own_writes",
    "life",
    "delays",
    "thousand",
    "kills",
    "outage",
    "compaction",
    "takeover",
    "pause",
    "shards",
];

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("scenarios: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool, Problem> {
    let path = |name: &str| -> Result<PathBuf, Problem> {
        Ok(env::var_os(name)
            .ok_or(format!("{name} is not set"))?
            .into())
    };
    let only: Vec<String> = env::args().skip(1).collect();
    if let Some(name) = only.iter().find(|only| !SCENARIOS.contains(&only.as_str())) {
        let known = SCENARIOS.join(", ");
        return Err(format!("no scenario is called `{name}`: {known}").into());
    }
    let folder = path("FOLDER")?;
    let server = Server::start(&folder, &path("KUBE_APISERVER")?, &path("ETCD")?).await?;
    let mut world = World::new(server, path("WEB_CONTROLLER").unwrap_or_default());
    let mut failed = 0;
    let mut table = String::new();
    macro_rules! scenario {
        ($name:expr, $run:ident) => {
            if only.is_empty() || only.iter().any(|only| only == stringify!($run)) {
                println!("--- {}", $name);
                let began = Instant::now();
                let told = $run(&mut world).await;
                let took = began.elapsed().as_secs_f64();
                let (mark, told) = match told {
                    Ok(told) => ("ok", told),
                    Err(problem) => {
                        failed += 1;
                        ("FAILED", problem.to_string())
                    }
                };
                println!("{mark}, {took:.1} s: {told}");
                table += &format!("{mark:<7} {took:>6.1} s  {:<28} {told}\n", $name);
            }
        };
    }
    scenario!("scripts of the test cluster", conformance);
    scenario!("own writes, late watches", own_writes);
    if env::var_os("WEB_CONTROLLER").is_some() {
        world.install().await?;
    }
    scenario!("an object's life", life);
    scenario!("a failing key's delays", delays);
    scenario!("1,000 objects", thousand);
    scenario!("kill -9 of the controller", kills);
    scenario!("the API server is killed", outage);
    scenario!("a history that is gone", compaction);
    scenario!("the leader is killed", takeover);
    scenario!("the leader is stopped", pause);
    scenario!("shards in Leases", shards);
    println!("\n{table}");
    Ok(failed == 0)
}

async fn conformance(world: &mut World) -> Told {
    let controllers = env::var_os("KUBE_CONTROLLER_MANAGER");
    let controllers = controllers.ok_or("KUBE_CONTROLLER_MANAGER is not set")?;
    conform(&mut world.server, controllers.as_ref()).await
}

async fn own_writes(world: &mut World) -> Told {
    requeue_kube_proof::own_writes(&world.server).await
}

async fn shards(world: &mut World) -> Told {
    share(&mut world.server).await
}

fn check(right: bool, what: &str) -> Result<(), Problem> {
    if right { Ok(()) } else { Err(what.into()) }
}

/// Created, changed, deleted: parts, status, events, finalizer.
async fn life(world: &mut World) -> Told {
    let controller = world.start_controller(3)?;
    world.want(0, 1, "one").await?;
    let first = world.converged(1, "one", seconds(30)).await?;
    world.want(0, 1, "two").await?;
    let second = world.converged(1, "two", seconds(10)).await?;
    check(
        controller.probe("/readyz")?.contains("readyz check passed"),
        "not ready",
    )?;
    check(
        controller
            .probe("/healthz")?
            .contains("web-controller held"),
        "not the leader",
    )?;

    let client = world.server.client().await?;
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client, "default");
    let events = events.list(&ListParams::default()).await?;
    check(!events.items.is_empty(), "no event")?;

    let webs = world.webs().await?;
    webs.delete("web-0", &DeleteParams::default()).await?;
    gone(world, 10).await?;
    Ok(format!(
        "first {first:.1?} (with the lease), changed {second:.1?}, then gone"
    ))
}

/// Nothing is left, parts included.
async fn gone(world: &World, patience: u64) -> Result<(), Problem> {
    let (webs, client) = (world.webs().await?, world.server.client().await?);
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let gone = until(seconds(patience), Duration::from_millis(100), || async {
        let webs = webs.list(&ListParams::default()).await.ok()?;
        let maps = maps.list(&ListParams::default()).await.ok()?;
        let maps = maps
            .items
            .iter()
            .filter_map(|map| map.metadata.name.as_deref());
        let left = maps.filter(|name| name.starts_with("web-")).count();
        (webs.items.is_empty() && left == 0).then_some(())
    });
    gone.await.ok_or("not everything is gone")?;
    Ok(())
}

/// A `Web` whose name no service may have fails always: what do the queue's metrics say?
async fn delays(world: &mut World) -> Told {
    let controller = world.start_controller(3)?;
    let webs = world.webs().await?;
    let bad = serde_json::from_value(json!({
        "apiVersion": "example.requeue.dev/v1", "kind": "Web",
        "metadata": {"name": "0-is-no-name-of-a-service"}, "spec": {"page": "-"},
    }))?;
    let ready = until(seconds(30), Duration::from_millis(50), || async {
        let health = controller.probe("/healthz").ok()?;
        health.contains("default/web-controller held").then_some(())
    });
    ready.await.ok_or("not the leader")?;
    webs.create(&Default::default(), &bad).await?;
    tokio::time::sleep(seconds(11)).await;
    let errors = controller.metric("controller_runtime_reconcile_errors_total")?;
    let retries = controller.metric("workqueue_retries_total")?;
    let times = failures(world, &controller)?;
    let gaps: Vec<u128> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    drop(controller);
    let patch = json!({"metadata": {"finalizers": null}});
    let name = "0-is-no-name-of-a-service";
    webs.delete(name, &DeleteParams::default()).await?;
    let merge = kube::api::Patch::Merge(patch);
    let _ = webs.patch(name, &Default::default(), &merge).await;
    let doubled = gaps.iter().enumerate().all(|(index, gap)| {
        // The first failures change parts, and so the object runs at once, whatever its backoff.
        let due = 5_u128 << index;
        let least = if index < 4 { 0 } else { due };
        (least..due + 150).contains(gap)
    });
    let told = format!("{errors} failures, {retries} retries, after ms {gaps:?}");
    check(doubled && gaps.len() >= 9, &told)?;
    Ok(told)
}

/// When the log of a controller says that a reconcile failed.
fn failures(world: &World, controller: &Controller) -> Result<Vec<Duration>, Problem> {
    let log = world
        .server
        .folder()
        .join(format!("{}.log", controller.manager));
    let text = std::fs::read_to_string(log)?;
    let failed = text
        .lines()
        .filter(|line| line.contains("reconcile failed"));
    let time = |line: &str| -> Option<Duration> {
        let stamp: k8s_openapi::jiff::Timestamp = line.split_whitespace().next()?.parse().ok()?;
        u64::try_from(stamp.as_microsecond())
            .ok()
            .map(Duration::from_micros)
    };
    Ok(failed.filter_map(time).collect())
}

async fn thousand(world: &mut World) -> Told {
    let controller = world.start_controller(3)?;
    let began = Instant::now();
    world.want(0, OBJECTS, "first").await?;
    let written = began.elapsed();
    world.converged(OBJECTS, "first", seconds(300)).await?;
    let total = began.elapsed();
    let runs = controller.metric("controller_runtime_reconcile_total")?;
    let mut controller = controller;
    let stopped = controller.stop()?;
    let told = format!("written in {written:.1?}, as wanted after {total:.1?}, {runs} runs");
    Ok(format!("{told}; stopped in {stopped:.1?}"))
}

async fn kills(world: &mut World) -> Told {
    let began = Instant::now();
    let mut controller = world.start_controller(3)?;
    for kill in 0..20_u64 {
        let page = format!("kill {kill}");
        world.want(0, OBJECTS, &page).await?;
        // At another moment each time: before it has the lease, and in the middle of its work.
        tokio::time::sleep(Duration::from_millis(kill * 250)).await;
        controller.kill();
        controller = world.start_controller(3)?;
    }
    let killed = began.elapsed();
    let after = world.converged(OBJECTS, "kill 19", seconds(300)).await?;
    drop(controller);
    Ok(format!(
        "20 in {killed:.0?}; all {OBJECTS} as wanted {after:.1?} after the last"
    ))
}

async fn outage(world: &mut World) -> Told {
    let controller = world.start_controller(15)?;
    world.want(0, OBJECTS / 2, "before").await?;
    world.server.kill();
    tokio::time::sleep(seconds(3)).await;
    world.server.start_apiserver().await?;
    world.want(OBJECTS / 2, OBJECTS, "before").await?;
    let after = world.converged(OBJECTS, "before", seconds(300)).await?;
    let restarts = controller.probe("/healthz")?;
    check(
        restarts.contains("web-controller held"),
        "the controller has not survived it",
    )?;
    Ok(format!(
        "all {OBJECTS} as wanted {after:.1?} after it was back"
    ))
}

/// The controller is stopped while objects change, the server and the history go away.
async fn compaction(world: &mut World) -> Told {
    let mut controller = world.start_controller(60)?;
    world.want(0, OBJECTS, "before").await?;
    world.converged(OBJECTS, "before", seconds(200)).await?;
    leads(&controller, 60).await?;
    controller.signal("-STOP")?;
    world.want(0, OBJECTS, "unseen").await?;
    world.server.compact()?;
    world.server.kill();
    world.server.start_apiserver().await?;
    controller.signal("-CONT")?;
    let after = world.converged(OBJECTS, "unseen", seconds(300)).await?;
    let lists = controller.probe("/readyz")?;
    check(lists.contains("passed"), "not ready")?;
    // Its lease is long.
    controller.stop()?;
    Ok(format!(
        "all {OBJECTS} as wanted {after:.1?} after the controller went on"
    ))
}

async fn takeover(world: &mut World) -> Told {
    let mut first = world.start_controller(15)?;
    leads(&first, 60).await?;
    let second = world.start_controller(15)?;
    second.ready().await?;
    world.want(0, OBJECTS, "leader").await?;
    first.kill();
    let killed = Instant::now();
    world.want(0, OBJECTS, "successor").await?;
    leads(&second, 30).await?;
    let after = killed.elapsed();
    world.converged(OBJECTS, "successor", seconds(300)).await?;
    never_both(world, &first.manager, &second.manager).await?;
    check(
        after <= seconds(16),
        &format!("the other led after {after:.1?}"),
    )?;
    Ok(format!(
        "the other led after {after:.1?} (lease 15 s), never both"
    ))
}

async fn pause(world: &mut World) -> Told {
    let first = world.start_controller(15)?;
    leads(&first, 60).await?;
    let second = world.start_controller(15)?;
    second.ready().await?;
    world.want(0, OBJECTS, "stopped").await?;
    // In the middle of its work, with requests under way.
    first.signal("-STOP")?;
    let stopped = Instant::now();
    world.want(0, OBJECTS, "other").await?;
    leads(&second, 60).await?;
    let after = stopped.elapsed();
    tokio::time::sleep(seconds(1)).await;
    first.signal("-CONT")?;
    world.converged(OBJECTS, "other", seconds(300)).await?;
    never_both(world, &first.manager, &second.manager).await?;
    Ok(format!(
        "the other led after {after:.1?}; the first went on and wrote nothing"
    ))
}

async fn leads(controller: &Controller, patience: u64) -> Result<(), Problem> {
    let leads = until(seconds(patience), Duration::from_millis(50), || async {
        let health = controller.probe("/healthz").ok()?;
        health.contains("default/web-controller held").then_some(())
    });
    leads.await.ok_or("no controller leads")?;
    Ok(())
}

/// No object was written by the first after one was written by the second.
async fn never_both(world: &World, first: &str, second: &str) -> Result<(), Problem> {
    let maps: Api<ConfigMap> = Api::namespaced(world.server.client().await?, "default");
    let maps = serde_json::to_value(maps.list(&ListParams::default()).await?.items)?;
    let maps = maps.as_array().ok_or("no list")?;
    let times = |who: &str| -> Vec<String> {
        let all = maps.iter().flat_map(writers);
        all.filter(|(manager, _)| manager == who)
            .map(|(_, time)| time)
            .collect()
    };
    let (before, after) = (
        times(first).into_iter().max(),
        times(second).into_iter().min(),
    );
    let after = after.ok_or("the second has written nothing")?;
    let right = before.as_ref().is_none_or(|before| *before <= after);
    check(
        right,
        &format!("{first} wrote at {before:?}, {second} at {after}"),
    )
}

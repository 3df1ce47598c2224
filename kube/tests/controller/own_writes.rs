//! Objects that wait for what their own runs have written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::retry::RetryPolicy;
use kube::runtime::finalizer::Event;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use proptest::prelude::*;
use requeue::tokio::WorkQueue;
use requeue_kube::{
    Action, CancellationToken, Context, Controller, Error, Keys, Leftover, SharedWatch, Workers,
    finalizer, record_writes, watch, with_error_policy,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::retry::RetryLayer;
use tower::{BoxError, Layer as _, service_fn};
use tracing::{Dispatch, Level, Subscriber};
use tracing_subscriber::layer::{self, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};

use crate::api::{Cluster, Link};
use crate::noting::Runs;
use crate::seeds::each_seed;
use crate::{map, maps, name_of, seconds, wanted};

/// What the reconcilers of these tests use.
#[derive(Clone)]
struct World {
    cluster: Cluster,
    link: Link,
    client: Client,
    runs: Runs,
    began: Instant,
}

type Running = JoinHandle<Result<Vec<Leftover<ObjectRef<ConfigMap>>>, Error>>;

impl World {
    /// Maps of these names; events of secrets come three seconds late.
    fn new(names: &[&str]) -> Self {
        let (cluster, link) = (Cluster::new(), Link::default());
        for name in names {
            cluster.put("configmaps", map(name, "1"));
        }
        link.set_lag("secrets", seconds(3), seconds(3));
        let client = cluster.client(&link);
        Self {
            cluster,
            link,
            client,
            runs: Runs::default(),
            began: Instant::now(),
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::default_namespaced(self.client.clone())
    }

    /// A controller of maps, and of the secrets that have their names.
    fn controller(&self, config: watcher::Config) -> (Controller<ConfigMap>, Store<Secret>) {
        let secrets = Api::<Secret>::all(self.client.clone());
        let owner = |secret: &Secret| {
            let name = secret.metadata.name.clone().unwrap_or_default();
            Some(ObjectRef::new(&name).within("default"))
        };
        maps(&self.client).watches_cached(secrets, config, owner)
    }

    fn note(&self, what: impl std::fmt::Display) {
        let at = self.began.elapsed().as_secs();
        self.runs.push(format!("{at} s: {what}"));
    }

    /// Runs with one worker, and puts the map `a` again after a second.
    async fn run_for<R>(
        &self,
        controller: Controller<ConfigMap>,
        time: Duration,
        reconcile: impl Fn(Arc<ConfigMap>, Context<ConfigMap>) -> R + Send + Sync + 'static,
    ) -> Vec<String>
    where
        R: Future<Output = kube::Result<Action>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let workers = Workers::new(1).timeout(seconds(100)).on_error(|_, _, _| {});
        let running = tokio::spawn(controller.run(workers, stop.clone(), reconcile));
        sleep(seconds(1)).await;
        self.cluster.put("configmaps", map("a", "2"));
        sleep(time).await;
        stop.cancel();
        running.await.unwrap().unwrap();
        self.runs.take()
    }
}

fn secret(name: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret
}

fn all() -> watcher::Config {
    watcher::Config::default()
}

fn key_of(map: &ConfigMap) -> ObjectRef<Secret> {
    ObjectRef::new(&name_of(map)).within("default")
}

/// The first run of each object creates its secret in this way; others say whether they see it.
async fn create_once(
    world: World,
    secrets: Store<Secret>,
    map: Arc<ConfigMap>,
    run: Context<ConfigMap>,
    ends: impl Fn(&World, &Context<ConfigMap>, Secret) -> kube::Result<Action>,
) -> kube::Result<Action> {
    let name = name_of(&map);
    if let Some(seen) = secrets.get(&key_of(&map)) {
        let (seen, stale) = (seen.metadata.name.is_some(), run.maybe_stale());
        world.note(format!(
            "{name} sees {seen}, attempt {}, stale {stale}",
            run.attempt
        ));
        return Ok(Action::Success);
    }
    world.note(format!("{name} creates"));
    let created = world
        .secrets()
        .create(&PostParams::default(), &secret(&name))
        .await?;
    ends(&world, &run, created)
}

#[tokio::test(start_paused = true)]
async fn a_run_sees_what_the_run_before_has_written() {
    let world = World::new(&["a", "b"]);
    let (controller, secrets) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |map, run| {
        let wrote = |_: &World, run: &Context<ConfigMap>, created: Secret| {
            run.wrote(&created)?;
            Ok(Action::Success)
        };
        create_once(inner.clone(), secrets.clone(), map, run, wrote)
    });
    // `a` changes after a second, and the only worker is free meanwhile.
    let expected = [
        "0 s: a creates",
        "0 s: b creates",
        "3 s: a sees true, attempt 1, stale false",
        "3 s: b sees true, attempt 1, stale false",
    ];
    assert_eq!(runs.await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_back_during_its_run_delays_nothing() {
    let world = World::new(&["a"]);
    let (controller, secrets) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(19), move |map, run| {
        let (world, secrets) = (inner.clone(), secrets.clone());
        async move {
            let wrote = |_: &World, run: &Context<ConfigMap>, created: Secret| {
                run.wrote(&created)?;
                Ok(Action::Success)
            };
            let ended = create_once(world, secrets, map, run, wrote).await;
            sleep(seconds(5)).await;
            ended
        }
    });
    let expected = ["0 s: a creates", "5 s: a sees true, attempt 1, stale false"];
    assert_eq!(runs.await, expected);
}

/// However the run ends. A failure counts as always, and nothing else does.
#[tokio::test(start_paused = true)]
async fn a_run_that_fails_panics_or_is_stopped_leaves_nothing_behind() {
    for way in ["error", "panic", "stopped"] {
        let world = World::new(&["a"]);
        let (controller, secrets) = world.controller(all());
        let inner = world.clone();
        let stop = CancellationToken::new();
        let workers = Workers::new(1)
            .timeout(Duration::from_millis(500))
            .on_error(|_, _, _| {});
        let run = controller.run(workers, stop.clone(), move |map, run| {
            let (world, secrets) = (inner.clone(), secrets.clone());
            async move {
                let writes = run.writes();
                let ends = |_: &World, run: &Context<ConfigMap>, created: Secret| {
                    run.wrote(&created)?;
                    assert!(way != "panic", "as it should");
                    Err(kube::Error::LinesCodecMaxLineLengthExceeded)
                };
                let ended = create_once(world, secrets, map, run, ends).await;
                if way == "stopped" && ended.is_err() {
                    drop(writes);
                    sleep(seconds(60)).await;
                }
                ended
            }
        });
        let running = tokio::spawn(run);
        sleep(seconds(1)).await;
        world.cluster.put("configmaps", map("a", "2"));
        sleep(seconds(9)).await;
        let expected = ["0 s: a creates", "3 s: a sees true, attempt 2, stale false"];
        assert_eq!(world.runs.take(), expected, "{way}");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

type Write = fn(World, Context<ConfigMap>, Api<Secret>) -> BoxFuture<'static, kube::Result<()>>;

/// Every way to write a secret that is there, in the first run, and what the second run sees of it.
#[tokio::test(start_paused = true)]
async fn every_way_to_write_is_waited_for() {
    let labels = |value: &str| json!({"metadata": {"labels": {"v": value}}});
    let writes: [(&str, Write, &str); 8] = [
        (
            "wrote",
            |world, run, _| {
                Box::pin(async move {
                    let patch = json!({"metadata": {"labels": {"v": "new"}}});
                    let (api, params) = (world.secrets(), PatchParams::default());
                    let patched = api.patch("a", &params, &Patch::Merge(patch)).await?;
                    Ok(run.wrote(&patched)?)
                })
            },
            "3 s: new",
        ),
        (
            "deleted",
            |world, run, _| {
                Box::pin(async move {
                    let old = world.secrets().get("a").await?;
                    world
                        .secrets()
                        .delete("a", &DeleteParams::default())
                        .await?;
                    Ok(run.deleted(&old)?)
                })
            },
            "3 s: none",
        ),
        (
            "unsure, and it was written",
            |world, run, _| {
                Box::pin(async move {
                    world.cluster.put("secrets", json!({"metadata": {"name": "a", "namespace": "default", "labels": {"v": "new"}}}));
                    Ok(run.unsure(&ObjectRef::<Secret>::new("a").within("default"))?)
                })
            },
            "3 s: new",
        ),
        (
            "unsure, and it was deleted",
            |world, run, _| {
                Box::pin(async move {
                    world.cluster.delete("secrets", "a");
                    Ok(run.unsure(&ObjectRef::<Secret>::new("a").within("default"))?)
                })
            },
            "3 s: none",
        ),
        (
            "a patch by the context's api",
            |_, _, api| {
                Box::pin(async move {
                    let patch = json!({"metadata": {"labels": {"v": "new"}}});
                    api.patch("a", &PatchParams::default(), &Patch::Merge(patch))
                        .await
                        .map(drop)
                })
            },
            "3 s: new",
        ),
        (
            "a replacement by the context's api",
            |_, _, api| {
                Box::pin(async move {
                    let mut secret = api.get("a").await?;
                    secret.metadata.labels =
                        Some(BTreeMap::from([("v".to_owned(), "new".to_owned())]));
                    api.replace("a", &PostParams::default(), &secret)
                        .await
                        .map(drop)
                })
            },
            "3 s: new",
        ),
        (
            "a deletion by the context's api",
            |_, _, api| {
                Box::pin(async move { api.delete("a", &DeleteParams::default()).await.map(drop) })
            },
            "3 s: none",
        ),
        (
            "deleted and created by the context's api",
            |_, _, api| {
                Box::pin(async move {
                    api.delete("a", &DeleteParams::default()).await?;
                    let mut new = secret("a");
                    new.metadata.labels =
                        Some(BTreeMap::from([("v".to_owned(), "new".to_owned())]));
                    api.create(&PostParams::default(), &new).await.map(drop)
                })
            },
            "3 s: new",
        ),
    ];
    for (way, write, seen) in writes {
        let world = World::new(&["a"]);
        let mut old = labels("old");
        old["metadata"]["name"] = json!("a");
        old["metadata"]["namespace"] = json!("default");
        world.cluster.put("secrets", old);
        let (controller, secrets) = world.controller(all());
        let inner = world.clone();
        let runs = world.run_for(controller, seconds(9), move |map, run| {
            let (world, secrets) = (inner.clone(), secrets.clone());
            async move {
                let secret = secrets.get(&key_of(&map));
                let label = |secret: &Secret| secret.metadata.labels.clone()?.remove("v");
                let label = secret.as_deref().and_then(label);
                world.note(label.as_deref().unwrap_or("none"));
                if label.as_deref() == Some("old") {
                    let api = run.api();
                    write(world, run, api).await?;
                }
                Ok(Action::Success)
            }
        });
        assert_eq!(runs.await, ["0 s: old", seen], "{way}");
    }
}

/// A write that has changed nothing, one that the store shows already, and one that failed for good.
#[tokio::test(start_paused = true)]
async fn what_has_changed_nothing_is_not_waited_for() {
    let world = World::new(&["a"]);
    world.cluster.put(
        "secrets",
        json!({"metadata": {"name": "a", "namespace": "default"}}),
    );
    let (controller, _) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |_, run| {
        let world = inner.clone();
        async move {
            world.note("runs");
            let api = run.api::<Secret>();
            let none = Patch::Merge(json!({}));
            let patched = api.patch("a", &PatchParams::default(), &none).await?;
            run.wrote(&patched)?;
            run.wrote(&patched)?;
            assert!(
                api.create(&PostParams::default(), &secret("a"))
                    .await
                    .is_err()
            );
            let gone = DeleteParams::default();
            assert!(api.delete("none", &gone).await.is_err());
            run.unsure(&ObjectRef::<Secret>::new("none").within("default"))?;
            Ok(Action::Success)
        }
    });
    // The live read of the last one takes no time here.
    assert_eq!(runs.await, ["0 s: runs", "1 s: runs"]);
}

/// A request that was carried out and whose answer is lost.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_looked_up() {
    let world = World::new(&["a"]);
    let (controller, secrets) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |map, run| {
        let (world, secrets) = (inner.clone(), secrets.clone());
        async move {
            let sees = secrets.get(&key_of(&map)).is_some();
            world.note(format!("sees {sees}, attempt {}", run.attempt));
            if !sees {
                world.link.lose_answer("secrets");
                let api = run.api::<Secret>();
                let (create, secret) = (PostParams::default(), secret("a"));
                let create = api.create(&create, &secret);
                let sent = tokio::time::timeout(Duration::from_millis(100), create).await;
                assert!(sent.is_err());
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            Ok(Action::Success)
        }
    });
    assert_eq!(
        runs.await,
        ["0 s: sees false, attempt 1", "3 s: sees true, attempt 2"]
    );
}

/// A client that repeats requests, as that of a program does with kube 4 and 5.
fn repeating(client: Client) -> Client {
    let send = service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    });
    let layer = RetryLayer::new(RetryPolicy::default());
    Client::new(layer.layer(send), "default")
}

/// Of a write that times out and has landed, the client's second try is refused.
#[tokio::test(start_paused = true)]
async fn a_write_that_its_client_repeats_is_looked_up() {
    for way in ["create", "replace", "delete"] {
        let world = World::new(&["a"]);
        if way != "create" {
            put_secret(&world, "a", "default", "old");
        }
        let client = record_writes(repeating(world.client.clone()));
        let api = Api::<Secret>::default_namespaced(client);
        let (controller, secrets) = world.controller(all());
        let inner = world.clone();
        let runs = world.run_for(controller, seconds(9), move |map, _| {
            let (world, secrets, api) = (inner.clone(), secrets.clone(), api.clone());
            async move {
                let seen = secrets.get(&key_of(&map));
                let is_new = seen.as_ref().is_some_and(|seen| seen.type_.is_some());
                world.note(format!("sees {}, changed {is_new}", seen.is_some()));
                let done = match way {
                    "create" => seen.is_some(),
                    "replace" => is_new,
                    _ => seen.is_none(),
                };
                if done {
                    return Ok(Action::Success);
                }
                world.link.time_out_next("secrets");
                let mut new = seen.as_deref().cloned().unwrap_or_else(|| secret("a"));
                new.type_ = Some("new".to_owned());
                let wrote = match way {
                    "create" => api.create(&PostParams::default(), &new).await.map(drop),
                    "replace" => api
                        .replace("a", &PostParams::default(), &new)
                        .await
                        .map(drop),
                    _ => api.delete("a", &DeleteParams::default()).await.map(drop),
                };
                Err(wrote.unwrap_err())
            }
        });
        let (before, after) = match way {
            "create" => ("sees false, changed false", "sees true, changed true"),
            "replace" => ("sees true, changed false", "sees true, changed true"),
            _ => ("sees true, changed false", "sees false, changed false"),
        };
        let runs = runs.await;
        assert_eq!(runs, [format!("0 s: {before}"), format!("3 s: {after}")]);
    }
}

/// A write that was sent once, and that the server refuses, was not carried out.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_is_not_waited_for() {
    let world = World::new(&["a"]);
    let client = record_writes(repeating(world.client.clone()));
    let api = Api::<Secret>::default_namespaced(client);
    let (controller, _) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |_, run| {
        let (world, api) = (inner.clone(), api.clone());
        async move {
            world.note(format!("attempt {}", run.attempt));
            if run.attempt > 1 {
                return Ok(Action::Success);
            }
            // Events of it come three seconds late.
            put_secret(&world, "a", "default", "theirs");
            let created = api.create(&PostParams::default(), &secret("a")).await;
            Err(created.unwrap_err())
        }
    });
    let expected = [
        "0 s: attempt 1",
        "0 s: attempt 2",
        "1 s: attempt 1",
        "1 s: attempt 2",
    ];
    let runs = runs.await;
    assert_eq!(runs[..2], expected[..2], "{runs:?}");
}

/// Counts what the library warns of.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<usize>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: layer::Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() == Level::WARN && metadata.target() == "requeue" {
            *self.0.lock().unwrap() += 1;
        }
    }
}

/// An object that the store's selector excludes may never come. That is said once.
#[tokio::test(start_paused = true)]
async fn a_write_that_does_not_come_back_is_waited_for_until_a_timeout() {
    // While there is only one, what a thread of another test logs first counts as not wanted.
    let _another = Dispatch::new(registry());
    let warnings = Warnings::default();
    let _recording = registry().with(warnings.clone()).set_default();
    let world = World::new(&["a"]);
    let (controller, _) = world.controller(all().labels("kept=yes"));
    let inner = world.clone();
    let controller = controller.own_writes_timeout(seconds(5));
    let runs = world.run_for(controller, seconds(19), move |_, run| {
        let world = inner.clone();
        async move {
            world.note(format!(
                "stale {}, timed out {}",
                run.maybe_stale(),
                run.timed_out
            ));
            let name = format!("s{}", world.began.elapsed().as_secs());
            if !run.maybe_stale() {
                let made = world
                    .secrets()
                    .create(&PostParams::default(), &secret(&name))
                    .await?;
                run.wrote(&made)?;
            }
            Ok(Action::Success)
        }
    });
    let expected = [
        "0 s: stale false, timed out false",
        "5 s: stale true, timed out false",
    ];
    assert_eq!(runs.await, expected);
    assert_eq!(*warnings.0.lock().unwrap(), 1);
}

/// A later event of the same watch shows that the excluded object will not come.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_further_has_passed_an_excluded_object() {
    let world = World::new(&["a"]);
    let (controller, _) = world.controller(all().labels("kept=yes"));
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |_, run| {
        let world = inner.clone();
        async move {
            world.note(format!("stale {}", run.maybe_stale()));
            if world.began.elapsed() < seconds(1) {
                let made = world
                    .secrets()
                    .create(&PostParams::default(), &secret("a"))
                    .await?;
                run.wrote(&made)?;
                let meta = json!({"name": "b", "namespace": "default", "labels": {"kept": "yes"}});
                world.cluster.put("secrets", json!({"metadata": meta}));
            }
            Ok(Action::Success)
        }
    });
    assert_eq!(runs.await, ["0 s: stale false", "3 s: stale false"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_in_no_store_is_named() {
    let world = World::new(&["a"]);
    let controller = maps(&world.client);
    let inner = world.clone();
    let runs = world.run_for(controller, Duration::ZERO, move |_, run| {
        let world = inner.clone();
        async move {
            let made = world
                .secrets()
                .create(&PostParams::default(), &secret("a"))
                .await;
            if let Ok(made) = made {
                world.note(run.wrote(&made).unwrap_err());
                let (store, _) = kube::runtime::reflector::store::<Secret>();
                let key = ObjectRef::new("a").within("default");
                let wait = run.wait_for(&store, key, |_| false).at_most(seconds(5));
                world.note(kube::Error::from(wait.unwrap_err()));
            }
            Ok(Action::Success)
        }
    });
    let error = "the controller has no store of secrets in the namespace default";
    let runs = runs.await;
    assert_eq!(runs[0], format!("0 s: {error}"));
    assert!(runs[1].ends_with(error), "{runs:?}");
}

/// A reconciler that was written for kube-rs: it has no context, and a client of its own.
#[tokio::test(start_paused = true)]
async fn a_client_records_for_the_run_that_uses_it() {
    let world = World::new(&["a"]);
    let (controller, secrets) = world.controller(all());
    let stop = CancellationToken::new();
    let client = record_writes(world.client.clone());
    let reconcile = move |map: Arc<ConfigMap>, world: Arc<World>| {
        let secrets = secrets.clone();
        let api = Api::<Secret>::default_namespaced(client.clone());
        async move {
            let sees = secrets.get(&key_of(&map)).is_some();
            world.note(format!("sees {sees}"));
            if !sees {
                api.create(&PostParams::default(), &secret("a")).await?;
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            Ok(Action::Success)
        }
    };
    let policy = |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<World>| Action::Snooze(seconds(1));
    let reconcile = with_error_policy(reconcile, policy, Arc::new(world.clone()));
    let running: Running = tokio::spawn(controller.run(1, stop.clone(), reconcile));
    sleep(seconds(9)).await;
    assert_eq!(world.runs.take(), ["0 s: sees false", "3 s: sees true"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_was_added_is_waited_for() {
    let world = World::new(&["a"]);
    world.link.set_lag("configmaps", seconds(3), seconds(3));
    let (trigger, triggers) = futures::channel::mpsc::unbounded();
    let controller = maps(&world.client).reconcile_on(triggers);
    let inner = world.clone();
    let api = Api::<ConfigMap>::default_namespaced(world.client.clone());
    let stop = CancellationToken::new();
    let run = controller.run(1, stop.clone(), move |map, _| {
        let (world, api) = (inner.clone(), api.clone());
        async move {
            world.note(format!("{:?}", map.metadata.finalizers));
            finalizer(&api, "example.dev/x", map, async |event| match event {
                Event::Apply(_) | Event::Cleanup(_) => Action::Success,
            })
            .await
        }
    });
    let running: Running = tokio::spawn(run);
    sleep(seconds(1)).await;
    trigger
        .unbounded_send(ObjectRef::new("a").within("default"))
        .unwrap();
    sleep(seconds(9)).await;
    let expected = ["0 s: None", "3 s: Some([\"example.dev/x\"])"];
    assert_eq!(world.runs.take(), expected);
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A task that a run has left behind writes after its end.
#[tokio::test(start_paused = true)]
async fn a_write_after_the_end_of_the_run_makes_another_when_it_has_come_back() {
    let world = World::new(&["a"]);
    let (controller, secrets) = world.controller(all());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(19), move |_, run| {
        let (world, secrets) = (inner.clone(), secrets.clone());
        async move {
            let sees = secrets
                .get(&ObjectRef::new("late").within("default"))
                .is_some();
            world.note(format!("sees {sees}"));
            if world.began.elapsed() < seconds(1) {
                let client = run.writes().client(world.client.clone());
                tokio::spawn(async move {
                    sleep(seconds(5)).await;
                    let secrets = Api::<Secret>::default_namespaced(client);
                    secrets
                        .create(&PostParams::default(), &secret("late"))
                        .await
                        .unwrap();
                });
            }
            Ok(Action::Success)
        }
    });
    assert_eq!(
        runs.await,
        ["0 s: sees false", "1 s: sees false", "8 s: sees true"]
    );
}

/// `a` writes after its run while `b` has the only room in the queue. `a` runs when there is room
/// and the write has come back, or is known not to come.
#[tokio::test(start_paused = true)]
async fn a_write_after_the_end_of_the_run_waits_for_room_too() {
    let excluding = || all().labels("kept=yes");
    for (config, b_ends, expected) in [
        (all(), 6, "8 s: a sees true, stale false"),
        (all(), 10, "10 s: a sees true, stale false"),
        (excluding(), 6, "35 s: a sees false, stale true"),
        (excluding(), 50, "50 s: a sees false, stale true"),
    ] {
        let world = World::new(&["a", "b"]);
        let (controller, secrets) = world.controller(config);
        let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().max_keys(1).build();
        let inner = world.clone();
        let other = world.clone();
        tokio::spawn(async move {
            sleep(seconds(4)).await;
            other.cluster.put("configmaps", map("b", "2"));
        });
        let controller = controller.queue(queue);
        let runs = world.run_for(controller, seconds(59), move |map, run| {
            let (world, secrets) = (inner.clone(), secrets.clone());
            async move {
                let name = name_of(&map);
                let late = ObjectRef::new("late").within("default");
                let (sees, stale) = (secrets.get(&late).is_some(), run.maybe_stale());
                world.note(format!("{name} sees {sees}, stale {stale}"));
                let now = world.began.elapsed();
                if name == "a" && now < seconds(1) {
                    let client = run.writes().client(world.client.clone());
                    tokio::spawn(async move {
                        sleep(seconds(5)).await;
                        let secrets = Api::<Secret>::default_namespaced(client);
                        let late = secret("late");
                        secrets.create(&PostParams::default(), &late).await.unwrap();
                    });
                }
                if name == "b" && now >= seconds(4) {
                    sleep(seconds(b_ends).saturating_sub(now)).await;
                }
                Ok(Action::Success)
            }
        });
        let expected = [
            "0 s: a sees false, stale false",
            "0 s: b sees false, stale false",
            "1 s: a sees false, stale false",
            "4 s: b sees false, stale false",
            expected,
        ];
        assert_eq!(runs.await, expected, "until {b_ends} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_hands_back_what_waits_with_its_time() {
    let world = World::new(&["a"]);
    let (controller, _) = world.controller(all());
    let stop = CancellationToken::new();
    let inner = world.clone();
    let run = controller.run(1, stop.clone(), move |_, run| {
        let world = inner.clone();
        async move {
            let made = world
                .secrets()
                .create(&PostParams::default(), &secret("a"))
                .await?;
            run.wrote(&made)?;
            Ok::<_, kube::Error>(Action::Success)
        }
    });
    let running: Running = tokio::spawn(run);
    sleep(seconds(1)).await;
    stop.cancel();
    let left = running.await.unwrap().unwrap();
    assert_eq!((left.len(), left[0].left), (1, seconds(29)));
    assert_eq!(left[0].failures, 0);
}

fn put_secret(world: &World, name: &str, namespace: &str, value: &str) {
    let meta = json!({"name": name, "namespace": namespace, "labels": {"v": value}});
    let secret: Value = json!({"metadata": meta});
    world.cluster.put("secrets", secret);
}

fn has(value: &'static str) -> impl Fn(Option<&Secret>) -> bool + Send + Sync {
    move |secret| {
        let labels = secret.and_then(|secret| secret.metadata.labels.as_ref());
        labels.is_some_and(|labels| labels.get("v").is_some_and(|is| is == value))
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_objects() {
    for (what, expected) in [
        ("there already", vec!["0 s: waits", "0 s: timed out false"]),
        ("comes", vec!["0 s: waits", "7 s: timed out false"]),
        (
            "comes during the run",
            vec!["0 s: waits", "8 s: timed out false"],
        ),
        ("goes", vec!["0 s: waits", "9 s: timed out false"]),
        ("both", vec!["0 s: waits", "9 s: timed out false"]),
        ("never", vec!["0 s: waits", "20 s: timed out true"]),
        ("panics", vec!["0 s: waits", "0 s: timed out false"]),
        ("fails", vec!["0 s: waits", "1 s: timed out false"]),
    ] {
        let world = World::new(&["a"]);
        put_secret(&world, "there", "vault", "1");
        let (controller, secrets) = world.controller(all());
        let inner = world.clone();
        let cluster = world.clone();
        tokio::spawn(async move {
            sleep(seconds(4)).await;
            put_secret(&cluster, "comes", "vault", "1");
            sleep(seconds(2)).await;
            put_secret(&cluster, "there", "vault", "2");
        });
        let first = std::sync::atomic::AtomicBool::new(true);
        let runs = world.run_for(controller, seconds(29), move |_, run| {
            let (world, secrets) = (inner.clone(), secrets.clone());
            let first = first.swap(false, std::sync::atomic::Ordering::SeqCst);
            async move {
                if !first {
                    world.note(format!("timed out {}", run.timed_out));
                    return Ok(Action::Success);
                }
                world.note("waits");
                let there = ObjectRef::<Secret>::new("there").within("vault");
                let comes = ObjectRef::<Secret>::new("comes").within("vault");
                let wait = match what {
                    "there already" => run.wait_for(&secrets, there, has("1")),
                    "comes" | "comes during the run" => run.wait_for(&secrets, comes, has("1")),
                    "goes" => run.wait_for(&secrets, there, |there| !has("1")(there)),
                    "both" => {
                        let comes = run.wait_for(&secrets, comes, has("1"));
                        comes.and(&secrets, there, has("2"))
                    }
                    "panics" => run.wait_for(&secrets, comes, |_| panic!("as it should")),
                    _ => run.wait_for(&secrets, there, has("never")),
                };
                let action = wait.at_most(seconds(20))?;
                if what == "comes during the run" {
                    sleep(seconds(8)).await;
                }
                if what == "fails" {
                    // It ends in another way, and waits for nothing.
                    return Ok(Action::Success);
                }
                Ok(action)
            }
        });
        // `a` changes after a second, which does not end the wait.
        let mut runs = runs.await;
        if what == "there already" || what == "panics" {
            assert_eq!(runs.pop().unwrap(), "1 s: timed out false", "{what}");
        }
        assert_eq!(runs, expected, "{what}");
    }
}

/// A program may take a key out of its own queue while the key waits. What it waited for goes too.
#[tokio::test(start_paused = true)]
async fn nothing_is_kept_for_a_key_that_is_cancelled_while_it_waits() {
    let world = World::new(&["a"]);
    let (controller, secrets) = world.controller(all());
    let queue: Keys<ConfigMap> = WorkQueue::builder().levels::<2>().build();
    let (stop, kept) = (CancellationToken::new(), Arc::new(Mutex::new(Weak::new())));
    let predicate = Arc::clone(&kept);
    let run = controller
        .queue(queue.clone())
        .run(1, stop.clone(), move |_, run| {
            let held = Arc::new(());
            *predicate.lock().unwrap() = Arc::downgrade(&held);
            let never = ObjectRef::new("never").within("default");
            let wait = run.wait_for(&secrets, never, move |_| Arc::strong_count(&held) == 0);
            let ended = wait.at_most(Duration::MAX).map_err(kube::Error::from);
            std::future::ready(ended)
        });
    let running = tokio::spawn(run);
    sleep(seconds(120)).await;
    assert!(kept.lock().unwrap().upgrade().is_some(), "it waits");
    let key = ObjectRef::new("a").within("default");
    assert!(queue.cancel(&key).is_some());
    sleep(seconds(61)).await;
    assert!(kept.lock().unwrap().upgrade().is_none(), "it is kept");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// What happens while watches are up to five seconds late.
#[derive(Clone, Debug)]
enum Step {
    Want(u8, u8),
    /// Something else asks for a run of every object.
    Ask,
    /// Of 100 requests so many fail.
    Failures(u8),
    /// Tenths of a second.
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u8, 0..10_u8).prop_map(|(object, want)| Step::Want(object, want)),
        4 => Just(Step::Ask),
        1 => (0..40_u8).prop_map(Step::Failures),
        6 => (0..30_u8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

/// Which controller it is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Recording,
    /// The same, with a client that repeats requests.
    Repeating,
    /// As before there was anything to record with.
    Plain,
    KubeRuntime,
}

/// The runs of a history.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    runs: usize,
    /// Those that began on an object older than its own last write.
    stale: usize,
    last: BTreeMap<String, u64>,
}

fn version_of(map: &ConfigMap) -> u64 {
    map.metadata
        .resource_version
        .as_ref()
        .unwrap()
        .parse()
        .unwrap()
}

impl Counts {
    /// A map is as wanted when its annotation says what its data wants.
    async fn reconcile(
        self,
        map: Arc<ConfigMap>,
        api: Api<ConfigMap>,
        (kind, cluster): (Kind, Cluster),
    ) -> kube::Result<Duration> {
        let name = name_of(&map);
        {
            let mut state = self.0.lock().unwrap();
            state.runs += 1;
            let last = state.last.get(&name).copied().unwrap_or_default();
            state.stale += usize::from(version_of(&map) < last);
        }
        let want = wanted(&map);
        let is = map
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get("is"));
        if is != Some(&want) {
            let wrote = if kind == Kind::Repeating {
                // What its client repeats is refused if it has landed.
                let mut changed = (*map).clone();
                let annotations = changed.metadata.annotations.get_or_insert_default();
                annotations.insert("is".to_owned(), want.clone());
                api.replace(&name, &PostParams::default(), &changed).await
            } else {
                let patch = json!({"metadata": {"annotations": {"is": want}}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
            };
            // What has failed may have landed all the same.
            let truth = cluster.get("configmaps", &name).unwrap();
            let has_landed = truth["metadata"]["annotations"]["is"] == want.as_str();
            if wrote.is_ok() || has_landed {
                let truth = serde_json::from_value(truth).unwrap();
                let written = wrote.as_ref().unwrap_or(&truth);
                let mut state = self.0.lock().unwrap();
                state.last.insert(name, version_of(written));
            }
            wrote?;
        }
        // It looks again soon, as many do.
        Ok(seconds(1))
    }
}

/// Runs a history. Returns how many runs there were, and how many of them were stale.
fn simulate(steps: &[Step], kind: Kind) -> (usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (cluster, link) = (Cluster::new(), Link::seeded(1));
        link.set_lag("configmaps", Duration::ZERO, seconds(5));
        let client = match kind {
            Kind::Repeating => repeating(cluster.client(&link)),
            _ => cluster.client(&link),
        };
        let (counts, stop) = (Counts::default(), CancellationToken::new());
        let (ask, asked) = futures::channel::mpsc::unbounded();
        let (noted, truth) = (counts.clone(), cluster.clone());
        let running: BoxFuture<'static, ()> = if kind == Kind::KubeRuntime {
            let api = Api::<ConfigMap>::default_namespaced(client.clone());
            let reconcile = move |map, api: Arc<Api<ConfigMap>>| {
                let run = noted
                    .clone()
                    .reconcile(map, (*api).clone(), (kind, truth.clone()));
                async { run.await.map(kube::runtime::controller::Action::requeue) }
            };
            let policy = |_, _: &kube::Error, _| {
                kube::runtime::controller::Action::requeue(Duration::from_millis(20))
            };
            let controller = kube::runtime::Controller::new(Api::all(client), all());
            let controller = controller.reconcile_all_on(asked);
            let ended = stop.clone().cancelled_owned();
            let controller = controller.graceful_shutdown_on(ended);
            let runs = controller.run(reconcile, policy, Arc::new(api));
            Box::pin(runs.for_each(|_| async {}))
        } else {
            let workers = Workers::new(2).on_error(|_, _, _| {});
            let run = maps(&client).reconcile_all_on(asked).run(
                workers,
                stop.clone(),
                move |map, run| {
                    let api = match kind {
                        Kind::Recording | Kind::Repeating => run.api(),
                        _ => Api::default_namespaced(client.clone()),
                    };
                    let run = noted.clone().reconcile(map, api, (kind, truth.clone()));
                    async { run.await.map(Action::RequeueAfter) }
                },
            );
            Box::pin(async move { drop(run.await.unwrap()) })
        };
        let running = tokio::spawn(running);
        let name = |object: &u8| format!("object-{object}");
        for step in steps {
            match step {
                Step::Want(object, want) => {
                    cluster.put("configmaps", map(&name(object), &want.to_string()));
                }
                Step::Ask => ask.unbounded_send(()).unwrap(),
                Step::Failures(failures) => {
                    link.set_faults(Duration::ZERO, u64::from(*failures), 0);
                }
                Step::Wait(tenths) => sleep(Duration::from_millis(u64::from(*tenths) * 100)).await,
            }
        }
        link.set_faults(Duration::ZERO, 0, 0);
        sleep(seconds(60)).await;
        for object in 0..3 {
            if let Some(map) = cluster.get("configmaps", &name(&object)) {
                let (want, is) = (&map["data"]["want"], &map["metadata"]["annotations"]["is"]);
                assert_eq!(want, is, "{object} is not as wanted in the end");
            }
        }
        stop.cancel();
        running.await.unwrap();
        let state = counts.0.lock().unwrap();
        (state.runs, state.stale)
    })
}

/// `KUBE_SEEDS=1000 cargo test … no_run_is_older -- --nocapture` prints what the four
/// controllers do.
#[test]
fn no_run_is_older_than_its_own_last_write() {
    let sums = RefCell::new([(0, 0); 4]);
    each_seed(20, &steps(), |steps| {
        let kinds = [
            Kind::Recording,
            Kind::Repeating,
            Kind::Plain,
            Kind::KubeRuntime,
        ];
        for (kind, sum) in kinds.into_iter().zip(sums.borrow_mut().iter_mut()) {
            let (runs, stale) = simulate(steps, kind);
            *sum = (sum.0 + runs, sum.1 + stale);
        }
        let [recording, repeating, ..] = *sums.borrow();
        let stale = recording.1 + repeating.1;
        let ended = (stale == 0)
            .then_some(())
            .ok_or(format!("{stale} stale runs"));
        (String::new(), ended)
    });
    let [recording, repeating, plain, kube_runtime] = sums.into_inner();
    println!(
        "runs, and stale ones: {recording:?}, repeating {repeating:?}, not recorded {plain:?}, kube-runtime {kube_runtime:?}"
    );
    assert!(
        plain.1 > 0 && kube_runtime.1 > 0,
        "there was nothing to see"
    );
}

/// A reconciler that writes and then fails, while everything else keeps asking for runs: one
/// failure per step of the backoff, and each retry waits for the later of backoff and write.
#[tokio::test(start_paused = true)]
async fn failures_beside_writes_grow_with_the_backoff_alone() {
    let world = World::new(&["a"]);
    put_secret(&world, "a", "default", "0");
    let (controller, _) = world.controller(all());
    let controller = controller
        .hold_failures()
        .backoff(seconds(1), seconds(1000));
    let inner = world.clone();
    let cluster = world.cluster.clone();
    let adds = tokio::spawn(async move {
        for want in 0_u32.. {
            sleep(Duration::from_millis(100)).await;
            cluster.put("configmaps", map("a", &want.to_string()));
        }
    });
    let runs = world.run_for(controller, seconds(49), move |_, run| {
        let world = inner.clone();
        async move {
            world.note(format!("attempt {}", run.attempt));
            let label = json!({"metadata": {"labels": {"v": run.attempt.to_string()}}});
            let (api, params) = (run.api::<Secret>(), PatchParams::default());
            api.patch("a", &params, &Patch::Merge(label)).await?;
            Err(kube::Error::LinesCodecMaxLineLengthExceeded)
        }
    });
    let expected = [
        "0 s: attempt 1",
        "3 s: attempt 2",
        "6 s: attempt 3",
        "10 s: attempt 4",
        "18 s: attempt 5",
        "34 s: attempt 6",
    ];
    assert_eq!(runs.await, expected);
    adds.abort();
}

/// A controller of streams, with stores that are the user's.
#[tokio::test(start_paused = true)]
async fn the_store_of_a_stream_is_waited_for() {
    let world = World::new(&["a"]);
    let (maps, writer) = kube::runtime::reflector::store();
    let events = watch(Api::<ConfigMap>::all(world.client.clone()), all()).reflect(writer);
    let (secrets, writer) = kube::runtime::reflector::store::<Secret>();
    let parts = watch(Api::<Secret>::all(world.client.clone()), all()).reflect(writer);
    let controller = Controller::for_stream(events, maps)
        .client(world.client.clone())
        .owns_stream(parts)
        .fills(secrets.clone());
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(9), move |map, run| {
        let (world, secrets) = (inner.clone(), secrets.clone());
        async move {
            let sees = secrets.get(&key_of(&map)).is_some();
            world.note(format!("sees {sees}"));
            if !sees {
                let api = run.api();
                api.create(&PostParams::default(), &secret("a")).await?;
            }
            Ok(Action::Success)
        }
    });
    assert_eq!(runs.await, ["0 s: sees false", "3 s: sees true"]);
}

/// A write to a namespace that no stream watches never comes: nothing waits for it.
#[tokio::test(start_paused = true)]
async fn a_stream_of_one_namespace_is_not_waited_for_elsewhere() {
    let world = World::new(&["a"]);
    let api = |namespace| Api::<Secret>::namespaced(world.client.clone(), namespace);
    let (secrets, writer) = kube::runtime::reflector::store::<Secret>();
    let parts = watch(api("default"), all()).reflect(writer);
    let controller = maps(&world.client)
        .owns_stream(parts)
        .fills_within(secrets, "default");
    let inner = world.clone();
    let runs = world.run_for(controller, seconds(40), move |_, run| {
        let world = inner.clone();
        async move {
            world.note(format!("stale {}", run.maybe_stale()));
            let api = Api::<Secret>::namespaced(run.client(), "elsewhere");
            let at = world.began.elapsed().as_secs();
            let secret = secret(&format!("s{at}"));
            let created = api.create(&PostParams::default(), &secret).await?;
            assert!(run.wrote(&created).is_err(), "it is in no store");
            Ok(Action::Success)
        }
    });
    assert_eq!(runs.await, ["0 s: stale false", "1 s: stale false"]);
}

/// Two controllers of one shared watch, whose store the first to poll fills. Each waits until its
/// own subscription has brought the write, in whichever order its builder was called.
#[tokio::test(start_paused = true)]
async fn the_store_of_a_shared_watch_is_waited_for() {
    for waits_first in [true, false] {
        let world = World::new(&["a"]);
        let shared = SharedWatch::new(Api::<Secret>::all(world.client.clone()), all());
        let stop = CancellationToken::new();
        let running = ["one", "two"].map(|own| {
            let (controller, secrets) = (maps(&world.client), shared.store());
            let controller = if waits_first {
                let controller = controller.waits_for(secrets.clone());
                controller.owns_stream(shared.subscribe())
            } else {
                let controller = controller.owns_stream(shared.subscribe());
                controller.waits_for(secrets.clone())
            };
            let controller = controller.fills(secrets.clone());
            let inner = world.clone();
            let run = controller.run(1, stop.clone(), move |_, run| {
                let (world, secrets) = (inner.clone(), secrets.clone());
                async move {
                    let key = ObjectRef::new(own).within("default");
                    let sees = secrets.get(&key).is_some();
                    world.note(format!("{own} sees {sees}"));
                    if !sees {
                        let api = run.api();
                        api.create(&PostParams::default(), &secret(own)).await?;
                    }
                    Ok::<_, kube::Error>(Action::Success)
                }
            });
            tokio::spawn(run)
        });
        sleep(seconds(1)).await;
        world.cluster.put("configmaps", map("a", "2"));
        sleep(seconds(9)).await;
        let mut runs = world.runs.take();
        runs.sort();
        let expected = [
            "0 s: one sees false",
            "0 s: two sees false",
            "3 s: one sees true",
            "3 s: two sees true",
        ];
        assert_eq!(runs, expected, "{waits_first}");
        assert_eq!(world.cluster.lists("secrets"), 1);
        stop.cancel();
        for running in running {
            assert_eq!(running.await.unwrap().unwrap().len(), 0);
        }
    }
}

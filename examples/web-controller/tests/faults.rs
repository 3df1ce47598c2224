//! The controller under random faults: correct, and with five planted bugs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event as Notice, EventType, Recorder, Reporter};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, CustomResourceExt, Resource, ResourceExt};
use requeue_kube::{Action, CancellationToken, Leader, Workers};
use requeue_kube_testing::{Cluster, Failure, Faults, Request, Simulation};
use serde_json::{from_value, json};
use web_controller::controller;
use web_controller::crd::Web;
use web_controller::reconcile::{Data, MANAGER, reconcile};

/// The planted bug of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// It looks for the release of a generation in a list that may be stale, and makes one if there
    /// is none.
    TwoReleases,
    /// It makes an entry outside the cluster before it adds the finalizer that removes the entry.
    LostFinalizer,
    /// Two of its parts write the same field of the status.
    FightingStatus,
    /// It watches its own events.
    OwnEvents,
    /// After losing its lease, it lets the tasks finish that its runs have left behind.
    LateLeader,
}

async fn process(client: Client, bug: Bug, elects: bool) {
    static BORN: AtomicUsize = AtomicUsize::new(0);
    let born = BORN.fetch_add(1, Ordering::Relaxed);
    let mut controller = controller(&client);
    if bug == Bug::OwnEvents {
        let events = Api::<Event>::all(client.clone());
        controller = controller.watches(events, watcher::Config::default(), |event: &Event| {
            let web = event.regarding.as_ref()?;
            Some(ObjectRef::new(web.name.as_deref()?).within(web.namespace.as_deref()?))
        });
    }
    if elects {
        let leader = Leader::lease(client.clone(), "default", MANAGER);
        controller = controller.leader(leader.identity(format!("process-{born}")));
    }
    let data = Arc::new(Data::new(client.clone(), MANAGER.to_owned()));
    let workers = Workers::new(2);
    let ended = controller.run(workers, CancellationToken::new(), move |web, _| {
        run(web, Arc::clone(&data), client.clone(), bug, born)
    });
    // A lost lease ends the process. It is started again.
    let _ = ended.await;
    if bug == Bug::LateLeader {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

async fn run(
    web: Arc<Web>,
    data: Arc<Data>,
    client: Client,
    bug: Bug,
    born: usize,
) -> Result<Action, Box<dyn std::error::Error + Send + Sync>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let webs: Api<Web> = Api::default_namespaced(client.clone());
    let name = web.name_any();
    let is_deleted = web.metadata.deletion_timestamp.is_some();
    match bug {
        Bug::TwoReleases if !is_deleted => {
            let prefix = format!("{name}-{}-", web.metadata.generation.unwrap_or_default());
            let listed = maps.list(&ListParams::default().match_any()).await?;
            if !listed
                .items
                .iter()
                .any(|map| map.name_any().starts_with(&prefix))
            {
                let owner = web.controller_owner_ref(&());
                let release = json!({"metadata": {
                    "generateName": prefix, "ownerReferences": [owner],
                }});
                maps.create(&PostParams::default(), &from_value(release)?)
                    .await?;
            }
        }
        Bug::LostFinalizer => {
            let entry = format!("dns-{name}");
            if is_deleted {
                let gone = maps.delete(&entry, &DeleteParams::default()).await;
                match gone {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    gone => drop(gone?),
                }
            } else {
                let entry = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": entry},
                });
                let params = PatchParams::apply("dns").force();
                maps.patch(
                    entry["metadata"]["name"].as_str().unwrap(),
                    &params,
                    &Patch::Apply(&entry),
                )
                .await?;
            }
        }
        Bug::FightingStatus => {
            static READY: AtomicI64 = AtomicI64::new(1);
            let ready = READY.fetch_add(1, Ordering::Relaxed) % 7 + 1;
            let status =
                Patch::Merge(json!({"status": {"observedGeneration": 0, "readyReplicas": ready}}));
            webs.patch_status(&name, &PatchParams::default(), &status)
                .await?;
        }
        Bug::OwnEvents => {
            let notice = Notice {
                type_: EventType::Normal,
                reason: "Reconciled".to_owned(),
                note: None,
                action: "Reconcile".to_owned(),
                secondary: None,
            };
            let recorder = Recorder::new(client, Reporter::from(MANAGER));
            recorder.publish(&notice, &web.object_ref(&())).await?;
        }
        Bug::LateLeader => {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let seen = json!({"metadata": {"annotations": {"seen-by": born.to_string()}}});
                let _ = webs
                    .patch(&name, &PatchParams::default(), &Patch::Merge(&seen))
                    .await;
            });
        }
        Bug::None | Bug::TwoReleases => {}
    }
    Ok(reconcile(web, data).await?)
}

fn web(name: &str, page: &str) -> Web {
    let web = json!({
        "apiVersion": "example.requeue.dev/v1", "kind": "Web",
        "metadata": {"name": name}, "spec": {"page": page},
    });
    from_value(web).unwrap()
}

fn webs(client: Client) -> Api<Web> {
    Api::default_namespaced(client)
}

fn simulation(bug: Bug, elects: bool) -> Simulation {
    Simulation::new(move |client| process(client, bug, elects))
        .install(&Web::crd())
        .step("a person creates web a", async |client| {
            webs(client)
                .create(&PostParams::default(), &web("a", "one"))
                .await
                .unwrap();
        })
        .step("and web b", async |client| {
            webs(client)
                .create(&PostParams::default(), &web("b", "one"))
                .await
                .unwrap();
        })
        .step("changes the page of a", async |client| {
            let patch = Patch::Merge(json!({"spec": {"page": "two"}}));
            webs(client)
                .patch("a", &PatchParams::default(), &patch)
                .await
                .unwrap();
        })
        .step("and deletes b", async |client| {
            webs(client)
                .delete("b", &DeleteParams::default())
                .await
                .unwrap();
        })
}

/// Checks that web `a` is served as wanted, and that nothing is left of `b`.
fn as_wanted(cluster: &Cluster) -> Result<(), String> {
    let webs = cluster.list::<Web>();
    let names: Vec<String> = webs.iter().map(ResourceExt::name_any).collect();
    if names != ["a"] {
        return Err(format!("webs {names:?}"));
    }
    let observed = webs[0]
        .status
        .as_ref()
        .map(|status| status.observed_generation);
    if observed != webs[0].metadata.generation {
        return Err(format!(
            "observed {observed:?} of {:?}",
            webs[0].metadata.generation
        ));
    }
    let page = cluster
        .get::<ConfigMap>("default", "a")
        .and_then(|map| map.data);
    if page.is_none_or(|data| data["index.html"] != "two") {
        return Err("the page is not the one of a".to_owned());
    }
    let counts = (
        cluster.list::<Deployment>().len(),
        cluster.list::<Service>().len(),
    );
    if counts != (1, 1) {
        return Err(format!("{counts:?} deployments and services"));
    }
    Ok(())
}

/// Checks that only the last one to take or renew the lease writes.
fn only_the_leader_writes() -> impl Fn(&Cluster, &Request) -> Result<(), String> + Send + Sync {
    let leader = Mutex::new(None);
    move |_, request| {
        let mut leader = leader.lock().unwrap();
        if request.resource == "leases.coordination.k8s.io" {
            let holder = &request.object.as_ref().unwrap()["spec"]["holderIdentity"];
            let is_held = holder.as_str().is_some_and(|holder| !holder.is_empty());
            *leader = is_held.then(|| request.client.clone());
        } else if request.client.starts_with("replica") && *leader != Some(request.client.clone()) {
            return Err(format!("{} writes, and {leader:?} leads", request.client));
        }
        Ok(())
    }
}

fn found(simulation: &Simulation) -> Failure {
    let failure = simulation
        .check()
        .expect_err("the bug is found within 200 seeds");
    println!("{failure}");
    failure
}

#[test]
fn it_withstands_every_fault() {
    simulation(Bug::None, false)
        .finally("web a is as wanted", as_wanted)
        .check()
        .unwrap();
}

#[test]
fn of_two_replicas_only_the_leader_writes() {
    // A late write is not a bug here, because only a fence at its target could refuse it.
    simulation(Bug::None, true)
        .replicas(2)
        .faults(
            Faults::all()
                .late_effects(false)
                .clocks_apart(Duration::from_secs(3600)),
        )
        .always("only the leader writes", only_the_leader_writes())
        .finally("web a is as wanted", as_wanted)
        .seeds(0..20)
        .check()
        .unwrap();
}

#[test]
fn a_release_that_is_made_twice_is_found() {
    let one_each = |cluster: &Cluster, _: &Request| {
        let maps = cluster.list::<ConfigMap>();
        let of = |prefix: &str| {
            maps.iter()
                .filter(|map| map.name_any().starts_with(prefix))
                .count()
        };
        let counts = ["a-1-", "a-2-", "b-1-"].map(of);
        if counts.iter().all(|count| *count <= 1) {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    };
    let failure = found(&simulation(Bug::TwoReleases, false).always("a release each", one_each));
    assert_eq!(failure.property, "a release each");
}

#[test]
fn an_entry_that_outlives_its_object_is_found() {
    let no_stale_entry = |cluster: &Cluster| {
        let is_stale = cluster.get::<ConfigMap>("default", "dns-b").is_some();
        if is_stale {
            Err("dns-b is left".to_owned())
        } else {
            Ok(())
        }
    };
    let simulation =
        simulation(Bug::LostFinalizer, false).finally("no stale entry", no_stale_entry);
    assert_eq!(found(&simulation).property, "no stale entry");
}

#[test]
fn a_status_that_fights_itself_is_found() {
    let failure = found(&simulation(Bug::FightingStatus, false));
    assert_eq!(failure.property, "the controller comes to rest");
}

#[test]
fn a_storm_of_its_own_events_is_found() {
    let failure = found(&simulation(Bug::OwnEvents, false));
    assert_eq!(failure.property, "the controller comes to rest");
}

#[test]
fn a_leader_that_writes_late_is_found() {
    let simulation = simulation(Bug::LateLeader, true)
        .replicas(2)
        .faults(Faults::none().cut_offs(true).kills(true).errors(true))
        .always("only the leader writes", only_the_leader_writes());
    assert_eq!(found(&simulation).property, "only the leader writes");
}

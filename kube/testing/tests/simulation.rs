//! A controller on plain kube-runtime, right and with planted bugs, under drawn faults.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use requeue_kube_testing::{Cluster, Failure, Faults, Request, Simulation};
use serde_json::json;

/// What is wrong with the controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// It makes a secret with a generated name if its list has none, and forgets that a create
    /// that failed may have landed.
    CreatesTwice,
    /// It writes the time into what it makes, and so runs itself for ever.
    NeverRests,
    /// It asks for something that this cluster does not do.
    Unsupported,
}

/// Each config map wants a secret with the same value.
async fn controller(client: Client, bug: Bug) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let config = watcher::Config::default;
    Controller::new(maps, config())
        .owns(secrets, config())
        .shutdown_on_signal()
        .run(
            move |map, client| reconcile(map, client, bug),
            |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client),
        )
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>, bug: Bug) -> kube::Result<Action> {
    let secrets: Api<Secret> = Api::default_namespaced((*client).clone());
    let want = map
        .data
        .as_ref()
        .and_then(|data| data.get("want"))
        .cloned()
        .unwrap_or_default();
    let mut secret = Secret {
        metadata: ObjectMeta {
            name: Some(map.name_any()),
            owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        string_data: Some(BTreeMap::from([("want".to_owned(), want)])),
        ..Secret::default()
    };
    match bug {
        Bug::CreatesTwice => {
            let own = format!("{}-", map.name_any());
            // Any version: the list may be older than the last write.
            let list = secrets.list(&ListParams::default().match_any()).await?;
            if !list
                .items
                .iter()
                .any(|secret| secret.name_any().starts_with(&own))
            {
                secret.metadata.name = None;
                secret.metadata.generate_name = Some(own);
                secrets.create(&PostParams::default(), &secret).await?;
            }
            return Ok(Action::await_change());
        }
        Bug::NeverRests => {
            static RUNS: AtomicU64 = AtomicU64::new(0);
            let run = RUNS.fetch_add(1, Ordering::Relaxed);
            secret.metadata.annotations =
                Some(BTreeMap::from([("checked".to_owned(), run.to_string())]));
        }
        Bug::Unsupported => {
            secrets.get_subresource("approval", "a").await?;
        }
        Bug::None => {}
    }
    let params = PatchParams::apply("mirror").force();
    secrets
        .patch(&map.name_any(), &params, &Patch::Apply(&secret))
        .await?;
    Ok(Action::await_change())
}

fn want(value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"want": value}})).unwrap()
}

fn simulation(bug: Bug) -> Simulation {
    creation(bug).step("and changes it", async |client: Client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let patch = Patch::Merge(want("2"));
        maps.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
    })
}

fn creation(bug: Bug) -> Simulation {
    Simulation::new(move |client| controller(client, bug)).step(
        "a person creates config map a",
        async |client: Client| {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            maps.create(&PostParams::default(), &want("1"))
                .await
                .unwrap();
        },
    )
}

fn one_secret(cluster: &Cluster) -> Result<(), String> {
    match cluster.list::<Secret>().len() {
        1 => Ok(()),
        others => Err(format!("{others} secrets")),
    }
}

fn at_most_one_secret(cluster: &Cluster, _: &Request) -> Result<(), String> {
    if cluster.list::<Secret>().is_empty() {
        Ok(())
    } else {
        one_secret(cluster)
    }
}

fn mirrored(cluster: &Cluster) -> Result<(), String> {
    one_secret(cluster)?;
    let secrets = cluster.list::<Secret>();
    let data = secrets[0].data.as_ref().and_then(|data| data.get("want"));
    if data.is_some_and(|want| want.0 == b"2") {
        return Ok(());
    }
    Err(format!("the secret has {data:?}"))
}

fn failure(simulation: Simulation) -> Failure {
    simulation.check().expect_err("the bug is found")
}

#[test]
fn a_controller_that_is_right_withstands_every_fault() {
    let checked = simulation(Bug::None)
        .always("there is at most one secret", at_most_one_secret)
        .finally("the secret has the value of the config map", mirrored)
        .seeds(0..60)
        .check()
        .unwrap();
    assert_eq!(checked.histories, 60);
    assert!(checked.requests > 60 * 5, "{checked:?}");
}

#[test]
fn a_create_that_trusts_an_old_list_is_found_and_told_as_a_short_story() {
    let failure = failure(
        simulation(Bug::CreatesTwice).always("there is at most one secret", at_most_one_secret),
    );
    assert_eq!(failure.property, "there is at most one secret");
    assert_eq!(failure.message, "2 secrets");
    let creates = failure
        .story
        .iter()
        .filter(|line| line.contains("create secrets"))
        .count();
    assert!(creates >= 2, "{failure}");
    let faults = failure
        .story
        .iter()
        .filter(|line| line.contains("!!"))
        .count();
    assert!(faults <= 3, "{failure}");
    let text = failure.to_string();
    assert!(text.contains(&format!(
        "`.seeds({}..{})` repeats it",
        failure.seed,
        failure.seed + 1
    )));
}

/// Without the first step there is no secret even if nothing goes wrong.
#[test]
fn a_story_keeps_the_steps_without_which_the_property_does_not_hold() {
    let exactly_one = creation(Bug::CreatesTwice).finally("the map has one secret", one_secret);
    let late = Faults::none().late_effects(true);
    let failure = failure(exactly_one.faults(late));
    assert_ne!(failure.message, "0 secrets", "{failure}");
    let first = "== a person creates config map a";
    let tells = failure.story.iter().any(|line| line.contains(first));
    assert!(tells, "{failure}");
}

#[test]
fn a_story_keeps_its_steps_if_the_bug_needs_no_fault() {
    let none = |cluster: &Cluster| match cluster.list::<Secret>().len() {
        0 => Err("no secret".to_owned()),
        others => Err(format!("{others} secrets")),
    };
    let failure = failure(creation(Bug::None).finally("never", none).seeds(0..1));
    assert_eq!(failure.message, "1 secrets", "{failure}");
}

#[test]
fn a_property_that_panics_is_broken() {
    let failure = failure(
        simulation(Bug::None)
            .always("it asserts", |_, _| panic!("no"))
            .faults(Faults::none())
            .seeds(0..1),
    );
    assert_eq!(failure.property, "it asserts");
}

#[test]
fn the_same_effect_twice_for_one_cause_is_found() {
    let failure = failure(simulation(Bug::CreatesTwice).once(
        "a secret per config map",
        |request| {
            let is_secret = request.resource == "secrets" && request.verb.as_str() == "create";
            is_secret.then(|| String::from("config map a"))
        },
    ));
    assert_eq!(failure.message, "twice for config map a");
}

#[test]
fn a_controller_that_runs_itself_for_ever_is_found_without_faults() {
    let failure = failure(
        simulation(Bug::NeverRests)
            .faults(Faults::none())
            .seeds(0..1),
    );
    assert_eq!(failure.property, "the controller comes to rest");
}

#[test]
fn a_request_that_the_cluster_does_not_do_fails_the_simulation() {
    let failure = failure(
        simulation(Bug::Unsupported)
            .faults(Faults::none())
            .seeds(0..1),
    );
    assert!(failure.message.contains("approval"), "{failure}");
}

/// It looks at the version of the server, and does nothing else.
async fn idle(client: Client) -> kube::Result<()> {
    client.apiserver_version().await.map(drop)
}

#[test]
fn a_controller_that_makes_no_request_fails() {
    let failure = failure(Simulation::new(async |_: Client| {}).seeds(0..1));
    assert_eq!(failure.property, "the controller makes requests");
    assert!(
        failure.message.contains("the client that it is given"),
        "{failure}"
    );
    Simulation::new(idle).seeds(0..1).check().unwrap();
}

#[test]
fn a_controller_may_return_an_error_which_is_told() {
    let lost = async |client: Client| {
        client.apiserver_version().await.unwrap();
        Err::<(), _>("lease lost")
    };
    let never = |_: &Cluster| Err("never".to_owned());
    let simulation = Simulation::new(lost).faults(Faults::none());
    let failure = failure(simulation.finally("never", never).seeds(0..1));
    let tells = |line: &String| line.contains("replica-1 ends: lease lost");
    assert!(failure.story.iter().any(tells), "{failure}");
}

#[test]
fn a_controller_may_never_return() {
    let endless = async |client: Client| {
        loop {
            client.apiserver_version().await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    };
    let simulation = Simulation::new(endless).faults(Faults::none());
    simulation.seeds(0..1).check().unwrap();
}

#[test]
fn a_step_that_returns_an_error_fails() {
    let step = async |client: Client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.get("a").await
    };
    let simulation = Simulation::new(idle).step("a person reads a", step);
    let failure = failure(simulation.seeds(0..1));
    assert_eq!(failure.property, "the step succeeds: a person reads a");
    assert!(failure.message.contains("not found"), "{failure}");
}

#[test]
fn a_story_tells_the_requests_that_fail() {
    let none = Faults::none;
    for (faults, status, told) in [
        (
            none().late_effects(true),
            504,
            "the server was unable to return a response",
        ),
        (none().throttling(true), 429, "429 throttled"),
        (none().errors(true), 500, "500 an internal error occurred"),
    ] {
        let succeed = move |cluster: &Cluster| {
            let requests = cluster.requests();
            let failed = requests.iter().find(|request| request.status == status);
            failed.map_or(Ok(()), |request| Err(request.to_string()))
        };
        let simulation = simulation(Bug::None).faults(faults);
        let failure = failure(simulation.finally("requests succeed", succeed));
        assert!(failure.message.contains(told), "{failure}");
        let tells = |line: &&String| line.contains(told);
        assert!(failure.story.iter().any(|line| tells(&line)), "{failure}");
        let faults = failure.story.iter().filter(|line| line.contains("!!"));
        assert_eq!(faults.count(), 1, "{failure}");
    }
}

#[test]
fn a_story_tells_what_a_lost_connection_has_cost() {
    let reads = async |client: Client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        loop {
            maps.list(&ListParams::default()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let failure = failure(Simulation::new(reads).faults(Faults::none().cut_offs(true)));
    assert_eq!(failure.property, "the controller does not panic");
    let last = failure.story.last().unwrap();
    let tells = last.contains("replica-1 list configmaps: the ") && last.contains(" is lost");
    assert!(tells, "{failure}");
}

/// A child process, because what is printed is seen from outside.
#[test]
fn a_panic_is_printed_once_and_not_again_for_each_shorter_history() {
    const CHILD: &str = "REQUEUE_KUBE_TESTING_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let step = async |client: Client| {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            maps.get("b").await.expect("b is there");
        };
        drop(failure(
            simulation(Bug::None)
                .step("panics", step)
                .step("and again", step),
        ));
        return;
    }
    let name = "a_panic_is_printed_once_and_not_again_for_each_shorter_history";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success());
    let printed = String::from_utf8_lossy(&child.stderr);
    assert!(printed.matches(" panicked at ").count() <= 1, "{printed}");
}

#[tokio::test]
async fn a_test_with_a_runtime_may_check_a_simulation() {
    simulation(Bug::None).seeds(0..1).check().unwrap();
}

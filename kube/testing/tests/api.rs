//! What the API in memory does, seen through kube's client.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::core::{PartialObjectMeta, PartialObjectMetaExt};
use kube::discovery::{Discovery, verbs};
use kube::runtime::events::{Event as Notice, EventType, Recorder, Reporter};
use kube::{Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use requeue_kube_testing::{Cluster, Link};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Web",
    namespaced,
    status = "WebStatus"
)]
struct WebSpec {
    size: u32,
    #[serde(default)]
    mode: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct WebStatus {
    ready: u32,
}

fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::new();
    cluster.install(&Web::crd()).unwrap();
    let client = cluster.client(&Link::named("test"));
    (cluster, client)
}

fn map(name: &str, labels: &[(&str, &str)]) -> ConfigMap {
    let labels: BTreeMap<String, String> = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn code(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

#[tokio::test(start_paused = true)]
async fn a_list_has_what_its_selectors_say_in_pages_of_one_moment() {
    let (_, client) = cluster();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for (index, tier) in ["a", "b", "a", "c", "a"].iter().enumerate() {
        let map = map(&format!("map-{index}"), &[("tier", tier)]);
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let names = |list: &[ConfigMap]| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let of = async |labels: &str| {
        let list = maps
            .list(&ListParams::default().labels(labels))
            .await
            .unwrap();
        names(&list.items)
    };
    assert_eq!(of("tier=a").await, ["map-0", "map-2", "map-4"]);
    assert_eq!(of("tier in (b, c)").await, ["map-1", "map-3"]);
    assert_eq!(of("tier!=a,tier").await, ["map-1", "map-3"]);
    let by_name = ListParams::default().fields("metadata.name=map-1");
    assert_eq!(names(&maps.list(&by_name).await.unwrap().items), ["map-1"]);

    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(names(&page.items), ["map-0", "map-1"]);
    maps.delete("map-2", &DeleteParams::default())
        .await
        .unwrap();
    let token = page.metadata.continue_.unwrap();
    let rest = maps
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    assert_eq!(
        names(&rest.items),
        ["map-2", "map-3", "map-4"],
        "of the same moment"
    );
    let wrong = ListParams::default().fields("spec.size=1");
    assert_eq!(code(maps.list(&wrong).await.unwrap_err()), 400);
}

#[tokio::test(start_paused = true)]
async fn a_write_of_an_old_version_is_a_conflict_and_one_that_changes_nothing_is_no_event() {
    let (cluster, client) = cluster();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let first = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap();
    let mut second = first.clone();
    second.data = Some(BTreeMap::from([("x".to_owned(), "1".to_owned())]));
    let second = maps
        .replace("a", &PostParams::default(), &second)
        .await
        .unwrap();
    assert_ne!(first.resource_version(), second.resource_version());
    let refused = maps
        .replace("a", &PostParams::default(), &first)
        .await
        .unwrap_err();
    assert_eq!(code(refused), 409);
    let same = maps
        .replace("a", &PostParams::default(), &second)
        .await
        .unwrap();
    assert_eq!(same.resource_version(), second.resource_version());
    assert!(!cluster.requests().last().unwrap().changed);
    let again = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap_err();
    assert_eq!(code(again), 409);
    assert_eq!(code(maps.get("b").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_checked_and_belong_to_namespaces_that_are_there() {
    let (cluster, client) = cluster();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut generated = map("", &[]);
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("web-".to_owned());
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let one = maps.create(&dry, &generated).await.unwrap();
    assert!(one.name_any().starts_with("web-"));
    assert!(
        cluster.list::<ConfigMap>().is_empty(),
        "a dry run changes nothing"
    );
    let one = maps
        .create(&PostParams::default(), &generated)
        .await
        .unwrap();
    let two = maps
        .create(&PostParams::default(), &generated)
        .await
        .unwrap();
    assert_ne!(one.name_any(), two.name_any());

    assert_eq!(
        code(
            maps.create(&PostParams::default(), &map("Big", &[]))
                .await
                .unwrap_err()
        ),
        422
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    let nowhere = elsewhere
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap_err();
    assert_eq!(code(nowhere), 404);
    let spaces: Api<Namespace> = Api::all(client);
    let team = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    spaces.create(&PostParams::default(), &team).await.unwrap();
    elsewhere
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap();
    spaces
        .delete("team", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(
        cluster.list::<ConfigMap>().len(),
        2,
        "those of the other namespace"
    );
    assert_eq!(code(spaces.get("team").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_a_subresource_and_the_generation_counts_changes_of_the_rest() {
    let (_, client) = cluster();
    let webs: Api<Web> = Api::default_namespaced(client);
    let mut web = Web::new(
        "a",
        WebSpec {
            size: 1,
            mode: String::new(),
        },
    );
    web.status = Some(WebStatus { ready: 9 });
    let web = webs.create(&PostParams::default(), &web).await.unwrap();
    assert!(web.status.is_none(), "a create sets no status");
    assert_eq!(web.metadata.generation, Some(1));

    let both = json!({"spec": {"size": 2}, "status": {"ready": 3}});
    let params = PatchParams::default();
    let reported = webs
        .patch_status("a", &params, &Patch::Merge(&both))
        .await
        .unwrap();
    assert_eq!((reported.spec.size, reported.status.unwrap().ready), (1, 3));
    assert_eq!(reported.metadata.generation, Some(1));
    let changed = webs
        .patch("a", &params, &Patch::Merge(&both))
        .await
        .unwrap();
    assert_eq!((changed.spec.size, changed.status.unwrap().ready), (2, 3));
    assert_eq!(changed.metadata.generation, Some(2));
    let labelled = json!({"metadata": {"labels": {"x": "y"}}});
    let labelled = webs
        .patch("a", &params, &Patch::Merge(&labelled))
        .await
        .unwrap();
    assert_eq!(labelled.metadata.generation, Some(2));

    let wrong = json!({"spec": {"size": -1}});
    assert_eq!(
        code(
            webs.patch("a", &params, &Patch::Merge(&wrong))
                .await
                .unwrap_err()
        ),
        422
    );
    let mut unversioned = labelled;
    unversioned.metadata.resource_version = None;
    let refused = webs
        .replace("a", &PostParams::default(), &unversioned)
        .await
        .unwrap_err();
    assert_eq!(code(refused), 422);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_waits_and_takes_no_new_one() {
    let (_, client) = cluster();
    let webs: Api<Web> = Api::default_namespaced(client);
    let mut web = Web::new(
        "a",
        WebSpec {
            size: 1,
            mode: String::new(),
        },
    );
    web.finalizers_mut().push("example.dev/one".to_owned());
    webs.create(&PostParams::default(), &web).await.unwrap();
    let marked = webs.delete("a", &DeleteParams::default()).await.unwrap();
    let marked = marked.left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(marked.metadata.generation, Some(2));
    let more = json!({"metadata": {"finalizers": ["example.dev/one", "example.dev/two"]}});
    let refused = webs
        .patch("a", &PatchParams::default(), &Patch::Merge(&more))
        .await
        .unwrap_err();
    assert_eq!(code(refused), 422);
    let none = json!({"metadata": {"finalizers": null}});
    webs.patch("a", &PatchParams::default(), &Patch::Merge(&none))
        .await
        .unwrap();
    assert_eq!(code(webs.get("a").await.unwrap_err()), 404);
}

async fn owner_and_part(client: &Client) -> (Api<Web>, Api<ConfigMap>) {
    let webs: Api<Web> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let web = Web::new(
        "a",
        WebSpec {
            size: 1,
            mode: String::new(),
        },
    );
    let web = webs.create(&PostParams::default(), &web).await.unwrap();
    let mut part = map("part", &[]);
    let mut owner = web.controller_owner_ref(&()).unwrap();
    owner.block_owner_deletion = Some(true);
    part.metadata.owner_references = Some(vec![owner]);
    maps.create(&PostParams::default(), &part).await.unwrap();
    (webs, maps)
}

#[tokio::test(start_paused = true)]
async fn garbage_goes_with_its_owner_before_it_or_not_at_all() {
    let (cluster, client) = cluster();
    let (webs, maps) = owner_and_part(&client).await;
    webs.delete("a", &DeleteParams::background()).await.unwrap();
    assert!(cluster.list::<ConfigMap>().is_empty());

    let (webs, _) = owner_and_part(&client).await;
    let hold = json!({"metadata": {"finalizers": ["example.dev/hold"]}});
    maps.patch("part", &PatchParams::default(), &Patch::Merge(&hold))
        .await
        .unwrap();
    webs.delete("a", &DeleteParams::foreground()).await.unwrap();
    assert!(webs.get("a").await.is_ok(), "its part blocks it");
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("part", &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    assert_eq!(code(webs.get("a").await.unwrap_err()), 404);
    assert!(cluster.list::<ConfigMap>().is_empty());

    let (webs, maps) = owner_and_part(&client).await;
    webs.delete("a", &DeleteParams::orphan()).await.unwrap();
    let orphan = maps.get("part").await.unwrap();
    assert!(orphan.owner_references().is_empty());
    assert_eq!(code(webs.get("a").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn an_apply_owns_its_fields_and_removes_what_it_drops() {
    let (_, client) = cluster();
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let applied = |image: &str, replicas: Option<i32>| {
        let mut wanted = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "server", "image": image}]},
                },
            },
        });
        if let Some(replicas) = replicas {
            wanted["spec"]["replicas"] = json!(replicas);
        }
        wanted
    };
    let first = applied("a", Some(2));
    deployments
        .patch("web", &by("one"), &Patch::Apply(&first))
        .await
        .unwrap();
    let version = deployments.get("web").await.unwrap().resource_version();
    deployments
        .patch("web", &by("one"), &Patch::Apply(&first))
        .await
        .unwrap();
    let again = deployments.get("web").await.unwrap();
    assert_eq!(
        again.resource_version(),
        version,
        "the same apply changes nothing"
    );

    let other = deployments
        .patch("web", &by("two"), &Patch::Apply(&applied("b", None)))
        .await;
    let error = other.unwrap_err();
    assert!(error.to_string().contains("one"), "{error}");
    assert_eq!(code(error), 409);
    let forced = by("two").force();
    deployments
        .patch("web", &forced, &Patch::Apply(&applied("b", None)))
        .await
        .unwrap();
    let dropped = applied("b", None);
    let web = deployments
        .patch("web", &by("one"), &Patch::Apply(&dropped))
        .await
        .unwrap();
    assert_eq!(web.managed_fields().len(), 2);
    let web = serde_json::to_value(web).unwrap();
    assert!(web["spec"]["replicas"].is_null(), "nobody owns it any more");

    let unnamed = PatchParams::default();
    let refused = deployments
        .patch("web", &unnamed, &Patch::Apply(&dropped))
        .await
        .unwrap_err();
    assert_eq!(code(refused), 422);
}

#[tokio::test(start_paused = true)]
async fn replicas_are_scaled_without_knowing_the_kind() {
    let (cluster, client) = cluster();
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let set = json!({"metadata": {"name": "a"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "serviceName": "a", "template": {},
    }});
    let set = serde_json::from_value(set).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();
    let scale = sets.get_scale("a").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=web"));

    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let params = PatchParams::default();
    sets.patch_scale("a", &params, &five).await.unwrap();
    let set = serde_json::to_value(cluster.get::<StatefulSet>("default", "a")).unwrap();
    assert_eq!(
        (&set["spec"]["replicas"], &set["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    let version = scale.metadata.resource_version;
    let stale = json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": 6}});
    let refused = sets.patch_scale("a", &params, &Patch::Merge(stale)).await;
    assert_eq!(code(refused.unwrap_err()), 409);
    let negative = Patch::Merge(json!({"spec": {"replicas": -1}}));
    let refused = sets.patch_scale("a", &params, &negative).await;
    assert_eq!(code(refused.unwrap_err()), 422);
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert_eq!(code(maps.get_scale("a").await.unwrap_err()), 404);
}

#[tokio::test(start_paused = true)]
async fn a_strategic_patch_merges_containers_by_name() {
    let (cluster, client) = cluster();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "server", "image": "one"}, {"name": "sidecar", "image": "s"},
    ]}});
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let patch = json!({"spec": {"containers": [{"name": "server", "image": "two"}]}});
    let pod = pods
        .patch("a", &PatchParams::default(), &Patch::Strategic(&patch))
        .await
        .unwrap();
    let containers = pod.spec.unwrap().containers;
    let images: Vec<_> = containers
        .iter()
        .map(|own| own.image.as_deref().unwrap())
        .collect();
    assert_eq!(images, ["two", "s"]);
    let directive = json!({"spec": {"$patch": "replace"}});
    let refused = pods
        .patch("a", &PatchParams::default(), &Patch::Strategic(&directive))
        .await;
    assert_eq!(code(refused.unwrap_err()), 501);
    assert_eq!(cluster.unsupported().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_its_selector_sees_in_order_and_late_if_it_lags() {
    let (cluster, client) = cluster();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let link = Link::named("slow");
    link.lag(Duration::from_secs(5));
    let slow: Api<ConfigMap> = Api::default_namespaced(cluster.client(&link));
    let params = WatchParams::default().labels("tier=a");
    let mut events = slow.watch(&params, "0").await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("a", &[("tier", "a")]))
        .await
        .unwrap();
    let written = cluster.elapsed();
    let away = json!({"metadata": {"labels": {"tier": "b"}}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&away))
        .await
        .unwrap();
    let first = events.try_next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Added(_)), "{first:?}");
    assert_eq!(cluster.elapsed() - written, Duration::from_secs(5));
    let second = events.try_next().await.unwrap().unwrap();
    assert!(
        matches!(second, WatchEvent::Deleted(_)),
        "it is not selected any more: {second:?}"
    );

    cluster.compact();
    let old = WatchParams::default();
    let mut refused = maps.watch(&old, "1").await.unwrap().boxed();
    let event = refused.try_next().await.unwrap().unwrap();
    assert!(
        matches!(&event, WatchEvent::Error(status) if status.code == 410),
        "{event:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_versions_and_kinds_can_be_asked_for() {
    let (_, client) = cluster();
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"x": "y"}});
    let secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let meta: PartialObjectMeta<Secret> = secrets.get_metadata("a").await.unwrap();
    assert_eq!(meta.name_any(), "a");
    let list = secrets.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let labels = ObjectMeta {
        labels: Some(BTreeMap::from([("x".to_owned(), "y".to_owned())])),
        ..ObjectMeta::default()
    };
    let patch = labels.into_request_partial::<Secret>();
    let params = by("me");
    let patched = secrets
        .patch_metadata("a", &params, &Patch::Apply(&patch))
        .await
        .unwrap();
    assert_eq!(patched.labels()["x"], "y");

    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let discovery = kube::discovery::Discovery::new(client).run().await.unwrap();
    let gvk = kube::core::GroupVersionKind::gvk("example.dev", "v1", "Web");
    let (resource, _) = discovery.resolve_gvk(&gvk).unwrap();
    assert_eq!(resource.plural, "webs");
}

#[tokio::test(start_paused = true)]
async fn what_it_does_not_do_is_an_error_that_names_the_request() {
    let (cluster, client) = cluster();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let error = pods
        .logs("a", &kube::api::LogParams::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("log"), "{error}");
    assert_eq!(cluster.unsupported().len(), 1);
    assert!(
        cluster.unsupported()[0].contains("/pods/a/log"),
        "{:?}",
        cluster.unsupported()
    );
    let bare = Cluster::new();
    let webs: Api<Web> = Api::default_namespaced(bare.client(&Link::named("test")));
    let error = webs.list(&ListParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("installed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_world_around_answers_what_is_created() {
    let (cluster, client) = cluster();
    cluster.on_create(|client, web: Web| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let webs: Api<Web> = Api::default_namespaced(client);
        let ready = json!({"status": {"ready": web.spec.size}});
        let patch = Patch::Merge(&ready);
        webs.patch_status(&web.name_any(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    });
    let webs: Api<Web> = Api::default_namespaced(client);
    let web = Web::new(
        "a",
        WebSpec {
            size: 3,
            mode: String::new(),
        },
    );
    webs.create(&PostParams::default(), &web).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(webs.get("a").await.unwrap().status.is_none());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(webs.get("a").await.unwrap().status.unwrap().ready, 3);
    assert_eq!(Web::kind(&()), "Web");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_timed_out_lands_later() {
    let (cluster, _) = cluster();
    let link = Link::seeded("late", 7);
    link.late_effects(100);
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(&link));
    let refused = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap_err();
    assert_eq!(code(refused), 504);
    assert!(cluster.list::<ConfigMap>().is_empty());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.list::<ConfigMap>().len(), 1);
    assert!(
        cluster
            .requests()
            .last()
            .unwrap()
            .to_string()
            .contains("lands late")
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_is_told_when_to_come_again() {
    let (cluster, _) = cluster();
    let link = Link::named("busy");
    link.throttle(100);
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(&link));
    let refused = maps.get("a").await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}");
    };
    assert_eq!(status.code, 429);
    let details = status.details.unwrap();
    assert_eq!(details.retry_after_seconds, 1);
    link.throttle(0);
    assert_eq!(code(maps.get("a").await.unwrap_err()), 404);
}

/// The client cannot tell which it was.
#[tokio::test(start_paused = true)]
async fn a_write_that_fails_was_carried_out_or_not() {
    let (cluster, _) = cluster();
    let link = Link::seeded("failing", 3);
    link.errors(100);
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(&link));
    for name in 0..20 {
        let map = map(&format!("m{name}"), &[]);
        let failed = maps.create(&PostParams::default(), &map).await;
        assert_eq!(code(failed.unwrap_err()), 500);
    }
    let made = cluster.list::<ConfigMap>().len();
    assert!((1..20).contains(&made), "{made} of 20");
    let requests = cluster.requests();
    let changed = requests.iter().filter(|request| request.changed).count();
    assert_eq!((requests.len(), changed), (20, made));
    assert!(requests.iter().all(|request| request.status == 500));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_fails_after_half_a_minute() {
    let (cluster, _) = cluster();
    let link = Link::named("cut");
    link.cut_off(true);
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client(&link));
    let began = tokio::time::Instant::now();
    let lost = maps.create(&PostParams::default(), &map("a", &[])).await;
    assert!(lost.is_err());
    assert_eq!(began.elapsed().as_secs(), 30);
    assert!(cluster.list::<ConfigMap>().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_type_is_found_by_discovery() {
    let (cluster, client) = cluster();
    let groups = Discovery::new(client.clone()).run().await.unwrap();
    let group = groups
        .groups()
        .find(|group| group.name() == Web::group(&()));
    let (resource, abilities) = group.unwrap().recommended_kind("Web").unwrap();
    assert!(abilities.supports_operation(verbs::PATCH));
    let webs: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let mut web = DynamicObject::new("a", &resource);
    web.data = json!({"spec": {"size": 2, "mode": ""}});
    let made = webs.create(&PostParams::default(), &web).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(cluster.list::<Web>()[0].spec.size, 2);
}

#[tokio::test(start_paused = true)]
async fn events_are_published_and_repeated_ones_counted() {
    let (cluster, client) = cluster();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .unwrap();
    let recorder = Recorder::new(client, Reporter::from("tester"));
    let notice = Notice {
        type_: EventType::Normal,
        reason: "Created".to_owned(),
        note: None,
        action: "Create".to_owned(),
        secondary: None,
    };
    for _ in 0..2 {
        recorder
            .publish(&notice, &made.object_ref(&()))
            .await
            .unwrap();
    }
    let events = cluster.list::<Event>();
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0].regarding.as_ref().unwrap().name.as_deref(),
        Some("a")
    );
    assert_eq!(events[0].series.as_ref().unwrap().count, 2);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_writes_later_times_and_reads_earlier_ones() {
    let (cluster, exact) = cluster();
    let link = Link::named("ahead");
    link.clock_ahead(Duration::from_secs(90));
    let [exact, ahead] = [exact, cluster.client(&link)].map(Api::<Lease>::default_namespaced);
    let renewed = |lease: &Lease| serde_json::to_value(lease).unwrap()["spec"]["renewTime"].clone();
    let lease = |time| {
        serde_json::from_value(json!({
            "metadata": {"name": "manager"}, "spec": {"renewTime": time},
        }))
        .unwrap()
    };

    let noon = lease("2026-11-26T12:00:00.500000Z");
    let created = ahead.create(&PostParams::default(), &noon).await.unwrap();
    assert_eq!(
        renewed(&created),
        "2026-11-26T12:00:00.500000Z",
        "its own times are its own"
    );
    let seen = exact.get("manager").await.unwrap();
    assert_eq!(renewed(&seen), "2026-11-26T12:01:30.500000Z");

    // What it has read and not changed stays as it is for the others.
    let unchanged = ahead
        .replace("manager", &PostParams::default(), &created)
        .await
        .unwrap();
    assert_eq!(exact.get("manager").await.unwrap(), seen);
    let mut events = ahead
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Added(shown)) => assert_eq!(shown, unchanged),
        other => panic!("{other:?}"),
    }
}

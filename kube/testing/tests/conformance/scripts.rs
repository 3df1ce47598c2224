//! What controllers ask of an API server, as scripts: the cluster in memory and a real server play
//! the same ones.

use kube::Client;
use serde_json::{Value, json};

use super::tape::{Problem, Tape};

/// The scripts, in the order in which they are played. The last one begins by forgetting the
/// history.
pub(crate) const SCRIPTS: [&str; 16] = [
    "objects",
    "refusals",
    "lists",
    "merge-patches",
    "json-patches",
    "strategic-patches",
    "apply",
    "apply-lists",
    "custom",
    "status",
    "scale",
    "finalizers",
    "garbage",
    "watches",
    "metadata",
    "dry-runs",
];

const MAPS: &str = "/api/v1/namespaces/NS/configmaps";
const MAP: &str = "/api/v1/namespaces/NS/configmaps/a";
const WEBS: &str = "/apis/conformance.requeue.dev/v1/namespaces/NS/webs";
const WEB: &str = "/apis/conformance.requeue.dev/v1/namespaces/NS/webs/a";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/NS/deployments";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/NS/deployments/a";

/// Plays one of the [`SCRIPTS`]. Returns its steps with the answers.
pub(crate) async fn play(script: &str, client: &Client) -> Result<Vec<(String, Value)>, Problem> {
    let mut tape = Tape::new(script, client).await?;
    let on = &mut tape;
    match script {
        "objects" => objects(on).await?,
        "refusals" => refusals(on).await?,
        "lists" => lists(on).await?,
        "merge-patches" => merge_patches(on).await?,
        "json-patches" => json_patches(on).await?,
        "strategic-patches" => strategic_patches(on).await?,
        "apply" => apply(on).await?,
        "apply-lists" => apply_lists(on).await?,
        "custom" => custom(on).await?,
        "status" => status(on).await?,
        "scale" => scale(on).await?,
        "finalizers" => finalizers(on).await?,
        "garbage" => garbage(on).await?,
        "watches" => watches(on).await?,
        "metadata" => metadata(on).await?,
        "dry-runs" => dry_runs(on).await?,
        other => return Err(format!("no script is called {other}").into()),
    }
    Ok(tape.into_answers())
}

/// Plays what happens to clients that knew a history which is forgotten in between.
pub(crate) async fn play_forgotten(
    client: &Client,
    forget: impl AsyncFnOnce() -> Result<(), Problem>,
) -> Result<Vec<(String, Value)>, Problem> {
    let mut tape = Tape::new("forgotten", client).await?;
    let on = &mut tape;
    let mut first = String::new();
    for name in ["a", "b", "c"] {
        let made = on.ask(name, "POST", MAPS, map(name, json!({}))).await?;
        if name == "a" {
            first = text(&made["metadata"]["resourceVersion"]);
        }
    }
    let page = format!("{MAPS}?limit=1");
    let page = on.ask("a page", "GET", &page, Value::Null).await?;
    let token = text(&page["metadata"]["continue"]);
    on.ask("a write", "MERGE", MAP, json!({"data": {"x": "2"}}))
        .await?;
    forget().await?;
    let page = format!("{MAPS}?limit=1&continue={token}");
    on.ask("the page after it", "GET", &page, Value::Null)
        .await?;
    let old = format!("{MAPS}?resourceVersion={first}&resourceVersionMatch=Exact");
    on.ask("a list of then", "GET", &old, Value::Null).await?;
    let old = format!("{MAPS}?watch=true&resourceVersion={first}&timeoutSeconds=5");
    let mut watch = on.watch(&old).await?;
    on.read("a watch since then", &mut watch, 2).await;
    Ok(tape.into_answers())
}

/// The kind that the scripts use.
pub(crate) fn definition() -> Value {
    let port = json!({
        "type": "object", "required": ["port"], "properties": {
            "port": {"type": "integer"},
            "protocol": {"type": "string", "default": "TCP"},
            "name": {"type": "string"},
        },
    });
    let spec = json!({
        "type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 5},
            "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
            "hosts": {
                "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array", "items": port, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
            },
            "steps": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "whole": {
                "type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"},
            },
        },
    });
    let status = json!({
        "type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"},
            "conditions": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object", "required": ["type"],
                    "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                },
            },
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "webs.conformance.requeue.dev"},
        "spec": {
            "group": "conformance.requeue.dev", "scope": "Namespaced",
            "names": {"plural": "webs", "singular": "web", "kind": "Web", "listKind": "WebList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {"spec": spec, "status": status},
                }},
            }],
        },
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn map(name: &str, data: Value) -> Value {
    let mut map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "NS"},
    });
    if data != json!({}) {
        map["data"] = data;
    }
    map
}

fn web(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "conformance.requeue.dev/v1", "kind": "Web",
        "metadata": {"name": name, "namespace": "NS"}, "spec": spec,
    })
}

fn deployment(containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "NS"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers},
            },
        },
    })
}

fn by(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

/// Created, read, replaced, deleted.
async fn objects(on: &mut Tape) -> Result<(), Problem> {
    let made = on
        .ask("create", "POST", MAPS, map("a", json!({"x": "1"})))
        .await?;
    on.ask("get", "GET", MAP, Value::Null).await?;
    let mut next = made.clone();
    next["data"] = json!({"x": "2"});
    on.ask("replace", "PUT", MAP, next.clone()).await?;
    on.ask("replace the old version", "PUT", MAP, next).await?;
    let unversioned = map("a", json!({"x": "3"}));
    on.ask("replace any version", "PUT", MAP, unversioned.clone())
        .await?;
    on.ask("replace by the same", "PUT", MAP, unversioned)
        .await?;
    let generated = json!({"metadata": {"generateName": "gen-"}});
    let generated = on.ask("a generated name", "POST", MAPS, generated).await?;
    on.call(&generated["metadata"]["name"], "gen-name");
    let name = text(&generated["metadata"]["name"]);
    on.ask("get it", "GET", &format!("{MAPS}/{name}"), Value::Null)
        .await?;
    on.ask("delete", "DELETE", MAP, Value::Null).await?;
    on.ask("get what is gone", "GET", MAP, Value::Null).await?;
    on.ask("create it again", "POST", MAPS, map("a", json!({})))
        .await?;

    let secrets = "/api/v1/namespaces/NS/secrets";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
        "data": {"old": "eA=="}, "stringData": {"password": "hunter2", "old": "y"},
    });
    on.ask("a secret from text", "POST", secrets, secret)
        .await?;
    let more = json!({"stringData": {"more": "z"}});
    on.ask("more text", "MERGE", &format!("{secrets}/a"), more)
        .await?;

    let leases = "/apis/coordination.k8s.io/v1/namespaces/NS/leases";
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    });
    on.ask("a lease", "POST", leases, lease.clone()).await?;
    on.ask(
        "a lease without its version",
        "PUT",
        &format!("{leases}/a"),
        lease,
    )
    .await?;
    Ok(())
}

/// What is refused, and how.
async fn refusals(on: &mut Tape) -> Result<(), Problem> {
    let made = on.ask("create", "POST", MAPS, map("a", json!({}))).await?;
    on.ask("create it twice", "POST", MAPS, map("a", json!({})))
        .await?;
    on.ask("a wrong name", "POST", MAPS, map("Big", json!({})))
        .await?;
    on.ask("no name", "POST", MAPS, json!({"metadata": {}}))
        .await?;
    let mut elsewhere = map("b", json!({}));
    elsewhere["metadata"]["namespace"] = json!("default");
    on.ask("another namespace", "POST", MAPS, elsewhere).await?;
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    let object = json!({"metadata": {"name": "b"}});
    on.ask("no such namespace", "POST", nowhere, object).await?;
    let mut secret = map("b", json!({}));
    secret["kind"] = json!("Secret");
    on.ask("another kind", "POST", MAPS, secret).await?;
    let mut versioned = map("b", json!({}));
    versioned["metadata"]["resourceVersion"] = json!("1");
    on.ask("a version to create", "POST", MAPS, versioned)
        .await?;
    let b = format!("{MAPS}/b");
    on.ask("get what is not there", "GET", &b, Value::Null)
        .await?;
    on.ask("delete what is not there", "DELETE", &b, Value::Null)
        .await?;
    on.ask(
        "patch what is not there",
        "MERGE",
        &b,
        json!({"data": {"x": "1"}}),
    )
    .await?;
    on.ask("replace what is not there", "PUT", &b, map("b", json!({})))
        .await?;
    on.ask("replace another name", "PUT", &b, made.clone())
        .await?;
    let mut other = made.clone();
    other["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    on.ask("replace another uid", "PUT", MAP, other).await?;
    let other = json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}});
    on.ask("delete another uid", "DELETE", MAP, other).await?;
    let other = json!({"preconditions": {"resourceVersion": "1"}});
    on.ask("delete another version", "DELETE", MAP, other)
        .await?;
    let kind = "/apis/conformance.requeue.dev/v1/namespaces/NS/nothing";
    on.ask("no such kind", "GET", kind, Value::Null).await?;
    let status = format!("{MAP}/status");
    on.ask("no such subresource", "GET", &status, Value::Null)
        .await?;
    let selector = format!("{MAPS}?fieldSelector=data.x%3D1");
    on.ask("no such field to select by", "GET", &selector, Value::Null)
        .await?;
    let selector = format!("{MAPS}?labelSelector=a%20in%20b");
    on.ask("no selector", "GET", &selector, Value::Null).await?;
    on.ask("no number", "GET", &format!("{MAPS}?limit=x"), Value::Null)
        .await?;
    Ok(())
}

/// Selectors, pages, collections.
async fn lists(on: &mut Tape) -> Result<(), Problem> {
    on.keep(&[
        "/items",
        "/metadata/continue",
        "/metadata/remainingItemCount",
    ]);
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front"), ("d", "mid")] {
        let mut object = map(name, json!({}));
        object["metadata"]["labels"] = json!({"tier": tier});
        on.ask(&format!("create {name}"), "POST", MAPS, object)
            .await?;
    }
    on.keep(&["/kind", "/apiVersion", "/items"]);
    on.ask("all", "GET", MAPS, Value::Null).await?;
    on.keep(&[
        "/items/0/metadata/name",
        "/items/1/metadata/name",
        "/items/2/metadata/name",
    ]);
    for selector in [
        "tier%3Dfront",
        "tier%3D%3Dfront",
        "tier!%3Dfront",
        "tier%20in%20(back,mid)",
        "tier%20notin%20(back,mid)",
        "tier",
        "!tier",
        "tier,tier!%3Dmid",
        "other!%3Dx,tier%3Dback",
    ] {
        let path = format!("{MAPS}?labelSelector={selector}");
        on.ask(selector, "GET", &path, Value::Null).await?;
    }
    for selector in [
        "metadata.name%3Db",
        "metadata.name!%3Db",
        "metadata.namespace%3DNS",
    ] {
        let path = format!("{MAPS}?fieldSelector={selector}");
        on.ask(selector, "GET", &path, Value::Null).await?;
    }
    on.keep(&[
        "/items/0/metadata/name",
        "/items/1/metadata/name",
        "/items/2/metadata/name",
        "/metadata/continue",
        "/metadata/remainingItemCount",
    ]);
    let page = format!("{MAPS}?limit=3");
    let page = on.ask("a page", "GET", &page, Value::Null).await?;
    on.ask(
        "a write in between",
        "DELETE",
        &format!("{MAPS}/d"),
        Value::Null,
    )
    .await?;
    let token = text(&page["metadata"]["continue"]);
    let next = format!("{MAPS}?limit=3&continue={token}");
    on.ask("the next page", "GET", &next, Value::Null).await?;
    let page = format!("{MAPS}?limit=1&labelSelector=tier%3Dfront");
    on.ask("a page of some", "GET", &page, Value::Null).await?;
    // A cache has no order.
    on.keep(&[
        "/items/0/metadata/namespace",
        "/items/2/metadata/namespace",
        "/metadata/continue",
    ]);
    let any = format!("{MAPS}?resourceVersion=0&limit=1");
    on.ask("a page of any version", "GET", &any, Value::Null)
        .await?;
    let some = format!("{MAPS}?labelSelector=tier%3Dfront");
    on.ask("delete some", "DELETE", &some, Value::Null).await?;
    on.keep(&["/items"]);
    on.ask("what is left", "GET", MAPS, Value::Null).await?;
    Ok(())
}

async fn merge_patches(on: &mut Tape) -> Result<(), Problem> {
    let data = json!({"x": "1", "y": "2"});
    let made = on.ask("create", "POST", MAPS, map("a", data)).await?;
    let patch = json!({"data": {"y": null, "z": "3"}, "metadata": {"labels": {"l": "1"}}});
    on.ask("add and remove", "MERGE", MAP, patch.clone())
        .await?;
    on.ask("the same again", "MERGE", MAP, patch).await?;
    let version = &made["metadata"]["resourceVersion"];
    let old = json!({"metadata": {"resourceVersion": version}, "data": {"x": "4"}});
    on.ask("of an old version", "MERGE", MAP, old).await?;
    let other = json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}});
    on.ask("of another uid", "MERGE", MAP, other).await?;
    let renamed = json!({"metadata": {"name": "b"}});
    on.ask("another name", "MERGE", MAP, renamed).await?;
    on.ask("no object", "MERGE", MAP, json!([1])).await?;
    on.ask(
        "by a manager",
        "MERGE",
        &by(MAP, "other"),
        json!({"data": {"x": "5"}}),
    )
    .await?;
    on.ask(
        "nothing left",
        "MERGE",
        MAP,
        json!({"data": null, "metadata": {"labels": null}}),
    )
    .await?;
    Ok(())
}

async fn json_patches(on: &mut Tape) -> Result<(), Problem> {
    on.ask("create", "POST", MAPS, map("a", json!({"x": "1"})))
        .await?;
    let steps = [
        (
            "add",
            json!([{"op": "add", "path": "/data/y", "value": "2"}]),
        ),
        (
            "test and replace",
            json!([
                {"op": "test", "path": "/data/x", "value": "1"},
                {"op": "replace", "path": "/data/x", "value": "3"},
            ]),
        ),
        (
            "a test that fails",
            json!([
                {"op": "test", "path": "/data/x", "value": "1"},
                {"op": "remove", "path": "/data/y"},
            ]),
        ),
        (
            "a test for what is absent",
            json!([
                {"op": "test", "path": "/metadata/finalizers", "value": null},
                {"op": "add", "path": "/metadata/finalizers", "value": ["conformance.dev/f"]},
            ]),
        ),
        (
            "append",
            json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "x.dev/g"}]),
        ),
        (
            "remove",
            json!([{"op": "remove", "path": "/metadata/finalizers/0"}]),
        ),
        (
            "remove what is absent",
            json!([{"op": "remove", "path": "/data/none"}]),
        ),
        (
            "add below what is absent",
            json!([{"op": "add", "path": "/no/such", "value": "1"}]),
        ),
        (
            "move",
            json!([{"op": "move", "from": "/data/y", "path": "/data/z"}]),
        ),
        ("no list", json!({"op": "remove"})),
        (
            "remove the last finalizer",
            json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        ),
        (
            "replace what is absent",
            json!([{"op": "replace", "path": "/data/none", "value": "1"}]),
        ),
    ];
    for (step, patch) in steps {
        on.ask(step, "JSON", MAP, patch).await?;
    }
    Ok(())
}

async fn strategic_patches(on: &mut Tape) -> Result<(), Problem> {
    on.keep(&[
        "/metadata/generation",
        "/metadata/labels",
        "/metadata/finalizers",
        "/spec/replicas",
        "/spec/template/spec/containers/0/name",
        "/spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/0/env",
        "/spec/template/spec/containers/0/args",
        "/spec/template/spec/containers/0/ports",
        "/spec/template/spec/containers/1/name",
        "/spec/template/spec/containers/1/image",
        "/spec/template/spec/containers/2/name",
        "/spec/template/spec/nodeSelector",
        "/spec/template/spec/tolerations",
    ]);
    let containers = json!([
        {
            "name": "server", "image": "one", "args": ["a", "b"],
            "env": [{"name": "X", "value": "1"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
        },
        {"name": "sidecar", "image": "s"},
    ]);
    on.ask("create", "POST", DEPLOYMENTS, deployment(containers))
        .await?;
    let spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let server = |mut fields: Value| {
        fields["name"] = json!("server");
        spec(json!({"containers": [fields]}))
    };
    let steps = [
        ("an image", server(json!({"image": "two"}))),
        (
            "a variable",
            server(json!({"env": [{"name": "Y", "value": "2"}]})),
        ),
        (
            "a variable again",
            server(json!({"env": [{"name": "X", "value": "3"}]})),
        ),
        ("arguments", server(json!({"args": ["c"]}))),
        (
            "a port",
            server(json!({"ports": [{"containerPort": 81, "protocol": "TCP"}]})),
        ),
        (
            "a container",
            spec(json!({"containers": [{"name": "more", "image": "m"}]})),
        ),
        ("a map", spec(json!({"nodeSelector": {"disk": "ssd"}}))),
        (
            "more of the map",
            spec(json!({"nodeSelector": {"zone": "a"}})),
        ),
        (
            "tolerations",
            spec(json!({"tolerations": [{"key": "x", "operator": "Exists"}]})),
        ),
        (
            "other tolerations",
            spec(json!({"tolerations": [{"key": "y", "operator": "Exists"}]})),
        ),
        ("a null", spec(json!({"nodeSelector": {"disk": null}}))),
        (
            "finalizers",
            json!({"metadata": {"finalizers": ["x.dev/a"]}}),
        ),
        (
            "more finalizers",
            json!({"metadata": {"finalizers": ["x.dev/b"]}}),
        ),
        ("replicas", json!({"spec": {"replicas": 3}})),
    ];
    for (step, patch) in steps {
        on.ask(step, "STRATEGIC", DEPLOYMENT, patch).await?;
    }
    on.keep(&[]);
    on.ask("a custom kind", "POST", WEBS, web("a", json!({"size": 1})))
        .await?;
    on.ask(
        "of a custom kind",
        "STRATEGIC",
        WEB,
        json!({"spec": {"size": 2}}),
    )
    .await?;
    Ok(())
}

/// Owners, conflicts, force, removal.
async fn apply(on: &mut Tape) -> Result<(), Problem> {
    let (one, two) = (by(MAP, "one"), by(MAP, "two"));
    let own = map("a", json!({"x": "1", "y": "1"}));
    on.ask("create", "APPLY", &one, own.clone()).await?;
    on.ask("the same again", "APPLY", &one, own).await?;
    on.ask("other fields", "APPLY", &two, map("a", json!({"z": "1"})))
        .await?;
    let same = map("a", json!({"x": "1", "z": "1"}));
    on.ask("the same value of another", "APPLY", &two, same)
        .await?;
    let other = map("a", json!({"x": "2", "y": "2", "z": "1"}));
    on.ask("a conflict", "APPLY", &two, other.clone()).await?;
    let force = format!("{two}&force=true");
    on.ask("by force", "APPLY", &force, other).await?;
    on.ask("drops all", "APPLY", &one, map("a", json!({})))
        .await?;
    on.ask("drops one", "APPLY", &two, map("a", json!({"y": "2"})))
        .await?;
    let mut labelled = map("a", json!({"y": "2"}));
    labelled["metadata"]["labels"] = json!({"l": "1"});
    labelled["metadata"]["finalizers"] = json!(["x.dev/a"]);
    on.ask("labels and finalizers", "APPLY", &two, labelled)
        .await?;
    let edit = json!({"data": {"y": "3", "w": "1"}});
    on.ask("an edit takes a field", "MERGE", &by(MAP, "person"), edit)
        .await?;
    let back = map("a", json!({"y": "2"}));
    on.ask("a conflict with the edit", "APPLY", &two, back)
        .await?;
    let kept = map("a", json!({"y": "3"}));
    on.ask("as it was edited", "APPLY", &two, kept).await?;
    let mut put = map("a", json!({"put": "1"}));
    put["metadata"]["labels"] = json!({"l": "1"});
    on.ask("a replacement", "PUT", &by(MAP, "person"), put)
        .await?;
    on.ask("no manager", "APPLY", MAP, map("a", json!({})))
        .await?;
    let mut managed = map("a", json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    on.ask(
        "managed fields that are empty",
        "APPLY",
        &one,
        managed.clone(),
    )
    .await?;
    managed["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply"}]);
    on.ask("managed fields", "APPLY", &one, managed).await?;
    let mut versioned = map("a", json!({"x": "9"}));
    versioned["metadata"]["resourceVersion"] = json!("1");
    on.ask("an old version", "APPLY", &one, versioned).await?;
    let mut identified = map("b", json!({"x": "9"}));
    identified["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    let b = by(&format!("{MAPS}/b"), "one");
    on.ask("a uid that is not there", "APPLY", &b, identified)
        .await?;
    on.ask("another name", "APPLY", &b, map("a", json!({})))
        .await?;
    let mut kind = map("b", json!({}));
    kind["kind"] = json!("Secret");
    on.ask("another kind", "APPLY", &b, kind).await?;
    let strict = format!("{MAP}?fieldManager=one&force=true");
    on.ask("force without apply", "MERGE", &strict, json!({}))
        .await?;
    Ok(())
}

/// Lists that are merged by keys, sets, and what is replaced as a whole.
async fn apply_lists(on: &mut Tape) -> Result<(), Problem> {
    on.keep(&["/metadata/generation", "/metadata/managedFields", "/spec"]);
    let (one, two) = (by(WEB, "one"), by(WEB, "two"));
    let forced = format!("{two}&force=true");
    let port = |port: u16, name: &str| json!({"port": port, "name": name});
    let spec = |more: Value| {
        let mut spec = json!({"size": 1});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        web("a", spec)
    };
    let steps = [
        (
            "create",
            &one,
            spec(json!({
                "ports": [port(80, "http"), port(443, "https")], "hosts": ["a", "b"],
                "steps": ["1", "2"], "whole": {"x": "1"}, "free": {"x": 1},
            })),
        ),
        (
            "an item more",
            &two,
            spec(json!({"ports": [port(81, "other")]})),
        ),
        (
            "a field of an item",
            &two,
            spec(json!({"ports": [port(80, "mine")]})),
        ),
        (
            "the same item",
            &two,
            spec(json!({"ports": [port(80, "http")]})),
        ),
        ("a member", &two, spec(json!({"hosts": ["b", "c"]}))),
        ("another list", &two, spec(json!({"steps": ["3"]}))),
        (
            "another list by force",
            &forced,
            spec(json!({"steps": ["3"]})),
        ),
        ("another map", &two, spec(json!({"whole": {"y": "1"}}))),
        ("free fields", &two, spec(json!({"free": {"y": 1}}))),
        (
            "drops items",
            &one,
            spec(json!({
                "ports": [port(443, "https")], "hosts": ["a"], "whole": {"x": "1"}, "free": {"x": 1},
            })),
        ),
        (
            "an item twice",
            &two,
            spec(json!({"ports": [port(80, "a"), port(80, "b")]})),
        ),
        (
            "an item without its key",
            &two,
            spec(json!({"ports": [{"name": "x"}]})),
        ),
    ];
    for (step, path, object) in steps {
        on.ask(step, "APPLY", path, object).await?;
    }
    let least = web("a", json!({"size": 1}));
    on.ask("drops whole lists", "APPLY", &one, least).await?;
    on.keep(&[
        "/metadata/generation",
        "/metadata/managedFields",
        "/spec/replicas",
        "/spec/template/spec/containers/0/name",
        "/spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/0/env",
        "/spec/template/spec/containers/1/name",
        "/spec/template/spec/containers/1/image",
    ]);
    let (one, two) = (by(DEPLOYMENT, "one"), by(DEPLOYMENT, "two"));
    let server = json!([{
        "name": "server", "image": "one", "env": [{"name": "X", "value": "1"}],
    }]);
    on.ask("a deployment", "APPLY", &one, deployment(server.clone()))
        .await?;
    let mut sidecar = deployment(json!([{"name": "sidecar", "image": "s"}]));
    sidecar["spec"]["replicas"] = Value::Null;
    on.ask("a sidecar", "APPLY", &two, sidecar).await?;
    let mut other = deployment(json!([{"name": "server", "image": "two"}]));
    other["spec"]
        .as_object_mut()
        .map(|spec| spec.remove("replicas"));
    on.ask("another image", "APPLY", &two, other.clone())
        .await?;
    let forced = format!("{two}&force=true");
    on.ask("another image by force", "APPLY", &forced, other)
        .await?;
    on.ask("the first again", "APPLY", &one, deployment(server))
        .await?;
    Ok(())
}

/// Defaults, pruning, checks, generations of a custom kind.
async fn custom(on: &mut Tape) -> Result<(), Problem> {
    let spec = json!({"size": 1, "typo": 2, "free": {"x": 1}, "ports": [{"port": 80}]});
    let mut object = web("a", spec);
    object["more"] = json!(1);
    let made = on.ask("create", "POST", WEBS, object).await?;
    let wrong = [
        ("no spec", json!(null)),
        ("no size", json!({})),
        ("a text", json!({"size": "2"})),
        ("a fraction", json!({"size": 1.5})),
        ("too large", json!({"size": 6})),
        ("too small", json!({"size": -1})),
        ("another mode", json!({"size": 1, "mode": "odd"})),
        ("no list", json!({"size": 1, "hosts": "a"})),
        ("a member twice", json!({"size": 1, "hosts": ["a", "a"]})),
        (
            "an item twice",
            json!({"size": 1, "ports": [{"port": 80}, {"port": 80}]}),
        ),
        (
            "an item without its key",
            json!({"size": 1, "ports": [{"name": "x"}]}),
        ),
        ("a null", json!({"size": 1, "mode": null})),
    ];
    for (step, spec) in wrong {
        let mut object = web("b", spec);
        if object["spec"].is_null() {
            object.as_object_mut().map(|fields| fields.remove("spec"));
        }
        on.ask(step, "POST", WEBS, object).await?;
    }
    on.ask("a new spec", "MERGE", WEB, json!({"spec": {"size": 2}}))
        .await?;
    on.ask("the same spec", "MERGE", WEB, json!({"spec": {"size": 2}}))
        .await?;
    let label = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}});
    on.ask("a label", "MERGE", WEB, label).await?;
    let generation = json!({"metadata": {"generation": 9, "creationTimestamp": null}});
    on.ask("a generation of one's own", "MERGE", WEB, generation)
        .await?;
    let mut unversioned = made;
    unversioned["metadata"]
        .as_object_mut()
        .map(|meta| meta.remove("resourceVersion"));
    on.ask("replace any version", "PUT", WEB, unversioned)
        .await?;
    on.ask(
        "a wrong change",
        "MERGE",
        WEB,
        json!({"spec": {"size": -1}}),
    )
    .await?;
    on.ask(
        "the default again",
        "MERGE",
        WEB,
        json!({"spec": {"mode": null}}),
    )
    .await?;
    Ok(())
}

/// Status as a subresource.
async fn status(on: &mut Tape) -> Result<(), Problem> {
    let path = format!("{WEB}/status");
    on.ask("create", "POST", WEBS, web("a", json!({"size": 1})))
        .await?;
    on.ask("get it", "GET", &path, Value::Null).await?;
    let reporter = by(&path, "reporter");
    let report = json!({"status": {"replicas": 3}});
    let reported = on.ask("a report", "MERGE", &reporter, report).await?;
    on.ask(
        "the same report",
        "MERGE",
        &reporter,
        json!({"status": {"replicas": 3}}),
    )
    .await?;
    on.ask(
        "a change of the spec",
        "MERGE",
        WEB,
        json!({"spec": {"size": 2}}),
    )
    .await?;
    let mut stale = reported;
    stale["status"] = json!({"replicas": 5});
    on.ask("a stale report", "PUT", &reporter, stale).await?;
    let condition = |kind: &str, status: &str| {
        json!({
            "apiVersion": "conformance.requeue.dev/v1", "kind": "Web", "metadata": {"name": "a"},
            "status": {"conditions": [{"type": kind, "status": status}]},
        })
    };
    let applier = by(&path, "applier");
    on.ask(
        "an applied condition",
        "APPLY",
        &applier,
        condition("Ready", "True"),
    )
    .await?;
    let other = by(&path, "second");
    on.ask(
        "one of another",
        "APPLY",
        &other,
        condition("Synced", "True"),
    )
    .await?;
    on.ask("a conflict", "APPLY", &other, condition("Ready", "False"))
        .await?;
    on.ask(
        "another condition",
        "APPLY",
        &applier,
        condition("Live", "True"),
    )
    .await?;
    let bare = json!({
        "apiVersion": "conformance.requeue.dev/v1", "kind": "Web",
        "status": {"conditions": [{"type": "Live", "status": "True"}]},
    });
    on.ask("applied without metadata", "APPLY", &applier, bare)
        .await?;
    let wrong = json!({"status": {"replicas": "many"}});
    on.ask("a wrong report", "MERGE", &reporter, wrong).await?;
    let none = format!("{WEBS}/b/status");
    on.ask("of nothing", "MERGE", &none, json!({"status": {}}))
        .await?;
    on.ask(
        "applied to nothing",
        "APPLY",
        &by(&none, "applier"),
        json!({
            "apiVersion": "conformance.requeue.dev/v1", "kind": "Web", "metadata": {"name": "b"},
            "status": {"replicas": 1},
        }),
    )
    .await?;

    // Who owns what is not what is asked here: before 1.22 a request owned also what it could not set.
    on.keep(&[
        "/metadata/generation",
        "/metadata/labels",
        "/metadata/finalizers",
        "/spec",
        "/status",
    ]);
    let mut object = web("c", json!({"size": 1}));
    object["status"] = json!({"replicas": 9});
    on.ask("create with a status", "POST", WEBS, object).await?;
    let both = json!({
        "spec": {"size": 2}, "status": {"replicas": 3},
        "metadata": {"labels": {"l": "1"}, "finalizers": ["x.dev/a"]},
    });
    let (object, path) = (format!("{WEBS}/c"), format!("{WEBS}/c/status"));
    on.ask("all in a report", "MERGE", &path, both.clone())
        .await?;
    on.ask("all but in a report", "MERGE", &object, both)
        .await?;

    on.keep(&[
        "/metadata/generation",
        "/spec/replicas",
        "/status/replicas",
        "/status/readyReplicas",
    ]);
    let mut object = deployment(json!([{"name": "server", "image": "one"}]));
    object["status"] = json!({"replicas": 9});
    on.ask("a built-in kind", "POST", DEPLOYMENTS, object)
        .await?;
    let path = format!("{DEPLOYMENT}/status");
    let both = json!({"spec": {"replicas": 7}, "status": {"replicas": 2, "readyReplicas": 1}});
    on.ask("its report", "MERGE", &path, both).await?;
    let both = json!({"spec": {"replicas": 3}, "status": {"replicas": 9}});
    on.ask("its change", "MERGE", DEPLOYMENT, both).await?;
    Ok(())
}

async fn scale(on: &mut Tape) -> Result<(), Problem> {
    let path = format!("{DEPLOYMENT}/scale");
    on.keep(&[
        "/kind",
        "/apiVersion",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/uid",
        "/metadata/creationTimestamp",
        "/metadata/generation",
        "/spec/replicas",
        "/status/replicas",
        "/status/selector",
    ]);
    let object = deployment(json!([{"name": "server", "image": "one"}]));
    on.ask("create", "POST", DEPLOYMENTS, object).await?;
    let scale = on.ask("get", "GET", &path, Value::Null).await?;
    on.ask("patch", "MERGE", &path, json!({"spec": {"replicas": 5}}))
        .await?;
    on.ask("the object", "GET", DEPLOYMENT, Value::Null).await?;
    let mut stale = scale.clone();
    stale["spec"]["replicas"] = json!(6);
    on.ask("replace a stale one", "PUT", &path, stale.clone())
        .await?;
    stale["metadata"]
        .as_object_mut()
        .map(|meta| meta.remove("resourceVersion"));
    on.ask("replace any", "PUT", &path, stale).await?;
    on.ask(
        "to nothing",
        "MERGE",
        &path,
        json!({"spec": {"replicas": 0}}),
    )
    .await?;
    on.ask(
        "a wrong number",
        "MERGE",
        &path,
        json!({"spec": {"replicas": -1}}),
    )
    .await?;
    let report = json!({"status": {"replicas": 2}});
    on.ask("a report", "MERGE", &format!("{DEPLOYMENT}/status"), report)
        .await?;
    on.ask("with the report", "GET", &path, Value::Null).await?;
    on.ask(
        "of nothing",
        "GET",
        &format!("{DEPLOYMENTS}/b/scale"),
        Value::Null,
    )
    .await?;

    let path = format!("{WEB}/scale");
    on.ask("a custom kind", "POST", WEBS, web("a", json!({"size": 1})))
        .await?;
    on.ask("its scale", "GET", &path, Value::Null).await?;
    on.ask("scale it", "MERGE", &path, json!({"spec": {"replicas": 4}}))
        .await?;
    on.ask(
        "beyond its bounds",
        "MERGE",
        &path,
        json!({"spec": {"replicas": 9}}),
    )
    .await?;
    let report = json!({"status": {"replicas": 3, "selector": "app=web"}});
    on.ask("its report", "MERGE", &format!("{WEB}/status"), report)
        .await?;
    on.ask("its scale and report", "GET", &path, Value::Null)
        .await?;
    let none = format!("{MAP}/scale");
    on.ask("no scale", "GET", &none, Value::Null).await?;
    Ok(())
}

async fn finalizers(on: &mut Tape) -> Result<(), Problem> {
    let mut object = web("a", json!({"size": 1}));
    object["metadata"]["finalizers"] = json!(["x.dev/one"]);
    on.ask("create", "POST", WEBS, object).await?;
    on.ask("delete", "DELETE", WEB, Value::Null).await?;
    on.ask("delete again", "DELETE", WEB, Value::Null).await?;
    let more = json!({"metadata": {"finalizers": ["x.dev/one", "x.dev/two"]}});
    on.ask("one more", "MERGE", WEB, more).await?;
    let alive = json!({"metadata": {"deletionTimestamp": null}});
    on.ask("not deleted after all", "MERGE", WEB, alive).await?;
    on.ask("a change", "MERGE", WEB, json!({"spec": {"size": 2}}))
        .await?;
    on.ask(
        "the last",
        "MERGE",
        WEB,
        json!({"metadata": {"finalizers": []}}),
    )
    .await?;
    on.ask("gone", "GET", WEB, Value::Null).await?;
    let mut object = map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["x.dev/one"]);
    on.ask("a map", "POST", MAPS, object).await?;
    on.ask("delete the map", "DELETE", MAP, Value::Null).await?;
    let mut put = map("a", json!({"x": "1"}));
    put["metadata"]["finalizers"] = json!([]);
    on.ask("replace it without", "PUT", MAP, put).await?;
    on.ask("the map is gone", "GET", MAP, Value::Null).await?;
    Ok(())
}

/// Garbage in the background, in the foreground and orphans; namespaces.
async fn garbage(on: &mut Tape) -> Result<(), Problem> {
    on.keep(&[
        "/metadata/finalizers",
        "/metadata/deletionTimestamp",
        "/metadata/ownerReferences",
    ]);
    for policy in ["Background", "Foreground", "Orphan"] {
        let step = |what: &str| format!("{policy}: {what}");
        let owner = map("owner", json!({}));
        let owner = on.ask(&step("an owner"), "POST", MAPS, owner).await?;
        let mut part = map("part", json!({}));
        part["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true, "controller": true,
        }]);
        on.ask(&step("a part"), "POST", MAPS, part).await?;
        let options = json!({"propagationPolicy": policy});
        let (owner, part) = (format!("{MAPS}/owner"), format!("{MAPS}/part"));
        on.ask(&step("delete the owner"), "DELETE", &owner, options)
            .await?;
        if policy == "Orphan" {
            on.until(&step("the owner"), &owner, 404).await?;
            on.ask(&step("the part"), "GET", &part, Value::Null).await?;
        } else {
            on.until(&step("the part"), &part, 404).await?;
            on.until(&step("the owner"), &owner, 404).await?;
        }
    }
    let mut stray = map("stray", json!({}));
    stray["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody",
        "uid": "11111111-1111-4111-8111-111111111111",
    }]);
    on.ask("a part of nobody", "POST", MAPS, stray).await?;
    on.until("a part of nobody goes", &format!("{MAPS}/stray"), 404)
        .await?;

    on.keep(&["/status/phase", "/metadata/deletionTimestamp"]);
    let space = "/api/v1/namespaces/NS";
    let held = format!("{MAPS}/held");
    let mut object = map("held", json!({}));
    object["metadata"]["finalizers"] = json!(["x.dev/hold"]);
    on.ask("an object that is held", "POST", MAPS, object)
        .await?;
    on.ask("the namespace", "GET", space, Value::Null).await?;
    on.ask("delete the namespace", "DELETE", space, Value::Null)
        .await?;
    on.ask("create in it", "POST", MAPS, map("late", json!({})))
        .await?;
    on.until("the orphan goes", &format!("{MAPS}/part"), 404)
        .await?;
    on.ask("it ends", "GET", space, Value::Null).await?;
    on.ask(
        "let go",
        "MERGE",
        &held,
        json!({"metadata": {"finalizers": null}}),
    )
    .await?;
    on.until("the namespace is gone", space, 404).await?;
    Ok(())
}

async fn watches(on: &mut Tape) -> Result<(), Problem> {
    let made = on
        .ask("create", "POST", MAPS, map("a", json!({"x": "1"})))
        .await?;
    let since = text(&made["metadata"]["resourceVersion"]);
    let mut all = on
        .watch(&format!(
            "{MAPS}?watch=true&resourceVersion={since}&timeoutSeconds=20"
        ))
        .await?;
    let front = "labelSelector=tier%3Dfront";
    let mut some = on
        .watch(&format!(
            "{MAPS}?watch=true&resourceVersion={since}&timeoutSeconds=20&{front}"
        ))
        .await?;
    let named = "fieldSelector=metadata.name%3Da";
    let mut one = on
        .watch(&format!(
            "{MAPS}?watch=true&resourceVersion={since}&timeoutSeconds=20&{named}"
        ))
        .await?;
    let tier = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    on.ask("a change", "MERGE", MAP, json!({"data": {"x": "2"}}))
        .await?;
    on.ask("no change", "MERGE", MAP, json!({"data": {"x": "2"}}))
        .await?;
    on.ask("another object", "POST", MAPS, map("b", json!({})))
        .await?;
    on.ask("selected", "MERGE", MAP, tier("front")).await?;
    on.ask("still selected", "MERGE", MAP, json!({"data": {"x": "3"}}))
        .await?;
    on.ask("not selected", "MERGE", MAP, tier("back")).await?;
    on.ask("selected again", "MERGE", MAP, tier("front"))
        .await?;
    on.ask(
        "held",
        "MERGE",
        MAP,
        json!({"metadata": {"finalizers": ["x.dev/a"]}}),
    )
    .await?;
    on.ask("delete", "DELETE", MAP, Value::Null).await?;
    on.ask(
        "let go",
        "MERGE",
        MAP,
        json!({"metadata": {"finalizers": null}}),
    )
    .await?;
    on.read("everything", &mut all, 20).await;
    on.read("the selected", &mut some, 20).await;
    on.read("the one", &mut one, 20).await;
    drop((all, some, one));

    let path = format!("{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=20");
    let mut watch = on.watch(&path).await?;
    on.read("what there is", &mut watch, 5).await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=20");
    let mut watch = on.watch(&path).await?;
    on.read("what there is, of no version", &mut watch, 5).await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1");
    let mut watch = on.watch(&path).await?;
    on.read("one that ends", &mut watch, 5).await;

    let path = format!("{WEBS}?watch=true&resourceVersion={since}&timeoutSeconds=20");
    let mut watch = on.watch(&path).await?;
    on.ask(
        "a custom object",
        "POST",
        WEBS,
        web("a", json!({"size": 1})),
    )
    .await?;
    let report = json!({"status": {"replicas": 1}});
    let reporter = by(&format!("{WEB}/status"), "reporter");
    on.ask("its report", "MERGE", &reporter, report).await?;
    on.ask("delete it", "DELETE", WEB, Value::Null).await?;
    on.read("the custom kind", &mut watch, 5).await;
    Ok(())
}

/// The metadata alone.
async fn metadata(on: &mut Tape) -> Result<(), Problem> {
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    on.ask("create", "POST", MAPS, map("a", json!({"x": "1"})))
        .await?;
    on.ask("get", "GET", &format!("{MAP} {one}"), Value::Null)
        .await?;
    on.ask("list", "GET", &format!("{MAPS} {list}"), Value::Null)
        .await?;
    let patch = json!({"metadata": {"labels": {"l": "1"}}});
    on.ask("patch", "MERGE", &format!("{MAP} {one}"), patch)
        .await?;
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"m": "1"}},
    });
    on.ask(
        "apply",
        "APPLY",
        &format!("{} {one}", by(MAP, "one")),
        applied,
    )
    .await?;
    on.ask(
        "what is not there",
        "GET",
        &format!("{MAPS}/b {one}"),
        Value::Null,
    )
    .await?;
    on.ask("whole", "GET", MAP, Value::Null).await?;
    Ok(())
}

async fn dry_runs(on: &mut Tape) -> Result<(), Problem> {
    let dry = |path: &str| format!("{path}?dryRun=All&fieldManager=me");
    on.keep(&[
        "/metadata/name",
        "/metadata/labels",
        "/metadata/generation",
        "/data",
        "/kind",
    ]);
    on.ask("create", "POST", &dry(MAPS), map("a", json!({"x": "1"})))
        .await?;
    on.ask("it is not there", "GET", MAP, Value::Null).await?;
    on.ask("apply", "APPLY", &dry(MAP), map("a", json!({"x": "1"})))
        .await?;
    on.ask("it is not there either", "GET", MAP, Value::Null)
        .await?;
    on.ask("a real one", "POST", MAPS, map("a", json!({"x": "1"})))
        .await?;
    on.ask(
        "create what is there",
        "POST",
        &dry(MAPS),
        map("a", json!({})),
    )
    .await?;
    on.ask("patch", "MERGE", &dry(MAP), json!({"data": {"x": "2"}}))
        .await?;
    on.ask("replace", "PUT", &dry(MAP), map("a", json!({"x": "3"})))
        .await?;
    on.ask("delete", "DELETE", MAP, json!({"dryRun": ["All"]}))
        .await?;
    on.ask("as before", "GET", MAP, Value::Null).await?;
    on.ask(
        "a wrong one",
        "POST",
        &dry(WEBS),
        web("a", json!({"size": 9})),
    )
    .await?;
    on.ask(
        "no dry run",
        "POST",
        &format!("{MAPS}?dryRun=Some"),
        map("b", json!({})),
    )
    .await?;
    Ok(())
}

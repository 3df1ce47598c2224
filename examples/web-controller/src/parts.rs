//! The wanted parts of a `Web`, as values computed from it alone.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::crd::Web;

/// The page, as a file.
///
/// # Errors
///
/// None in practice: the value has the shape of its type.
pub(crate) fn config_map(web: &Web) -> serde_json::Result<ConfigMap> {
    part(web, json!({"data": {"index.html": web.spec.page}}))
}

/// The pods that serve it.
///
/// # Errors
///
/// None in practice: the value has the shape of its type.
pub(crate) fn deployment(web: &Web) -> serde_json::Result<Deployment> {
    let labels = labels(web);
    let container = json!({
        "name": "server",
        "image": web.spec.image,
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
    });
    let pod = json!({
        "containers": [container],
        "volumes": [{"name": "page", "configMap": {"name": web.name_any()}}],
    });
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let selector = json!({"matchLabels": labels});
    let replicas = web.spec.replicas;
    part(
        web,
        json!({"spec": {"replicas": replicas, "selector": selector, "template": template}}),
    )
}

/// The address of the pods.
///
/// # Errors
///
/// None in practice: the value has the shape of its type.
pub(crate) fn service(web: &Web) -> serde_json::Result<Service> {
    let ports = json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]);
    part(
        web,
        json!({"spec": {"selector": labels(web), "ports": ports}}),
    )
}

/// Adds the metadata that all parts have. The owner's name is that of each part.
fn part<T: DeserializeOwned>(web: &Web, mut part: Value) -> serde_json::Result<T> {
    part["metadata"] = json!({
        "name": web.name_any(),
        "namespace": web.namespace(),
        "labels": labels(web),
        "ownerReferences": [web.controller_owner_ref(&())],
    });
    serde_json::from_value(part)
}

fn labels(web: &Web) -> BTreeMap<&'static str, String> {
    BTreeMap::from([("app.kubernetes.io/name", web.name_any())])
}

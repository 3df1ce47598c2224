//! The kind `Web`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A web page and its number of servers.
#[derive(CustomResource, Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "example.requeue.dev",
    version = "v1",
    kind = "Web",
    namespaced,
    status = "WebStatus",
    shortname = "web",
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WebSpec {
    /// The text of the page.
    pub page: String,
    /// The number of pods that serve it.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// The image of a server that serves `/usr/share/nginx/html`.
    #[serde(default = "nginx")]
    pub image: String,
}

/// The present state of a `Web`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebStatus {
    /// The generation of the `Web` for which the parts were applied.
    pub observed_generation: i64,
    /// The number of ready pods.
    pub ready_replicas: i32,
}

fn one() -> i32 {
    1
}

fn nginx() -> String {
    String::from("nginx:stable")
}

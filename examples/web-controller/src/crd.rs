//! The kind `Web`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page, and how it is served.
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
    /// How many pods serve it.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// A server that serves what is in `/usr/share/nginx/html`.
    #[serde(default = "nginx")]
    pub image: String,
}

/// What there is of it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebStatus {
    /// The generation of the `Web` that the parts were made for.
    pub observed_generation: i64,
    /// How many pods are ready.
    pub ready_replicas: i32,
}

fn one() -> i32 {
    1
}

fn nginx() -> String {
    String::from("nginx:stable")
}

//! Controllers on a Kubernetes API in memory, on virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod api;
mod convergence;
mod faults;
mod feeding;
#[cfg(feature = "metrics")]
mod figures;
mod leader;
mod manager;
mod moving;
mod noting;
mod own_writes;
mod owners;
mod path;
mod process;
mod queues;
mod reasons;
mod refusals;
mod rules;
mod seeds;
#[cfg(feature = "shards")]
mod shards;
mod spans;
mod streams;
mod takeover;
mod watches;
mod window;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use kube::{Api, Client};
use requeue_kube::Controller;
use serde_json::{Value, json};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A config map, as the API has it.
fn map(name: &str, want: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"want": want},
    })
}

fn maps(client: &Client) -> Controller<ConfigMap> {
    Controller::new(Api::all(client.clone()), watcher::Config::default())
}

fn name_of(map: &ConfigMap) -> String {
    map.metadata.name.clone().unwrap_or_default()
}

fn wanted(map: &ConfigMap) -> String {
    let data = map.data.as_ref();
    data.and_then(|data| data.get("want").cloned())
        .unwrap_or_default()
}

//! A set of shards in Leases: what the engine promises, and replicas that live on it.

mod engine;
mod faults;
mod replicas;
mod store;

use std::time::Duration;

use crate::api::{Cluster, Link};
use requeue_kube::Leases;

const LEASES: &str = "leases.coordination.k8s.io";
const TTL: Duration = Duration::from_secs(5);

fn leases(cluster: &Cluster, link: &Link) -> Leases {
    Leases::new(cluster.client(link), "default")
}

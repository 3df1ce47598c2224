//! The engines pass the checks of `conformance`: that in memory on virtual time, and etcd where
//! `ETCD_ENDPOINTS` names a cluster, as `cargo xtask shards` does.
#![cfg(feature = "conformance")]

use requeue_shards::{Memory, conformance};

#[tokio::test(start_paused = true)]
async fn memory() {
    conformance::all(&Memory::new(), "memory").await;
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn etcd() {
    use std::process;

    let Ok(endpoints) = std::env::var("ETCD_ENDPOINTS") else {
        println!("no ETCD_ENDPOINTS: run by `cargo xtask shards`");
        return;
    };
    let etcd = requeue_shards::Etcd::connect(endpoints.split(','))
        .await
        .unwrap();
    conformance::all(&etcd, &format!("conformance-{}", process::id())).await;
}

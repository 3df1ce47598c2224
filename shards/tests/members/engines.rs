//! The engine in memory passes the checks of `conformance`, on virtual time. etcd does in
//! `cargo xtask shards`.

use requeue_shards::{Memory, conformance};

#[tokio::test(start_paused = true)]
async fn memory() {
    conformance::all(&Memory::new(), "memory").await;
}

//! In place of `replicas` where that feature is not chosen.

use std::sync::Arc;
use std::time::Duration;

use requeue::tokio::CancellationToken;

use crate::args::Replicas;
use crate::dispatch::Dispatcher;

/// There is none.
pub(crate) enum Replica {}

pub(crate) async fn join(
    _: &Replicas,
    _: Duration,
    _: &Arc<Dispatcher>,
) -> Result<Replica, String> {
    let how = "cargo build --release -p webhooks --features replicas";
    Err(format!(
        "this program was built without --etcd: {how}, which needs protoc"
    ))
}

impl Replica {
    pub(crate) async fn employ(
        self,
        _: Arc<Dispatcher>,
        _: usize,
        _: CancellationToken,
    ) -> Result<(), String> {
        match self {}
    }
}

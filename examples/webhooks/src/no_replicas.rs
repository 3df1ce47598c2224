//! In place of `replicas` where that feature is not chosen.

use std::sync::Arc;
use std::time::Duration;

use requeue::tokio::CancellationToken;

use crate::args::Replicas;
use crate::dispatch::Dispatcher;

pub(crate) const IS_BUILT: bool = false;

/// There is none.
pub(crate) enum Replica {}

pub(crate) async fn join(
    _: &Replicas,
    _: Duration,
    _: &Arc<Dispatcher>,
) -> Result<Replica, String> {
    Err("this program was built without replicas".into())
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

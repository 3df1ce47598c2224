//! No metrics.

use std::time::Duration;

use kube::Resource;
use requeue::tokio::Workers;

use crate::keys::KeysBuilder;

pub(crate) struct LeaderMetrics;

impl LeaderMetrics {
    pub(crate) fn new(_lease: &str) -> Self {
        Self
    }

    pub(crate) fn leads(&self, _leads: bool) {}
}

pub(crate) struct WriteMetrics;

impl WriteMetrics {
    pub(crate) fn new(_name: Option<&str>) -> Self {
        Self
    }

    pub(crate) fn began(&self) {}

    pub(crate) fn came_back(&self, _waited: Duration) {}

    pub(crate) fn gave_up(&self, _waited: Duration) {}
}

pub(crate) fn attach<K: Resource>(builder: KeysBuilder<K>, _name: Option<&str>) -> KeysBuilder<K> {
    builder
}

/// Whether the controller reports how long runs have lasted.
pub(crate) fn reports(_name: Option<&str>) -> bool {
    false
}

pub(crate) fn observe<'w, K, E>(
    workers: Workers<'w, K, E>,
    _name: Option<&str>,
) -> Workers<'w, K, E> {
    workers
}

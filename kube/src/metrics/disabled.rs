//! No metrics.

use std::hash::Hash;

use kube::Resource;
use requeue::tokio::Workers;
use requeue::{Builder, DefaultController, Levels, Reporter};

use crate::keys::Keys;

pub(crate) struct LeaderMetrics;

impl LeaderMetrics {
    pub(crate) fn new(_lease: &str) -> Self {
        Self
    }

    pub(crate) fn leads(&self, _leads: bool) {}
}

pub(crate) fn build<K>(
    builder: Builder<requeue::tokio::Tasks, DefaultController, Reporter, Levels<2>>,
    _name: Option<&str>,
) -> Keys<K>
where
    K: Resource,
    K::DynamicType: Eq + Hash,
{
    builder.build()
}

/// Whether ages of runs are reported.
pub(crate) fn reports(_name: Option<&str>) -> bool {
    false
}

pub(crate) fn observe<'w, K, E>(
    workers: Workers<'w, K, E>,
    _name: Option<&str>,
) -> Workers<'w, K, E> {
    workers
}

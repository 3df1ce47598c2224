//! No metrics.

use std::hash::Hash;

use kube::Resource;
use requeue::tokio::Action;
use requeue::{Builder, DefaultController, Levels, Reporter};

use crate::keys::Keys;

pub(crate) struct LeaderMetrics;

impl LeaderMetrics {
    pub(crate) fn new(_lease: &str) -> Self {
        Self
    }

    pub(crate) fn leads(&self, _leads: bool) {}
}

pub(crate) struct RunMetrics;

impl RunMetrics {
    pub(crate) fn new(_controller: Option<&str>, _workers: usize) -> Self {
        Self
    }

    pub(crate) fn begin(&self) -> Self {
        Self
    }

    pub(crate) fn end<E>(self, _result: &Result<Action, E>) {}
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

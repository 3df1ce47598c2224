//! No metrics.

use requeue::tokio::Action;

use crate::keys::KeysBuilder;

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

pub(crate) fn attach(builder: KeysBuilder, _name: Option<&str>) -> KeysBuilder {
    builder
}

/// Whether ages of runs are reported.
pub(crate) fn reports(_name: Option<&str>) -> bool {
    false
}

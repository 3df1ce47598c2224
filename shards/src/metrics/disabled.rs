//! No metrics.

use crate::member::Counters;

pub(crate) struct MemberMetrics;

impl MemberMetrics {
    pub(crate) fn new(_set: &str) -> Self {
        Self
    }

    pub(crate) fn report(&self, _counters: &Counters) {}
}

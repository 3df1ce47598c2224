//! Metrics through the facade `metrics`.

use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::member::Counters;

/// The metrics of a member, labelled with the name of its set.
pub(crate) struct MemberMetrics {
    owned: Gauge,
    counters: [(Counter, Read); 11],
    /// The counters as last reported. Only differences are reported, because members of one set in
    /// one process share the metrics.
    reported: Mutex<Counters>,
}

type Read = fn(&Counters) -> u64;

/// The name of each counter, its description, and its source.
const COUNTERS: [(&str, &str, Read); 11] = [
    (
        "requeue_shards_taken_total",
        "Shards that were taken",
        |c| c.taken,
    ),
    (
        "requeue_shards_released_total",
        "Shards that were released after their last run",
        |c| c.released,
    ),
    (
        "requeue_shards_given_up_total",
        "Shards that were released although a run continued",
        |c| c.given_up,
    ),
    (
        "requeue_shards_lost_total",
        "Shards that were lost, by the end of a session or to another owner",
        |c| c.lost,
    ),
    (
        "requeue_shards_relists_total",
        "Lists of a shard's keys that succeeded",
        |c| c.relisted,
    ),
    (
        "requeue_shards_relists_failed_total",
        "Lists of a shard's keys that failed or took too long",
        |c| c.relists_failed,
    ),
    (
        "requeue_shards_keys_skipped_total",
        "Keys that did not run because their shard was not owned here",
        |c| c.skipped,
    ),
    (
        "requeue_shards_marks_unreadable_total",
        "Marks with an unreadable time, or without a key of their shard",
        |c| c.marks_unreadable,
    ),
    (
        "requeue_shards_values_unreadable_total",
        "Unreadable values of members and owners",
        |c| c.values_unreadable,
    ),
    (
        "requeue_shards_states_lost_total",
        "How often the engine had lost acknowledged writes",
        |c| c.states_lost,
    ),
    (
        "requeue_shards_sessions_lost_total",
        "Memberships that ended before the member left",
        |c| c.sessions_lost,
    ),
];

impl MemberMetrics {
    pub(crate) fn new(set: &str) -> Self {
        describe_gauge!(
            "requeue_shards_owned",
            Unit::Count,
            "Shards that this replica owns"
        );
        let counters = COUNTERS.map(|(name, what, read)| {
            describe_counter!(name, Unit::Count, what);
            (counter!(name, "set" => set.to_owned()), read)
        });
        let owned = gauge!("requeue_shards_owned", "set" => set.to_owned());
        Self {
            owned,
            counters,
            reported: Mutex::default(),
        }
    }

    /// O(1).
    pub(crate) fn report(&self, counters: &Counters) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        for (counter, read) in &self.counters {
            counter.increment(read(counters).saturating_sub(read(&reported)));
        }
        self.owned.increment(owned(counters) - owned(&reported));
        *reported = *counters;
    }
}

fn owned(counters: &Counters) -> f64 {
    u32::try_from(counters.owned()).unwrap_or(u32::MAX).into()
}

//! Metrics through the facade `metrics`.

use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::member::Counters;

/// What a member reports, labelled with the name of its set.
pub(crate) struct MemberMetrics {
    owned: Gauge,
    counters: [(Counter, Read); 11],
    /// What was reported last. Only the difference is: members of one set in one process, such as
    /// one that follows another, share the figures.
    reported: Mutex<Counters>,
}

type Read = fn(&Counters) -> u64;

/// The name of each counter, what it counts, and where it is read.
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
        "Shards that were released while a run went on",
        |c| c.given_up,
    ),
    ("requeue_shards_lost_total", "Shards that were lost", |c| {
        c.lost
    }),
    (
        "requeue_shards_relists_total",
        "Re-lists that were complete",
        |c| c.relisted,
    ),
    (
        "requeue_shards_relists_failed_total",
        "Re-lists that failed",
        |c| c.relists_failed,
    ),
    (
        "requeue_shards_keys_skipped_total",
        "Keys that did not run because their shard was not owned",
        |c| c.skipped,
    ),
    (
        "requeue_shards_marks_unreadable_total",
        "Marks that are no key of their shard, or whose time cannot be read",
        |c| c.marks_unreadable,
    ),
    (
        "requeue_shards_values_unreadable_total",
        "Values of members and owners that could not be read",
        |c| c.values_unreadable,
    ),
    (
        "requeue_shards_states_lost_total",
        "How often the engine had lost what it acknowledged",
        |c| c.states_lost,
    ),
    (
        "requeue_shards_sessions_lost_total",
        "Memberships that ended without being left",
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

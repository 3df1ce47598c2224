//! The answers of a queue under inspection, as plain data: what the page shows, the JSON carries and
//! the terminal reads. Owns their shape; computes nothing but what follows from a value itself.

use std::time::Duration;

use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

/// Writes a struct or an enum of the JSON.
macro_rules! json {
    ($($item:item)+) => {$(
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        $item
    )+};
}

json! {
    /// A queue at one moment.
    #[derive(Default)]
    pub struct QueueView {
        /// Its name in the registry.
        pub name: String,
        /// Keys that wait for a worker, for a group, for a token, or for the end of a pause.
        pub ready: usize,
        /// Keys whose runs have begun and not ended.
        pub active: usize,
        /// Active keys that run again after their present runs.
        pub dirty: usize,
        /// Keys that wait for a deadline.
        pub delayed: usize,
        /// Keys that wait to be resumed.
        pub suspended: usize,
        /// Keys that are kept only for their failures.
        pub failure_records: usize,
        /// All keys that take up room.
        pub total: usize,
        /// How many keys fit. Absent if there is no limit.
        pub max_keys: Option<usize>,
        /// Milliseconds until the earliest deadline. Absent if there is none.
        pub next_deadline_ms: Option<u64>,
        /// No key is handed out until the queue is unpaused.
        pub paused: bool,
        /// The queue takes no more keys.
        pub shutting_down: bool,
        /// The number of workers. Absent if no workers are watched.
        pub workers: Option<usize>,
        /// Runs that have ended since the workers began.
        pub runs: u64,
        /// Those of them that have failed.
        pub failures: u64,
        /// Those failures after which the key was given up.
        pub given_up: u64,
        /// Dead keys. Absent if the queue has no list of them.
        pub dead: Option<usize>,
        /// Whether the keys belong to groups.
        pub has_groups: bool,
        /// How long keys were ready before they ran. Empty if the queue keeps no times.
        pub waits: Histogram,
        /// How long runs took.
        pub run_times: Histogram,
        /// What keeps keys from running now, the most important sentence first.
        pub findings: Vec<String>,
    }

    /// How often something took how long.
    #[derive(Default)]
    pub struct Histogram {
        /// From the shortest to the longest.
        pub buckets: Vec<Bucket>,
        /// The sum of the counts.
        pub count: u64,
    }

    /// A part of a [`Histogram`].
    pub struct Bucket {
        /// The longest time that belongs here, in milliseconds. Absent in the last bucket.
        pub at_most_ms: Option<f64>,
        /// How many took longer than the bucket before says, and no longer than this one.
        pub count: u64,
    }

    /// What a key waits for, in one word.
    #[derive(Copy, Eq, Hash)]
    pub enum KeyPhase {
        /// Its run has begun and not ended.
        Active,
        /// The same, and it runs again afterwards.
        Dirty,
        /// It waits for a worker, for its group, for a token, or for the end of a pause.
        Ready,
        /// It waits for a deadline.
        Delayed,
        /// It waits to be resumed.
        Suspended,
        /// The queue keeps only its failures.
        Failures,
        /// The queue does not have it.
        Absent,
    }

    /// A key.
    pub struct KeyView {
        /// The key as it displays itself, cut after 16 KiB.
        pub id: String,
        /// What it waits for, in one word.
        pub phase: KeyPhase,
        /// Its group. Absent if the queue has no groups.
        pub group: Option<String>,
        /// How often it has failed since its last success.
        pub failures: u32,
        /// Its priority level.
        pub priority: u8,
        /// For how long its present run has been going on, in milliseconds.
        pub running_ms: Option<u64>,
        /// Milliseconds until its deadline. Absent if it has none, or one that never comes.
        pub due_in_ms: Option<u64>,
        /// Why it does not run now: a sentence.
        pub why: String,
    }

    /// A key and all that is known of it.
    pub struct KeyDetail {
        /// The key.
        pub key: KeyView,
        /// Why it was given up. Absent if it is not among the dead keys.
        pub dead: Option<String>,
        /// Its runs that ended last, the latest first.
        pub history: Vec<EndView>,
    }

    /// Some of a queue's keys.
    #[derive(Default)]
    pub struct KeyPage {
        /// The keys, in the order that was asked for.
        pub keys: Vec<KeyView>,
        /// How many keys match. Absent if not all keys were looked at.
        pub matching: Option<usize>,
        /// Whether there are more after these.
        pub more: bool,
    }

    /// A run in progress.
    pub struct RunView {
        /// The key.
        pub id: String,
        /// For how long it has been going on, in milliseconds.
        pub running_ms: u64,
        /// Which attempt it is, counted from 1.
        pub attempt: u32,
        /// It has passed its timeout, and cannot be stopped.
        pub overdue: bool,
    }

    /// A run that has ended.
    pub struct EndView {
        /// The key.
        pub id: String,
        /// How it ended: `success`, `failed` and so on.
        pub outcome: String,
        /// Why it failed, cut after 2 KiB.
        pub error: Option<String>,
        /// Which attempt it was, counted from 1.
        pub attempt: u32,
        /// How long it took, in milliseconds.
        pub took_ms: f64,
        /// How long ago it ended, in milliseconds.
        pub ago_ms: u64,
    }

    /// A key that was given up.
    pub struct DeadKeyView {
        /// The key.
        pub id: String,
        /// What is known of its last failure.
        pub why: String,
    }

    /// A group.
    pub struct GroupView {
        /// Its name.
        pub name: String,
        /// How many of its keys are ready: its backlog.
        pub ready: usize,
        /// How many are active.
        pub active: usize,
        /// How many the queue has in any state.
        pub total: usize,
        /// It may not start a run now, because of its limits or a pause.
        pub blocked: bool,
        /// It is paused.
        pub paused: bool,
        /// The limits that count now.
        pub limits: Limits,
    }

    /// The limits of a group.
    #[derive(Default)]
    pub struct Limits {
        /// How many of its keys may be active at once. Absent if there is no limit.
        pub max_active: Option<usize>,
        /// How many keys it is handed out in each of its turns. Absent counts as 1.
        pub weight: Option<u16>,
        /// How fast its keys are handed out. Absent if there is no limit.
        pub rate: Option<Rate>,
    }

    /// A rate of runs.
    #[derive(Copy)]
    pub struct Rate {
        /// Keys per second.
        pub per_second: f64,
        /// How many at once after a quiet time.
        pub burst: u32,
    }

    /// Some of a queue's groups, the longest backlog first.
    #[derive(Default)]
    pub struct GroupPage {
        /// The groups.
        pub groups: Vec<GroupView>,
        /// How many there are in all.
        pub total: usize,
    }

    /// The counts of one second, for a picture over time.
    #[derive(Copy, Default)]
    pub struct Sample {
        /// Its number: they are a second apart.
        pub seq: u64,
        /// Keys that were ready.
        pub ready: usize,
        /// Keys that were active.
        pub active: usize,
        /// Keys that were delayed.
        pub delayed: usize,
        /// Runs that ended since the sample before.
        pub runs: u64,
        /// Those that failed.
        pub failures: u64,
    }

    /// The order of a list of keys.
    #[derive(Copy, Eq)]
    pub enum Sort {
        /// Active keys first, then ready, delayed, suspended ones and failures.
        Phase,
        /// By the name of the group.
        Group,
        /// The most failures first.
        Failures,
        /// The earliest deadline first.
        Next,
    }
}

/// Which keys to list: see [`Inspect::keys`](crate::Inspect::keys).
///
/// # Examples
///
/// ```
/// use requeue_inspect::{KeyQuery, Sort};
///
/// let query = KeyQuery { sort: Some(Sort::Failures), ..KeyQuery::default() };
/// assert_eq!((query.limit, query.offset), (50, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "http", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "http", into_params(parameter_in = Query))]
#[serde(default)]
pub struct KeyQuery {
    /// Only keys that contain this text.
    pub search: String,
    /// Only keys of this phase.
    #[serde(deserialize_with = "none_if_empty")]
    pub phase: Option<KeyPhase>,
    /// Only keys of this group.
    #[serde(deserialize_with = "none_if_empty")]
    pub group: Option<String>,
    /// The order. Without one, keys come in the order in which the queue stores them.
    #[serde(deserialize_with = "none_if_empty")]
    pub sort: Option<Sort>,
    /// How many keys to skip, at most 10,000.
    pub offset: usize,
    /// How many keys to return, at most 200.
    pub limit: usize,
}

/// A form sends a field that was left empty.
fn none_if_empty<'de, D, T>(field: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let text = Option::<String>::deserialize(field)?;
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| T::deserialize(text.into_deserializer()))
        .transpose()
}

impl Default for KeyQuery {
    fn default() -> Self {
        Self {
            search: String::new(),
            phase: None,
            group: None,
            sort: None,
            offset: 0,
            limit: 50,
        }
    }
}

json! {
    /// Something to do to a queue: see [`Inspect::control`](crate::Inspect::control).
    #[serde(tag = "action")]
    pub enum Command {
        /// Ends the delay of a key now.
        Expedite {
            /// The key.
            id: String,
        },
        /// Takes back the work of a key. A present run goes on.
        Cancel {
            /// The key.
            id: String,
        },
        /// Adds a dead key to the queue again.
        RetryDead {
            /// The key.
            id: String,
        },
        /// Forgets a dead key.
        DropDead {
            /// The key.
            id: String,
        },
        /// Hands out no more keys.
        Pause,
        /// Hands out keys again.
        Unpause,
        /// Hands out no more keys of a group.
        PauseGroup {
            /// Its name.
            group: String,
        },
        /// Hands out keys of a group again.
        UnpauseGroup {
            /// Its name.
            group: String,
        },
        /// Sets the limits of a group. They replace those that it has.
        LimitGroup {
            /// Its name.
            group: String,
            /// The new limits.
            limits: Limits,
        },
        /// Sets the number of workers.
        SetWorkers {
            /// How many.
            workers: usize,
        },
    }
}

impl Rate {
    /// Creates a rate. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_inspect::{Command, Limits, Rate};
    ///
    /// let mut limits = Limits::default();
    /// limits.max_active = Some(2);
    /// limits.rate = Some(Rate::new(10.0, 5));
    /// let slower = Command::LimitGroup { group: "acme".to_owned(), limits };
    /// # let _ = slower;
    /// ```
    pub const fn new(per_second: f64, burst: u32) -> Self {
        Self { per_second, burst }
    }
}

/// The ends of the buckets in microseconds: two in each power of ten.
const ENDS: [u64; 15] = [
    100,
    300,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
];

/// Counts of times, in the buckets of a [`Histogram`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Times([u64; ENDS.len() + 1]);

impl Times {
    pub(crate) fn note(&mut self, time: Duration) {
        let at = ENDS.partition_point(|end| u128::from(*end) < time.as_micros());
        if let Some(count) = self.0.get_mut(at) {
            *count += 1;
        }
    }

    pub(crate) fn view(&self) -> Histogram {
        let ends = ENDS.iter().map(|end| Some(*end as f64 / 1_000.0));
        let buckets = ends.chain([None]).zip(self.0);
        Histogram {
            buckets: buckets
                .map(|(at_most_ms, count)| Bucket { at_most_ms, count })
                .collect(),
            count: self.0.iter().sum(),
        }
    }
}

impl Histogram {
    /// Returns a time that this share of all has not exceeded, as exactly as the buckets tell.
    /// `None` if nothing was counted, or if it is in the last bucket.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_inspect::Histogram;
    ///
    /// assert_eq!(Histogram::default().quantile(0.5), None);
    /// ```
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let mut missing = (self.count as f64 * share).ceil().max(1.0) as u64;
        for bucket in &self.buckets {
            if bucket.count >= missing {
                return Some(Duration::from_secs_f64(bucket.at_most_ms? / 1_000.0));
            }
            missing -= bucket.count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_where_it_belongs() {
        let mut times = Times::default();
        for micros in [0, 100, 101, 5_000_000, u64::MAX] {
            times.note(Duration::from_micros(micros));
        }
        let view = times.view();
        let counts: Vec<u64> = view.buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
        assert_eq!(view.quantile(0.4), Some(Duration::from_micros(100)));
        assert_eq!(view.quantile(0.5), Some(Duration::from_micros(300)));
        assert_eq!(view.quantile(1.0), None, "longer than the buckets tell");
    }
}

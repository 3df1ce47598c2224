//! The figures of a queue through the `metrics` facade.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Metrics, Times};
use ::metrics::{
    Counter, Gauge, Histogram, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

/// The figures of a queue under the names that Kubernetes gives them, so that a dashboard made for
/// its controllers shows this queue as well.
///
/// Every name has the label `name`, which tells one queue from another.
///
/// | name | |
/// |---|---|
/// | `workqueue_depth` | gauge: keys that are ready or dirty |
/// | `workqueue_adds_total` | counter: keys that became so |
/// | `workqueue_queue_duration_seconds` | histogram: how long a key waited for its run |
/// | `workqueue_work_duration_seconds` | histogram: how long a run took |
/// | `workqueue_unfinished_work_seconds` | gauge: the age of all present runs together |
/// | `workqueue_longest_running_processor_seconds` | gauge: the age of the oldest present run |
/// | `workqueue_retries_total` | counter: keys that were asked to come back later |
/// | `workqueue_depth_max` | gauge: the greatest depth so far; not of Kubernetes |
/// | `workqueue_delayed` | gauge: keys that wait for a deadline; not of Kubernetes |
/// | `workqueue_depth_by_priority` | gauge: the depth of each priority level; likewise |
/// | `workqueue_coalesced_total` | counter: adds that cost no run of their own; likewise |
///
/// The depth by priority has a second label, `priority`, and a name of its own, so that no sum
/// counts a key twice. It is there if [`levels`](Self::levels) asks for it.
///
/// The two ages are set by [`report_running`](crate::WorkQueue::report_running). An exporter that
/// shows histograms as summaries unless told otherwise is given [`DURATION_BUCKETS`].
///
/// # Examples
///
/// ```
/// use requeue_core::{NamedMetrics, Queue};
///
/// // After the recorder has been installed, else the figures go nowhere.
/// let parts = Queue::builder().metrics(NamedMetrics::new("webhooks"));
/// let queue = parts.build();
/// # let mut queue = queue;
/// # queue.add("node-7", requeue_core::Instant::EPOCH).value.unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct NamedMetrics {
    depth: Gauge,
    depth_max: Gauge,
    deepest: usize,
    /// Of each level, if they are shown.
    depth_by_priority: Vec<Gauge>,
    name: SharedString,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished_work: Gauge,
    longest_running: Gauge,
    retries: Counter,
    coalesced: Counter,
    delayed: Gauge,
}

/// The upper bounds, in seconds, that Kubernetes gives the two histograms: a microsecond, and
/// then ten times as much as before.
pub const DURATION_BUCKETS: [f64; 10] =
    [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

impl NamedMetrics {
    /// The figures of a queue of this name, for the recorder that is installed now.
    pub fn new(name: impl Into<SharedString>) -> Self {
        describe();
        let name: SharedString = name.into();
        let name = || name.clone();
        Self {
            depth: gauge!("workqueue_depth", "name" => name()),
            depth_max: gauge!("workqueue_depth_max", "name" => name()),
            deepest: 0,
            depth_by_priority: Vec::new(),
            adds: counter!("workqueue_adds_total", "name" => name()),
            queue_duration: histogram!("workqueue_queue_duration_seconds", "name" => name()),
            work_duration: histogram!("workqueue_work_duration_seconds", "name" => name()),
            unfinished_work: gauge!("workqueue_unfinished_work_seconds", "name" => name()),
            longest_running: gauge!(
                "workqueue_longest_running_processor_seconds", "name" => name()
            ),
            retries: counter!("workqueue_retries_total", "name" => name()),
            coalesced: counter!("workqueue_coalesced_total", "name" => name()),
            delayed: gauge!("workqueue_delayed", "name" => name()),
            name: name(),
        }
    }

    /// Shows the depth of each priority level as well, for a queue that has so many
    /// [`Levels`](crate::Levels). Called like [`new`](Self::new) once the recorder is installed.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{NamedMetrics, Queue};
    ///
    /// let metrics = NamedMetrics::new("webhooks").levels(2);
    /// let queue = Queue::builder().metrics(metrics).levels::<2>().build();
    /// # let mut queue = queue;
    /// # queue.add("node-7", requeue_core::Instant::EPOCH).value.unwrap();
    /// ```
    pub fn levels(mut self, levels: u8) -> Self {
        let gauge = |level: u8| {
            gauge!(
                "workqueue_depth_by_priority",
                "name" => self.name.clone(), "priority" => level.to_string()
            )
        };
        self.depth_by_priority = (0..levels).map(gauge).collect();
        self
    }
}

impl Metrics for NamedMetrics {
    type Stamps = Times;

    fn depth(&mut self, keys: usize) {
        self.depth.set(count(keys));
        if keys > self.deepest {
            self.deepest = keys;
            self.depth_max.set(count(keys));
        }
    }

    fn depth_at(&mut self, priority: u8, keys: usize) {
        if let Some(depth) = self.depth_by_priority.get(usize::from(priority)) {
            depth.set(count(keys));
        }
    }

    fn add(&mut self) {
        self.adds.increment(1);
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.queue_duration.record(latency);
    }

    fn work_duration(&mut self, duration: Duration) {
        self.work_duration.record(duration);
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.unfinished_work.set(sum);
    }

    fn longest_running(&mut self, longest: Duration) {
        self.longest_running.set(longest);
    }

    fn retry(&mut self) {
        self.retries.increment(1);
    }

    fn coalesced(&mut self) {
        self.coalesced.increment(1);
    }

    fn delayed(&mut self, keys: usize) {
        self.delayed.set(count(keys));
    }
}

/// A gauge holds a float: counts beyond 2^53 would be rounded.
fn count(keys: usize) -> f64 {
    keys as f64
}

fn describe() {
    let seconds = Unit::Seconds;
    describe_gauge!("workqueue_depth", "Keys that are ready or dirty");
    describe_gauge!("workqueue_depth_max", "The greatest depth so far");
    describe_counter!("workqueue_adds_total", "Keys that became ready or dirty");
    describe_histogram!(
        "workqueue_queue_duration_seconds",
        seconds,
        "How long a key waited"
    );
    describe_histogram!(
        "workqueue_work_duration_seconds",
        seconds,
        "How long a run took"
    );
    describe_gauge!(
        "workqueue_unfinished_work_seconds",
        seconds,
        "The age of all present runs"
    );
    describe_gauge!(
        "workqueue_longest_running_processor_seconds",
        seconds,
        "The age of the oldest present run"
    );
    describe_counter!(
        "workqueue_retries_total",
        "Keys that were asked to come back later"
    );
    describe_counter!(
        "workqueue_coalesced_total",
        "Adds that cost no run of their own"
    );
    describe_gauge!(
        "workqueue_depth_by_priority",
        "Keys of one priority level that are ready or dirty"
    );
    describe_gauge!("workqueue_delayed", "Keys that wait for a deadline");
}

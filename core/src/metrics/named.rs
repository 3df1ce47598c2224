//! The metrics of a queue through the `metrics` facade. Owns their names and units; keeps no
//! values.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

use super::{Metrics, Times};

/// The metrics of a queue under Kubernetes' names, so that a dashboard for its controllers also
/// works for this queue.
///
/// Every metric has the label `name`, which is the name of the queue.
///
/// | name | |
/// |---|---|
/// | `workqueue_depth` | gauge: keys that are ready or dirty |
/// | `workqueue_adds_total` | counter: keys that became ready or dirty |
/// | `workqueue_queue_duration_seconds` | histogram: how long a key waited for its run |
/// | `workqueue_work_duration_seconds` | histogram: how long a run took |
/// | `workqueue_unfinished_work_seconds` | gauge: how long all present runs have lasted, together |
/// | `workqueue_longest_running_processor_seconds` | gauge: how long the longest present run has lasted |
/// | `workqueue_retries_total` | counter: keys that were added with a delay |
/// | `workqueue_depth_max` | gauge: the greatest depth so far |
/// | `workqueue_delayed` | gauge: keys that wait for a deadline |
/// | `workqueue_depth_by_priority` | gauge: the depth of each priority level |
/// | `workqueue_coalesced_total` | counter: adds that cause no run of their own |
/// | `workqueue_oldest_ready_seconds` | gauge: how long the first ready key has been ready |
/// | `workqueue_time_to_success_seconds` | histogram: the time from when a key first becomes ready to its success |
/// | `workqueue_attempts_at_success` | histogram: which attempt succeeded, from 1 |
///
/// Kubernetes does not have the last seven. [`Metrics::time_to_success`] defines the last two.
/// [`Workers::metrics`](crate::Workers::metrics) reports runs.
///
/// The depth by priority has a second label, `priority`, and a name of its own, so that no sum
/// counts a key twice. It is reported after a call of [`levels`](Self::levels), which
/// [`Builder::metrics`](crate::Builder) makes.
///
/// [`report_running`](crate::Session::report_running) sets the gauges of present runs and of the
/// oldest ready key. For an exporter that turns histograms into summaries by default, set
/// [`DURATION_BUCKETS`].
///
/// # Examples
///
/// ```
/// use requeue::metrics::NamedMetrics;
/// use requeue::{Instant, Queue};
///
/// // Install the recorder first, else the metrics go nowhere.
/// let mut queue = Queue::builder().report_to(NamedMetrics::new("webhooks")).build();
/// queue.at(Instant::EPOCH).add("node-7").unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct NamedMetrics {
    depth: Gauge,
    depth_max: Gauge,
    deepest: usize,
    /// One per level, if levels are reported.
    depth_by_priority: Vec<Gauge>,
    name: SharedString,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    time_to_success: Histogram,
    attempts_at_success: Histogram,
    unfinished_work: Gauge,
    longest_running: Gauge,
    oldest_ready: Gauge,
    retries: Counter,
    coalesced: Counter,
    delayed: Gauge,
    /// So far only the name is known.
    is_detached: bool,
}

/// The upper bounds, in seconds, of the two histograms in Kubernetes: from a microsecond, each ten
/// times the one before. They also suit the two that Kubernetes does not have: attempts fall into
/// the first, up to 10, up to 100, and more.
pub const DURATION_BUCKETS: [f64; 10] =
    [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

impl NamedMetrics {
    /// Creates the metrics of a queue with this name, for the recorder that is installed now.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        describe();
        Self::named(name.into().into(), false)
    }

    /// Metrics that go nowhere until [`attach`](Metrics::attach).
    pub(crate) fn detached(name: impl Into<Cow<'static, str>>) -> Self {
        Self::named(name.into().into(), true)
    }

    fn named(name: SharedString, is_detached: bool) -> Self {
        let gauge = |metric: &'static str| match is_detached {
            true => Gauge::noop(),
            false => gauge!(metric, "name" => name.clone()),
        };
        let counter = |metric: &'static str| match is_detached {
            true => Counter::noop(),
            false => counter!(metric, "name" => name.clone()),
        };
        let histogram = |metric: &'static str| match is_detached {
            true => Histogram::noop(),
            false => histogram!(metric, "name" => name.clone()),
        };
        Self {
            depth: gauge("workqueue_depth"),
            depth_max: gauge("workqueue_depth_max"),
            deepest: 0,
            depth_by_priority: Vec::new(),
            adds: counter("workqueue_adds_total"),
            queue_duration: histogram("workqueue_queue_duration_seconds"),
            work_duration: histogram("workqueue_work_duration_seconds"),
            time_to_success: histogram("workqueue_time_to_success_seconds"),
            attempts_at_success: histogram("workqueue_attempts_at_success"),
            unfinished_work: gauge("workqueue_unfinished_work_seconds"),
            longest_running: gauge("workqueue_longest_running_processor_seconds"),
            oldest_ready: gauge("workqueue_oldest_ready_seconds"),
            retries: counter("workqueue_retries_total"),
            coalesced: counter("workqueue_coalesced_total"),
            delayed: gauge("workqueue_delayed"),
            name,
            is_detached,
        }
    }

    /// Also reports the depth of each priority level, for a queue that has this many
    /// [`Levels`](crate::priority::Levels). Like [`new`](Self::new), call it after the recorder is
    /// installed.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::metrics::NamedMetrics;
    /// use requeue::{Instant, Queue};
    ///
    /// let metrics = NamedMetrics::new("webhooks").levels(2);
    /// let mut queue = Queue::builder().report_to(metrics).levels::<2>().build();
    /// queue.at(Instant::EPOCH).add("node-7").unwrap();
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
    type Timestamps = Times;

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

    fn added(&mut self) {
        self.adds.increment(1);
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.queue_duration.record(latency);
    }

    fn work_duration(&mut self, duration: Duration) {
        self.work_duration.record(duration);
    }

    fn time_to_success(&mut self, time: Duration) {
        self.time_to_success.record(time);
    }

    fn attempts_at_success(&mut self, attempts: u32) {
        self.attempts_at_success.record(attempts);
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.unfinished_work.set(sum);
    }

    fn longest_running(&mut self, longest: Duration) {
        self.longest_running.set(longest);
    }

    fn oldest_ready(&mut self, waited: Duration) {
        self.oldest_ready.set(waited);
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

    fn attach(&mut self, levels: u8) {
        if self.is_detached {
            let attached = Self::new(self.name.clone());
            *self = if levels > 1 {
                attached.levels(levels)
            } else {
                attached
            };
        }
    }
}

/// A gauge is a float, so counts beyond 2^53 are rounded.
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
    describe_histogram!(
        "workqueue_time_to_success_seconds",
        seconds,
        "The time from when a key first becomes ready to its success"
    );
    describe_histogram!(
        "workqueue_attempts_at_success",
        "Which attempt succeeded, from 1"
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
    describe_gauge!(
        "workqueue_oldest_ready_seconds",
        seconds,
        "How long the first ready key has been ready"
    );
    describe_counter!(
        "workqueue_retries_total",
        "Keys that were added with a delay"
    );
    describe_counter!(
        "workqueue_coalesced_total",
        "Adds that cause no run of their own"
    );
    describe_gauge!(
        "workqueue_depth_by_priority",
        "Keys of one priority level that are ready or dirty"
    );
    describe_gauge!("workqueue_delayed", "Keys that wait for a deadline");
}

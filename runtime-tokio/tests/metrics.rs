//! The figures of a queue, as a recorder of the `metrics` facade receives them.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use requeue_tokio::metrics::{DURATION_BUCKETS, NamedMetrics};
use requeue_tokio::{Action, AddOptions, Concurrency, WorkQueue, Workers};
use tokio::task::yield_now;
use tokio::time::{advance, sleep};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Figures {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    /// The description of each: its kind and its unit.
    described: Mutex<BTreeMap<String, (&'static str, Option<Unit>)>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

/// The name of a figure whose first label says `webhooks`, and its priority or result if it has
/// one.
fn name(key: &Key) -> String {
    let labels: Vec<_> = key.labels().map(|l| (l.key(), l.value())).collect();
    match labels.as_slice() {
        [("name" | "controller", "webhooks")] => key.name().to_owned(),
        [("controller", "webhooks"), ("result", result)] => format!("{} {result}", key.name()),
        [("name", "webhooks"), ("priority", level)] => format!("{} {level}", key.name()),
        other => panic!("{other:?}"),
    }
}

impl Recorder for Figures {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("counter", &name, unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("gauge", &name, unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("histogram", &name, unit, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(name(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut gauges = self.gauges.lock().unwrap();
        Gauge::from_arc(Arc::clone(gauges.entry(name(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(Arc::clone(histograms.entry(name(key)).or_default()))
    }
}

impl Figures {
    fn describe(&self, kind: &'static str, name: &KeyName, unit: Option<Unit>, text: &str) {
        assert!(!text.is_empty());
        let name = name.as_str().to_owned();
        self.described.lock().unwrap().insert(name, (kind, unit));
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.counters.lock().unwrap();
        counters.get(name).unwrap().load(Ordering::SeqCst)
    }

    fn gauge(&self, name: &str) -> f64 {
        let gauges = self.gauges.lock().unwrap();
        f64::from_bits(gauges.get(name).unwrap().load(Ordering::SeqCst))
    }

    fn histogram(&self, name: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        histograms.get(name).unwrap().0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_dashboard_of_kubernetes_shows_the_queue() {
    let figures = Figures::default();
    let builder = WorkQueue::builder().metrics("webhooks");
    let queue = with_local_recorder(&figures, || builder.build());

    assert!(queue.add_many([1, 2, 1, 3]).rejected.is_empty());
    assert_eq!(figures.gauge("workqueue_depth"), 3.0);
    assert_eq!(figures.counter("workqueue_adds_total"), 3);
    assert_eq!(figures.counter("workqueue_coalesced_total"), 1);

    advance(2 * SECOND).await;
    let first = queue.get().await.unwrap();
    let second = queue.get().await.unwrap();
    assert_eq!(figures.gauge("workqueue_depth"), 1.0);
    assert_eq!(figures.gauge("workqueue_depth_max"), 3.0);
    let waited = figures.histogram("workqueue_queue_duration_seconds");
    assert_eq!(waited, [2.0, 2.0]);

    advance(3 * SECOND).await;
    queue.report_running();
    assert_eq!(figures.gauge("workqueue_unfinished_work_seconds"), 6.0);
    let longest = figures.gauge("workqueue_longest_running_processor_seconds");
    assert_eq!(longest, 3.0);
    assert_eq!(figures.gauge("workqueue_oldest_ready_seconds"), 5.0);

    first.retry();
    second.success();
    let worked = figures.histogram("workqueue_work_duration_seconds");
    assert_eq!(worked, [3.0, 3.0]);
    let succeeded = figures.histogram("workqueue_time_to_success_seconds");
    assert_eq!(succeeded, [5.0], "the other one has failed");
    let attempts = figures.histogram("workqueue_attempts_at_success");
    assert_eq!(attempts, [1.0]);
    assert_eq!(figures.counter("workqueue_retries_total"), 1);
    assert_eq!(figures.gauge("workqueue_delayed"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_dashboard_of_controller_runtime_shows_the_runs() {
    let figures = Figures::default();
    let figure = |name: &str| format!("controller_runtime_{name}");
    let concurrency = Concurrency::new(2);
    let workers = with_local_recorder(&figures, || {
        let workers = Workers::new(1).concurrency(&concurrency);
        workers
            .timeout(5 * SECOND)
            .max_retries(0)
            .metrics("webhooks")
    });
    let queue = WorkQueue::new();
    assert!(queue.add_many(1..=7).rejected.is_empty());
    let run = queue.run(workers, |key| async move {
        sleep(SECOND).await;
        match key {
            1 => Ok(Action::Success),
            2 => Ok(Action::RequeueAfter(1000 * SECOND)),
            3 => Ok(Action::Retry),
            4 => Err("no route"),
            5 => resume_unwind(Box::new("index 3")),
            _ => std::future::pending().await,
        }
    });
    let run = tokio::spawn(run);
    sleep(4 * SECOND).await;
    assert_eq!(figures.gauge(&figure("active_workers")), 2.0);
    assert_eq!(figures.gauge(&figure("max_concurrent_reconciles")), 2.0);
    concurrency.set(3);
    sleep(2 * SECOND).await;
    queue.add(8).unwrap();
    sleep(SECOND).await;
    // The sixth is stopped, and the others are dropped with their run.
    sleep(SECOND).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    while queue.stats().active > 0 {
        yield_now().await;
    }

    let result = |result: &str| figures.counter(&figure(&format!("reconcile_total {result}")));
    let results = ["success", "requeue_after", "requeue", "error"].map(result);
    let counted = |name: &str| figures.counter(&figure(name));
    let took = figures.histogram(&figure("reconcile_time_seconds"));
    assert_eq!(results.iter().sum::<u64>(), took.len() as u64);
    assert_eq!(results[..3], [1, 1, 1]);
    assert_eq!(counted("reconcile_errors_total"), results[3]);
    assert_eq!(counted("terminal_reconcile_errors_total"), results[3] + 1);
    assert_eq!(counted("reconcile_panics_total"), 1);
    assert_eq!(counted("reconcile_timeouts_total"), results[3] - 2);
    assert_eq!(figures.gauge(&figure("active_workers")), 0.0);
    assert_eq!(figures.gauge(&figure("max_concurrent_reconciles")), 3.0);
    assert_eq!(figures.counter("requeue_overdue_total"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_depth_of_each_priority_is_shown() {
    let figures = Figures::default();
    let builder = WorkQueue::builder().levels::<2>().metrics("webhooks");
    let queue = with_local_recorder(&figures, || builder.build());
    let depths =
        || [0, 1].map(|level| figures.gauge(&format!("workqueue_depth_by_priority {level}")));

    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
    assert_eq!(depths(), [3.0, 0.0]);
    queue.add_with(3, urgent).unwrap();
    assert_eq!(depths(), [2.0, 1.0], "raised");

    let third = queue.get().await.unwrap();
    assert_eq!((*third, third.priority()), (3, 1));
    assert_eq!(depths(), [2.0, 0.0]);
    queue.add(3).unwrap();
    assert_eq!(depths(), [3.0, 0.0], "added while it is active: dirty");
    queue.add_with(3, urgent).unwrap();
    assert_eq!(depths(), [2.0, 1.0], "raised while dirty");
    third.release();
    assert_eq!(depths(), [2.0, 1.0], "ready");
    assert_eq!(
        figures.gauge("workqueue_depth"),
        3.0,
        "no key is counted twice"
    );
}

#[test]
fn the_levels_may_come_after_the_name_and_the_recorder_before_the_queue() {
    let before = WorkQueue::builder().levels::<2>().metrics("webhooks");
    let after = WorkQueue::builder().metrics("webhooks").levels::<2>();
    for builder in [before, after] {
        let figures = Figures::default();
        let queue = with_local_recorder(&figures, || builder.build());
        assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
        assert_eq!(figures.gauge("workqueue_depth"), 3.0);
        assert_eq!(figures.gauge("workqueue_depth_by_priority 0"), 3.0);
        assert_eq!(figures.gauge("workqueue_depth_by_priority 1"), 0.0);
    }
}

#[test]
fn every_figure_is_described_with_its_kind_and_unit() {
    let figures = Figures::default();
    with_local_recorder(&figures, || NamedMetrics::new("webhooks").levels(1));
    let described = figures.described.into_inner().unwrap();

    let counters = figures.counters.into_inner().unwrap();
    let gauges = figures.gauges.into_inner().unwrap();
    let histograms = figures.histograms.into_inner().unwrap();
    let kinds = [
        ("counter", counters.into_keys().collect::<Vec<_>>()),
        ("gauge", gauges.into_keys().collect()),
        ("histogram", histograms.into_keys().collect()),
    ];
    for (kind, names) in kinds {
        for name in names {
            let name = name.trim_end_matches(" 0");
            let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
            assert_eq!(described.get(name), Some(&(kind, unit)), "{name}");
        }
    }
}

/// Prometheus guesses a quantile between two bounds, so an alert compares it with a bound.
#[test]
fn alerts_compare_quantiles_with_bounds_that_histograms_have() {
    let page = include_str!("../../docs/book/src/operating.md");
    let limits: Vec<f64> = page
        .lines()
        .filter(|line| line.contains("_bucket["))
        .map(|line| line.rsplit_once("> ").unwrap().1.parse().unwrap())
        .collect();
    assert!(!limits.is_empty());
    for limit in limits {
        assert!(DURATION_BUCKETS.contains(&limit), "{limit} s is no bound");
    }
}

//! The metrics of a controller, as a recorder of the `metrics` facade receives them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::ObjectRef;
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use requeue_kube::{Action, CancellationToken, Failure, Leader, RECONCILE_BUCKETS, Workers};
use tokio::time::sleep;

use crate::api::{Cluster, Link};
use crate::{map, maps, name_of, seconds};

/// Every figure by its name and labels, as `name{label=value}`.
#[derive(Default)]
struct Figures {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn shown(key: &Key) -> String {
    let labels = key.labels().map(|l| format!("{}={}", l.key(), l.value()));
    format!("{}{{{}}}", key.name(), labels.collect::<Vec<_>>().join(","))
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(shown(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut gauges = self.gauges.lock().unwrap();
        Gauge::from_arc(Arc::clone(gauges.entry(shown(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(Arc::clone(histograms.entry(shown(key)).or_default()))
    }
}

impl Figures {
    fn counter(&self, name: &str) -> u64 {
        self.counters.lock().unwrap()[name].load(Ordering::SeqCst)
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.gauges.lock().unwrap()[name].load(Ordering::SeqCst))
    }

    fn histogram(&self, name: &str) -> Vec<f64> {
        self.histograms.lock().unwrap()[name]
            .0
            .lock()
            .unwrap()
            .clone()
    }

    /// The names, without labels.
    fn names(&self) -> BTreeSet<String> {
        let mut names: Vec<String> = self.counters.lock().unwrap().keys().cloned().collect();
        names.extend(self.gauges.lock().unwrap().keys().cloned());
        names.extend(self.histograms.lock().unwrap().keys().cloned());
        let bare = |name: &String| name.split_once('{').unwrap().0.to_owned();
        names.iter().map(bare).collect()
    }
}

/// Runs a test whose tasks report to these figures.
fn figures_of(test: impl Future<Output = ()>) -> Figures {
    let figures = Figures::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    with_local_recorder(&figures, || runtime.block_on(test));
    figures
}

/// Five objects, each of which ends its runs in another way, for twelve seconds.
async fn five_ends() {
    let (cluster, stop) = (Cluster::new(), CancellationToken::new());
    for name in ["fails", "hangs", "later", "panics", "works"] {
        cluster.put("configmaps", map(name, "1"));
    }
    let client = cluster.client(&Link::default());
    let workers = Workers::new(3).timeout(seconds(5));
    let workers = workers.on_error(|_: &ObjectRef<ConfigMap>, _: &Failure<&str>, _| {});
    let controller = maps(&client)
        .named("web")
        .backoff(seconds(4), seconds(1000))
        .leader(Leader::lease(client, "default", "web-controller").identity("only"));
    let run = controller.run(workers, stop.clone(), move |map, _| async move {
        match name_of(&map).as_str() {
            "fails" => Err("down"),
            "hangs" => std::future::pending().await,
            "later" => Ok(Action::RequeueAfter(seconds(6))),
            "panics" => panic!("every time"),
            _ => Ok(Action::Success),
        }
    });
    let running = tokio::spawn(run);
    sleep(Duration::from_millis(10_900)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// What fails is retried after 4 s and 8 s, what hangs is stopped after 5 s and begins again 4 s
/// later, and one object asks for a run after 6 s.
#[test]
fn dashboards_of_kubernetes_show_a_controller() {
    let figures = figures_of(five_ends());
    let total = |result: &str| {
        figures.counter(&format!(
            "controller_runtime_reconcile_total{{controller=web,result={result}}}"
        ))
    };
    let results = ["success", "requeue", "requeue_after", "error"].map(total);
    assert_eq!(results, [1, 0, 2, 6]);
    let counted =
        |what: &str| figures.counter(&format!("controller_runtime_{what}{{controller=web}}"));
    assert_eq!(counted("reconcile_errors_total"), 6);
    assert_eq!(counted("reconcile_panics_total"), 2);
    assert_eq!(counted("reconcile_timeouts_total"), 2);
    let took = figures.histogram("controller_runtime_reconcile_time_seconds{controller=web}");
    let (longest, runs) = (took.iter().copied().fold(0.0, f64::max), took.len());
    assert_eq!((longest, runs), (5.0, 9));
    let workers = figures.gauge("controller_runtime_max_concurrent_reconciles{controller=web}");
    let active = figures.gauge("controller_runtime_active_workers{controller=web}");
    assert_eq!((workers, active), (3.0, 0.0));

    let queue = |what: &str| format!("workqueue_{what}{{name=web}}");
    assert_eq!(figures.counter(&queue("adds_total")), 9);
    // As client-go counts: each delay, also one that was asked for. What fails while the queue
    // drains gets none.
    assert_eq!(figures.counter(&queue("retries_total")), 7);
    assert_eq!(figures.histogram(&queue("work_duration_seconds")).len(), 9);
    assert_eq!(figures.histogram(&queue("queue_duration_seconds")).len(), 9);
    assert_eq!(figures.gauge(&queue("depth")), 0.0);
    let leads = figures.gauge("leader_election_master_status{name=web-controller}");
    assert_eq!(leads, 0.0, "the lease was released");
}

/// The README lists every metric, and no other.
#[test]
fn the_readme_lists_every_metric() {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## Metrics").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let prefixes = [
        "workqueue_",
        "controller_runtime_",
        "leader_election_",
        "requeue_o",
        "requeue_stale_",
    ];
    let is_name = |word: &&str| prefixes.iter().any(|prefix| word.starts_with(prefix));
    let words = section.split('`').filter(is_name);
    let listed: BTreeSet<String> = words.map(str::to_owned).collect();
    assert_eq!(listed, figures_of(five_ends()).names());
}

#[test]
fn a_controller_without_a_name_counts_nothing() {
    let figures = figures_of(async {
        let (cluster, stop) = (Cluster::new(), CancellationToken::new());
        cluster.put("configmaps", map("a", "1"));
        let client = cluster.client(&Link::default());
        let run = maps(&client).run(1, stop.clone(), |_, _| async { Action::Success });
        let running = tokio::spawn(run);
        sleep(seconds(1)).await;
        stop.cancel();
        running.await.unwrap().unwrap();
    });
    assert_eq!(figures.names(), BTreeSet::new());
}

#[test]
fn the_buckets_of_controller_runtime_are_in_order() {
    assert!(RECONCILE_BUCKETS.is_sorted_by(|a, b| a < b));
}

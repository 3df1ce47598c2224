//! A program's struct that holds a queue stays as it is, whatever is chosen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use requeue_std::Rejected;
use requeue_std::limiter::NoLimit;
use requeue_std::metrics::{Metrics, Times};
use requeue_std::priority::Plain;
use requeue_std::storage::Fixed;
use requeue_std::{AddOptions, Added, ManualClock, Producer, Queue, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

struct App {
    queue: WorkQueue<String>,
}

/// How long each of these keys waits after its first failure.
fn first_delays<const N: usize>(app: &App, keys: [&str; N]) -> [Duration; N] {
    keys.map(|key| app.queue.add_rate_limited(key.to_owned()).unwrap().delay)
}

#[test]
fn other_numbers_change_no_type() {
    const MS: Duration = Duration::from_millis(1);
    let app = App {
        queue: WorkQueue::new(),
    };
    assert_eq!(
        first_delays(&app, ["a", "a", "b"]),
        [5 * MS, 10 * MS, 5 * MS]
    );

    let app = App {
        queue: WorkQueue::builder()
            .backoff(SECOND, 3 * SECOND)
            .retry_rate(0.1, 4)
            .clock(ManualClock::new())
            .build(),
    };
    let delays = first_delays(&app, ["a", "a", "a", "b", "c"]);
    assert_eq!(delays, [1, 2, 3, 1, 10].map(|seconds| seconds * SECOND));

    let app = App {
        queue: WorkQueue::builder().no_retry_rate().build(),
    };
    for key in 0..1000 {
        assert_eq!(first_delays(&app, [&key.to_string()]), [5 * MS]);
    }
}

#[test]
fn a_limit_on_failure_records_discards_the_oldest() {
    let app = App {
        queue: WorkQueue::builder()
            .backoff(Duration::ZERO, Duration::ZERO)
            .capacity(16)
            .failure_records(1)
            .build(),
    };
    for key in ["a", "b"] {
        first_delays(&app, [key]);
        app.queue.get().unwrap().release();
    }
    assert_eq!(app.queue.failures("a"), 0);
    assert_eq!(app.queue.failures("b"), 1);
}

#[test]
fn a_limit_on_the_keys_changes_no_type() {
    let app = App {
        queue: WorkQueue::builder().max_keys(2).build(),
    };
    let [a, b, c] = ["a", "b", "c"].map(str::to_owned);
    assert!(
        app.queue
            .add_many([a.clone(), b.clone()])
            .rejected
            .is_empty()
    );
    assert_eq!(app.queue.add(c.clone()), Err(Rejected::Full(c.clone())));
    assert_eq!(app.queue.add(a), Ok(Added::Coalesced), "it is held");
    thread::scope(|scope| {
        let added = scope.spawn(|| app.queue.add_wait(c.clone()).is_ok());
        app.queue.get().unwrap().success();
        assert!(added.join().unwrap());
    });
    assert_eq!(
        (app.queue.stats().max_keys, app.queue.stats().total),
        (Some(2), 2)
    );
    app.queue.limit_keys(3);
    assert_eq!(app.queue.add("d".to_owned()), Ok(Added::Ready));
}

#[test]
fn a_fixed_queue_is_made_without_naming_metrics() {
    let queue: WorkQueue<String, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit).into();
    let refused = queue.add_many(["a", "b", "c"].map(str::to_owned));
    assert_eq!(refused.rejected, [Rejected::Full("c".to_owned())]);
    assert_eq!(queue.stats().max_keys, Some(2));
}

#[derive(Clone, Default)]
struct Waited(Arc<AtomicUsize>);

impl Metrics for Waited {
    type Timestamps = Times;

    fn queue_latency(&mut self, latency: Duration) {
        self.0.store(latency.as_secs() as usize, Ordering::SeqCst);
    }
}

#[test]
fn metrics_and_a_clock_that_a_test_moves_change_no_type() {
    let (clock, waited) = (ManualClock::new(), Waited::default());
    let app = App {
        queue: WorkQueue::builder()
            .report_to(waited.clone())
            .clock(clock.clone())
            .build(),
    };
    app.queue.add("a".to_owned()).unwrap();
    clock.advance(7 * SECOND);
    let guard = app.queue.get().unwrap();
    assert_eq!(guard.waited(), 7 * SECOND);
    assert_eq!(waited.0.load(Ordering::SeqCst), 7);
    guard.success();
}

#[cfg(feature = "metrics")]
#[test]
fn named_metrics_change_no_type() {
    let app = App {
        queue: WorkQueue::builder().metrics("pods").build(),
    };
    app.queue.add("a".to_owned()).unwrap();
    // Without a recorder the figures go nowhere, but times are kept.
    use requeue_std::binding::AsShared;
    assert!(app.queue.as_shared().with(|session| session.needs_time()));
}

fn report(source: &dyn Producer<String>, node: &str) {
    source.add(node.to_owned()).unwrap();
}

fn watch(source: impl Producer<String> + Send + 'static, node: &'static str) {
    let watcher = thread::spawn(move || report(&source, node));
    watcher.join().unwrap();
}

#[test]
fn a_queue_is_a_producer_by_value_and_behind_any_pointer() {
    let queue: WorkQueue<String> = WorkQueue::new();
    report(&queue, "a");
    report(&&queue, "b");
    watch(queue.clone(), "c");
    watch(Arc::new(queue.clone()), "d");
    watch(Box::new(queue.clone()), "e");
    watch(queue.producer(), "f");
    let source = &queue as &dyn Producer<String>;
    let later = source.add_after("a".to_owned(), SECOND);
    assert_eq!(later, Ok(Added::Delayed));
    let scheduled = source.add_rate_limited("g".to_owned()).unwrap();
    assert_eq!(scheduled.delay, Duration::from_millis(5));
    let options = AddOptions::new();
    assert!(source.add_with("h".to_owned(), options).is_ok());
    assert_eq!((queue.len(), queue.stats().delayed), (7, 2));
}

#[test]
fn an_event_source_needs_a_producer_and_no_more() {
    let clock = ManualClock::new();
    let app = App {
        queue: WorkQueue::builder().clock(clock.clone()).build(),
    };
    let producer: Arc<dyn Producer<String> + Send + Sync> = app.queue.producer();
    let source = thread::spawn({
        let producer = Arc::clone(&producer);
        move || {
            assert_eq!(producer.add("a".to_owned()), Ok(Added::Ready));
            assert_eq!(
                producer.add_after("b".to_owned(), SECOND),
                Ok(Added::Delayed)
            );
            let scheduled = producer.add_rate_limited("c".to_owned()).unwrap();
            assert_eq!(scheduled.delay, Duration::from_millis(5));
            let options = AddOptions {
                after: Some(2 * SECOND),
                ..AddOptions::new()
            };
            producer.add_with("d".to_owned(), options).unwrap();
        }
    });
    source.join().unwrap();
    clock.advance(2 * SECOND);
    let batch = app.queue.get_many(9).unwrap();
    assert!(batch.keys().eq(&["a", "c", "b", "d"]));
    batch.success();

    app.queue.shut_down();
    let late = producer.add("e".to_owned());
    assert_eq!(late, Err(Rejected::Closed("e".to_owned())));
}

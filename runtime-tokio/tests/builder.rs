//! A program's struct that holds a queue stays as it is, whatever is chosen.

use std::sync::Arc;
use std::time::Duration;

use requeue_tokio::Rejected;
use requeue_tokio::limiter::NoLimit;
use requeue_tokio::metrics::{Metrics, Times};
use requeue_tokio::priority::Plain;
use requeue_tokio::storage::Fixed;
use requeue_tokio::{Added, Producer, Queue, QueueClock, WorkQueue};
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);

struct App {
    queue: WorkQueue<String>,
}

struct Timed;

impl Metrics for Timed {
    type Timestamps = Times;
}

#[tokio::test(start_paused = true)]
async fn other_numbers_metrics_and_a_clock_change_no_type() {
    const MS: Duration = Duration::from_millis(1);
    let first_delay = |app: &App, key: &str| {
        let scheduled = app.queue.add_rate_limited(key.to_owned());
        scheduled.unwrap().delay
    };
    let app = App {
        queue: WorkQueue::new(),
    };
    assert_eq!(first_delay(&app, "a"), 5 * MS);

    let app = App {
        queue: WorkQueue::builder()
            .backoff(SECOND, 3 * SECOND)
            .retry_rate(0.1, 2)
            .build(),
    };
    let delays = ["a", "a", "b"].map(|key| first_delay(&app, key));
    assert_eq!(delays, [SECOND, 2 * SECOND, 10 * SECOND]);

    let app = App {
        queue: WorkQueue::builder().no_retry_rate().capacity(8).build(),
    };
    for key in 0..1000 {
        assert_eq!(first_delay(&app, &key.to_string()), 5 * MS);
    }

    let app = App {
        queue: WorkQueue::builder()
            .report_to(Timed)
            .clock(QueueClock::new())
            .build(),
    };
    app.queue.add("a".to_owned()).unwrap();
    advance(7 * SECOND).await;
    assert_eq!(app.queue.get().await.unwrap().waited(), 7 * SECOND);
}

async fn watch(source: impl Producer<String>, node: &str) {
    source.add(node.to_owned()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_a_producer_by_value_and_behind_any_pointer() {
    let queue: WorkQueue<String> = WorkQueue::new();
    watch(&queue, "a").await;
    watch(queue.producer(), "b").await;
    tokio::spawn(watch(queue.clone(), "c")).await.unwrap();
    let source: Box<dyn Producer<String>> = Box::new(queue.clone());
    watch(source, "d").await;
    assert_eq!(queue.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_limit_on_the_keys_changes_no_type() {
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
    let waits = tokio::spawn({
        let queue = app.queue.clone();
        async move { queue.add_wait(c).await }
    });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished(), "there is no room");
    app.queue.get().await.unwrap().success();
    assert_eq!(waits.await.unwrap(), Ok(Added::Ready));
    assert_eq!(
        (app.queue.stats().max_keys, app.queue.stats().total),
        (Some(2), 2)
    );
    app.queue.limit_keys(3);
    assert_eq!(app.queue.add("d".to_owned()), Ok(Added::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_queue_is_made_without_naming_metrics() {
    let queue: WorkQueue<String, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit).into();
    let refused = queue.add_many(["a", "b", "c"].map(str::to_owned));
    assert_eq!(refused.rejected, [Rejected::Full("c".to_owned())]);
    assert_eq!(queue.stats().max_keys, Some(2));
}

#[tokio::test(start_paused = true)]
async fn an_event_source_needs_a_producer_and_no_more() {
    let app = App {
        queue: WorkQueue::new(),
    };
    let producer: Arc<dyn Producer<String> + Send + Sync> = app.queue.producer();
    let source = tokio::spawn({
        let producer = Arc::clone(&producer);
        async move {
            assert_eq!(producer.add("a".to_owned()), Ok(Added::Ready));
            let later = producer.add_after("b".to_owned(), SECOND);
            assert_eq!(later, Ok(Added::Delayed));
        }
    });
    source.await.unwrap();
    for key in ["a", "b"] {
        let guard = app.queue.get().await.unwrap();
        assert_eq!(*guard, key);
        guard.success();
    }
    app.queue.shut_down();
    let late = producer.add("c".to_owned());
    assert_eq!(late, Err(Rejected::Closed("c".to_owned())));
}

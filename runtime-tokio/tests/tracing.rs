//! The spans of a run, as a subscriber receives them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_tokio::metrics::Times;
use requeue_tokio::{Action, WorkQueue, Workers};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const SECOND: Duration = Duration::from_secs(1);

/// The fields of every span, in the order in which the spans began, and of every event.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>, Arc<Mutex<Vec<Fields>>>);

#[derive(Clone, Default)]
struct Fields {
    values: BTreeMap<&'static str, String>,
    entered: usize,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.values.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.values.insert(field.name(), value.to_owned());
    }
}

impl Spans {
    /// Takes out what was logged.
    fn events(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.1.lock().unwrap());
        let shown = events.iter().map(|Fields { values, .. }| {
            let [level, message] = ["level", "message"].map(|field| &values[field]);
            let [attempt, error] = ["attempt", "error"].map(|field| &values[field]);
            format!("{level} {message}, attempt {attempt}: {error}")
        });
        shown.collect()
    }

    fn with(&self, id: &Id, change: impl FnOnce(&mut Fields)) {
        change(&mut self.0.lock().unwrap()[id.into_u64() as usize - 1]);
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "requeue"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        assert_eq!(span.metadata().name(), "reconcile");
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut spans = self.0.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with(id, |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().to_string();
        fields.values.insert("level", level);
        self.1.lock().unwrap().push(fields);
    }

    fn enter(&self, id: &Id) {
        self.with(id, |fields| fields.entered += 1);
    }

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn every_run_has_a_span_with_its_key_attempt_and_outcome() {
    let queue = WorkQueue::builder()
        .backoff(SECOND, 9 * SECOND)
        .no_retry_rate()
        .build();
    assert!(
        queue
            .add_many(["done", "again", "fails", "panics"])
            .rejected
            .is_empty()
    );
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    let workers = Workers::new(1)
        .max_retries(1)
        .trace_keys(|key, f| write!(f, "<{key}>"));
    let run = queue.run(workers, |key| async move {
        tokio::task::yield_now().await;
        match key {
            "done" => Ok(Action::Success),
            "again" => Ok(Action::RequeueAfter(60 * SECOND)),
            "fails" => Err(()),
            _ => std::panic::resume_unwind(Box::new("quietly")),
        }
    });
    let _ = tokio::time::timeout(10 * SECOND, run).await;

    let spans = spans.0.lock().unwrap();
    let shown: Vec<_> = spans
        .iter()
        .map(|Fields { values, .. }| [&values["key"], &values["attempt"], &values["outcome"]])
        .collect();
    assert_eq!(
        shown,
        [
            ["<done>", "1", "success"],
            ["<again>", "1", "requeued"],
            ["<fails>", "1", "failed"],
            ["<panics>", "1", "panicked"],
            ["<fails>", "2", "failed, given up"],
            ["<panics>", "2", "panicked, given up"],
        ]
    );
    assert!(spans.iter().all(|span| span.entered >= 2));
}

/// An error that has no `Display`.
#[derive(Debug)]
struct Refused {
    #[expect(dead_code, reason = "shown by Debug")]
    status: u16,
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_a_hook_is_logged_with_its_debug_text() {
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    let fail = |key| async move {
        match key {
            "refused" => Err(Refused { status: 503 }),
            "retry" => Ok(Action::Retry),
            "panics" => std::panic::resume_unwind(Box::new("quietly")),
            _ => Ok(Action::Success),
        }
    };
    let run = async |workers: Workers<'static, &'static str, Refused>| {
        let queue = WorkQueue::new();
        assert!(
            queue
                .add_many(["refused", "retry", "panics", "done"])
                .rejected
                .is_empty()
        );
        queue.shut_down();
        assert_eq!(queue.run(workers, fail).await.len(), 3);
    };

    run(Workers::new(1)).await;
    let failed = |error: &str| format!("WARN reconcile failed, attempt 1: {error}");
    let errors = [
        "Refused { status: 503 }",
        "asked for a retry",
        "panicked: quietly",
    ];
    assert_eq!(spans.events(), errors.map(failed));

    run(Workers::new(1).on_error(|_, _, _| {})).await;
    assert!(spans.events().is_empty(), "the hook has them");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_given_up_without_a_hook_is_logged_as_an_error() {
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    let run = async |workers: Workers<'static, u8, Refused>| {
        let queue = WorkQueue::new();
        queue.add(1).unwrap();
        queue.shut_down();
        let fail = |_| async { Err::<(), _>(Refused { status: 410 }) };
        assert!(queue.run(workers, fail).await.is_empty());
        spans.events()
    };
    let once = || Workers::new(1).max_retries(0);
    let failed = "WARN reconcile failed, attempt 1: Refused { status: 410 }";
    let gave_up = "ERROR gave the key up, attempt 1: Refused { status: 410 }";
    assert_eq!(run(once()).await, [failed, gave_up]);
    assert_eq!(run(once().on_error(|_, _, _| {})).await, [gave_up]);
    assert_eq!(run(once().on_give_up(|_, _| {})).await, [failed]);
}

#[tokio::test(start_paused = true)]
async fn a_span_shows_how_long_its_key_waited_if_the_queue_measures_it() {
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    for builder in [WorkQueue::builder(), WorkQueue::builder().report_to(Times)] {
        let queue = builder.build();
        queue.add(1).unwrap();
        tokio::time::advance(SECOND).await;
        queue.shut_down();
        let end = |_| async { Action::Success };
        queue.run(1, end).await;
    }
    let spans = spans.0.lock().unwrap();
    let shown = spans.iter().map(|span| span.values.get("queue_latency"));
    assert_eq!(shown.collect::<Vec<_>>(), [None, Some(&"1s".into())]);
}

#[tokio::test]
async fn a_key_is_not_shown_unless_asked_for() {
    let queue = WorkQueue::new();
    queue.add("secret").unwrap();
    queue.shut_down();
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    queue.run(1, |_| async { Action::Success }).await;
    let spans = spans.0.lock().unwrap();
    assert_eq!(spans.len(), 1);
    assert!(!spans[0].values.contains_key("key"));
}

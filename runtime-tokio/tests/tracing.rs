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

use requeue_tokio::{Action, WorkQueue, Workers};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const SECOND: Duration = Duration::from_secs(1);

/// The fields of every span, in the order in which the spans began.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

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

    fn event(&self, _: &Event<'_>) {}

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
    queue.add_many(["done", "again", "fails", "panics"], |_| unreachable!());
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

#[tokio::test]
async fn a_key_is_not_shown_unless_asked_for() {
    let queue = WorkQueue::new();
    queue.add("secret").unwrap();
    queue.shut_down();
    let spans = Spans::default();
    let _recording = tracing::subscriber::set_default(spans.clone());
    queue
        .run(1, |_| async { Ok::<_, ()>(Action::Success) })
        .await;
    let spans = spans.0.lock().unwrap();
    assert_eq!(spans.len(), 1);
    assert!(!spans[0].values.contains_key("key"));
}

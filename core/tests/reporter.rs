//! Metrics that are chosen as a value: a [`Reporter`] reports what the metrics in its place would
//! receive.
#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_core::binding::*;
use requeue_core::{
    Action, Growable, Instant, ItemExponentialFailure, Metrics, RandomState, Reporter, Times,
    default_item_based,
};

/// One report: the method, and its figure.
type Report = (&'static str, u128);

/// Writes down every report.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<Report>>>);

impl Journal {
    fn note(&mut self, what: &'static str, figure: u128) {
        self.0.lock().unwrap().push((what, figure));
    }

    fn take(&self) -> Vec<Report> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The nanoseconds of every report of this kind.
    fn of(&self, what: &str) -> Vec<u128> {
        let reports = self.take().into_iter();
        reports
            .filter(|report| report.0 == what)
            .map(|report| report.1)
            .collect()
    }
}

impl Metrics for Journal {
    type Timestamps = Times;

    fn depth(&mut self, keys: usize) {
        self.note("depth", keys as u128);
    }

    fn depth_at(&mut self, priority: u8, keys: usize) {
        self.note("depth_at", (u128::from(priority) << 64) | keys as u128);
    }

    fn added(&mut self) {
        self.note("added", 1);
    }

    fn queue_latency(&mut self, latency: Duration) {
        self.note("queue_latency", latency.as_nanos());
    }

    fn work_duration(&mut self, duration: Duration) {
        self.note("work_duration", duration.as_nanos());
    }

    fn unfinished_work(&mut self, sum: Duration) {
        self.note("unfinished_work", sum.as_nanos());
    }

    fn longest_running(&mut self, longest: Duration) {
        self.note("longest_running", longest.as_nanos());
    }

    fn retry(&mut self) {
        self.note("retry", 1);
    }

    fn coalesced(&mut self) {
        self.note("coalesced", 1);
    }

    fn delayed(&mut self, keys: usize) {
        self.note("delayed", keys as u128);
    }
}

type Keys<M> = Queue<u8, Growable<RandomState, requeue_core::Levels<2>>, ItemExponentialFailure, M>;

fn queue<M: Metrics>(metrics: M) -> Keys<M> {
    let parts = Queue::builder().limiter(default_item_based());
    parts.report_to(metrics).levels::<2>().build()
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn get<M: Metrics>(queue: &mut Keys<M>, nanos: u64) -> Work<u8> {
    queue.try_get(at(nanos)).value.unwrap()
}

/// Slots are used again, by other keys and for other runs of the same key. Returns how long each
/// key has waited.
fn script<M: Metrics>(mut queue: Keys<M>) -> Vec<Duration> {
    let _ = queue.add_many([1, 2, 3], at(10), |_| {});
    let first = get(&mut queue, 15);
    let second = get(&mut queue, 17);
    let _ = queue.add(1, at(20));
    let _ = queue.add(1, at(21));
    let _ = queue.finish(first.ticket, Action::Success, at(22));
    let _ = queue.finish(second.ticket, Action::Retry, at(23));
    let _ = queue.report_running(at(24));
    let third = get(&mut queue, 25);
    let _ = queue.report_running(at(29));
    let _ = queue.finish(
        third.ticket,
        Action::RequeueAfter(Duration::from_nanos(5)),
        at(30),
    );
    let again = get(&mut queue, 33);
    let _ = queue.finish(again.ticket, Action::Success, at(34));
    // Key 4 has the slot that key 1 had.
    let _ = queue.add(4, at(40));
    let delayed = get(&mut queue, 45);
    let fourth = get(&mut queue, 47);
    let _ = queue.report_running(at(50));
    let _ = queue.release(delayed.ticket, at(51));
    let _ = queue.release(fourth.ticket, at(52));
    let retried = get(&mut queue, 2_000_000);
    let _ = queue.shut_down(at(2_000_001));
    let _ = queue.finish(retried.ticket, Action::Retry, at(2_000_002));
    let _ = queue.take_delayed(at(2_000_003));
    queue.assert_valid();
    let runs = [&first.waited, &second.waited, &third.waited, &again.waited];
    let runs = runs
        .into_iter()
        .chain([&delayed.waited, &fourth.waited, &retried.waited]);
    runs.copied().collect()
}

#[test]
fn a_reporter_reports_what_its_metrics_would_receive() {
    let (direct, reported) = (Journal::default(), Journal::default());
    let expected = script(queue(direct.clone()));
    assert_eq!(script(queue(Reporter::new(reported.clone()))), expected);
    let expected = direct.take();
    assert_eq!(reported.take(), expected);
    for what in [
        "depth_at",
        "retry",
        "coalesced",
        "delayed",
        "longest_running",
    ] {
        assert!(expected.iter().any(|report| report.0 == what), "{what}");
    }
}

#[test]
fn a_slot_that_is_used_again_has_times_of_its_own() {
    let journal = Journal::default();
    let mut queue = queue(Reporter::new(journal.clone()));
    for (key, added) in [(1, 10), (2, 1000), (3, 2000)] {
        let _ = queue.add(key, at(added));
        let work = get(&mut queue, added + 3);
        assert_eq!(work.waited, Duration::from_nanos(3));
        let _ = queue.report_running(at(added + 5));
        assert_eq!(journal.of("longest_running"), [2]);
        let _ = queue.release(work.ticket, at(added + 8));
        assert_eq!(journal.of("work_duration"), [5]);
    }
    assert_eq!(queue.held_len(), 0);
}

#[test]
fn without_metrics_no_time_is_kept() {
    let mut plain = queue(Reporter::NONE);
    assert!(!plain.needs_time() && queue(Reporter::new(Journal::default())).needs_time());
    let _ = plain.add(1, at(10));
    assert_eq!(get(&mut plain, 25).waited, Duration::ZERO);
    assert_eq!(script(queue(Reporter::default())), [Duration::ZERO; 7]);
    let shown = [Reporter::NONE, Reporter::new(Journal::default())];
    assert_eq!(format!("{shown:?}"), r#"[Reporter("off"), Reporter("on")]"#);
}

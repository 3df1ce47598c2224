//! Metrics that are chosen as a value: a [`Reporter`] reports what the metrics in its place would
//! receive.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_core::binding::Reporter;
use requeue_core::binding::*;
use requeue_core::limiter::{Exponential, default_item_based};
use requeue_core::metrics::{Metrics, Times};
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant};

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

    fn time_to_success(&mut self, time: Duration) {
        self.note("time_to_success", time.as_nanos());
    }

    fn attempts_at_success(&mut self, attempts: u32) {
        self.note("attempts_at_success", u128::from(attempts));
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

type Keys<M> = Queue<u8, requeue_core::priority::Levels<2>, Exponential, Growable, M>;

fn queue<M: Metrics>(metrics: M) -> Keys<M> {
    let parts = Queue::builder().limiter(default_item_based());
    parts.report_to(metrics).levels::<2>().build()
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn get<M: Metrics>(queue: &mut Keys<M>, nanos: u64) -> Work<u8> {
    queue.at(at(nanos)).try_get().unwrap()
}

/// Slots are used again, by other keys and for other runs of the same key. Returns how long each
/// key has waited.
fn script<M: Metrics>(mut queue: Keys<M>) -> Vec<Duration> {
    let _ = queue.at(at(10)).add_many([1, 2, 3], |_| {});
    let first = get(&mut queue, 15);
    let second = get(&mut queue, 17);
    let _ = queue.at(at(20)).add(1);
    let _ = queue.at(at(21)).add(1);
    queue.at(at(22)).finish(first.ticket, Action::Success);
    queue.at(at(23)).finish(second.ticket, Action::Retry);
    queue.at(at(24)).report_running();
    let third = get(&mut queue, 25);
    queue.at(at(29)).report_running();
    queue
        .at(at(30))
        .finish(third.ticket, Action::RequeueAfter(Duration::from_nanos(5)));
    let again = get(&mut queue, 33);
    queue.at(at(34)).finish(again.ticket, Action::Success);
    // Key 4 has the slot that key 1 had.
    let _ = queue.at(at(40)).add(4);
    let delayed = get(&mut queue, 45);
    let fourth = get(&mut queue, 47);
    queue.at(at(50)).report_running();
    queue.at(at(51)).release(delayed.ticket);
    queue.at(at(52)).release(fourth.ticket);
    let retried = get(&mut queue, 2_000_000);
    queue.at(at(2_000_001)).shut_down();
    queue
        .at(at(2_000_002))
        .finish(retried.ticket, Action::Retry);
    let _ = queue.at(at(2_000_003)).take_delayed();
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
        "time_to_success",
        "attempts_at_success",
    ] {
        assert!(expected.iter().any(|report| report.0 == what), "{what}");
    }
}

#[test]
fn a_slot_that_is_used_again_has_times_of_its_own() {
    let journal = Journal::default();
    let mut queue = queue(Reporter::new(journal.clone()));
    for (key, added) in [(1, 10), (2, 1000), (3, 2000)] {
        let _ = queue.at(at(added)).add(key);
        let work = get(&mut queue, added + 3);
        assert_eq!(work.waited, Duration::from_nanos(3));
        queue.at(at(added + 5)).report_running();
        assert_eq!(journal.of("longest_running"), [2]);
        queue.at(at(added + 8)).release(work.ticket);
        assert_eq!(journal.of("work_duration"), [5]);
    }
    assert_eq!(queue.stats().total, 0);
}

#[test]
fn without_metrics_no_time_is_kept() {
    let mut plain = queue(Reporter::NONE);
    assert!(!plain.needs_time() && queue(Reporter::new(Journal::default())).needs_time());
    let _ = plain.at(at(10)).add(1);
    assert_eq!(get(&mut plain, 25).waited, Duration::ZERO);
    assert_eq!(script(queue(Reporter::default())), [Duration::ZERO; 7]);
    let shown = [Reporter::NONE, Reporter::new(Journal::default())];
    assert_eq!(format!("{shown:?}"), r#"[Reporter("off"), Reporter("on")]"#);
}

/// A key that was added at 10 and has been handed out at 15.
fn first_run<M: Metrics>(queue: &mut Keys<M>) -> Work<u8> {
    let _ = queue.at(at(10)).add(1);
    get(queue, 15)
}

#[test]
fn a_success_is_timed_from_the_first_add_of_its_key() {
    let later = Duration::from_nanos(5);
    let actions = [
        (Action::Retry, 2),
        (Action::Snooze(later), 1),
        (Action::poll(later, later), 1),
        (Action::Suspend(later), 1),
    ];
    for (action, attempts) in actions {
        let journal = Journal::default();
        let mut queue = queue(Reporter::new(journal.clone()));
        let work = first_run(&mut queue);
        queue.at(at(20)).finish(work.ticket, action);
        let _ = queue.at(at(30)).add(1);
        let work = get(&mut queue, 2_000_000);
        journal.take();
        queue.at(at(2_000_010)).finish(work.ticket, Action::Success);
        let reports = journal.take();
        let of = |what| reports.iter().find(|report| report.0 == what);
        let time = of("time_to_success").map(|report| report.1);
        assert_eq!(time, Some(2_000_000), "{action:?}");
        let counted = of("attempts_at_success").map(|report| report.1);
        assert_eq!(counted, Some(attempts), "{action:?}");
        queue.assert_valid();
    }
}

#[test]
fn the_first_add_after_an_end_begins_the_next_time() {
    type End = (&'static str, fn(&mut Keys<Reporter>, Work<u8>));
    let ends: [End; 5] = [
        ("a success", |queue, work| {
            queue.at(at(20)).finish(work.ticket, Action::Success);
        }),
        ("given up", |queue, work| {
            queue.at(at(20)).finish(work.ticket, Action::GiveUp);
        }),
        ("nothing asks for it", |queue, work| {
            let _ = queue.at(at(20)).add_rate_limited(1);
            let _ = queue.at(at(20)).cancel_delay(&1);
            queue.at(at(20)).finish(work.ticket, Action::Release);
            assert_eq!(queue.failures(&1), 1, "it keeps its slot");
        }),
        ("cancelled", |queue, work| {
            queue.at(at(20)).finish(work.ticket, Action::Retry);
            let _ = queue.at(at(20)).cancel(&1);
        }),
        ("its slot is used again", |queue, work| {
            queue.at(at(20)).finish(work.ticket, Action::Retry);
            let _ = queue.at(at(20)).cancel(&1);
            let _ = queue.at(at(20)).forget(&1);
            let _ = queue.at(at(20)).add_after(1, Duration::from_nanos(80));
        }),
    ];
    for (what, end) in ends {
        let journal = Journal::default();
        let mut queue = queue(Reporter::new(journal.clone()));
        let work = first_run(&mut queue);
        end(&mut queue, work);
        let _ = queue.at(at(100)).add(1);
        let work = get(&mut queue, 105);
        journal.take();
        queue.at(at(107)).finish(work.ticket, Action::Success);
        assert_eq!(journal.of("time_to_success"), [7], "{what}");
    }
}

#[test]
fn an_add_during_the_run_that_succeeds_is_the_next_first_one() {
    let journal = Journal::default();
    let mut queue = queue(Reporter::new(journal.clone()));
    let work = first_run(&mut queue);
    let _ = queue.at(at(17)).add(1);
    let again = Action::RequeueAfter(Duration::from_nanos(30));
    queue.at(at(20)).finish(work.ticket, again);
    assert_eq!(journal.of("time_to_success"), [10]);
    let work = get(&mut queue, 25);
    queue.at(at(27)).finish(work.ticket, Action::Success);
    assert_eq!(journal.of("time_to_success"), [10], "since 17");
    // The deadline of the first success.
    let work = get(&mut queue, 60);
    queue.at(at(61)).finish(work.ticket, Action::Success);
    assert_eq!(journal.of("time_to_success"), [11], "since 50");
}

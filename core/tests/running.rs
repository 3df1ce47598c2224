//! How long the active keys have been running, as the metrics receive it: compared with a scan of all runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_core::binding::RandomState;
use requeue_core::binding::Reporter;
use requeue_core::binding::Ticket;
use requeue_core::limiter::{NoLimit, default_item_based};
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::{Groups, Levels, Plain, Priorities};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Action, AddOptions, Finished, GroupLimits, Instant, Queue};

/// What was last reported: all runs together, and the longest.
#[derive(Clone, Default)]
struct RunningTimes(Arc<Mutex<(Duration, Duration)>>);

impl Metrics for RunningTimes {
    type Timestamps = Times;

    fn unfinished_work(&mut self, sum: Duration) {
        self.0.lock().unwrap().0 = sum;
    }

    fn longest_running(&mut self, longest: Duration) {
        self.0.lock().unwrap().1 = longest;
    }
}

/// A generator of steps that needs no crate (G. Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Adds, takes, ends and reports at random. After each operation the times are those of a scan.
fn compare<P, L, S, M>(mut queue: Queue<u64, P, L, S, M>, times: &RunningTimes)
where
    P: Priorities,
    L: requeue_core::limiter::RateLimiter,
    S: Storage,
    M: Metrics,
{
    let mut random = Random(20_261_122);
    let mut runs: Vec<(Ticket, u64)> = Vec::new();
    let mut now = 5;
    for step in 0..if cfg!(miri) { 20 } else { 3_000 } {
        now += random.below(3);
        let at = Instant::from_nanos(now);
        match random.below(8) {
            0..3 => drop(queue.at(at).add(random.below(16))),
            3 => drop(queue.at(at).add_rate_limited(random.below(16))),
            4 | 5 => {
                let work = queue.at(at).try_get();
                runs.extend(work.map(|work| (work.ticket, now)));
            }
            _ if runs.is_empty() => {}
            action => {
                let (ticket, _) = runs.remove(random.below(runs.len() as u64) as usize);
                let action = match action {
                    6 => Action::Success,
                    _ => Action::RequeueAfter(Duration::from_nanos(random.below(9))),
                };
                assert_ne!(queue.at(at).finish(ticket, action), Finished::Stale);
            }
        }
        queue.assert_valid();
        queue.at(at).report_running();
        let of_all = runs.iter().map(|(_, started)| now - started);
        let expected = (of_all.clone().sum(), of_all.max().unwrap_or(0));
        let reported = *times.0.lock().unwrap();
        let expected = (
            Duration::from_nanos(expected.0),
            Duration::from_nanos(expected.1),
        );
        assert_eq!(reported, expected, "step {step}");
    }
}

#[test]
fn the_running_times_are_those_of_a_scan() {
    let times = RunningTimes::default();
    let fixed: Queue<u64, Plain, _, Fixed<12>, _> =
        Queue::with_metrics(default_item_based(), times.clone());
    compare(fixed, &times);
    let leveled: Queue<u64, Levels<2>, _, Fixed<12, u16>, _> =
        Queue::with_metrics(default_item_based(), times.clone());
    compare(leveled, &times);
    let parts = || Queue::builder().limiter(default_item_based());
    compare(parts().report_to(times.clone()).build(), &times);
    let leveled = parts().report_to(times.clone()).levels::<3>();
    compare(leveled.build(), &times);
    compare(
        parts().report_to(Reporter::new(times.clone())).build(),
        &times,
    );
}

type Exchanged = Queue<u64, Plain, NoLimit, Growable<RandomState>, Reporter>;

/// The metrics of a queue may be exchanged at any time: those put in its place know of the runs
/// that begin from then on.
#[test]
fn exchanged_metrics_report_the_runs_that_begin_after_that() {
    let (first, second) = (RunningTimes::default(), RunningTimes::default());
    let parts = Queue::builder().limiter(NoLimit);
    let mut queue: Exchanged = parts.report_to(Reporter::new(first.clone())).build();
    let at = Instant::from_nanos;
    let _ = queue.at(at(10)).add_many(0..4, |_| {});
    let [old, kept] = [11, 12].map(|now| queue.at(at(now)).try_get().unwrap());

    let before = std::mem::replace(queue.metrics_mut(), Reporter::new(second.clone()));
    let new = queue.at(at(20)).try_get().unwrap();
    queue.at(at(25)).finish(old.ticket, Action::Success);
    let _ = queue.at(at(25)).add(4);
    queue.at(at(30)).report_running();
    assert_eq!(second.0.lock().unwrap().0, Duration::from_nanos(10));
    queue.at(at(31)).finish(new.ticket, Action::Success);

    // Back again: the slots have been used for other keys meanwhile.
    *queue.metrics_mut() = before;
    let ends = [32, 33].map(|now| queue.at(at(now)).try_get().unwrap());
    for work in ends.into_iter().chain([kept]) {
        queue.at(at(40)).finish(work.ticket, Action::Success);
    }
    queue.at(at(50)).report_running();
    assert_eq!(*first.0.lock().unwrap(), (Duration::ZERO, Duration::ZERO));
    queue.assert_valid();
}

#[derive(Clone, Default)]
struct Oldest(Arc<Mutex<Option<Duration>>>);

impl Metrics for Oldest {
    type Timestamps = Times;

    fn oldest_ready(&mut self, age: Duration) {
        *self.0.lock().unwrap() = Some(age);
    }
}

/// Adds, takes and cancels, and compares what is reported with what the test knows.
fn watch_the_oldest<P, S, M>(mut queue: Queue<u64, P, NoLimit, S, M>, oldest: &Oldest)
where
    P: Priorities,
    S: Storage,
    M: Metrics,
{
    let at = Instant::from_nanos;
    let reports = |queue: &mut Queue<u64, P, NoLimit, S, M>, now| {
        queue.at(at(now)).report_running();
        oldest.0.lock().unwrap().take().map(|age| age.as_nanos())
    };
    assert_eq!(reports(&mut queue, 5), Some(0), "no key is ready");
    for (key, now) in [(1, 10), (2, 12), (3, 15)] {
        let _ = queue.at(at(now)).add(key);
    }
    let _ = queue.at(at(16)).add(1);
    assert_eq!(reports(&mut queue, 20), Some(10), "since its first add");
    let _ = queue.at(at(20)).cancel(&1);
    assert_eq!(reports(&mut queue, 20), Some(8));
    let work = queue.at(at(21)).try_get().unwrap();
    let _ = queue.at(at(22)).add(2);
    assert_eq!(
        reports(&mut queue, 25),
        Some(10),
        "a dirty key is not ready"
    );
    let _ = queue.at(at(25)).try_get();
    assert_eq!(reports(&mut queue, 25), Some(0));
    queue.at(at(27)).finish(work.ticket, Action::Success);
    assert_eq!(reports(&mut queue, 30), Some(8), "it was dirty since 22");
    queue.at(at(30)).shut_down();
    assert_eq!(reports(&mut queue, 31), None);
}

#[test]
fn the_age_of_the_oldest_ready_key_is_reported() {
    let oldest = Oldest::default();
    let fixed: Queue<u64, Plain, _, Fixed<12>, _> = Queue::with_metrics(NoLimit, oldest.clone());
    watch_the_oldest(fixed, &oldest);
    let parts = || Queue::builder().limiter(NoLimit);
    watch_the_oldest(parts().report_to(oldest.clone()).build(), &oldest);
    let leveled = parts().report_to(oldest.clone()).levels::<3>();
    watch_the_oldest(leveled.build(), &oldest);
    watch_the_oldest(
        parts().report_to(Reporter::new(oldest.clone())).build(),
        &oldest,
    );
}

/// A low key that starves is what shows.
#[test]
fn of_several_levels_the_oldest_is_reported() {
    let oldest = Oldest::default();
    let parts = Queue::builder().limiter(NoLimit).report_to(oldest.clone());
    let mut queue = parts.levels::<2>().build();
    let at = Instant::from_nanos;
    let _ = queue.at(at(10)).add(1_u64);
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    let _ = queue.at(at(15)).add_with(2, urgent);
    queue.at(at(20)).report_running();
    assert_eq!(*oldest.0.lock().unwrap(), Some(Duration::from_nanos(10)));
}

/// Of each level the next key counts, and of a backlog the earliest deadline that is left.
#[test]
fn a_queue_keeps_up_only_if_each_level_and_each_deadline_does() {
    let mut queue: Queue<u8, Levels<2>, _, Fixed<8>, _> = Queue::with_metrics(NoLimit, Times);
    let (at, span) = (Instant::from_nanos, Duration::from_nanos);
    let high = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    let _ = queue.at(at(10)).add(1);
    let _ = queue.at(at(18)).add_with(2, high);
    assert!(queue.at(at(20)).is_within(span(10), span(0)));
    assert!(
        !queue.at(at(21)).is_within(span(10), span(0)),
        "key 1 of the lower level"
    );
    while let Some(work) = queue.at(at(21)).try_get() {
        queue.at(at(21)).release(work.ticket);
    }
    for key in 3..8 {
        let _ = queue.at(at(21)).add_at(key, at(30));
    }
    assert!(queue.at(at(30)).is_within(span(0), span(0)));
    // Two keys are made ready, and three more are late.
    queue.limit_due_keys(2);
    let mut at_once = queue.at(at(41));
    assert!(!at_once.is_within(span(10), span(0)));
    queue.at(at(41)).shut_down();
    while let Some(work) = queue.at(at(41)).try_get() {
        queue.at(at(41)).release(work.ticket);
    }
    assert!(queue.at(at(99)).is_within(span(0), span(0)));
}

#[test]
fn a_group_at_its_limit_keeps_its_keys_waiting() {
    let mut queue: Queue<(u8, u8), Groups<u8>, _, Fixed<8>, Times> =
        Queue::with_groups(NoLimit, Times, |key: &(u8, u8)| key.0);
    let (at, second) = (Instant::from_nanos, Duration::from_nanos(1));
    queue
        .at(at(0))
        .limit_groups(GroupLimits::new().max_active(1));
    let _ = queue.at(at(0)).add_many([(1, 1), (1, 2)], |_| {});
    let _runs = queue.at(at(0)).try_get();
    assert!(queue.at(at(1)).is_within(second, second));
    assert!(!queue.at(at(2)).is_within(10 * second, second), "the run");
}

#[test]
fn a_queue_without_times_never_says_that_it_keeps_up() {
    let mut queue: Queue<u8, Plain, _, Fixed<2>> = Queue::new(NoLimit);
    assert!(
        !queue
            .at(Instant::EPOCH)
            .is_within(Duration::MAX, Duration::MAX)
    );
}

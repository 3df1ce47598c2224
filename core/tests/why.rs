//! Why a key does not run, where the suite does not look: many groups, two rates, words.

use core::time::Duration;

use requeue_core::binding::RandomState;
use requeue_core::limiter::{NoLimit, default_item_based};
use requeue_core::priority::{Groups, Plain, WithPolicy};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, GroupLimits, Instant, Policy, Queue, Why};

const NOW: Instant = Instant::EPOCH;

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// The group of a key is the key itself, or its tens.
type Grouped = Queue<u32, Groups<u32>, NoLimit, Growable>;

#[test]
fn of_two_rates_the_one_is_named_that_allows_a_run_later() {
    for (of_queue, of_group) in [(100.0, 10.0), (10.0, 100.0), (10.0, 10.0)] {
        let mut queue: Queue<u32, Groups<u32, WithPolicy>, NoLimit, Fixed<4>> =
            Queue::with_groups(NoLimit, (), |key| key / 10);
        queue
            .at(NOW)
            .set_policy(Policy::new().run_rate(of_queue, 1));
        let limits = GroupLimits::new().rate(of_group, 1);
        queue.at(NOW).limit_groups(limits);
        let _ = queue.at(NOW).add_many([11, 12], |_| {});
        assert_eq!(queue.at(NOW).try_get().unwrap().key, 11);

        let until = at(100);
        let named = if of_queue < of_group {
            Why::NoToken { until }
        } else {
            Why::GroupNoToken { until }
        };
        for now in [NOW, at(99)] {
            assert_eq!(queue.at(now).why(&12), named);
        }
        assert!(queue.at(at(99)).try_get().is_none());
        assert_eq!(queue.at(until).why(&12), Why::Ready);
        assert_eq!(queue.at(until).try_get().unwrap().key, 12);
    }
}

/// So many that a change of the limits does not look at each of them.
const GROUPS: u32 = 40;

/// A queue in which each group has handed out its only token, and has a ready key.
fn resting() -> Grouped {
    let mut queue: Grouped =
        Queue::growable_with_groups(NoLimit, (), RandomState::default(), 0, |key| key / 10);
    queue.at(NOW).limit_groups(GroupLimits::new().rate(10.0, 1));
    for group in 0..GROUPS {
        let keys = [group * 10, group * 10 + 1];
        let _ = queue.at(NOW).add_many(keys, |_| {});
    }
    while queue.at(NOW).try_get().is_some() {}
    queue
}

#[test]
fn a_group_is_named_by_the_limits_that_it_has_seen_or_not() {
    let (slower, same) = (
        GroupLimits::new().rate(5.0, 1),
        GroupLimits::new().rate(10.0, 1),
    );
    let until = at(100);
    for (limits, expected) in [
        (GroupLimits::new(), Why::Ready),
        (slower, Why::Ready),
        (same, Why::GroupNoToken { until }),
        (GroupLimits::new().max_active(1), Why::GroupAtLimit),
    ] {
        let mut queue = resting();
        queue.at(NOW).limit_groups(limits);
        for group in 0..GROUPS {
            assert_eq!(queue.at(NOW).why(&(group * 10 + 1)), expected, "{group}");
        }
        let taken = std::iter::from_fn(|| queue.at(NOW).try_get()).count();
        assert_eq!(taken, if expected == Why::Ready { 40 } else { 0 });
    }
}

#[test]
fn a_key_behind_a_backlog_has_its_own_time() {
    let mut queue: Queue<u32, Plain, _, Fixed<64>> = Queue::new(default_item_based());
    for key in 0..64 {
        let _ = queue.at(NOW).add_at(key, at(1));
    }
    assert_eq!(queue.stats().delayed, 64);
    assert_eq!(queue.at(at(1)).why(&63), Why::Ready);
    let stats = queue.stats();
    assert_eq!(
        (stats.ready, stats.delayed),
        (2, 62),
        "nothing else is hurried"
    );
    while queue.at(at(1)).advance() {}
    assert_eq!(queue.stats().ready, 64);
}

#[test]
fn a_leftover_that_is_restored_is_delayed() {
    let mut old: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    let _ = old.at(NOW).add_rate_limited("node-7");
    old.at(NOW).shut_down();
    assert_eq!(old.at(NOW).why("node-7"), Why::Closed);
    let leftover = old.at(NOW).take_delayed().unwrap();

    let mut new: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    let _ = new.at(NOW).restore(leftover);
    assert_eq!(new.at(NOW).why("node-7"), Why::Delayed { until: at(1) });
}

#[test]
fn a_run_without_times_has_no_beginning() {
    let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    let _ = queue.at(NOW).add("node-7");
    let work = queue.at(NOW).try_get().unwrap();
    let why = queue.at(at(90)).why("node-7");
    assert_eq!((why.to_string(), why.until()), ("running".into(), None));
    let minute = Duration::from_secs(60);
    queue
        .at(at(90))
        .finish(work.ticket, Action::RequeueAfter(minute));
    let why = queue.at(at(90)).why("node-7");
    assert_eq!(why.to_string(), "delayed until 60.09s");
}

#[test]
fn every_reason_has_its_words() {
    let until = at(1500);
    let since = Some(at(7));
    for (why, words) in [
        (
            Why::Running {
                since,
                again: false,
            },
            "running since 7ms",
        ),
        (
            Why::Running {
                since: None,
                again: true,
            },
            "running, and runs again",
        ),
        (Why::Ready, "ready, waits for a worker"),
        (
            Why::Delayed {
                until: Instant::NEVER,
            },
            "delayed for ever",
        ),
        (
            Why::BackingOff { until, failures: 0 },
            "backs off until 1.5s",
        ),
        (
            Why::BackingOff { until, failures: 1 },
            "backs off until 1.5s, after 1 failure",
        ),
        (Why::Debounced { until }, "debounced until 1.5s"),
        (Why::Held { until, failures: 0 }, "held until 1.5s"),
        (
            Why::Held { until, failures: 3 },
            "held until 1.5s, after 3 failures",
        ),
        (Why::Paused, "ready, but the queue is paused"),
        (Why::GroupPaused, "ready, but its group is paused"),
        (Why::GroupAtLimit, "ready, but its group is at its limit"),
        (
            Why::GroupNoToken { until },
            "ready, but its group has no token until 1.5s",
        ),
        (
            Why::NoToken { until },
            "ready, but there is no token until 1.5s",
        ),
        (Why::Closed, "the queue is shut down"),
        (Why::Idle, "nothing to do"),
    ] {
        assert_eq!(why.to_string(), words);
    }
}

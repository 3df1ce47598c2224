//! Delays that may become longer, so that one wake serves several keys.

use std::time::Duration;

use requeue_core::limiter::{Exponential, NoLimit};
use requeue_core::priority::{Groups, Levels, Plain, WithPolicy, WithSlack, WithSuspension};
use requeue_core::storage::{Fixed, Storage};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Leftover, Merge, Policy};
use requeue_core::{Queue, Why};

const SECOND: Duration = Duration::from_secs(1);

/// All kinds of waiting in one type, in a `static`'s storage.
type All = Queue<u16, WithSlack<WithSuspension>, Exponential, Fixed<32>>;

const fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn queue() -> All {
    Queue::new(Exponential::new(SECOND, 1000 * SECOND))
}

/// Adds a key at a time, for a window of seconds.
fn add(queue: &mut All, now: u64, key: u16, opens: u64, due: u64) -> Added {
    let (delay, slack) = (SECOND * (opens - now) as u32, SECOND * (due - opens) as u32);
    queue.at(at(now)).add_within(key, delay, slack).unwrap()
}

fn with(queue: &mut All, now: u64, key: u16, after: u32, slack: u8, merge: Merge) -> Added {
    let options = AddOptions {
        after: Some(after * SECOND),
        slack,
        merge,
        ..AddOptions::new()
    };
    let scheduled = queue.at(at(now)).add_with(key, options).unwrap();
    assert_eq!(scheduled.delay, after * SECOND, "the delay has no slack");
    scheduled.added
}

/// From when on the key alone may run, to the second, and its deadline.
fn window<S: Storage>(
    of: impl Fn() -> Queue<u16, WithSlack<WithSuspension>, Exponential, S>,
    key: u16,
) -> (u64, u64) {
    let due = of().at(at(0)).state(&key).unwrap().due.unwrap();
    let opens = (0..).find(|now| of().at(at(*now)).state(&key).unwrap().ready);
    (opens.unwrap(), (due - at(0)).as_secs())
}

#[test]
fn one_wake_serves_each_key_whose_window_is_open() {
    let mut queue = queue();
    for key in 0..20 {
        assert_eq!(
            add(&mut queue, 0, key, 10 + u64::from(key), 30 + u64::from(key)),
            Added::Delayed
        );
    }
    assert_eq!(
        queue.next_deadline(),
        Some(at(30)),
        "the end of the first window"
    );
    assert_eq!(queue.at(at(30)).len(), 20, "the last window opens at 29");
    let order = std::iter::from_fn(|| queue.at(at(30)).try_get().map(|work| work.key));
    assert!(order.eq(0..20), "in the order of the deadlines");
}

#[test]
fn no_key_runs_before_its_window_or_after_its_end() {
    let mut queue = queue();
    add(&mut queue, 0, 1, 10, 20);
    let before = at(10) - Duration::from_nanos(1);
    assert!(queue.at(before).try_get().is_none());
    assert!(queue.at(at(10)).try_get().is_some());
    add(&mut queue, 10, 1, 15, 20);
    assert_eq!(queue.next_deadline(), Some(at(20)));
}

#[test]
fn a_closed_window_hides_the_open_ones_behind_it() {
    let mut queue = queue();
    add(&mut queue, 0, 1, 10, 20);
    add(&mut queue, 0, 2, 12, 12);
    assert_eq!(
        queue.at(at(11)).len(),
        0,
        "key 2 is first, and its window is closed"
    );
    assert!(
        queue.at(at(11)).state(&1).unwrap().ready,
        "an operation on the key itself"
    );
    assert!(!queue.at(at(11)).state(&2).unwrap().ready);
    add(&mut queue, 11, 3, 12, 30);
    assert_eq!(queue.at(at(12)).len(), 3);
}

#[test]
fn an_operation_on_a_key_applies_its_window() {
    let mut queue = queue();
    add(&mut queue, 0, 2, 10, 11);
    add(&mut queue, 0, 1, 5, 20);
    assert_eq!(queue.at(at(6)).add(1), Ok(Added::Coalesced));
    assert_eq!(queue.at(at(6)).state(&1).unwrap().due, None);
    // It is handed out: its window is one more run unless it counts as the same.
    let mut queue = self::queue();
    add(&mut queue, 0, 2, 10, 11);
    add(&mut queue, 0, 1, 5, 20);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(6)).try_get().unwrap();
    assert_eq!(
        (work.key, queue.at(at(6)).state(&1).unwrap().due),
        (1, None)
    );
}

#[test]
fn windows_merge_at_both_ends() {
    use Added::{Coalesced, Later, Sooner};
    use Merge::{Earliest, Keep, Latest, Once, Replace};

    for (rule, first, second, added, expected) in [
        (Earliest, (20, 30), (10, 50), Sooner, (10, 15)),
        (Earliest, (20, 30), (10, 250), Coalesced, (10, 30)),
        (Earliest, (10, 30), (20, 20), Sooner, (10, 24)),
        (Earliest, (10, 30), (20, 0), Sooner, (10, 20)),
        (Earliest, (10, 30), (20, 100), Coalesced, (10, 30)),
        (Once, (20, 30), (10, 250), Coalesced, (10, 30)),
        (Latest, (20, 30), (10, 100), Coalesced, (20, 30)),
        (Latest, (10, 30), (20, 20), Coalesced, (20, 30)),
        (Latest, (10, 30), (20, 100), Later, (20, 40)),
        (Latest, (20, 30), (10, 250), Later, (20, 35)),
        (Replace, (20, 30), (10, 50), Sooner, (10, 15)),
        (Replace, (10, 30), (20, 50), Coalesced, (20, 30)),
        (Replace, (10, 30), (20, 100), Later, (20, 40)),
        (Keep, (20, 30), (10, 50), Coalesced, (20, 30)),
    ] {
        let merge = || {
            let mut queue = queue();
            add(&mut queue, 0, 1, first.0, first.1);
            let added = with(&mut queue, 0, 1, second.0, second.1, rule);
            (queue, added)
        };
        let merged = (merge().1, window(|| merge().0, 1));
        let case = format!("{rule:?} {first:?} {second:?}");
        assert_eq!(merged, (added, expected), "{case}");
    }
}

#[test]
fn an_exact_deadline_after_one_with_slack_has_none() {
    let of = || {
        let mut queue = queue();
        add(&mut queue, 0, 1, 10, 30);
        let work = queue.at(at(10)).try_get().unwrap();
        queue.at(at(10)).release(work.ticket);
        queue.at(at(10)).add_after(1, 10 * SECOND).unwrap();
        queue
    };
    assert_eq!(window(of, 1), (20, 20));
}

#[test]
fn a_percentage_is_of_the_delay_of_this_time() {
    let mut queue = queue();
    let mut now = at(7);
    let _ = queue.at(now).add(1);
    for delay in [1, 2, 4, 8] {
        let work = queue.at(now).try_get().unwrap();
        let finished = queue
            .at(now)
            .finish(work.ticket, Action::Retry.with_slack(50));
        assert_eq!(
            finished,
            Finished::Delayed(delay * SECOND),
            "without the slack"
        );
        let due = now + delay * SECOND * 3 / 2;
        assert_eq!(queue.next_deadline(), Some(due));
        let failures = delay.ilog2() + 1;
        assert_eq!(
            queue.at(now).why(&1),
            Why::BackingOff {
                until: due,
                failures
            }
        );
        assert!(
            queue
                .at(now + delay * SECOND - Duration::from_nanos(1))
                .try_get()
                .is_none()
        );
        now = now + delay * SECOND;
    }
}

#[test]
fn a_percentage_is_rounded_down_to_nanoseconds() {
    let longest = u64::MAX - 1;
    for (delay, percent, due) in [
        (150, 50, 225),
        (199, 1, 200),
        (99, 1, 99),
        (7, 255, 24),
        (longest / 2 - 1, 100, longest - 2),
        (longest / 2, 255, longest),
    ] {
        let options = AddOptions {
            after: Some(Duration::from_nanos(delay)),
            slack: percent,
            ..AddOptions::new()
        };
        let mut queue = queue();
        let _ = queue.at(at(0)).add_with(1, options).unwrap();
        let due = Some(Instant::from_nanos(due));
        assert_eq!(queue.next_deadline(), due, "{delay} ns and {percent} %");
    }
}

#[test]
fn a_retry_that_is_added_is_a_backoff() {
    let mut queue = queue();
    let options = AddOptions {
        rate_limited: true,
        slack: 30,
        ..AddOptions::new()
    };
    let scheduled = queue.at(at(7)).add_with(1, options).unwrap();
    assert_eq!((scheduled.added, scheduled.delay), (Added::Delayed, SECOND));
    let until = at(7) + 13 * SECOND / 10;
    assert_eq!(
        queue.at(at(7)).why(&1),
        Why::BackingOff { until, failures: 1 }
    );
}

#[test]
fn never_stays_never_and_nothing_else_becomes_it() {
    let mut queue = queue();
    let _ = queue.at(at(0)).add(1);
    let work = queue.at(at(0)).try_get().unwrap();
    let never = Action::RequeueAfter(Duration::MAX).with_slack(255);
    assert_eq!(
        queue.at(at(0)).finish(work.ticket, never),
        Finished::Delayed(Duration::MAX)
    );
    assert_eq!(queue.at(at(0)).state(&1).unwrap().due, Some(Instant::NEVER));

    let long = Duration::from_nanos(u64::MAX - 9);
    let _ = queue.at(at(0)).add_within(2, long, Duration::MAX);
    assert_eq!(
        queue.next_deadline(),
        Some(Instant::from_nanos(u64::MAX - 1))
    );
    assert!(
        !queue
            .at(Instant::from_nanos(u64::MAX - 10))
            .state(&2)
            .unwrap()
            .ready
    );
    assert!(
        queue
            .at(Instant::from_nanos(u64::MAX - 9))
            .state(&2)
            .unwrap()
            .ready
    );
}

#[test]
fn a_delay_of_zero_is_an_add() {
    let mut queue = queue();
    assert_eq!(add(&mut queue, 7, 1, 7, 60), Added::Ready);
    assert_eq!(queue.next_deadline(), None);
}

#[test]
fn a_delay_of_zero_has_no_slack_if_the_key_is_held() {
    let mut queue = queue().with_policy(Policy::new().hold_failures());
    let _ = queue.at(at(0)).add_rate_limited(1);
    let _ = queue.at(at(0)).cancel_delay(&1);
    assert_eq!(add(&mut queue, 0, 1, 0, 60), Added::Delayed);
    assert_eq!(queue.next_deadline(), Some(at(1)), "when the hold ends");
}

#[test]
fn a_hold_moves_the_beginning_and_the_end() {
    let run = |seconds: u32, percent: u8| {
        let mut queue = queue().with_policy(Policy::new().cool_down(10 * SECOND));
        let _ = queue.at(at(0)).add(1);
        let work = queue.at(at(0)).try_get().unwrap();
        let action = Action::RequeueAfter(seconds * SECOND).with_slack(percent);
        queue.at(at(0)).finish(work.ticket, action);
        queue.assert_valid();
        queue
    };
    assert_eq!(window(|| run(1, 20), 1), (10, 10));
    assert_eq!(
        window(|| run(8, 50), 1),
        (10, 12),
        "the end is later than the hold"
    );
    assert_eq!(window(|| run(12, 50), 1), (12, 18));
    // The same for an add.
    let added = || {
        let mut queue = run(30, 0);
        assert_eq!(add(&mut queue, 0, 1, 8, 12), Added::Sooner);
        queue.assert_valid();
        queue
    };
    assert_eq!(window(added, 1), (10, 12));
}

#[test]
fn a_hold_that_begins_moves_a_window_that_is_there() {
    let mut queue = queue().with_policy(Policy::new().hold_failures());
    add(&mut queue, 0, 1, 1, 20);
    let failed = AddOptions {
        rate_limited: true,
        merge: Merge::Keep,
        ..AddOptions::new()
    };
    for _ in 0..2 {
        let scheduled = queue.at(at(0)).add_with(1, failed).unwrap();
        assert_eq!(scheduled.added, Added::Coalesced, "its deadline stays");
    }
    queue.assert_valid();
    assert!(!queue.at(at(1)).state(&1).unwrap().ready, "held until 2 s");
    assert!(queue.at(at(2)).state(&1).unwrap().ready);
}

#[test]
fn a_suspension_has_slack_and_the_deadline_beside_it_none() {
    let mut queue = queue();
    add(&mut queue, 0, 1, 10, 90);
    assert!(queue.at(at(0)).suspend(&1, 50 * SECOND));
    assert_eq!(queue.at(at(0)).state(&1).unwrap().due, Some(at(90)));
    assert!(!queue.at(at(49)).state(&1).unwrap().ready);
    assert!(queue.at(at(49)).resume(&1));
    assert!(
        !queue.at(at(89)).state(&1).unwrap().ready,
        "its slack is gone"
    );
    assert!(queue.at(at(90)).state(&1).unwrap().ready);

    let work = queue.at(at(90)).try_get().unwrap();
    add(&mut queue, 90, 1, 150, 160);
    let suspend = Action::Suspend(20 * SECOND).with_slack(50);
    let finished = queue.at(at(90)).finish(work.ticket, suspend);
    assert_eq!(finished, Finished::Suspended(20 * SECOND));
    assert_eq!(queue.at(at(90)).state(&1).unwrap().suspended, Some(at(120)));
    assert!(queue.at(at(109)).try_get().is_none());
    let work = queue.at(at(110)).try_get().unwrap();
    assert!(work.timed_out);
    assert_eq!(queue.at(at(110)).state(&1).unwrap().due, Some(at(160)));
}

#[test]
fn a_planned_suspension_without_slack_does_not_get_that_of_the_deadline() {
    let mut queue = queue();
    let _ = queue.at(at(0)).add(1);
    let work = queue.at(at(0)).try_get().unwrap();
    add(&mut queue, 0, 1, 50, 90);
    assert!(queue.at(at(0)).suspend(&1, 60 * SECOND));
    queue.at(at(0)).finish(work.ticket, Action::Release);
    assert!(!queue.at(at(59)).state(&1).unwrap().ready);
    assert!(queue.at(at(60)).state(&1).unwrap().ready);
}

#[test]
fn an_own_deadline_in_the_window_of_a_suspension_stays() {
    let mut queue = queue();
    let _ = queue.at(at(0)).add(1);
    let work = queue.at(at(0)).try_get().unwrap();
    queue
        .at(at(0))
        .finish(work.ticket, Action::Suspend(20 * SECOND).with_slack(100));
    let _ = queue.at(at(0)).add_after(1, 30 * SECOND);
    let state = queue.at(at(25)).state(&1).unwrap();
    assert!(state.ready && state.suspended.is_none());
    assert_eq!(state.due, Some(at(30)));
}

#[test]
fn debounced_adds_are_exact() {
    let of = || {
        let mut queue = queue();
        add(&mut queue, 0, 1, 4, 60);
        let _ = queue
            .at(at(0))
            .add_debounced(1, 20 * SECOND, 100 * SECOND)
            .unwrap();
        let _ = queue
            .at(at(2))
            .add_debounced(1, 20 * SECOND, 100 * SECOND)
            .unwrap();
        queue
    };
    assert_eq!(window(of, 1), (22, 22));
}

#[test]
fn expedite_ends_the_slack_too() {
    let mut queue = queue();
    add(&mut queue, 0, 1, 10, 20);
    assert!(queue.at(at(1)).expedite(&1));
    assert_eq!(queue.at(at(1)).len(), 1);
    add(&mut queue, 1, 2, 10, 20);
    assert_eq!(queue.at(at(1)).cancel_delay(&2), Some(at(20)));
}

#[test]
fn shutdown_closes_the_windows() {
    let mut queue = queue();
    add(&mut queue, 0, 2, 11, 15);
    add(&mut queue, 0, 1, 5, 20);
    queue.at(at(10)).shut_down();
    assert_eq!(queue.at(at(30)).len(), 0);
    assert!(!queue.at(at(30)).state(&1).unwrap().ready);
    let left = queue.at(at(12)).take_delayed().unwrap();
    assert_eq!((left.key, left.left), (2, 3 * SECOND), "until the end");

    // The shutdown itself looks, as every operation does.
    let mut queue = self::queue();
    add(&mut queue, 0, 1, 5, 20);
    queue.at(at(10)).shut_down();
    assert_eq!(queue.at(at(10)).try_get().unwrap().key, 1);
}

#[test]
fn after_shutdown_actions_have_no_slack() {
    let mut queue = queue();
    let _ = queue.at(at(0)).add(1);
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).shut_down();
    let again = Action::RequeueAfter(10 * SECOND).with_slack(50);
    assert_eq!(
        queue.at(at(0)).finish(work.ticket, again),
        Finished::Leftover(10 * SECOND)
    );
    assert_eq!(queue.at(at(0)).take_delayed().unwrap().left, 10 * SECOND);
}

#[test]
fn a_restored_key_is_exact() {
    let of = || {
        let mut queue = queue();
        let mut left = Leftover::new(1);
        left.left = 20 * SECOND;
        queue.at(at(0)).restore(left).unwrap();
        queue
    };
    assert_eq!(window(of, 1), (20, 20));
}

#[test]
fn open_windows_count_as_due_keys() {
    let mut queue = queue();
    queue.limit_due_keys(2);
    for key in 0..4 {
        add(&mut queue, 0, key, 10, 20 + u64::from(key));
    }
    assert!(
        queue.at(at(15)).advance(),
        "two are ready, and two more could be"
    );
    assert_eq!(queue.stats().ready, 2);
    assert!(!queue.at(at(15)).advance());
    assert_eq!(queue.stats().ready, 4);
}

#[test]
fn a_watchdog_counts_from_the_end_of_a_window() {
    use requeue_core::metrics::Times;
    let mut queue: Queue<u16, WithSlack, NoLimit, Fixed<4>, Times> =
        Queue::with_metrics(NoLimit, Times);
    // The key whose window is closed is first, so that the other one stays delayed.
    let _ = queue.at(at(0)).add_within(1, 10 * SECOND, 90 * SECOND);
    let _ = queue.at(at(0)).add_at(2, at(50));
    assert!(queue.at(at(49)).is_within(SECOND, SECOND));
    // It became ready at 50 s, not when its window opened.
    assert!(queue.at(at(50)).is_within(SECOND, SECOND));
    assert!(queue.at(at(51)).is_within(SECOND, SECOND));
    assert!(!queue.at(at(52)).is_within(SECOND, SECOND));
}

#[test]
fn a_snapshot_shows_an_open_window_as_ready() {
    let mut queue = queue();
    add(&mut queue, 0, 2, 11, 15);
    add(&mut queue, 0, 1, 5, 20);
    let mut sweep = requeue_core::binding::Sweep::new();
    let mut seen = Vec::new();
    while queue
        .at(at(6))
        .snapshot_some(&mut sweep, |key, state| seen.push((*key, state.ready)))
    {}
    seen.sort_unstable();
    assert_eq!(seen, [(1, true), (2, false)]);
}

#[test]
fn groups_and_levels_use_it_too() {
    type Grouped = Groups<u16, WithSlack<WithPolicy<Levels<2>>>>;
    let mut queue: Queue<u16, Grouped, NoLimit, Fixed<8>> =
        Queue::with_groups(NoLimit, (), |key| key % 2);
    for key in 0..4 {
        let _ = queue.at(at(0)).add_within(key, 10 * SECOND, 10 * SECOND);
    }
    assert_eq!(queue.at(at(10)).len(), 4);
}

#[cfg(feature = "alloc")]
#[test]
fn a_queue_that_grows_uses_slack_without_more() {
    let keys = if cfg!(miri) { 50 } else { 2000 };
    let mut queue: Queue<u32, _, _, _> = Queue::growable(NoLimit);
    for key in 0..keys {
        let _ = queue
            .at(at(0))
            .add_within(key, 10 * SECOND, SECOND * (key + 1));
    }
    queue.assert_valid();
    assert_eq!(queue.next_deadline(), Some(at(11)));
    assert_eq!(queue.at(at(11)).len(), keys as usize);
}

#[cfg(feature = "alloc")]
#[test]
fn the_first_window_of_a_queue_meets_an_exact_deadline() {
    for (delay, replaces, expected) in [(5, false, 5), (30, false, 20), (10, true, 10)] {
        let mut queue: Queue<u32, _, _, _> = Queue::growable(NoLimit);
        let _ = queue.at(at(0)).add_after(1, 20 * SECOND);
        if replaces {
            let options = AddOptions {
                after: Some(delay * SECOND),
                slack: 100,
                merge: Merge::Replace,
                ..AddOptions::new()
            };
            let _ = queue.at(at(0)).add_with(1, options);
        } else {
            let _ = queue.at(at(0)).add_within(1, delay * SECOND, 100 * SECOND);
        }
        queue.assert_valid();
        let opens = at(expected) - Duration::from_nanos(1);
        assert!(!queue.at(opens).state(&1).unwrap().ready);
        assert!(queue.at(at(expected)).state(&1).unwrap().ready);
    }
}

#[test]
fn without_slack_in_its_type_a_fixed_queue_is_exact() {
    let mut queue: Queue<u16, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    let _ = queue.at(at(7)).add(1);
    let work = queue.at(at(7)).try_get().unwrap();
    let again = Action::RequeueAfter(SECOND).with_slack(100);
    assert_eq!(
        queue.at(at(7)).finish(work.ticket, again),
        Finished::Delayed(SECOND)
    );
    assert_eq!(queue.next_deadline(), Some(at(8)));
    let options = AddOptions {
        after: Some(SECOND),
        slack: 100,
        ..AddOptions::new()
    };
    let _ = queue.at(at(7)).add_with(2, options).unwrap();
    assert_eq!(queue.at(at(7)).state(&2).unwrap().due, Some(at(8)));
}

//! Delays that may become longer, so that one wake serves several keys.

use std::collections::BTreeSet;
use std::time::Duration;

use requeue_core::limiter::{Exponential, NoLimit};
use requeue_core::priority::{Plain, WithPolicy};
use requeue_core::storage::Fixed;
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Policy, Queue, Why};

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

fn finish(
    queue: &mut Queue<u16, WithPolicy, Exponential, Fixed<32>>,
    now: Instant,
    action: Action,
) -> Instant {
    let work = queue.at(now).try_get().unwrap();
    let key = work.key;
    let finished = queue.at(now).finish(work.ticket, action);
    let due = queue.at(now).state(&key).and_then(|state| state.due);
    let due = due.unwrap();
    assert_eq!(
        finished,
        Finished::Delayed(due - now),
        "what is said is what is done"
    );
    due
}

fn queue() -> Queue<u16, WithPolicy, Exponential, Fixed<32>> {
    Queue::new(Exponential::new(SECOND, 1000 * SECOND))
}

#[test]
fn keys_of_about_the_same_time_become_ready_together() {
    let mut queue = queue();
    for key in 0..20 {
        let now = at(50 * u64::from(key));
        let _ = queue.at(now).add_within(key, 10 * SECOND, 2 * SECOND);
    }
    let wakes: BTreeSet<Instant> = (0..20)
        .filter_map(|key| {
            let due = queue.at(at(0)).state(&key)?.due?;
            let earliest = at(50 * u64::from(key)) + 10 * SECOND;
            assert!(
                due >= earliest && due <= earliest + 2 * SECOND,
                "{key}: {due}"
            );
            Some(due)
        })
        .collect();
    // Two seconds are more than 2^30 ns, and so many multiples of these are in all windows together.
    assert!(wakes.iter().all(|wake| wake.as_nanos() % (1 << 30) == 0));
    assert_eq!(wakes.len(), 3, "for twenty keys");
}

#[test]
fn a_percentage_is_of_the_delay_of_this_time() {
    let mut queue = queue();
    let mut now = at(7);
    let _ = queue.at(now).add(1);
    for delay in [1, 2, 4, 8] {
        let due = finish(&mut queue, now, Action::Retry.with_slack(50));
        let earliest = now + delay * SECOND;
        assert!(due >= earliest && due <= earliest + delay * SECOND / 2);
        assert_eq!(
            queue.at(now).why(&1),
            Why::BackingOff {
                until: due,
                failures: delay.ilog2() + 1
            }
        );
        now = due;
    }
    let due = finish(
        &mut queue,
        now,
        Action::RequeueAfter(SECOND).with_slack(100),
    );
    assert!(
        due > now + SECOND && due <= now + 2 * SECOND,
        "nothing round is that early"
    );
}

#[test]
fn a_retry_that_is_added_is_a_backoff() {
    let mut queue = queue();
    let options = AddOptions {
        rate_limited: true,
        slack: 30,
        ..AddOptions::new()
    };
    let added = queue.at(at(7)).add_with(1, options).unwrap();
    assert_eq!(added.added, Added::Delayed);
    assert!(added.delay > SECOND && added.delay <= 13 * SECOND / 10);
    let until = at(7) + added.delay;
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

    let long = Duration::from_nanos(u64::MAX - 9);
    let _ = queue.at(at(0)).add_within(2, long, Duration::MAX);
    let due = queue.at(at(0)).state(&2).unwrap().due.unwrap();
    assert!(due >= Instant::EPOCH + long && !due.is_never());
}

#[test]
fn a_hold_that_lasts_longer_counts() {
    let mut queue = queue().with_policy(Policy::new().cool_down(10 * SECOND));
    let _ = queue.at(at(7)).add(1);
    let due = finish(
        &mut queue,
        at(7),
        Action::RequeueAfter(SECOND).with_slack(20),
    );
    assert_eq!(due, at(7) + 10 * SECOND);
}

#[test]
fn without_a_policy_in_its_type_a_fixed_queue_is_exact() {
    let mut queue: Queue<u16, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    let _ = queue.at(at(7)).add(1);
    let work = queue.at(at(7)).try_get().unwrap();
    let again = Action::RequeueAfter(SECOND).with_slack(100);
    assert_eq!(
        queue.at(at(7)).finish(work.ticket, again),
        Finished::Delayed(SECOND)
    );
    let options = AddOptions {
        after: Some(SECOND),
        slack: 100,
        ..AddOptions::new()
    };
    assert_eq!(queue.at(at(7)).add_with(2, options).unwrap().delay, SECOND);
    let _ = queue.at(at(7)).add_within(3, SECOND, SECOND);
    assert!(queue.at(at(7)).state(&3).unwrap().due.unwrap() > at(7) + SECOND);
}

//! Where requeue differs from client-go on purpose: one case for each, under its name.

use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{Action, Added, Finished, Instant, Rejected};

use super::{Script, ms};
use crate::subject::{Configuration, Key, Operate, Subject, left_over};

/// A drain waits for ready keys; client-go's ends once no key is active.
///
/// Source: docs/design.md, Differences from client-go
/// Needs: 2 keys
pub(crate) fn drain_waits_for_ready_keys(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add(2, Added::Ready);
    let drain = script.subject.begin_drain();
    script.drained(&drain, Drained::Pending);
    script.run(1);
    script.drained(&drain, Drained::Pending);
    script.run(2);
    script.drained(&drain, Drained::Complete);
}

/// A drain waits for dirty keys; client-go's ends although one is queued again.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn drain_waits_for_dirty_keys(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    let drain = script.subject.begin_drain();
    script.done(1);
    script.drained(&drain, Drained::Pending);
    script.run(1);
    script.drained(&drain, Drained::Complete);
}

/// In a drain getters wait for dirty keys; client-go's find the queue closed.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn getters_wait_for_dirty_keys(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.subject.shut_down();
    script.closed();
    let _ = script.subject.begin_drain();
    let getter = 0;
    let next = script.subject.get(getter);
    assert!(matches!(next, Next::Wait { .. }), "{next:?}");
    script.done(1);
    let next = script.subject.get(getter);
    assert!(matches!(next, Next::Work(_)), "{next:?}");
    script.closed();
    script.done(1);
}

/// Every call that waits for the drain is woken; client-go wakes one.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn every_drainer_is_woken(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    let drains = [script.subject.begin_drain(), script.subject.begin_drain()];
    let _ = script.subject.wakes();
    script.done(1);
    for drain in &drains {
        script.drained(drain, Drained::Complete);
    }
    if let Some(wake) = script.subject.wakes() {
        assert_eq!(wake, requeue_core::binding::Wake::ALL);
    }
}

/// Every shutdown ends a drain; of client-go's delaying queue only the first does.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn shut_down_interrupts_drain(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.subject.shut_down();
    let drain = script.subject.begin_drain();
    script.drained(&drain, Drained::Pending);
    script.subject.shut_down();
    script.drained(&drain, Drained::Interrupted);
}

/// Completing a key that is not active is an error; client-go says nothing.
///
/// Source: docs/design.md, Differences from client-go
/// Needs: 2 keys
pub(crate) fn done_of_inactive_key_is_an_error(script: &mut Script) {
    assert_eq!(script.subject.release_key(1), Finished::Stale, "unknown");
    script.add_after(2, 10, Added::Delayed);
    assert_eq!(script.subject.release_key(2), Finished::Stale, "delayed");
    script.add(1, Added::Ready);
    script.run(1);
    assert_eq!(
        script.subject.release_key(1),
        Finished::Stale,
        "done before"
    );
    script.advance(10);
    script.get(2);
}

/// Completing a queued key does not queue it twice, as client-go does.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn done_of_a_queued_key_does_not_queue_it_twice(script: &mut Script) {
    script.add(1, Added::Ready);
    assert_eq!(script.subject.release_key(1), Finished::Stale);
    script.len(1);
    script.get(1);
    script.nothing_to_get();
}

/// A worker that is late cannot complete another's run; client-go has no tickets.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn done_with_a_stale_ticket_does_nothing(script: &mut Script) {
    script.add(1, Added::Ready);
    let stale = script.get(1);
    script.done(1);
    script.add(1, Added::Ready);
    let current = script.get(1);
    let retry = script.subject.finish(stale, Action::Retry);
    assert_eq!(retry, Finished::Stale);
    script.failures(1, 0);
    assert_eq!(script.subject.release(current), Finished::Idle);
    assert_eq!(script.subject.stats().total, 0);
}

/// A key added after shutdown is handed back; client-go drops it silently.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn add_after_shutdown_is_an_error(script: &mut Script) {
    script.subject.shut_down();
    script.refused(1, Rejected::Closed(1));
    let subject = &mut script.subject;
    assert_eq!(subject.add_after(2, ms(1)), Err(Rejected::Closed(2)));
    assert_eq!(subject.add_after(2, ms(0)), Err(Rejected::Closed(2)));
    let due = Instant::from_nanos(1);
    assert_eq!(subject.add_at(3, due), Err(Rejected::Closed(3)));
    assert_eq!(subject.add_rate_limited(4), Err(Rejected::Closed(4)));
    let (many, rejected) = subject.add_many(&[5, 6]);
    assert_eq!(many.rejected, 2);
    assert_eq!(rejected, [Rejected::Closed(5), Rejected::Closed(6)]);
    assert_eq!(subject.stats().total, 0);
}

/// A rate-limited add after shutdown is not charged, as client-go does.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn limiter_not_charged_after_shutdown(script: &mut Script) {
    script.fail(1, 1);
    script.subject.shut_down();
    let retried = script.subject.add_rate_limited(1);
    assert_eq!(retried, Err(Rejected::Closed(1)));
    script.failures(1, 1);
}

/// Delayed keys can be taken back after shutdown; client-go drops them.
///
/// Source: docs/design.md, Differences from client-go
/// Needs: 3 keys
pub(crate) fn delayed_keys_are_handed_back_after_shutdown(script: &mut Script) {
    script.add_after(1, 30, Added::Delayed);
    script.fail(2, 1);
    script.fail(2, 2);
    assert_eq!(
        script.subject.add_after(3, Duration::MAX),
        Ok(Added::Delayed)
    );
    script.add(3, Added::Ready);
    assert_eq!(script.subject.take_delayed(), None, "not before shutdown");
    script.subject.shut_down();
    script.advance(10);

    let left = |key: Key, left, failures| Some(left_over(key, left, failures, 0));
    assert_eq!(script.subject.take_delayed(), left(2, ms(0), 2));
    assert_eq!(script.subject.take_delayed(), left(1, ms(20), 0));
    assert_eq!(script.subject.take_delayed(), left(3, Duration::MAX, 0));
    assert_eq!(script.subject.take_delayed(), None);
    script.run(3);
    script.closed();
}

/// Ready keys can be taken back after shutdown; client-go's have to be worked on.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn ready_keys_can_be_taken_back_after_shutdown(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add_after(1, 5, Added::Delayed);
    assert_eq!(script.subject.take_ready(), None, "not before shutdown");
    let drain = script.subject.begin_drain();
    let left = left_over(1, ms(0), 0, 0);
    assert_eq!(script.subject.take_ready(), Some(left));
    assert_eq!(
        script.subject.take_delayed(),
        None,
        "its delay went with it"
    );
    script.drained(&drain, Drained::Complete);
    assert_eq!(script.subject.stats().total, 0);
}

/// A key that fails after shutdown is kept among the delayed; client-go drops it.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn a_retry_after_shutdown_is_kept_among_the_delayed(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    let drain = script.subject.begin_drain();
    script.finish(ticket, Action::Retry, Finished::Leftover(ms(1)));
    script.drained(&drain, Drained::Complete);
    script.advance(5);
    script.closed();
    let left = left_over(1, ms(0), 1, 0);
    assert_eq!(script.subject.take_delayed(), Some(left));
}

/// Delays saturate; client-go's overflow into the past.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn delays_saturate(script: &mut Script) {
    script.advance(1);
    let longest = Duration::from_nanos(u64::MAX - 1);
    assert_eq!(script.subject.add_after(1, longest), Ok(Added::Delayed));
    assert_eq!(script.subject.stats().next_deadline, None);
    let last = Instant::from_nanos(u64::MAX - 1);
    assert_eq!(script.subject.add_at(1, last), Ok(Added::Sooner));
    assert_eq!(script.subject.stats().next_deadline, Some(last));
    script.subject.advance(longest - ms(1));
    script.get(1);
}

/// The longest delay never ends and arms no timer; client-go has no such delay.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn duration_max_is_never(script: &mut Script) {
    let added = script.subject.add_after(1, Duration::MAX);
    assert_eq!(added, Ok(Added::Delayed));
    let getter = 0;
    let next = script.subject.get(getter);
    assert!(matches!(next, Next::Wait { until: None }), "{next:?}");
    script.subject.leave(getter);
    script.subject.advance(Duration::MAX);
    script.len(0);
    script.add(1, Added::Ready);
    script.get(1);
}

/// Equal deadlines leave in the order in which they were set, unlike client-go's.
///
/// Source: docs/design.md, Differences from client-go
/// Needs: 10 keys
pub(crate) fn equal_deadlines_leave_in_insertion_order(script: &mut Script) {
    for key in 1..=9 {
        script.add_after(key, 10, Added::Delayed);
    }
    script.add_after(20, 20, Added::Delayed);
    script.add_after(20, 10, Added::Sooner);
    script.advance(10);
    for key in (1..=9).chain([20]) {
        script.get(key);
    }
}

/// A new key for which there is no room comes back, and nothing changes.
///
/// Source: docs/design.md, One slot per key
/// Needs: Capacity
pub(crate) fn a_full_queue_hands_the_key_back(script: &mut Script) {
    let new = script.fill();
    script.refused(new, Rejected::Full(new));
    let subject = &mut script.subject;
    assert_eq!(subject.add_after(new, ms(1)), Err(Rejected::Full(new)));
    assert_eq!(subject.add_rate_limited(new), Err(Rejected::Full(new)));
    let (many, rejected) = subject.add_many(&[new, 1]);
    assert_eq!((many.rejected, many.coalesced), (1, 1));
    assert_eq!(rejected, [Rejected::Full(new)]);
    script.failures(new, 0);
    script.run(1);
    script.add(new, Added::Ready);
}

/// Whatever happens to a key that has room needs no more.
///
/// Source: docs/design.md, One slot per key
/// Needs: Capacity
pub(crate) fn a_key_that_is_held_is_never_refused(script: &mut Script) {
    script.fill();
    script.add(1, Added::Coalesced);
    script.add_after(1, 5, Added::Delayed);
    let ticket = script.get(1);
    script.add(1, Added::Dirty);
    script.fail(1, 1);
    script.finish(ticket, Action::Retry, Finished::Ready);
}

/// Where room is short the oldest mere record of failures goes.
///
/// Source: docs/design.md, One slot per key
/// Needs: Capacity
pub(crate) fn the_oldest_failure_record_makes_room(script: &mut Script) {
    let new = script.fill();
    for key in 1..new {
        let ticket = script.get(key);
        script.fail(key, 1);
        assert_eq!(script.subject.release(ticket), Finished::Idle);
    }
    script.advance(1);
    // The last key of all comes to rest first.
    let mut order: Vec<Key> = (1..new).collect();
    for key in 1..new {
        script.get(key);
    }
    order.reverse();
    for key in &order {
        script.done(*key);
    }
    for (made_room, oldest) in order.into_iter().enumerate() {
        script.failures(oldest, 1);
        let another = new + made_room as Key;
        script.add(another, Added::Ready);
        script.failures(oldest, 0);
    }
    let refused = new + new;
    script.refused(refused, Rejected::Full(refused));
}

/// A queue that grows can limit how many mere records of failures it keeps.
///
/// Source: docs/design.md, One slot per key
/// Needs: 3 keys, Growth
pub(crate) fn failure_records_can_be_limited(script: &mut Script) {
    let mut setup = Configuration::exponential();
    setup.failure_records_max = 2;
    script.renew(&setup);
    for key in 1..=3 {
        let retried = script.subject.add_rate_limited(key);
        assert!(retried.is_ok(), "{retried:?}");
        script.advance(1);
        script.run(key);
    }
    script.failures(1, 0);
    script.failures(2, 1);
    script.failures(3, 1);
    assert_eq!(script.subject.stats().total, 2);
}

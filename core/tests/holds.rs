//! Keys that may not run for a while.

use std::time::Duration;

use requeue_core::binding::{Getter, Next, Wake};
use requeue_core::limiter::{Exponential, NoLimit, RateLimiter};
use requeue_core::priority::{Levels, Plain, Priorities, WithPolicy};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{
    Action, AddOptions, Added, Finished, Instant, Merge, Policy, Queue, Rejected, Session,
};

type Holding<const N: usize, L = NoLimit, K = u8> = Queue<K, WithPolicy, L, Fixed<N>>;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Instant {
    Instant::EPOCH + MS * millis
}

fn holding<L: RateLimiter>(limiter: L, policy: Policy) -> Holding<4, L> {
    Queue::new(limiter).with_policy(policy)
}

fn backoff() -> Exponential {
    Exponential::new(MS, 1000 * MS)
}

#[test]
fn a_ready_key_stays_ready_if_the_clock_goes_back_into_its_hold() {
    let mut queue = holding(NoLimit, Policy::new().cool_down(MS * 3));
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue
        .at(at(0))
        .finish(work.ticket, Action::RequeueAfter(MS * 4));
    // This also makes the first key ready.
    queue.at(at(4)).add(2).unwrap();
    assert_eq!(queue.at(at(1)).add(1), Ok(Added::Coalesced));
    assert_eq!(queue.at(at(1)).add_at(1, at(0)), Ok(Added::Coalesced));
    let scheduled = queue.at(at(1)).add_rate_limited(1).unwrap();
    assert_eq!(scheduled.added, Added::Coalesced);
    assert!(queue.at(at(1)).state(&1).unwrap().ready);
    queue.assert_valid();
}

#[test]
fn a_deadline_at_the_end_of_a_new_hold_keeps_its_place() {
    let mut queue = holding(backoff(), Policy::new().hold_failures());
    queue.at(at(0)).add(1).unwrap();
    queue.at(at(0)).add_after(1, MS).unwrap();
    queue.at(at(0)).add_after(2, MS).unwrap();
    let fails = AddOptions {
        after: Some(Duration::ZERO),
        rate_limited: true,
        merge: Merge::Replace,
        ..AddOptions::new()
    };
    let scheduled = queue.at(at(0)).add_with(1, fails).unwrap();
    assert_eq!(scheduled.added, Added::Delayed);
    assert_eq!(queue.at(at(1)).try_get().unwrap().key, 1);
    queue.assert_valid();
}

/// client-go, and a queue without holds, run such a key as fast as they can.
#[test]
fn a_reconciler_that_adds_its_own_key_and_fails_runs_as_often_as_its_backoff_says() {
    let step = if cfg!(miri) { 500 } else { 1 };
    let runs = |holds: bool| {
        let policy = Policy::new();
        let policy = if holds {
            policy.hold_failures()
        } else {
            policy
        };
        let mut queue = holding(backoff(), policy);
        let (mut now, mut runs) = (Instant::EPOCH, 0);
        queue.at(now).add(1).unwrap();
        while now < at(50) {
            now = now + Duration::from_micros(step);
            let Some(work) = queue.at(now).try_get() else {
                continue;
            };
            queue.at(now).add(1).unwrap();
            let finished = queue.at(now).finish(work.ticket, Action::Retry);
            assert_ne!(finished, Finished::Stale);
            queue.assert_valid();
            runs += 1;
        }
        runs
    };
    // At 0, 1, 3, 7, 15 and 31 ms.
    assert_eq!((runs(true), runs(false)), (6, 50_000 / step));
}

#[test]
fn a_queue_that_grows_forgets_holds_that_are_over() {
    let builder = Queue::builder().limiter(backoff());
    let mut queue = builder.cool_down(10 * MS).build();
    // A record of failures is the oldest, and stays.
    let _ = queue.at(at(0)).add_rate_limited(0).unwrap();
    assert!(queue.at(at(0)).cancel(&0).is_some());
    for key in 1..if cfg!(miri) { 200 } else { 10_000_u32 } {
        let now = at(key);
        queue.at(now).add(key).unwrap();
        let work = queue.at(now).try_get().unwrap();
        queue.at(now).release(work.ticket);
        assert!(queue.stats().total <= 12, "{} keys", queue.stats().total);
    }
    queue.assert_valid();
    assert_eq!(queue.failures(&0), 1);
}

#[test]
fn room_goes_before_holds() {
    let policy = Policy::new().cool_down(Duration::MAX);
    let mut queue: Holding<2> = Queue::new(NoLimit).with_policy(policy);
    for key in [1, 2, 3] {
        assert_eq!(queue.at(at(0)).add(key), Ok(Added::Ready));
        let work = queue.at(at(0)).try_get().unwrap();
        queue.at(at(0)).release(work.ticket);
        queue.assert_valid();
    }
    // The first was discarded, so that it is not held any more; the others are held for ever.
    assert_eq!(queue.at(at(9)).add(1), Ok(Added::Ready));
    assert_eq!(queue.at(at(9)).add(3), Ok(Added::Delayed));
    assert_eq!(queue.next_deadline(), None, "never");
    assert_eq!(queue.at(at(9)).add(2), Err(Rejected::Full(2)));
    assert_eq!(queue.at(at(0)).forget(&3), 0);
    assert_eq!(queue.at(at(9)).add(3), Ok(Added::Ready));
    queue.assert_valid();
}

#[test]
fn keys_that_are_added_together_are_counted_as_delayed() {
    let mut queue = holding(NoLimit, Policy::new().cool_down(10 * MS));
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).release(work.ticket);
    let many = queue.at(at(1)).add_many([1, 1, 2], |_| {});
    assert_eq!((many.ready, many.delayed, many.coalesced), (1, 1, 1));
}

/// The level of an add, or of a run, is that of the key after its hold.
#[test]
fn a_hold_keeps_the_level() {
    let policy = Policy::new().hold_failures();
    let mut queue: Queue<u8, WithPolicy<Levels<3>>, _, Fixed<4>> =
        Queue::new(backoff()).with_policy(policy);
    let level = |level| AddOptions {
        priority: Some(level),
        ..AddOptions::new()
    };
    queue.at(at(0)).add_with(1, level(1)).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).add_with(1, level(2)).unwrap();
    let finished = queue.at(at(0)).finish(work.ticket, Action::Retry);
    assert_eq!(finished, Finished::Delayed(MS));
    queue.assert_valid();
    assert_eq!(queue.at(at(1)).try_get().unwrap().priority, 2);

    // One that is ready fails.
    queue.at(at(1)).add_with(2, level(1)).unwrap();
    let _ = queue.at(at(1)).add_rate_limited(2).unwrap();
    assert_eq!(queue.at(at(1)).len(), 0);
    queue.assert_valid();
    assert_eq!(queue.at(at(2)).try_get().unwrap().priority, 1);
}

/// A key that runs once, at the earlier of its times, does not run before its hold is over.
#[test]
fn an_add_that_expedites_does_not_end_a_hold() {
    let mut queue = holding(backoff(), Policy::new().hold_failures());
    let _ = queue.at(at(0)).add_rate_limited(1).unwrap();
    let now = AddOptions {
        merge: Merge::Once,
        ..AddOptions::new()
    };
    let added = queue.at(at(0)).add_with(1, now).unwrap().added;
    assert_eq!(added, Added::Coalesced);
    assert_eq!(queue.next_deadline(), Some(at(1)));
    assert_eq!(queue.at(at(0)).add_after(2, 9 * MS), Ok(Added::Delayed));
    assert_eq!(queue.at(at(0)).forget(&2), 0);
    let added = queue.at(at(0)).add_with(2, now).unwrap().added;
    assert_eq!(added, Added::Ready);
    assert_eq!(queue.stats().delayed, 1);
}

/// Another call that asks for the deadline of a burst ends it, also beside holds and a rate.
#[test]
fn a_burst_ends_whatever_else_the_policy_says() {
    let mut queue = holding(backoff(), Policy::new().hold_failures().run_rate(1000.0, 1));
    let debounced = queue.at(at(0)).add_debounced(1, 10 * MS, 90 * MS);
    assert_eq!(debounced, Ok(Added::Delayed));
    queue.at(at(5)).add_after(1, 5 * MS).unwrap();
    let debounced = queue.at(at(6)).add_debounced(1, 10 * MS, 90 * MS);
    assert_eq!(debounced, Ok(Added::Coalesced));
    assert_eq!(queue.next_deadline(), Some(at(10)));
}

/// A key that gets the slot of another has neither its hold nor its burst.
#[test]
fn what_is_kept_of_a_key_ends_with_its_slot() {
    fn reuse<P: Priorities, S: Storage>(
        mut queue: Queue<u8, P, NoLimit, S>,
        add_debounced: Debounce<P, S>,
    ) {
        let _ = add_debounced(&mut queue.at(at(0)), 1);
        assert_eq!(queue.at(at(0)).cancel_delay(&1), Some(at(10)));
        queue.assert_valid();
        // It has the slot of the first, and the same deadline: not that of a burst.
        assert_eq!(queue.at(at(0)).add_at(2, at(10)), Ok(Added::Delayed));
        assert_eq!(add_debounced(&mut queue.at(at(5)), 2), Ok(Added::Coalesced));
        assert_eq!(queue.at(at(5)).cancel_delay(&2), Some(at(10)));

        // A held key is forgotten, and one makes room for another.
        for key in [3, 4, 5] {
            assert_eq!(queue.at(at(5)).add(key), Ok(Added::Ready), "{key}");
            let work = queue.at(at(5)).try_get().unwrap();
            queue.at(at(5)).release(work.ticket);
            queue.assert_valid();
            assert_eq!(queue.at(at(5)).add(key), Ok(Added::Delayed), "{key}");
            let _ = queue.at(at(5)).cancel_delay(&key);
            if key == 3 {
                let _ = queue.at(at(5)).forget(&key);
            }
            queue.assert_valid();
        }
    }
    type Debounce<P, S> =
        fn(&mut Session<'_, u8, P, NoLimit, S>, u8) -> Result<Added, Rejected<u8>>;
    let policy = || Policy::new().cool_down(Duration::MAX);
    let mut grows: Queue<u8, Plain, NoLimit, Growable> = Queue::growable(NoLimit);
    grows.at(at(0)).set_policy(policy());
    grows.at(at(0)).limit_keys(1);
    reuse(grows, |session, key| {
        session.add_debounced(key, 10 * MS, 90 * MS)
    });
    let fixed: Holding<1> = Queue::new(NoLimit).with_policy(policy());
    reuse(fixed, |session, key| {
        session.add_debounced(key, 10 * MS, 90 * MS)
    });
}

/// The next key in its slot is not held.
#[test]
fn a_hold_that_is_over_ends_with_its_key() {
    let mut queue: Queue<u8, Plain, NoLimit, Growable> = Queue::growable(NoLimit);
    queue.at(at(5)).set_policy(Policy::new().hold_failures());
    let _ = queue.at(at(5)).add_rate_limited(1).unwrap();
    let work = queue.at(at(5)).try_get().unwrap();
    queue.at(at(5)).release(work.ticket);
    assert_eq!(queue.stats().total, 0);
    queue.assert_valid();
}

/// The rate is another, and what was held stays so.
#[test]
fn a_policy_can_be_exchanged() {
    let mut queue = holding(NoLimit, Policy::new().cool_down(10 * MS).run_rate(1.0, 1));
    let _ = queue.at(at(0)).add_many([1, 2], |_| {});
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).release(work.ticket);
    assert!(queue.at(at(0)).try_get().is_none());
    let mut getter = Getter::new();
    let next = queue.at(at(0)).poll_get(&mut getter);
    assert_eq!(
        next,
        Next::Wait {
            until: Some(at(1000))
        }
    );
    let mut session = queue.at(at(0));
    session.set_policy(Policy::new());
    assert_eq!(session.close(), Wake::ONE);
    queue.assert_valid();
    queue.at(at(0)).leave(&mut getter);
    assert_eq!(queue.at(at(0)).try_get().unwrap().key, 2);
    assert_eq!(queue.at(at(0)).add(1), Ok(Added::Delayed));
    assert_eq!(queue.at(at(0)).state(&1).unwrap().due, Some(at(10)));
    queue.assert_valid();
}

/// What is not used costs nothing.
#[test]
fn a_fixed_queue_has_room_for_a_policy_only_if_its_type_says_so() {
    let plain = size_of::<Queue<u64, Plain, Exponential, Fixed<64>>>();
    let with = size_of::<Holding<64, Exponential, u64>>();
    assert_eq!(with - plain, 64 * 16 + size_of::<Policy>());
    assert!(!holding(NoLimit, Policy::new()).needs_time());
}

#[test]
fn a_rate_of_runs_without_tokens_hands_out_nothing() {
    let mut queue = holding(NoLimit, Policy::new().run_rate(1.0, 0));
    queue.at(at(0)).add(1).unwrap();
    assert!(queue.at(Instant::NEVER).try_get().is_none());
    assert_eq!(queue.next_deadline(), None);
    queue.at(at(0)).shut_down();
    assert_eq!(queue.at(at(0)).take_ready().unwrap().key, 1);
}

/// Over time as many runs begin as there are tokens, although each is due in whole nanoseconds.
#[test]
fn a_rate_of_runs_is_exact_over_time() {
    let mut queue = holding(NoLimit, Policy::new().run_rate(3e8, 1));
    let (mut now, mut runs) = (Instant::EPOCH, 0);
    // At 0.3 runs a nanosecond.
    let end: u64 = if cfg!(miri) { 1_000 } else { 1_000_000 };
    queue.at(now).add(1).unwrap();
    while now < Instant::from_nanos(end) {
        if let Some(work) = queue.at(now).try_get() {
            let _ = queue.at(now).add(1);
            queue.at(now).release(work.ticket);
            runs += 1;
        }
        now = queue.next_deadline().unwrap().max(now);
    }
    let tokens = 3 * end / 10;
    assert!((tokens..=tokens + 1).contains(&runs), "{runs} runs");
}

#[test]
fn a_deadline_that_shutdown_has_stopped_moves_to_the_end_of_a_hold() {
    let mut queue = holding(NoLimit, Policy::new().hold_failures());
    let at = Instant::from_nanos;
    let _ = queue.at(at(0)).add(4);
    let work = queue.at(at(0)).try_get().unwrap();
    let _ = queue.at(at(0)).add_after(4, Duration::from_nanos(4));
    queue.at(at(0)).shut_down();
    queue.at(at(5)).finish(work.ticket, Action::Retry);
    queue.assert_valid();
    assert_eq!(queue.at(at(5)).take_delayed().unwrap().key, 4);
}

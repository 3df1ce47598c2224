//! Keys that may not run for a while.

#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use requeue_core::{
    Action, AddOptions, Added, Finished, Fixed, Instant, ItemExponentialFailure, Levels, Merge,
    NoLimit, Queue, RateLimiter, Rejected, WithDebounce, WithHolds, WithJitter, WithMaxWait,
    WithRunRate,
};

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Instant {
    Instant::EPOCH + MS * millis
}

fn backoff() -> ItemExponentialFailure {
    ItemExponentialFailure::new(MS, 1000 * MS)
}

/// client-go, and a queue without holds, run such a key as fast as they can.
#[test]
fn a_reconciler_that_adds_its_own_key_and_fails_runs_as_often_as_its_backoff_says() {
    let runs = |holds: bool| {
        let limiter = WithHolds::new(backoff());
        let limiter = if holds {
            limiter.hold_failures()
        } else {
            limiter
        };
        let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(limiter);
        let (mut now, mut runs) = (Instant::EPOCH, 0);
        queue.at(now).add(1).unwrap();
        while now < at(50) {
            now = now + Duration::from_micros(1);
            let Some(work) = queue.at(now).try_get() else {
                continue;
            };
            queue.at(now).add(1).unwrap();
            let _ = queue.at(now).finish(work.ticket, Action::Retry).unwrap();
            queue.assert_valid();
            runs += 1;
        }
        runs
    };
    // At 0, 1, 3, 7, 15 and 31 ms.
    assert_eq!((runs(true), runs(false)), (6, 50_000));
}

#[test]
fn a_queue_that_grows_forgets_holds_that_are_over() {
    let limiter = WithHolds::new(backoff()).cool_down(10 * MS);
    let mut queue = Queue::builder().limiter(limiter).build();
    // A record of failures is the oldest, and stays.
    let _ = queue.at(at(0)).add_rate_limited(0).unwrap();
    assert!(queue.at(at(0)).cancel(&0).is_some());
    for key in 1..10_000_u32 {
        let now = at(key);
        queue.at(now).add(key).unwrap();
        let work = queue.at(now).try_get().unwrap();
        queue.at(now).release(work.ticket).unwrap();
        assert!(queue.held_len() <= 12, "{} keys", queue.held_len());
    }
    queue.assert_valid();
    assert_eq!(queue.num_requeues(&0), 1);
}

#[test]
fn room_goes_before_holds() {
    let limiter = WithHolds::new(NoLimit).cool_down(Duration::MAX);
    let mut queue: Queue<u8, Fixed<2>, _> = Queue::new(limiter);
    for key in [1, 2, 3] {
        assert_eq!(queue.at(at(0)).add(key), Ok(Added::Ready));
        let work = queue.at(at(0)).try_get().unwrap();
        queue.at(at(0)).release(work.ticket).unwrap();
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
    let limiter = WithHolds::new(NoLimit).cool_down(10 * MS);
    let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(limiter);
    queue.at(at(0)).add(1).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).release(work.ticket).unwrap();
    let many = queue.at(at(1)).add_many([1, 1, 2], |_| {});
    assert_eq!((many.ready, many.delayed, many.coalesced), (1, 1, 1));
}

/// The level of an add, or of a run, is that of the key after its hold.
#[test]
fn a_hold_keeps_the_level() {
    let limiter = WithHolds::new(backoff()).hold_failures();
    let mut queue: Queue<u8, Fixed<4, u8, Levels<3>>, _> = Queue::new(limiter);
    let level = |level| AddOptions {
        priority: Some(level),
        ..AddOptions::new()
    };
    queue.at(at(0)).add_with(1, level(1)).unwrap();
    let work = queue.at(at(0)).try_get().unwrap();
    queue.at(at(0)).add_with(1, level(2)).unwrap();
    let finished = queue.at(at(0)).finish(work.ticket, Action::Retry);
    assert_eq!(finished, Ok(Finished::Delayed(MS)));
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
    let limiter = WithHolds::new(backoff()).hold_failures();
    let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(limiter);
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
    assert_eq!(queue.delayed_len(), 1);
}

/// What a limiter can do is passed on through any others, and costs nothing where it is not.
#[test]
fn every_limiter_passes_on_what_those_within_can_do() {
    fn abilities<L: RateLimiter>(_: &L) -> (bool, bool) {
        (L::HOLDS, L::PACES)
    }
    let holds = || WithHolds::new(NoLimit).cool_down(MS);
    let paces = || WithRunRate::new(NoLimit, 1.0, 1);
    let rng = requeue_core::NoJitter;
    assert_eq!(abilities(&(backoff(), ())), (false, false));
    assert_eq!(abilities(&WithMaxWait::new(holds(), MS)), (true, false));
    assert_eq!(abilities(&WithJitter::full(paces(), rng)), (false, true));
    assert_eq!(abilities(&(NoLimit, &mut holds())), (true, false));
    assert_eq!(abilities(&(holds(), paces())), (true, true));

    let mut limiter = (
        WithMaxWait::new(WithDebounce::new(WithJitter::equal(holds(), rng)), MS),
        WithRunRate::new(WithHolds::new(NoLimit).cool_down(2 * MS), 1000.0, 1),
    );
    assert!(limiter.needs_time());
    let mut record = Default::default();
    limiter.note_deadline(&mut record, at(5));
    limiter.ended(&mut record, at(5));
    assert_eq!(limiter.held_until(&record), at(7), "the longer hold counts");
    assert!(!limiter.is_blank(&record, at(6)));
    assert!(limiter.is_blank(&record, at(7)));
    limiter.forget(&mut record);
    assert!(limiter.is_blank(&record, at(5)));
    assert_eq!(limiter.next_start(), Instant::EPOCH);
    limiter.started(at(5));
    assert_eq!(limiter.next_start(), at(6));

    let mut idle = WithHolds::new(WithRunRate::new(NoLimit, f64::MAX, 0));
    assert!(!idle.needs_time(), "there is nothing to hold, and no rate");
    idle.started(at(5));
    assert_eq!(idle.next_start(), Instant::EPOCH);
}

#[test]
fn a_burst_ends_whatever_limiters_are_around_it() {
    let ends = |limiter| {
        let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(limiter);
        let debounced = queue.at(at(0)).add_debounced(1, 10 * MS, 90 * MS);
        assert_eq!(debounced, Ok(Added::Delayed));
        queue.at(at(5)).add_after(1, 5 * MS).unwrap();
        let debounced = queue.at(at(6)).add_debounced(1, 10 * MS, 90 * MS);
        assert_eq!(debounced, Ok(Added::Coalesced));
        assert_eq!(queue.next_deadline(), Some(at(10)));
    };
    let rng = requeue_core::NoJitter;
    let debounced = WithHolds::new(WithDebounce::new((backoff(), NoLimit)));
    ends(WithRunRate::new(
        WithMaxWait::new(WithJitter::equal(debounced, rng), MS),
        1000.0,
        1,
    ));
}

#[test]
fn a_rate_of_runs_without_tokens_hands_out_nothing() {
    let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(WithRunRate::new(NoLimit, 1.0, 0));
    queue.at(at(0)).add(1).unwrap();
    assert!(queue.at(Instant::NEVER).try_get().is_none());
    assert_eq!(queue.next_deadline(), None);
    queue.at(at(0)).shut_down();
    assert_eq!(queue.at(at(0)).take_ready().unwrap().key, 1);
}

/// Over time as many runs begin as there are tokens, although each is due in whole nanoseconds.
#[test]
fn a_rate_of_runs_is_exact_over_time() {
    let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(WithRunRate::new(NoLimit, 3e8, 1));
    let (mut now, mut runs) = (Instant::EPOCH, 0);
    queue.at(now).add(1).unwrap();
    while now < at(1) {
        if let Some(work) = queue.at(now).try_get() {
            let _ = queue.at(now).add(1);
            queue.at(now).release(work.ticket).unwrap();
            runs += 1;
        }
        now = queue.next_deadline().unwrap().max(now);
    }
    assert!((300_000..=300_001).contains(&runs), "{runs} runs");
}

#[test]
fn a_deadline_that_shutdown_has_stopped_moves_to_the_end_of_a_hold() {
    let limiter = WithHolds::new(NoLimit).hold_failures();
    let mut queue: Queue<u8, Fixed<4>, _> = Queue::new(limiter);
    let at = Instant::from_nanos;
    let _ = queue.at(at(0)).add(4);
    let work = queue.at(at(0)).try_get().unwrap();
    let _ = queue.at(at(0)).add_after(4, Duration::from_nanos(4));
    queue.at(at(0)).shut_down();
    let _ = queue.at(at(5)).finish(work.ticket, Action::Retry);
    queue.assert_valid();
    assert_eq!(queue.at(at(5)).take_delayed().unwrap().key, 4);
}

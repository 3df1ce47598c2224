//! Growable queues: a limit on their keys, chosen at run time, their end in the middle of growth, and
//! what they keep after a peak.

use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::*;
use requeue_core::limiter::{Exponential, NoLimit, RateLimiter, default_item_based};
use requeue_core::priority::{Levels, Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Queue, Rejected};

type Failing = Queue<u16, Plain, Exponential, Growable>;

const NOW: Instant = Instant::EPOCH;
const WAITS: Next<()> = Next::Wait { until: None };

/// A queue whose failed keys run again at once, with the first keys ready.
fn with_ready(keys: u16) -> Failing {
    let mut queue = Queue::growable(Exponential::new(Duration::ZERO, Duration::ZERO));
    let _ = queue.at(NOW).add_many(1..=keys, |_| {});
    queue
}

/// The first key runs and ends like this.
fn run(queue: &mut Failing, action: Action) -> u16 {
    let work = queue.at(NOW).try_get().unwrap();
    let finished = queue.at(NOW).finish(work.ticket, action);
    assert_ne!(finished, Finished::Stale);
    queue.assert_valid();
    work.key
}

#[track_caller]
fn is_full<P: Priorities, L: RateLimiter, S: Storage>(queue: &mut Queue<u16, P, L, S>) {
    let held = queue.stats().total;
    assert_eq!(queue.at(NOW).add(999), Err(Rejected::Full(999)));
    assert_eq!(queue.stats().total, held);
    queue.assert_valid();
}

#[test]
fn a_lowered_limit_keeps_every_key_and_refuses_new_ones_until_there_is_room() {
    for lowered in [0, 1, 2, 4] {
        let mut queue = with_ready(5);
        queue.at(NOW).limit_keys(lowered);
        assert_eq!(
            (queue.stats().max_keys, queue.stats().total),
            (Some(lowered), 5)
        );
        while queue.stats().total > lowered {
            is_full(&mut queue);
            assert_eq!(queue.at(NOW).add(5), Ok(Added::Coalesced), "it is held");
            run(&mut queue, Action::Success);
        }
        is_full(&mut queue);
        if lowered > 0 {
            run(&mut queue, Action::Success);
            assert_eq!(queue.at(NOW).add(999), Ok(Added::Ready));
            is_full_for(&mut queue, 998);
        }
    }
}

#[track_caller]
fn is_full_for(queue: &mut Failing, key: u16) {
    assert_eq!(queue.at(NOW).add(key), Err(Rejected::Full(key)));
    queue.assert_valid();
}

/// The slots of keys that are gone are no room if there are more of them than keys fit.
#[test]
fn a_limit_counts_keys_and_not_slots() {
    let mut queue = with_ready(8);
    for _ in 0..8 {
        run(&mut queue, Action::Success);
    }
    for limit in [3, 0, 5, 10, usize::MAX] {
        queue.at(NOW).limit_keys(limit);
        let added = queue.at(NOW).add_many(1..=100, |_| {});
        assert_eq!(queue.stats().total, limit.min(100));
        assert_eq!(added.rejected, 100 - limit.min(100));
        queue.assert_valid();
        for _ in 0..queue.stats().total {
            run(&mut queue, Action::Success);
        }
    }
    assert_eq!(queue.stats().max_keys, None);
}

#[test]
fn a_lowered_limit_discards_the_oldest_failure_records_and_keeps_no_new_ones() {
    let mut queue = with_ready(4);
    for action in [Action::Retry, Action::Release] {
        for _ in 0..4 {
            run(&mut queue, action);
        }
    }
    let _ = queue.at(NOW).add_many(5..=6, |_| {});
    let on_record = |queue: &Failing| (1..=6).filter(|key| queue.failures(key) == 1).count();
    queue.at(NOW).limit_keys(3);
    assert_eq!((queue.stats().total, on_record(&queue)), (3, 1));
    assert_eq!(queue.failures(&4), 1, "the youngest");
    queue.at(NOW).limit_keys(1);
    assert_eq!((queue.stats().total, on_record(&queue)), (2, 0));
    is_full(&mut queue);

    for key in [5, 6, 5] {
        assert_eq!(run(&mut queue, Action::Retry), key);
    }
    assert_eq!(run(&mut queue, Action::Release), 6);
    assert_eq!(
        queue.failures(&6),
        0,
        "it would take room that is not there"
    );
    assert_eq!(run(&mut queue, Action::Release), 5);
    assert_eq!(queue.failures(&5), 2, "there is room for it");
    assert_eq!(queue.at(NOW).add(999), Ok(Added::Ready), "it makes way");
    assert_eq!(queue.failures(&5), 0);
}

#[test]
fn a_queue_that_holds_more_keys_than_fit_displaces_none() {
    let mut queue: Queue<u16, Levels<2>, NoLimit, Growable> = Queue::builder()
        .limiter(NoLimit)
        .levels()
        .max_keys(3)
        .build();
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    let _ = queue.at(NOW).add_many(1..=3, |_| {});
    queue.at(NOW).limit_keys(2);
    let refused = queue.at(NOW).add_displacing(7, urgent);
    assert_eq!((refused, queue.stats().total), (Err(Rejected::Full(7)), 3));
    queue.assert_valid();

    queue.at(NOW).limit_keys(3);
    let (_, displaced) = queue.at(NOW).add_displacing(7, urgent).unwrap();
    assert_eq!((displaced.unwrap().key, queue.stats().total), (3, 3));
}

#[test]
fn a_raised_limit_wakes_a_call_that_waits_for_room_and_that_one_the_next() {
    let mut queue: Queue<u16, Plain, NoLimit, Growable> = Queue::growable(NoLimit);
    queue.at(NOW).limit_keys(1);
    let _ = queue.at(NOW).add(1);
    let mut calls = [2, 3, 4].map(|key| (Adding::new(key, AddOptions::new()), Getter::new()));
    let mut look = |queue: &mut Queue<_, _, _, _, _>, call: usize| {
        let (adding, getter) = &mut calls[call];
        let mut session = queue.at(NOW);
        let looked = (session.poll_add(adding, getter), session.close());
        queue.assert_valid();
        looked
    };
    for call in 0..3 {
        assert_eq!(look(&mut queue, call), (WAITS, Wake::NONE));
    }
    queue.at(NOW).limit_keys(1);
    assert_eq!(queue.at(NOW).close(), Wake::NONE);
    queue.at(NOW).limit_keys(0);
    assert_eq!(queue.at(NOW).close(), Wake::NONE);
    queue.at(NOW).limit_keys(3);
    assert_eq!(queue.at(NOW).close(), Wake::ROOM);
    assert_eq!(look(&mut queue, 0), (Next::Work(()), Wake::ROOM));
    assert_eq!(look(&mut queue, 1), (Next::Work(()), Wake::NONE));
    assert_eq!(look(&mut queue, 2), (WAITS, Wake::NONE));
}

/// So many keys that the index has begun to split its only table, and is half-way: SLOTS and STEP in
/// core/src/store/growable/tables.rs say when.
const SPLIT: u32 = if cfg!(miri) { 42 } else { 21_500 };

#[test]
fn a_queue_that_ends_while_its_index_is_split_hands_every_key_back_once() {
    let mut queue = Queue::growable(Exponential::new(Duration::from_secs(1), Duration::MAX));
    let add = |queue: &mut Queue<u32, Plain, Exponential, Growable>, key| match key % 3 {
        0 => queue.at(NOW).add_after(key, Duration::from_secs(60)),
        _ => queue.at(NOW).add(key),
    };
    for key in 0..SPLIT {
        assert_ne!(add(&mut queue, key), Ok(Added::Coalesced), "{key} is new");
    }
    assert!((0..SPLIT).all(|key| queue.contains(&key)));

    // Some keys leave and return, and some are active when the queue is shut down.
    for key in (0..SPLIT).step_by(7) {
        assert!(queue.at(NOW).cancel(&key).is_some(), "{key}");
        assert!(!queue.contains(&key));
    }
    for key in (0..SPLIT).step_by(14) {
        assert_ne!(add(&mut queue, key), Ok(Added::Coalesced), "{key} had left");
    }
    let active: Vec<_> = (0..9).map(|_| queue.at(NOW).try_get().unwrap()).collect();
    queue.at(NOW).shut_down();
    let mut times = vec![0; SPLIT as usize];
    for work in active {
        times[work.key as usize] += 1;
        assert_eq!(queue.at(NOW).release(work.ticket), Finished::Idle);
    }
    while let Some(left) = queue.at(NOW).take_ready() {
        times[left.key as usize] += 1;
    }
    while let Some(left) = queue.at(NOW).take_delayed() {
        times[left.key as usize] += 1;
    }
    for (key, times) in (0..SPLIT).zip(times) {
        assert_eq!(times, i32::from(key % 7 != 0 || key % 14 == 0), "{key}");
        assert!(!queue.contains(&key));
    }
    assert_eq!(queue.stats().total, 0);
}

/// Of its peak a growable queue keeps its own memory, and nothing that a key owns.
#[test]
fn a_key_that_has_left_owns_nothing() {
    let mut queue = Queue::growable(default_item_based());
    let keys: Vec<Rc<u16>> = (0..if cfg!(miri) { 50 } else { 1000 })
        .map(Rc::new)
        .collect();
    for key in &keys {
        queue.at(Instant::EPOCH).add(Rc::clone(key)).unwrap();
    }
    while let Some(work) = queue.at(Instant::EPOCH).try_get() {
        queue
            .at(Instant::EPOCH)
            .finish(work.ticket, Action::Success);
    }
    assert_eq!(queue.stats().total, 0);
    assert!(keys.iter().all(|key| Rc::strong_count(key) == 1));
    queue.assert_valid();
}

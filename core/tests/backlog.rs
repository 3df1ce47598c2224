//! More keys are due than one operation makes ready: what is bounded, and what stays exact.

use std::time::Duration;

use requeue_core::binding::{Drained, Sweep};
use requeue_core::binding::{Getter, Next, Wake, Work};
use requeue_core::limiter::{Exponential, NoLimit, default_item_based};
use requeue_core::priority::{Levels, Plain};
use requeue_core::storage::Fixed;
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Leftover, Queue, Rejected};

type Keys = Queue<u16, Plain, Exponential, Fixed<64>>;

const DUE: Instant = Instant::from_nanos(60);

/// A queue in which `delayed` are due at [`DUE`], and of which an operation makes one ready.
fn queue(delayed: impl IntoIterator<Item = u16>) -> Keys {
    let mut queue: Keys = Queue::new(default_item_based());
    queue.limit_due_keys(1);
    for key in delayed {
        queue.at(Instant::EPOCH).add_at(key, DUE).unwrap();
    }
    queue
}

/// A queue in which `key` is active and due at [`DUE`], after 1 and 2.
fn active(key: u16) -> (Keys, Work<u16>) {
    let mut queue = queue([1, 2]);
    queue.at(Instant::EPOCH).add(key).unwrap();
    let work = queue.at(Instant::EPOCH).try_get().unwrap();
    queue.at(Instant::EPOCH).add_at(key, DUE).unwrap();
    (queue, work)
}

/// The keys that are handed out from now on, in their order.
fn rest(queue: &mut Keys) -> Vec<u16> {
    std::iter::from_fn(|| {
        let work = queue.at(DUE).try_get()?;
        queue.assert_valid();
        let key = work.key;
        let finished = queue.at(DUE).finish(work.ticket, Action::Success);
        assert_ne!(finished, Finished::Stale);
        Some(key)
    })
    .collect()
}

#[test]
fn one_operation_makes_no_more_keys_ready_than_allowed() {
    for max in [0, 1, 2, 16] {
        let mut queue = queue(0..40);
        queue.limit_due_keys(max);
        let allowed = usize::from(max.max(1));
        let _ = queue.at(DUE).add(50);
        assert_eq!(queue.stats().delayed, 40 - allowed);
        let _ = queue.at(DUE).try_get();
        assert_eq!(queue.stats().delayed, 40 - 2 * allowed);
        let _ = queue.at(DUE).forget(&50);
        assert_eq!(
            queue.stats().delayed,
            40 - 2 * allowed,
            "it depends on no deadline"
        );
    }
}

#[test]
fn a_fixed_queue_allows_two() {
    let mut queue: Keys = Queue::new(default_item_based());
    for key in 0..9 {
        queue.at(Instant::EPOCH).add_at(key, DUE).unwrap();
    }
    assert!(queue.at(DUE).advance());
    assert_eq!(queue.stats().delayed, 7);
}

#[test]
fn an_added_key_passes_the_keys_that_are_left_and_no_others() {
    let mut queue = queue([1, 2, 3, 4]);
    for key in [10, 11] {
        assert_eq!(queue.at(DUE).add(key), Ok(Added::Ready));
    }
    assert_eq!(rest(&mut queue), [1, 10, 2, 11, 3, 4]);
}

#[test]
fn a_key_of_a_higher_level_waits_for_its_place_in_the_backlog() {
    let mut queue: Queue<u16, Levels<2>, NoLimit, Fixed<64>> = Queue::new(NoLimit);
    queue.limit_due_keys(1);
    for key in [1, 2, 3] {
        queue.at(Instant::EPOCH).add_at(key, DUE).unwrap();
    }
    let urgent = AddOptions {
        priority: Some(1),
        after: Some(DUE - Instant::EPOCH),
        ..AddOptions::new()
    };
    queue.at(Instant::EPOCH).add_with(9, urgent).unwrap();
    let order: Vec<_> = std::iter::from_fn(|| queue.at(DUE).try_get())
        .map(|work| work.key)
        .collect();
    assert_eq!(order, [1, 2, 3, 9]);
}

#[test]
fn every_due_key_is_handed_out_in_the_order_of_the_deadlines() {
    let mut queue: Keys = Queue::new(default_item_based());
    for key in 0..60 {
        let due = Instant::from_nanos(u64::from(key * 7 % 60));
        queue
            .at(Instant::EPOCH)
            .add_at(key + 1, due + Duration::from_nanos(1))
            .unwrap();
    }
    let mut expected: Vec<u16> = (0..60).collect();
    expected.sort_by_key(|key| key * 7 % 60);
    let expected: Vec<_> = expected.into_iter().map(|key| key + 1).collect();
    assert_eq!(rest(&mut queue), expected);
}

#[test]
fn an_add_of_a_due_key_is_coalesced() {
    let mut queue = queue([1, 2, 3]);
    assert_eq!(queue.at(DUE).add(3), Ok(Added::Coalesced));
    assert_eq!(rest(&mut queue), [3, 1, 2], "and it is ready first");
}

#[test]
fn the_key_of_an_operation_is_among_those_that_it_makes_ready() {
    for (max, order) in [(1, [4, 1, 2, 3]), (2, [1, 4, 2, 3]), (3, [1, 2, 4, 3])] {
        let mut queue = queue([1, 2, 3, 4]);
        queue.limit_due_keys(max);
        assert_eq!(queue.at(DUE).add(4), Ok(Added::Coalesced));
        assert_eq!(queue.stats().delayed, 4 - usize::from(max));
        assert_eq!(rest(&mut queue), order);
    }
}

/// What was due at shutdown is still handed out, so a runtime has to go on reading its clock.
#[test]
fn a_queue_with_delayed_keys_needs_the_time_after_shutdown() {
    let mut queue = queue([1, 2]);
    queue.at(DUE).shut_down();
    assert!(queue.needs_time());
    assert_eq!(rest(&mut queue), [1, 2]);
    assert!(!queue.needs_time());
}

#[test]
fn a_due_key_can_be_delayed_again() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    assert_eq!(queue.at(DUE).add_at(3, later), Ok(Added::Delayed));
    assert_eq!(rest(&mut queue), [3, 1, 2]);
    assert_eq!(queue.next_deadline(), Some(later));
}

#[test]
fn a_ready_key_that_is_also_due_runs_once() {
    let mut queue = queue([1, 2]);
    queue.at(Instant::EPOCH).add(3).unwrap();
    queue.at(Instant::EPOCH).add_at(3, DUE).unwrap();
    assert_eq!(rest(&mut queue), [3, 1, 2]);
    assert!(!queue.contains(&3));
}

#[test]
fn a_run_that_ends_when_its_key_is_due_is_followed_by_another() {
    let ends: [fn(&mut Keys, Work<u16>); 3] = [
        |queue, work| assert_ne!(queue.at(DUE).release(work.ticket), Finished::Stale),
        |queue, work| assert_eq!(queue.at(DUE).release_key(&work.key), Finished::Ready),
        |queue, work| {
            let finished = queue.at(DUE).finish(work.ticket, Action::Success);
            assert_eq!(finished, Finished::Ready);
        },
    ];
    for end in ends {
        let (mut queue, work) = active(3);
        end(&mut queue, work);
        assert_eq!(queue.stats().delayed, 2, "1 and 2 are left");
        assert_eq!(rest(&mut queue), [3, 1, 2]);
    }
}

#[test]
fn a_stale_ticket_makes_no_key_ready_but_those_that_come_first() {
    let mut queue = queue([]);
    let _ = queue.at(Instant::EPOCH).add(3);
    let stale = queue.at(Instant::EPOCH).try_get().unwrap().ticket;
    queue.at(Instant::EPOCH).release_key(&3);
    // The last to be due is in the slot that the ticket names.
    for (key, due) in [(3, DUE), (1, Instant::EPOCH), (2, Instant::EPOCH)] {
        let due = due + Duration::from_nanos(1);
        queue.at(Instant::EPOCH).add_at(key, due).unwrap();
    }
    let later = DUE + Duration::from_nanos(1);
    assert_eq!(queue.at(later).release(stale), Finished::Stale);
    let first = queue.at(later).try_get().unwrap();
    let second = queue.at(later).try_get().unwrap();
    assert_eq!((first.key, second.key), (1, 2));
}

/// A queue in which keys 0 to 8 are active and due at [`DUE`], and then key 9 is due.
fn active_before_nine() -> (Keys, Vec<Work<u16>>) {
    let mut queue = queue([]);
    let mut runs = Vec::new();
    for key in 0..9 {
        queue.at(Instant::EPOCH).add(key).unwrap();
        runs.push(queue.at(Instant::EPOCH).try_get().unwrap());
        queue.at(Instant::EPOCH).add_at(key, DUE).unwrap();
    }
    queue.at(Instant::EPOCH).add_at(9, DUE).unwrap();
    (queue, runs)
}

#[test]
fn a_get_passes_a_bounded_number_of_active_keys() {
    let (mut queue, runs) = active_before_nine();
    for dirty in 1..=9 {
        assert!(queue.at(DUE).try_get().is_none());
        assert_eq!(queue.stats().dirty, dirty);
    }
    let work = queue.at(DUE).try_get().unwrap();
    assert_eq!(work.key, 9);
    assert!(queue.at(DUE).try_get().is_none(), "the others are active");
    assert_eq!(queue.next_deadline(), None);
    for work in runs {
        let finished = queue.at(DUE).finish(work.ticket, Action::Success);
        assert_eq!(finished, Finished::Ready);
    }
}

/// It must neither sleep until something happens nor find the queue closed.
#[test]
fn a_call_that_has_only_passed_active_keys_looks_again_at_once() {
    let stops: [fn(&mut Keys); 3] = [
        |_| (),
        |queue| queue.at(DUE).shut_down(),
        |queue| {
            let _drain = queue.at(DUE).begin_drain();
        },
    ];
    for stop in stops {
        let (mut queue, _runs) = active_before_nine();
        stop(&mut queue);
        let (mut looks, mut getter) = (0, Getter::new());
        let work = loop {
            looks += 1;
            let mut session = queue.at(DUE);
            let next = session.poll_get(&mut getter);
            let _ = session.close();
            match next {
                Next::Work(work) => break work,
                Next::Wait { until } => assert!(until.is_some_and(|at| at <= DUE), "{until:?}"),
                Next::Closed => panic!("key 9 was due before the queue was shut down"),
            }
            queue.assert_valid();
        };
        assert_eq!(work.key, 9);
        assert!(looks > 8, "{looks}");
    }
}

#[test]
fn a_look_that_takes_nothing_also_continues() {
    let (mut queue, _runs) = active_before_nine();
    let past = Next::Wait { until: Some(DUE) };
    while queue.at(DUE).next_look() == past {}
    assert_eq!(queue.at(DUE).next_look(), Next::Work(()));
}

#[test]
fn leftovers_behind_active_keys_are_found() {
    let (mut queue, _runs) = active_before_nine();
    queue.at(DUE).shut_down();
    assert!(!queue.at(DUE).is_empty());
    let (mut queue, _runs) = active_before_nine();
    queue.at(DUE).shut_down();
    assert_eq!(queue.at(DUE).take_ready().map(|left| left.key), Some(9));
}

#[test]
fn a_batch_takes_due_keys_as_long_as_it_has_room() {
    let mut queue = queue(0..9);
    let mut taken = Vec::new();
    let next = queue
        .at(DUE)
        .poll_get_many(7, &mut Getter::new(), |work| taken.push(work.key));
    assert_eq!(next, Next::Work(7));
    assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn counts_and_states_are_those_of_all_due_keys() {
    let mut counted = queue(0..9);
    assert!(!counted.at(DUE).is_empty());
    assert_eq!(counted.at(DUE).len(), 9);
    assert_eq!(counted.stats().delayed, 0);

    let mut asked = queue(0..9);
    let state = asked.at(DUE).state(&8).unwrap();
    assert_eq!((state.ready, state.due), (true, None));
}

#[test]
fn each_of_many_that_sleep_gets_one_of_many_due_keys() {
    let mut queue = queue(0..5);
    let mut getters: Vec<_> = (0..5).map(|_| Getter::new()).collect();
    for getter in &mut getters {
        assert!(matches!(
            queue.at(Instant::EPOCH).poll_get(getter),
            Next::Wait { .. }
        ));
    }
    let mut handed = Vec::new();
    for getter in &mut getters {
        let looked = queue.at(DUE).poll_get(getter);
        let Next::Work(work) = looked else {
            panic!("{} keys are due", queue.stats().delayed);
        };
        handed.push(work.key);
        let last = handed.len() == 5;
        assert_eq!(
            queue.at(DUE).close(),
            if last { Wake::NONE } else { Wake::ONE }
        );
        queue.assert_valid();
    }
    assert_eq!(handed, [0, 1, 2, 3, 4]);
}

#[test]
fn a_drain_hands_out_what_was_due_when_it_began() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    queue.at(Instant::EPOCH).add_at(4, later).unwrap();
    let mut session = queue.at(DUE);
    let drain = session.begin_drain();
    assert_eq!(session.close(), Wake::ALL);
    assert_eq!(queue.drain_status(&drain), Drained::Pending);
    assert_eq!(queue.at(DUE).add(9), Err(Rejected::Closed(9)));

    for key in [1, 2, 3] {
        assert_eq!(queue.drain_status(&drain), Drained::Pending);
        let work = queue.at(later).try_get().unwrap();
        assert_eq!(work.key, key);
        queue.at(later).release(work.ticket);
        let wake = queue.at(later).close();
        assert_eq!(wake, if key == 3 { Wake::ALL } else { Wake::NONE });
    }
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
    assert_eq!(queue.at(later).poll_get(&mut Getter::new()), Next::Closed);
    assert_eq!(queue.at(DUE).take_delayed().map(|left| left.key), Some(4));
}

#[test]
fn a_retry_after_shutdown_is_left_over_even_without_a_delay() {
    let mut queue = queue([1, 2]);
    let drain = queue.at(DUE).begin_drain();
    let work = queue.at(DUE).try_get().unwrap();
    let finished = queue
        .at(DUE)
        .finish(work.ticket, Action::Snooze(Duration::ZERO));
    assert_eq!(finished, Finished::Leftover(Duration::ZERO));
    assert_eq!(rest(&mut queue), [2]);
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
    assert_eq!(queue.at(DUE).take_delayed().map(|left| left.key), Some(1));
}

#[test]
fn leftovers_are_ready_ones_first_and_each_key_once() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    queue.at(Instant::EPOCH).add_at(4, later).unwrap();
    queue.at(DUE).shut_down();
    let ready = std::iter::from_fn(|| queue.at(DUE).take_ready());
    let ready: Vec<_> = ready
        .map(|left: Leftover<u16>| (left.key, left.left))
        .collect();
    assert_eq!(ready, [1, 2, 3].map(|key| (key, Duration::ZERO)));
    let left = queue.at(DUE).take_delayed().unwrap();
    assert_eq!((left.key, left.left), (4, Duration::from_nanos(5)));
    assert_eq!(
        (queue.at(DUE).take_delayed(), queue.stats().total),
        (None, 0)
    );
}

#[test]
fn many_keys_are_cancelled_and_expedited_in_bounded_steps() {
    const KEYS: u16 = 200;
    let mut queue: Queue<u16, Plain, NoLimit, Fixed<200>> = Queue::new(NoLimit);
    queue.limit_due_keys(4);
    for key in 0..KEYS {
        let _ = queue.at(Instant::EPOCH).add_at(key, DUE);
    }
    let mut sweep = Sweep::new();
    for ended in (4..=KEYS).step_by(4) {
        let more = queue.at(Instant::EPOCH).expedite_some(&mut sweep);
        assert_eq!(queue.at(Instant::EPOCH).len(), usize::from(ended));
        assert_eq!(more, ended < KEYS);
    }
    let mut sweep = Sweep::new();
    for cancelled in (4..=KEYS).step_by(4) {
        let _ = queue.at(Instant::EPOCH).retain_some(&mut sweep, |_| false);
        assert_eq!(sweep.cancelled(), usize::from(cancelled));
    }
    // A key that is added meanwhile has a slot that the sweep has passed.
    let _ = queue.at(Instant::EPOCH).add(7);
    assert!(!queue.at(Instant::EPOCH).retain_some(&mut sweep, |_| false));
    assert_eq!(queue.at(Instant::EPOCH).len(), 1);

    // Keys that stay are asked about in bounded steps, too.
    let _ = queue.at(Instant::EPOCH).add_many(0..KEYS, |_| {});
    let mut sweep = Sweep::new();
    let (mut steps, mut asked) = (1, 0);
    let mut keep = |_: &u16| {
        asked += 1;
        true
    };
    while queue.at(Instant::EPOCH).retain_some(&mut sweep, &mut keep) {
        steps += 1;
    }
    assert_eq!((asked, sweep.cancelled()), (KEYS, 0));
    assert!(steps >= KEYS / 32, "{steps} steps");
}

//! More keys are due than one operation makes ready: what is bounded, and what stays exact.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use requeue_core::binding::{Getter, Next, Wake, Work};
use requeue_core::{
    Action, Added, Drained, Finished, Fixed, Instant, ItemExponentialFailure, Leftover, NoLimit,
    Queue, Rejected, Sweep, default_item_based,
};

type Keys = Queue<u16, Fixed<64>, ItemExponentialFailure>;

const DUE: Instant = Instant::from_nanos(60);

/// A queue in which `delayed` are due at [`DUE`], and of which an operation makes one ready.
fn queue(delayed: impl IntoIterator<Item = u16>) -> Keys {
    let mut queue: Keys = Queue::new(default_item_based());
    queue.limit_due_keys(1);
    for key in delayed {
        queue.add_at(key, DUE, Instant::EPOCH).value.unwrap();
    }
    queue
}

/// A queue in which `key` is active and due at [`DUE`], after 1 and 2.
fn active(key: u16) -> (Keys, Work<u16>) {
    let mut queue = queue([1, 2]);
    queue.add(key, Instant::EPOCH).value.unwrap();
    let work = queue.try_get(Instant::EPOCH).value.unwrap();
    queue.add_at(key, DUE, Instant::EPOCH).value.unwrap();
    (queue, work)
}

/// The keys that are handed out from now on, in their order.
fn rest(queue: &mut Keys) -> Vec<u16> {
    std::iter::from_fn(|| {
        let work = queue.try_get(DUE).value?;
        queue.assert_valid();
        let key = work.key;
        queue.finish(work.ticket, Action::Success, DUE).value.ok()?;
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
        let _ = queue.add(50, DUE);
        assert_eq!(queue.delayed_len(), 40 - allowed);
        let _ = queue.try_get(DUE);
        assert_eq!(queue.delayed_len(), 40 - 2 * allowed);
        let _ = queue.forget(&50);
        assert_eq!(
            queue.delayed_len(),
            40 - 2 * allowed,
            "it depends on no deadline"
        );
    }
}

#[test]
fn a_fixed_queue_allows_two() {
    let mut queue: Keys = Queue::new(default_item_based());
    for key in 0..9 {
        queue.add_at(key, DUE, Instant::EPOCH).value.unwrap();
    }
    assert!(queue.advance(DUE).value);
    assert_eq!(queue.delayed_len(), 7);
}

#[test]
fn an_added_key_passes_the_keys_that_are_left_and_no_others() {
    let mut queue = queue([1, 2, 3, 4]);
    for key in [10, 11] {
        assert_eq!(queue.add(key, DUE).value, Ok(Added::Ready));
    }
    assert_eq!(rest(&mut queue), [1, 10, 2, 11, 3, 4]);
}

#[test]
fn every_due_key_is_handed_out_in_the_order_of_the_deadlines() {
    let mut queue: Keys = Queue::new(default_item_based());
    for key in 0..60 {
        let due = Instant::from_nanos(u64::from(key * 7 % 60));
        queue
            .add_at(key + 1, due + Duration::from_nanos(1), Instant::EPOCH)
            .value
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
    assert_eq!(queue.add(3, DUE).value, Ok(Added::Coalesced));
    assert_eq!(rest(&mut queue), [3, 1, 2], "and it is ready first");
}

#[test]
fn the_key_of_an_operation_is_among_those_that_it_makes_ready() {
    for (max, order) in [(1, [4, 1, 2, 3]), (2, [1, 4, 2, 3]), (3, [1, 2, 4, 3])] {
        let mut queue = queue([1, 2, 3, 4]);
        queue.limit_due_keys(max);
        assert_eq!(queue.add(4, DUE).value, Ok(Added::Coalesced));
        assert_eq!(queue.delayed_len(), 4 - usize::from(max));
        assert_eq!(rest(&mut queue), order);
    }
}

/// What was due at shutdown is still handed out, so a runtime has to go on reading its clock.
#[test]
fn a_queue_with_delayed_keys_needs_the_time_after_shutdown() {
    let mut queue = queue([1, 2]);
    let _ = queue.shut_down(DUE);
    assert!(queue.needs_time());
    assert_eq!(rest(&mut queue), [1, 2]);
    assert!(!queue.needs_time());
}

#[test]
fn a_due_key_can_be_delayed_again() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    assert_eq!(queue.add_at(3, later, DUE).value, Ok(Added::Delayed));
    assert_eq!(rest(&mut queue), [3, 1, 2]);
    assert_eq!(queue.next_deadline(), Some(later));
}

#[test]
fn a_ready_key_that_is_also_due_runs_once() {
    let mut queue = queue([1, 2]);
    queue.add(3, Instant::EPOCH).value.unwrap();
    queue.add_at(3, DUE, Instant::EPOCH).value.unwrap();
    assert_eq!(rest(&mut queue), [3, 1, 2]);
    assert!(!queue.contains(&3));
}

#[test]
fn a_run_that_ends_when_its_key_is_due_is_followed_by_another() {
    let ends: [fn(&mut Keys, Work<u16>); 3] = [
        |queue, work| assert_eq!(queue.release(work.ticket, DUE).value, Ok(())),
        |queue, work| assert_eq!(queue.release_key(&work.key, DUE).value, Ok(())),
        |queue, work| {
            let finished = queue.finish(work.ticket, Action::Success, DUE).value;
            assert_eq!(finished, Ok(Finished::Ready));
        },
    ];
    for end in ends {
        let (mut queue, work) = active(3);
        end(&mut queue, work);
        assert_eq!(queue.delayed_len(), 2, "1 and 2 are left");
        assert_eq!(rest(&mut queue), [3, 1, 2]);
    }
}

#[test]
fn a_stale_ticket_makes_no_key_ready_but_those_that_come_first() {
    let mut queue = queue([]);
    let _ = queue.add(3, Instant::EPOCH);
    let stale = queue.try_get(Instant::EPOCH).value.unwrap().ticket;
    queue.release_key(&3, Instant::EPOCH).value.unwrap();
    // The last to be due is in the slot that the ticket names.
    for (key, due) in [(3, DUE), (1, Instant::EPOCH), (2, Instant::EPOCH)] {
        let due = due + Duration::from_nanos(1);
        queue.add_at(key, due, Instant::EPOCH).value.unwrap();
    }
    let later = DUE + Duration::from_nanos(1);
    assert!(queue.release(stale, later).value.is_err());
    let first = queue.try_get(later).value.unwrap();
    let second = queue.try_get(later).value.unwrap();
    assert_eq!((first.key, second.key), (1, 2));
}

#[test]
fn a_get_goes_on_until_a_key_is_ready() {
    let mut queue = queue([]);
    let mut runs = Vec::new();
    for key in 0..9 {
        queue.add(key, Instant::EPOCH).value.unwrap();
        runs.push(queue.try_get(Instant::EPOCH).value.unwrap());
        queue.add_at(key, DUE, Instant::EPOCH).value.unwrap();
    }
    queue.add_at(9, DUE, Instant::EPOCH).value.unwrap();
    let mut getter = Getter::new();
    let next = queue.poll_get(DUE, &mut getter).value;
    assert!(matches!(next, Next::Work(work) if work.key == 9));
    assert_eq!(rest(&mut queue), [], "the others are active");
    for work in runs {
        let finished = queue.finish(work.ticket, Action::Success, DUE).value;
        assert_eq!(finished, Ok(Finished::Ready));
    }
}

#[test]
fn a_batch_takes_due_keys_as_long_as_it_has_room() {
    let mut queue = queue(0..9);
    let mut taken = Vec::new();
    let next = queue.poll_get_many(7, DUE, &mut Getter::new(), |work| taken.push(work.key));
    assert_eq!(next.value, Next::Work(7));
    assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn counts_and_states_are_those_of_all_due_keys() {
    let mut counted = queue(0..9);
    assert!(!counted.is_empty(DUE).value);
    assert_eq!(counted.len(DUE).value, 9);
    assert_eq!(counted.delayed_len(), 0);

    let mut asked = queue(0..9);
    let state = asked.state(&8, DUE).value.unwrap();
    assert_eq!((state.ready, state.due), (true, None));
}

#[test]
fn each_of_many_that_sleep_gets_one_of_many_due_keys() {
    let mut queue = queue(0..5);
    let mut getters: Vec<_> = (0..5).map(|_| Getter::new()).collect();
    for getter in &mut getters {
        assert!(matches!(
            queue.poll_get(Instant::EPOCH, getter).value,
            Next::Wait { .. }
        ));
    }
    let mut handed = Vec::new();
    for getter in &mut getters {
        let looked = queue.poll_get(DUE, getter);
        let Next::Work(work) = looked.value else {
            panic!("{} keys are due", queue.delayed_len());
        };
        handed.push(work.key);
        let last = handed.len() == 5;
        assert_eq!(looked.wake, if last { Wake::NONE } else { Wake::ONE });
        queue.assert_valid();
    }
    assert_eq!(handed, [0, 1, 2, 3, 4]);
}

#[test]
fn a_drain_hands_out_what_was_due_when_it_began() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    queue.add_at(4, later, Instant::EPOCH).value.unwrap();
    let drain = queue.begin_drain(DUE).value;
    assert_eq!(queue.drain_status(&drain), Drained::Pending);
    assert_eq!(queue.add(9, DUE).value, Err(Rejected::Closed(9)));

    for key in [1, 2, 3] {
        assert_eq!(queue.drain_status(&drain), Drained::Pending);
        let work = queue.try_get(later).value.unwrap();
        assert_eq!(work.key, key);
        let wake = queue.release(work.ticket, later).wake;
        assert_eq!(wake, if key == 3 { Wake::ALL } else { Wake::NONE });
    }
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
    assert_eq!(
        queue.poll_get(later, &mut Getter::new()).value,
        Next::Closed
    );
    assert_eq!(queue.take_delayed(DUE).map(|left| left.key), Some(4));
}

#[test]
fn a_retry_after_shutdown_is_left_over_even_without_a_delay() {
    let mut queue = queue([1, 2]);
    let drain = queue.begin_drain(DUE).value;
    let work = queue.try_get(DUE).value.unwrap();
    let finished = queue
        .finish(work.ticket, Action::RetryAfter(Duration::ZERO), DUE)
        .value;
    assert_eq!(finished, Ok(Finished::Leftover(Duration::ZERO)));
    assert_eq!(rest(&mut queue), [2]);
    assert_eq!(queue.drain_status(&drain), Drained::Complete);
    assert_eq!(queue.take_delayed(DUE).map(|left| left.key), Some(1));
}

#[test]
fn leftovers_are_ready_ones_first_and_each_key_once() {
    let mut queue = queue([1, 2, 3]);
    let later = DUE + Duration::from_nanos(5);
    queue.add_at(4, later, Instant::EPOCH).value.unwrap();
    let _ = queue.shut_down(DUE);
    let ready = std::iter::from_fn(|| queue.take_ready().value);
    let ready: Vec<_> = ready
        .map(|left: Leftover<u16>| (left.key, left.left))
        .collect();
    assert_eq!(ready, [1, 2, 3].map(|key| (key, Duration::ZERO)));
    let left = queue.take_delayed(DUE).unwrap();
    assert_eq!((left.key, left.left), (4, Duration::from_nanos(5)));
    assert_eq!((queue.take_delayed(DUE), queue.held_len()), (None, 0));
}

#[test]
fn many_keys_are_cancelled_and_expedited_in_bounded_steps() {
    const KEYS: u16 = 200;
    let mut queue: Queue<u16, Fixed<200>, NoLimit> = Queue::new(NoLimit);
    queue.limit_due_keys(4);
    for key in 0..KEYS {
        let _ = queue.add_at(key, DUE, Instant::EPOCH);
    }
    let mut sweep = Sweep::new();
    for ended in (4..=KEYS).step_by(4) {
        let more = queue.expedite_some(&mut sweep, Instant::EPOCH).value;
        assert_eq!(queue.len(Instant::EPOCH).value, usize::from(ended));
        assert_eq!(more, ended < KEYS);
    }
    let mut sweep = Sweep::new();
    for cancelled in (4..=KEYS).step_by(4) {
        let _ = queue.retain_some(&mut sweep, Instant::EPOCH, |_| false);
        assert_eq!(sweep.cancelled(), usize::from(cancelled));
    }
    // A key that is added meanwhile has a slot that the sweep has passed.
    let _ = queue.add(7, Instant::EPOCH);
    assert!(
        !queue
            .retain_some(&mut sweep, Instant::EPOCH, |_| false)
            .value
    );
    assert_eq!(queue.len(Instant::EPOCH).value, 1);

    // Keys that stay are asked about in bounded steps, too.
    let _ = queue.add_many(0..KEYS, Instant::EPOCH, |_| {});
    let mut sweep = Sweep::new();
    let (mut steps, mut asked) = (1, 0);
    let mut keep = |_: &u16| {
        asked += 1;
        true
    };
    while queue
        .retain_some(&mut sweep, Instant::EPOCH, &mut keep)
        .value
    {
        steps += 1;
    }
    assert_eq!((asked, sweep.cancelled()), (KEYS, 0));
    assert!(steps >= KEYS / 32, "{steps} steps");
}

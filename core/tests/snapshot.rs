//! A walk over all keys while others work.

use std::collections::BTreeMap;
use std::time::Duration;

use requeue_core::binding::RandomState;
use requeue_core::binding::Reporter;
use requeue_core::binding::Sweep;
use requeue_core::limiter::NoLimit;
use requeue_core::metrics::Times;
use requeue_core::priority::Plain;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Action, Instant, KeyState, Queue};

const KEYS: u16 = if cfg!(miri) { 40 } else { 150 };
/// Of these keys each third is held from the first step to the last.
const STAYS: u16 = 3;

type Keys<S> = Queue<u16, Plain, NoLimit, S>;

/// Between two steps keys go, come and run.
fn others_work<S: Storage>(queue: &mut Keys<S>, step: u16, now: Instant) {
    for key in (0..KEYS).filter(|key| key % STAYS != 0) {
        match (key + step) % 4 {
            0 => drop(queue.at(now).cancel(&key)),
            1 => drop(queue.at(now).add(key)),
            2 => drop(
                queue
                    .at(now)
                    .add_after(key, Duration::from_nanos(u64::from(step % 7))),
            ),
            _ => {}
        }
    }
    if let Some(work) = queue.at(now).try_get() {
        // Those that stay are added again during their run.
        if work.key % STAYS == 0 {
            queue.at(now).add(work.key).unwrap();
        }
        queue.at(now).finish(work.ticket, Action::Success);
    }
}

fn walks<S: Storage>(mut queue: Keys<S>) {
    for key in 0..KEYS {
        queue.at(Instant::EPOCH).add(key).unwrap();
    }
    for round in 0..if cfg!(miri) { 2 } else { 20 } {
        let mut seen: BTreeMap<u16, u32> = BTreeMap::new();
        let mut sweep = Sweep::new();
        let mut step = round;
        loop {
            let now = Instant::from_nanos(u64::from(step));
            let mut visited = 0;
            let more = queue.at(now).snapshot_some(&mut sweep, |key, state| {
                visited += 1;
                assert!(state.ready || state.due.is_some());
                *seen.entry(*key).or_default() += 1;
            });
            assert!(visited <= S::LOOKS_PER_LOCK, "{visited} in one call");
            if !more {
                break;
            }
            step += 1;
            others_work(&mut queue, step, now);
        }
        queue.assert_valid();
        for key in (0..KEYS).step_by(STAYS.into()) {
            assert_eq!(seen.get(&key), Some(&1), "key {key} was there all the time");
        }
    }
}

#[test]
fn a_key_that_is_there_all_the_time_is_seen_once() {
    walks::<Fixed<150>>(Queue::new(NoLimit));
    walks::<Growable>(Queue::from_parts(NoLimit, (), RandomState::default(), 0));
}

/// Whatever the features are: the storage says how many keys a call looks at.
#[test]
fn a_call_is_bounded_and_changes_nothing_however_many_keys_are_due() {
    looks_at::<Fixed<150>>(8, Queue::new(NoLimit));
    looks_at::<Growable>(
        32,
        Queue::from_parts(NoLimit, (), RandomState::default(), 0),
    );
}

fn looks_at<S: Storage>(most: u16, mut queue: Keys<S>) {
    let due = Instant::from_nanos(9);
    for key in 0..KEYS {
        let _ = queue.at(Instant::EPOCH).add_at(key, due);
    }
    let mut sweep = Sweep::new();
    for left in (0..KEYS).rev().step_by(most.into()) {
        let mut seen = 0;
        let more = queue.at(due).snapshot_some(&mut sweep, |_, state| {
            assert_eq!((state.ready, state.due), (true, None));
            seen += 1;
        });
        assert_eq!(more, left >= most);
        assert_eq!(seen, if more { most } else { left + 1 });
    }
    assert_eq!(queue.stats().delayed, usize::from(KEYS));
}

fn only_entry<S: Storage, M: requeue_core::metrics::Metrics>(
    queue: &mut Queue<u16, Plain, NoLimit, S, M>,
    now: Instant,
) -> (KeyState, Option<Instant>) {
    let mut entry = None;
    let _ = queue.at(now).snapshot_some(&mut Sweep::new(), |_, state| {
        entry = Some((state, state.active_since));
    });
    entry.unwrap()
}

#[test]
fn a_run_has_a_beginning_if_the_metrics_keep_times() {
    let at = Instant::from_nanos;
    let mut timed: Queue<u16, Plain, NoLimit, Fixed<4>, Times> =
        Queue::with_metrics(NoLimit, Times);
    let mut untimed: Keys<Fixed<4>> = Queue::new(NoLimit);
    let _ = (timed.at(at(1)).add(7), untimed.at(at(1)).add(7));
    assert_eq!(only_entry(&mut timed, at(2)).1, None, "it is ready");
    let _ = (timed.at(at(3)).try_get(), untimed.at(at(3)).try_get());
    let (state, since) = only_entry(&mut timed, at(5));
    assert_eq!((state.active, since), (true, Some(at(3))));
    assert_eq!(timed.at(at(5)).state(&7), Some(state));
    let (state, since) = only_entry(&mut untimed, at(5));
    assert_eq!((state.active, since), (true, None));

    let mut reported: Queue<u16, Plain, NoLimit, Fixed<4>, Reporter> =
        Queue::with_metrics(NoLimit, Reporter::new(Times));
    let _ = (reported.at(at(1)).add(7), reported.at(at(3)).try_get());
    assert_eq!(only_entry(&mut reported, at(5)).1, Some(at(3)));
}

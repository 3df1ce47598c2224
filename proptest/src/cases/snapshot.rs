use requeue_core::{Added, KeyState, Stats};

use super::{Script, ms};
use crate::subject::{Key, Operate, Subject};

/// Takes a snapshot, and compares it with the state of each key.
#[track_caller]
fn snapshot(script: &mut Script, keys: &[Key]) -> Vec<KeyState> {
    let snapshot = script.subject.snapshot();
    let seen: Vec<Key> = snapshot.iter().map(|(key, _)| *key).collect();
    assert_eq!(seen, keys);
    for (key, known) in &snapshot {
        assert_eq!(script.subject.state(*key), Some(*known), "key {key}");
    }
    snapshot.into_iter().map(|(_, known)| known).collect()
}

/// Key 1 is active and dirty, key 2 ready and delayed, key 3 backs off, and key 4 has failed.
fn one_of_each(script: &mut Script) -> Vec<KeyState> {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.add(2, Added::Ready);
    script.add_after(2, 30, Added::Delayed);
    script.fail(3, 1);
    script.fail(4, 1);
    assert!(script.subject.cancel_key(4).is_some());
    snapshot(script, &[1, 2, 3, 4])
}

/// A snapshot shows each key that the queue holds once, as its state is.
///
/// Source: requeue-core, Queue::snapshot_some
/// Needs: 4 keys
pub(crate) fn each_key_is_seen_once_as_it_is(script: &mut Script) {
    snapshot(script, &[]);
    let known = one_of_each(script);
    assert!(known[0].active && known[0].dirty && !known[0].ready);
    assert!(known[1].ready && known[1].due == Some(script.subject.now() + ms(30)));
    assert!(known[2].due.is_some() && known[2].failures == 1);
    assert!(
        known[3].due.is_none() && known[3].failures == 1,
        "its failures are held"
    );

    assert!(script.subject.cancel_key(2).is_some());
    snapshot(script, &[1, 3, 4]);
    script.subject.shut_down();
    snapshot(script, &[1, 3, 4]);
}

/// The counts of a queue are of one moment, and each key is counted in its states.
///
/// Source: requeue-core, Queue::stats
/// Needs: 4 keys
pub(crate) fn the_counts_are_those_of_the_snapshot(script: &mut Script) {
    let known = one_of_each(script);
    let count = |is: fn(&KeyState) -> bool| known.iter().filter(|known| is(known)).count();
    let mut expected = Stats::default();
    expected.total = 4;
    expected.ready = count(|known| known.ready);
    expected.active = count(|known| known.active);
    expected.dirty = count(|known| known.dirty);
    expected.delayed = count(|known| known.due.is_some());
    expected.failure_records = 1;
    expected.max_keys = script.subject.capacity();
    expected.next_deadline = Some(script.subject.now() + ms(1));
    assert_eq!(script.subject.stats(), expected);

    script.subject.pause();
    expected.paused = true;
    expected.next_deadline = None;
    assert_eq!(script.subject.stats(), expected);
    script.subject.shut_down();
    expected.paused = false;
    expected.shutting_down = true;
    assert_eq!(script.subject.stats(), expected);
}

/// A key whose deadline has passed is ready in a snapshot, and is handed out.
///
/// Source: requeue-core, Queue::snapshot_some; docs/design.md, Due keys
pub(crate) fn a_key_that_is_due_is_seen_ready(script: &mut Script) {
    script.add_after(1, 10, Added::Delayed);
    assert!(!snapshot(script, &[1])[0].ready);
    script.advance(10);
    let seen = script.subject.snapshot();
    assert!(seen[0].1.ready && seen[0].1.due.is_none());
    snapshot(script, &[1]);
    script.get(1);
}

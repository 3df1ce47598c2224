use requeue_core::binding::Next;
use requeue_core::{Action, Added};

use super::{Script, unexpected};
use crate::subject::{Key, Operate};

/// Keys that are added together are each added, in order.
///
/// Source: requeue-core, Queue::add_many
/// Needs: 3 keys
pub(crate) fn keys_added_together_keep_their_order(script: &mut Script) {
    script.add(2, Added::Ready);
    let (many, rejected) = script.subject.add_many(&[3, 2, 1, 3]);
    assert_eq!((many.ready, many.coalesced), (2, 2));
    assert!(rejected.is_empty(), "{rejected:?}");
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// A batch hands out the first ready keys, at most as many as asked for.
///
/// Source: requeue-core, Queue::poll_get_many
/// Needs: 3 keys
pub(crate) fn a_batch_takes_what_is_ready(script: &mut Script) {
    script.subject.add_many(&[1, 2, 3]);
    for expected in [&[1, 2][..], &[3]] {
        match script.subject.get_many(2, 0) {
            Next::Work(taken) => {
                let keys: Vec<Key> = taken.iter().map(|handed| handed.key).collect();
                assert_eq!(keys, expected);
            }
            other => unexpected(format!("{expected:?}"), &other),
        }
    }
    script.nothing_to_get();
}

/// Of runs that are completed together each is, whatever the others are.
///
/// Source: requeue-core, Queue::finish_many
/// Needs: 2 keys
pub(crate) fn runs_completed_together_are_each_completed(script: &mut Script) {
    script.add(1, Added::Ready);
    script.add(2, Added::Ready);
    let tickets = vec![script.get(1), script.get(2)];
    script.done(1);
    let stale = script.subject.finish_many(tickets, Action::Retry);
    assert_eq!(stale, 1, "one of them was completed before");
    script.failures(1, 0);
    script.failures(2, 1);
}

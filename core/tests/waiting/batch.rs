//! A batch that is taken without waiting.

use requeue_core::binding::*;

use crate::waiting::call::{Call, Key, Keys, add, queue, sleeping};

#[test]
fn a_batch_is_taken_without_waiting() {
    use requeue_core::Batch;

    let queue: Keys<FixedWaitList<3>> = queue();
    let mut sleeper = Call::asleep(&queue);
    assert!(Batch::take(&queue, 2).is_empty());
    assert_eq!(sleeping(&queue), 1);
    (1..=3).for_each(|key| add(&queue, key));
    let batch = Batch::take(&queue, 2);
    assert!(batch.keys().eq(&[Key(1), Key(2)]));
    assert_eq!(Batch::take(&queue, 0).len(), 1, "at least one");
    assert_eq!(sleeper.wakes(), 1);
    // The key for which it was woken is taken.
    assert!(matches!(sleeper.look(), Look::Sleep { until: Some(_) }));
    drop(batch);
    queue.clock().set(1_000_000);
    let _run = sleeper.finds(3);
}

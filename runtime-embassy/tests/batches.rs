//! Batches that are longer than a critical section: other calls come in between.

use requeue_embassy::Finished;
use requeue_embassy::binding::AsShared;
use requeue_embassy::limiter::NoLimit;
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::storage::{Fixed, Storage};
use requeue_embassy::{Action, ManualClock, Queue, WorkQueue};

type Clock = ManualClock<NoopRawMutex>;
type Keys<'c> = WorkQueue<NoopRawMutex, usize, KEYS, Plain, NoLimit, 1, ((), u16, &'c Clock)>;

const KEYS: usize = 1_000;
const KEYS_PER_LOCK: usize = Fixed::<KEYS, u16>::KEYS_PER_LOCK;

/// The iterator takes a key of the batch that is still added, which it could not in a critical
/// section.
#[test]
fn keys_of_a_batch_that_is_still_added_are_handed_out() {
    let clock = Clock::new();
    let queue = Keys::from_queue(Queue::new(NoLimit), &clock);
    let keys = (0..KEYS).inspect(|key| {
        if *key == KEYS_PER_LOCK {
            assert_eq!(queue.try_get().unwrap().success(), Finished::Idle);
            assert_eq!(queue.len(), KEYS_PER_LOCK - 1);
        }
    });
    assert_eq!(queue.add_many(keys, |_| unreachable!()).ready, KEYS);
}

#[test]
fn runs_end_in_chunks() {
    let clock = Clock::new();
    let queue = Keys::from_queue(Queue::new(NoLimit), &clock);
    queue.add_many(0..KEYS, |_| unreachable!());
    let tickets: Vec<_> = std::iter::from_fn(|| queue.try_get()?.into_ticket()).collect();
    let tickets = tickets.into_iter().enumerate().map(|(place, ticket)| {
        assert_eq!(
            queue.stats().active,
            KEYS - place / KEYS_PER_LOCK * KEYS_PER_LOCK
        );
        ticket
    });
    queue.as_shared().finish_many(tickets, Action::Success);
    assert_eq!(queue.stats().total, 0);
}

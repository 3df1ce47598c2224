//! How keys get in, through a handle that hides the queue, and how they are looked up by a borrowed
//! form.

use std::time::Duration;

use crate::common::clock::Hand;
use crate::common::lock::Single;
use requeue_core::binding::*;
use requeue_core::limiter::{DefaultItemBased, KeyedLimiter, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{AddOptions, Added, Finished, Instant, Merge, Producer, Rejected};

struct Names;

impl Host for Names {
    type Key = String;
    type Priorities = Plain;
    type Limiter = DefaultItemBased;
    type Storage = Fixed<2>;
    type Metrics = ();
    type Waiters = FixedWaitList<1>;
    type Clock = Hand;
    type Lock = Single<State<Self>>;
}

fn queue() -> Shared<Names> {
    let state = State::new(Queue::new(default_item_based()), FixedWaitList::new());
    Shared::new(Single::new(state), Hand::default())
}

#[test]
fn a_producer_hides_the_queue_and_does_the_same() {
    let queue = queue();
    let producer: &dyn Producer<String> = &queue;
    assert_eq!(producer.add("a".into()), Ok(Added::Ready));
    assert_eq!(producer.add("a".into()), Ok(Added::Coalesced));
    let minute = Duration::from_secs(60);
    queue.clock().set(5);
    let delayed = producer.add_after("b".into(), minute);
    assert_eq!(delayed, Ok(Added::Delayed));
    let due = queue.state("b").unwrap().due;
    assert_eq!(due, Some(Instant::from_nanos(5) + minute));

    let scheduled = producer.add_rate_limited("b".into()).unwrap();
    assert_eq!(scheduled.added, Added::Sooner);
    assert_eq!(queue.failures("b"), 1);
    let at_once = AddOptions {
        merge: Merge::Once,
        ..AddOptions::new()
    };
    assert_eq!(
        producer.add_with("b".into(), at_once).unwrap().added,
        Added::Ready
    );
    assert_eq!(queue.stats().delayed, 0);

    assert_eq!(producer.add("c".into()), Err(Rejected::Full("c".into())));
    let level = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    let unknown = Err(Rejected::UnknownPriority("a".into()));
    assert_eq!(producer.add_with("a".into(), level), unknown);
    queue.shut_down();
    assert_eq!(producer.add("a".into()), Err(Rejected::Closed("a".into())));
}

#[test]
fn string_keys_are_looked_up_by_str() {
    let queue = queue();
    queue.add("node-7".into()).unwrap();
    queue.add_rate_limited("node-7".into()).unwrap();
    assert!(queue.contains("node-7") && !queue.contains("node-8"));
    let state = queue.state("node-7").unwrap();
    assert_eq!((state.ready, state.failures), (true, 1));
    assert_eq!(queue.state("node-8"), None);
    assert_eq!((queue.failures("node-7"), queue.failures("node-8")), (1, 0));
    assert_eq!((queue.forget("node-7"), queue.forget("node-7")), (1, 0));
    assert_eq!(queue.release_key("node-7"), Finished::Stale);
    let _ticket = queue.try_get().unwrap().into_ticket();
    assert_eq!(queue.release_key("node-7"), Finished::Idle);
}

#[cfg(feature = "alloc")]
#[test]
fn a_growable_queue_looks_keys_up_by_a_borrowed_form_too() {
    use requeue_core::storage::Growable;

    let now = Instant::EPOCH;
    let mut queue: Queue<Vec<u8>, Plain, _, Growable> = Queue::growable(default_item_based());
    for key in 0..100 {
        let _ = queue.at(now).add(vec![key, key]);
    }
    assert!((0..100_u8).all(|key| queue.contains([key, key].as_slice())));
    assert!(!queue.contains([1_u8, 2].as_slice()));
}

#[test]
fn a_keyed_limiter_looks_keys_up_by_str() {
    let mut limiter: KeyedLimiter<String, _, Fixed<2>> = KeyedLimiter::new(default_item_based());
    let _ = limiter.when(&"peer-1".into(), Instant::EPOCH);
    assert_eq!(
        (limiter.failures("peer-1"), limiter.failures("peer-2")),
        (1, 0)
    );
    assert_eq!((limiter.forget("peer-1"), limiter.forget("peer-1")), (1, 0));
}

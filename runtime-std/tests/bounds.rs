//! Functions over any queue: each bound that the pages of the queue show can be named.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use requeue_std::binding::{Ages, Governs, Shared, Suspends, ThreadHost};
use requeue_std::limiter::RateLimiter;
use requeue_std::priority::{Aging, Grouped, Groups, Levels, Priorities, WithSuspension};
use requeue_std::storage::{Fixed, Growable, Storage};
use requeue_std::{GroupLimits, Leftover, Policy, Queue, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

fn one_at_a_time<K, P, L, S, G>(queue: &WorkQueue<K, P, L, S>, group: G) -> usize
where
    K: Eq + Hash,
    P: Grouped<Group = G>,
    L: RateLimiter,
    S: Storage,
    G: Clone + Eq + Hash,
{
    let limits = GroupLimits::new().max_active(1);
    assert!(queue.limit_group(group, limits).is_ok());
    queue.groups().count()
}

fn by_age<K: Eq + Hash, P: Ages, L: RateLimiter, S: Storage>(queue: &WorkQueue<K, P, L, S>) {
    queue.age_after(SECOND);
}

fn cool_down<K, P, L, S>(queue: &WorkQueue<K, P, L, S>, key: K)
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Governs<P>,
{
    queue.set_policy(Policy::new().cool_down(SECOND));
    let _ = queue.add_debounced(key, SECOND, SECOND);
}

fn written<K, P, L, S>(queue: &WorkQueue<K, P, L, S>, key: &K) -> bool
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Suspends<P>,
{
    queue.suspend(key, SECOND) && queue.resume(key)
}

fn bounded<K, P, L, B>(queue: &WorkQueue<K, P, L, Growable<B>>) -> Option<usize>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    B: BuildHasher,
{
    queue.limit_keys(3);
    queue.stats().max_keys
}

fn runs<K, P, L, S>(queue: &WorkQueue<K, P, L, S>) -> Vec<Leftover<K>>
where
    K: Clone + Eq + Hash + Send + Sync,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    Shared<ThreadHost<K, P, L, S>>: Send + Sync,
{
    queue.shut_down();
    queue.run(1, |_| ()).unwrap()
}

#[test]
fn a_function_over_any_queue_names_each_bound() {
    type Kind = Groups<u8, Aging<Levels<2>>>;
    let builder = WorkQueue::<(u8, u32)>::builder().levels::<2>().aging();
    let queue: WorkQueue<_, Kind> = builder.build_with_groups(|(group, _)| *group);
    assert_eq!(one_at_a_time(&queue, 7), 1);
    by_age(&queue);
    cool_down(&queue, (7, 1));
    assert!(written(&queue, &(7, 1)));
    assert_eq!(bounded(&queue), Some(3));
    assert_eq!(runs(&queue).len(), 1, "its debounced add is left");

    let empty = Queue::<u32, WithSuspension, _, Fixed<2>>::new(requeue_std::limiter::NoLimit);
    let fixed = WorkQueue::from(empty);
    cool_down(&fixed, 1);
    assert!(written(&fixed, &1));
}

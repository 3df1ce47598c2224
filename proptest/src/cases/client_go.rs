//! client-go's own test cases, under their names and on virtual time.
//!
//! Source: kubernetes/client-go, `util/workqueue/queue_test.go` (the first eleven),
//! `delaying_queue_test.go` (four) and `rate_limiting_queue_test.go` (one). Where those start
//! goroutines, one thread takes the parts of all; where they wait for a goroutine, here nothing is
//! under way between two steps.

use requeue_core::binding::{Drained, Next};
use requeue_core::{Added, Finished, Rejected};

use super::{Script, unexpected};
use crate::recorder::Recorder;
use crate::subject::{Handed, Key, Operate, Ticket};

const FOO: Key = 1;
const BAR: Key = 2;
const BAZ: Key = 3;

/// The ways in which a test shuts its queue down.
const WAYS_TO_SHUT_DOWN: [fn(&mut Recorder); 2] = [Operate::shut_down, |subject| {
    let _ = subject.begin_drain();
}];

/// Of ten workers no two have a key at once; what is added too late comes back.
///
/// Source: client-go queue_test.go, TestBasic
/// Needs: 51 keys
pub(crate) fn basic(script: &mut Script) {
    const PRODUCERS: Key = 50;
    const TOO_LATE: Key = 51;
    for shut_down in WAYS_TO_SHUT_DOWN {
        script.restart();
        let mut workers = Workers::new(10);
        for _ in 0..50 {
            for key in 1..=PRODUCERS {
                let added = script.subject.add(key);
                assert!(added.is_ok(), "{added:?}");
            }
            workers.work(script, 3);
        }
        shut_down(&mut script.subject);
        script.refused(TOO_LATE, Rejected::Closed(TOO_LATE));
        while workers.work(script, 3) {}
        assert!(workers.seen.iter().all(|(key, _)| *key <= PRODUCERS));
        script.closed();
        script.len(0);
    }
}

/// Workers, each of which is on a key until some time.
struct Workers {
    on: Vec<Option<(Key, Ticket, u64)>>,
    seen: Vec<(Key, u64)>,
    millis: u64,
}

impl Workers {
    fn new(count: usize) -> Self {
        Self {
            on: std::iter::repeat_with(|| None).take(count).collect(),
            seen: Vec::new(),
            millis: 0,
        }
    }

    /// One millisecond of work. Returns whether any worker was busy.
    fn work(&mut self, script: &mut Script, millis_per_key: u64) -> bool {
        let millis = self.millis;
        for worker in &mut self.on {
            if let Some((_, ticket, _)) = worker.take_if(|(_, _, until)| *until <= millis) {
                assert_ne!(script.subject.release(ticket), Finished::Stale);
            }
        }
        for index in 0..self.on.len() {
            if self.on[index].is_some() {
                continue;
            }
            if let Some(Handed { key, ticket, .. }) = script.subject.try_get() {
                let busy = self.on.iter().flatten().any(|(other, _, _)| *other == key);
                assert!(!busy, "key {key} is worked on twice at once");
                self.seen.push((key, millis));
                self.on[index] = Some((key, ticket, millis + millis_per_key));
            }
        }
        script.advance(1);
        self.millis += 1;
        self.on.iter().any(Option::is_some)
    }
}

/// Each of fifty keys that is added once more while active is worked on twice.
///
/// Source: client-go queue_test.go, TestAddWhileProcessing
/// Needs: 50 keys
pub(crate) fn add_while_processing(script: &mut Script) {
    for shut_down in WAYS_TO_SHUT_DOWN {
        script.restart();
        for key in 1..=50 {
            script.add(key, Added::Ready);
        }
        let mut runs = [0; 51];
        for _ in 0..10 {
            while let Some(Handed { key, ticket, .. }) = script.subject.try_get() {
                runs[usize::from(key)] += 1;
                if runs[usize::from(key)] < 2 {
                    script.add(key, Added::Dirty);
                }
                assert_ne!(script.subject.release(ticket), Finished::Stale);
            }
        }
        shut_down(&mut script.subject);
        script.closed();
        script.len(0);
        assert!(runs[1..].iter().all(|runs| *runs == 2), "{runs:?}");
    }
}

/// A second add of a key does not count.
///
/// Source: client-go queue_test.go, TestLen
/// Needs: 2 keys
pub(crate) fn len(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.len(1);
    script.add(BAR, Added::Ready);
    script.len(2);
    script.add(FOO, Added::Coalesced);
    script.len(2);
}

/// A key that is added while active comes back.
///
/// Source: client-go queue_test.go, TestReinsert
pub(crate) fn reinsert(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.get(FOO);
    script.add(FOO, Added::Dirty);
    script.done(FOO);
    script.run(FOO);
    script.len(0);
}

/// Two adds make one run.
///
/// Source: client-go queue_test.go, TestCollapse
pub(crate) fn collapse(script: &mut Script) {
    script.add(BAR, Added::Ready);
    script.add(BAR, Added::Coalesced);
    script.run(BAR);
    script.len(0);
}

/// Two adds while active make one more run, and not before the present one is over.
///
/// Source: client-go queue_test.go, TestCollapseWhileProcessing
pub(crate) fn collapse_while_processing(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.get(FOO);
    script.add(FOO, Added::Dirty);
    script.add(FOO, Added::Coalesced);

    let another = 0;
    let next = script.subject.get(another);
    assert!(matches!(next, Next::Wait { .. }), "{next:?}");
    script.done(FOO);
    match script.subject.get(another) {
        Next::Work(handed) if handed.key == FOO => {}
        other => unexpected(format!("key {FOO}"), &other),
    }
    script.done(FOO);
    script.len(0);
}

/// A drain lasts until the active keys are done.
///
/// Source: client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrain
/// Needs: 2 keys
pub(crate) fn queue_drainage_using_shut_down_with_drain(script: &mut Script) {
    two_active(script);
    let drain = script.subject.begin_drain();
    script.closed();
    script.done(FOO);
    script.drained(&drain, Drained::Pending);
    script.done(BAR);
    script.drained(&drain, Drained::Complete);
}

/// A shutdown does not wait for active keys.
///
/// Source: client-go queue_test.go, TestNoQueueDrainageUsingShutDown
/// Needs: 2 keys
pub(crate) fn no_queue_drainage_using_shut_down(script: &mut Script) {
    two_active(script);
    script.subject.shut_down();
    script.closed();
    assert_eq!(script.subject.stats().active, 2);
}

/// A shutdown ends a drain.
///
/// Source: client-go queue_test.go, TestForceQueueShutdownUsingShutDown
/// Needs: 2 keys
pub(crate) fn force_queue_shutdown_using_shut_down(script: &mut Script) {
    two_active(script);
    let drain = script.subject.begin_drain();
    script.closed();
    script.drained(&drain, Drained::Pending);
    script.subject.shut_down();
    script.drained(&drain, Drained::Interrupted);
}

/// A key that is dirty when the drain begins is worked on once more.
///
/// Source: client-go queue_test.go, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem
pub(crate) fn queue_drainage_using_shut_down_with_drain_with_dirty_item(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.get(FOO);
    script.add(FOO, Added::Dirty);
    // There the test gets until the queue is closed, to see that the drain has begun. Here a getter
    // would wait for the dirty key: `getters_wait_for_dirty_keys`.
    let drain = script.subject.begin_drain();
    script.drained(&drain, Drained::Pending);
    script.done(FOO);
    script.run(FOO);
    script.closed();
    script.drained(&drain, Drained::Complete);
}

/// Nothing is kept of a key that is done.
///
/// Source: client-go queue_test.go, TestGarbageCollection
pub(crate) fn garbage_collection(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.run(FOO);
    assert_eq!(script.subject.state(FOO), None);
    assert_eq!(script.subject.stats().total, 0);
}

/// A delayed key comes once.
///
/// Source: client-go delaying_queue_test.go, TestSimpleQueue
pub(crate) fn simple_queue(script: &mut Script) {
    script.add_after(FOO, 50, Added::Delayed);
    script.len(0);
    script.advance(60);
    script.len(1);
    script.run(FOO);
    script.advance(10_000);
    script.len(0);
}

/// Of two delays the one that ends first counts, whichever was asked for first.
///
/// Source: client-go delaying_queue_test.go, TestDeduping
pub(crate) fn deduping(script: &mut Script) {
    script.add_after(FOO, 50, Added::Delayed);
    script.add_after(FOO, 70, Added::Coalesced);
    script.len(0);
    script.advance(60);
    script.run(FOO);
    script.advance(20);
    script.len(0);

    script.add_after(FOO, 50, Added::Delayed);
    script.add_after(FOO, 30, Added::Sooner);
    script.len(0);
    script.advance(40);
    script.run(FOO);
    script.advance(20);
    script.len(0);
}

/// Keys come in the order of their deadlines, whichever was asked for first.
///
/// Source: client-go delaying_queue_test.go, TestAddTwoFireEarly
/// Needs: 3 keys
pub(crate) fn add_two_fire_early(script: &mut Script) {
    script.add_after(FOO, 1000, Added::Delayed);
    script.add_after(BAR, 50, Added::Delayed);
    script.len(0);
    script.advance(60);
    script.len(1);
    script.get(BAR);
    script.add_after(BAZ, 2000, Added::Delayed);
    script.advance(1000);
    script.len(1);
    script.get(FOO);
    script.advance(2000);
    script.len(1);
    script.get(BAZ);
}

/// Three keys that were asked for in the opposite order come together.
///
/// Source: client-go delaying_queue_test.go, TestCopyShifting
/// Needs: 3 keys
pub(crate) fn copy_shifting(script: &mut Script) {
    script.add_after(FOO, 1000, Added::Delayed);
    script.add_after(BAR, 500, Added::Delayed);
    script.add_after(BAZ, 250, Added::Delayed);
    script.len(0);
    script.advance(2000);
    script.len(3);
    script.get(BAZ);
    script.get(BAR);
    script.get(FOO);
}

/// Each failure doubles the delay of its key, until it is forgotten.
///
/// Source: client-go rate_limiting_queue_test.go, TestRateLimitingQueue
/// Needs: 2 keys
pub(crate) fn rate_limiting_queue(script: &mut Script) {
    const ONE: Key = 1;
    const TWO: Key = 2;
    script.fail(ONE, 1);
    script.fail(ONE, 2);
    script.failures(ONE, 2);
    script.fail(TWO, 1);
    script.fail(TWO, 2);
    assert_eq!(script.subject.forget(ONE), 2);
    script.failures(ONE, 0);
    script.fail(ONE, 1);
}

fn two_active(script: &mut Script) {
    script.add(FOO, Added::Ready);
    script.add(BAR, Added::Ready);
    script.get(FOO);
    script.get(BAR);
}

//! Keys with equal deadlines leave in the order in which the deadlines were set.

use core::time::Duration;

use requeue_embassy::binding::{AsShared, Lock};
use requeue_embassy::{ManualClock, Queue, WorkQueue};

use crate::figures::Figures;
use crate::judge::Judge;
use crate::limiter::Limiter;
use crate::player::Keys;
use crate::recording::Bytes;

/// Replays the next recording: `build/ties.rs` is the other end of this.
pub fn replay(bytes: &mut Bytes<'_>, judge: &mut Judge) {
    let clock = ManualClock::new();
    // Of the other recordings' type, because the smallest board has no flash for another. No key
    // fails.
    let limiter = Limiter::exponential(Duration::ZERO, Duration::MAX);
    let queue: Keys<'_> =
        WorkQueue::from_queue(Queue::with_metrics(limiter, Figures::default()), &clock);
    let steps = bytes.number();
    for _ in 0..steps {
        match bytes.byte() {
            0x80 => clock.advance(bytes.duration()),
            0x81 => {
                let keys = bytes.number();
                for _ in 0..keys {
                    let guard = queue.try_get();
                    let key = guard.as_deref().copied();
                    judge.expect(clock.now(), "get", key, Some(bytes.byte()));
                    guard.map(|guard| guard.release());
                }
            }
            key => {
                let added = queue.add_after(key, bytes.duration());
                judge.expect(clock.now(), "add_after", added.is_ok(), true);
            }
        }
        judge.steps += 1;
        let len = bytes.number() as usize;
        judge.expect(clock.now(), "len", queue.len(), len);
        queue
            .as_shared()
            .lock()
            .with(|state| state.queue().assert_valid());
    }
}

//! A bare loop: one worker without a runtime. It looks, works, and sleeps until an interrupt or a
//! time.

use core::time::Duration;

use requeue_core::binding::{Getter, Next};
use requeue_core::limiter::{NoLimit, RateLimiter};
use requeue_core::priority::{Groups, Plain, Priorities, WithPolicy};
use requeue_core::storage::{Fixed, Storage};
use requeue_core::{Action, Finished, GroupLimits, Instant, Policy, Queue};

/// A key is a group and a number.
type Key = (u8, u8);
/// What an interrupt does.
type Interrupt<'a, P, L, S> = (u64, &'a mut dyn FnMut(&mut Queue<Key, P, L, S>, Instant));

const LOOKS_MAX: u32 = 1000;

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

/// Returns the millisecond and the key of each run, and how often the loop has looked. It ends when
/// it would sleep for ever.
fn drive<P: Priorities, L: RateLimiter, S: Storage>(
    queue: &mut Queue<Key, P, L, S>,
    interrupts: &mut [Interrupt<'_, P, L, S>],
) -> (Vec<(u64, Key)>, u32) {
    let (mut now, mut runs) = (Instant::EPOCH, Vec::new());
    let mut interrupts = interrupts.iter_mut().peekable();
    let mut getter = Getter::new();
    for looks in 1..LOOKS_MAX {
        let until = match queue.at(now).poll_get(&mut getter) {
            Next::Work(work) => {
                let millis = now.saturating_since(Instant::EPOCH).as_millis();
                runs.push((u64::try_from(millis).unwrap(), work.key));
                let ended = queue.at(now).finish(work.ticket, Action::Success);
                assert_ne!(ended, Finished::Stale);
                continue;
            }
            Next::Wait { until } => until,
            Next::Closed => return (runs, looks),
        };
        queue.assert_valid();
        let next = interrupts.peek().map(|(millis, _)| at(*millis));
        let Some(woken) = until.into_iter().chain(next).min() else {
            return (runs, looks);
        };
        now = now.max(woken);
        if next == Some(woken)
            && let Some((_, interrupt)) = interrupts.next()
        {
            interrupt(queue, now);
        }
    }
    (runs, LOOKS_MAX)
}

#[test]
fn it_sleeps_beside_a_ready_key_while_the_queue_is_paused() {
    let mut queue: Queue<Key, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    queue.at(at(0)).add((1, 0)).unwrap();
    queue.at(at(0)).pause();
    let (runs, looks) = drive(
        &mut queue,
        &mut [(500, &mut |queue, now| queue.at(now).unpause())],
    );
    assert_eq!(runs, [(500, (1, 0))]);
    assert_eq!(looks, 3, "it sleeps, works, and sleeps");
}

#[test]
fn it_sleeps_beside_a_ready_key_whose_group_is_at_its_limit() {
    let mut queue: Queue<Key, Groups<u8>, NoLimit, Fixed<4>> =
        Queue::with_groups(NoLimit, (), |key| key.0);
    queue
        .at(at(0))
        .limit_groups(GroupLimits::new().max_active(1));
    queue.at(at(0)).add((1, 0)).unwrap();
    queue.at(at(0)).add((1, 1)).unwrap();
    queue
        .at(at(0))
        .add_after((2, 0), Duration::from_millis(100))
        .unwrap();
    let mut present = queue.at(at(0)).try_get();
    let mut end = |queue: &mut Queue<_, _, _, _, _>, now| {
        let work = present.take().unwrap();
        queue.at(now).release(work.ticket);
    };
    let (runs, looks) = drive(&mut queue, &mut [(500, &mut end)]);
    assert_eq!(runs, [(100, (2, 0)), (500, (1, 1))]);
    assert_eq!(looks, 5, "it sleeps three times, and works twice");
}

#[test]
fn it_sleeps_beside_a_ready_key_until_there_is_a_token() {
    let mut queue: Queue<Key, WithPolicy, _, Fixed<4>> =
        Queue::new(NoLimit).with_policy(Policy::new().run_rate(2.0, 1));
    for number in 0..3 {
        queue.at(at(0)).add((1, number)).unwrap();
    }
    let (runs, looks) = drive(&mut queue, &mut []);
    assert_eq!(runs, [(0, (1, 0)), (500, (1, 1)), (1000, (1, 2))]);
    assert_eq!(looks, 6, "it works three times, and sleeps after each run");
}

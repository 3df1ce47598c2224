//! How much stack a call takes, at most.
//!
//! A call also makes keys ready whose deadlines have passed, evicts a key that is kept only for its
//! failures, and wakes a call that waits. So each call is measured in every such situation, with
//! each key.

use core::hint::black_box;
use core::pin::pin;

use requeue_firmware::{println, stack};

use crate::subject::{self, Clock, MILLISECOND, SECOND, poll};

const N: u16 = 16;

type Keys<'c> = subject::Keys<'c, { N as usize }, u8>;

/// Prints the table.
pub fn print() {
    let add = deepest(|queue, key| keep(queue.add(black_box(key))));
    let add_after = deepest(|queue, key| keep(queue.add_after(black_box(key), SECOND)));
    let retry = deepest(|queue, _| keep(queue.try_get().map(|guard| guard.retry())));
    let sleep = deepest(|queue, _| keep(poll(pin!(queue.get()))));
    println!("\n| bytes of stack, at most | |\n|---|--:|");
    println!("| `add` | {add} |");
    println!("| `add_after` | {add_after} |");
    println!("| `try_get`, `retry` | {retry} |");
    println!("| `get().await`, once polled and dropped | {sleep} |");
}

/// What the other keys of the queue are.
#[derive(Clone, Copy)]
enum Others {
    None,
    Ready,
    /// Their deadlines have passed.
    Due(Deadlines),
    /// They are active, and their own deadlines have passed.
    ActiveAndDue(Deadlines),
    /// The queue is full of keys that are kept only for their failures.
    Failed,
}

#[derive(Clone, Copy)]
enum Deadlines {
    Equal,
    Rising,
    Falling,
}

const SITUATIONS: [Others; 9] = [
    Others::None,
    Others::Ready,
    Others::Due(Deadlines::Equal),
    Others::Due(Deadlines::Rising),
    Others::Due(Deadlines::Falling),
    Others::ActiveAndDue(Deadlines::Equal),
    Others::ActiveAndDue(Deadlines::Rising),
    Others::ActiveAndDue(Deadlines::Falling),
    Others::Failed,
];

#[inline(never)]
fn deepest(call: impl Fn(&Keys<'_>, u16)) -> usize {
    let mut deepest = 0;
    for others in SITUATIONS {
        for is_awaited in [false, true] {
            for key in 0..=N {
                let clock = Clock::new();
                let queue: Keys<'_> = subject::queue(&clock);
                let mut get = pin!(queue.get());
                if is_awaited {
                    keep(poll(get.as_mut()));
                }
                prepare(&queue, others);
                clock.advance(SECOND);
                let work: &mut dyn FnMut() = &mut || call(&queue, key);
                deepest = stack::depth(work).max(deepest);
            }
        }
    }
    deepest
}

/// Leaves room for one key, unless the queue is full of failures.
fn prepare(queue: &Keys<'_>, others: Others) {
    for key in 0..N - 1 {
        match others {
            Others::None => {}
            Others::Ready => keep(queue.add(key)),
            Others::Due(deadlines) => delay(queue, key, deadlines),
            Others::ActiveAndDue(deadlines) => {
                keep(queue.add(key));
                core::mem::forget(queue.try_get());
                delay(queue, key, deadlines);
            }
            Others::Failed => fail(queue, key),
        }
    }
    if let Others::Failed = others {
        fail(queue, N - 1);
    }
}

fn delay(queue: &Keys<'_>, key: u16, deadlines: Deadlines) {
    let place = match deadlines {
        Deadlines::Equal => 1,
        Deadlines::Rising => key + 1,
        Deadlines::Falling => N - key,
    };
    keep(queue.add_after(key, MILLISECOND * u32::from(place)));
}

fn fail(queue: &Keys<'_>, key: u16) {
    keep(queue.add_rate_limited(key));
    keep(queue.cancel(&key));
}

/// Keeps a result from being optimised away.
fn keep<T>(result: T) {
    black_box(result);
}

//! The slowest call of each kind after the deadlines of all keys have passed at once.
//!
//! Every key is visited, in several orders and with several orders of deadlines, so that the calls
//! go from the longest backlog to none, on keys of the backlog and on others.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use heapless::Vec;
use requeue_embassy::binding::Index;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::Plain;
use requeue_embassy::{Guard, Queue, WorkQueue};
use requeue_firmware::meter::{self, Clock, Row, instructions};
use requeue_firmware::{arch, board, end};

type Mutex = CriticalSectionRawMutex;
type Key = u16;
type Limiter = Exponential;
type Parts<'c, I> = ((), I, &'c Clock);
type Keys<'c, const N: usize, I> = WorkQueue<Mutex, Key, N, Plain, Limiter, 3, Parts<'c, I>>;
type KeyGuard<'q, const N: usize, I> = Guard<'q, Mutex, Key, N, Plain, Limiter, 3, Parts<'q, I>>;

const HOUR: Duration = Duration::from_secs(3600);
const MILLISECOND: Duration = Duration::from_millis(1);

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    arch::start_counting();
    meter::calibrate();
    let small = measure::<16, u8>();
    let medium = measure::<64, u8>();
    let large = if board::RAM_BYTES >= RAM_FOR_LARGE {
        measure::<256, u16>()
    } else {
        Vec::new()
    };
    let title = "instructions of the slowest call, N deadlines have passed";
    meter::print(title, &small, &medium, &large);
    end(true)
}

/// For the keys, and as many guards.
const RAM_FOR_LARGE: usize = 64 * 1024;

fn measure<const N: usize, I: Index>() -> Vec<Row, 8> {
    let mut slowest = [0; 8];
    for deadlines in [Deadlines::Equal, Deadlines::Rising, Deadlines::Falling] {
        for step in [1, 5, N - 1] {
            let measured = [
                slowest_of::<N, I>(deadlines, step, |queue, key| {
                    instructions(|| queue.add(black_box(key)))
                }),
                slowest_of::<N, I>(deadlines, step, |queue, key| {
                    instructions(|| queue.add_after(black_box(key), HOUR))
                }),
                slowest_of::<N, I>(deadlines, step, |queue, key| {
                    instructions(|| queue.forget(black_box(&key)))
                }),
                slowest_get::<N, I>(deadlines),
                slowest_end::<N, I>(deadlines, step, |guard| instructions(|| guard.success())),
                slowest_end::<N, I>(deadlines, step, |guard| instructions(|| guard.release())),
                slowest_end::<N, I>(deadlines, step, |guard| instructions(|| guard.retry())),
                past_active_keys::<N, I>(deadlines),
            ];
            for (slowest, measured) in slowest.iter_mut().zip(measured) {
                *slowest = measured.max(*slowest);
            }
        }
    }
    WHAT.into_iter().zip(slowest).collect()
}

const WHAT: [&str; 8] = [
    "slowest `add`",
    "slowest `add_after`",
    "slowest `forget`",
    "slowest `try_get`",
    "slowest `success`",
    "slowest `release`",
    "slowest `retry`",
    "slowest `try_get` past active keys",
];

/// The deadlines of the keys, in the order in which they are set.
#[derive(Clone, Copy)]
enum Deadlines {
    Equal,
    Rising,
    Falling,
}

impl Deadlines {
    fn delay(self, key: Key) -> Duration {
        match self {
            Self::Equal => MILLISECOND,
            Self::Rising => MILLISECOND * u32::from(key + 1),
            Self::Falling => MILLISECOND * (1000 - u32::from(key)),
        }
    }

    /// Delays keys.
    fn set<const N: usize, I: Index>(
        self,
        queue: &Keys<'_, N, I>,
        keys: impl Iterator<Item = Key>,
    ) {
        for key in keys {
            queue.add_after(key, self.delay(key)).expect("room");
        }
    }
}

/// The keys of a queue, each once.
fn visits<const N: usize>(step: usize) -> impl Iterator<Item = Key> {
    (1..=N).map(move |visit| (visit * step % N) as Key)
}

fn queue<const N: usize, I: Index>(clock: &Clock) -> Keys<'_, N, I> {
    WorkQueue::from_queue(Queue::new(default_item_based()), clock)
}

/// The first keys.
fn keys(count: usize) -> impl Iterator<Item = Key> {
    0..count as Key
}

/// All keys but one are in the queue, so that one call adds a key.
#[inline(never)]
fn slowest_of<const N: usize, I: Index>(
    deadlines: Deadlines,
    step: usize,
    call: impl Fn(&Keys<'_, N, I>, Key) -> u32,
) -> u32 {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    deadlines.set(&queue, keys(N - 1));
    clock.advance(HOUR);
    let calls = visits::<N>(step).map(|key| call(&queue, key));
    calls.max().unwrap_or(0)
}

#[inline(never)]
fn slowest_get<const N: usize, I: Index>(deadlines: Deadlines) -> u32 {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    deadlines.set(&queue, keys(N));
    clock.advance(HOUR);
    let mut guards: Vec<_, N> = Vec::new();
    let gets = (0..N).map(|_| {
        let mut guard = None;
        let get = instructions(|| guard = queue.try_get());
        guards.extend(guard);
        get
    });
    let slowest = gets.max().unwrap_or(0);
    assert!(guards.is_full(), "every key is due");
    slowest
}

/// All keys are active when their deadlines pass.
#[inline(never)]
fn slowest_end<const N: usize, I: Index>(
    deadlines: Deadlines,
    step: usize,
    end: impl Fn(KeyGuard<'_, N, I>) -> u32,
) -> u32 {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    let mut guards: Vec<_, N> = Vec::new();
    for key in visits::<N>(step) {
        queue.add(key).expect("room");
        guards.extend(queue.try_get());
    }
    deadlines.set(&queue, keys(N));
    clock.advance(HOUR);
    assert!(guards.is_full(), "every key is active");
    guards.into_iter().map(end).max().unwrap_or(0)
}

/// The gets that it takes to find the key that is due after all active ones.
#[inline(never)]
fn past_active_keys<const N: usize, I: Index>(deadlines: Deadlines) -> u32 {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    let mut guards: Vec<_, N> = Vec::new();
    for key in keys(N - 1) {
        queue.add(key).expect("room");
        guards.extend(queue.try_get());
    }
    deadlines.set(&queue, keys(N - 1));
    queue.add_after(N as Key - 1, HOUR).expect("room");
    clock.advance(HOUR);
    let (mut last, mut slowest) = (None, 0);
    for _ in 0..N {
        let get = instructions(|| last = queue.try_get());
        slowest = get.max(slowest);
        if last.is_some() {
            return slowest;
        }
    }
    panic!("the last key is due");
}

//! The slowest call of each kind, over all states of a small queue instead of chosen ones.
//!
//! The states are found on the board, breadth first: each call is made in each state, and leads to
//! the next. Two states are the same if no caller can tell them apart, however long it goes on:
//! they have the same keys in the same slots, in the same order, with the same times from now on. A
//! state is restored by repeating the calls that lead to it, and a call is measured on a copy of
//! its bytes.
//!
//! Time goes on by one nanosecond at a time, and delays and backoffs are one or two. A key fails at
//! most twice in a row. Without these limits there would be no end.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::time::Duration;

use heapless::Vec;
use requeue_core::binding::{Sweep, Ticket};
use requeue_core::limiter::Exponential;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Instant, Queue};
use requeue_firmware::meter::{self, instructions};
use requeue_firmware::{arch, board, end, println};
use static_cell::ConstStaticCell;

type Keys<const N: usize> = Queue<u8, Plain, Exponential, Fixed<N>>;

const NANOSECOND: Duration = Duration::from_nanos(1);
const LIMITER: Exponential = Exponential::new(NANOSECOND, NANOSECOND);
/// Failures of a key in a row.
const FAILURES_MAX: u32 = 2;

/// States at most. A queue of two keys has fewer, one of three has more.
const STATES_MAX: usize = 1 << 15;
const STATES_OF_ONE: usize = 56;
const STATES_OF_TWO: usize = 5911;
/// Calls from the empty queue to a state.
const CALLS_MAX: usize = 32;

const WHAT: [&str; 6] = [
    "`add`",
    "`add_after`",
    "`try_get`",
    "`success`",
    "`retry`",
    "`forget`",
];

#[derive(Clone, Copy)]
enum Call {
    Tick,
    TryGet,
    Add(u8),
    AddAfter(u8, u32),
    Finish(u8, Action),
    Forget(u8),
}

impl Call {
    const OF_KEY: u8 = 6;

    const fn count<const N: usize>() -> u8 {
        2 + Self::OF_KEY * N as u8
    }

    fn numbered(number: u8) -> Self {
        let key = number.wrapping_sub(2) / Self::OF_KEY;
        match number {
            0 => Self::Tick,
            1 => Self::TryGet,
            _ => match (number - 2) % Self::OF_KEY {
                0 => Self::Add(key),
                1 => Self::AddAfter(key, 1),
                2 => Self::AddAfter(key, 2),
                3 => Self::Finish(key, Action::Success),
                4 => Self::Finish(key, Action::Retry),
                _ => Self::Forget(key),
            },
        }
    }
}

/// A queue, the time, and the runs that have not ended.
struct World<const N: usize> {
    queue: Keys<N>,
    now: Instant,
    runs: [Option<Ticket>; N],
}

impl<const N: usize> World<N> {
    fn new() -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self {
            queue: Queue::new(LIMITER),
            now: Instant::EPOCH,
            runs: [const { None }; N],
        })
    }

    /// A copy of the bytes.
    fn copy(&self) -> ManuallyDrop<Self> {
        let mut copy = MaybeUninit::uninit();
        // SAFETY: a queue of numbers owns nothing elsewhere, and neither of the two is dropped.
        unsafe {
            core::ptr::copy_nonoverlapping(self, copy.as_mut_ptr(), 1);
            ManuallyDrop::new(copy.assume_init())
        }
    }

    /// Makes a call. Returns its row and its instructions, `None` if it is not to be made in this
    /// state.
    fn make(&mut self, call: Call) -> Option<(usize, u32)> {
        let Self { queue, now, runs } = self;
        let at = *now;
        Some(match call {
            Call::Tick => {
                *now = at + NANOSECOND;
                (WHAT.len(), 0)
            }
            Call::TryGet => {
                let mut work = None;
                let took = instructions(|| work = get(queue, at));
                if let Some((key, ticket)) = work {
                    runs[usize::from(key)] = Some(ticket);
                }
                (2, took)
            }
            Call::Add(key) => (0, instructions(|| add(queue, key, at))),
            Call::AddAfter(key, nanos) => {
                let delay = NANOSECOND * nanos;
                (1, instructions(|| add_after(queue, key, delay, at)))
            }
            Call::Finish(key, action) => {
                let is_retry = matches!(action, Action::Retry);
                if is_retry && queue.failures(&key) >= FAILURES_MAX {
                    return None;
                }
                let ticket = runs[usize::from(key)].take()?;
                let took = instructions(|| finish(queue, ticket, action, at));
                (if is_retry { 4 } else { 3 }, took)
            }
            Call::Forget(key) => (5, instructions(|| forget(queue, key, at))),
        })
    }

    /// A number for the state. Takes the queue apart.
    fn fingerprint(&mut self) -> u64 {
        let Self { queue, now, runs } = self;
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        let mut note = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        // At this time no deadline passes.
        let at = Instant::EPOCH;
        let mut sweep = Sweep::new();
        while queue.at(at).snapshot_some(&mut sweep, |key, state| {
            let has = [state.ready, state.active, state.dirty];
            note(
                has.into_iter()
                    .fold(1, |bits, bit| bits << 1 | u8::from(bit)),
            );
            note(*key);
            note(state.failures as u8);
            let left = state
                .due
                .map_or(99, |due| due.as_nanos() + 50 - now.as_nanos());
            // However long ago it has passed, it is due.
            note(left.max(49) as u8);
        }) {}
        while let Some(work) = queue.at(at).try_get() {
            note(work.key);
            runs[usize::from(work.key)] = Some(work.ticket);
        }
        queue.at(at).shut_down();
        while let Some(left) = queue.at(at).take_delayed() {
            note(left.key);
        }
        hash.max(1)
    }
}

#[inline(never)]
fn add<const N: usize>(queue: &mut Keys<N>, key: u8, at: Instant) -> bool {
    queue.at(at).add(black_box(key)).is_ok()
}

#[inline(never)]
fn add_after<const N: usize>(queue: &mut Keys<N>, key: u8, delay: Duration, at: Instant) -> bool {
    queue.at(at).add_after(black_box(key), delay).is_ok()
}

#[inline(never)]
fn get<const N: usize>(queue: &mut Keys<N>, at: Instant) -> Option<(u8, Ticket)> {
    let work = queue.at(at).try_get()?;
    Some((work.key, work.ticket))
}

#[inline(never)]
fn finish<const N: usize>(queue: &mut Keys<N>, ticket: Ticket, action: Action, at: Instant) {
    let _ = black_box(queue.at(at).finish(ticket, action));
}

#[inline(never)]
fn forget<const N: usize>(queue: &mut Keys<N>, key: u8, at: Instant) -> u32 {
    queue.at(at).forget(&black_box(key))
}

/// The states that are known: a table of fingerprints, and for each state the one before it and the
/// call that leads from there.
struct States {
    seen: [u64; 2 * STATES_MAX],
    reached: Vec<(u32, u8), STATES_MAX>,
}

static STATES: ConstStaticCell<States> = ConstStaticCell::new(States {
    seen: [0; 2 * STATES_MAX],
    reached: Vec::new(),
});

impl States {
    /// Notes a fingerprint. Returns whether it is new.
    fn note(&mut self, fingerprint: u64) -> bool {
        let mut place = fingerprint as usize % self.seen.len();
        loop {
            match self.seen[place] {
                0 => {
                    self.seen[place] = fingerprint;
                    return true;
                }
                seen if seen == fingerprint => return false,
                _ => place = (place + 1) % self.seen.len(),
            }
        }
    }

    /// Makes every call in every state, in the order in which they are found. Returns the slowest
    /// calls, and how many states there are.
    fn explore<const N: usize>(&mut self) -> ([u32; WHAT.len()], usize, bool) {
        let mut slowest = [0; WHAT.len() + 1];
        self.seen.fill(0);
        self.reached.clear();
        self.note(World::<N>::new().fingerprint());
        let _ = self.reached.push((0, 0));
        let (mut state, mut is_closed) = (0, true);
        while state < self.reached.len() {
            let world = self.restore::<N>(state);
            for number in 0..Call::count::<N>() {
                let mut next = world.copy();
                let Some((row, took)) = next.make(Call::numbered(number)) else {
                    continue;
                };
                slowest[row] = took.max(slowest[row]);
                if self.reached.is_full() {
                    is_closed = false;
                } else if self.note(next.fingerprint()) {
                    let _ = self.reached.push((state as u32, number));
                }
            }
            state += 1;
        }
        let [slowest @ .., _] = slowest;
        (slowest, self.reached.len(), is_closed)
    }

    /// Repeats the calls that lead to a state.
    fn restore<const N: usize>(&self, state: usize) -> ManuallyDrop<World<N>> {
        let mut calls: Vec<u8, CALLS_MAX> = Vec::new();
        let mut at = state;
        while at > 0 {
            let (before, number) = self.reached[at];
            calls.push(number).expect("fewer calls");
            at = before as usize;
        }
        let mut world = World::new();
        for number in calls.into_iter().rev() {
            let _ = world.make(Call::numbered(number));
        }
        world
    }
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    arch::start_counting();
    meter::calibrate();
    let states = STATES.take();
    let (one, states_of_one, is_one_closed) = states.explore::<1>();
    let (two, states_of_two, is_two_closed) = states.explore::<2>();
    // There are more of three keys.
    let (three, states_of_three, _) = states.explore::<3>();
    let title = "instructions of the slowest call in any state";
    println!("\n| {title} | N = 1 | N = 2 | N = 3 |\n|---|--:|--:|--:|");
    for (row, what) in WHAT.into_iter().enumerate() {
        println!(
            "| any state: {what} | {} | {} | {} |",
            one[row], two[row], three[row]
        );
    }
    println!("| states | {states_of_one} | {states_of_two} | {states_of_three} |");
    let is_complete = is_one_closed && is_two_closed && states_of_three == STATES_MAX;
    end(is_complete && (states_of_one, states_of_two) == (STATES_OF_ONE, STATES_OF_TWO))
}

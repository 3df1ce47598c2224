//! The slowest call of each kind, over all states of a small queue instead of chosen ones.
//!
//! The states are found on the board, breadth first: each call is made in each state, and leads to
//! the next. Two states are the same if they have the same keys in the same order, with the same
//! times from now on, and the same layout of the heap. The names of the keys may differ. A state is
//! restored by repeating the calls that lead to it, and a call is measured on a copy of its bytes.
//!
//! The kinds of queue are in images of their own. With two kinds in one image, less is inlined.
//!
//! Time goes on by one nanosecond at a time, and delays and backoffs are one or two. A key fails at
//! most twice in a row. Without these limits there would be no end.

use core::hash::{Hash, Hasher};
use core::hint::black_box;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::time::Duration;

use heapless::Vec;
use requeue_core::binding::{Sweep, Ticket};
use requeue_core::limiter::Exponential;
use requeue_core::priority::Priorities;
use requeue_core::storage::Fixed;
use requeue_core::{Action, AddOptions, Instant, Queue};
use requeue_firmware::meter::{self, instructions};
use requeue_firmware::{arch, println};
use static_cell::ConstStaticCell;

pub(crate) type Keys<P, const N: usize> = Queue<u8, P, Exponential, Fixed<N>>;

/// A kind of queue, and how it begins.
pub(crate) trait Kind: Priorities + Sized {
    fn queue<const N: usize>() -> Keys<Self, N>;
}

const NANOSECOND: Duration = Duration::from_nanos(1);
pub(crate) const LIMITER: Exponential = Exponential::new(NANOSECOND, NANOSECOND);
/// Failures of a key in a row.
const FAILURES_MAX: u32 = 2;

/// The keys. Each has a hash chain of its own, whether there are one, two or three.
const KEYS: [u8; 3] = [0, 1, 3];
/// Keys from here on are in no state.
const NEW_KEYS: u8 = 100;

/// States at most.
const STATES_MAX: usize = 1 << 17;
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
    AddUrgent(u8),
    AddAfter(u8, u32),
    Finish(u8, Action),
    Forget(u8),
}

impl Call {
    const OF_KEY: u8 = 7;

    const fn count<const N: usize>() -> u8 {
        2 + Self::OF_KEY * N as u8
    }

    fn numbered(number: u8) -> Self {
        let key = number.wrapping_sub(2) / Self::OF_KEY;
        let key = KEYS.get(usize::from(key)).copied().unwrap_or_default();
        match number {
            0 => Self::Tick,
            1 => Self::TryGet,
            _ => match (number - 2) % Self::OF_KEY {
                6 => Self::AddUrgent(key),
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
struct World<P: Kind, const N: usize> {
    queue: Keys<P, N>,
    now: Instant,
    runs: [Option<Ticket>; N],
}

impl<P: Kind, const N: usize> World<P, N> {
    fn new() -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self {
            queue: P::queue(),
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
                    runs[number_of(key)] = Some(ticket);
                }
                (2, took)
            }
            Call::Add(key) => (0, instructions(|| add(queue, key, at))),
            Call::AddUrgent(key) if P::LEVELS > 1 => {
                (0, instructions(|| add_urgent(queue, key, at)))
            }
            Call::AddUrgent(_) => return None,
            Call::AddAfter(key, nanos) => {
                let delay = NANOSECOND * nanos;
                (1, instructions(|| add_after(queue, key, delay, at)))
            }
            Call::Finish(key, action) => {
                let is_retry = matches!(action, Action::Retry);
                if is_retry && queue.failures(&key) >= FAILURES_MAX {
                    return None;
                }
                let ticket = runs[number_of(key)].take()?;
                let took = instructions(|| finish(queue, ticket, action, at));
                (if is_retry { 4 } else { 3 }, took)
            }
            Call::Forget(key) => (5, instructions(|| forget(queue, key, at))),
        })
    }

    /// A number for the state. Takes the queue apart.
    ///
    /// Each key has its own hash chain, so the keys may change places without a difference to any
    /// call, and so may the slots. The number is the same for all such states.
    fn fingerprint(&mut self) -> u64 {
        let mut keys = [Key::default(); N];
        self.copy().evict(&mut keys);
        let Self { queue, now, .. } = self;
        // At this time no deadline passes.
        let at = Instant::EPOCH;
        let mut sweep = Sweep::new();
        while queue.at(at).snapshot_some(&mut sweep, |key, state| {
            let has = [state.ready, state.active, state.dirty];
            let has = has.into_iter();
            let left = state
                .due
                .map_or(99, |due| due.as_nanos() + 50 - now.as_nanos());
            let key = &mut keys[number_of(*key)];
            key.has = has.fold(1 + state.priority, |bits, bit| bits << 1 | u8::from(bit));
            key.failures = state.failures as u8;
            // However long ago it has passed, it is due.
            key.left = left.max(49) as u8;
        }) {}
        let mut place = 0;
        // Ended at once, or it would keep the next key of its group from being handed out.
        while let Some(work) = queue.at(at).try_get() {
            place += 1;
            keys[number_of(work.key)].ready = place;
            finish(queue, work.ticket, Action::Success, at);
        }
        queue.at(at).shut_down();
        loop {
            let mut left = None;
            let took = instructions(|| left = queue.at(at).take_delayed());
            let Some(left) = left else { break };
            place += 1;
            let key = &mut keys[number_of(left.key)];
            // Differs with the layout of the heap.
            (key.delayed, key.took) = (place, took);
        }
        keys.sort_unstable();
        let mut hash = Fnv::default();
        keys.hash(&mut hash);
        hash.finish().max(1)
    }

    /// Notes the order in which new keys evict those that are kept for their failures.
    fn evict(&mut self, keys: &mut [Key; N]) {
        let Self { queue, .. } = self;
        for new in 0..N as u8 {
            let _ = add(queue, NEW_KEYS + new, Instant::EPOCH);
            for (key, noted) in KEYS.iter().zip(&mut *keys) {
                noted.kept += u8::from(queue.failures(key) > 0);
            }
        }
    }
}

/// What a state says of a key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    has: u8,
    failures: u8,
    /// How long it is delayed.
    left: u8,
    /// Its places among the ready and the delayed keys.
    ready: u8,
    delayed: u8,
    took: u32,
    /// How many new keys leave its failures alone.
    kept: u8,
}

/// Each key is found at once: a key behind another one in its hash chain would take longer.
fn assert_own_chains<P: Kind, const N: usize>() {
    let mut world = World::<P, N>::new();
    for key in &KEYS[..N] {
        let _ = add(&mut world.queue, *key, Instant::EPOCH);
    }
    let look = |key: &u8| instructions(|| world.queue.failures(black_box(key)));
    assert!(KEYS[..N].iter().all(|key| look(key) == look(&KEYS[0])));
}

fn number_of(key: u8) -> usize {
    let number = KEYS.iter().position(|it| *it == key);
    number.expect("one of the keys")
}

#[inline(never)]
fn add<P: Kind, const N: usize>(queue: &mut Keys<P, N>, key: u8, at: Instant) -> bool {
    queue.at(at).add(black_box(key)).is_ok()
}

#[inline(never)]
fn add_urgent<P: Kind, const N: usize>(queue: &mut Keys<P, N>, key: u8, at: Instant) -> bool {
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    queue.at(at).add_with(black_box(key), urgent).is_ok()
}

#[inline(never)]
fn add_after<P: Kind, const N: usize>(
    queue: &mut Keys<P, N>,
    key: u8,
    delay: Duration,
    at: Instant,
) -> bool {
    queue.at(at).add_after(black_box(key), delay).is_ok()
}

#[inline(never)]
fn get<P: Kind, const N: usize>(queue: &mut Keys<P, N>, at: Instant) -> Option<(u8, Ticket)> {
    let work = queue.at(at).try_get()?;
    Some((work.key, work.ticket))
}

#[inline(never)]
fn finish<P: Kind, const N: usize>(
    queue: &mut Keys<P, N>,
    ticket: Ticket,
    action: Action,
    at: Instant,
) {
    let _ = black_box(queue.at(at).finish(ticket, action));
}

#[inline(never)]
fn forget<P: Kind, const N: usize>(queue: &mut Keys<P, N>, key: u8, at: Instant) -> u32 {
    queue.at(at).forget(&black_box(key))
}

/// The states that are known: a table of fingerprints, and for each state the one before it and the
/// call that leads from there.
pub(crate) struct States {
    seen: [u64; 2 * STATES_MAX],
    reached: Vec<(u32, u8), STATES_MAX>,
}

static STATES: ConstStaticCell<States> = ConstStaticCell::new(States {
    seen: [0; 2 * STATES_MAX],
    reached: Vec::new(),
});

/// Begins to count, and returns room for the states. The board's clock is not started, because its
/// interrupts would count.
pub(crate) fn begin() -> &'static mut States {
    arch::start_counting();
    meter::calibrate();
    STATES.take()
}

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

    /// Makes every call in every state, in the order in which they are found.
    pub(crate) fn explore<P: Kind, const N: usize>(&mut self) -> Found {
        assert_own_chains::<P, N>();
        let mut slowest = [0; WHAT.len() + 1];
        let mut risen_at = [0; WHAT.len() + 1];
        self.seen.fill(0);
        self.reached.clear();
        self.note(World::<P, N>::new().fingerprint());
        let _ = self.reached.push((0, 0));
        let (mut state, mut is_closed) = (0, true);
        // The states up to this one can be reached with so many calls.
        let (mut calls, mut last, mut complete) = (0, 0, 0);
        while state < self.reached.len() {
            let world = self.restore::<P, N>(state);
            for number in 0..Call::count::<N>() {
                let mut next = world.copy();
                let Some((row, took)) = next.make(Call::numbered(number)) else {
                    continue;
                };
                if took > slowest[row] {
                    (slowest[row], risen_at[row]) = (took, calls + 1);
                }
                if self.reached.is_full() {
                    is_closed = false;
                } else if self.note(next.fingerprint()) {
                    let _ = self.reached.push((state as u32, number));
                }
            }
            if state == last {
                (calls, last) = (calls + 1, self.reached.len() - 1);
                if is_closed {
                    complete = calls;
                }
            }
            state += 1;
        }
        Found {
            slowest,
            risen_at,
            states: self.reached.len(),
            complete,
            is_closed,
        }
    }

    /// Repeats the calls that lead to a state.
    fn restore<P: Kind, const N: usize>(&self, state: usize) -> ManuallyDrop<World<P, N>> {
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

/// FNV-1a of 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What an exploration has found.
pub(crate) struct Found {
    slowest: [u32; WHAT.len() + 1],
    /// How many calls lead to the slowest one, with it.
    risen_at: [u32; WHAT.len() + 1],
    states: usize,
    /// Every state that so many calls lead to is among them.
    complete: u32,
    pub(crate) is_closed: bool,
}

pub(crate) fn print(title: &str, prefix: &str, kinds: [&str; 3], found: &[Found; 3]) {
    let [a, b, c] = kinds;
    println!("\n| {title} | {a} | {b} | {c} |\n|---|--:|--:|--:|");
    let row = |what: &dyn core::fmt::Display, of: fn(&Found, usize) -> u32, row: usize| {
        let [a, b, c] = found.each_ref().map(|found| of(found, row));
        println!("| {prefix}: {what} | {a} | {b} | {c} |");
    };
    for (index, what) in WHAT.into_iter().enumerate() {
        row(&what, |found, row| found.slowest[row], index);
    }
    row(&"states", |found, _| found.states as u32, 0);
    row(
        &"calls that lead to all of them",
        |found, _| found.complete,
        0,
    );
    for (index, what) in WHAT.into_iter().enumerate() {
        row(
            &format_args!("calls up to the slowest {what}"),
            |found, row| found.risen_at[row],
            index,
        );
    }
}

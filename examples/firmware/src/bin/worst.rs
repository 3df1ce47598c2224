//! The slowest calls in queues too large to explore: a search for the worst states.
//!
//! A state is made of delayed, due and active keys. The search begins with states that are known to be
//! bad: everything is due at once, in each order, with no key active, every second one or all. Then it
//! changes one thing at a time, and keeps what makes the call slower (hill climbing). The calls are
//! counted on the board, so a better state of the heap or of a chain is found by what it costs.

#![no_std]
#![no_main]

use core::hash::{Hash, Hasher};
use core::hint::black_box;
use core::time::Duration;

use requeue_core::binding::Ticket;
use requeue_core::limiter::{Exponential, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Instant, Queue};
use requeue_firmware::meter::{self, instructions};
use requeue_firmware::{arch, board, end, println};

type Keys<K, const N: usize> = Queue<K, Plain, Exponential, Fixed<N>>;

const MICROSECOND: Duration = Duration::from_micros(1);
/// Shorter delays are due when the call is made.
const DUE: u8 = 128;

/// A key whose hash is that of all others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Same(u8);

impl Hash for Same {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(7);
    }
}

impl From<u8> for Same {
    fn from(key: u8) -> Self {
        Self(key)
    }
}

trait Key: Copy + Eq + Hash + From<u8> {}

impl<K: Copy + Eq + Hash + From<u8>> Key for K {}

const WHAT: [&str; 6] = [
    "`add`",
    "`add_after`",
    "`try_get`",
    "`success`",
    "`retry`",
    "`forget`",
];

/// A state of the queue, and the key of the call.
#[derive(Clone)]
struct State<const N: usize> {
    /// In microseconds. Not delayed if zero.
    delays: [u8; N],
    active: [bool; N],
    /// The keys come in this order: multiples of an odd number.
    step: u8,
    key: u8,
}

impl<const N: usize> State<N> {
    /// Makes a call in this state. Returns its instructions.
    fn measure<K: Key>(&self, row: usize) -> u32 {
        let mut queue: Keys<K, N> = Queue::new(default_item_based());
        let mut runs: [Option<Ticket>; N] = [const { None }; N];
        let mut at = Instant::EPOCH;
        // Room for the call's key, if it is none of them.
        let others = |place: &usize| *place != usize::from(self.key) || self.has(*place);
        let places = (0..N).map(|visit| visit * usize::from(self.step) % N);
        for place in places.clone().filter(|place| self.active[*place]) {
            let _ = queue.at(at).add(K::from(place as u8));
            runs[place] = queue.at(at).try_get().map(|work| work.ticket);
        }
        for place in places.filter(others) {
            let delay = MICROSECOND * u32::from(self.delays[place]);
            if !delay.is_zero() {
                let _ = queue.at(at).add_after(K::from(place as u8), delay);
            }
        }
        at = at + MICROSECOND * u32::from(DUE);
        let (key, run) = (K::from(self.key), runs[usize::from(self.key)].take());
        match row {
            0 => instructions(|| add(&mut queue, key, at)),
            1 => instructions(|| add_after(&mut queue, key, at)),
            2 => instructions(|| try_get(&mut queue, at)),
            3 => run.map_or(0, |run| {
                instructions(|| finish(&mut queue, run, Action::Success, at))
            }),
            4 => run.map_or(0, |run| {
                instructions(|| finish(&mut queue, run, Action::Retry, at))
            }),
            _ => instructions(|| forget(&mut queue, key, at)),
        }
    }

    fn has(&self, place: usize) -> bool {
        self.active[place] || self.delays[place] > 0
    }

    /// Changes one thing.
    fn change(&mut self, random: &mut Random) {
        let place = random.below(N);
        match random.below(6) {
            0 | 1 => self.delays[place] = random.below(256) as u8,
            2 => self.active[place] = !self.active[place],
            3 => self.step = random.below(N) as u8 | 1,
            4 => self.delays.swap(place, random.below(N)),
            _ => self.key = place as u8,
        }
    }
}

/// Numbers that look random. Source: D. E. Knuth, MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

#[inline(never)]
fn add<K: Key, const N: usize>(queue: &mut Keys<K, N>, key: K, at: Instant) -> bool {
    queue.at(at).add(black_box(key)).is_ok()
}

#[inline(never)]
fn add_after<K: Key, const N: usize>(queue: &mut Keys<K, N>, key: K, at: Instant) -> bool {
    queue.at(at).add_after(black_box(key), MICROSECOND).is_ok()
}

#[inline(never)]
fn try_get<K: Key, const N: usize>(queue: &mut Keys<K, N>, at: Instant) -> Option<Ticket> {
    Some(queue.at(at).try_get()?.ticket)
}

#[inline(never)]
fn finish<K: Key, const N: usize>(
    queue: &mut Keys<K, N>,
    run: Ticket,
    action: Action,
    at: Instant,
) {
    let _ = black_box(queue.at(at).finish(run, action));
}

#[inline(never)]
fn forget<K: Key, const N: usize>(queue: &mut Keys<K, N>, key: K, at: Instant) -> u32 {
    queue.at(at).forget(&black_box(key))
}

/// The slowest call of each kind that is found with so many changes of a state.
#[inline(never)]
fn search<K: Key, const N: usize>(changes: usize) -> [u32; WHAT.len()] {
    let mut random = Random(1);
    core::array::from_fn(|row| {
        let (mut best, mut slowest) = (first::<N>(0, 0), 0);
        for (order, active) in (0..3).flat_map(|order| (0..3).map(move |active| (order, active))) {
            for key in [0, N / 2, N - 1] {
                let mut state = first::<N>(order, active);
                state.key = key as u8;
                keep(&mut best, &mut slowest, state.measure::<K>(row), &state);
            }
        }
        for _ in 0..changes {
            let mut state = best.clone();
            state.change(&mut random);
            keep(&mut best, &mut slowest, state.measure::<K>(row), &state);
        }
        slowest
    })
}

fn keep<const N: usize>(best: &mut State<N>, slowest: &mut u32, took: u32, state: &State<N>) {
    if took >= *slowest {
        (*best, *slowest) = (state.clone(), took);
    }
}

/// A state in which everything is due: at once, in the order of the keys or against it, with no key
/// active, every second one, or all.
fn first<const N: usize>(order: usize, active: usize) -> State<N> {
    let scaled = |place: usize| (place * usize::from(DUE) / N) as u8;
    State {
        delays: core::array::from_fn(|place| match order {
            0 => DUE,
            1 => 1 + scaled(place),
            _ => DUE - scaled(place),
        }),
        active: core::array::from_fn(|place| active == 2 || (active == 1 && place % 2 == 0)),
        step: 1,
        key: 0,
    }
}

fn print<K: Key>(title: &str, prefix: &str) {
    let (small, medium, large) = (
        search::<K, 16>(4000),
        search::<K, 64>(1200),
        search::<K, 255>(200),
    );
    println!("\n| {title} | N = 16 | N = 64 | N = 255 |\n|---|--:|--:|--:|");
    for (row, what) in WHAT.into_iter().enumerate() {
        println!(
            "| {prefix}: {what} | {} | {} | {} |",
            small[row], medium[row], large[row]
        );
    }
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    arch::start_counting();
    meter::calibrate();
    let title = "instructions of the slowest call that a search finds";
    print::<u8>(title, "worst state");
    let title = "instructions of the slowest call that a search finds, all keys with one hash";
    print::<Same>(title, "one hash");
    end(true)
}

//! What is added and what runs, counted on both harts: 100,000 adds of 64 keys, from loops or tasks
//! and from interrupts. The first half keeps the harts busy, and the second half lets them sleep.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::{board, println};

pub const KEYS: usize = 64;
pub const ADDS: u32 = 100_000;

type Counts<const N: usize> = [AtomicU32; N];

const fn counts<const N: usize>() -> Counts<N> {
    [const { AtomicU32::new(0) }; N]
}

/// Adds that have begun, and those that have ended.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ADDED: AtomicU32 = AtomicU32::new(0);
static FROM_INTERRUPTS: AtomicU32 = AtomicU32::new(0);
/// How often each key was added, and how often by the time its last run began.
static VERSIONS: Counts<KEYS> = counts();
static SEEN: Counts<KEYS> = counts();
/// Which hart runs a key, plus one.
static RUNNING: Counts<KEYS> = counts();
/// How often a key ran on both harts at once.
static ON_BOTH: AtomicU32 = AtomicU32::new(0);
/// Runs during which the other hart ran another key.
static BESIDE: AtomicU32 = AtomicU32::new(0);
static RUNS: Counts<2> = counts();
/// Numbers that look random: for a hart, and for its interrupts.
static NOISE: [AtomicU32; 4] = [
    AtomicU32::new(1),
    AtomicU32::new(77),
    AtomicU32::new(1001),
    AtomicU32::new(5),
];

/// Where an add comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    Loop,
    Interrupt,
}

/// Returns the next number that looks random, below a bound.
pub fn noise(from: From, below: u32) -> u32 {
    let noise = &NOISE[board::hart() * 2 + usize::from(from == From::Interrupt)];
    let next = noise
        .load(SeqCst)
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    noise.store(next, SeqCst);
    (next >> 8) % below
}

/// Whether the harts are kept busy.
pub fn is_busy() -> bool {
    BEGUN.load(SeqCst) < ADDS / 2
}

/// Whether every add has been made.
pub fn is_over() -> bool {
    ADDED.load(SeqCst) == ADDS
}

/// Makes one add, unless all have begun.
pub fn produce(from: From, add: impl FnOnce(u8)) {
    let has_more = |begun| (begun < ADDS).then_some(begun + 1);
    if BEGUN.fetch_update(SeqCst, SeqCst, has_more).is_err() {
        return;
    }
    let key = noise(from, KEYS as u32) as usize;
    VERSIONS[key].fetch_add(1, SeqCst);
    add(key as u8);
    if from == From::Interrupt {
        FROM_INTERRUPTS.fetch_add(1, SeqCst);
    }
    ADDED.fetch_add(1, SeqCst);
}

/// The run of a key begins, and takes a while.
pub fn begin(key: u8) {
    let key = usize::from(key);
    let own = board::hart() as u32 + 1;
    ON_BOTH.fetch_add(u32::from(RUNNING[key].swap(own, SeqCst) != 0), SeqCst);
    let others = RUNNING.iter().filter(|hart| hart.load(SeqCst) == 3 - own);
    BESIDE.fetch_add(u32::from(others.count() > 0), SeqCst);
    SEEN[key].store(VERSIONS[key].load(SeqCst), SeqCst);
    for _ in 0..noise(From::Loop, 400) {
        core::hint::spin_loop();
    }
}

/// The run of a key has ended.
pub fn finish(key: u8) {
    let own = board::hart() as u32 + 1;
    let was_own = RUNNING[usize::from(key)].swap(0, SeqCst) == own;
    ON_BOTH.fetch_add(u32::from(!was_own), SeqCst);
    RUNS[board::hart()].fetch_add(1, SeqCst);
}

/// Prints the counts, and ends the emulator.
pub fn report(what: &str) -> ! {
    let is_lost = |key: &usize| SEEN[*key].load(SeqCst) != VERSIONS[*key].load(SeqCst);
    let lost = (0..KEYS).filter(is_lost).count();
    let on_both = ON_BOTH.load(SeqCst);
    let (adds, from_interrupts) = (ADDED.load(SeqCst), FROM_INTERRUPTS.load(SeqCst));
    let [zero, one] = [0, 1].map(|hart: usize| RUNS[hart].load(SeqCst));
    let beside = BESIDE.load(SeqCst);
    println!(
        "{what}: {adds} adds, {from_interrupts} from interrupts; {zero} and {one} runs, {beside} beside another"
    );
    println!(
        "{what}: keys on both harts {on_both}, keys without a run after their last add {lost}"
    );
    board::exit(adds == ADDS && on_both == 0 && lost == 0 && zero > 0 && one > 0 && beside > 0)
}

//! Measures a queue with groups on a board: instructions and RAM.
//!
//! An image of its own. With two kinds of queue in one image, less of either is inlined.

#![no_std]
#![no_main]

use core::hint::black_box;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use heapless::Vec;
use requeue_embassy::GroupLimits;
use requeue_embassy::binding::Index;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::{Groups, Plain};
use requeue_embassy::{Queue, WorkQueue};
use requeue_firmware::meter::{self, Clock, Row, instructions};
use requeue_firmware::{arch, board, end, println};

/// Room for eight groups, without rates.
type Eight = Groups<u8, Plain, 8, ()>;
type Keys<'c, const N: usize, I> =
    WorkQueue<CriticalSectionRawMutex, u16, N, Eight, Exponential, 3, ((), I, &'c Clock)>;

const ONE: GroupLimits<()> = GroupLimits::new().max_active(1);

/// The keys of each hundred are a group.
fn queue<const N: usize, I: Index>(clock: &Clock) -> Keys<'_, N, I> {
    let group_of = |key: &u16| (key / 100) as u8;
    let queue = Queue::with_groups(default_item_based(), (), group_of);
    WorkQueue::from_queue(queue, clock)
}

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
    meter::print("instructions, with groups", &small, &medium, &large);
    let (sixteen, more) = (size_of::<Keys<16, u8>>(), size_of::<Keys<64, u8>>());
    println!("\n| bytes of RAM, with eight groups | |\n|---|--:|");
    println!("| **queue of 16 `u16` keys, exponential, 3 waiters** | {sixteen} |");
    println!("| queue of 64 | {more} |");
    end(true)
}

/// A queue of 256 keys is on the stack here, and is moved once.
const RAM_FOR_LARGE: usize = 64 * 1024;

fn measure<const N: usize, I: Index>() -> Vec<Row, 12> {
    let mut rows = Vec::new();
    alone::<N, I>(&mut rows);
    in_turn::<N, I>(&mut rows);
    at_its_limit::<N, I>(&mut rows);
    rows
}

fn row(rows: &mut Vec<Row, 12>, what: &'static str, instructions: u32) {
    rows.push((what, instructions)).expect("room for every row");
}

fn run_one<const N: usize, I: Index>(queue: &Keys<'_, N, I>, key: u16) {
    queue.add(key).expect("room");
    let guard = queue.try_get().expect("a key is ready");
    guard.success();
}

/// A group comes with its only key, and goes with it.
#[inline(never)]
fn alone<const N: usize, I: Index>(rows: &mut Vec<Row, 12>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    queue.limit_groups(ONE);
    // The first key of all takes slots that were never used, which costs more.
    run_one(&queue, 101);
    let add = instructions(|| queue.add(black_box(107)));
    let again = instructions(|| queue.add(black_box(107)));
    let mut guard = None;
    let get = instructions(|| guard = queue.try_get());
    let guard = guard.take().expect("a key is ready");
    let done = instructions(|| guard.success());
    row(rows, "`add` of a key, whose group comes with it", add);
    row(rows, "`try_get`", get);
    row(rows, "`success`, whose group goes", done);
    row(
        rows,
        "**`add`, `try_get`, `success` of one key and its group**",
        add + get + done,
    );
    row(rows, "**`add` of a key that is ready: dedup**", again);
}

/// Of seven groups that have other keys, the first gives one and gets one.
#[inline(never)]
fn in_turn<const N: usize, I: Index>(rows: &mut Vec<Row, 12>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    run_one(&queue, 101);
    for key in [100, 101, 200, 300, 400, 500, 600, 700] {
        queue.add(key).expect("room");
    }
    let add = instructions(|| queue.add(black_box(102)));
    let mut guard = None;
    let get = instructions(|| guard = queue.try_get());
    let guard = guard.take().expect("a key is ready");
    let done = instructions(|| guard.success());
    row(
        rows,
        "**`add`, `try_get`, `success` of one key, seven groups in turn**",
        add + get + done,
    );
}

/// A group that may have one active key, with another that waits for that.
#[inline(never)]
fn at_its_limit<const N: usize, I: Index>(rows: &mut Vec<Row, 12>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    queue.limit_groups(ONE);
    run_one(&queue, 101);
    queue.add(101).expect("room");
    let guard = queue.try_get().expect("a key is ready");
    queue.add(102).expect("room");
    let nothing = instructions(|| black_box(queue.try_get().is_none()));
    let done = instructions(|| guard.success());
    row(rows, "`try_get` while the group is at its limit", nothing);
    row(rows, "`success` that lets its next key run", done);
}

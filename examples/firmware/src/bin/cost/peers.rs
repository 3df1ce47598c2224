//! The alternatives: embassy-sync's channel, which does not coalesce, and a map and a deque by
//! hand.

use core::hint::black_box;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use requeue_firmware::meter::{Row, instructions};
use requeue_firmware::{board, println};

use crate::by_hand::ByHand;

pub fn print() {
    println!("\n| instructions, alternatives | N = 16 | N = 64 | N = 256 |\n|---|--:|--:|--:|");
    let is_large = board::RAM_BYTES >= crate::RAM_FOR_LARGE;
    let large = if is_large { channel::<256>() } else { [NONE] };
    print_rows(&channel::<16>(), &channel::<64>(), &large);
    let large = if is_large {
        by_hand::<256>()
    } else {
        [NONE; 3]
    };
    print_rows(&by_hand::<16>(), &by_hand::<64>(), &large);
    println!(
        "| bytes of RAM: channel | {} | {} | {} |",
        size_of::<Channel<CriticalSectionRawMutex, u16, 16>>(),
        size_of::<Channel<CriticalSectionRawMutex, u16, 64>>(),
        size_of::<Channel<CriticalSectionRawMutex, u16, 256>>()
    );
    println!(
        "| map and deque | {} | {} | {} |",
        size_of::<ByHand<16>>(),
        size_of::<ByHand<64>>(),
        size_of::<ByHand<256>>()
    );
}

/// For a board without the memory for it.
const NONE: Row = ("", 0);

fn print_rows(small: &[Row], medium: &[Row], large: &[Row]) {
    for (((what, small), (_, medium)), large) in small.iter().zip(medium).zip(large) {
        match large {
            &NONE => println!("| {what} | {small} | {medium} | – |"),
            (_, large) => println!("| {what} | {small} | {medium} | {large} |"),
        }
    }
}

#[inline(never)]
fn channel<const N: usize>() -> [Row; 1] {
    let channel: Channel<CriticalSectionRawMutex, u16, N> = Channel::new();
    let send = instructions(|| channel.try_send(black_box(7)));
    let receive = instructions(|| channel.try_receive());
    [("channel: `try_send`, `try_receive`", send + receive)]
}

#[inline(never)]
fn by_hand<const N: usize>() -> [Row; 3] {
    let queue: ByHand<N> = ByHand::new();
    queue.add(1).expect("room");
    queue.get(0).expect("it is ready");
    queue.done(1);
    let add = instructions(|| queue.add(black_box(7)));
    let again = instructions(|| queue.add(black_box(7)));
    let get = instructions(|| queue.get(0));
    let done = instructions(|| queue.done(black_box(7)));
    for key in 1..N as u16 {
        queue.add_at(key, 1_000_000).expect("room");
    }
    let later = instructions(|| queue.add_at(black_box(0), 1));
    let release = instructions(|| queue.get(1));
    [
        ("map and deque: add, get, done", add + get + done),
        ("map and deque: dedup", again),
        (
            "map and deque: add after a delay, and its release",
            later + release,
        ),
    ]
}

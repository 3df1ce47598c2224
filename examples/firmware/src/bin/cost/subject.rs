//! The queue, through the adapter and its critical section.

use core::hint::black_box;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use heapless::Vec;
use requeue_embassy::binding::Index;
use requeue_embassy::limiter::{Exponential, NoLimit, default_item_based};
use requeue_embassy::priority::{Groups, Levels, Plain, WithPolicy, WithSlack, WithSuspension};
use requeue_embassy::storage::Fixed;
use requeue_embassy::{Action, Queue, WorkQueue};
pub use requeue_firmware::meter::Clock;
use requeue_firmware::meter::{Row, instructions};
use requeue_firmware::println;

pub type Keys<'c, const N: usize, I, L = Exponential> =
    WorkQueue<CriticalSectionRawMutex, u16, N, Plain, L, 3, ((), I, &'c Clock)>;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MILLISECOND: Duration = Duration::from_millis(1);

/// A queue whose clock stands still.
pub fn queue<const N: usize, I: Index>(clock: &Clock) -> Keys<'_, N, I> {
    WorkQueue::from_queue(Queue::new(default_item_based()), clock)
}

/// Everything that is measured, with room for `N` keys.
pub fn measure<const N: usize, I: Index>() -> Vec<Row, 24> {
    let mut rows = Vec::new();
    immediate::<N, I>(&mut rows);
    delayed::<N, I>(&mut rows);
    waiting::<N, I>(&mut rows);
    worst::<N, I>(&mut rows);
    rows
}

fn row(rows: &mut Vec<Row, 24>, what: &'static str, instructions: u32) {
    rows.push((what, instructions)).expect("room for every row");
}

#[inline(never)]
fn immediate<const N: usize, I: Index>(rows: &mut Vec<Row, 24>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    // The first key of all takes a slot that was never used, which costs more.
    run_one(&queue, 1);
    let add = instructions(|| queue.add(black_box(7)));
    let again = instructions(|| queue.add(black_box(7)));
    let mut guard = None;
    let get = instructions(|| guard = queue.try_get());
    let dirty = instructions(|| queue.add(black_box(7)));
    let guard = guard.take().expect("a key is ready");
    let done_dirty = instructions(|| guard.release());
    let guard = queue.try_get().expect("it is ready again");
    let done = instructions(|| guard.success());
    row(rows, "`add` of a key", add);
    row(rows, "`try_get`", get);
    row(rows, "`success`", done);
    row(
        rows,
        "**`add`, `try_get`, `success` of one key**",
        add + get + done,
    );
    row(rows, "**`add` of a key that is ready: dedup**", again);
    row(rows, "`add` of an active key", dirty);
    row(
        rows,
        "`release` of a key that was added meanwhile",
        done_dirty,
    );

    queue.add(9).expect("room");
    let guard = queue.try_get().expect("a key is ready");
    let retry = instructions(|| guard.retry());
    row(rows, "`retry`, nothing else delayed", retry);
}

fn run_one<const N: usize, I: Index>(queue: &Keys<'_, N, I>, key: u16) {
    queue.add(key).expect("room");
    let guard = queue.try_get().expect("a key is ready");
    guard.success();
}

/// With all slots but one delayed.
#[inline(never)]
fn delayed<const N: usize, I: Index>(rows: &mut Vec<Row, 24>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    queue.add_after(0, MILLISECOND).expect("room");
    clock.advance(MILLISECOND);
    let guard = queue.try_get().expect("the key is due");
    guard.success();
    let alone = instructions(|| queue.add_after(black_box(0), MILLISECOND));
    clock.advance(MILLISECOND);
    let mut guard = None;
    let alone_release = instructions(|| guard = queue.try_get());
    let guard = guard.expect("the key is due");
    guard.success();

    for key in 1..N as u16 {
        let delay = SECOND + MILLISECOND * u32::from(key);
        queue.add_after(key, delay).expect("room");
    }
    let latest = instructions(|| queue.add_after(black_box(0), 1000 * SECOND));
    queue.add_after(0, MILLISECOND).expect("it has a slot");
    clock.advance(MILLISECOND);
    let mut guard = None;
    let release = instructions(|| guard = queue.try_get());
    guard.take().expect("the key is due").success();
    let earliest = instructions(|| queue.add_after(black_box(0), MILLISECOND));
    clock.advance(MILLISECOND);
    let guard = queue.try_get().expect("the key is due");
    guard.success();
    row(
        rows,
        "**`add_after` and its release, nothing else delayed**",
        alone + alone_release,
    );
    row(rows, "`add_after`, later than N - 1 others", latest);
    row(rows, "`add_after`, sooner than N - 1 others", earliest);
    row(
        rows,
        "`try_get` that releases one of N delayed keys",
        release,
    );
    row(
        rows,
        "**`add_after` and its release, N - 1 others delayed**",
        earliest + release,
    );
}

#[inline(never)]
fn waiting<const N: usize, I: Index>(rows: &mut Vec<Row, 24>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    run_one(&queue, 1);
    let mut get = pin!(queue.get());
    let sleep = instructions(|| poll(get.as_mut()));
    let wake = instructions(|| queue.add(black_box(7)));
    let mut got = None;
    let wake_up = instructions(|| {
        if let Poll::Ready(guard) = poll(get.as_mut()) {
            got = guard.ok();
        }
    });
    let guard = got.take().expect("it was woken for a key");
    let mut next = pin!(queue.next(guard, Action::Success));
    let turn = instructions(|| poll(next.as_mut()));
    row(rows, "`get().await` that goes to sleep", sleep);
    row(rows, "`add` that wakes it", wake);
    row(rows, "`get().await` that is woken with a key", wake_up);
    row(rows, "`next().await`: ends a run, and goes to sleep", turn);
}

/// With every slot taken.
#[inline(never)]
fn worst<const N: usize, I: Index>(rows: &mut Vec<Row, 24>) {
    let clock = Clock::new();
    let queue = queue::<N, I>(&clock);
    for key in 0..N as u16 {
        queue.add_after(key, SECOND).expect("room");
    }
    let full = instructions(|| queue.add(black_box(u16::MAX)));
    row(rows, "`add` of a key that finds no room", full);

    // Keys with one hash: the worst that an attacker who chooses the keys can do.
    type Parts<'c, I> = ((), I, &'c Clock);
    let same: WorkQueue<CriticalSectionRawMutex, Same, N, Plain, NoLimit, 3, Parts<'_, I>> =
        WorkQueue::from_queue(Queue::new(NoLimit), &clock);
    for key in 0..N as u16 {
        same.add(Same(key)).expect("room");
    }
    let chained = instructions(|| same.add(black_box(Same(0))));
    row(rows, "`add` of a key when all N share a hash", chained);
}

/// A key whose hash is that of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Same(u16);

impl core::hash::Hash for Same {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write_u16(7);
    }
}

/// RAM.
pub fn print_sizes() {
    type Of<const N: usize, I = u8> = Keys<'static, N, I>;
    println!("\n| bytes of RAM | |\n|---|--:|");
    let (sixteen, more) = (size_of::<Of<16>>(), size_of::<Of<64>>());
    println!("| **queue of 16 `u16` keys, exponential, 3 waiters** | {sixteen} |");
    println!("| queue of 64 | {more} |");
    println!("| queue of 256 | {} |", size_of::<Of<256, u16>>());
    let per_slot = (more - sixteen) * 10 / 48;
    println!(
        "| **for each slot** | {}.{} |",
        per_slot / 10,
        per_slot % 10
    );
    type Other<P> = WorkQueue<CriticalSectionRawMutex, u16, 16, P, Exponential, 3, Parts>;
    type Parts = ((), u8, &'static Clock);
    for (what, bytes) in [
        (
            "with four groups",
            size_of::<Other<Groups<u8, Plain, 4, ()>>>(),
        ),
        (
            "with four groups and their rates",
            size_of::<Other<Groups<u8, Plain, 4>>>(),
        ),
        ("with two levels", size_of::<Other<Levels<2>>>()),
        ("with a policy", size_of::<Other<WithPolicy>>()),
        ("with suspensions", size_of::<Other<WithSuspension>>()),
        ("with slack", size_of::<Other<WithSlack>>()),
    ] {
        println!("| queue of 16 {what} | {bytes} |");
    }
    let bare = size_of::<Queue<u16, Plain, Exponential, Fixed<16>>>();
    println!("| of the queue of 16, the state machine | {bare} |");
    let clock = Clock::new();
    let queue = queue::<16, u8>(&clock);
    println!("| the future of `get` | {} |", size_of_val(&queue.get()));
}

/// Polls a future once.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

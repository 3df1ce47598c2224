//! Cache lines that travel: how many lines one core has to fetch from another for each key, if one
//! core adds keys and the other works.
//!
//! The program runs itself under valgrind's lackey, which records every access to memory. Accesses
//! of adds count for one core, and accesses of a worker for the other. A line travels if a core
//! needs it after the other core has changed it. The counts are the same on every run.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use requeue_bench::harness::{Suite, machine};
use requeue_bench::keys::Random;
use requeue_bench::taking::ready;
use requeue_bench::threads::{BATCH, Numbers};
use requeue_std::{Action, ManualClock, WorkQueue};

const SEED: u64 = 20_261_126;
/// How many keys wait.
const WAITING: usize = 1_000;
/// How many keys are counted, after three times as many for warming up.
const KEYS: usize = 32 * BATCH;
/// An access this close to a local variable is to the stack, which no other core reads.
const STACK: u64 = 1 << 16;

/// The core that works next, as marked in the trace: none, the producer, or the worker.
static TURN: AtomicU32 = AtomicU32::new(0);

/// Ways to send keys through queues, by the names of their rows and columns.
const CASES: [(&str, &str, fn()); 4] = [
    ("one by one", "requeue", one_by_one),
    ("one by one", "numbers", numbers::<1>),
    ("batches of 32", "requeue", batches),
    ("batches of 32", "numbers", numbers::<BATCH>),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, work, name] = arguments.as_slice()
        && flag == "--run"
    {
        let mut cases = CASES.iter();
        if let Some((.., run)) = cases.find(|(row, column, _)| row == work && column == name) {
            run();
        }
        return ExitCode::SUCCESS;
    }
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Cache lines that travel, per key");
    for contenders in CASES.chunks(2) {
        let work = contenders[0].0;
        if !suite.asks_for(work) {
            continue;
        }
        let mut row = format!("| {work} |");
        for (_, name, _) in contenders {
            let Some([add, take]) = travelling(work, name) else {
                eprintln!("valgrind is needed to see accesses to memory, and did not run");
                return ExitCode::FAILURE;
            };
            row += &format!(" {add:.2} + {take:.2} |");
            suite.record(work, WAITING as u64, name, add + take, "lines");
        }
        suite.print(&["requeue, add + take", "numbers, add + take"], &row);
    }
    suite.finish()
}

fn one_by_one() {
    let ready = ready(WAITING, &mut Random::new(!SEED));
    let queue = WorkQueue::from_queue(ready, ManualClock::new());
    let mut held = queue.get().ok();
    let add = |keys: &[u64]| {
        for &key in keys {
            let _ = queue.add(key);
        }
    };
    play(1, add, || {
        let next = held.take().map(|guard| queue.next(guard, Action::Success));
        held = next.and_then(Result::ok);
    });
}

fn batches() {
    let ready = ready(WAITING, &mut Random::new(!SEED));
    let queue = WorkQueue::from_queue(ready, ManualClock::new());
    let add = |keys: &[u64]| {
        let _ = queue.add_many(keys.iter().copied());
    };
    play(BATCH, add, || {
        if let Ok(batch) = queue.get_many(BATCH) {
            let _ = batch.finish(Action::Success);
        }
    });
}

fn numbers<const COUNT: usize>() {
    // Not on the stack, because the stack is not counted.
    let numbers = Box::new(Numbers::<u64, COUNT>::default());
    numbers.add(Random::new(!SEED).keys(WAITING).into_iter());
    let mut taken = Vec::with_capacity(COUNT);
    let add = |keys: &[u64]| numbers.add(keys.iter().copied());
    play(COUNT, add, || {
        numbers.take(&mut taken);
        taken.clear();
    });
}

/// Lets a producer add keys, so many at a time, and a worker take as many after each.
fn play(count: usize, add: impl Fn(&[u64]), mut take: impl FnMut()) {
    let keys: Vec<u64> = Random::new(SEED).keys(4 * KEYS);
    let on_stack = black_box(0_u8);
    let places = format!(
        "\nturn {:p} stack {:p}\n",
        &raw const TURN, &raw const on_stack
    );
    // In one write, or the trace is mixed with the words.
    let _ = std::io::stderr().write_all(places.as_bytes());
    for keys in keys.chunks(count) {
        TURN.store(1, Ordering::Relaxed);
        add(keys);
        TURN.store(2, Ordering::Relaxed);
        take();
    }
    // Dropping is not counted.
    std::process::exit(0);
}

/// The state of a line: whether each core has an up-to-date copy, and whether it has ever used it.
#[derive(Clone, Copy, Default)]
struct Line {
    valid: [bool; 2],
    used: [bool; 2],
}

/// How many lines travel to the producer and to the worker for each key. `None` if valgrind is
/// missing or fails.
fn travelling(work: &str, name: &str) -> Option<[f64; 2]> {
    let mut program = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes"])
        .arg(std::env::current_exe().ok()?)
        .args(["--run", work, name])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let (mut turn, mut stack) = (None, 0);
    let mut lines: HashMap<u64, Line> = HashMap::new();
    let (mut turns, mut counted) = (0_usize, [0_usize; 2]);
    let count = if work == CASES[0].0 { 1 } else { BATCH };
    for text in BufReader::new(program.stderr.take()?).split(b'\n') {
        let text = String::from_utf8(text.ok()?).ok()?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if let ["turn", at, "stack", local] = words[..] {
            turn = Some(address(at)?);
            stack = address(local)?;
        }
        let ([kind @ ("L" | "S" | "M"), access], Some(turn)) = (&words[..], turn) else {
            continue;
        };
        let at = address(access.split(',').next()?)?;
        if at == turn {
            turns += 1;
            continue;
        }
        if turns == 0 || at.abs_diff(stack) < STACK {
            continue;
        }
        let side = (turns - 1) % 2;
        let line = lines.entry(at / 64).or_default();
        if !line.valid[side] && line.used[1 - side] && (turns - 1) / 2 * count >= 3 * KEYS {
            counted[side] += 1;
        }
        line.valid[side] = true;
        line.used[side] = true;
        if *kind != "L" {
            line.valid[1 - side] = false;
        }
    }
    let succeeded = program.wait().ok()?.success() && turns > 0;
    succeeded.then(|| counted.map(|lines| lines as f64 / KEYS as f64))
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

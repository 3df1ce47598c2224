//! Threads with u64 keys, compared with client-go itself. This program and the one built from
//! `client-go/main.go` run in turn:
//! `cargo run --profile bench -p requeue-bench --features peers --bin client-go -- PROGRAM`.

use std::error::Error;
use std::hint::black_box;
use std::process::Command;

use requeue_bench::harness::{machine, median};
use requeue_bench::threads::{self, Batches, Crew, GetThenDone, OneByOne, Shared};
use requeue_bench::workloads::Round;

const KEYS: u64 = 1_000_000;

/// How often each program runs, and how many rounds each time.
const TURNS: usize = 4;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(program) = std::env::args().nth(1) else {
        return Err("name the program that client-go/main.go is built to".into());
    };
    println!("{}\n", machine());
    println!("| work | client-go | get, then done | with the next get | batches of 32 |");
    println!("|---|--:|--:|--:|--:|");
    for count in [1, 2, 8] {
        let crew = Crew {
            producers: count,
            workers: count,
        };
        let mut nanos = [const { Vec::new() }; 4];
        for _ in 0..TURNS {
            let [theirs, ours @ ..] = &mut nanos;
            let arguments = [count, count, ROUNDS].map(|number| number.to_string());
            let output = Command::new(&program).args(arguments).output()?;
            for line in str::from_utf8(&output.stdout)?.lines() {
                theirs.push(line.parse::<f64>()?);
            }
            let rounds = [
                round::<GetThenDone<u64>>,
                round::<OneByOne<u64>>,
                round::<Batches<u64>>,
            ];
            for (nanos, round) in ours.iter_mut().zip(rounds) {
                nanos.extend((0..ROUNDS).map(|_| round(crew)));
            }
        }
        let [theirs, ours @ ..] = nanos.map(|nanos| median(&nanos));
        let ours = ours.map(|nanos| format!("{nanos:.0} ns **{:.2}×**", theirs / nanos));
        println!(
            "| {count}/{count} | {theirs:.0} ns | {} |",
            ours.join(" | ")
        );
    }
    Ok(())
}

/// Nanoseconds per key of one round.
fn round<Q: Shared<u64> + Default>(crew: Crew) -> f64 {
    let Round { time, operations } = threads::run(&Q::default(), (0..KEYS).collect(), crew, || {
        |key: &u64| {
            black_box(key);
        }
    });
    time.as_nanos() as f64 / operations as f64
}

//! The randomised tests, in rounds with new seeds, until the time is over.

use std::time::{Duration, Instant, SystemTime};

use crate::cmd::cmd;
use crate::report::{Stop, Verdict};

/// Tests, and where their seed goes. Without one, all rounds would be the same, so there is only
/// one.
const PARTS: [&str; 6] = [
    "REQUEUE_SOAK=2 cargo test --profile soak -p requeue-proptest-tests --test explore -- --nocapture",
    "PROPTEST_CASES=4000 PROPTEST_RNG_SEED=SEED \
     cargo test --profile soak -p requeue-proptest-tests --test conformance drawn",
    "PROPTEST_CASES=400 REQUEUE_SOAK=2 PROPTEST_RNG_SEED=SEED \
     cargo test --profile soak -p requeue-proptest-tests --test combinations",
    "REQUEUE_SOAK=50 REQUEUE_SEED=SEED \
     cargo test --profile soak -p requeue-fuzz --tests -- --nocapture",
    "REQUEUE_SIM_SEEDS=5000 REQUEUE_SIM_FIRST=SEED \
     cargo test --profile soak -p requeue-proptest-tests --test simulation",
    "RUSTFLAGS=--cfg=shuttle SCHEDULES_SEED=SEED \
     cargo test --release -p requeue-schedules -- --nocapture",
];

/// `--minutes M [--seed S]`. Every part runs once, and then again until the time is over.
///
/// # Errors
///
/// Wrong arguments, or a part that fails.
pub(crate) fn run(words: &[&str]) -> Verdict {
    let fresh = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)?
        .as_nanos() as u64;
    let number = |word: &str| word.parse::<u64>().ok();
    let (minutes, seed) = match words {
        ["--minutes", minutes] => (number(minutes), Some(fresh)),
        ["--minutes", minutes, "--seed", seed] => (number(minutes), number(seed)),
        _ => (None, None),
    };
    let (Some(minutes), Some(mut seed)) = (minutes, seed) else {
        let usage = "write `soak --minutes M`, and perhaps `--seed S` after it";
        return Err(Stop::Mistake(usage.to_owned()));
    };
    println!("soak: {minutes} minutes, --seed {seed}; each round has another seed");
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    PARTS.iter().try_for_each(|part| round(part, seed))?;
    let seeded = PARTS.iter().filter(|part| part.contains("SEED "));
    for part in seeded.cycle().take_while(|_| Instant::now() < end) {
        // Tests count upwards from the seed, so the next one is far away.
        seed = seed.wrapping_add(1 << 40);
        round(part, seed)?;
    }
    println!("soak: nothing found");
    Ok(())
}

/// Shows a line that repeats the round, and runs it.
fn round(part: &str, seed: u64) -> Verdict {
    cmd(&part.replace("=SEED ", &format!("={seed} "))).run()
}

//! The randomised tests, in rounds with new seeds, until the time is over.

use std::time::{Duration, Instant, SystemTime};

use crate::cmd::{Cmd, cmd};
use crate::report::{Stop, Verdict};

/// Tests, and the variable for their seed. Without one, all rounds would be the same, so there is
/// only one.
const PARTS: [(&str, Option<&str>); 6] = [
    (
        "REQUEUE_SOAK=2 cargo test --profile soak -p requeue-proptest --lib explore -- --nocapture",
        None,
    ),
    (
        "PROPTEST_CASES=4000 cargo test --profile soak -p requeue-proptest-tests --test conformance drawn",
        Some("PROPTEST_RNG_SEED"),
    ),
    (
        "PROPTEST_CASES=400 REQUEUE_SOAK=2 cargo test --profile soak -p requeue-proptest-tests --test combinations",
        Some("PROPTEST_RNG_SEED"),
    ),
    (
        "REQUEUE_SOAK=50 cargo test --profile soak -p requeue-fuzz --tests -- --nocapture",
        Some("REQUEUE_SEED"),
    ),
    (
        "REQUEUE_SIM_SEEDS=5000 cargo test --profile soak -p requeue-proptest-tests --test simulation",
        Some("REQUEUE_SIM_FIRST"),
    ),
    (
        "RUSTFLAGS=--cfg=shuttle cargo test --release -p requeue-schedules -- --nocapture",
        Some("SCHEDULES_SEED"),
    ),
];

/// `--minutes M [--seed S]`. Every part has its share of the time, and at least one round. A round
/// that exceeds the share is finished, and later parts get less time.
///
/// # Errors
///
/// Wrong arguments, or a part that fails.
pub(crate) fn run(words: &[&str]) -> Verdict {
    let (minutes, seed) = call(words).map_err(Stop::Mistake)?;
    let seed = seed.unwrap_or_else(fresh_seed);
    println!("soak: {minutes} minutes, --seed {seed}; each round has another seed");
    let start = Instant::now();
    let end = start + Duration::from_secs(minutes * 60);
    for ((line, variable), left) in PARTS.iter().zip((1..=PARTS.len() as u32).rev()) {
        // An equal share of the remaining time for each remaining part.
        let until = Instant::now() + end.saturating_duration_since(Instant::now()) / left;
        let rounds = if variable.is_some() { u64::MAX } else { 1 };
        for number in 0..rounds {
            if number > 0 && Instant::now() >= until {
                break;
            }
            // The shown line repeats the round.
            let seeded = |line: Cmd, name: &&str| line.env(name, nth(seed, number).to_string());
            variable.iter().fold(cmd(line), seeded).run()?;
        }
    }
    println!("soak: nothing found in {} s", start.elapsed().as_secs());
    Ok(())
}

/// The seed of a round. Tests count upwards from it, so the next one is far away.
const fn nth(seed: u64, round: u64) -> u64 {
    seed.wrapping_add(round.wrapping_mul(1 << 40))
}

fn call(words: &[&str]) -> Result<(u64, Option<u64>), String> {
    let (mut minutes, mut seed) = (None, None);
    for pair in words.chunks(2) {
        let place = match pair {
            ["--minutes", _] => &mut minutes,
            ["--seed", _] => &mut seed,
            other => return Err(format!("not understood: `{}`", other.join(" "))),
        };
        let number = pair[1].parse();
        *place = Some(number.map_err(|_| format!("`{}` is no number", pair[1]))?);
    }
    Ok((minutes.ok_or("how long? --minutes M")?, seed))
}

fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_the_minutes_and_perhaps_the_seed() {
        assert_eq!(call(&["--minutes", "5"]), Ok((5, None)));
        assert_eq!(call(&["--seed", "7", "--minutes", "5"]), Ok((5, Some(7))));
        for wrong in [
            &[][..],
            &["--minutes"],
            &["--minutes", "x"],
            &["5"],
            &["--hours", "5"],
        ] {
            assert!(call(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn rounds_begin_with_the_seed_and_go_far() {
        assert_eq!(nth(7, 0), 7);
        assert!(nth(7, 1) - nth(7, 0) > 1_000_000_000);
    }

    #[test]
    fn every_part_but_the_exhaustive_one_takes_a_seed() {
        let without = PARTS.iter().filter(|(_, variable)| variable.is_none());
        let lines: Vec<&str> = without.map(|(line, _)| *line).collect();
        assert!(
            matches!(lines[..], [line] if line.contains("--lib explore")),
            "{lines:?}"
        );
    }
}

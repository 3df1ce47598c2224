//! The randomised tests, in rounds with new seeds, until the time is over.

use std::time::{Duration, Instant, SystemTime};

use crate::cmd::cmd;
use crate::report::{Stop, Verdict};

/// Some tests, and the environment variables for their seed and duration.
struct Part {
    name: &'static str,
    line: &'static str,
    /// The same in every round.
    variables: &'static [(&'static str, &'static str)],
    /// The variable for the seed. Without one, all rounds would be the same, so there is only one.
    seed: Option<&'static str>,
}

/// Tests with proptest, worlds and schedules have their own variables. All others use
/// `REQUEUE_SEED` and `REQUEUE_SOAK`.
const PARTS: [Part; 6] = [
    Part {
        name: "explore",
        line: "cargo test --profile soak -p requeue-proptest-tests --test explore -- --nocapture",
        variables: &[("REQUEUE_SOAK", "2")],
        seed: None,
    },
    Part {
        name: "sequences",
        line: "cargo test --profile soak -p requeue-proptest-tests --test conformance drawn",
        variables: &[("PROPTEST_CASES", "4000")],
        seed: Some("PROPTEST_RNG_SEED"),
    },
    Part {
        name: "combinations",
        line: "cargo test --profile soak -p requeue-proptest-tests --test combinations",
        variables: &[("PROPTEST_CASES", "400"), ("REQUEUE_SOAK", "2")],
        seed: Some("PROPTEST_RNG_SEED"),
    },
    Part {
        name: "bytes",
        line: "cargo test --profile soak -p requeue-fuzz --tests -- --nocapture",
        variables: &[("REQUEUE_SOAK", "50")],
        seed: Some("REQUEUE_SEED"),
    },
    Part {
        name: "worlds",
        line: "cargo test --profile soak -p requeue-proptest-tests --test simulation",
        variables: &[("REQUEUE_SIM_SEEDS", "5000")],
        seed: Some("REQUEUE_SIM_FIRST"),
    },
    Part {
        name: "schedules",
        line: "cargo test --release -p requeue-schedules -- --nocapture",
        variables: &[("RUSTFLAGS", "--cfg shuttle -D warnings")],
        seed: Some("SCHEDULES_SEED"),
    },
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
    for (part, left) in PARTS.iter().zip((1..=PARTS.len() as u32).rev()) {
        // An equal share of the remaining time for each remaining part.
        let until = Instant::now() + end.saturating_duration_since(Instant::now()) / left;
        for number in 0.. {
            if number > 0 && (part.seed.is_none() || Instant::now() >= until) {
                break;
            }
            println!("soak: {}, round {number}", part.name);
            round(part, nth(seed, number))?;
        }
    }
    println!("soak: nothing found in {} s", start.elapsed().as_secs());
    Ok(())
}

/// Runs a part once. The shown line repeats it.
fn round(part: &Part, seed: u64) -> Verdict {
    let mut line = cmd(part.line);
    for (variable, value) in part.variables {
        line = line.env(variable, *value);
    }
    if let Some(variable) = part.seed {
        line = line.env(variable, seed.to_string());
    }
    line.run()
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
        let without = PARTS.iter().filter(|part| part.seed.is_none());
        assert!(without.map(|part| part.name).eq(["explore"]));
    }
}

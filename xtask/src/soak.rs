//! The tests of chance, round after round with seeds of their own, until the time is over.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::invocation::Invocation;
use crate::workspace::Workspace;

/// Some tests, and how the environment tells them of the seed and of how long to go on.
struct Part {
    name: &'static str,
    line: &'static str,
    /// Variables that are the same in every round.
    variables: &'static [(&'static str, &'static str)],
    /// The variables that take the seed. Without one every round is the same, and there is one.
    seeds: &'static [&'static str],
}

/// What draws with proptest takes its own variables, and so do worlds and schedules; everything
/// else takes `REQUEUE_SEED` and `REQUEUE_SOAK`.
const PARTS: [Part; 7] = [
    Part {
        name: "explore",
        line: "cargo test --profile soak -p requeue-proptest-tests --test explore -- --nocapture",
        variables: &[("REQUEUE_SOAK", "2")],
        seeds: &[],
    },
    Part {
        name: "sequences",
        line: "cargo test --profile soak -p requeue-proptest-tests --test conformance drawn",
        variables: &[("PROPTEST_CASES", "4000")],
        seeds: &["PROPTEST_RNG_SEED"],
    },
    Part {
        name: "combinations",
        line: "cargo test --profile soak -p requeue-proptest-tests --test combinations",
        variables: &[("PROPTEST_CASES", "400"), ("REQUEUE_SOAK", "2")],
        seeds: &["PROPTEST_RNG_SEED"],
    },
    Part {
        name: "faults",
        line: "cargo test --profile soak -p requeue-proptest-tests --test faults",
        variables: &[("REQUEUE_SOAK", "5")],
        seeds: &["REQUEUE_SEED"],
    },
    Part {
        name: "bytes",
        line: "cargo test --profile soak -p requeue-fuzz --tests -- --nocapture",
        variables: &[("REQUEUE_SOAK", "50")],
        seeds: &["REQUEUE_SEED"],
    },
    Part {
        name: "worlds",
        line: "cargo test --profile soak -p requeue-proptest-tests --test simulation",
        variables: &[("REQUEUE_SIM_SEEDS", "5000")],
        seeds: &["REQUEUE_SIM_FIRST"],
    },
    Part {
        name: "schedules",
        line: "cargo test --release -p requeue-schedules -- --nocapture",
        variables: &[("RUSTFLAGS", "--cfg shuttle -D warnings")],
        seeds: &["SCHEDULES_SEED"],
    },
];

/// `--minutes M [--seed S]`. Every part has its share of the time, and one round at least; the
/// round under way when the share is over is finished, at the cost of those that come after.
///
/// # Errors
///
/// A mistake in the call, or a part that cannot be run.
pub(crate) fn run(words: &[String]) -> Result<bool, String> {
    let Call { minutes, seed } = Call::read(words)?;
    let workspace = Workspace::load()?;
    let seed = seed.unwrap_or_else(fresh_seed);
    println!("soak: {minutes} minutes, --seed {seed}; each round begins somewhere else");
    let start = Instant::now();
    let end = start + Duration::from_secs(minutes * 60);
    for (index, part) in PARTS.iter().enumerate() {
        let share = share(
            end.saturating_duration_since(Instant::now()),
            PARTS.len() - index,
        );
        let until = Instant::now() + share;
        for round in 0.. {
            if round > 0 && (part.seeds.is_empty() || Instant::now() >= until) {
                break;
            }
            if !part.run(round, nth(seed, round), &workspace)? {
                return Ok(false);
            }
        }
    }
    println!("soak: nothing found in {} s", start.elapsed().as_secs());
    Ok(true)
}

/// What of the time that is left belongs to the first of so many parts that are left.
fn share(left: Duration, parts: usize) -> Duration {
    let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
    left / parts
}

/// The seed of a round. Tests count upwards from it, so that the next is far away.
const fn nth(seed: u64, round: u64) -> u64 {
    seed.wrapping_add(round.wrapping_mul(1 << 40))
}

#[derive(Debug, PartialEq, Eq)]
struct Call {
    minutes: u64,
    seed: Option<u64>,
}

impl Call {
    fn read(words: &[String]) -> Result<Self, String> {
        let (mut minutes, mut seed) = (None, None);
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("`{}` of what?", pair.join(" ")));
            };
            let place = match name.as_str() {
                "--minutes" => &mut minutes,
                "--seed" => &mut seed,
                _ => return Err(format!("unexpected argument `{name}`")),
            };
            let number = value.parse().map_err(|_| format!("`{value}` is no number"));
            *place = Some(number?);
        }
        let minutes = minutes.ok_or("how long? --minutes M")?;
        Ok(Self { minutes, seed })
    }
}

impl Part {
    /// Runs the part, and says in one line how it went. What a part that failed has printed last
    /// is repeated, with the command that repeats it.
    fn run(&self, round: u64, seed: u64, workspace: &Workspace) -> Result<bool, String> {
        let start = Instant::now();
        let mut line = Invocation::new(self.line);
        for (name, value) in self.variables {
            line = line.variable(name, *value);
        }
        for name in self.seeds {
            line = line.variable(name, seed.to_string());
        }
        let file = self.file(&workspace.target())?;
        let (succeeded, output) = line.capture(&workspace.root, &file)?;
        let said = Said::read(&output);
        let seconds = start.elapsed().as_secs();
        println!(
            "round {round}: {:<10} {said} in {seconds} s, seed {seed}",
            self.name
        );
        if !succeeded {
            let lines: Vec<&str> = output.lines().collect();
            let from = lines.len().saturating_sub(LINES_MAX);
            println!("{}", lines[from..].join("\n"));
            println!("\nsoak: FAILED; all of it in {}\n$ {line}", file.display());
        }
        Ok(succeeded)
    }

    fn file(&self, target: &Path) -> Result<std::path::PathBuf, String> {
        let folder = target.join("soak-output");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder.join(self.name).with_extension("txt"))
    }
}

/// How much of a failure is shown.
const LINES_MAX: usize = 120;

/// What the tests printed about themselves.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    tests: u64,
    histories: u64,
    schedules: u64,
    strings: u64,
}

impl Said {
    fn read(output: &str) -> Self {
        let mut said = Self::default();
        for line in output.lines() {
            // A test prints after its own name where nothing is captured.
            if let Some((_, result)) = line.split_once("test result: ") {
                said.tests += number_before(result, " passed");
            } else if let Some((_, counts)) = line.split_once("schedules: ") {
                let ends = [" uniform", " by priority"];
                said.schedules += ends
                    .map(|end| number_before(counts, end))
                    .iter()
                    .sum::<u64>();
                said.schedules += counts
                    .rsplit_once("all ")
                    .and_then(|(_, count)| count.parse().ok())
                    .unwrap_or(0);
            } else if let Some((_, counts)) = line.split_once("explored: ") {
                said.histories += number_before(counts, " histories");
            } else {
                said.strings += number_before(line, " strings of bytes");
            }
        }
        said
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tests passed", self.tests)?;
        let counts = [
            (self.histories, "histories"),
            (self.schedules, "schedules"),
            (self.strings, "strings"),
        ];
        for (count, what) in counts {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// The number that stands before these words, or zero.
fn number_before(line: &str, words: &str) -> u64 {
    let number = line.split_once(words).and_then(|(before, _)| {
        let word = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
        word.parse().ok()
    });
    number.unwrap_or(0)
}

fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Result<Call, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Call::read(&words)
    }

    #[test]
    fn a_call_names_the_minutes_and_perhaps_the_seed() {
        let seed = |seed| Call { minutes: 5, seed };
        assert_eq!(call("--minutes 5"), Ok(seed(None)));
        assert_eq!(call("--seed 7 --minutes 5"), Ok(seed(Some(7))));
        for wrong in ["", "--minutes", "--minutes x", "5", "--hours 5"] {
            assert!(call(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_read_from_what_tests_print() {
        let output = "test a ... 200 strings of bytes, REQUEUE_SEED=7\n\
                      schedules: b: 40 uniform, 10 by priority\n\
                      test c ... schedules: c: all 8\n\
                      explored: d: 90 histories, 7 states, by length [7]\n\
                      test result: ok. 3 passed; 0 failed\n\
                      test result: ok. 4 passed; 0 failed\n";
        let said = Said::read(output);
        assert_eq!((said.tests, said.schedules, said.strings), (7, 58, 200));
        assert_eq!(
            said.to_string(),
            "7 tests passed, 90 histories, 58 schedules, 200 strings"
        );
    }

    #[test]
    fn every_part_has_its_share_whatever_those_before_it_took() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(share(minutes(10), 5), minutes(2));
        assert_eq!(share(minutes(4), 2), minutes(2));
        assert_eq!(share(minutes(1), 1), minutes(1));
        assert_eq!(share(Duration::ZERO, 3), Duration::ZERO);
    }

    #[test]
    fn rounds_begin_with_the_seed_and_go_far() {
        assert_eq!(nth(7, 0), 7);
        assert!(nth(7, 1) - nth(7, 0) > 1_000_000_000);
    }

    #[test]
    fn every_part_but_the_exhaustive_one_takes_a_seed() {
        let without = PARTS.iter().filter(|part| part.seeds.is_empty());
        assert!(without.map(|part| part.name).eq(["explore"]));
    }
}

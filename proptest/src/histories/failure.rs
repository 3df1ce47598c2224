//! Where a queue and the model part, as a timeline.

use std::cmp::Reverse;
use std::fmt::{self, Write};

/// Where a queue and the model part.
///
/// Its `Display` is a timeline: what was done and what came of it, step by step, what went wrong,
/// and what the model expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What was done, and what came of it.
    pub timeline: Vec<String>,
    /// What is wrong.
    pub wrong: String,
    /// The state that the model expects, with the time.
    pub model: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_timeline(f, &self.timeline)?;
        writeln!(f, "{:3}. {}", self.timeline.len() + 1, self.wrong)?;
        write!(f, "Expected state at {}", self.model)
    }
}

impl std::error::Error for Failure {}

/// The longest group of steps whose repetitions are left out.
const GROUP_MAX: usize = 4;
/// Fewer repeated steps than this are written out.
const LEFT_OUT_MIN: usize = 6;

/// Writes a timeline, a numbered line for each step. Of steps that are repeated many times, only
/// the first are shown.
fn write_timeline(f: &mut impl Write, steps: &[String]) -> fmt::Result {
    let kinds: Vec<String> = steps.iter().map(|step| kind(step)).collect();
    let mut at = 0;
    while at < steps.len() {
        let (group, times) = repeated(&kinds[at..]);
        for (index, step) in steps[at..at + group].iter().enumerate() {
            writeln!(f, "{:3}. {step}", at + index + 1)?;
        }
        at += group * times;
        let which = match group {
            1 => String::from("this step"),
            _ => format!("these {group} steps"),
        };
        if times > 1 {
            writeln!(f, "     ({which} {times} times, up to step {at})")?;
        }
    }
    Ok(())
}

/// How many steps at the beginning are one group, and how often it comes. One step, once, unless it
/// saves some lines.
fn repeated(kinds: &[String]) -> (usize, usize) {
    let groups = (1..=GROUP_MAX.min(kinds.len())).map(|group| {
        let same = |chunk: &&[String]| **chunk == kinds[..group];
        (group, kinds.chunks(group).take_while(same).count())
    });
    let saves = |(group, times): &(usize, usize)| group * (times - 1) >= LEFT_OUT_MIN;
    groups
        .filter(saves)
        .max_by_key(|(group, times)| (group * times, Reverse(*group)))
        .unwrap_or((1, 1))
}

/// A step without the numbers of calls, which always differ.
fn kind(step: &str) -> String {
    let parts = step.split('#');
    let parts = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(steps: &[String]) -> String {
        let mut text = String::new();
        write_timeline(&mut text, steps).expect("a string takes any text");
        text
    }

    #[test]
    fn repeated_steps_are_shown_once() {
        let round = |n: usize| [format!("call #{n}: Get"), format!("call #{n} is cancelled")];
        let mut steps: Vec<String> = (1..=20).flat_map(round).collect();
        steps.push(String::from("Add(1): Ok(Ready)"));
        let expected = "  1. call #1: Get\n  2. call #1 is cancelled\n     \
                        (these 2 steps 20 times, up to step 40)\n 41. Add(1): Ok(Ready)\n";
        assert_eq!(shown(&steps), expected);
    }

    #[test]
    fn few_steps_and_steps_of_different_keys_are_all_shown() {
        let adds: Vec<String> = (1..=30).map(|key| format!("Add({key})")).collect();
        assert_eq!(shown(&adds).lines().count(), 30);
        let twice: Vec<String> = (1..=4).map(|n| format!("call #{n}: Get")).collect();
        assert_eq!(shown(&twice).lines().count(), 4);
    }
}

//! The maximum cost of the queue: on boards `examples/firmware/bounds.md`, else
//! `examples/bench/bounds.md`.

use crate::cmd::{cmd, read};
use crate::report::{Stop, Verdict, verdict};
use crate::toolchain::described;
use crate::tools::VALGRIND;

/// Counts the instructions of queues that grow, and holds them against their bounds.
pub(crate) fn instructions() -> Verdict {
    let release = described("release: ")?;
    if !read("rust-toolchain.toml")?.contains(&format!("channel = \"{release}\"")) {
        let why = format!("the bounds are those of the pinned Rust, and this is {release}");
        return Err(Stop::Skipped(why));
    }
    if !described("host: ")?.starts_with("x86_64-unknown-linux") {
        let why = String::from("the bounds are those of Linux on x86-64");
        return Err(Stop::Skipped(why));
    }
    let bench = cmd("cargo bench -p requeue-bench --bench instructions -- --bounded");
    let table = bench.env("VALGRIND", VALGRIND.promised()?).read()?;
    println!("{table}");
    let bounds = read("examples/bench/bounds.md")?;
    let rows = bounds.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        row.split_once(" | ")
            .filter(|(_, most)| most.parse::<f64>().is_ok())
    });
    let wrong: Vec<String> = rows
        .filter_map(|(row, most)| exceeded(row, most, &table))
        .collect();
    verdict(&wrong)
}

/// Returns the rows of an image's tables that exceed their bounds on a board, or are missing.
///
/// # Errors
///
/// The bounds cannot be read.
pub(crate) fn excess(board: &str, image: &str, tables: &str) -> Verdict<Vec<String>> {
    let bounds = read("examples/firmware/bounds.md")?;
    let begin = format!("| {board} | {image} | ");
    let bounds = bounds.lines().filter_map(|line| line.strip_prefix(&begin));
    let rows = bounds.filter_map(|line| line.strip_suffix(" |")?.split_once(" | "));
    let wrong = rows.filter_map(|(row, most)| exceeded(row, most, tables));
    Ok(wrong
        .map(|what| format!("{image} on {board}: {what}"))
        .collect())
}

/// The mistake in a row, if any. `most` has its maximum figures, column by column.
fn exceeded(row: &str, most: &str, tables: &str) -> Option<String> {
    let begin = format!("| {row} | ");
    let figures = tables.lines().find_map(|line| line.strip_prefix(&begin));
    let numbers = |text: &str| -> Vec<f64> {
        let words = text.split(['|', ',']).map(str::trim);
        words.map_while(|word| word.parse().ok()).collect()
    };
    let (figures, most) = (numbers(figures.unwrap_or_default()), numbers(most));
    if most.is_empty() || figures.len() < most.len() {
        return Some(format!("does not show {row}"));
    }
    let mut pairs = figures.iter().zip(&most);
    let is_over = pairs.any(|(figure, most)| figure > most);
    is_over.then(|| format!("{row} {figures:?}, at most {most:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_up_to_the_bound_pass() {
        let line = "| **a key** | 400 | 380 | 9999 |\n";
        assert_eq!(exceeded("**a key**", "400, 382", line), None);
        let flash = |bytes| excess("mps2", "flash-queue", &format!("| flash | {bytes} |"));
        assert!(flash(1).unwrap().is_empty());
        assert_eq!(flash(99_999).unwrap().len(), 1);
    }

    #[test]
    fn one_more_in_any_column_is_too_much() {
        for line in ["| **a key** | 401 | 380 |", "| **a key** | 400 | 383 |"] {
            let why = exceeded("**a key**", "400, 382", line).unwrap();
            assert!(why.contains("at most [400.0, 382.0]"), "{why}");
        }
    }

    #[test]
    fn a_row_that_is_missing_or_short_is_no_pass() {
        for tables in [
            "",
            "| **a key** of another kind | 1 | 1 |",
            "| **a key** | 1 |",
        ] {
            let why = exceeded("**a key**", "400, 382", tables).unwrap();
            assert!(why.contains("does not show"), "{why}");
        }
        assert!(exceeded("**a key**", "none", "| **a key** | 1 |").is_some());
    }
}

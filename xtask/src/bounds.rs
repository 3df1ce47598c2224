//! The most instructions that a queue may take: `examples/bench/bounds.md`. What it costs on boards
//! is on `docs/firmware.md`.

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
    verdict(&exceeded(&read("examples/bench/bounds.md")?, &table))
}

/// The rows whose figure in a table is more than their bound, or missing.
fn exceeded(bounds: &str, table: &str) -> Vec<String> {
    let figure = |row: &str| {
        let mut figures = table.lines().filter_map(|line| line.strip_prefix(row));
        let (figure, _) = figures.next()?.split_once('|')?;
        figure.trim().parse::<f64>().ok()
    };
    let rows = bounds.lines().filter_map(|line| {
        let (row, most) = line.strip_suffix(" |")?.rsplit_once(" |")?;
        Some((row, most.trim().parse::<f64>().ok()?))
    });
    let is_kept = |row, most| figure(&format!("{row} |")).is_some_and(|figure| figure <= most);
    let wrong = rows.filter(|(row, most)| !is_kept(*row, *most));
    wrong
        .map(|(row, most)| format!("{row}: not shown, or more than {most}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_exceeds_its_bound_or_is_missing_is_found() {
        let bounds = "| row | at most |\n|---|---|\n| `a` key | 400 |\n";
        for kept in ["| `a` key | 400 | 9999 |", "| `a` | 401 |\n| `a` key | 1 |"] {
            assert_eq!(exceeded(bounds, kept), [""; 0]);
        }
        for wrong in ["| `a` key | 401 |", "| `a` | 400 |", "| `a` key | |", ""] {
            assert_eq!(exceeded(bounds, wrong).len(), 1, "{wrong}");
        }
    }
}

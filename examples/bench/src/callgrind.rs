//! Instructions, counted by valgrind's callgrind.

use std::process::Command;

/// Runs this program again with these arguments, under callgrind, and returns the instructions of
/// the whole run. `None` if valgrind is missing or fails.
///
/// callgrind does not count what the kernel executes. The variable `VALGRIND` can name another
/// program.
pub fn instructions(arguments: &[&str]) -> Option<u64> {
    let valgrind = std::env::var_os("VALGRIND").unwrap_or_else(|| "valgrind".into());
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(arguments)
        .output()
        .ok()?;
    let report = String::from_utf8(output.stderr).ok()?;
    let collected = report.lines().find(|line| line.contains("Collected"))?;
    collected.split_whitespace().last()?.parse().ok()
}

//! Measures the figures of the pictures of README and guide, and draws them.

use crate::cmd::{Cmd, cmd, root};
use crate::report::{Stop, Verdict};

/// The pictures of measurements: the bench, and its rows.
const MEASURED: [(&str, &str, &str); 6] = [
    ("speed", "speed", "u64 keys: CPU time per key: steady"),
    ("deadlines", "peers", "delay, expire, take"),
    ("threads", "speed", "Threads, u64 keys"),
    ("worst", "worst", "Instructions of the slowest"),
    ("fairness", "groups", "Keys handed out"),
    ("memory", "memory", ""),
];
/// The picture of an example's output.
const DELAYS: &str = "delays";

/// Measures the figures of the named pictures, or of all. Draws every picture from the figures
/// beside it.
///
/// # Errors
///
/// A name is not a picture, or a command fails.
pub(crate) fn measure(names: &[&str]) -> Verdict {
    let folder = root().join("docs/book/src/pictures");
    let lines = lines(names, &folder.display().to_string()).map_err(Stop::Mistake)?;
    lines.iter().try_for_each(Cmd::run)
}

fn lines(names: &[&str], folder: &str) -> Result<Vec<Cmd>, String> {
    let known: Vec<&str> = MEASURED.iter().map(|row| row.0).chain([DELAYS]).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!("no picture is called `{name}`: {known}"));
    }
    let is_asked = |asked: &str| names.is_empty() || names.contains(&asked);
    let mut lines = Vec::new();
    for (name, bench, rows) in MEASURED.into_iter().filter(|row| is_asked(row.0)) {
        // One build for all: groups are measured beside a peer.
        let line = cmd("cargo bench -p requeue-bench --features peers --bench").arg(bench);
        let line = line
            .arg("--")
            .args(Some(rows).filter(|rows| !rows.is_empty()));
        lines.push(line.arg(format!("--json={folder}/{name}.json")));
    }
    let draw = "cargo run --release -p requeue-bench --features peers --bin pictures --";
    lines.push(cmd(draw).args(is_asked(DELAYS).then_some("--delays")));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_all_are_measured_and_all_are_drawn() {
        let shown = |names: &[&str]| -> Vec<String> {
            let lines = lines(names, "there").unwrap();
            lines.iter().map(ToString::to_string).collect()
        };
        let all = shown(&[]);
        assert_eq!(all.len(), MEASURED.len() + 1);
        assert!(all[MEASURED.len()].ends_with("--bin pictures -- --delays"));
        let bench = "cargo bench -p requeue-bench --features peers --bench groups --";
        let bench = format!("{bench} 'Keys handed out' --json=there/fairness.json");
        let draw = "cargo run --release -p requeue-bench --features peers --bin pictures --";
        assert_eq!(shown(&["fairness"]), [bench, draw.to_owned()]);
        assert!(
            lines(&["nothing"], "there")
                .unwrap_err()
                .contains("speed, deadlines")
        );
    }
}

//! Measures what the pictures of README and book show, and draws them.

use crate::invocation::Invocation;
use crate::workspace::Workspace;

/// Where pictures are, each beside its figures.
const FOLDER: &str = "docs/book/src/pictures";

/// The pictures that show what a bench measures: the bench, and which of its rows.
const MEASURED: [(&str, &str, &str); 8] = [
    ("steady", "instructions", "steady cycle, u64"),
    ("speed", "speed", "u64 keys: CPU time per key: steady"),
    ("deadlines", "peers", "delay, expire, take"),
    ("threads", "speed", "Threads, u64 keys"),
    ("wakeup", "tokio", "Wake-up of an idle worker"),
    ("worst", "worst", "Instructions of the slowest"),
    ("fairness", "groups", "Keys handed out"),
    ("memory", "memory", ""),
];
/// The picture of what an example prints.
const DELAYS: &str = "delays";

/// Measures the figures of these pictures, or of all, and draws every picture from the figures
/// beside it.
///
/// # Errors
///
/// A name of no picture, or what fails.
pub(crate) fn measure(names: &[String], workspace: &Workspace) -> Result<(), String> {
    let root = &workspace.root;
    for line in lines(names, &root.join(FOLDER).display().to_string())? {
        line.run(root)?;
    }
    Ok(())
}

fn lines(names: &[String], folder: &str) -> Result<Vec<Invocation>, String> {
    let known = || MEASURED.iter().map(|(name, ..)| *name).chain([DELAYS]);
    if let Some(name) = names
        .iter()
        .find(|name| known().all(|known| known != *name))
    {
        let known: Vec<&str> = known().collect();
        return Err(format!(
            "no picture is called `{name}`: {}",
            known.join(", ")
        ));
    }
    let is_asked = |asked: &str| names.is_empty() || names.iter().any(|name| name == asked);
    let mut lines = Vec::new();
    for (name, bench, rows) in MEASURED.into_iter().filter(|(name, ..)| is_asked(name)) {
        // One build for all: groups are measured beside a peer.
        let line = Invocation::new("cargo bench -p requeue-bench --features peers")
            .args(["--bench", bench, "--"])
            .args(Some(rows).filter(|rows| !rows.is_empty()))
            .args([format!("--json={folder}/{name}.json")]);
        lines.push(line);
    }
    let draw = Invocation::new("cargo run --release -p requeue-bench --features peers")
        .args(["--bin", "pictures", "--"])
        .args(is_asked(DELAYS).then_some("--delays"));
    lines.push(draw);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let lines = lines(&names, "there")?;
        Ok(lines.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn all_are_measured_if_none_is_named() {
        let lines = shown(&[]).unwrap();
        assert_eq!(lines.len(), MEASURED.len() + 1);
        assert!(lines[MEASURED.len()].ends_with("--bin pictures -- --delays"));
    }

    #[test]
    fn one_is_measured_and_all_are_drawn() {
        let bench = "cargo bench -p requeue-bench --features peers --bench groups --";
        let draw = "cargo run --release -p requeue-bench --features peers --bin pictures --";
        let expected = format!("{bench} 'Keys handed out' --json=there/fairness.json");
        assert_eq!(shown(&["fairness"]).unwrap(), [expected, draw.to_owned()]);
        assert!(shown(&["nothing"]).unwrap_err().contains("steady, speed"));
    }
}

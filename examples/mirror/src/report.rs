//! What was done, and what was not: the end of every run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::HumanBytes;

use crate::figures::Shown;
use crate::key::Key;
use crate::mirror::{GivenUp, Tally};

/// Something was given up or left undone.
const EXIT_UNFINISHED: u8 = 1;

/// How many paths of a kind are named before the rest is only counted.
const NAMED_MAX: usize = 10;

pub(crate) struct Report {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) tally: Tally,
    pub(crate) figures: Shown,
    pub(crate) given_up: BTreeMap<Key, GivenUp>,
    pub(crate) left: BTreeSet<Key>,
    pub(crate) special: BTreeSet<Arc<Path>>,
    pub(crate) elapsed: Duration,
}

impl Report {
    /// The table goes to stdout, what is amiss to stderr.
    pub(crate) fn print(&self) {
        // Nobody may be reading any more; the exit code tells the rest.
        let _ = io::stdout().write_all(self.table().as_bytes());
        let _ = io::stderr().write_all(self.amiss().as_bytes());
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.given_up.is_empty() && self.left.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(EXIT_UNFINISHED)
        }
    }

    fn table(&self) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (tally, figures) = (&self.tally, &self.figures);
        let postponed = count(&tally.postponed);
        let rows: [(&str, &dyn Display); 17] = [
            ("source", &self.source.display()),
            ("target", &self.target.display()),
            ("files copied", &count(&tally.files)),
            ("bytes copied", &HumanBytes(count(&tally.bytes))),
            ("directories made", &count(&tally.directories)),
            ("symlinks made", &count(&tally.links)),
            ("mode or time set", &count(&tally.retouched)),
            ("deleted", &count(&tally.deleted)),
            ("found right", &count(&tally.right)),
            ("adds", &figures.adds),
            ("coalesced", &figures.coalesced),
            // To the queue a key that waits for its file to rest is one that comes back later.
            ("retries", &figures.retries.saturating_sub(postponed)),
            ("postponed", &postponed),
            ("given up", &self.given_up.len()),
            ("left undone", &self.left.len()),
            (
                "queue latency",
                &format!(
                    "p50 {:?}, p99 {:?}",
                    figures.latency_p50, figures.latency_p99
                ),
            ),
            ("elapsed", &format!("{:.3} s", self.elapsed.as_secs_f64())),
        ];
        let row = |(name, value): &(&str, &dyn Display)| format!("{name:<18}{value}\n");
        rows.iter().map(row).collect()
    }

    fn amiss(&self) -> String {
        let mut lines = String::new();
        let (full, other): (Vec<_>, Vec<_>) = self
            .given_up
            .iter()
            .partition(|(_, gone)| gone.is_disk_full);
        if let Some((first, _)) = full.first() {
            // One cause, however many paths it hits.
            let count = full.len();
            lines += &format!(
                "mirror: given up: the target's disk is full: {count} paths, the first is {first}\n"
            );
        }
        let other = other
            .iter()
            .map(|(key, gone)| format!("{key}: {}", gone.why));
        name(&mut lines, "given up", other);
        name(&mut lines, "left undone", self.left.iter());
        let special = self.special.iter().map(|path| path.display());
        name(&mut lines, "not a file, directory or symlink", special);
        lines
    }
}

fn name<T: Display>(lines: &mut String, what: &str, which: impl ExactSizeIterator<Item = T>) {
    let rest = which.len().saturating_sub(NAMED_MAX);
    for one in which.take(NAMED_MAX) {
        *lines += &format!("mirror: {what}: {one}\n");
    }
    if rest > 0 {
        *lines += &format!("mirror: {what}: {rest} more\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_are_named_and_the_rest_is_counted() {
        let mut lines = String::new();
        name(&mut lines, "left undone", 0..13);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[9], "mirror: left undone: 9");
        assert_eq!(lines[10], "mirror: left undone: 3 more");
    }
}

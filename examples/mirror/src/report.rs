//! The report at the end of a run: finished and unfinished work.

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
use crate::text::Escaped;

/// Something was given up or left undone.
const EXIT_UNFINISHED: u8 = 1;

/// How many paths of a kind are named. The rest is counted.
const NAMED_MAX: usize = 10;

pub(crate) struct Report {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) tally: Tally,
    pub(crate) figures: Shown,
    pub(crate) given_up: BTreeMap<Key, GivenUp>,
    pub(crate) left: BTreeSet<Key>,
    pub(crate) special: BTreeSet<Arc<Path>>,
    pub(crate) without_set_id: BTreeSet<Arc<Path>>,
    /// How many directories were polled at the end.
    pub(crate) polled: usize,
    pub(crate) elapsed: Duration,
}

impl Report {
    /// Prints the table to stdout, problems to stderr, and the verdict to stdout.
    pub(crate) fn print(&self) {
        // If nobody reads this, the exit code says enough.
        let _ = io::stdout().write_all(self.table().as_bytes());
        let _ = io::stderr().write_all(self.amiss().as_bytes());
        let _ = writeln!(io::stdout(), "{}", self.verdict());
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_finished() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(EXIT_UNFINISHED)
        }
    }

    fn is_finished(&self) -> bool {
        self.given_up.is_empty() && self.left.is_empty()
    }

    /// One line: whether the target is the same as the source.
    fn verdict(&self) -> String {
        if !self.is_finished() {
            return format!(
                "The target is not the same as the source yet (paths given up: {}, left undone: \
                 {}). The next run goes on from here.",
                self.given_up.len(),
                self.left.len(),
            );
        }
        // A polled directory may have changed since.
        let since = if self.polled == 0 {
            "is now"
        } else {
            "was when it was last looked at"
        };
        let is_all = self.special.is_empty() && self.without_set_id.is_empty();
        let but = if is_all {
            ""
        } else {
            ", except for what is named above"
        };
        format!("The target is the same as the source {since}{but}.")
    }

    fn table(&self) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (tally, figures) = (&self.tally, &self.figures);
        let postponed = count(&tally.postponed);
        let seconds = |time: Duration| format!("{:.3} s", time.as_secs_f64());
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let (half, most) = (millis(figures.latency_p50), millis(figures.latency_p99));
        let rows: [(&str, &dyn Display); 18] = [
            ("source", &Escaped(&self.source)),
            ("target", &Escaped(&self.target)),
            ("files copied", &count(&tally.files)),
            ("bytes copied", &HumanBytes(count(&tally.bytes))),
            ("directories made", &count(&tally.directories)),
            ("symlinks made", &count(&tally.links)),
            ("permissions or times set", &count(&tally.retouched)),
            ("deleted", &count(&tally.deleted)),
            ("found right", &count(&tally.right)),
            ("paths queued for a check", &figures.adds),
            ("queued already, so merged", &figures.coalesced),
            // The queue also counts waiting for a file to rest as a retry.
            (
                "tried again after a failure",
                &figures.retries.saturating_sub(postponed),
            ),
            ("put off, being written to", &postponed),
            ("polled, for lack of watches", &self.polled),
            ("given up", &self.given_up.len()),
            ("left undone", &self.left.len()),
            (
                "wait in the queue",
                &format!("half under {half}, 99 of 100 under {most}"),
            ),
            ("time taken", &seconds(self.elapsed)),
        ];
        let row = |(name, value): &(&str, &dyn Display)| format!("{name:<29}{value}\n");
        rows.iter().map(row).collect()
    }

    fn amiss(&self) -> String {
        let mut lines = String::new();
        let (full, other): (Vec<_>, Vec<_>) = self
            .given_up
            .iter()
            .partition(|(_, gone)| gone.is_disk_full);
        if let Some((first, _)) = full.first() {
            // One cause for all these paths.
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
        let special = self.special.iter().map(|path| Escaped(path));
        name(&mut lines, "not a file, directory or symlink", special);
        let without = self.without_set_id.iter().map(|path| Escaped(path));
        let what = "set-user-ID and set-group-ID left out, the copy has another owner";
        name(&mut lines, what, without);
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

//! Those who wait for the work of a key.

use super::Model;
use crate::subject::Key;

/// A wait for the work of a key that was known when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flush {
    key: Key,
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Awaits {
    Nothing,
    /// The end of a run.
    Run(u64),
    /// The next run of the key, unless it is taken back before.
    NextRun,
}

impl Model {
    /// Begins to wait, and returns the number of the wait.
    pub fn begin_flush(&mut self, key: Key) -> usize {
        self.arrive_at(key);
        let awaits = if self.dirty.contains(&key) {
            Awaits::NextRun
        } else {
            self.present_run(key)
        };
        self.flushes.push(Flush { key, awaits });
        self.flushes.len() - 1
    }

    /// Whether the work of a wait is done, or taken back.
    pub fn is_flushed(&self, flush: usize) -> bool {
        let flush = self.flush(flush);
        flush.is_none_or(|flush| flush.awaits == Awaits::Nothing)
    }

    /// How a wait stands.
    pub fn flush(&self, flush: usize) -> Option<Flush> {
        self.flushes.get(flush).copied()
    }

    fn present_run(&self, key: Key) -> Awaits {
        let run = self.last_run.iter().find(|(other, _)| *other == key);
        match run {
            Some((_, run)) if self.processing.contains(&key) => Awaits::Run(*run),
            _ => Awaits::Nothing,
        }
    }

    /// A run of a key has begun, or its work was taken back.
    pub(super) fn note_flushes_of(&mut self, key: Key) {
        let awaits = self.present_run(key);
        self.change_flushes(key, Awaits::NextRun, awaits);
    }

    /// The present run of a key ends.
    pub(super) fn end_flushes_of(&mut self, key: Key) {
        let ended = self.present_run(key);
        self.change_flushes(key, ended, Awaits::Nothing);
    }

    fn change_flushes(&mut self, key: Key, from: Awaits, to: Awaits) {
        let flushes = self.flushes.iter_mut().filter(|flush| flush.key == key);
        for flush in flushes.filter(|flush| flush.awaits == from) {
            flush.awaits = to;
        }
    }
}

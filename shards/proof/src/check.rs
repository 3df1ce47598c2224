//! Checks a history against the promises.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::history::{Event, History, RunId};

/// A promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No write is accepted with a smaller fence than one before it.
    Order,
    /// Runs of a key do not overlap, and none begins after the next owner has begun, unless the
    /// replica was paused for longer than the TTL.
    Overlap,
    /// Each change is followed by a run within a bound.
    Bound,
    /// A fence belongs to one replica, and rises with each owner.
    Fences,
    /// Nothing is lost at the end.
    Lost,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The promise.
    pub rule: Rule,
    /// When.
    pub at: Duration,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.3} s  {:?}: {}",
            self.at.as_secs_f64(),
            self.rule,
            self.what
        )
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The broken promises.
    pub breaches: Vec<Breach>,
    /// How many runs began.
    pub runs: u64,
    /// How many writes were accepted.
    pub accepted: u64,
    /// How many writes were refused.
    pub refused: u64,
    /// How many runs were excused because their replica was paused.
    pub excused: u64,
    /// How many changes there were.
    pub changes: u64,
    /// The longest time from a change to its run.
    pub slowest: Duration,
}

/// Checks a history. `bound` is how long a change may wait for its run, `is_over` whether the
/// history has ended. O(n log n) for n entries.
pub fn check(history: &History, bound: Duration, is_over: bool) -> Verdict {
    let mut check = Check {
        history,
        verdict: Verdict::default(),
        at: Duration::ZERO,
        runs: BTreeMap::new(),
        shards: BTreeMap::new(),
        keys: BTreeMap::new(),
    };
    for entry in &history.entries {
        check.at = entry.at;
        check.apply(&entry.event);
    }
    check.end(bound, is_over);
    check.verdict
}

struct Check<'h> {
    history: &'h History,
    verdict: Verdict,
    at: Duration,
    /// The active runs.
    runs: BTreeMap<RunId, Run<'h>>,
    shards: BTreeMap<u32, Shard<'h>>,
    keys: BTreeMap<&'h str, Key>,
}

struct Run<'h> {
    key: &'h str,
    shard: u32,
    fence: u64,
    replica: &'h str,
}

#[derive(Default)]
struct Shard<'h> {
    /// The replica of each fence.
    owners: BTreeMap<u64, &'h str>,
    open: BTreeSet<RunId>,
}

#[derive(Default)]
struct Key {
    /// The greatest fence that was accepted.
    fence: u64,
    /// The versions that no run has written yet, and since when.
    waiting: BTreeMap<u64, Duration>,
    /// The changes that waited longest: when, and how long.
    late: Vec<(Duration, Duration)>,
}

impl<'h> Check<'h> {
    fn apply(&mut self, event: &'h Event) {
        match event {
            Event::Changed { key, version } => {
                self.verdict.changes += 1;
                let key = self.keys.entry(key).or_default();
                key.waiting.insert(*version, self.at);
            }
            Event::Begun {
                run,
                key,
                shard,
                fence,
                replica,
            } => {
                let begun = Run {
                    key,
                    shard: *shard,
                    fence: *fence,
                    replica,
                };
                self.begin(*run, begun);
            }
            Event::Accepted { run, version } => {
                self.verdict.accepted += 1;
                if let Some(run) = self.end_run(*run) {
                    self.accept(&run, *version);
                }
            }
            Event::Refused { run } => {
                self.verdict.refused += 1;
                self.end_run(*run);
            }
            Event::Dropped { run } => drop(self.end_run(*run)),
        }
    }

    fn begin(&mut self, id: RunId, run: Run<'h>) {
        self.verdict.runs += 1;
        let (key, shard, fence, replica) = (run.key, run.shard, run.fence, run.replica);
        let of = self.shards.entry(shard).or_default();
        let owner = *of.owners.entry(fence).or_insert(replica);
        let newest = of
            .owners
            .last_key_value()
            .map_or(fence, |(newest, _)| *newest);
        let open: Vec<RunId> = of.open.iter().copied().collect();
        of.open.insert(id);
        if owner != replica {
            let what = format!("the fence {fence} of shard {shard} is {owner}'s and {replica}'s");
            self.breach(Rule::Fences, what);
        }
        if fence < newest {
            let what = format!("{replica} began {key} by {fence} after {newest} of shard {shard}");
            self.overlap(replica, what);
        }
        for open in open.iter().filter_map(|open| self.runs.get(open)) {
            let (other, theirs) = (open.replica, open.fence);
            if theirs < fence {
                let what = format!(
                    "{replica} began {key} by {fence} while {other} ran {} of shard {shard} by \
                     {theirs}",
                    open.key
                );
                breach_overlap(&mut self.verdict, self.history, self.at, other, what);
            } else if open.key == key && theirs == fence {
                let what = format!("{key} ran twice at once at {other} and {replica}");
                breach_overlap(&mut self.verdict, self.history, self.at, "", what);
            }
        }
        self.runs.insert(id, run);
    }

    fn end_run(&mut self, id: RunId) -> Option<Run<'h>> {
        let run = self.runs.remove(&id)?;
        if let Some(shard) = self.shards.get_mut(&run.shard) {
            shard.open.remove(&id);
        }
        Some(run)
    }

    fn accept(&mut self, run: &Run<'h>, version: u64) {
        let key = self.keys.entry(run.key).or_default();
        let before = key.fence;
        key.fence = before.max(run.fence);
        let rest = key.waiting.split_off(&(version + 1));
        for since in std::mem::replace(&mut key.waiting, rest).into_values() {
            let waited = self.at.saturating_sub(since);
            key.late.push((since, waited));
            self.verdict.slowest = self.verdict.slowest.max(waited);
        }
        if run.fence < before {
            let (name, replica, fence) = (run.key, run.replica, run.fence);
            let what = format!("{replica} wrote {name} by {fence} after {before}");
            self.breach(Rule::Order, what);
        }
    }

    fn end(&mut self, bound: Duration, is_over: bool) {
        let end = self.at;
        let mut breaches = Vec::new();
        for (name, key) in &self.keys {
            let waiting = key.waiting.values().map(|since| (*since, end - *since));
            for (since, waited) in key.late.iter().copied().chain(waiting) {
                if waited > bound {
                    let waited = waited.as_secs_f64();
                    let what = format!("a change of {name} has waited for {waited:.3} s");
                    breaches.push((Rule::Bound, since, what));
                    break;
                }
            }
            if let Some((version, since)) = key.waiting.first_key_value().filter(|_| is_over) {
                let what = format!("version {version} of {name} was never written");
                breaches.push((Rule::Lost, *since, what));
            }
        }
        for (rule, at, what) in breaches {
            self.verdict.breaches.push(Breach { rule, at, what });
        }
    }

    fn overlap(&mut self, replica: &str, what: String) {
        breach_overlap(&mut self.verdict, self.history, self.at, replica, what);
    }

    fn breach(&mut self, rule: Rule, what: String) {
        let at = self.at;
        self.verdict.breaches.push(Breach { rule, at, what });
    }
}

/// An overlap, unless the replica whose ownership had ended was paused.
fn breach_overlap(
    verdict: &mut Verdict,
    history: &History,
    at: Duration,
    replica: &str,
    what: String,
) {
    if history.is_paused(replica, at) {
        verdict.excused += 1;
        return;
    }
    let rule = Rule::Overlap;
    verdict.breaches.push(Breach { rule, at, what });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Entry, Pause};

    const BOUND: Duration = Duration::from_millis(100);

    /// One event a millisecond: `change`, `begin run fence replica`, `accept run`, `refuse run`,
    /// `drop run`, all of the key `k` in the shard 0; or `wait`, for 200 ms.
    fn history(lines: &[&str]) -> History {
        let (mut at, mut version) = (0, 0);
        let mut entries = Vec::new();
        for line in lines {
            at += 1;
            let words: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| words[index].parse::<u64>().unwrap();
            let key = "k".to_owned();
            let event = match words[0] {
                "wait" => {
                    at += 200;
                    continue;
                }
                "change" => {
                    version += 1;
                    Event::Changed { key, version }
                }
                "begin" => Event::Begun {
                    run: RunId(number(1)),
                    key,
                    shard: 0,
                    fence: number(2),
                    replica: words[3].to_owned(),
                },
                "accept" => Event::Accepted {
                    run: RunId(number(1)),
                    version,
                },
                "refuse" => Event::Refused {
                    run: RunId(number(1)),
                },
                _ => Event::Dropped {
                    run: RunId(number(1)),
                },
            };
            let at = Duration::from_millis(at);
            entries.push(Entry { at, event });
        }
        History {
            entries,
            pauses: Vec::new(),
        }
    }

    fn rules(history: &History) -> Vec<Rule> {
        let breaches = check(history, BOUND, true).breaches;
        breaches.iter().map(|breach| breach.rule).collect()
    }

    #[test]
    fn a_sound_history_passes() {
        let lines = [
            "change",
            "begin 1 5 a",
            "accept 1",
            "begin 2 5 a",
            "drop 2",
            "change",
            "begin 3 7 b",
            "accept 3",
        ];
        assert_eq!(rules(&history(&lines)), []);
    }

    #[test]
    fn a_write_out_of_order_is_found() {
        let lines = ["begin 1 5 a", "begin 2 7 b", "accept 2", "accept 1"];
        assert_eq!(rules(&history(&lines)), [Rule::Overlap, Rule::Order]);
        let refused = ["begin 1 5 a", "begin 2 7 b", "accept 2", "refuse 1"];
        assert_eq!(rules(&history(&refused)), [Rule::Overlap]);
    }

    #[test]
    fn a_run_after_the_next_owner_is_found() {
        let lines = ["begin 2 7 b", "drop 2", "begin 1 5 a", "drop 1"];
        assert_eq!(rules(&history(&lines)), [Rule::Overlap]);
    }

    #[test]
    fn two_runs_of_one_owner_are_found() {
        let lines = ["begin 1 5 a", "begin 2 5 a"];
        assert_eq!(rules(&history(&lines)), [Rule::Overlap]);
    }

    #[test]
    fn a_pause_excuses_its_own_replica_alone() {
        let mut paused = history(&["begin 1 5 a", "begin 2 7 b", "drop 1", "drop 2"]);
        let pause = |replica: &str, from, to| Pause {
            replica: replica.to_owned(),
            from: Duration::from_millis(from),
            to: Some(Duration::from_millis(to)),
        };
        paused.pauses = vec![pause("a", 1, 5)];
        assert_eq!(rules(&paused), []);
        paused.pauses = vec![pause("b", 1, 5)];
        assert_eq!(rules(&paused), [Rule::Overlap]);
        paused.pauses = vec![pause("a", 3, 5)];
        assert_eq!(rules(&paused), [Rule::Overlap]);
    }

    #[test]
    fn a_fence_of_two_replicas_is_found() {
        let lines = ["begin 1 5 a", "drop 1", "begin 2 5 b", "drop 2"];
        assert_eq!(rules(&history(&lines)), [Rule::Fences]);
    }

    #[test]
    fn a_change_that_is_late_or_lost_is_found() {
        let late = ["change", "wait", "begin 1 5 a", "accept 1"];
        assert_eq!(rules(&history(&late)), [Rule::Bound]);
        let lost = ["change", "begin 1 5 a", "drop 1"];
        assert_eq!(rules(&history(&lost)), [Rule::Lost]);
        let refused = ["change", "begin 1 5 a", "refuse 1"];
        assert_eq!(rules(&history(&refused)), [Rule::Lost]);
    }
}

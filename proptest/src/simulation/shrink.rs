//! The shortest history that still breaks the property.

use std::ops::Range;
use std::time::Duration;

use super::World;
use super::choices::{Choice, RANK};
use super::plan::{Plan, Stop, Tree};

/// Shortens `plan` as long as `fails` says that it still fails: events and faults are left out,
/// then events are made simpler, and times shorter. Calls `fails` [`TRIES_MAX`] times at most.
pub(super) fn shrunk<W: World>(
    plan: Plan<W>,
    trees: Vec<Tree<W>>,
    fails: impl FnMut(&Plan<W>) -> bool,
) -> Plan<W> {
    let mut shrinker = Shrinker {
        best: plan,
        tries_left: TRIES_MAX,
        fails,
    };
    let mut trees = trees;
    for _ in 0..ROUNDS_MAX {
        let tries_left = shrinker.tries_left;
        let mut is_better = shrinker.leave_out_the_stop();
        is_better |= shrinker.leave_out_events();
        is_better |= shrinker.leave_out_first_runs();
        is_better |= shrinker.leave_out_choices();
        is_better |= shrinker.leave_out_runs();
        is_better |= shrinker.simplify_events(&mut trees);
        is_better |= shrinker.shorten_gaps();
        is_better |= shrinker.simplify_choices();
        if !is_better || shrinker.tries_left == tries_left {
            break;
        }
    }
    shrinker.best
}

struct Shrinker<W: World, F> {
    best: Plan<W>,
    tries_left: u32,
    fails: F,
}

impl<W: World, F: FnMut(&Plan<W>) -> bool> Shrinker<W, F> {
    /// Takes over a plan that fails, too.
    fn attempt(&mut self, plan: Plan<W>) -> bool {
        if self.tries_left == 0 {
            return false;
        }
        self.tries_left -= 1;
        let fails = (self.fails)(&plan);
        if fails {
            self.best = plan;
        }
        fails
    }

    fn attempt_with(&mut self, change: impl FnOnce(&mut Plan<W>)) -> bool {
        let mut plan = self.best.clone();
        change(&mut plan);
        self.attempt(plan)
    }

    fn leave_out_the_stop(&mut self) -> bool {
        let Some((at, stop)) = self.best.stop else {
            return false;
        };
        if self.attempt_with(|plan| plan.stop = None) {
            return true;
        }
        let simpler: &[Stop] = match stop {
            Stop::Drain => &[],
            Stop::Finish => &[Stop::Drain],
            Stop::Abort => &[Stop::Drain, Stop::Finish],
            Stop::Crash => &[Stop::Drain, Stop::Finish, Stop::Abort],
        };
        let mut simpler = simpler.iter();
        simpler.any(|stop| self.attempt_with(|plan| plan.stop = Some((at, *stop))))
    }

    fn leave_out_events(&mut self) -> bool {
        let leave_out = |plan: &mut Plan<W>, part| drop(plan.arrivals.drain(part));
        self.leave_out(|plan| plan.arrivals.len(), leave_out)
    }

    /// Leaves out one event, and a run of some key with it: what is chosen for later runs of the
    /// key is for those before them then.
    fn leave_out_first_runs(&mut self) -> bool {
        let (mut is_better, mut place) = (false, 0);
        while place < self.best.arrivals.len() {
            let later = self.best.chosen.keys().filter(|site| site.run > 1);
            let mut keys: Vec<_> = later.filter_map(|site| site.key.clone()).collect();
            keys.dedup();
            let left_out = keys.iter().any(|key| {
                self.attempt_with(|plan| {
                    plan.arrivals.remove(place);
                    plan.leave_out_run(key, 1);
                })
            });
            is_better |= left_out;
            place += usize::from(!left_out);
        }
        is_better
    }

    fn leave_out_choices(&mut self) -> bool {
        let leave_out = |plan: &mut Plan<W>, part: Range<usize>| {
            let mut places = 0..plan.chosen.len();
            let mut is_in = || places.next().is_some_and(|place| part.contains(&place));
            plan.chosen.retain(|_, _| !is_in());
        };
        self.leave_out(|plan| plan.chosen.len(), leave_out)
    }

    /// In halves, quarters and so on, down to one.
    fn leave_out(
        &mut self,
        len: fn(&Plan<W>) -> usize,
        leave_out: fn(&mut Plan<W>, Range<usize>),
    ) -> bool {
        let mut is_better = false;
        let mut size = len(&self.best);
        while size > 0 {
            let mut from = 0;
            while from < len(&self.best) {
                let to = len(&self.best).min(from + size);
                let left_out = self.attempt_with(|plan| leave_out(plan, from..to));
                is_better |= left_out;
                from = if left_out { from } else { to };
            }
            size /= 2;
        }
        is_better
    }

    /// Leaves out a run that something goes wrong with, since it leads to another run of the key.
    fn leave_out_runs(&mut self) -> bool {
        let faulty = self.best.chosen.iter();
        let faulty = faulty.filter(|(_, choice)| choice.fault.is_some());
        let runs = faulty.filter_map(|(site, _)| Some((site.key.clone()?, site.run)));
        let runs: Vec<_> = runs.collect();
        let mut is_better = false;
        // From behind, so that those before keep their numbers.
        for (key, run) in runs.iter().rev() {
            is_better |= self.attempt_with(|plan| plan.leave_out_run(key, *run));
        }
        is_better
    }

    /// As the strategy simplifies its values. Events that were drawn as one stay one.
    fn simplify_events(&mut self, trees: &mut [Tree<W>]) -> bool {
        let mut is_better = false;
        for (origin, tree) in trees.iter_mut().enumerate() {
            if !self.best.arrivals.iter().any(|a| a.origin == origin) {
                continue;
            }
            let mut changes = tree.simplify();
            for _ in 0..SIMPLIFY_MAX {
                if !changes {
                    break;
                }
                let event = tree.current();
                let simpler = self.attempt_with(|plan| {
                    let same = plan.arrivals.iter_mut().filter(|a| a.origin == origin);
                    same.for_each(|arrival| arrival.event = event.clone());
                });
                is_better |= simpler;
                changes = if simpler {
                    tree.simplify()
                } else {
                    tree.complicate()
                };
            }
        }
        is_better
    }

    /// What comes after a gap comes earlier, too.
    fn shorten_gaps(&mut self) -> bool {
        let mut is_better = false;
        for place in 0..self.best.arrivals.len() {
            let before = place.checked_sub(1);
            let before = before.map_or(Duration::ZERO, |before| self.best.arrivals[before].at);
            let at = self.best.arrivals[place].at;
            for gap in shorter_than(at.saturating_sub(before)) {
                let by = at - (before + gap);
                let shorter = self.attempt_with(|plan| {
                    for arrival in &mut plan.arrivals[place..] {
                        arrival.at -= by;
                    }
                    if let Some((stop, _)) = plan.stop.as_mut().filter(|(stop, _)| *stop >= at) {
                        *stop -= by;
                    }
                });
                if shorter {
                    is_better = true;
                    break;
                }
            }
        }
        is_better | self.shorten_the_gap_before_the_stop()
    }

    fn shorten_the_gap_before_the_stop(&mut self) -> bool {
        let Some((at, stop)) = self.best.stop else {
            return false;
        };
        let arrivals = self.best.arrivals.iter().map(|arrival| arrival.at);
        let before = arrivals.filter(|arrival| *arrival <= at).max();
        let before = before.unwrap_or_default();
        let mut gaps = shorter_than(at - before);
        gaps.any(|gap| self.attempt_with(|plan| plan.stop = Some((before + gap, stop))))
    }

    fn simplify_choices(&mut self) -> bool {
        let mut is_better = false;
        let sites: Vec<_> = self.best.chosen.keys().cloned().collect();
        for site in sites {
            let Some(choice) = self.best.chosen.get(&site).copied() else {
                continue;
            };
            let delays = shorter_than(choice.delay).map(|delay| Choice { delay, ..choice });
            let rank = (choice.rank != RANK).then_some(Choice {
                rank: RANK,
                ..choice
            });
            let mut simpler = rank.into_iter().chain(delays);
            is_better |= simpler.any(|simpler| {
                self.attempt_with(|plan| {
                    plan.chosen.insert(site.clone(), simpler);
                })
            });
        }
        is_better
    }
}

/// Round durations below this one.
fn shorter_than(duration: Duration) -> impl Iterator<Item = Duration> {
    let round = [
        0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000,
    ];
    let round = round.into_iter().map(Duration::from_millis);
    round.take_while(move |shorter| *shorter < duration)
}

/// How many histories are played to shorten one.
const TRIES_MAX: u32 = 5_000;
/// How many times everything is tried.
const ROUNDS_MAX: u32 = 8;
/// How many times one event is made simpler in a round.
const SIMPLIFY_MAX: u32 = 200;

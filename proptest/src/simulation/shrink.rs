//! The shortest history that still breaks the property.

use std::ops::Range;
use std::time::Duration;

use super::World;
use super::plan::{PlanOf, Tree};

/// Shortens `plan` as long as `fails` says that it still fails: events and faults are left out,
/// times become shorter, and events simpler. Calls `fails` [`TRIES_MAX`] times at most.
pub(super) fn shrunk<W: World>(
    mut best: PlanOf<W>,
    mut trees: Vec<Tree<W>>,
    fails: impl Fn(&PlanOf<W>) -> bool,
) -> PlanOf<W> {
    let mut tries = 0..TRIES_MAX;
    // Keeps the changed plan if it fails, too.
    let mut attempt = |best: &mut PlanOf<W>, change: &dyn Fn(&mut PlanOf<W>)| {
        let mut plan = best.clone();
        change(&mut plan);
        let does_fail = tries.next().is_some() && fails(&plan);
        if does_fail {
            *best = plan;
        }
        does_fail
    };
    loop {
        let mut is_better = false;
        while changes::<W>(&best).iter().any(|it| attempt(&mut best, it)) {
            is_better = true;
        }
        // As the strategy simplifies its values. Events that were drawn as one stay one.
        for (number, tree) in trees.iter_mut().enumerate() {
            let is_left = best.happenings.iter().any(|it| it.tree == number);
            let mut has_changed = is_left && tree.simplify();
            while has_changed {
                let simpler = tree.current();
                let is_simpler = attempt(&mut best, &|plan| {
                    for it in plan.happenings.iter_mut().filter(|it| it.tree == number) {
                        it.what = simpler.clone();
                    }
                });
                is_better |= is_simpler;
                has_changed = match is_simpler {
                    true => tree.simplify(),
                    false => tree.complicate(),
                };
            }
        }
        if !is_better {
            return best;
        }
    }
}

/// Something that may make a plan shorter or simpler.
type Change<W> = Box<dyn Fn(&mut PlanOf<W>)>;

/// Returns what may be left out of a plan, and then what may be shorter in it.
fn changes<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let mut changes: Vec<Change<W>> = Vec::new();
    for part in parts(plan.happenings.len()) {
        changes.push(Box::new(move |plan| leave_out::<W>(plan, part.clone())));
    }
    for part in parts(plan.chosen.len()) {
        changes.push(Box::new(move |plan| {
            let mut places = 0..;
            let mut is_in = || places.next().is_some_and(|place| part.contains(&place));
            plan.chosen.retain(|_, _| !is_in());
        }));
    }
    // A run before one with choices, alone or with the event that led to it.
    let sites = plan.chosen.keys().filter(|site| site.run > 1);
    let mut runs: Vec<_> = sites.map(|site| (site.key.clone(), site.run - 1)).collect();
    runs.dedup();
    for (key, run) in runs {
        let events = (0..plan.happenings.len()).map(|place| place..place + 1);
        for event in std::iter::once(0..0).chain(events) {
            let key = key.clone();
            changes.push(Box::new(move |plan| {
                leave_out::<W>(plan, event.clone());
                leave_out_run::<W>(plan, &key, run);
            }));
        }
    }
    for (place, time) in times::<W>(&mut plan.clone()).enumerate() {
        for shorter in shorter_than(*time) {
            changes.push(Box::new(move |plan| {
                times::<W>(plan)
                    .skip(place)
                    .take(1)
                    .for_each(|time| *time = shorter);
            }));
        }
    }
    changes
}

/// Leaves out some of the happenings. All others keep their times.
fn leave_out<W: World>(plan: &mut PlanOf<W>, part: Range<usize>) {
    let place = part.start;
    let left_out: Duration = plan.happenings.drain(part).map(|it| it.gap).sum();
    if let Some(next) = plan.happenings.get_mut(place) {
        next.gap += left_out;
    }
}

/// Leaves out a run: the choices of later runs of the key are for the runs before them then.
fn leave_out_run<W: World>(plan: &mut PlanOf<W>, key: &W::Key, run: u64) {
    let kept = std::mem::take(&mut plan.chosen).into_iter();
    let kept = kept.filter(|(site, _)| site.key != *key || site.run != run);
    plan.chosen = kept
        .map(|(mut site, choice)| {
            site.run -= u64::from(site.key == *key && site.run > run);
            (site, choice)
        })
        .collect();
}

/// The times in a plan: between happenings, and of its choices.
fn times<W: World>(plan: &mut PlanOf<W>) -> impl Iterator<Item = &mut Duration> {
    let gaps = plan.happenings.iter_mut().map(|it| &mut it.gap);
    gaps.chain(plan.chosen.values_mut().map(|it| &mut it.delay))
}

/// Returns all of it, its halves, its quarters and so on, down to one.
fn parts(len: usize) -> Vec<Range<usize>> {
    let sizes = std::iter::successors(Some(len), |size| Some(size / 2));
    let sizes = sizes.take_while(|size| *size > 0);
    let parts = sizes.flat_map(|size| {
        let begins = (0..len).step_by(size);
        begins.map(move |begin| begin..len.min(begin + size))
    });
    parts.collect()
}

/// Returns round durations below this one.
fn shorter_than(duration: Duration) -> impl Iterator<Item = Duration> {
    let round = [
        0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000,
    ];
    let round = round.into_iter().map(Duration::from_millis);
    round.take_while(move |shorter| *shorter < duration)
}

/// How many histories are played to shorten one.
const TRIES_MAX: u32 = 5_000;

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
    let mut does_fail = |plan: &_| tries.next().is_some() && fails(plan);
    loop {
        let found = shorter::<W>(&best).find(&mut does_fail);
        if let Some(plan) = found {
            best = plan;
            continue;
        }
        let mut is_better = false;
        // As the strategy simplifies its values. Events that were drawn as one stay one.
        for (number, tree) in trees.iter_mut().enumerate() {
            let is_left = best.happenings.iter().any(|it| it.tree == number);
            let mut has_changed = is_left && tree.simplify();
            while has_changed {
                let mut plan = best.clone();
                for it in plan.happenings.iter_mut().filter(|it| it.tree == number) {
                    it.what = tree.current();
                }
                has_changed = if does_fail(&plan) {
                    (best, is_better) = (plan, true);
                    tree.simplify()
                } else {
                    tree.complicate()
                };
            }
        }
        if !is_better {
            return best;
        }
    }
}

/// Returns plans in which something is left out, and then plans in which something is shorter.
fn shorter<W: World>(plan: &PlanOf<W>) -> impl Iterator<Item = PlanOf<W>> {
    let fewer = parts(plan.happenings.len()).map(|part| without::<W>(plan, part));
    let calmer = parts(plan.chosen.len()).map(|part| {
        let (mut plan, mut places) = (plan.clone(), 0..);
        let mut is_in = || places.next().is_some_and(|place| part.contains(&place));
        plan.chosen.retain(|_, _| !is_in());
        plan
    });
    // A run before one with choices, alone or with the event that led to it.
    let sites = plan.chosen.keys().filter(|site| site.run > 1);
    let mut runs: Vec<_> = sites.map(|site| (&site.key, site.run - 1)).collect();
    runs.dedup();
    let runs = runs.into_iter().flat_map(move |(key, run)| {
        let events = (0..plan.happenings.len()).map(|place| place..place + 1);
        let events = std::iter::once(0..0).chain(events);
        events.map(move |event| without_run::<W>(without::<W>(plan, event), key, run))
    });
    let sooner = (0..plan.happenings.len() + plan.chosen.len()).flat_map(move |place| {
        shorter_than(*times::<W>(&mut plan.clone())[place]).map(move |shorter| {
            let mut plan = plan.clone();
            *times::<W>(&mut plan)[place] = shorter;
            plan
        })
    });
    fewer.chain(calmer).chain(runs).chain(sooner)
}

/// Leaves out some of the happenings. All others keep their times.
fn without<W: World>(plan: &PlanOf<W>, part: Range<usize>) -> PlanOf<W> {
    let (mut plan, place) = (plan.clone(), part.start);
    let left_out: Duration = plan.happenings.drain(part).map(|it| it.gap).sum();
    if let Some(next) = plan.happenings.get_mut(place) {
        next.gap += left_out;
    }
    plan
}

/// Leaves out a run: the choices of later runs of the key are for the runs before them then.
fn without_run<W: World>(mut plan: PlanOf<W>, key: &W::Key, run: u64) -> PlanOf<W> {
    let kept = plan.chosen.into_iter();
    let kept = kept.filter(|(site, _)| site.key != *key || site.run != run);
    plan.chosen = kept
        .map(|(mut site, choice)| {
            site.run -= u64::from(site.key == *key && site.run > run);
            (site, choice)
        })
        .collect();
    plan
}

/// The times in a plan: between happenings, and of its choices.
fn times<W: World>(plan: &mut PlanOf<W>) -> Vec<&mut Duration> {
    let gaps = plan.happenings.iter_mut().map(|it| &mut it.gap);
    let delays = plan.chosen.values_mut().map(|it| &mut it.delay);
    gaps.chain(delays).collect()
}

/// Returns all of it, its halves, its quarters and so on, down to one.
fn parts(len: usize) -> impl Iterator<Item = Range<usize>> {
    let sizes = std::iter::successors(Some(len), |size| Some(size / 2));
    sizes.take_while(|size| *size > 0).flat_map(move |size| {
        let begins = (0..len).step_by(size);
        begins.map(move |begin| begin..len.min(begin + size))
    })
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

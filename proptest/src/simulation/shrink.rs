//! The shortest history that still breaks the property.

use std::ops::Range;
use std::time::Duration;

use super::World;
use super::choices::{Choice, RANK};
use super::plan::{PlanOf, Stop, Tree, What};

/// Shortens `plan` as long as `fails` says that it still fails: events and faults are left out,
/// then events are made simpler, and times shorter. Calls `fails` [`TRIES_MAX`] times at most.
pub(super) fn shrunk<W: World>(
    plan: PlanOf<W>,
    mut trees: Vec<Tree<W>>,
    mut fails: impl FnMut(&PlanOf<W>) -> bool,
) -> PlanOf<W> {
    let (mut best, mut tries_left) = (plan, TRIES_MAX);
    // Keeps the changed plan if it fails, too.
    let mut attempt = |best: &mut PlanOf<W>, change: &dyn Fn(&mut PlanOf<W>)| {
        if tries_left == 0 {
            return false;
        }
        tries_left -= 1;
        let mut plan = best.clone();
        change(&mut plan);
        let does_fail = fails(&plan);
        if does_fail {
            *best = plan;
        }
        does_fail
    };
    for _ in 0..ROUNDS_MAX {
        let mut is_better = false;
        let (mut left, mut tried) = (changes::<W>(&best), 0);
        while let Some(change) = left.get(tried) {
            if attempt(&mut best, change) {
                is_better = true;
                left = changes::<W>(&best);
            } else {
                tried += 1;
            }
        }
        // As the strategy simplifies its values. Events that were drawn as one stay one.
        for (number, tree) in trees.iter_mut().enumerate() {
            let is_of = |what: &What<W::Event>| matches!(what, What::Event(_, of) if *of == number);
            let is_left = best.happenings.iter().any(|it| is_of(&it.what));
            let mut has_changed = is_left && tree.simplify();
            while has_changed {
                let event = tree.current();
                let is_simpler = attempt(&mut best, &|plan| {
                    for it in plan.happenings.iter_mut().filter(|it| is_of(&it.what)) {
                        it.what = What::Event(event.clone(), number);
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
            break;
        }
    }
    best
}

/// Something that may make a plan shorter or simpler.
type Change<W> = Box<dyn Fn(&mut PlanOf<W>)>;

/// What may be left out of a plan, and then what may be simpler in it.
fn changes<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let mut changes: Vec<Change<W>> = Vec::new();
    for part in parts(plan.happenings.len()) {
        changes.push(Box::new(move |plan| {
            plan.happenings.drain(part.clone());
        }));
    }
    // One event, and the first run of some key with it.
    let later = plan.chosen.keys().filter(|site| site.run > 1);
    let mut keys: Vec<_> = later.filter_map(|site| site.key.clone()).collect();
    keys.dedup();
    for key in keys {
        for place in 0..plan.happenings.len() {
            let key = key.clone();
            changes.push(Box::new(move |plan| {
                plan.happenings.remove(place);
                plan.leave_out_run(&key, 1);
            }));
        }
    }
    for part in parts(plan.chosen.len()) {
        changes.push(Box::new(move |plan| {
            let mut places = 0..plan.chosen.len();
            let mut is_in = || places.next().is_some_and(|place| part.contains(&place));
            plan.chosen.retain(|_, _| !is_in());
        }));
    }
    // A run with a fault, since it leads to another run of the key.
    for (site, choice) in &plan.chosen {
        if let (Some(key), Some(_)) = (site.key.clone(), choice.fault) {
            let run = site.run;
            changes.push(Box::new(move |plan| plan.leave_out_run(&key, run)));
        }
    }
    let mut before = Duration::ZERO;
    for (place, happening) in plan.happenings.iter().enumerate() {
        let gap = happening.at - before;
        before = happening.at;
        // What happens after a gap happens earlier, too.
        for shorter in shorter_than(gap) {
            changes.push(Box::new(move |plan| {
                let later = plan.happenings[place..].iter_mut();
                later.for_each(|it| it.at -= gap - shorter);
            }));
        }
        if let What::Stop(stop) = happening.what {
            let simpler = Stop::ALL.into_iter().take_while(|it| *it != stop);
            changes.extend(simpler.map(|it| -> Change<W> {
                Box::new(move |plan| plan.happenings[place].what = What::Stop(it))
            }));
        }
    }
    for (site, &choice) in &plan.chosen {
        let in_order = (choice.rank != RANK).then_some(RANK);
        let in_order = in_order.map(|rank| Choice { rank, ..choice });
        let shorter = shorter_than(choice.delay).map(|delay| Choice { delay, ..choice });
        for simpler in in_order.into_iter().chain(shorter) {
            let site = site.clone();
            changes.push(Box::new(move |plan| {
                plan.chosen.insert(site.clone(), simpler);
            }));
        }
    }
    changes
}

/// All of it, its halves, its quarters and so on, down to one.
fn parts(len: usize) -> Vec<Range<usize>> {
    let sizes = std::iter::successors(Some(len), |size| Some(size / 2));
    let sizes = sizes.take_while(|size| *size > 0);
    let parts = sizes.flat_map(|size| {
        let begins = (0..len).step_by(size);
        begins.map(move |begin| begin..len.min(begin + size))
    });
    parts.collect()
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
const ROUNDS_MAX: u32 = 20;

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
    fails: impl FnMut(&PlanOf<W>) -> bool,
) -> PlanOf<W> {
    let mut shrinker = Shrinker::<W, _> {
        best: plan,
        tries_left: TRIES_MAX,
        fails,
    };
    let shorter: [fn(&PlanOf<W>) -> Vec<Change<W>>; 4] = [
        without_happenings::<W>,
        without_first_runs::<W>,
        without_choices::<W>,
        without_faulty_runs::<W>,
    ];
    for _ in 0..ROUNDS_MAX {
        let mut is_better = false;
        for changes in shorter {
            is_better |= shrinker.try_all(changes);
        }
        is_better |= shrinker.simplify_events(&mut trees);
        is_better |= shrinker.try_all(simpler_stops::<W>);
        is_better |= shrinker.try_all(shorter_gaps::<W>);
        is_better |= shrinker.try_all(simpler_choices::<W>);
        if !is_better {
            break;
        }
    }
    shrinker.best
}

/// Something that may make a plan shorter or simpler.
type Change<W> = Box<dyn Fn(&mut PlanOf<W>)>;

struct Shrinker<W: World, F> {
    best: PlanOf<W>,
    tries_left: u32,
    fails: F,
}

impl<W: World, F: FnMut(&PlanOf<W>) -> bool> Shrinker<W, F> {
    /// Keeps the changed plan if it fails, too.
    fn attempt(&mut self, change: impl Fn(&mut PlanOf<W>)) -> bool {
        if self.tries_left == 0 {
            return false;
        }
        self.tries_left -= 1;
        let mut plan = self.best.clone();
        change(&mut plan);
        let fails = (self.fails)(&plan);
        if fails {
            self.best = plan;
        }
        fails
    }

    /// Tries each change of the best plan; after one that helps, those that are left then.
    fn try_all(&mut self, changes: fn(&PlanOf<W>) -> Vec<Change<W>>) -> bool {
        let (mut is_better, mut tried) = (false, 0);
        let mut left = changes(&self.best);
        while let Some(change) = left.get(tried) {
            if self.attempt(change) {
                is_better = true;
                left = changes(&self.best);
            } else {
                tried += 1;
            }
        }
        is_better
    }

    /// As the strategy simplifies its values. Events that were drawn as one stay one.
    fn simplify_events(&mut self, trees: &mut [Tree<W>]) -> bool {
        let mut is_better = false;
        for (number, tree) in trees.iter_mut().enumerate() {
            let is_of = |what: &What<W::Event>| matches!(what, What::Event(_, of) if *of == number);
            if !self.best.happenings.iter().any(|it| is_of(&it.what)) {
                continue;
            }
            let mut changes = tree.simplify();
            for _ in 0..SIMPLIFY_MAX {
                if !changes {
                    break;
                }
                let event = tree.current();
                let simpler = self.attempt(|plan| {
                    for it in plan.happenings.iter_mut().filter(|it| is_of(&it.what)) {
                        it.what = What::Event(event.clone(), number);
                    }
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
}

fn change<W: World>(change: impl Fn(&mut PlanOf<W>) + 'static) -> Change<W> {
    Box::new(change)
}

fn without_happenings<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let parts = parts(plan.happenings.len()).into_iter();
    let changes =
        parts.map(|part| change::<W>(move |plan| drop(plan.happenings.drain(part.clone()))));
    changes.collect()
}

/// One event less, and a run of some key with it: what is chosen for later runs of the key is for
/// those before them then.
fn without_first_runs<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let later = plan.chosen.keys().filter(|site| site.run > 1);
    let mut keys: Vec<_> = later.filter_map(|site| site.key.clone()).collect();
    keys.dedup();
    let places = 0..plan.happenings.len();
    let pairs = places.flat_map(|place| keys.iter().cloned().map(move |key| (place, key)));
    let changes = pairs.map(|(place, key)| {
        change::<W>(move |plan| {
            plan.happenings.remove(place);
            plan.leave_out_run(&key, 1);
        })
    });
    changes.collect()
}

fn without_choices<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let changes = parts(plan.chosen.len()).into_iter().map(|part| {
        change::<W>(move |plan| {
            let mut places = 0..plan.chosen.len();
            let mut is_in = || places.next().is_some_and(|place| part.contains(&place));
            plan.chosen.retain(|_, _| !is_in());
        })
    });
    changes.collect()
}

/// Without a run that something goes wrong with, since it leads to another run of the key.
fn without_faulty_runs<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let faulty = plan
        .chosen
        .iter()
        .filter(|(_, choice)| choice.fault.is_some());
    let runs = faulty.filter_map(|(site, _)| Some((site.key.clone()?, site.run)));
    let changes = runs.map(|(key, run)| change::<W>(move |plan| plan.leave_out_run(&key, run)));
    changes.collect()
}

fn simpler_stops<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let places = plan.happenings.iter().enumerate();
    let stops = places.filter_map(|(place, it)| match it.what {
        What::Stop(stop) => Some((place, stop)),
        What::Event(..) => None,
    });
    let simpler = stops.flat_map(|(place, stop)| {
        let simpler = Stop::ALL
            .into_iter()
            .take_while(move |simpler| *simpler != stop);
        simpler.map(move |simpler| (place, simpler))
    });
    let changes = simpler.map(|(place, stop)| {
        change::<W>(move |plan| plan.happenings[place].what = What::Stop(stop))
    });
    changes.collect()
}

/// What happens after a gap happens earlier, too.
fn shorter_gaps<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let mut before = Duration::ZERO;
    let mut changes = Vec::new();
    for (place, it) in plan.happenings.iter().enumerate() {
        let gap = it.at - before;
        before = it.at;
        changes.extend(shorter_than(gap).map(|shorter| {
            change::<W>(move |plan| {
                for later in &mut plan.happenings[place..] {
                    later.at -= gap - shorter;
                }
            })
        }));
    }
    changes
}

fn simpler_choices<W: World>(plan: &PlanOf<W>) -> Vec<Change<W>> {
    let mut changes = Vec::new();
    for (site, &choice) in &plan.chosen {
        let rank = (choice.rank != RANK).then_some(Choice {
            rank: RANK,
            ..choice
        });
        let delays = shorter_than(choice.delay).map(|delay| Choice { delay, ..choice });
        changes.extend(rank.into_iter().chain(delays).map(|simpler| {
            let site = site.clone();
            change::<W>(move |plan| {
                plan.chosen.insert(site.clone(), simpler);
            })
        }));
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
const ROUNDS_MAX: u32 = 8;
/// How many times one event is made simpler in a round.
const SIMPLIFY_MAX: u32 = 200;

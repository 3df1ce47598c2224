//! Running a scenario under many schedules.

use std::env;
use std::sync::Arc;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

use crate::waits::Waits;

/// Runs a scenario under schedules that are drawn: with every thread as likely to be next as any
/// other, and with few changes of priority, which finds what needs a long delay at a bad moment.
///
/// # Panics
///
/// If a schedule fails: shuttle prints it.
pub fn explore<Q: Waits>(name: &str, scenario: fn()) {
    Q::within(|| draw(&format!("{name}, {}", Q::NAME), scenario));
}

fn draw(name: &str, scenario: fn()) {
    let (seed, factor) = (number("SCHEDULES_SEED"), number("SCHEDULES"));
    let (seed, factor) = (seed.unwrap_or(SEED), factor.unwrap_or(1) as usize);
    let uniform = RandomScheduler::new_from_seed(seed, UNIFORM * factor);
    let uniform = run(uniform, scenario);
    let mut by_priority = 0;
    for changes in CHANGES {
        let count = BY_PRIORITY * factor;
        let scheduler = PctScheduler::new_from_seed(seed, changes + 1, count);
        by_priority += run(scheduler, scenario);
    }
    println!("schedules: {name}: {uniform} uniform, {by_priority} by priority");
}

/// Runs a small scenario under every schedule that there is.
///
/// # Panics
///
/// If a schedule fails: shuttle prints it. If there are more than a million.
pub fn explore_all<Q: Waits>(name: &str, scenario: fn()) {
    let all = Q::within(|| run(DfsScheduler::new(Some(ALL_MAX), false), scenario));
    assert!(all < ALL_MAX, "{name}: more schedules than can be tried");
    println!("schedules: {name}, {}: all {all}", Q::NAME);
}

/// Runs a scenario for each of many programs, which `draw` makes of a seed, under some schedules
/// that are drawn as by [`explore`].
///
/// # Panics
///
/// If a schedule fails: shuttle prints it.
pub fn explore_each<Q: Waits, P: Send + Sync + 'static, I: Iterator<Item = P>>(
    name: &str,
    draw: fn(u64, usize) -> I,
    scenario: fn(&Arc<P>),
) {
    let (seed, factor) = (number("SCHEDULES_SEED"), number("SCHEDULES"));
    let (seed, factor) = (seed.unwrap_or(SEED), factor.unwrap_or(1) as usize);
    let (mut uniform, mut by_priority) = (0, 0);
    Q::within(|| {
        for program in draw(seed, PROGRAMS * factor) {
            let program = Arc::new(program);
            let scenario = move || scenario(&program);
            let scheduler = RandomScheduler::new_from_seed(seed, UNIFORM_EACH);
            uniform += run(scheduler, scenario.clone());
            let scheduler = PctScheduler::new_from_seed(seed, CHANGES[0] + 1, BY_PRIORITY_EACH);
            by_priority += run(scheduler, scenario);
        }
    });
    println!(
        "schedules: {name}, {}: {uniform} uniform, {by_priority} by priority",
        Q::NAME
    );
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    // Tokio's runtime needs more than shuttle's default.
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(scenario)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

const SEED: u64 = 0x7265_7175_6575_6521;
const UNIFORM: usize = 20_000;
const BY_PRIORITY: usize = 2_500;
/// Of programs, how many there are, and how many schedules of each.
const PROGRAMS: usize = 600;
const UNIFORM_EACH: usize = 30;
const BY_PRIORITY_EACH: usize = 10;
/// How many times the priorities of a schedule change.
const CHANGES: [usize; 2] = [2, 4];
const ALL_MAX: usize = 1_000_000;
const STACK_BYTES: usize = 256 * 1024;

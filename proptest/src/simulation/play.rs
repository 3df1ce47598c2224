//! A whole history: from the first event until all is quiet.

use std::time::Duration;

use requeue_core::Instant;

use super::World;
use super::choices::{Choices, Chosen};
use super::driver::Simulation;
use super::plan::Plan;
use super::settings::Settings;
use super::timeline::{Breach, Entry};

/// How a history went.
pub(super) struct Played<W: World> {
    pub(super) breach: Option<Breach>,
    pub(super) log: Vec<Entry<W::Key>>,
    pub(super) chosen: Chosen<W::Key>,
    pub(super) steps: u64,
    pub(super) runs: u64,
}

/// Plays `plan` with `choices`, in a fresh world.
pub(super) fn play<W: World>(
    world: W,
    settings: &Settings<W>,
    settle: Duration,
    plan: &Plan<W>,
    choices: Choices<W::Key>,
) -> Played<W> {
    let mut simulation = Simulation::with(world, settings.clone(), choices);
    simulation.plan_arrivals(&plan.arrivals);
    if let Some((at, stop)) = plan.stop {
        simulation.plan_stop(at, stop);
    }
    let arrivals = plan.arrivals.iter().map(|arrival| arrival.at);
    let last = arrivals.chain(plan.stop.map(|(at, _)| at)).max();
    let last = Instant::EPOCH + last.unwrap_or_default();
    let breach = until_quiet(&mut simulation, last, settle).err();
    let (steps, runs) = (simulation.steps(), simulation.shared().runs());
    let (log, chosen) = simulation.into_history();
    Played {
        breach,
        log,
        chosen,
        steps,
        runs,
    }
}

/// Bounded by the steps that a simulation takes.
fn until_quiet<W: World>(
    simulation: &mut Simulation<W>,
    last: Instant,
    settle: Duration,
) -> Result<(), Breach> {
    loop {
        let stepped = simulation.step()?;
        if simulation.is_over() {
            let leftovers = simulation.handed_back();
            simulation.succeed(leftovers);
            continue;
        }
        if !stepped {
            simulation.rest()?;
            break;
        }
        let now = simulation.now();
        let calm = now.saturating_since(last.max(simulation.shared().last_fault.get()));
        // Where keys come back for ever there is a moment when none is active; or else it is late.
        let is_quiet = calm >= settle && simulation.shared().is_idle();
        if is_quiet || calm >= settle.saturating_mul(2) {
            break;
        }
    }
    simulation.check_eventually()
}

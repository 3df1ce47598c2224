//! A reconciler driven by hand, on virtual time.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::limiter::{Exponential, NoLimit};
use requeue_core::priority::WithSuspension;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Added, Concurrency, Instant, Queue, Rejected, Workers};
use requeue_proptest::simulation::{
    Breach, CallFailed, Check, Context, Fault, Keys, Property, SimQueue, Simulation, Stop, World,
};

/// A run is slow, waits for the gate, or answers with the next action, as its key says.
#[derive(Default)]
struct Scripted {
    actions: Vec<Action>,
    /// Their keys, and when they began in milliseconds.
    runs: Vec<String>,
    given_up: Vec<&'static str>,
    is_gate_open: bool,
    waiting: Vec<Waker>,
}

impl World for Scripted {
    type Key = &'static str;
    type Event = &'static str;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<&'static str> {
        Just("key").boxed()
    }

    fn happen(&mut self, key: &&'static str, keys: &Keys<&'static str>) {
        let _ = keys.add_after(key, MS);
    }

    async fn reconcile(context: Context<Self>, key: &'static str) -> Result<Action, CallFailed> {
        let at = context.now().as_nanos() / 1_000_000;
        context.world(|world| world.runs.push(format!("{key} {at}")));
        if key.starts_with("slow") {
            context.sleep(100 * MS).await;
        }
        if key == "gated" {
            let pass = |world: &mut Self, task: &Waker| {
                if world.is_gate_open {
                    return Poll::Ready(());
                }
                world.waiting.push(task.clone());
                Poll::Pending
            };
            poll_fn(|task| context.world(|world| pass(world, task.waker()))).await;
        }
        context.call("call", |_| ()).await?;
        let next = |world: &mut Self| match key {
            "acts" => world.actions.pop(),
            _ => None,
        };
        Ok(context.world(next).unwrap_or_default())
    }

    fn list(&self) -> Option<Vec<&'static str>> {
        Some(vec!["listed"])
    }

    fn gave_up(&mut self, key: &&'static str) {
        self.given_up.push(key);
    }
}

const MS: Duration = Duration::from_millis(1);

type Scripts = Simulation<Scripted>;

fn simulation(workers: impl Into<Workers<'static, &'static str, CallFailed>>) -> Scripts {
    Check::new(Scripted::default)
        .workers(workers)
        .limiter(|| Exponential::new(MS, 8 * MS))
        .by_hand()
}

fn runs(simulation: &mut Scripts) -> String {
    simulation.world(|world| world.runs.join(", "))
}

#[test]
fn workers_run_side_by_side_and_a_key_is_run_again_if_it_is_added_meanwhile() {
    let mut sim = simulation(2);
    for key in ["slow a", "slow b", "slow c"] {
        assert_eq!(sim.keys().add(key), Ok(Added::Ready));
    }
    sim.advance(50 * MS).unwrap();
    assert_eq!(sim.keys().add("slow a"), Ok(Added::Dirty));
    assert_eq!(sim.keys().add("slow a"), Ok(Added::Coalesced));
    sim.run_until_idle().unwrap();
    let expected = "slow a 0, slow b 0, slow c 100, slow a 100";
    assert_eq!(runs(&mut sim), expected);
    assert_eq!(sim.keys().now(), Instant::from_nanos(200_000_000));
}

#[test]
fn the_number_of_workers_may_change() {
    let concurrency = Concurrency::new(1);
    let mut sim = simulation(Workers::new(1).concurrency(&concurrency));
    for key in ["slow a", "slow b", "slow c", "slow d"] {
        sim.keys().add(key).unwrap();
    }
    sim.advance(50 * MS).unwrap();
    concurrency.set(2);
    sim.advance(90 * MS).unwrap();
    concurrency.set(0);
    sim.advance(100 * MS).unwrap();
    assert_eq!(runs(&mut sim), "slow a 0, slow b 50, slow c 100");
}

#[test]
fn what_a_run_answers_is_done() {
    let mut sim = simulation(1);
    let actions = vec![Action::RequeueAfter(3 * MS), Action::Snooze(7 * MS)];
    sim.world(|world| world.actions = actions);
    sim.keys().add("acts").unwrap();
    sim.advance(100 * MS).unwrap();
    assert_eq!(runs(&mut sim), "acts 0, acts 7, acts 10");
}

#[test]
fn a_run_that_fails_panics_or_is_aborted_is_tried_again() {
    for &fault in Fault::ALL {
        let mut sim = simulation(1);
        sim.happen(&"a").unwrap();
        for _ in 0..2 {
            sim.inject(fault);
            sim.advance(MS).unwrap();
        }
        sim.advance(100 * MS).unwrap();
        // A late call comes after 100 ms, and adds its key.
        let late = match fault {
            Fault::EffectLate => ", a 101, a 102",
            _ => "",
        };
        assert_eq!(runs(&mut sim), format!("a 1, a 2, a 4{late}"), "{fault:?}");
    }
}

#[test]
fn a_run_that_takes_too_long_is_stopped_and_given_up_as_the_workers_say() {
    let mut sim = simulation(Workers::new(1).timeout(10 * MS).max_retries(1));
    let _ = (sim.keys().add("slow"), sim.keys().add("b"));
    sim.advance(200 * MS).unwrap();
    assert_eq!(runs(&mut sim), "slow 0, b 10, slow 11");
    assert_eq!(sim.world(|world| world.given_up.clone()), ["slow"]);
}

#[test]
fn a_future_of_ones_own_is_woken_by_its_waker() {
    let mut sim = simulation(2);
    let _ = (sim.keys().add("gated"), sim.keys().add("other"));
    sim.advance(5 * MS).unwrap();
    let called = "\"gated\"  call: done";
    assert!(!sim.timeline().contains(called));
    let waiting = sim.world(|world| {
        world.is_gate_open = true;
        std::mem::take(&mut world.waiting)
    });
    waiting.into_iter().for_each(Waker::wake);
    sim.run_until_idle().unwrap();
    assert!(sim.timeline().contains(called), "{}", sim.timeline());
}

#[test]
fn a_run_that_never_ends_is_reported_with_its_time_and_key() {
    let mut sim = simulation(1);
    sim.keys().add_after("gated", 3 * MS).unwrap();
    sim.advance(3 * MS).unwrap();
    let breach = sim.run_until_idle().unwrap_err();
    assert_eq!(breach.property, Property::RunEnds);
    for part in ["\"gated\"", "worker 0", "began at 3ms"] {
        assert!(breach.reason.contains(part), "{breach}");
    }
    let breach = sim.advance(Duration::from_secs(601)).unwrap_err();
    assert_eq!(breach.property, Property::RunEnds);
}

/// After 50 ms one key is suspended, one active, one ready, and one delayed.
#[test]
fn each_stop_hands_back_what_it_leaves_and_a_successor_runs_it() -> Result<(), Breach> {
    for (stop, handed_back, later) in [
        (
            Stop::Drain,
            "acts 59900, later 8900",
            "ready 100, late 100, later 9000, acts 60000",
        ),
        (
            Stop::Finish,
            "acts 59900, later 8900, ready 0",
            "ready 100, late 100, later 9000, acts 60000",
        ),
        (
            Stop::Abort,
            "acts 59950, later 8950, ready 0, slow 1",
            "ready 50, late 50, slow 51, later 9000, acts 60000",
        ),
        (Stop::Crash, "", "late 50, listed 50"),
    ] {
        let mut sim = simulation(1);
        sim.world(|world| world.actions = vec![Action::Suspend(60_000 * MS)]);
        for key in ["acts", "slow", "ready"] {
            sim.keys().add(key).unwrap();
        }
        sim.keys().add_after("later", 9_000 * MS).unwrap();
        sim.advance(50 * MS)?;
        let leftovers = sim.shut_down(stop)?;
        let left = leftovers.iter();
        let left = left.map(|leftover| format!("{} {}", leftover.key, leftover.left.as_millis()));
        let mut left: Vec<_> = left.collect();
        left.sort_unstable();
        assert_eq!(left.join(", "), handed_back, "{stop:?}");
        assert_eq!(sim.keys().add("late"), Err(Rejected::Closed("late")));
        sim.restart(leftovers);
        sim.advance(70_000 * MS)?;
        let all = runs(&mut sim);
        assert_eq!(all, format!("acts 0, slow 0, {later}"), "{stop:?}");
    }
    Ok(())
}

#[test]
fn a_queue_with_a_capacity_refuses_keys_and_can_be_reached() {
    type Small = SimQueue<&'static str, WithSuspension, NoLimit, Fixed<1>>;
    let small = || Queue::<_, WithSuspension, NoLimit, Fixed<1>>::new(NoLimit);
    let check = Check::new(Scripted::default).queue(small).workers(1);
    let mut sim = check.by_hand();
    assert_eq!(sim.keys().add("a"), Ok(Added::Ready));
    assert_eq!(sim.keys().add("b"), Err(Rejected::Full("b")));
    let queue = sim.keys().queue::<Small>().unwrap();
    queue.pause();
    sim.advance(MS).unwrap();
    queue.unpause();
    sim.run_until_idle().unwrap();
    assert_eq!(runs(&mut sim), "a 1");
    let other = sim.keys().queue::<SimQueue<&'static str>>();
    assert!(other.is_none());
}

//! A reconciler driven by hand, on virtual time.

use std::future::poll_fn;
use std::mem;
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::limiter::Exponential;
use requeue_core::{Action, Added, Concurrency, Instant, Rejected, Workers};
use requeue_proptest::simulation::{
    Breach, CallFailed, Check, Context, Fault, Keys, Property, Simulation, Stop, World,
};

/// A run is slow, lets another go first, waits for the gate, or is suspended, as its key says.
#[derive(Default)]
struct Scripted {
    /// Their keys, and when they began in milliseconds.
    runs: Vec<String>,
    given_up: Vec<&'static str>,
    /// Of the run that waits for the gate: its next poll opens it.
    waiting: Option<Waker>,
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
        while key == "polite" && context.world(|world| world.runs.len() < 2) {
            context.pause().await;
        }
        if key == "gated" {
            let gate = poll_fn(|task| {
                let waker = Some(task.waker().clone());
                match context.world(|world| mem::replace(&mut world.waiting, waker)) {
                    None => Poll::Pending,
                    Some(_) => Poll::Ready(()),
                }
            });
            gate.await;
        }
        context.call("call", |_| ()).await?;
        match key {
            "suspends" => Ok(Action::Suspend(60_000 * MS)),
            _ => Ok(Action::Success),
        }
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
fn workers_run_side_by_side_and_their_number_may_change() {
    let concurrency = Concurrency::new(1);
    let mut sim = simulation(Workers::new(1).concurrency(&concurrency));
    for key in ["slow a", "slow b", "slow c", "slow d"] {
        assert_eq!(sim.keys().add(key), Ok(Added::Ready));
    }
    sim.advance(50 * MS).unwrap();
    assert_eq!(sim.keys().add("slow a"), Ok(Added::Dirty));
    assert_eq!(sim.keys().add("slow a"), Ok(Added::Coalesced));
    concurrency.set(3);
    sim.advance(90 * MS).unwrap();
    concurrency.set(0);
    sim.advance(100 * MS).unwrap();
    assert_eq!(runs(&mut sim), "slow a 0, slow b 50, slow c 50, slow d 100");
    concurrency.set(1);
    sim.run_until_idle().unwrap();
    assert!(runs(&mut sim).ends_with(", slow a 240"));
    assert_eq!(sim.keys().now(), Instant::from_nanos(340_000_000));
}

#[test]
fn a_run_that_pauses_lets_others_go_first() {
    let mut sim = simulation(2);
    let _ = (sim.keys().add("polite"), sim.keys().add("other"));
    sim.run_until_idle().unwrap();
    assert_eq!(runs(&mut sim), "polite 0, other 0");
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
fn a_run_that_never_ends_is_reported_until_the_waker_of_its_own_future_is_called() {
    let mut sim = simulation(1);
    sim.keys().add_after("gated", 3 * MS).unwrap();
    sim.advance(3 * MS).unwrap();
    for outcome in [sim.run_until_idle(), sim.advance(600_001 * MS)] {
        let breach = outcome.unwrap_err();
        assert_eq!(breach.property, Property::RunEnds);
        for part in ["\"gated\"", "worker 0", "began at 3ms"] {
            assert!(breach.reason.contains(part), "{breach}");
        }
    }
    sim.advance(600_000 * MS).unwrap();
    assert!(!sim.timeline().contains("call: done"));
    sim.world(|world| world.waiting.clone()).unwrap().wake();
    sim.run_until_idle().unwrap();
    assert!(sim.timeline().contains("call: done"), "{}", sim.timeline());
}

/// After 50 ms one key is suspended, one active, one ready, and one delayed.
#[test]
fn each_stop_hands_back_what_it_leaves_and_a_successor_runs_it() -> Result<(), Breach> {
    let drained = "ready 100, late 100, later 9000, suspends 60000";
    let aborted = "ready 50, late 50, slow 51, later 9000, suspends 60000";
    for (stop, handed_back, later) in [
        (Stop::Drain, "later 8900, suspends 59900", drained),
        (Stop::Finish, "later 8900, ready 0, suspends 59900", drained),
        (
            Stop::Abort,
            "later 8950, ready 0, slow 1, suspends 59950",
            aborted,
        ),
        (Stop::Crash, "", "late 50, listed 50"),
    ] {
        let mut sim = simulation(1);
        for key in ["suspends", "slow", "ready"] {
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
        let expected = format!("suspends 0, slow 0, {later}");
        assert_eq!(runs(&mut sim), expected, "{stop:?}");
    }
    Ok(())
}

//! A reconciler driven by hand, on virtual time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::limiter::{Exponential, NoLimit};
use requeue_core::priority::WithSuspension;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Added, Instant, Queue, Rejected, Workers};
use requeue_proptest::simulation::{
    Breach, CallFailed, Context, Fault, Keys, Property, Simulation, Stop, World,
};

/// Its runs do what the test says for their key.
#[derive(Default)]
struct Scripted {
    actions: Vec<(&'static str, Action)>,
    slow: Vec<&'static str>,
    runs: Vec<(&'static str, u64)>,
    given_up: Vec<&'static str>,
    listed: Vec<&'static str>,
    gate: Rc<RefCell<Gate>>,
}

/// Something of the user's own that runs wait for.
#[derive(Default)]
struct Gate {
    is_open: bool,
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
        context.world(|world| world.runs.push((key, at)));
        if context.world(|world| world.slow.contains(&key)) {
            context.sleep(100 * MS).await;
        }
        if key == "gated" {
            let gate = context.world(|world| Rc::clone(&world.gate));
            poll_fn(|task| {
                let mut gate = gate.borrow_mut();
                if gate.is_open {
                    return Poll::Ready(());
                }
                gate.waiting.push(task.waker().clone());
                Poll::Pending
            })
            .await;
        }
        context.call("call", |_| ()).await?;
        let action = |world: &mut Self| {
            let place = world.actions.iter().position(|(of, _)| *of == key);
            place.map(|place| world.actions.remove(place).1)
        };
        Ok(context.world(action).unwrap_or_default())
    }

    fn list(&self) -> Option<Vec<&'static str>> {
        Some(self.listed.clone())
    }

    fn gave_up(&mut self, key: &&'static str) {
        self.given_up.push(key);
    }
}

const MS: Duration = Duration::from_millis(1);

fn simulation(world: Scripted, workers: usize) -> Simulation<Scripted> {
    Simulation::new(world)
        .workers(workers)
        .limiter(|| Exponential::new(MS, 8 * MS))
}

#[test]
fn workers_run_side_by_side_and_a_key_is_run_again_if_it_is_added_meanwhile() {
    let slow = vec!["a", "b", "c"];
    let mut sim = simulation(
        Scripted {
            slow,
            ..Scripted::default()
        },
        2,
    );
    for key in ["a", "b", "c"] {
        assert_eq!(sim.add(key), Ok(Added::Ready));
    }
    sim.advance(50 * MS).unwrap();
    assert_eq!(sim.add("a"), Ok(Added::Dirty));
    assert_eq!(sim.add("a"), Ok(Added::Coalesced));
    sim.run_until_idle().unwrap();
    let runs = sim.world(|world| world.runs.clone());
    assert_eq!(runs, [("a", 0), ("b", 0), ("c", 100), ("a", 100)]);
    assert_eq!(sim.now(), Instant::from_nanos(200_000_000));
}

#[test]
fn what_a_run_answers_is_done() {
    let actions = vec![
        ("a", Action::Snooze(7 * MS)),
        ("a", Action::RequeueAfter(3 * MS)),
        ("a", Action::Success),
    ];
    let mut sim = simulation(
        Scripted {
            actions,
            ..Scripted::default()
        },
        1,
    );
    sim.add("a").unwrap();
    sim.advance(100 * MS).unwrap();
    let runs = sim.world(|world| world.runs.clone());
    assert_eq!(runs, [("a", 0), ("a", 7), ("a", 10)]);
}

#[test]
fn a_run_that_fails_panics_or_is_aborted_is_tried_again() {
    for &fault in Fault::ALL {
        let mut sim = simulation(Scripted::default(), 1);
        sim.happen(&"a").unwrap();
        sim.inject(fault);
        sim.advance(MS).unwrap();
        sim.inject(fault);
        sim.advance(MS).unwrap();
        sim.advance(100 * MS).unwrap();
        let mut runs = sim.world(|world| world.runs.clone());
        if fault == Fault::EffectLate {
            // Each call comes after 100 ms, and adds its key.
            assert_eq!(runs.split_off(3), [("a", 101), ("a", 102)]);
        }
        assert_eq!(runs, [("a", 1), ("a", 2), ("a", 4)], "{fault:?}");
    }
}

#[test]
fn a_run_that_takes_too_long_is_stopped_and_has_failed() {
    let slow = Scripted {
        slow: vec!["a"],
        ..Scripted::default()
    };
    let workers = Workers::new(1).timeout(10 * MS).max_retries(1);
    let mut sim = simulation(slow, 1).workers(workers);
    let _ = (sim.add("a"), sim.add("b"));
    sim.advance(200 * MS).unwrap();
    let runs = sim.world(|world| world.runs.clone());
    assert_eq!(runs, [("a", 0), ("b", 10), ("a", 11)]);
    assert_eq!(sim.world(|world| world.given_up.clone()), ["a"]);
}

#[test]
fn a_key_is_given_up_as_the_workers_say() {
    let mut sim = simulation(Scripted::default(), 1).workers(Workers::new(1).max_retries(1));
    sim.add("a").unwrap();
    for delay in [Duration::ZERO, MS] {
        sim.inject(Fault::Panic);
        sim.advance(delay).unwrap();
    }
    sim.advance(100 * MS).unwrap();
    assert_eq!(sim.world(|world| world.given_up.clone()), ["a"]);
    assert_eq!(sim.world(|world| world.runs.len()), 2);
}

#[test]
fn a_future_of_ones_own_is_woken_by_its_waker() {
    let world = Scripted::default();
    let gate = Rc::clone(&world.gate);
    let mut sim = simulation(world, 2);
    sim.add("gated").unwrap();
    sim.add("other").unwrap();
    sim.advance(5 * MS).unwrap();
    assert!(
        !sim.timeline().contains("\"gated\"  call"),
        "{}",
        sim.timeline()
    );
    let waiting = {
        let mut gate = gate.borrow_mut();
        gate.is_open = true;
        std::mem::take(&mut gate.waiting)
    };
    waiting.into_iter().for_each(Waker::wake);
    sim.run_until_idle().unwrap();
    assert!(
        sim.timeline().contains("\"gated\"  call: done"),
        "{}",
        sim.timeline()
    );
}

#[test]
fn a_run_that_never_ends_is_reported_with_its_time_and_key() {
    let mut sim = simulation(Scripted::default(), 1);
    sim.add_after("gated", 3 * MS).unwrap();
    sim.advance(3 * MS).unwrap();
    let breach = sim.run_until_idle().unwrap_err();
    assert_eq!(breach.property, Property::RunEnds);
    for part in ["\"gated\"", "worker 0", "began at 3ms"] {
        assert!(breach.reason.contains(part), "{breach}");
    }
    let mut sim = simulation(Scripted::default(), 1);
    sim.add("gated").unwrap();
    let breach = sim.advance(Duration::from_secs(601)).unwrap_err();
    assert_eq!(breach.property, Property::RunEnds);
}

#[test]
fn a_drain_works_on_what_is_ready_and_hands_back_the_rest() -> Result<(), Breach> {
    let world = Scripted {
        slow: vec!["slow"],
        ..Scripted::default()
    };
    let mut sim = simulation(world, 1);
    sim.add("slow").unwrap();
    sim.add("ready").unwrap();
    sim.add_after("later", Duration::from_secs(9)).unwrap();
    sim.advance(50 * MS)?;
    let leftovers = sim.shut_down(Stop::Drain)?;
    assert_eq!(sim.world(|world| world.runs.len()), 2);
    assert_eq!(leftovers.len(), 1);
    assert_eq!(leftovers[0].key, "later");
    assert_eq!(sim.add("late"), Err(Rejected::Closed("late")));
    sim.restart(leftovers);
    sim.advance(Duration::from_secs(9))?;
    let runs = sim.world(|world| world.runs.clone());
    assert_eq!(runs[2..], [("late", 100), ("later", 9_000)]);
    Ok(())
}

#[test]
fn other_stops_hand_back_what_is_ready_and_what_runs() -> Result<(), Breach> {
    for (stop, left) in [
        (Stop::Finish, vec!["ready", "second"]),
        (Stop::Abort, vec!["ready", "second", "slow"]),
    ] {
        let world = Scripted {
            slow: vec!["slow"],
            ..Scripted::default()
        };
        let mut sim = simulation(world, 1);
        for key in ["slow", "ready", "second"] {
            sim.add(key).unwrap();
        }
        sim.advance(50 * MS)?;
        let leftovers = sim.shut_down(stop)?;
        let mut keys: Vec<_> = leftovers.iter().map(|leftover| leftover.key).collect();
        keys.sort_unstable();
        assert_eq!(keys, left, "{stop:?}");
    }
    Ok(())
}

#[test]
fn a_crash_loses_all_but_what_the_world_lists() -> Result<(), Breach> {
    let world = Scripted {
        slow: vec!["slow"],
        listed: vec!["ready"],
        ..Scripted::default()
    };
    let mut sim = simulation(world, 1);
    for key in ["slow", "ready", "lost"] {
        sim.add(key).unwrap();
    }
    sim.advance(50 * MS)?;
    let leftovers = sim.shut_down(Stop::Crash)?;
    assert!(leftovers.is_empty());
    sim.restart(leftovers);
    sim.advance(Duration::from_secs(1))?;
    let runs = sim.world(|world| world.runs.clone());
    assert_eq!(runs, [("slow", 0), ("ready", 50)]);
    Ok(())
}

#[test]
fn a_queue_with_a_capacity_refuses_keys() {
    let small = || Queue::<&str, WithSuspension, NoLimit, Fixed<1>>::new(NoLimit);
    let mut sim = Simulation::new(Scripted::default()).queue(small).workers(1);
    assert_eq!(sim.add("a"), Ok(Added::Ready));
    assert_eq!(sim.add("b"), Err(Rejected::Full("b")));
    sim.run_until_idle().unwrap();
    assert_eq!(sim.world(|world| world.runs.clone()), [("a", 0)]);
}

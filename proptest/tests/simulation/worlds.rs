//! A reconciler with one bad habit.

use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::Action;
use requeue_proptest::simulation::{CallFailed, Context, Keys, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    None,
    /// Returns success, although a call failed.
    SwallowsFailures,
    /// Is not idempotent.
    CountsTwice,
    /// Adds what is missing, and so adds it twice if a write comes after the retry has looked.
    AddsWhatIsMissing,
    /// Calls it done when it is asked to stop.
    QuitsAtShutdown,
    /// Waits for what does not come.
    Hangs,
    /// Wakes itself for ever.
    Spins,
    /// Comes back at once, always.
    NeverRests,
    /// Looks again, in pauses that grow, until it finds its work done.
    Polls,
    /// Its world asserts.
    AssertsInItsWorld,
    LeftToChance,
}

/// Totals that are to be copied.
#[derive(Debug)]
pub(crate) struct Counting {
    habit: Habit,
    wanted: BTreeMap<u8, u32>,
    real: BTreeMap<u8, u32>,
    /// Up to where the real totals were counted.
    marked: BTreeMap<u8, u32>,
}

impl Counting {
    pub(crate) fn new(habit: Habit) -> Self {
        Self {
            habit,
            wanted: BTreeMap::new(),
            real: BTreeMap::new(),
            marked: BTreeMap::new(),
        }
    }
}

/// The total of a key grows.
#[derive(Clone, Debug)]
pub(crate) struct Grows(u8, u32);

impl World for Counting {
    type Key = u8;
    type Event = Grows;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Grows> {
        let grows = (0..4u8, 1..100u32);
        grows.prop_map(|(key, by)| Grows(key, by)).boxed()
    }

    fn happen(&mut self, event: &Grows, keys: &Keys<u8>) {
        let Grows(key, by) = *event;
        assert!(self.habit != Habit::AssertsInItsWorld, "that is too much");
        *self.wanted.entry(key).or_insert(0) += by;
        let _ = keys.add(key);
    }

    async fn reconcile(context: Context<Self>, key: u8) -> Result<Action, CallFailed> {
        match context.world(|world| world.habit) {
            Habit::Hangs => pending().await,
            Habit::Spins => {
                poll_fn(|task| {
                    task.waker().wake_by_ref();
                    Poll::<()>::Pending
                })
                .await;
            }
            Habit::NeverRests => return Ok(Action::RequeueAfter(Duration::ZERO)),
            Habit::LeftToChance => {
                static THROWS: AtomicU64 = AtomicU64::new(0);
                let thrown = THROWS.fetch_add(1, Ordering::Relaxed);
                context.note(thrown.to_string());
            }
            _ => {}
        }
        let habit = context.world(|world| world.habit);
        let read = move |world: &mut Self| {
            let real = world.real.get(&key).copied();
            (
                world.wanted[&key],
                real.unwrap_or(0),
                world.marked.get(&key).copied(),
            )
        };
        let (wanted, found, marked) = context.call("read", read).await?;
        if habit == Habit::QuitsAtShutdown && context.keys().is_shutting_down() {
            return Ok(Action::Success);
        }
        let write = move |world: &mut Self| {
            let real = world.real.entry(key).or_insert(0);
            *real = match habit {
                Habit::CountsTwice => *real + wanted - marked.unwrap_or(0),
                Habit::AddsWhatIsMissing => *real + wanted - found,
                _ => wanted,
            };
        };
        let written = context.call("write", write).await;
        if habit == Habit::SwallowsFailures {
            return Ok(Action::Success);
        }
        written?;
        let mark = move |world: &mut Self| world.marked.insert(key, wanted);
        context.call("mark", mark).await?;
        Ok(match habit {
            Habit::Polls if marked != Some(wanted) => {
                let poll = Action::poll(Duration::from_millis(1), Duration::from_millis(8));
                poll.with_priority(0)
            }
            _ => Action::Success,
        })
    }

    fn always(&self) -> Result<(), String> {
        for (key, real) in &self.real {
            if real > &self.wanted[key] {
                return Err(format!("{key} is {real}, wanted {}", self.wanted[key]));
            }
        }
        Ok(())
    }

    fn eventually(&self) -> Result<(), String> {
        (self.wanted == self.real)
            .then_some(())
            .ok_or_else(|| format!("{:?} is not {:?}", self.real, self.wanted))
    }
}

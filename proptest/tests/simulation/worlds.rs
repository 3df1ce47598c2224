//! A reconciler with one habit, mostly a bad one.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::{Action, Instant};
use requeue_proptest::simulation::{CallFailed, Context, Keys, World};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub(crate) enum Habit {
    #[default]
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
    /// Asks for a grant before it writes, and returns `Action::Suspend` until that is there.
    SuspendsAtItsEnd,
    /// The same, but it calls `suspend` before it asks.
    SuspendsBeforeItAsks,
    /// The same, but it calls `suspend` when it has asked: the grant may have come meanwhile.
    SuspendsAfterItAsked,
}

impl Habit {
    fn needs_grant(self) -> bool {
        self >= Self::SuspendsAtItsEnd
    }
}

/// Totals that are to be copied.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    habit: Habit,
    wanted: BTreeMap<u8, u32>,
    real: BTreeMap<u8, u32>,
    /// Up to where the real totals were counted.
    marked: BTreeMap<u8, u32>,
    asked: BTreeSet<u8>,
    /// Since when.
    granted: BTreeMap<u8, Instant>,
    /// A key that waited until its timeout, although its grant was there.
    overslept: Option<u8>,
}

impl Counting {
    pub(crate) fn new(habit: Habit) -> Self {
        Self {
            habit,
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The total of a key grows.
    Grows(u8, u32),
    /// A key that has asked for a grant has it.
    Granted(u8),
}

impl World for Counting {
    type Key = u8;
    type Event = Event;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Event> {
        let grows = (0..4u8, 1..100u32).prop_map(|(key, by)| Event::Grows(key, by));
        let granted = (0..4u8).prop_map(Event::Granted);
        if self.habit.needs_grant() {
            return prop_oneof![1 => grows, 3 => granted].boxed();
        }
        grows.boxed()
    }

    fn happen(&mut self, event: &Event, keys: &Keys<u8>) {
        assert!(self.habit != Habit::AssertsInItsWorld, "that is too much");
        match *event {
            Event::Grows(key, by) => {
                *self.wanted.entry(key).or_insert(0) += by;
                let _ = keys.add(key);
            }
            Event::Granted(key) if self.asked.contains(&key) => {
                self.granted.entry(key).or_insert(keys.now());
                keys.resume(&key);
            }
            Event::Granted(_) => {}
        }
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
        if habit.needs_grant()
            && let Some(action) = Self::wait_for_grant(&context, key, habit).await?
        {
            return Ok(action);
        }
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
        if let Some(key) = self.overslept {
            return Err(format!("{key} overslept"));
        }
        for (key, real) in &self.real {
            if real > &self.wanted[key] {
                return Err(format!("{key} is {real}, wanted {}", self.wanted[key]));
            }
        }
        Ok(())
    }

    fn eventually(&self) -> Result<(), String> {
        let mut wanted = self.wanted.clone();
        wanted.retain(|key, _| !self.habit.needs_grant() || self.granted.contains_key(key));
        (wanted == self.real)
            .then_some(())
            .ok_or_else(|| format!("{:?} is not {wanted:?}", self.real))
    }
}

impl Counting {
    /// Returns how the run ends if there is no grant yet.
    async fn wait_for_grant(
        context: &Context<Self>,
        key: u8,
        habit: Habit,
    ) -> Result<Option<Action>, CallFailed> {
        let (began, timed_out) = (context.now(), context.run().timed_out);
        let look = move |world: &mut Self| {
            let granted = world.granted.get(&key);
            if timed_out && granted.is_some_and(|since| *since < began) {
                world.overslept = Some(key);
            }
            (world.asked.contains(&key), granted.is_some())
        };
        let (was_asked, is_granted) = context.call("look", look).await?;
        if is_granted {
            return Ok(None);
        }
        let ask = move |world: &mut Self| world.asked.insert(key);
        if was_asked || habit == Habit::SuspendsAtItsEnd {
            context.call("ask", ask).await?;
            return Ok(Some(Action::Suspend(TIMEOUT)));
        }
        if habit == Habit::SuspendsBeforeItAsks {
            context.keys().suspend(&key, TIMEOUT);
        }
        context.call("ask", ask).await?;
        if habit == Habit::SuspendsAfterItAsked {
            context.keys().suspend(&key, TIMEOUT);
        }
        Ok(Some(Action::RequeueAfter(Duration::ZERO)))
    }
}

/// How long a key waits for its grant.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

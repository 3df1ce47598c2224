//! A reconciler with one habit, mostly a bad one.

use std::collections::BTreeMap;
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
    /// Runs again at once, always.
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
    totals: BTreeMap<u8, Total>,
}

#[derive(Clone, Debug, Default)]
struct Total {
    wanted: u32,
    real: u32,
    /// Up to where the real total was counted.
    marked: u32,
    has_asked: bool,
    granted: Option<Instant>,
    /// It waited until its timeout, although its grant was there.
    has_overslept: bool,
}

impl Counting {
    pub(crate) fn new(habit: Habit) -> Self {
        let totals = BTreeMap::new();
        Self { habit, totals }
    }

    fn total(&mut self, key: u8) -> &mut Total {
        self.totals.entry(key).or_default()
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
        let grants = if self.habit.needs_grant() { 3 } else { 0 };
        prop_oneof![1 => grows, grants => granted].boxed()
    }

    fn happen(&mut self, event: &Event, keys: &Keys<u8>) {
        assert!(self.habit != Habit::AssertsInItsWorld, "that is too much");
        match *event {
            Event::Grows(key, by) => {
                self.total(key).wanted += by;
                let _ = keys.add(key);
            }
            Event::Granted(key) if self.total(key).has_asked => {
                self.total(key).granted.get_or_insert(keys.now());
                keys.resume(&key);
            }
            Event::Granted(_) => {}
        }
    }

    async fn reconcile(context: Context<Self>, key: u8) -> Result<Action, CallFailed> {
        let habit = context.world(|world| world.habit);
        match habit {
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
        if habit.needs_grant()
            && let Some(action) = Self::wait_for_grant(&context, key, habit).await?
        {
            return Ok(action);
        }
        let read = move |world: &mut Self| world.total(key).clone();
        let seen = context.call("read", read).await?;
        if habit == Habit::QuitsAtShutdown && context.keys().is_shutting_down() {
            return Ok(Action::Success);
        }
        let write = move |world: &mut Self| {
            let total = world.total(key);
            total.real = match habit {
                Habit::CountsTwice => total.real + seen.wanted - seen.marked,
                Habit::AddsWhatIsMissing => total.real + seen.wanted - seen.real,
                _ => seen.wanted,
            };
        };
        let written = context.call("write", write).await;
        if habit == Habit::SwallowsFailures {
            return Ok(Action::Success);
        }
        written?;
        let mark = move |world: &mut Self| world.total(key).marked = seen.wanted;
        context.call("mark", mark).await?;
        if habit == Habit::Polls && seen.marked != seen.wanted {
            let poll = Action::poll(Duration::from_millis(1), Duration::from_millis(8));
            return Ok(poll.with_priority(0));
        }
        Ok(Action::Success)
    }

    fn always(&self) -> Result<(), String> {
        let is_wrong = |total: &&Total| total.has_overslept || total.real > total.wanted;
        let wrong = self.totals.values().find(is_wrong);
        wrong.map_or(Ok(()), |total| Err(format!("{total:?}")))
    }

    fn eventually(&self) -> Result<(), String> {
        let is_free = |total: &Total| !self.habit.needs_grant() || total.granted.is_some();
        let wanted = |total: &Total| if is_free(total) { total.wanted } else { 0 };
        let other = self.totals.values().find(|it| it.real != wanted(it));
        other.map_or(Ok(()), |total| Err(format!("{total:?}")))
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
            let total = world.total(key);
            total.has_overslept |= timed_out && total.granted.is_some_and(|since| since < began);
            total.clone()
        };
        let seen = context.call("look", look).await?;
        if seen.granted.is_some() {
            return Ok(None);
        }
        let ask = move |world: &mut Self| world.total(key).has_asked = true;
        if !seen.has_asked && habit == Habit::SuspendsBeforeItAsks {
            context.keys().suspend(&key, TIMEOUT);
        }
        context.call("ask", ask).await?;
        if seen.has_asked || habit == Habit::SuspendsAtItsEnd {
            return Ok(Some(Action::Suspend(TIMEOUT)));
        }
        if habit == Habit::SuspendsAfterItAsked {
            context.keys().suspend(&key, TIMEOUT);
        }
        Ok(Some(Action::RequeueAfter(Duration::ZERO)))
    }
}

/// How long a key waits for its grant.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

//! Reconcilers that wait for an event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::{Action, Instant};
use requeue_proptest::simulation::{CallFailed, Check, Context, Keys, Property, World};

use crate::failure;

/// How a run waits for the volume that it has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// It returns `Action::Suspend`.
    AtItsEnd,
    /// It calls `suspend` before it asks.
    BeforeItAsks,
    /// It calls `suspend` when it has asked: the event may have come meanwhile.
    AfterItAsked,
}

/// Volumes that are there some time after they were asked for.
struct Volumes {
    wait: Wait,
    asked: BTreeSet<u8>,
    there: BTreeMap<u8, Instant>,
    attached: BTreeSet<u8>,
    /// Keys that waited until their timeouts, although their volumes were there.
    overslept: BTreeSet<u8>,
}

impl Volumes {
    fn new(wait: Wait) -> Self {
        Self {
            wait,
            asked: BTreeSet::new(),
            there: BTreeMap::new(),
            attached: BTreeSet::new(),
            overslept: BTreeSet::new(),
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Wanted(u8),
    Provisioned(u8),
}

impl World for Volumes {
    type Key = u8;
    type Event = Event;
    type Error = CallFailed;

    fn event(&self) -> BoxedStrategy<Event> {
        let key = || 0..3u8;
        prop_oneof![
            1 => key().prop_map(Event::Wanted),
            3 => key().prop_map(Event::Provisioned),
        ]
        .boxed()
    }

    fn happen(&mut self, event: &Event, keys: &Keys<u8>) {
        match *event {
            Event::Wanted(key) => drop(keys.add(key)),
            Event::Provisioned(key) if self.asked.contains(&key) => {
                self.there.entry(key).or_insert(keys.now());
                keys.resume(&key);
            }
            Event::Provisioned(_) => {}
        }
    }

    async fn reconcile(context: Context<Self>, key: u8) -> Result<Action, CallFailed> {
        let began = context.now();
        let timed_out = context.run().timed_out;
        let wait = context.world(|world| {
            let was_there = world.there.get(&key).is_some_and(|since| *since < began);
            if timed_out && was_there {
                world.overslept.insert(key);
            }
            world.wait
        });
        let look = move |world: &mut Self| {
            let is_there = world.there.contains_key(&key);
            (world.asked.contains(&key), is_there)
        };
        let (was_asked, is_there) = context.call("look", look).await?;
        if is_there {
            let attach = move |world: &mut Self| world.attached.insert(key);
            context.call("attach", attach).await?;
            return Ok(Action::Success);
        }
        if was_asked || wait == Wait::AtItsEnd {
            let ask = move |world: &mut Self| world.asked.insert(key);
            context.call("ask", ask).await?;
            return Ok(Action::Suspend(TIMEOUT));
        }
        if wait == Wait::BeforeItAsks {
            context.keys().suspend(&key, TIMEOUT);
        }
        let ask = move |world: &mut Self| world.asked.insert(key);
        context.call("ask", ask).await?;
        if wait == Wait::AfterItAsked {
            context.keys().suspend(&key, TIMEOUT);
        }
        Ok(Action::RequeueAfter(Duration::ZERO))
    }

    fn always(&self) -> Result<(), String> {
        let overslept = self.overslept.first();
        overslept.map_or(Ok(()), |key| Err(format!("{key} overslept")))
    }

    fn eventually(&self) -> Result<(), String> {
        let mut there = self.there.keys();
        match there.find(|key| !self.attached.contains(*key)) {
            Some(key) => Err(format!("{key} is there, and not attached")),
            None => Ok(()),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);

fn check(wait: Wait) -> Check<Volumes> {
    // A volume that never comes is looked for again and again.
    Check::new(move || Volumes::new(wait)).settle(5 * TIMEOUT)
}

#[test]
fn a_run_that_waits_for_an_event_misses_none() {
    for wait in [Wait::AtItsEnd, Wait::BeforeItAsks] {
        let checked = check(wait).seeds(1_000).find();
        let checked = checked.unwrap_or_else(|failure| panic!("{wait:?}: {failure}"));
        assert_eq!(checked.histories, 1_000);
    }
}

#[test]
fn a_run_that_is_suspended_after_its_event_is_found() {
    let failure = failure(&check(Wait::AfterItAsked).seeds(1_000));
    assert_eq!(failure.breach.property, Property::Always, "{failure}");
    assert!(
        failure.timeline.contains("suspend: for 60s at most"),
        "{failure}"
    );
    assert!(failure.timeline.lines().count() <= 20, "{failure}");
}

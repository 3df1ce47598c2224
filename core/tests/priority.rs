//! The rules of priority levels, on both storages.

use std::time::Duration;

use requeue_core::binding::*;
use requeue_core::limiter::Exponential;
use requeue_core::metrics::Metrics;
use requeue_core::priority::{Levels, Plain, Priorities, WithPolicy};
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Action, AddOptions, Added, Finished, Instant, Merge, Rejected};

const SECOND: Duration = Duration::from_secs(1);

/// Depth by level, as it is reported to the metrics.
#[derive(Default)]
struct Depths([usize; 3]);

impl Metrics for Depths {
    type Timestamps = ();

    fn depth_at(&mut self, priority: u8, keys: usize) {
        self.0[usize::from(priority)] = keys;
    }
}

type Three<S> = Queue<u8, Levels<3>, Exponential, S, Depths>;

const LIMITER: Exponential = Exponential::new(SECOND, Duration::from_secs(60));

fn fixed() -> Three<Fixed<8>> {
    Queue::with_metrics(LIMITER, Depths::default())
}

fn growable() -> Three<Growable> {
    let parts = Queue::builder().limiter(LIMITER);
    parts.report_to(Depths::default()).levels::<3>().build()
}

/// Metrics of a queue with one level, to which no level is reported.
struct OneLevel;

impl Metrics for OneLevel {
    type Timestamps = ();

    fn depth_at(&mut self, priority: u8, keys: usize) {
        unreachable!("{keys} keys at level {priority}");
    }
}

#[test]
fn the_depth_of_a_single_level_is_not_reported() {
    let mut queue: Queue<u8, Plain, _, Fixed<2>, _> = Queue::with_metrics(LIMITER, OneLevel);
    let now = Instant::EPOCH;
    queue.at(now).add(1).unwrap();
    let work = queue.at(now).try_get().unwrap();
    queue.at(now).release(work.ticket);
}

macro_rules! on_both_storages {
    ($($rule:ident)+) => {$(
        #[test]
        fn $rule() {
            rules::$rule(Script::new(fixed()));
            rules::$rule(Script::new(growable()));
        }
    )+};
}

on_both_storages! {
    the_highest_level_is_served_first_and_each_in_order
    an_add_never_lowers_and_a_raise_goes_to_the_end
    an_active_key_takes_its_place_when_its_run_ends
    a_delay_carries_its_level
    a_retry_keeps_the_level_of_its_run
    an_unknown_level_is_refused_and_changes_nothing
    expedite_ends_the_delay
    expedite_asks_for_one_run
    without_expedite_a_delay_is_an_add_of_its_own
    the_shorter_delay_counts
    leftovers_have_their_level
}

struct Script<S: Storage> {
    queue: Three<S>,
    now: Instant,
}

impl<S: Storage> Script<S> {
    fn new(queue: Three<S>) -> Self {
        let now = Instant::EPOCH;
        Self { queue, now }
    }

    fn add(&mut self, key: u8, level: u8, expected: Added) {
        let priority = Some(level);
        self.add_with(
            key,
            AddOptions {
                priority,
                ..AddOptions::new()
            },
            expected,
        );
    }

    fn add_with(&mut self, key: u8, options: AddOptions, expected: Added) {
        let scheduled = self.queue.at(self.now).add_with(key, options);
        let added = scheduled.map(|scheduled| scheduled.added);
        assert_eq!(added, Ok(expected), "{key}");
        self.queue.assert_valid();
    }

    fn get(&mut self, key: u8, level: u8) -> Ticket {
        let work = self.queue.at(self.now).try_get().unwrap();
        assert_eq!((work.key, work.priority), (key, level));
        self.queue.assert_valid();
        work.ticket
    }

    fn serve(&mut self, key: u8, level: u8) {
        let ticket = self.get(key, level);
        self.finish(ticket, Action::Success);
    }

    fn finish(&mut self, ticket: Ticket, action: Action) {
        let finished = self.queue.at(self.now).finish(ticket, action);
        assert_ne!(finished, Finished::Stale);
        self.queue.assert_valid();
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn nothing_is_ready(&mut self) {
        assert!(self.queue.at(self.now).try_get().is_none());
    }

    fn depths(&self, expected: [usize; 3]) {
        assert_eq!(self.queue.metrics().0, expected);
    }
}

fn after(delay: Duration) -> AddOptions {
    AddOptions {
        after: Some(delay),
        ..AddOptions::new()
    }
}

mod rules {
    use super::*;

    pub(super) fn the_highest_level_is_served_first_and_each_in_order<S: Storage>(
        mut script: Script<S>,
    ) {
        for (key, level) in [(1, 0), (2, 2), (3, 1), (4, 2), (5, 0)] {
            script.add(key, level, Added::Ready);
        }
        script.depths([2, 1, 2]);
        for (key, level) in [(2, 2), (4, 2), (3, 1), (1, 0), (5, 0)] {
            script.serve(key, level);
        }
        script.depths([0, 0, 0]);
    }

    pub(super) fn an_add_never_lowers_and_a_raise_goes_to_the_end<S: Storage>(
        mut script: Script<S>,
    ) {
        script.add(1, 1, Added::Ready);
        script.add(2, 2, Added::Ready);
        script.add(3, 1, Added::Ready);
        script.add(1, 0, Added::Coalesced);
        script.add(1, 1, Added::Coalesced);
        let _ = script.queue.at(script.now).add(1);
        script.add(1, 2, Added::Raised);
        script.depths([0, 1, 2]);
        script.serve(2, 2);
        script.serve(1, 2);
        script.serve(3, 1);
    }

    pub(super) fn an_active_key_takes_its_place_when_its_run_ends<S: Storage>(
        mut script: Script<S>,
    ) {
        script.add(1, 0, Added::Ready);
        let first = script.get(1, 0);
        script.add(1, 1, Added::Dirty);
        script.add(1, 0, Added::Coalesced);
        script.depths([0, 1, 0]);
        script.add(1, 2, Added::Raised);
        script.add(2, 2, Added::Ready);
        script.depths([0, 0, 2]);
        assert_eq!(script.queue.at(script.now).state(&1).unwrap().priority, 2);
        script.finish(first, Action::Release);
        script.serve(2, 2);
        script.serve(1, 2);
    }

    pub(super) fn a_delay_carries_its_level<S: Storage>(mut script: Script<S>) {
        let delayed = |level| AddOptions {
            priority: Some(level),
            ..after(SECOND)
        };
        script.add_with(1, delayed(1), Added::Delayed);
        script.add_with(2, delayed(0), Added::Delayed);
        script.add_with(2, delayed(2), Added::Raised);
        script.add_with(2, delayed(1), Added::Coalesced);
        script.add(3, 1, Added::Ready);
        assert_eq!(script.queue.at(script.now).state(&2).unwrap().priority, 2);
        script.wait(SECOND);
        script.serve(2, 2);
        script.serve(3, 1);
        script.serve(1, 1);
    }

    pub(super) fn a_retry_keeps_the_level_of_its_run<S: Storage>(mut script: Script<S>) {
        script.add(1, 2, Added::Ready);
        let run = script.get(1, 2);
        script.finish(run, Action::Retry);
        script.add(2, 1, Added::Ready);
        script.wait(SECOND);
        let run = script.get(1, 2);
        script.finish(run, Action::RequeueAfter(Duration::ZERO));

        // As client-go's controllers do it: by the key, before `Done`.
        let run = script.get(1, 2);
        let _ = script.queue.at(script.now).add_rate_limited(1);
        script.finish(run, Action::Release);
        script.wait(SECOND);
        let run = script.get(1, 2);

        // And with options that ask for no level.
        let failed = AddOptions {
            rate_limited: true,
            ..AddOptions::new()
        };
        script.add_with(1, failed, Added::Delayed);
        script.finish(run, Action::Release);
        script.wait(2 * SECOND);
        let run = script.get(1, 2);
        // What has not failed asks for the lowest.
        script.add_with(1, after(SECOND), Added::Delayed);
        script.finish(run, Action::Success);
        script.wait(SECOND);
        script.serve(2, 1);
        script.serve(1, 0);
        // Nothing is left of its level: an add asks for the lowest.
        let _ = script.queue.at(script.now).add(1);
        script.serve(1, 0);
    }

    pub(super) fn an_unknown_level_is_refused_and_changes_nothing<S: Storage>(
        mut script: Script<S>,
    ) {
        let options = AddOptions {
            rate_limited: true,
            priority: Some(3),
            ..AddOptions::new()
        };
        let refused = script.queue.at(script.now).add_with(1, options);
        assert_eq!(refused, Err(Rejected::UnknownPriority(1)));
        assert_eq!(script.queue.failures(&1), 0);
        assert_eq!(script.queue.stats().total, 0);
    }

    pub(super) fn expedite_ends_the_delay<S: Storage>(mut script: Script<S>) {
        let expedite = |options: AddOptions| AddOptions {
            merge: Merge::Once,
            ..options
        };
        let high = AddOptions {
            priority: Some(2),
            ..after(SECOND)
        };
        script.add_with(1, high, Added::Delayed);
        script.add_with(1, expedite(AddOptions::new()), Added::Ready);
        assert_eq!(script.queue.stats().delayed, 0);
        script.add(2, 1, Added::Ready);
        script.serve(1, 2);
        script.serve(2, 1);
        script.wait(SECOND);
        script.nothing_is_ready();
    }

    pub(super) fn expedite_asks_for_one_run<S: Storage>(mut script: Script<S>) {
        let later = AddOptions {
            merge: Merge::Once,
            priority: Some(1),
            ..after(SECOND)
        };
        script.add(1, 0, Added::Ready);
        script.add_with(1, later, Added::Raised);
        script.add_with(1, later, Added::Coalesced);
        let run = script.get(1, 1);
        // An active key is not queued, so the delay counts.
        script.add_with(1, later, Added::Delayed);
        script.add(1, 0, Added::Dirty);
        script.add_with(1, later, Added::Raised);
        assert_eq!(script.queue.stats().delayed, 0, "the sooner of the two");
        script.finish(run, Action::Success);
        script.serve(1, 1);
        script.wait(SECOND);
        script.nothing_is_ready();
    }

    pub(super) fn without_expedite_a_delay_is_an_add_of_its_own<S: Storage>(mut script: Script<S>) {
        let high = AddOptions {
            priority: Some(2),
            ..after(SECOND)
        };
        script.add(1, 0, Added::Ready);
        script.add_with(1, high, Added::Delayed);
        script.serve(1, 0);
        script.wait(SECOND);
        script.serve(1, 2);

        // What is due while the key is still ready raises it.
        script.add(1, 0, Added::Ready);
        script.add_with(1, high, Added::Delayed);
        script.wait(SECOND);
        script.serve(1, 2);
        script.nothing_is_ready();
    }

    pub(super) fn the_shorter_delay_counts<S: Storage>(mut script: Script<S>) {
        let limited = |delay| AddOptions {
            rate_limited: true,
            ..after(delay)
        };
        let half = SECOND / 2;
        let scheduled = script.queue.at(script.now).add_with(1, limited(half));
        assert_eq!(scheduled.unwrap().delay, half);
        let longer = limited(9 * SECOND);
        let scheduled = script.queue.at(script.now).add_with(2, longer);
        assert_eq!(scheduled.unwrap().delay, SECOND);
        assert_eq!(script.queue.failures(&1), 1, "the failure is counted");
        script.add_with(2, after(half), Added::Sooner);
        script.wait(half);
        script.serve(1, 0);
        script.serve(2, 0);
    }

    pub(super) fn leftovers_have_their_level<S: Storage>(mut script: Script<S>) {
        let high = AddOptions {
            priority: Some(2),
            ..after(SECOND)
        };
        script.add(1, 1, Added::Ready);
        script.add_with(2, high, Added::Delayed);
        script.add(3, 0, Added::Ready);
        script.add_with(3, high, Added::Delayed);
        script.queue.at(script.now).shut_down();
        let ready = script.queue.at(script.now).take_ready().unwrap();
        assert_eq!((ready.key, ready.priority), (1, 1));
        let ready = script.queue.at(script.now).take_ready().unwrap();
        assert_eq!(
            (ready.key, ready.priority),
            (3, 2),
            "its delay goes with it"
        );
        let delayed = script.queue.at(script.now).take_delayed().unwrap();
        assert_eq!((delayed.key, delayed.priority), (2, 2));
        assert_eq!(script.queue.stats().total, 0);
    }
}

/// A debounced add asks for the lowest level, and a deadline keeps the highest level that an add
/// has given it.
fn debounced<P: Priorities, S: Governs<P>>(mut queue: Queue<u8, P, Exponential, S>) {
    let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
    let (quiet, max) = (Duration::from_millis(100), Duration::from_millis(250));
    let changed = |queue: &mut Queue<u8, P, Exponential, S>, millis, level| {
        let added = queue.at(at(millis)).add_debounced(1, quiet, max);
        let raise = AddOptions {
            priority: Some(level),
            merge: Merge::Keep,
            ..AddOptions::new()
        };
        let raised = queue.at(at(millis)).add_with(1, raise).unwrap().added;
        (added.unwrap(), raised)
    };
    let runs_at = |queue: &mut Queue<u8, P, Exponential, S>, millis| {
        assert!(queue.at(at(millis - 1)).try_get().is_none());
        let work = queue.at(at(millis)).try_get().unwrap();
        queue.at(at(millis)).finish(work.ticket, Action::Success);
        queue.assert_valid();
        work.priority
    };
    assert_eq!(
        changed(&mut queue, 0, 0),
        (Added::Delayed, Added::Coalesced)
    );
    assert_eq!(runs_at(&mut queue, 100), 0);

    // It is raised where it is, and the series goes on.
    assert_eq!(changed(&mut queue, 200, 2), (Added::Delayed, Added::Raised));
    assert_eq!(
        changed(&mut queue, 250, 1),
        (Added::Later, Added::Coalesced)
    );
    assert_eq!(queue.at(at(300)).state(&1).unwrap().due, Some(at(350)));
    assert_eq!(runs_at(&mut queue, 350), 2);

    // The level of a delay that a series ends sooner.
    let later = AddOptions {
        after: Some(Duration::from_secs(1)),
        priority: Some(1),
        ..AddOptions::new()
    };
    queue.at(at(400)).add_with(1, later).unwrap();
    let added = queue.at(at(400)).add_debounced(1, quiet, max);
    assert_eq!(added, Ok(Added::Sooner));
    assert_eq!(runs_at(&mut queue, 500), 1);
    // That level was the one deadline's.
    assert_eq!(
        changed(&mut queue, 600, 0),
        (Added::Delayed, Added::Coalesced)
    );
    assert_eq!(runs_at(&mut queue, 700), 0);
}

#[test]
fn a_debounced_key_runs_at_the_highest_level_of_its_deadline() {
    debounced::<Levels<3>, Growable>(Queue::from_parts(LIMITER, (), RandomState::default(), 0));
    debounced::<WithPolicy<Levels<3>>, Fixed<4>>(Queue::new(LIMITER));
}

//! Metrics that are chosen at run time. Owns the times that they need, outside the slots, so that a
//! queue has one type with and without metrics; counts nothing itself.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::running::{KeepRunning, Running};
use super::times::KeyTimes;
use super::{Metrics, Times};
use crate::Instant;
use crate::id::SlotId;
use crate::lists::growable::GrowableLinks;
use crate::lists::{Link, Links};
use crate::segments::Segments;

/// Metrics of any type, or none, so that a queue has the same type with and without them.
///
/// Without metrics nothing is kept and no clock is read, and each report costs one comparison. With
/// metrics the times of the keys are kept in a table next to the queue, 32 bytes per key.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::binding::Reporter;
/// use requeue::metrics::{Metrics, Times};
/// use requeue::priority::Plain;
/// use requeue::storage::Growable;
/// use requeue::{Instant, Queue};
///
/// struct Adds;
///
/// impl Metrics for Adds {
///     type Timestamps = Times;
///
///     fn added(&mut self) {
///         println!("a key was added");
///     }
/// }
///
/// struct App {
///     queue: Queue<&'static str, Plain, NoLimit, Growable, Reporter>,
/// }
///
/// let plain = App { queue: Queue::builder().limiter(NoLimit).report_to(Reporter::NONE).build() };
/// let reporter = Reporter::new(Adds);
/// let mut watched = App { queue: Queue::builder().limiter(NoLimit).report_to(reporter).build() };
/// watched.queue.at(Instant::EPOCH).add("node-7").unwrap();
/// assert!(watched.queue.needs_time() && !plain.queue.needs_time());
/// ```
#[derive(Default)]
pub struct Reporter(Option<Box<Reporting>>);

struct Reporting {
    /// The times of each key, by slot.
    times: Segments<KeyTimes, 512>,
    /// Separate from the queue's own lists, because metrics may be replaced while keys are active.
    running: Running,
    links: GrowableLinks,
    to: Box<dyn Metrics<Timestamps = Times> + Send>,
}

impl Reporter {
    /// No metrics.
    pub const NONE: Self = Self(None);

    /// Creates a reporter to these metrics. Allocates once here, and as the queue grows.
    pub fn new(metrics: impl Metrics<Timestamps = Times> + Send + 'static) -> Self {
        Self(Some(Box::new(Reporting {
            times: Segments::new(),
            running: Running::EMPTY,
            links: GrowableLinks::new(),
            to: Box::new(metrics),
        })))
    }

    #[inline]
    fn report(&mut self, report: impl FnOnce(&mut dyn Metrics<Timestamps = Times>)) {
        if let Some(reporting) = &mut self.0 {
            report(&mut *reporting.to);
        }
    }

    #[inline]
    fn times(&self, slot: usize) -> Option<&KeyTimes> {
        self.0.as_ref()?.times.get(slot)
    }
}

impl Reporting {
    fn stamp(&mut self, slot: usize, stamp: impl FnOnce(&mut KeyTimes)) {
        if let Some(times) = self.times.slot(slot, KeyTimes::default()) {
            stamp(times);
        }
    }

    fn begin(&mut self, slot: usize, at: Instant) {
        // The last run of this slot may have ended while other metrics were in place.
        let times = self.times.get(slot);
        let started = times.map_or(Instant::NEVER, KeyTimes::started);
        self.running
            .remove(&mut self.links, SlotId::from_index(slot), started);
        self.stamp(slot, |times| times.stamp_started(at));
        let id = SlotId::from_index(slot);
        self.running.add(&mut self.links, id, at);
    }

    fn end(&mut self, slot: usize, forgets: bool, was_dirty: bool) -> (Instant, Instant) {
        let times = self.times.get_mut(slot);
        let ended = times.map(|times| times.ended(forgets, was_dirty));
        let (started, first_added) = ended.unwrap_or((Instant::NEVER, Instant::NEVER));
        let id = SlotId::from_index(slot);
        self.running.remove(&mut self.links, id, started);
        (started, first_added)
    }
}

impl Metrics for Reporter {
    type Timestamps = ();

    #[inline]
    fn depth(&mut self, keys: usize) {
        self.report(|to| to.depth(keys));
    }

    #[inline]
    fn depth_at(&mut self, priority: u8, keys: usize) {
        self.report(|to| to.depth_at(priority, keys));
    }

    #[inline]
    fn added(&mut self) {
        self.report(|to| to.added());
    }

    #[inline]
    fn queue_latency(&mut self, latency: Duration) {
        self.report(|to| to.queue_latency(latency));
    }

    #[inline]
    fn work_duration(&mut self, duration: Duration) {
        self.report(|to| to.work_duration(duration));
    }

    #[inline]
    fn time_to_success(&mut self, time: Duration) {
        self.report(|to| to.time_to_success(time));
    }

    #[inline]
    fn attempts_at_success(&mut self, attempts: u32) {
        self.report(|to| to.attempts_at_success(attempts));
    }

    #[inline]
    fn unfinished_work(&mut self, sum: Duration) {
        self.report(|to| to.unfinished_work(sum));
    }

    #[inline]
    fn longest_running(&mut self, longest: Duration) {
        self.report(|to| to.longest_running(longest));
    }

    #[inline]
    fn oldest_ready(&mut self, age: Duration) {
        self.report(|to| to.oldest_ready(age));
    }

    #[inline]
    fn retry(&mut self) {
        self.report(|to| to.retry());
    }

    #[inline]
    fn coalesced(&mut self) {
        self.report(|to| to.coalesced());
    }

    #[inline]
    fn delayed(&mut self, keys: usize) {
        self.report(|to| to.delayed(keys));
    }

    fn attach(&mut self, levels: u8) {
        self.report(|to| to.attach(levels));
    }

    #[inline]
    fn needs_time(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn stamp_added(&mut self, (): &mut (), slot: usize, at: Instant) {
        if let Some(reporting) = &mut self.0 {
            reporting.stamp(slot, |times| times.stamp_added(at));
        }
    }

    #[inline]
    fn stamp_started(&mut self, (): &mut (), slot: usize, at: Instant) {
        if let Some(reporting) = &mut self.0 {
            reporting.begin(slot, at);
        }
    }

    #[inline]
    fn ended(
        &mut self,
        (): &mut (),
        slot: usize,
        forgets: bool,
        was_dirty: bool,
    ) -> (Instant, Instant) {
        match &mut self.0 {
            Some(reporting) => reporting.end(slot, forgets, was_dirty),
            None => (Instant::NEVER, Instant::NEVER),
        }
    }

    #[inline]
    fn rest(&mut self, (): &mut (), slot: usize) {
        if let Some(reporting) = &mut self.0
            && let Some(times) = reporting.times.get_mut(slot)
        {
            times.rest();
        }
    }

    #[inline]
    fn running<'a>(&'a self, (): &'a ()) -> Option<&'a Running> {
        Some(&self.0.as_ref()?.running)
    }

    fn running_link(&self, slot: usize) -> Option<Link<u32>> {
        let reporting = self.0.as_ref()?;
        Some(reporting.links.link(SlotId::from_index(slot)))
    }

    #[inline]
    fn waited(&self, (): &(), slot: usize, now: Instant) -> Duration {
        self.times(slot)
            .map_or(Duration::ZERO, |times| times.waited(now))
    }

    #[inline]
    fn started(&self, (): &(), slot: usize) -> Instant {
        self.times(slot).map_or(Instant::NEVER, KeyTimes::started)
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.0.is_some() { "on" } else { "off" };
        f.debug_tuple("Reporter").field(&state).finish()
    }
}

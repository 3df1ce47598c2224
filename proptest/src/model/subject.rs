//! The model behind the interface of those that are tested against it.

use std::time::Duration;

use requeue_core::binding::{Getter, Next, Wake};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Finished, Instant, Rejected, Stats, Why,
};

use super::{Model, Rules};
use crate::Figures;
use crate::subject::{
    Abilities, Configuration, Displaced, Drain, GroupFigures, GroupOrder, Handed, Key, Known, Left,
    PolicySpec, Scheduled, Subject, Ticket, Turn,
};

impl Subject for Model {
    fn new(setup: &Configuration) -> Self {
        let capacity = (setup.max_keys < usize::MAX).then_some(setup.max_keys);
        Self::new(Rules::Requeue, setup, capacity).with_levels(32)
    }

    fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    fn limit_keys(&mut self, keys: usize) {
        self.capacity = (keys < usize::MAX).then_some(keys);
        self.settle();
    }

    fn limit_failure_records(&mut self, keys: usize) -> bool {
        self.failure_records_max = keys;
        self.settle();
        true
    }

    fn limit_due_keys(&mut self, keys: u8) {
        self.due_keys_max = Some(keys);
    }

    fn set_policy(&mut self, policy: &PolicySpec) {
        self.policy = policy.build();
        self.has_held |= self.policy.holds();
    }

    fn levels(&self) -> u8 {
        self.levels
    }

    fn groups(&self) -> bool {
        self.groups.is_some()
    }

    fn ages(&self) -> bool {
        true
    }

    fn order(&mut self, order: &GroupOrder) {
        self.change_groups(order);
    }

    fn group(&mut self, group: u8) -> Option<GroupFigures> {
        self.group_figures(group)
    }

    fn age_after(&mut self, after: Option<Duration>) {
        self.age_limit = after;
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            limits_keys: true,
            ..Abilities::default()
        }
    }

    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        self.add_key(key)
    }

    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>> {
        self.add_later(key, self.now + delay)
    }

    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        self.add_later(key, due)
    }

    fn add_rate_limited(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>> {
        self.retry(key)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>> {
        self.add_as(key, options)
    }

    fn add_displacing(&mut self, key: Key, options: AddOptions) -> Displaced {
        self.add_instead(key, options)
    }

    fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        self.debounce(key, quiet, max)
    }

    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        let (mut many, mut rejected) = (AddedMany::default(), Vec::new());
        for &key in keys {
            match self.add_key(key) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(Added::Delayed | Added::Sooner) => many.delayed += 1,
                Ok(_) => many.coalesced += 1,
                Err(refused) => {
                    many.rejected += 1;
                    rejected.push(refused);
                }
            }
        }
        (many, rejected)
    }

    fn forget(&mut self, key: Key) -> u32 {
        self.forget_key(key)
    }

    fn cancel_key(&mut self, key: Key) -> Option<Known> {
        self.take_back(key)
    }

    fn cancel_delay(&mut self, key: Key) -> Option<Instant> {
        self.take_delay_back(key)
    }

    fn expedite(&mut self, key: Key) -> bool {
        self.end_delay(key)
    }

    fn expedite_all(&mut self) {
        self.end_all_delays();
    }

    fn retain_below(&mut self, key: Key) -> usize {
        self.take_back_from(key)
    }

    fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        self.take_over(left)
    }

    fn pause(&mut self) {
        self.paused = !self.is_shutting_down;
    }

    fn unpause(&mut self) {
        self.paused = false;
    }

    fn suspend(&mut self, key: Key, timeout: Duration) -> bool {
        self.suspend_key(key, self.now + timeout)
    }

    fn resume(&mut self, key: Key) -> bool {
        self.resume_key(key)
    }

    fn is_paused(&mut self) -> bool {
        self.paused
    }

    fn is_idle(&mut self) -> bool {
        self.arrive();
        self.processing.is_empty() && self.queue.is_empty()
    }

    fn is_settled(&mut self) -> bool {
        self.processing.is_empty() && self.dirty.is_empty() && self.deadlines().is_empty()
    }

    fn try_get(&mut self) -> Option<Handed> {
        self.take()
    }

    fn get(&mut self, _: &mut Getter) -> Next<Handed> {
        match self.try_get() {
            Some(handed) => Next::Work(handed),
            None if self.is_over() => Next::Closed,
            None => Next::Wait {
                until: self.next_deadline(),
            },
        }
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>> {
        let first = match self.get(getter) {
            Next::Work(handed) => handed,
            Next::Wait { until } => return Next::Wait { until },
            Next::Closed => return Next::Closed,
        };
        let more = std::iter::from_fn(|| self.take());
        Next::Work([first].into_iter().chain(more).take(max.max(1)).collect())
    }

    fn next(&mut self, ticket: Ticket, action: Action, getter: &mut Getter) -> Turn {
        let finished = self.finish(ticket, action);
        (finished, self.get(getter))
    }

    fn leave(&mut self, _: &mut Getter) {}

    fn release_key(&mut self, key: Key) -> Finished {
        self.complete_by_name(key)
    }

    fn release(&mut self, ticket: Ticket) -> Finished {
        self.finish(ticket, Action::Release)
    }

    fn finish_many(&mut self, tickets: Vec<Ticket>, action: Action) -> usize {
        let ends = tickets
            .into_iter()
            .map(|ticket| self.finish(ticket, action));
        ends.filter(|end| *end == Finished::Stale).count()
    }

    fn finish(&mut self, ticket: Ticket, action: Action) -> Finished {
        match ticket.numbered() {
            Some(ticket) => self.complete_run(ticket, action),
            None => Finished::Stale,
        }
    }

    fn panic_at_work(&mut self) -> bool {
        if let Some(handed) = self.try_get() {
            let given_back = self.finish(handed.ticket, Action::Retry);
            debug_assert_ne!(given_back, Finished::Stale);
        }
        true
    }

    fn shut_down(&mut self) {
        self.close();
    }

    fn begin_drain(&mut self) -> Drain {
        Drain::Numbered(self.wait_for_drain())
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        match *drain {
            Drain::Numbered(number) => self.drain_stands(number),
            Drain::Core(_) => Drained::Pending,
        }
    }

    fn take_delayed(&mut self) -> Option<Left> {
        self.pop_delayed()
    }

    fn take_ready(&mut self) -> Option<Left> {
        self.pop_ready()
    }

    fn len(&mut self) -> usize {
        self.release_all();
        self.queue.len()
    }

    fn snapshot(&mut self) -> Vec<(Key, Known)> {
        // It shows what is due as ready, and changes nothing.
        let mut seen = self.clone();
        while seen.release(usize::MAX) {}
        let keys = seen.held_keys().into_iter();
        keys.flat_map(|key| Some((key, seen.know(key)?))).collect()
    }

    fn state(&mut self, key: Key) -> Option<Known> {
        self.arrive_at(key);
        self.know(key)
    }

    fn contains(&mut self, key: Key) -> bool {
        self.has_work(key)
    }

    fn failures(&mut self, key: Key) -> u32 {
        self.failures_of(key)
    }

    fn why(&mut self, key: Key) -> Why {
        self.arrive_at(key);
        self.reason(key)
    }

    fn stats(&mut self) -> Stats {
        let mut stats = Stats::default();
        stats.total = self.held();
        stats.ready = self.queue.len();
        stats.active = self.processing.len();
        stats.dirty = self.dirty_len();
        stats.delayed = self.deadlines().len() - self.suspended.len();
        stats.suspended = self.suspended.len();
        stats.failure_records = self.records.len();
        stats.max_keys = self.capacity;
        stats.next_deadline = self.next_deadline();
        stats.paused = self.paused;
        stats.shutting_down = self.is_shutting_down;
        stats
    }

    fn is_shutting_down(&mut self) -> bool {
        self.is_shutting_down
    }

    /// metrics.go, updateUnfinishedWork: not while shutting down.
    fn report_running(&mut self) {
        if self.is_shutting_down {
            return;
        }
        self.arrive();
        let now = self.now;
        let ages = self.started.iter().map(|(_, at)| now.saturating_since(*at));
        let sum = ages.clone().fold(Duration::ZERO, Duration::saturating_add);
        self.figures.unfinished = sum;
        self.figures.longest = ages.max().unwrap_or_default();
        self.figures.reports += 1;
    }

    fn figures(&mut self) -> Option<Figures> {
        Some(Figures {
            depths: self.depths(),
            ..self.figures.clone()
        })
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        if self.due_keys_max.is_none() && !self.is_shutting_down {
            self.release(usize::MAX);
        }
    }

    fn asleep(&mut self) -> Option<usize> {
        None
    }

    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    /// queue.go's comments on its three fields, and what follows from them.
    fn assert_valid(&mut self) {
        if self.has_duplicates {
            return;
        }
        for (place, key) in self.queue.iter().enumerate() {
            assert!(self.dirty.contains(key), "every queued key is dirty");
            let is_active = self.processing.contains(key);
            let may_be = self.rules == Rules::ControllerRuntime;
            assert!(!is_active || may_be, "and not active");
            assert!(!self.queue[..place].contains(key), "and queued once");
        }
        let depth = i64::try_from(self.dirty.len());
        assert_eq!(Ok(self.figures.depth), depth, "depth counts dirty keys");
        let surplus = self.surplus();
        assert!(surplus == 0 || self.records.is_empty(), "no more than fit");
    }
}

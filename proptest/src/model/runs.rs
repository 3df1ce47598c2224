//! Runs: how they begin, how they end, and the holds and pauses that follow.

use std::time::Duration;

use requeue_core::binding::Next;
use requeue_core::limiter::RateLimiter;
use requeue_core::{Action, Added, Finished, Instant};

use super::deadlines::Window;
use super::{Model, entry_in, is_after, left_until};
use crate::operation::{Handed, Key, Run, Ticket};

impl Model {
    /// queue.go, Get, once there is a key.
    pub(super) fn take(&mut self) -> Option<Handed> {
        let key = self.choose();
        if self.paused || is_after(self.policy.next_start(), self.now) {
            return None;
        }
        let key = key?;
        self.policy.start(self.now);
        let now = self.now;
        let entry = self.entry_mut(key);
        let queued = entry.queued.take()?;
        entry.ready = None;
        entry.active = true;
        entry.running = queued.level;
        entry.started = Some(now);
        entry.run += 1;
        let (run, timed_out) = (entry.run, entry.timed_out);
        self.figures
            .latencies
            .push(now.saturating_since(queued.added));
        self.charge_group(key, queued.level);
        self.note_flushes_of(key);
        Some(Handed {
            key,
            ticket: Ticket { key, run },
            failures: self.failures_of(key),
            priority: queued.level,
            timed_out,
        })
    }

    pub(super) fn look(&mut self) -> Next<Handed> {
        let handed = self.take();
        handed.map_or_else(|| self.no_work(), Next::Work)
    }

    pub(super) fn look_for_many(&mut self, max: usize) -> Next<Vec<Handed>> {
        let handed = std::iter::from_fn(|| self.take()).take(max.max(1));
        let handed: Vec<Handed> = handed.collect();
        match handed.is_empty() {
            true => self.no_work(),
            false => Next::Work(handed),
        }
    }

    pub(super) fn next_look(&self) -> Next<()> {
        let mut looked = self.clone();
        match looked.take() {
            Some(_) => Next::Work(()),
            None => looked.no_work(),
        }
    }

    /// What a call gets that has found no key.
    fn no_work<T>(&self) -> Next<T> {
        let until = self.next_look_at();
        match self.is_over() {
            true => Next::Closed,
            false => Next::Wait { until },
        }
    }

    pub(super) fn finish(&mut self, run: Run, action: Action) -> Finished {
        match run {
            Run::Of(ticket) => self.complete_run(ticket, action),
            Run::Pick(_) => Finished::Stale,
        }
    }

    pub(super) fn complete_run(&mut self, ticket: Ticket, action: Action) -> Finished {
        match self.is_current(ticket) {
            true => self.complete(ticket.key, action),
            false => Finished::Stale,
        }
    }

    pub(super) fn is_current(&self, ticket: Ticket) -> bool {
        let entry = self.entry(ticket.key);
        entry.active && entry.run == ticket.run
    }

    /// queue.go, Done, and what a caller of client-go would write around it. A key that wants to
    /// come back after shutdown is delayed, unless it will be worked on in any case.
    pub(super) fn complete(&mut self, key: Key, action: Action) -> Finished {
        self.arrive_at(key);
        let slack = action.slack();
        let (action, priority) = action.into_parts();
        if let Some(level) = priority {
            self.entry_mut(key).running = level.min(self.abilities.levels - 1);
        }
        let pauses = self.entry(key).pauses;
        if let Action::Success | Action::GiveUp | Action::RequeueAfter(_) = action {
            self.note_end(key, action != Action::GiveUp);
            self.forget_key(key);
        }
        let delay = match action {
            Action::RequeueAfter(delay) | Action::Snooze(delay) => Some(delay),
            Action::Retry => Some(self.charge(key)),
            Action::Suspend(timeout) => {
                self.plan_suspension(key, timeout, self.window_after(timeout, slack))
            }
            Action::Poll(first, times) => Some(self.pause(first, times, pauses)),
            _ => None,
        };
        // "`Finished` [has] the delay without the slack."
        let window = delay.map(|delay| self.window_after(delay, slack));
        if let Some(window) = window {
            let level = self.entry(key).running;
            if !self.is_closed() {
                self.retry_at(key, window, level);
                if action == Action::Retry {
                    self.note_backoff(key, window.due);
                }
            } else if self.entry(key).queued.is_none() {
                self.schedule(key, window.not_before(self.stopped_at()), level);
            }
        }
        let was_dirty = self.entry(key).queued.is_some();
        let ready = self.end_run(key);
        let held = self.held_until(key);
        let left = left_until(held, self.now);
        if let (Action::Poll(..), Some(window), false) = (action, window, was_dirty) {
            self.pause_until(key, window.due.max(held), pauses);
        }
        let delay = match was_dirty && !ready {
            true => Some(left),
            false => delay.map(|delay| delay.max(left)),
        };
        let suspended = self.entry(key).suspended;
        let suspended = suspended.map(|it| left_until(it.end.opens, self.now));
        match suspended.or(delay) {
            _ if ready => Finished::Ready,
            None => Finished::Idle,
            Some(delay) if self.is_closed() => Finished::Leftover(delay),
            Some(delay) if suspended.is_some() => Finished::Suspended(delay),
            Some(delay) => Finished::Delayed(delay),
        }
    }

    /// Returns whether the key is ready again. The end may begin a hold.
    ///
    /// > If a cool-down and a failure both hold a key, the later end counts.
    fn end_run(&mut self, key: Key) -> bool {
        self.end_flushes_of(key);
        let now = self.now;
        let entry = self.entry_mut(key);
        (entry.active, entry.cancelled, entry.resumed) = (false, false, false);
        (entry.timed_out, entry.pauses) = (false, 0);
        let (started, plan) = (entry.started.take(), entry.plan.take());
        let lasted = started.map(|started| now.saturating_since(started));
        self.figures.work_durations.extend(lasted);
        self.refresh(self.group_of(key));
        let held = self.policy.held_after_run(now);
        let entry = self.entry_mut(key);
        entry.held_until = entry.held_until.max(held);
        match plan {
            Some(plan) => self.suspend_after_run(key, plan),
            None => self.hold_after_run(key),
        }
        self.entry_mut(key).running = 0;
        let again = self.entry(key).queued.is_some();
        if again {
            self.queue_at(key, now);
        }
        let entry = self.entry_mut(key);
        if !entry.has_work() && entry.is_blank(now) {
            entry.forget();
        }
        self.settle();
        self.drop_passed_holds();
        again
    }

    /// default_rate_limiters.go, When.
    pub(super) fn charge(&mut self, key: Key) -> Duration {
        let entry = entry_in(&mut self.keys, key);
        let delay = self.limiter.when(&mut entry.record, self.now);
        let held = self.policy.held_after_failure(delay, self.now);
        entry.held_until = entry.held_until.max(held);
        delay
    }

    /// default_rate_limiters.go, Forget.
    pub(super) fn forget_key(&mut self, key: Key) -> u32 {
        let count = self.failures_of(key);
        self.entry_mut(key).forget();
        self.settle();
        count
    }

    /// The run of a key ends, and its failures will be forgotten. An add during the run is the first
    /// one for its next success.
    fn note_end(&mut self, key: Key, succeeds: bool) {
        let attempts = self.failures_of(key).saturating_add(1);
        let now = self.now;
        let entry = self.entry_mut(key);
        let first = entry.first_added.take();
        entry.first_added = entry.queued.map(|queued| queued.added);
        // At the end of time there is none left.
        if let Some(first) = first.filter(|first| succeeds && !first.is_never()) {
            self.figures
                .times_to_success
                .push(now.saturating_since(first));
            self.figures.attempts_at_success.push(attempts);
        }
    }

    /// How long the pause is that follows so many others.
    fn pause(&mut self, first: Duration, times: u32, pauses: u8) -> Duration {
        self.has_suspended |= self.abilities.suspends;
        let doubled = (0..pauses).fold(first, |pause, _| pause.saturating_mul(2));
        doubled.min(first.saturating_mul(times.max(1)))
    }

    /// The run of a key has ended with a pause until then, if its deadline is that.
    fn pause_until(&mut self, key: Key, until: Instant, pauses: u8) {
        let counts = self.abilities.suspends && !self.is_closed();
        let counts = counts && self.entry(key).suspended.is_none();
        if let Some(deadline) = self.deadline_at(key, until).filter(|_| counts) {
            deadline.pauses = pauses.saturating_add(1);
        }
    }

    /// The limiter asks for a deadline of a key, which may wait for another.
    pub(super) fn note_backoff(&mut self, key: Key, due: Instant) {
        if let Some(deadline) = self.deadline_at(key, due) {
            deadline.backs_off = true;
        }
    }

    /// A failure that ends no run may have begun a hold: the key is no longer ready, and not due
    /// before the end of the hold. Returns what became of the add.
    ///
    /// > `add_rate_limited` while it is ready | delayed until the hold is over
    pub(super) fn hold_back(&mut self, key: Key, added: Added) -> Added {
        let held = self.held_until(key);
        if !is_after(held, self.now) {
            return added;
        }
        let was_ready = self.entry(key).ready.is_some();
        if was_ready {
            self.delay_instead(key, held);
        }
        match self.put_off(key, held) {
            _ if was_ready => Added::Delayed,
            true => Added::Later,
            false => added,
        }
    }

    /// Until when a key may not run; a time that has passed if it may, as if it runs.
    ///
    /// > During a run its key is not held. Adds, delays and `expedite` act at once, and obey the
    /// > hold after the run.
    pub(super) fn held_until(&self, key: Key) -> Instant {
        let entry = self.entry(key);
        if entry.active {
            Instant::EPOCH
        } else {
            entry.held_until
        }
    }

    /// When an add comes that is asked for at a time.
    ///
    /// > it is added, now or for a time before the hold is over | delayed until the hold is over
    ///
    /// > it is added for a time after that | delayed until that time
    ///
    /// A suspended key is added at once all the same, and waits for the end of its hold when it is
    /// resumed.
    pub(super) fn window_of_add(&self, key: Key, window: Window) -> Window {
        if self.entry(key).suspended.is_some() && !is_after(window.opens, self.now) {
            return window;
        }
        window.not_before(self.held_until(key))
    }

    /// The run of a key has ended. If that begins a hold, or one began before, a dirty key waits.
    ///
    /// > its run ends, and it was added meanwhile | delayed until the hold is over
    fn hold_after_run(&mut self, key: Key) {
        let held = self.held_until(key);
        if is_after(held, self.now) && self.entry(key).queued.is_some() {
            self.delay_instead(key, held.max(self.stopped_at()));
            if self.is_closed() {
                // Others take the place of a key that was to be ready.
                self.arrive();
            }
        }
        self.put_off(key, held.max(self.stopped_at()));
    }

    /// A dirty key is delayed instead.
    fn delay_instead(&mut self, key: Key, held: Instant) {
        let level = self.entry(key).level();
        self.leave_queue(key);
        self.schedule(key, Window::exact(held), level);
    }

    pub(super) fn put_off(&mut self, key: Key, held: Instant) -> bool {
        let Some(before) = self.entry(key).deadline else {
            return false;
        };
        if before.due >= held {
            self.open_at(key, before.opens.max(held));
            return false;
        }
        self.move_deadline(key, Window::exact(held));
        if let Some(deadline) = &mut self.entry_mut(key).deadline {
            deadline.pauses = before.pauses;
        }
        true
    }

    /// Of the two oldest records, those whose holds are over are dropped, and those of failures
    /// become the youngest.
    ///
    /// > Runs that end drop the records whose holds are over, two at most each; the order of the
    /// > other records may change by that.
    fn drop_passed_holds(&mut self) {
        for _ in 0..2 {
            let Some(&oldest) = self.records().first().filter(|_| self.has_held) else {
                return;
            };
            if self.entry(oldest).is_blank(self.now) {
                self.entry_mut(oldest).forget();
                self.entry_mut(oldest).rests = None;
            } else if is_after(self.held_until(oldest), self.now) {
                return;
            } else {
                self.entry_mut(oldest).rests = Some(self.next_number());
            }
        }
    }

    /// The earliest start of the first ready key. `None` if there is no rate.
    pub(crate) fn start_due(&self) -> Option<Instant> {
        let start = self.policy.next_start();
        (start > Instant::EPOCH && !self.places().is_empty()).then_some(start)
    }

    /// Whether there is a key now for a call that sleeps. An open window wakes no call.
    pub(crate) fn has_a_key_now(&self) -> bool {
        let mut asleep = self.clone();
        asleep.is_looking = false;
        asleep.get().is_some()
    }
}

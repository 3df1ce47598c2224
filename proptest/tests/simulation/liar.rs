//! A queue that lies in one way.

use std::collections::BTreeSet;
use std::mem::{replace, take};
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Ticket, Wake};
use requeue_core::limiter::Exponential;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, AddOptions, Finished, Instant, Leftover, Queue, Rejected, Scheduled};
use requeue_proptest::simulation::{Driven, Taken};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// A key that is added while it is active is not run again.
    LosesDirtyMarks,
    /// A failure is the end of a key.
    ForgetsRetries,
    /// A sleeper is not woken by an add.
    WakesNone,
    /// Nor by a shutdown.
    WakesNoneAtShutdown,
    /// A key that is added while it is active is handed out again at once.
    HandsOutTwice,
    /// What is left over is not handed back.
    KeepsLeftovers,
    /// A key runs though it is suspended.
    IgnoresSuspensions,
    /// A suspended key does not run when it is resumed.
    IgnoresResumes,
    /// A resume that precedes the suspension is lost.
    ForgetsEarlyResumes,
    /// A suspended key does not run when its timeout ends.
    ForgetsTimeouts,
    /// A sleeper does not learn when the next deadline is.
    SleepsPastDeadlines,
    /// It panics.
    Panics,
    /// An invariant does not hold.
    IsInvalid,
}

type Honest = Queue<u8, Plain, Exponential, Growable>;

pub(crate) struct Liar {
    lie: Lie,
    queue: Honest,
    /// Keys that are active in the other queue, too.
    twice: Honest,
    active: BTreeSet<u8>,
    /// Those whose ticket is the other queue's.
    twice_active: BTreeSet<u8>,
    /// A wake that no queue has asked for.
    forged: Wake,
    /// The next wake goes nowhere.
    loses_wake: bool,
}

impl Liar {
    pub(crate) fn new(lie: Lie) -> Self {
        let (base, max) = (Duration::from_millis(5), Duration::from_secs(10));
        let honest = || Queue::growable(Exponential::new(base, max));
        Self {
            lie,
            queue: honest(),
            twice: honest(),
            active: BTreeSet::new(),
            twice_active: BTreeSet::new(),
            forged: Wake::NONE,
            loses_wake: false,
        }
    }
}

impl Driven<u8> for Liar {
    fn add_with(
        &mut self,
        key: u8,
        options: AddOptions,
        now: Instant,
    ) -> Result<Scheduled, Rejected<u8>> {
        let is_active = self.active.contains(&key);
        match self.lie {
            Lie::LosesDirtyMarks if is_active => {
                // What another queue would have answered.
                let mut twice = self.twice.at(now);
                let added = twice.add_with(key, options);
                let work = twice.try_get();
                let _ = work.map(|work| twice.release(work.ticket));
                added
            }
            Lie::HandsOutTwice if is_active => {
                self.forged = Wake::ONE;
                self.twice.at(now).add_with(key, options)
            }
            Lie::WakesNone => {
                self.loses_wake = true;
                self.queue.at(now).add_with(key, options)
            }
            _ => self.queue.at(now).add_with(key, options),
        }
    }

    fn get(&mut self, now: Instant, getter: &mut Getter) -> Next<Taken<u8>> {
        if let Some(work) = self.twice.at(now).try_get() {
            self.twice_active.insert(work.key);
            return Next::Work(Taken::from(work));
        }
        let mut next = Driven::get(&mut self.queue, now, getter);
        match &mut next {
            Next::Work(work) => {
                self.active.insert(work.key);
            }
            Next::Wait { until } if self.lie == Lie::SleepsPastDeadlines => *until = None,
            Next::Wait { .. } | Next::Closed => {}
        }
        next
    }

    fn leave(&mut self, getter: &mut Getter) {
        Driven::leave(&mut self.queue, getter);
    }

    fn finish(&mut self, ticket: Ticket, key: &u8, action: Action, now: Instant) -> Finished {
        assert!(self.lie != Lie::Panics, "nothing is left");
        if self.twice_active.remove(key) {
            return self.twice.at(now).finish(ticket, action);
        }
        self.active.remove(key);
        let action = match action {
            Action::Retry if self.lie == Lie::ForgetsRetries => Action::Release,
            Action::Suspend(_) if self.lie == Lie::ForgetsTimeouts => {
                Action::Suspend(Duration::MAX)
            }
            other => other,
        };
        self.queue.at(now).finish(ticket, action)
    }

    fn suspend(&mut self, key: &u8, timeout: Duration, now: Instant) -> bool {
        self.lie == Lie::IgnoresSuspensions || self.queue.at(now).suspend(key, timeout)
    }

    fn resume(&mut self, key: &u8, now: Instant) -> bool {
        if self.lie == Lie::ForgetsEarlyResumes && self.active.contains(key) {
            return false;
        }
        self.lie != Lie::IgnoresResumes && self.queue.at(now).resume(key)
    }

    fn due(&mut self, key: &u8, now: Instant) -> Option<Instant> {
        Driven::due(&mut self.queue, key, now)
    }

    fn shut_down(&mut self, now: Instant) {
        Driven::shut_down(&mut self.queue, now);
        self.loses_wake = self.lie == Lie::WakesNoneAtShutdown;
    }

    fn is_drained(&self) -> bool {
        self.queue.is_drained()
    }

    fn take_leftover(&mut self, now: Instant) -> Option<Leftover<u8>> {
        let leftover = self.queue.take_leftover(now);
        if self.lie == Lie::KeepsLeftovers {
            return None;
        }
        leftover
    }

    fn wake(&mut self) -> Wake {
        let wake = Driven::wake(&mut self.queue) | replace(&mut self.forged, Wake::NONE);
        if take(&mut self.loses_wake) {
            return Wake::NONE;
        }
        wake
    }

    fn assert_valid(&self) {
        self.queue.assert_valid();
        let is_valid = self.lie != Lie::IsInvalid || self.active.is_empty();
        assert!(is_valid, "no key is to be active");
    }
}

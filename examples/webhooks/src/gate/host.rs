//! A host: how many workers may call it, depending on how it answered before.
//!
//! - A host that took its last delivery gets a quarter of the workers, but never more than are
//!   free. The more hosts are slow, the fewer workers each holds, and some are always left.
//! - A host that refused its last delivery gets at most as many. All of these and those below share
//!   half of the workers; the other half is left to hosts that take deliveries.
//! - A host that timed out, or was never called, gets one worker at a time. After each timeout it
//!   rests, each time twice as long.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use requeue::{Instant, RateLimiter};

use crate::key::Key;

/// A host gets at most one in this many workers.
const SHARE: usize = 4;

/// All hosts that do not take deliveries share one in this many workers.
const DOUBTFUL_SHARE: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) subscriptions: usize,
    pub(super) in_flight: usize,
    standing: Standing,
    /// Timeouts in a row.
    timeouts: u32,
    rests_until: Instant,
    /// Keys that wait for a worker, in order, each once.
    parked: VecDeque<Key>,
    is_parked: HashSet<Key>,
    /// Keys that were parked and are in the queue again.
    pub(super) called: HashSet<Key>,
}

/// How a host answered a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Success.
    Taken,
    /// It refused the delivery, or could not be reached.
    Refused,
    /// It did not answer in time.
    None,
    /// It was not called.
    Unasked,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It takes deliveries.
    Good,
    /// It refuses deliveries.
    Failing,
    /// It does not answer, or was never called.
    #[default]
    Silent,
}

/// How many more workers may call a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    For(usize),
    /// One, after this rest.
    After(Duration),
}

impl Host {
    pub(super) fn is_good(&self) -> bool {
        self.standing == Standing::Good
    }

    /// Returns how many more workers may call the host. O(1).
    pub(super) fn room(
        &self,
        workers: usize,
        in_flight: usize,
        doubtful: usize,
        now: Instant,
    ) -> Room {
        let free = workers.saturating_sub(in_flight);
        let share = (workers / SHARE).max(1).min(free);
        let room = share.saturating_sub(self.in_flight);
        let doubtful_max = (workers / DOUBTFUL_SHARE).max(1);
        let room_of_doubtful = room.min(doubtful_max.saturating_sub(doubtful));
        match self.standing {
            Standing::Good => Room::For(room),
            Standing::Failing => Room::For(room_of_doubtful),
            Standing::Silent if self.in_flight > 0 => Room::For(0),
            Standing::Silent if self.rests_until > now => {
                Room::After(self.rests_until.saturating_since(now))
            }
            Standing::Silent => Room::For(room_of_doubtful.min(1)),
        }
    }

    pub(super) fn hear(
        &mut self,
        answer: Answer,
        rest: &mut impl RateLimiter<Record = u32>,
        now: Instant,
    ) {
        self.standing = match answer {
            Answer::Taken => Standing::Good,
            Answer::Refused => Standing::Failing,
            Answer::None => Standing::Silent,
            Answer::Unasked => return,
        };
        if answer != Answer::None {
            self.timeouts = 0;
            self.rests_until = Instant::EPOCH;
        } else if self.rests_until <= now {
            // Calls that began together time out together, and count once.
            self.rests_until = now + rest.when(&mut self.timeouts, now);
        }
    }

    /// Parks a key. Returns whether it is the only one.
    pub(super) fn park(&mut self, key: &Key) -> bool {
        let is_new = self.is_parked.insert(key.clone());
        if is_new {
            self.parked.push_back(key.clone());
        }
        is_new && self.parked.len() == 1
    }

    /// Removes and returns parked keys: as many as there is room for, less those in the queue
    /// again.
    pub(super) fn call(&mut self, room: usize) -> impl Iterator<Item = Key> {
        let count = room
            .saturating_sub(self.called.len())
            .min(self.parked.len());
        for key in self.parked.range(..count) {
            self.is_parked.remove(key);
            self.called.insert(key.clone());
        }
        self.parked.drain(..count)
    }

    /// Removes a subscription's keys. O(parked keys).
    pub(super) fn forget(&mut self, subscription: &str) {
        let is_other = |key: &Key| *key.subscription != *subscription;
        self.parked.retain(is_other);
        self.is_parked.retain(is_other);
        self.called.retain(is_other);
    }

    pub(super) fn parked_len(&self) -> usize {
        self.parked.len()
    }

    /// Returns whether the host can be removed.
    pub(super) fn is_unused(&self) -> bool {
        self.subscriptions == 0 && self.in_flight == 0
    }
}

//! States of the queue, on Embassy: looking, control, limits, shutting down, and waiting for room
//! or for a state. Owns no code: core writes all of it.

use core::hash::Hash;

use embassy_sync::blocking_mutex::raw::RawMutex;
use requeue_core::binding::{AsShared, Timer};
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;

use crate::parts::Parts;
use crate::queue::{Stored, WorkQueue, face, face_async, methods};

methods! {
    /// Looking. None of these waits.
    [Parts]
    face!(looking);

    /// Returns the clock. O(1).
    pub const fn clock(&self) -> &X::Clock {
        self.shared.clock()
    }
}

methods! {
    /// Waiting for a state of the queue.
    [Parts<Clock: Timer>]
    face_async!(looking_async, K, checked);
}

methods! {
    /// Control.
    [Parts]
    face!(control);

    /// Wakes every waiting call, so that it looks at the queue and at the clock again. A
    /// [`ManualClock`](crate::ManualClock) that moves does so itself. O(`WAITERS`).
    pub fn wake_all(&self) {
        self.shared.wake_all();
    }
}

methods! {
    /// Limits and groups.
    [Parts]
    face!(limits);
}

methods! {
    /// Shutting down. None of these waits.
    [Parts]
    face!(closing);
}

methods! {
    /// Shutting down, and waiting until the queue is drained.
    [Parts<Clock: Timer>]
    face_async!(closing_async, checked);
}

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
}

methods! {
    /// Control.
    [Parts]
    face!(control);
}

methods! {
    /// Limits and groups.
    [Parts]
    face!(limits);
}

methods! {
    /// Shutting down.
    [Parts]
    face!(closing);
}

methods! {
    /// Waiting for room, and for a state of the queue.
    [Parts<Clock: Timer>]
    face_async!(adding_async, K);
    face_async!(looking_async, K, checked);
    face_async!(closing_async, checked);
}

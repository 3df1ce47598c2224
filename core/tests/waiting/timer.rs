//! The timer of a clock that is moved by hand.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use requeue_core::Instant;
use requeue_core::binding::*;

use crate::common::clock::Hand;

impl Timer for Hand {
    type Alarm = Ring;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Ring>>, until: Option<Instant>) {
        alarm.set(until.map(|due| Ring(self.clone(), due)));
    }
}

/// Rings once the clock shows its time.
pub(crate) struct Ring(Hand, Instant);

impl Future for Ring {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

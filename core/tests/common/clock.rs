//! A clock that is moved by hand.

use std::cell::Cell;
use std::rc::Rc;

use requeue_core::Instant;
use requeue_core::binding::Clock;

#[derive(Clone, Debug, Default)]
pub(crate) struct Hand(Rc<Cell<Instant>>);

impl Hand {
    pub(crate) fn set(&self, nanos: u64) {
        self.0.set(Instant::from_nanos(nanos));
    }
}

impl Clock for Hand {
    fn now(&self) -> Instant {
        self.0.get()
    }
}

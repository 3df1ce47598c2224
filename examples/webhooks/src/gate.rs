//! How often, and how many at once, a receiver is called.
//!
//! The queue's own limiter spaces out what *failed*. A receiver may also ask for a rate in good
//! times, and one that is slow must not hold every worker. Neither makes a worker wait here: a key
//! that may not pass goes back into the queue, or is parked beside it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue::{Bucket, Instant, RateLimiter};

use crate::key::Key;

/// The gates of all subscriptions.
#[derive(Debug)]
pub(crate) struct Gates {
    in_flight_max: usize,
    gates: Mutex<HashMap<Arc<str>, Gate>>,
}

#[derive(Debug)]
struct Gate {
    bucket: Bucket,
    /// For objects that the bucket was asked about: from when on they may pass. Their token is
    /// taken already, so that they come back once and not for one lottery after the other.
    due: HashMap<Arc<str>, Instant>,
    in_flight: usize,
    /// Objects that may pass as soon as another has come back, in this order; each once.
    parked: VecDeque<Arc<str>>,
    is_parked: HashSet<Arc<str>>,
}

/// Whether a key may be worked on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes; the gate has to be told when it has come back.
    Now,
    /// Not before this long.
    Later(Duration),
    /// When another has come back, which then names this one.
    Parked,
    /// There is no such subscription.
    Unknown,
}

impl Gates {
    /// Gates that let so many pass at once, per subscription.
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self {
            in_flight_max: in_flight_max.max(1),
            gates: Mutex::default(),
        }
    }

    /// Sets a subscription's rate, in deliveries per second; without one there is no limit. Whoever
    /// waited has to be added again.
    pub(crate) fn set(&self, subscription: &Arc<str>, rate: Option<f64>) {
        let mut gates = self.locked();
        // What is under way is still to come back.
        let in_flight = gates.get(subscription).map_or(0, |gate| gate.in_flight);
        let gate = Gate {
            bucket: rate.map_or(Bucket::unlimited(), |rate| Bucket::new(rate, burst(rate))),
            due: HashMap::new(),
            in_flight,
            parked: VecDeque::new(),
            is_parked: HashSet::new(),
        };
        gates.insert(Arc::clone(subscription), gate);
    }

    pub(crate) fn remove(&self, subscription: &str) {
        self.locked().remove(subscription);
    }

    /// Asks for a key to pass.
    pub(crate) fn enter(&self, key: &Key, now: Instant) -> Admission {
        let mut gates = self.locked();
        let Some(gate) = gates.get_mut(&key.subscription) else {
            return Admission::Unknown;
        };
        let bucket = &mut gate.bucket;
        let object = Arc::clone(&key.object);
        let due = *gate
            .due
            .entry(object)
            .or_insert_with(|| now + bucket.when(&mut (), now));
        if due > now {
            return Admission::Later(due.saturating_since(now));
        }
        if gate.in_flight >= self.in_flight_max {
            if gate.is_parked.insert(Arc::clone(&key.object)) {
                gate.parked.push_back(Arc::clone(&key.object));
            }
            return Admission::Parked;
        }
        gate.due.remove(&key.object);
        gate.in_flight += 1;
        Admission::Now
    }

    /// A key that passed has come back. Answers which parked object is next; it has to be added to
    /// the queue, and asks again.
    pub(crate) fn leave(&self, subscription: &str) -> Option<Arc<str>> {
        let mut gates = self.locked();
        let gate = gates.get_mut(subscription)?;
        gate.in_flight = gate.in_flight.saturating_sub(1);
        let next = gate.parked.pop_front()?;
        gate.is_parked.remove(&next);
        Some(next)
    }

    /// How many keys are parked.
    pub(crate) fn parked_len(&self) -> usize {
        self.locked().values().map(|gate| gate.parked.len()).sum()
    }

    /// A panic under the lock, of which there is none, would leave nothing half done.
    fn locked(&self) -> MutexGuard<'_, HashMap<Arc<str>, Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A second's worth, one at least.
fn burst(rate: f64) -> u32 {
    // The conversion saturates; rates are checked to be small.
    rate.max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A subscription `s` with this rate, and room for two at once.
    fn gates(rate: Option<f64>) -> Gates {
        let gates = Gates::new(2);
        gates.set(&"s".into(), rate);
        gates
    }

    fn enter(gates: &Gates, object: &str, millis: u64) -> Admission {
        let now = Instant::EPOCH + Duration::from_millis(millis);
        gates.enter(&Key::new("s", object), now)
    }

    fn later(millis: u64) -> Admission {
        Admission::Later(Duration::from_millis(millis))
    }

    #[test]
    fn a_rate_spreads_keys_and_charges_each_once() {
        let gates = gates(Some(2.0));
        assert_eq!(enter(&gates, "a", 0), Admission::Now);
        assert_eq!(gates.leave("s"), None);
        assert_eq!(enter(&gates, "b", 0), Admission::Now);
        assert_eq!(gates.leave("s"), None);
        assert_eq!(enter(&gates, "c", 0), later(500));
        assert_eq!(enter(&gates, "d", 0), later(1000));
        // A change brings a key early, and costs nothing.
        assert_eq!(enter(&gates, "c", 100), later(400));
        assert_eq!(enter(&gates, "c", 500), Admission::Now);
        assert_eq!(enter(&gates, "d", 1000), Admission::Now);
        // The next time it is charged again.
        assert_eq!(enter(&gates, "c", 1000), later(500));
    }

    #[test]
    fn who_finds_no_room_is_named_when_there_is_some() {
        let gates = gates(None);
        for object in ["a", "b"] {
            assert_eq!(enter(&gates, object, 0), Admission::Now);
        }
        for object in ["c", "d", "c"] {
            assert_eq!(enter(&gates, object, 0), Admission::Parked);
        }
        assert_eq!(gates.parked_len(), 2);
        for expected in ["c", "d"] {
            let next = gates.leave("s").unwrap();
            assert_eq!(&*next, expected);
            assert_eq!(enter(&gates, &next, 0), Admission::Now);
        }
        assert_eq!(gates.leave("s"), None);
    }

    #[test]
    fn a_parked_key_has_paid() {
        let gates = gates(Some(3.0));
        for object in ["a", "b"] {
            assert_eq!(enter(&gates, object, 0), Admission::Now);
        }
        assert_eq!(enter(&gates, "c", 0), Admission::Parked);
        assert_eq!(gates.leave("s").as_deref(), Some("c"));
        assert_eq!(enter(&gates, "c", 0), Admission::Now);
    }

    #[test]
    fn one_receiver_does_not_hold_up_another() {
        let gates = gates(Some(1.0));
        gates.set(&"t".into(), None);
        assert_eq!(enter(&gates, "a", 0), Admission::Now);
        assert_eq!(enter(&gates, "b", 0), later(1000));
        let other = Key::new("t", "b");
        assert_eq!(gates.enter(&other, Instant::EPOCH), Admission::Now);
    }

    #[test]
    fn a_changed_rate_begins_anew_but_knows_what_is_under_way() {
        let gates = gates(None);
        for (object, expected) in [("a", Admission::Now), ("b", Admission::Now)] {
            assert_eq!(enter(&gates, object, 0), expected);
        }
        assert_eq!(enter(&gates, "c", 0), Admission::Parked);
        gates.set(&"s".into(), Some(1.0));
        assert_eq!(gates.parked_len(), 0);
        assert_eq!(enter(&gates, "c", 0), Admission::Parked);
        assert_eq!(enter(&gates, "d", 0), later(1000));
    }

    #[test]
    fn a_subscription_that_is_gone_is_unknown() {
        let gates = gates(None);
        assert_eq!(enter(&gates, "a", 0), Admission::Now);
        gates.remove("s");
        assert_eq!(enter(&gates, "b", 0), Admission::Unknown);
        assert_eq!(gates.leave("s"), None);
    }
}

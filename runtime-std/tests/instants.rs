//! Instants of a queue and of std name the same moments.

use std::time::{Duration, Instant};

use requeue_std::binding::Clock;
use requeue_std::{ManualClock, QueueClock};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn an_instant_comes_back_as_it_was() {
    let clock = QueueClock::new();
    let later = Instant::now() + MINUTE;
    assert_eq!(clock.to_std(clock.at(later)), Some(later));
}

#[test]
fn what_was_before_the_clock_is_its_epoch() {
    let before = Instant::now();
    let clock = QueueClock::new();
    assert_eq!(clock.at(before), requeue_std::Instant::EPOCH);
}

#[test]
fn what_std_cannot_represent_is_none() {
    let manual = QueueClock::from(ManualClock::new());
    for clock in [QueueClock::new(), manual] {
        assert_eq!(clock.to_std(requeue_std::Instant::NEVER), None);
    }
}

/// A queue that a program puts behind a lock of its own may have the clock of a test.
#[test]
fn a_clock_of_a_test_is_a_clock_of_any_queue() {
    fn now(clock: &impl Clock) -> requeue_std::Instant {
        clock.now()
    }

    let manual = ManualClock::new();
    manual.advance(MINUTE);
    assert_eq!(now(&manual), requeue_std::Instant::EPOCH + MINUTE);
    assert_eq!(now(&QueueClock::from(manual.clone())), now(&manual));
}

#[test]
fn a_clock_of_a_test_counts_from_its_own_present() {
    let manual = ManualClock::new();
    let clock = QueueClock::from(manual.clone());
    manual.advance(MINUTE);

    let due = clock.at(Instant::now() + MINUTE);
    assert!(due > clock.now());
    assert!(due <= clock.now() + MINUTE);

    let back = clock.to_std(clock.now() + MINUTE).unwrap();
    assert!(back > Instant::now());
    let past = clock.to_std(clock.now() - MINUTE).unwrap();
    assert!(past < Instant::now());
}

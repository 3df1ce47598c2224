//! Receivers that hang or fail, and one that answers: what the first ones cost the last one.
//!
//! These tests hold whatever it is that shares the workers out. They wait for what has to happen
//! and count calls; none of them measures time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Manner, Place, Receiver, Service, User};
use serde_json::json;
use tokio::sync::Semaphore;

/// A delivery that hangs does so until the test ends.
const PATIENT: [&str; 3] = ["--allow-private", "--timeout", "3600000"];

/// The default number of workers, and the part of them that one receiver may have.
const WORKERS: u64 = 32;
const SHARE: u64 = WORKERS / 4;

const OBJECTS: u64 = 100;

/// Receivers that take as many deliveries as they get permits, and then hang.
async fn hanging(count: usize, permits: usize) -> Vec<Receiver> {
    let mut receivers = Vec::new();
    for _ in 0..count {
        let permits = Arc::new(Semaphore::new(permits));
        receivers.push(Receiver::new(Manner::Slow(permits)).await);
    }
    receivers
}

/// A receiver that answers is subscribed after all others, and gets every object.
async fn assert_served(user: &User, service: &Service) {
    let steady = Receiver::new(Manner::Steady).await;
    user.subscribe(service, "steady", &steady).await;
    let knows_all = |receiver: &Receiver| receiver.knows_count() as u64 == OBJECTS;
    steady.until("served", knows_all).await;
}

#[tokio::test]
async fn receivers_that_never_answered_leave_workers_to_others() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&PATIENT);
    let hanging = hanging(12, 0).await;
    for (id, receiver) in hanging.iter().enumerate() {
        user.subscribe(&service, &format!("hanging{id}"), receiver)
            .await;
    }
    user.put_objects(&service, OBJECTS, &json!(1)).await;
    for receiver in &hanging {
        receiver.until_called("called", |calls| calls.now > 0).await;
    }
    assert_served(&user, &service).await;
}

#[tokio::test]
async fn receivers_that_hang_after_they_answered_leave_workers_to_others() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&PATIENT);
    let hanging = hanging(4, OBJECTS as usize).await;
    for (id, receiver) in hanging.iter().enumerate() {
        user.subscribe(&service, &format!("hanging{id}"), receiver)
            .await;
    }
    // All of them have shown that they are worth their share.
    user.put_objects(&service, OBJECTS, &json!(1)).await;
    user.settled(&service).await;
    user.put_objects(&service, OBJECTS, &json!(2)).await;
    for receiver in &hanging {
        receiver.until_called("called", |calls| calls.now > 1).await;
    }
    assert_served(&user, &service).await;
    for receiver in &hanging {
        assert!(receiver.calls().most <= SHARE, "{:?}", receiver.calls());
    }
}

#[tokio::test]
async fn subscriptions_to_one_receiver_share_its_workers() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&PATIENT);
    let hanging = hanging(1, OBJECTS as usize).await;
    user.put_objects(&service, OBJECTS, &json!(1)).await;
    user.subscribe(&service, "first", &hanging[0]).await;
    user.settled(&service).await;
    for id in 0..8 {
        user.subscribe(&service, &format!("more{id}"), &hanging[0])
            .await;
    }
    let is_full = |calls: crate::support::Calls| calls.now >= SHARE;
    hanging[0].until_called("called", is_full).await;
    assert_served(&user, &service).await;
    assert_eq!(hanging[0].calls().most, SHARE);
}

#[tokio::test]
async fn a_slow_path_does_not_hold_up_others_of_its_host() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&PATIENT);
    let permits = Arc::new(Semaphore::new(OBJECTS as usize));
    let receiver = Receiver::new(Manner::SlowPath("/slow", permits)).await;
    for id in ["slow", "quick"] {
        let json = json!({"url": format!("http://{}/{id}", receiver.address)});
        let path = format!("/subscriptions/{id}");
        user.put(&service, &path, &json).await;
    }
    user.put_objects(&service, OBJECTS, &json!(1)).await;
    user.settled(&service).await;
    // From now on one of the paths hangs.
    user.put_objects(&service, OBJECTS, &json!(2)).await;
    let has_all = |receiver: &Receiver| receiver.taken() == 3 * OBJECTS;
    receiver.until("served", has_all).await;
}

#[tokio::test]
async fn a_receiver_s_share_outlives_its_subscription() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&PATIENT);
    let hanging = hanging(1, OBJECTS as usize).await;
    user.put_objects(&service, OBJECTS, &json!(1)).await;
    user.subscribe(&service, "hanging", &hanging[0]).await;
    user.settled(&service).await;
    user.put_objects(&service, OBJECTS, &json!(2)).await;
    let is_full = |calls: crate::support::Calls| calls.now >= SHARE;
    hanging[0].until_called("called", is_full).await;
    for _ in 0..4 {
        user.delete(&service, "/subscriptions/hanging").await;
        user.subscribe(&service, "hanging", &hanging[0]).await;
    }
    // By then, every key of the subscriptions before has had its turn.
    assert_served(&user, &service).await;
    assert_eq!(hanging[0].calls().most, SHARE);
}

#[tokio::test]
async fn a_receiver_that_fails_does_not_delay_the_retries_of_another() {
    const MANY: u64 = 6000;
    let (place, user) = (Place::new(), User::new());
    let options = ["--allow-private", "--tries", "1000", "--pause", "10"];
    let service = place.start(&options);
    let is_down = Arc::new(AtomicBool::new(false));
    let other = Receiver::new(Manner::Down(Arc::clone(&is_down))).await;
    let failing = Receiver::new(Manner::Down(Arc::new(AtomicBool::new(true)))).await;
    user.subscribe(&service, "other", &other).await;
    user.put_objects(&service, MANY, &json!(1)).await;
    user.settled(&service).await;
    user.subscribe(&service, "failing", &failing).await;
    let has_failed = |calls: crate::support::Calls| calls.total >= MANY;
    failing.until_called("called", has_failed).await;

    is_down.store(true, Ordering::SeqCst);
    let called = other.calls().total;
    user.put(&service, "/objects/one", &json!(1)).await;
    other
        .until_called("called", |calls| calls.total > called)
        .await;
    is_down.store(false, Ordering::SeqCst);
    let before = failing.calls().total;
    other
        .until("served", |other| other.knows("one").is_some())
        .await;
    // Its pause was that of its own few failures.
    let meanwhile = failing.calls().total - before;
    assert!(meanwhile < 1000, "{meanwhile} calls of another receiver");
}

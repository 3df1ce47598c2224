//! Which hosts may be called, at times that the test sets.

use requeue::tokio::WorkQueue;

use super::*;
use crate::key::Key;

const WORKERS: usize = 8;

/// Eight workers, and subscriptions `s` to host `h` and `t` to host `i`.
fn shares() -> Shares {
    let queue: Queue = WorkQueue::builder().build_with_groups(Key::group);
    let second = Duration::from_secs(1);
    let shares = Shares::new(queue, WORKERS, second, 5 * second);
    set(&shares, "s", "h", None);
    set(&shares, "t", "i", None);
    shares
}

fn set(shares: &Shares, id: &str, host: &str, rate: Option<f64>) {
    shares.set(&id.into(), &host.into(), rate, Instant::EPOCH);
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

#[track_caller]
fn call(shares: &Shares, id: &str, millis: u64) -> Call {
    match shares.begin(&id.into(), at(millis)) {
        Permission::Now(call) => call,
        other => panic!("{id}: {other:?}"),
    }
}

#[track_caller]
fn assert_refused(shares: &Shares, id: &str, millis: u64) {
    let permission = shares.begin(&id.into(), at(millis));
    assert_eq!(permission, Permission::Later, "{id}");
    assert!(is_paused(shares, id), "{id}");
}

fn is_paused(shares: &Shares, id: &str) -> bool {
    let group = shares.queue.group(id);
    group.is_some_and(|group| group.paused)
}

/// Makes a subscription's host one that takes what it gets.
fn befriend(shares: &Shares, id: &str) {
    shares.end(&call(shares, id, 0), Answer::Taken, at(0));
}

fn add(shares: &Shares, keys: &[&str]) {
    for key in keys {
        shares.queue.add(key.parse().unwrap()).unwrap();
    }
}

#[test]
fn a_host_that_takes_what_it_gets_has_a_quarter_of_the_workers() {
    let shares = shares();
    befriend(&shares, "s");
    for id in ["u", "v"] {
        set(&shares, id, "h", None);
    }
    let (first, _second) = (call(&shares, "s", 0), call(&shares, "u", 0));
    assert_refused(&shares, "s", 0);
    assert_refused(&shares, "u", 0);
    assert_refused(&shares, "v", 0);
    call(&shares, "t", 0);
    add(&shares, &["s/a", "u/a"]);
    shares.end(&first, Answer::Taken, at(0));
    assert!(!is_paused(&shares, "s") && is_paused(&shares, "u"));
    let next = call(&shares, "s", 0);
    assert_refused(&shares, "s", 0);
    // A group without ready keys does not keep the others from asking.
    shares.queue.clear();
    shares.end(&next, Answer::Taken, at(0));
    assert!(!is_paused(&shares, "s") && !is_paused(&shares, "v"));
}

#[test]
fn a_group_has_its_share_and_its_rate() {
    let shares = shares();
    let keys = ["s/a", "s/b", "s/c", "t/a", "t/b", "t/c"];
    add(&shares, &keys);
    set(&shares, "s", "h", Some(0.5));
    let mut handed_out = Vec::new();
    while let Some(guard) = shares.queue.try_get() {
        handed_out.push(guard);
    }
    let handed_out: Vec<String> = handed_out.iter().map(|guard| guard.to_string()).collect();
    assert_eq!(handed_out, ["s/a", "t/a", "t/b"]);
}

#[test]
fn a_host_that_does_not_answer_is_asked_less_and_less() {
    let shares = shares();
    befriend(&shares, "s");
    let (first, second) = (call(&shares, "s", 0), call(&shares, "s", 0));
    assert_refused(&shares, "s", 0);
    // They began together, and count as one.
    shares.end(&first, Answer::None, at(10));
    shares.end(&second, Answer::None, at(20));
    assert_eq!(shares.resume(at(20)), Duration::from_millis(990));
    let mut now = 1010;
    for rest in [2000, 4000, 5000] {
        assert!(is_paused(&shares, "s"));
        assert_eq!(shares.resume(at(now)), Duration::MAX);
        assert!(!is_paused(&shares, "s"));
        let probe = call(&shares, "s", now);
        assert_refused(&shares, "s", now);
        shares.end(&probe, Answer::None, at(now));
        assert_eq!(shares.resume(at(now)), Duration::from_millis(rest));
        now += rest;
    }
    // As soon as it answers, it has its share again.
    shares.resume(at(now));
    shares.end(&call(&shares, "s", now), Answer::Taken, at(now));
    assert!(!is_paused(&shares, "s"));
    call(&shares, "s", now);
    call(&shares, "s", now);
}

#[test]
fn half_of_the_workers_are_for_hosts_that_take_what_they_get() {
    let shares = shares();
    befriend(&shares, "s");
    let new = ["new0", "new1", "new2", "new3", "new4"];
    for id in new {
        set(&shares, id, id, None);
    }
    let calls = ["new0", "new1", "new2", "new3"].map(|id| call(&shares, id, 0));
    assert_refused(&shares, "new4", 0);
    call(&shares, "s", 0);
    call(&shares, "s", 0);
    // One that ends makes room for another host.
    shares.end(&calls[0], Answer::None, at(0));
    assert!(!is_paused(&shares, "new4"));
    call(&shares, "new4", 0);
}

#[test]
fn a_share_is_a_host_s_and_outlives_subscriptions() {
    let shares = shares();
    befriend(&shares, "s");
    set(&shares, "u", "h", None);
    let first = call(&shares, "s", 0);
    call(&shares, "u", 0);
    for rate in [None, Some(1.0)] {
        for id in ["s", "u"] {
            shares.remove(&id.into(), at(0));
        }
        let unknown = shares.begin(&"s".into(), at(0));
        assert_eq!(unknown, Permission::Unknown);
        set(&shares, "s", "h", rate);
        assert!(shares.is_set("s", "h", rate));
        assert_refused(&shares, "s", 0);
    }
    shares.end(&first, Answer::Taken, at(0));
    assert!(!is_paused(&shares, "s"));
    call(&shares, "s", 0);
}

/// Sixteen workers for each host, and subscriptions `slow`, `t` and `u` to one host.
fn neighbours() -> Shares {
    let queue: Queue = WorkQueue::builder().build_with_groups(Key::group);
    let second = Duration::from_secs(1);
    let shares = Shares::new(queue, 4 * 16, second, 5 * second);
    for id in ["slow", "t", "u"] {
        set(&shares, id, "h", None);
        befriend(&shares, id);
    }
    shares
}

/// Begins as many calls as there may be.
fn fill(shares: &Shares, id: &str) -> Vec<Call> {
    let calls = std::iter::from_fn(|| match shares.begin(&id.into(), at(0)) {
        Permission::Now(call) => Some(call),
        _ => None,
    });
    calls.take(100).collect()
}

#[test]
fn a_slow_subscription_leaves_workers_to_others_of_its_host() {
    let shares = neighbours();
    let slow = fill(&shares, "slow");
    assert_eq!(slow.len(), 8);
    assert_eq!(fill(&shares, "t").len(), 4);
    assert_eq!(fill(&shares, "u").len(), 2);
    // A worker that is free again is for the one that has fewest.
    shares.end(&slow[0], Answer::Taken, at(0));
    assert_refused(&shares, "slow", 0);
    call(&shares, "u", 0);
    // Alone, it has the whole share.
    let shares = neighbours();
    for id in ["t", "u"] {
        shares.remove(&id.into(), at(0));
    }
    assert_eq!(fill(&shares, "slow").len(), 16);
}

#[test]
fn a_subscription_that_hangs_does_not_stop_others_of_its_host() {
    let shares = neighbours();
    for hung in fill(&shares, "slow") {
        shares.end(&hung, Answer::None, at(10));
    }
    // It rests, and has one worker then.
    assert_refused(&shares, "slow", 10);
    assert_eq!(fill(&shares, "t").len(), 8);
    assert_eq!(shares.resume(at(10)), Duration::from_millis(1000));
    shares.resume(at(1010));
    let probe = call(&shares, "slow", 1010);
    assert_refused(&shares, "slow", 1010);
    call(&shares, "u", 1010);
    // Its rests grow, although the others are answered.
    shares.end(&call(&shares, "u", 1010), Answer::Taken, at(1010));
    shares.end(&probe, Answer::None, at(2000));
    assert_eq!(shares.resume(at(2000)), Duration::from_millis(2000));
}

#[test]
fn a_host_of_which_nothing_answers_has_one_worker() {
    let shares = neighbours();
    for id in ["slow", "t", "u"] {
        shares.end(&call(&shares, id, 0), Answer::None, at(0));
    }
    assert_refused(&shares, "slow", 0);
    shares.resume(at(1000));
    let _probe = call(&shares, "t", 1000);
    assert_refused(&shares, "u", 1000);
}

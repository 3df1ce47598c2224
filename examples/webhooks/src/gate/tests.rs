//! Which keys may pass, on a clock that the test moves.

use super::*;

const WORKERS: usize = 8;

/// Gates for eight workers, and subscriptions `s` to host `h` with this rate, and `t` to host `i`.
fn gates(rate: Option<f64>) -> Gates {
    let gates = Gates::new(WORKERS, Duration::from_secs(1), Duration::from_secs(5));
    assert_eq!(
        gates.set(&"s".into(), &"h".into(), rate, Instant::EPOCH),
        []
    );
    assert_eq!(
        gates.set(&"t".into(), &"i".into(), None, Instant::EPOCH),
        []
    );
    gates
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

/// Asks for a key such as `s/a`.
fn enter(gates: &Gates, key: &str, millis: u64) -> Admission {
    gates.enter(&crate::key::parse_key(key).unwrap(), at(millis))
}

#[track_caller]
fn pass(gates: &Gates, key: &str, millis: u64) -> Pass {
    match enter(gates, key, millis) {
        Admission::Now(pass) => pass,
        other => panic!("{key}: {other:?}"),
    }
}

fn leave(gates: &Gates, pass: &Pass, answer: Answer, millis: u64) -> Vec<(String, u64)> {
    let called = gates.leave(pass, answer, at(millis));
    let shown = |(key, pause): &Called| (key.to_string(), pause.as_millis() as u64);
    called.iter().map(shown).collect()
}

/// Makes a subscription's host one that takes what it gets.
fn befriend(gates: &Gates, key: &str) {
    let pass = pass(gates, key, 0);
    assert_eq!(leave(gates, &pass, Answer::Taken, 0), []);
}

fn later(millis: u64) -> Admission {
    Admission::Later(Duration::from_millis(millis))
}

fn called<const N: usize>(keys: [(&str, u64); N]) -> Vec<(String, u64)> {
    keys.map(|(key, pause)| (key.to_owned(), pause)).into()
}

#[test]
fn a_rate_spreads_keys_and_charges_each_once() {
    let gates = gates(Some(2.0));
    befriend(&gates, "s/a");
    befriend(&gates, "s/b");
    assert_eq!(enter(&gates, "s/c", 0), later(500));
    assert_eq!(enter(&gates, "s/d", 0), later(1000));
    // A change brings a key early, and costs nothing.
    assert_eq!(enter(&gates, "s/c", 100), later(400));
    pass(&gates, "s/c", 500);
    pass(&gates, "s/d", 1000);
    // The next time it is charged again.
    assert_eq!(enter(&gates, "s/c", 1000), later(500));
    // Another receiver has a rate of its own.
    pass(&gates, "t/c", 0);
}

#[test]
fn a_host_that_takes_what_it_gets_has_a_quarter_of_the_workers() {
    let gates = gates(None);
    befriend(&gates, "s/a");
    let first = pass(&gates, "s/a", 0);
    let second = pass(&gates, "s/b", 0);
    for key in ["s/c", "s/d", "s/c"] {
        assert_eq!(enter(&gates, key, 0), Admission::Parked);
    }
    assert_eq!(gates.parked_len(), 2);
    assert_eq!(
        leave(&gates, &first, Answer::Taken, 0),
        called([("s/c", 0)])
    );
    assert_eq!(
        leave(&gates, &second, Answer::Taken, 0),
        called([("s/d", 0)])
    );
    pass(&gates, "s/c", 0);
    pass(&gates, "s/d", 0);
}

#[test]
fn a_parked_key_has_paid() {
    let gates = gates(Some(4.0));
    befriend(&gates, "s/a");
    let first = pass(&gates, "s/a", 0);
    pass(&gates, "s/b", 0);
    assert_eq!(enter(&gates, "s/c", 0), Admission::Parked);
    assert_eq!(
        leave(&gates, &first, Answer::Taken, 0),
        called([("s/c", 0)])
    );
    pass(&gates, "s/c", 0);
}

#[test]
fn a_new_host_shows_first_that_it_answers() {
    let gates = gates(None);
    let first = pass(&gates, "s/a", 0);
    for key in ["s/b", "s/c", "s/d"] {
        assert_eq!(enter(&gates, key, 0), Admission::Parked);
    }
    let expected = called([("s/b", 0), ("s/c", 0)]);
    assert_eq!(leave(&gates, &first, Answer::Taken, 0), expected);
}

#[test]
fn a_host_that_does_not_answer_is_asked_less_and_less() {
    let gates = gates(None);
    befriend(&gates, "s/a");
    let (first, second) = (pass(&gates, "s/a", 0), pass(&gates, "s/b", 0));
    assert_eq!(enter(&gates, "s/c", 0), Admission::Parked);
    // They began together, and count as one.
    assert_eq!(leave(&gates, &first, Answer::None, 10), []);
    assert_eq!(
        leave(&gates, &second, Answer::None, 20),
        called([("s/c", 990)])
    );
    assert_eq!(enter(&gates, "s/a", 30), Admission::Parked);
    let mut now = 1010;
    for (key, next, rest) in [
        ("s/c", "s/a", 2000),
        ("s/a", "s/c", 4000),
        ("s/c", "s/a", 5000),
    ] {
        let probe = pass(&gates, key, now);
        assert_eq!(enter(&gates, next, now), Admission::Parked);
        assert_eq!(
            leave(&gates, &probe, Answer::None, now),
            called([(next, rest)])
        );
        now += rest;
    }
    // As soon as it answers, it has its share again.
    let probe = pass(&gates, "s/a", now);
    for key in ["s/b", "s/c"] {
        assert_eq!(enter(&gates, key, now), Admission::Parked);
    }
    let expected = called([("s/b", 0), ("s/c", 0)]);
    assert_eq!(leave(&gates, &probe, Answer::Taken, now), expected);
}

#[test]
fn a_key_that_comes_while_its_host_rests_is_the_next_to_ask() {
    let gates = gates(None);
    let probe = pass(&gates, "s/a", 0);
    assert_eq!(leave(&gates, &probe, Answer::None, 0), []);
    assert_eq!(enter(&gates, "s/b", 400), later(600));
    assert_eq!(enter(&gates, "s/c", 400), Admission::Parked);
    let probe = pass(&gates, "s/b", 1000);
    assert_eq!(
        leave(&gates, &probe, Answer::Refused, 1000),
        called([("s/c", 0)])
    );
}

#[test]
fn half_of_the_workers_are_for_hosts_that_take_what_they_get() {
    let gates = gates(None);
    befriend(&gates, "s/a");
    let mut passes = Vec::new();
    for id in 0..WORKERS {
        let id: Arc<str> = format!("new{id}").into();
        gates.set(&id, &id, None, Instant::EPOCH);
        match enter(&gates, &format!("{id}/o"), 0) {
            Admission::Now(pass) => passes.push(pass),
            other => assert_eq!(other, Admission::Parked),
        }
    }
    assert_eq!(passes.len(), WORKERS / 2);
    pass(&gates, "s/a", 0);
    pass(&gates, "s/b", 0);
    // One that leaves makes room for another host.
    let next = leave(&gates, &passes[0], Answer::None, 0);
    assert_eq!(next, called([("new4/o", 0)]));
}

#[test]
fn a_share_is_a_host_s_and_outlives_subscriptions() {
    let gates = gates(None);
    befriend(&gates, "s/a");
    gates.set(&"u".into(), &"h".into(), None, Instant::EPOCH);
    let first = pass(&gates, "s/a", 0);
    pass(&gates, "u/a", 0);
    assert_eq!(enter(&gates, "s/b", 0), Admission::Parked);
    for rate in [None, Some(1.0)] {
        gates.remove("s", at(0));
        gates.remove("u", at(0));
        assert_eq!(enter(&gates, "s/b", 0), Admission::Unknown);
        assert_eq!(gates.parked_len(), 0);
        gates.set(&"s".into(), &"h".into(), rate, at(0));
        assert_eq!(enter(&gates, "s/b", 0), Admission::Parked);
    }
    assert_eq!(
        leave(&gates, &first, Answer::Taken, 0),
        called([("s/b", 0)])
    );
    pass(&gates, "s/b", 0);
}

#[test]
fn a_key_that_was_called_and_forgotten_makes_way() {
    let gates = gates(None);
    gates.set(&"u".into(), &"h".into(), None, Instant::EPOCH);
    let first = pass(&gates, "s/a", 0);
    for key in ["s/b", "u/c"] {
        assert_eq!(enter(&gates, key, 0), Admission::Parked);
    }
    assert_eq!(
        leave(&gates, &first, Answer::None, 0),
        called([("s/b", 1000)])
    );
    let next = gates.remove("s", at(100));
    assert_eq!(next, [(Key::new("u", "c"), Duration::from_millis(900))]);
    assert!(gates.is_set("u", "h", None) && !gates.is_set("s", "h", None));
}

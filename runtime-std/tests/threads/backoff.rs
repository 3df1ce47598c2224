//! `backoff_until`, and the signal that stops it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use requeue_std::backoff::{Backoff, BackoffUntil, no_jitter};
use requeue_std::{ManualClock, QueueClock, Stop, backoff_until};

use super::{SECOND, unpark_this_thread};

#[test]
fn backoff_until_runs_at_the_times_of_its_backoff() {
    // Not sliding, so that the pause is fixed before `work` reports its run to the test.
    let backoff = Backoff {
        duration: SECOND,
        factor: 2.0,
        steps: 9,
        ..Backoff::default()
    };
    let clock = ManualClock::new();
    let stop = Stop::new();
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        let worker_clock = clock.clone();
        let worker_stop = stop.clone();
        scope.spawn(move || {
            let backoff = BackoffUntil::non_sliding(backoff.delay_func(no_jitter));
            backoff_until(backoff, worker_clock, &worker_stop, || {
                ran.send(()).unwrap()
            });
        });
        for pause in [1, 2, 4] {
            runs.recv().unwrap();
            clock.advance(SECOND * pause - Duration::from_nanos(1));
            assert!(runs.try_recv().is_err());
            clock.advance(Duration::from_nanos(1));
        }
        runs.recv().unwrap();
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

#[test]
fn a_loop_that_is_woken_for_no_reason_pauses_on() {
    let (clock, stop) = (ManualClock::new(), Stop::new());
    let backoff = Backoff {
        duration: SECOND,
        ..Backoff::default()
    };
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        let worker_clock = clock.clone();
        let (stop, ran) = (&stop, &ran);
        let looping = scope.spawn(move || {
            let backoff = BackoffUntil::non_sliding(backoff.delay_func(no_jitter));
            backoff_until(backoff, worker_clock, stop, || {
                unpark_this_thread();
                ran.send(()).unwrap();
            });
        });
        for _ in 0..3 {
            runs.recv().unwrap();
            looping.thread().unpark();
            while clock.waiting() != 1 {
                thread::yield_now();
            }
            clock.advance(SECOND);
        }
        runs.recv().unwrap();
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

#[test]
fn one_signal_stops_every_loop_in_its_pause() {
    let stop = Stop::new();
    let backoff = Backoff {
        duration: Duration::MAX,
        ..Backoff::default()
    };
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            let (stop, ran) = (stop.clone(), ran.clone());
            scope.spawn(move || {
                let backoff = BackoffUntil::sliding(backoff.delay_func(no_jitter));
                backoff_until(backoff, QueueClock::new(), &stop, || ran.send(()).unwrap());
            });
        }
        for _ in 0..3 {
            runs.recv().unwrap();
        }
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

//! The figures of each second, for the page and for scripts that wait for a change.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter};
use metrics_exporter_prometheus::PrometheusHandle;
use requeue::binding::AsShared;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::dispatch::Queue;
use crate::figures::Waits;
use crate::shares::Shares;

/// How often a sample is taken.
const PERIOD: Duration = Duration::from_secs(1);

/// How many samples are kept: five minutes.
const HISTORY_LEN: usize = 300;

/// After how many samples a generation of waits ends: the p99 covers the last half to whole minute.
const TURN: u64 = 30;

/// How long a request waits for the next sample.
const WAIT_MAX: Duration = Duration::from_secs(5);

const FIGURE: &str = "webhooks_deliveries_total";

/// Counts deliveries by outcome since the start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    delivered: AtomicU64,
    retried: AtomicU64,
    given_up: AtomicU64,
    refused: AtomicU64,
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Delivered,
    Retried,
    GivenUp,
    /// It was made, but another process delivers to that receiver now, and what is recorded is
    /// what that one does.
    Refused,
}

/// The figures of one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Look {
    /// Counts the samples.
    seq: u64,
    /// Ready keys, without those that are parked.
    depth: usize,
    /// Active keys.
    in_flight: usize,
    /// Delayed keys: after a failure.
    delayed: usize,
    /// Ready keys whose subscription is at its rate, or whose host has its share of the workers.
    parked: usize,
    delivered: u64,
    retries: u64,
    given_up: u64,
    /// Deliveries that could not be recorded because another process delivers there now.
    refused: u64,
    /// How long keys were ready or parked before their run.
    wait_p99_ms: f64,
}

/// Takes samples, and keeps the last ones.
pub(crate) struct Stats {
    pub(crate) queue: Queue,
    pub(crate) shares: Arc<Shares>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) waits: Arc<Waits>,
    pub(crate) prometheus: PrometheusHandle,
    pub(crate) history: History,
}

/// The last samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    looks: Mutex<VecDeque<Look>>,
    newest: watch::Sender<u64>,
}

impl Tally {
    /// Starts at zero. Describes the figure to the installed recorder.
    pub(crate) fn new() -> Self {
        describe_counter!(FIGURE, "Deliveries that were tried, by how that went");
        Self::default()
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        let (figure, name) = self.figure(outcome);
        figure.fetch_add(1, Ordering::Relaxed);
        counter!(FIGURE, "outcome" => name).increment(1);
    }

    /// Returns how many there were.
    pub(crate) fn counted(&self, outcome: Outcome) -> u64 {
        self.figure(outcome).0.load(Ordering::Relaxed)
    }

    fn figure(&self, outcome: Outcome) -> (&AtomicU64, &'static str) {
        match outcome {
            Outcome::Delivered => (&self.delivered, "delivered"),
            Outcome::Retried => (&self.retried, "retried"),
            Outcome::GivenUp => (&self.given_up, "given_up"),
            Outcome::Refused => (&self.refused, "refused"),
        }
    }
}

impl Stats {
    /// Takes a sample once a period. Never ends.
    pub(crate) async fn look_on(&self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for seq in 1.. {
            ticks.tick().await;
            if seq % TURN == 0 {
                self.waits.turn();
            }
            self.queue.report_running();
            self.prometheus.run_upkeep();
            self.history.push(self.look(seq));
        }
    }

    /// Returns the present figures and the samples after `after`. Waits a few seconds if there are
    /// none yet.
    pub(crate) async fn show(&self, after: Option<u64>) -> (Look, Vec<Look>) {
        let looks = self.history.after(after).await;
        let seq = looks.last().map_or(0, |look| look.seq);
        (self.look(seq), looks)
    }

    fn look(&self, seq: u64) -> Look {
        let subscriptions = self.shares.subscriptions();
        // All under one lock: otherwise a key that changes its state in between would be missed.
        let (depth, parked, in_flight, delayed) = self.queue.as_shared().with(|session| {
            let ready = session.len();
            let groups = subscriptions.iter().filter_map(|id| session.group(id));
            let blocked = groups.filter(|group| group.blocked);
            let parked = blocked.map(|group| group.ready).sum::<usize>();
            let stats = session.stats();
            let depth = ready.saturating_sub(parked);
            (depth, parked, stats.active, stats.delayed)
        });
        Look {
            seq,
            depth,
            in_flight,
            delayed,
            parked,
            delivered: self.tally.counted(Outcome::Delivered),
            retries: self.tally.counted(Outcome::Retried),
            given_up: self.tally.counted(Outcome::GivenUp),
            refused: self.tally.counted(Outcome::Refused),
            wait_p99_ms: self.waits.p99().as_secs_f64() * 1000.0,
        }
    }
}

impl History {
    fn push(&self, look: Look) {
        let seq = look.seq;
        let mut looks = self.locked();
        if looks.len() == HISTORY_LEN {
            looks.pop_front();
        }
        looks.push_back(look);
        drop(looks);
        self.newest.send_replace(seq);
    }

    /// Ends all waits: there will be no more samples.
    pub(crate) fn end(&self) {
        self.newest.send_replace(u64::MAX);
    }

    /// Returns all samples, or those after one; then waits until there is one.
    async fn after(&self, after: Option<u64>) -> Vec<Look> {
        if let Some(after) = after {
            let mut newest = self.newest.subscribe();
            // After the wait the answer may be empty; the client asks again.
            let _ = timeout(WAIT_MAX, newest.wait_for(|newest| *newest > after)).await;
        }
        let after = after.unwrap_or(0);
        let looks = self.locked();
        looks
            .iter()
            .filter(|look| look.seq > after)
            .cloned()
            .collect()
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<Look>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(seq: u64) -> Look {
        Look {
            seq,
            depth: 0,
            in_flight: 0,
            delayed: 0,
            parked: 0,
            delivered: 0,
            retries: 0,
            given_up: 0,
            refused: 0,
            wait_p99_ms: 0.0,
        }
    }

    async fn seqs(history: &History, after: Option<u64>) -> Vec<u64> {
        let looks = history.after(after).await;
        looks.iter().map(|look| look.seq).collect()
    }

    #[tokio::test]
    async fn the_last_looks_are_kept() {
        let history = History::default();
        assert_eq!(seqs(&history, None).await, [0; 0]);
        let last = HISTORY_LEN as u64 + 7;
        for seq in 1..=last {
            history.push(look(seq));
        }
        let expected: Vec<u64> = (8..=last).collect();
        assert_eq!(seqs(&history, None).await, expected);
        assert_eq!(seqs(&history, Some(last - 2)).await, [last - 1, last]);
    }

    #[tokio::test]
    async fn a_reader_that_has_seen_all_waits_for_the_next() {
        let history = History::default();
        history.push(look(1));
        let wait = seqs(&history, Some(1));
        let push = async {
            tokio::task::yield_now().await;
            history.push(look(2));
        };
        let (seen, ()) = tokio::join!(wait, push);
        assert_eq!(seen, [2]);
        history.end();
        assert_eq!(seqs(&history, Some(2)).await, [0; 0]);
    }
}

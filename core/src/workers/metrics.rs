//! The metrics of workers through the `metrics` facade. Owns their names and units; keeps no
//! values.

use alloc::borrow::Cow;

use ::metrics::{
    Counter, Gauge, Histogram, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

use crate::action::Action;
use crate::failure::Failure;

use super::{RunEvent, Workers};

impl<K, E> Workers<'_, K, E> {
    /// Reports the runs under the names of Kubernetes' controller-runtime, so that a dashboard for
    /// its controllers also works here. Call this after
    /// [`concurrency`](Self::concurrency), and after the recorder is installed.
    ///
    /// Every metric has the label `controller`, which is this name.
    ///
    /// | name | |
    /// |---|---|
    /// | `controller_runtime_reconcile_total` | counter: runs, with the label `result` |
    /// | `controller_runtime_reconcile_errors_total` | counter: runs that failed |
    /// | `controller_runtime_terminal_reconcile_errors_total` | counter: keys given up |
    /// | `controller_runtime_reconcile_panics_total` | counter: runs that panicked |
    /// | `controller_runtime_reconcile_timeouts_total` | counter: runs stopped at their timeout |
    /// | `controller_runtime_reconcile_time_seconds` | histogram: how long a run took |
    /// | `controller_runtime_active_workers` | gauge: runs that go on |
    /// | `controller_runtime_max_concurrent_reconciles` | gauge: workers, as a run last began |
    /// | `requeue_overdue_total` | counter: runs of threads that took longer than their timeout |
    ///
    /// The results are controller-runtime's: `success` (also of a run that is released), `requeue`
    /// (asked for a retry, which is no error there), `requeue_after` (after a delay) and `error`.
    /// controller-runtime does not have the last metric.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// let workers: Workers<'_, String, String> = Workers::new(4).metrics("webhooks");
    /// # let _ = workers;
    /// ```
    pub fn metrics(self, name: impl Into<Cow<'static, str>>) -> Self {
        let runs = NamedRuns::new(name.into().into());
        let workers = self.wanted().clone();
        runs.workers.set(workers.get() as f64);
        self.on_event(move |_, event| {
            if matches!(event, RunEvent::Started(_)) {
                runs.workers.set(workers.get() as f64);
            }
            runs.record(event);
        })
    }
}

/// The metrics of one `run`.
struct NamedRuns {
    success: Counter,
    requeue: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    given_up: Counter,
    panics: Counter,
    timeouts: Counter,
    overdue: Counter,
    time: Histogram,
    active: Gauge,
    workers: Gauge,
}

impl NamedRuns {
    fn new(name: SharedString) -> Self {
        describe();
        let name = || name.clone();
        let result = |result: &'static str| {
            counter!(
                "controller_runtime_reconcile_total",
                "controller" => name(), "result" => result
            )
        };
        let count = |metric: &'static str| counter!(metric, "controller" => name());
        Self {
            success: result("success"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: count("controller_runtime_reconcile_errors_total"),
            given_up: count("controller_runtime_terminal_reconcile_errors_total"),
            panics: count("controller_runtime_reconcile_panics_total"),
            timeouts: count("controller_runtime_reconcile_timeouts_total"),
            overdue: count("requeue_overdue_total"),
            time: histogram!("controller_runtime_reconcile_time_seconds", "controller" => name()),
            active: gauge!("controller_runtime_active_workers", "controller" => name()),
            workers: gauge!("controller_runtime_max_concurrent_reconciles", "controller" => name()),
        }
    }

    fn record<E>(&self, event: &RunEvent<'_, E>) {
        match event {
            RunEvent::Started(_) => self.active.increment(1.0),
            RunEvent::Overdue(_) => self.overdue.increment(1),
            RunEvent::Aborted => self.active.decrement(1.0),
            RunEvent::Finished { action, took } => {
                self.active.decrement(1.0);
                self.time.record(*took);
                match action {
                    Action::RequeueAfter(_)
                    | Action::Snooze(_)
                    | Action::Suspend(_)
                    | Action::Poll(..) => self.requeue_after.increment(1),
                    _ => self.success.increment(1),
                }
            }
            RunEvent::Failed {
                failure,
                is_given_up,
                took,
                ..
            } => {
                self.active.decrement(1.0);
                self.time.record(*took);
                self.record_failure(failure);
                self.given_up.increment(u64::from(*is_given_up));
            }
        }
    }

    fn record_failure<E>(&self, failure: &Failure<E>) {
        if matches!(failure, Failure::Retry) {
            self.requeue.increment(1);
            return;
        }
        self.error.increment(1);
        self.errors.increment(1);
        match failure {
            Failure::Panic(_) => self.panics.increment(1),
            Failure::TimedOut(_) => self.timeouts.increment(1),
            Failure::Error(_) | Failure::Retry | Failure::GiveUp => {}
        }
    }
}

fn describe() {
    let counters = [
        ("controller_runtime_reconcile_total", "Runs, by result"),
        (
            "controller_runtime_reconcile_errors_total",
            "Runs that failed",
        ),
        (
            "controller_runtime_terminal_reconcile_errors_total",
            "Keys that were given up",
        ),
        (
            "controller_runtime_reconcile_panics_total",
            "Runs that panicked",
        ),
        (
            "controller_runtime_reconcile_timeouts_total",
            "Runs that were stopped at their timeout",
        ),
        (
            "requeue_overdue_total",
            "Runs of threads that took longer than their timeout",
        ),
    ];
    for (name, text) in counters {
        describe_counter!(name, text);
    }
    describe_histogram!(
        "controller_runtime_reconcile_time_seconds",
        Unit::Seconds,
        "How long a run took"
    );
    describe_gauge!("controller_runtime_active_workers", "Runs that go on");
    describe_gauge!(
        "controller_runtime_max_concurrent_reconciles",
        "Workers, as a run last began"
    );
}

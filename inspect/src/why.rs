//! Why keys do not run, in sentences that a person can act on. Owns the words; the facts come from
//! the queue, its groups and the history of its runs.

use std::time::Duration;

use requeue_core::{Instant, Why};

use crate::text::{Shown, Span, count};
use crate::view::{GroupView, QueueView, RunView};

/// A run hangs, as far as one can tell, if it takes this much longer than half of all runs take.
const HANGS_TIMES: u32 = 20;

/// But no run that is younger than this.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// What is known of one key beside the queue's answer.
#[derive(Default)]
pub(crate) struct Facts {
    /// Its run: for how long, and which attempt.
    pub(crate) run: Option<(Duration, u32)>,
    pub(crate) group: Option<GroupView>,
    pub(crate) last_error: Option<String>,
}

/// Why a key does not run: one sentence or two.
pub(crate) fn sentence(why: Why, now: Instant, queue: &QueueView, facts: &Facts) -> String {
    let left = |until: Instant| match until.is_never() {
        true => "for ever".to_owned(),
        false => format!("for {} more", Span(until.saturating_since(now))),
    };
    let group = || match &facts.group {
        Some(group) => format!("Its group `{}`", Shown(&group.name)),
        None => "Its group".to_owned(),
    };
    match why {
        Why::Running { again, since } => {
            let told = since.map(|since| (now.saturating_since(since), 1));
            let mut text = match facts.run.or(told) {
                Some((age, 1)) => format!("It runs, for {} now", Span(age)),
                Some((age, attempt)) => {
                    format!("It runs, for {} now: attempt {attempt}", Span(age))
                }
                None => "It runs".to_owned(),
            };
            if again {
                text += ", and will run again: it was added meanwhile";
            }
            text += ".";
            if let Some((age, _)) = facts.run.or(told)
                && let Some(typical) = hangs(age, queue)
            {
                text += &format!(" {}", longer_than_others(typical));
            }
            text
        }
        Why::Ready => no_worker(queue)
            .map(|why| format!("It waits for a worker. {why}"))
            .unwrap_or_else(|| match queue.ready {
                0 | 1 => "It waits for a worker, and is next.".to_owned(),
                ready => format!("It waits for a worker, among {ready} ready keys."),
            }),
        Why::Delayed { until } => format!("It was added for later, and waits {}.", left(until)),
        Why::BackingOff { until, failures } => {
            let failed = count(failures as usize, "failure");
            let text = format!("It backs off after {failed}, {}.", left(until));
            with_error(text, facts)
        }
        Why::Debounced { until } => {
            format!(
                "It was added with a debounce: it runs once the adds stop, in {} at the earliest.",
                Span(until.saturating_since(now))
            )
        }
        Why::Suspended { until, again } => {
            let text = format!("It is suspended until it is resumed, {}", left(until));
            let again = if again {
                ", and runs then."
            } else {
                " at most."
            };
            text + again
        }
        Why::Held { until, failures: 0 } => {
            format!("It cools down after its run, {}.", left(until))
        }
        Why::Held { until, failures } => {
            let failed = count(failures as usize, "failure");
            let text = format!(
                "It is held after {failed}, {}: an add does not start it.",
                left(until)
            );
            with_error(text, facts)
        }
        Why::Paused => "The queue is paused: no key runs until it is unpaused.".to_owned(),
        Why::GroupPaused => format!(
            "{} is paused: none of its keys runs until it is unpaused.",
            group()
        ),
        Why::GroupAtLimit => match facts
            .group
            .as_ref()
            .map(|group| (group, group.limits.max_active))
        {
            Some((own, Some(most))) => format!(
                "{} is at its limit: {} of at most {most} of its keys run.",
                group(),
                own.active
            ),
            _ => format!("{} is at its limit of active keys.", group()),
        },
        Why::GroupNoToken { until } => format!("{} has used its rate, {}.", group(), left(until)),
        Why::NoToken { until } => format!("The queue has used its rate of runs, {}.", left(until)),
        Why::Closed => "The queue is shut down.".to_owned(),
        Why::Idle => with_error(
            "Nothing asks for a run: it was not added since its last run.".to_owned(),
            facts,
        ),
        other => format!("{other}."),
    }
}

fn with_error(text: String, facts: &Facts) -> String {
    match &facts.last_error {
        Some(error) => format!("{text} It last failed with: {}", Shown(error)),
        None => text,
    }
}

/// What keeps keys from running, the most important sentence first.
pub(crate) fn findings(queue: &QueueView, runs: &[RunView], groups: &[GroupView]) -> Vec<String> {
    let mut found = Vec::new();
    if queue.shutting_down {
        let left = count(queue.ready + queue.active, "key");
        found.push(format!("The queue is shutting down: {left} left to run."));
    }
    if queue.paused {
        let ready = count(queue.ready, "ready key");
        found.push(format!(
            "The queue is paused: {ready} will not run until it is unpaused."
        ));
    }
    for run in runs.iter().take(3) {
        let age = Duration::from_millis(run.running_ms);
        if let Some(typical) = hangs(age, queue) {
            found.push(format!(
                "The run of `{}` seems to hang: it has been going on for {}. {}",
                Shown(&run.id),
                Span(age),
                longer_than_others(typical)
            ));
        }
    }
    let blocked = groups.iter().filter(|group| group.blocked);
    let blocked: usize = blocked.map(|group| group.ready).sum();
    if queue.ready > blocked && !queue.paused {
        found.extend(no_worker(queue));
    }
    for group in groups
        .iter()
        .filter(|group| group.blocked && group.ready > 0)
        .take(5)
    {
        let (name, waiting) = (Shown(&group.name), count(group.ready, "key"));
        let why = match group.limits.max_active {
            _ if group.paused => "is paused".to_owned(),
            Some(most) if group.active >= most => {
                format!("is at its limit of {most} active")
            }
            _ => "has used its rate".to_owned(),
        };
        found.push(format!(
            "The group `{name}` {why}: {waiting} of it cannot run."
        ));
    }
    if queue.max_keys.is_some_and(|most| queue.total >= most) {
        let total = queue.total;
        found.push(format!(
            "The queue is full: it holds {total} keys, and refuses new ones."
        ));
    }
    if queue.failures > 0 && queue.ready == 0 && queue.active == 0 && queue.delayed > 0 {
        let waiting = count(queue.delayed, "key");
        let next = match queue.next_deadline_ms {
            Some(ms) => format!(
                ", the next of them for {} more",
                Span(Duration::from_millis(ms))
            ),
            None => String::new(),
        };
        found.push(format!(
            "Nothing runs: {waiting} delayed or backing off{next}."
        ));
    }
    found
}

/// Why no worker takes a ready key, if that is the reason.
fn no_worker(queue: &QueueView) -> Option<String> {
    let workers = queue.workers?;
    if workers == 0 {
        return Some("There are no workers: their number is set to 0.".to_owned());
    }
    if queue.active < workers {
        let has_begun = queue.runs > 0 || queue.active > 0;
        return (!has_begun)
            .then(|| "No run has begun yet: the workers are not started.".to_owned());
    }
    let ready = count(queue.ready, "ready key");
    Some(match workers {
        1 => format!(
            "No worker is free: the only worker is busy, and there is a backlog of {ready}."
        ),
        _ => {
            format!("No worker is free: all {workers} are busy, and there is a backlog of {ready}.")
        }
    })
}

/// How long half of the runs take at most, if a run of this age seems to hang. Without runs that
/// have ended, nothing is known, and the age alone decides.
fn hangs(age: Duration, queue: &QueueView) -> Option<Option<Duration>> {
    let typical = queue.run_times.quantile(0.5);
    let longest = typical.map_or(HANGS_AFTER * 12, |typical| typical * HANGS_TIMES);
    (age >= longest.max(HANGS_AFTER)).then_some(typical)
}

fn longer_than_others(typical: Option<Duration>) -> String {
    match typical {
        Some(typical) => format!("Half of all runs take {} or less.", Span(typical)),
        None => "No run has ended so far.".to_owned(),
    }
}

//! What the queue holds, key by key: what runs, since when, and what waits until when.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use requeue::{Instant, KeyState};
use serde::Serialize;

use crate::dispatch::Queue;
use crate::key::Key;

/// How many keys are looked at. A queue may hold a million.
const LOOK_MAX: usize = 200_000;

/// How many ready keys among them are kept: a receiver may be owed everything.
const READY_MAX: usize = 10_000;

/// Some of the keys, those that run longest and are due soonest first.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    /// How many keys the queue has.
    total: usize,
    keys: Vec<ShownKey>,
}

#[derive(Debug, Serialize)]
struct ShownKey {
    subscription: Arc<str>,
    object: Arc<str>,
    state: State,
    /// For how long it has been active.
    running_ms: Option<u64>,
    /// In how long its delay is over.
    due_in_ms: Option<u64>,
    failures: u32,
}

/// In the order in which keys are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Active,
    /// Active, and has changed meanwhile: it is delivered once more.
    Dirty,
    Ready,
    /// Ready, but its group may not start a run now.
    Parked,
    Delayed,
    /// Nothing is to be done, but its failures count if it changes.
    Failed,
}

/// Returns up to `limit` of the keys.
pub(crate) fn snapshot(queue: &Queue, limit: usize) -> Shown {
    let now = queue.now();
    let mut ready = 0;
    let keys = queue.snapshot().take(LOOK_MAX).filter(|(_, state)| {
        ready += usize::from(state.ready);
        !state.ready || ready <= READY_MAX
    });
    let mut blocked = HashMap::new();
    let mut keys: Vec<ShownKey> = keys.map(|(key, state)| show(key, state, now)).collect();
    for key in keys.iter_mut().filter(|key| key.state == State::Ready) {
        let blocked = blocked.entry(Arc::clone(&key.subscription));
        let is_blocked = blocked.or_insert_with_key(|name| {
            let group = queue.group(name);
            group.is_some_and(|group| group.blocked)
        });
        if *is_blocked {
            key.state = State::Parked;
        }
    }
    keys.sort_by_key(|key| {
        let longest_first = u64::MAX - key.running_ms.unwrap_or(0);
        (key.state, longest_first, key.due_in_ms)
    });
    keys.truncate(limit);
    let total = queue.stats().total;
    Shown { total, keys }
}

fn show(key: Key, known: KeyState, now: Instant) -> ShownKey {
    let state = match known {
        state if state.dirty => State::Dirty,
        state if state.active => State::Active,
        state if state.ready => State::Ready,
        state if state.due.is_some() => State::Delayed,
        _ => State::Failed,
    };
    let running = known.active_since.map(|since| now.saturating_since(since));
    let wait = known.due.map(|due| match due {
        Instant::NEVER => Duration::MAX,
        due => due.saturating_since(now),
    });
    ShownKey {
        subscription: key.subscription,
        object: key.object,
        state,
        running_ms: running.map(millis),
        due_in_ms: wait.map(millis),
        failures: known.failures,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use requeue::metrics::Times;
    use requeue::tokio::{Action, WorkQueue};
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_runs_longest_and_is_due_soonest_comes_first() {
        let pause = Duration::from_secs(2);
        let queue: Queue = WorkQueue::builder()
            .backoff(pause, pause * 8)
            .no_retry_rate()
            .report_to(Times)
            .build_with_groups(Key::group);
        let key = |object: &str| Key::new("s", object);
        queue.add_after(key("later"), Duration::MAX).unwrap();
        queue.add(key("failed")).unwrap();
        queue.get().await.unwrap().finish(Action::Retry);
        queue.add(key("old")).unwrap();
        let old = queue.get().await.unwrap();
        queue.add(key("old")).unwrap();
        advance(Duration::from_secs(1)).await;
        queue.add(key("young")).unwrap();
        let young = queue.get().await.unwrap();
        queue.add(key("ready")).unwrap();
        queue.add(Key::new("p", "parked")).unwrap();
        queue.pause_group("p".into()).unwrap();
        advance(Duration::from_millis(500)).await;

        let shown = serde_json::to_value(snapshot(&queue, 100)).unwrap();
        let line = |key: &serde_json::Value| {
            ["object", "state", "running_ms", "due_in_ms", "failures"]
                .map(|field| key[field].to_string().replace('"', ""))
                .join(" ")
        };
        let lines: Vec<String> = shown["keys"].as_array().unwrap().iter().map(line).collect();
        let never = u64::MAX;
        let expected = [
            String::from("young active 500 null 0"),
            String::from("old dirty 1500 null 0"),
            String::from("ready ready null null 0"),
            String::from("parked parked null null 0"),
            String::from("failed delayed null 500 1"),
            format!("later delayed null {never} 0"),
        ];
        assert_eq!(lines, expected);
        assert_eq!(shown["total"], 6);
        assert_eq!(snapshot(&queue, 2).keys.len(), 2);
        young.success();
        old.success();
    }
}

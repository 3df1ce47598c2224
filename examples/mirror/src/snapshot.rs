//! The keys of the queue, for a user who asks what takes so long.

use std::time::Duration;

use requeue::{Instant, KeyState};

use crate::key::Key;
use crate::mirror::Queue;

/// How many keys are visited. A queue may hold a million.
const LOOK_MAX: usize = 10_000;

/// How many are named.
const LINES_MAX: usize = 20;

/// Returns a line for some of the keys, and one for the rest. Keys that have run longest or are due
/// soonest are first.
pub(crate) fn lines(queue: &Queue) -> Vec<String> {
    let now = queue.now();
    let entries = queue.snapshot().take(LOOK_MAX);
    let mut shown: Vec<_> = entries
        .filter_map(|(key, state)| show(&key, state, now))
        .collect();
    shown.sort();
    let rest = queue
        .stats()
        .total
        .saturating_sub(shown.len().min(LINES_MAX));
    let named = shown.into_iter().take(LINES_MAX);
    let mut lines: Vec<String> = named.map(|(_, line)| line).collect();
    lines.push(match rest {
        0 => String::from("that is all"),
        more => format!("and {more} more"),
    });
    lines
}

/// A line for a key, and its place among others. `None` if there is nothing to do for it.
fn show(key: &Key, state: KeyState, now: Instant) -> Option<((u8, Duration), String)> {
    let (place, mut line) = if state.active {
        let since = state.active_since.unwrap_or(now);
        let age = now.saturating_since(since);
        let place = (0, Duration::MAX.saturating_sub(age));
        (place, format!("active for {age:.1?}: {key}"))
    } else if state.ready {
        ((1, Duration::ZERO), format!("ready: {key}"))
    } else {
        let wait = state.due?.saturating_since(now);
        ((2, wait), format!("due in {wait:.1?}: {key}"))
    };
    if state.dirty {
        line += ", and once more";
    }
    match state.failures {
        0 => {}
        1 => line += ", failed once",
        times => line += &format!(", failed {times} times"),
    }
    Some((place, line))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use requeue::metrics::Times;
    use requeue::std::{Action, ManualClock, WorkQueue};

    use super::*;

    #[test]
    fn what_runs_longest_and_is_due_soonest_comes_first() {
        let clock = ManualClock::new();
        let pause = Duration::from_secs(2);
        let queue: Queue = WorkQueue::builder()
            .backoff(pause, pause * 8)
            .no_retry_rate()
            .report_to(Times)
            .clock(clock.clone())
            .build();
        let key = |path: &str| Key::entry(Path::new(path));
        let fail = |path| {
            queue.add(key(path)).unwrap();
            queue.get().unwrap().finish(Action::Retry);
        };
        fail("failed");
        queue.add(key("old")).unwrap();
        let old = queue.get().unwrap();
        queue.add(key("old")).unwrap();
        clock.advance(Duration::from_secs(1));
        queue.add(key("young")).unwrap();
        let young = queue.get().unwrap();
        queue.add(key("ready")).unwrap();
        clock.advance(Duration::from_millis(500));
        let expected = [
            "active for 1.5s: old, and once more",
            "active for 500.0ms: young",
            "ready: ready",
            "due in 500.0ms: failed, failed once",
            "that is all",
        ];
        assert_eq!(lines(&queue), expected);
        young.success();
        old.success();

        for more in 0..30 {
            queue.add(key(&more.to_string())).unwrap();
        }
        let lines = lines(&queue);
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines.last().map(String::as_str), Some("and 13 more"));
    }
}

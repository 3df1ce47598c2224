//! Alarms run first, but a key that has waited for over a minute runs before them.
//!
//! ```text
//! now: door-1 (level 1)
//! a minute later: report (level 0)
//! a minute later: door-2 (level 1)
//! ```

use std::time::Duration;

use requeue::AddOptions;
use requeue::std::{ManualClock, WorkQueue};

const ALARM: AddOptions = AddOptions {
    priority: Some(1),
    ..AddOptions::new()
};

fn main() {
    let clock = ManualClock::new();
    // Without aging, a level that is never empty starves the levels below it.
    let builder = WorkQueue::<&str>::builder().levels::<2>().aging();
    let queue = builder.clock(clock.clone()).build();
    queue.age_after(Duration::from_secs(60));

    let _ = queue.add("report");
    let _ = queue.add_with("door-1", ALARM);
    let work = |when: &str| {
        if let Some(run) = queue.try_get() {
            println!("{when}: {} (level {})", *run, run.priority());
            run.success();
        }
    };
    work("now");

    clock.advance(Duration::from_secs(61));
    let _ = queue.add_with("door-2", ALARM);
    work("a minute later");
    work("a minute later");
}

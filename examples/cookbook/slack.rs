//! Reads twenty sensors of a board, with delays from 0.1 s to a minute. Prints how often the board
//! wakes up in an hour if each delay may be 0, 10, 20 or 50 % longer.
//!
//! ```text
//! 0 %: 125717 wakes
//! 10 %: 70830 wakes
//! 20 %: 55818 wakes
//! 50 %: 24480 wakes
//! ```

use std::time::Duration;

use requeue::bare::{Action, ManualClock, Queue, WorkQueue};
use requeue::limiter::default_item_based;
use requeue::priority::WithSlack;

fn pause(sensor: u8) -> Duration {
    Duration::from_secs_f64(0.1 * 600_f64.powf(f64::from(sensor) / 19.0))
}

fn wakes(percent: u8) -> u32 {
    let board = ManualClock::new();
    // A queue of a fixed size uses slack if its type has `WithSlack`.
    let queue: WorkQueue<_, u8, 20, WithSlack> =
        WorkQueue::from_queue(Queue::new(default_item_based()), &board);
    let _ = queue.add_many(0..20, |_| {});
    let (mut wakes, mut last) = (0, Duration::ZERO);
    let _ = queue.run(|sensor| {
        let now = board.elapsed();
        wakes += u32::from(now > last);
        last = now;
        if now > Duration::from_secs(3600) {
            queue.shut_down();
        }
        Action::RequeueAfter(pause(*sensor)).with_slack(percent)
    });
    wakes
}

fn main() {
    for percent in [0, 10, 20, 50] {
        println!("{percent} %: {} wakes", wakes(percent));
    }
}

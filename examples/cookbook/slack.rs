//! Twenty sensors are read every 0.1 s to every minute, and a reading may come a little later: how
//! often the board wakes up in an hour.
//!
//! ```text
//! exact:
//! ```

use std::time::Duration;

use requeue::binding::{Getter, Next};
use requeue::limiter::NoLimit;
use requeue::priority::WithPolicy;
use requeue::storage::Fixed;
use requeue::{Action, Instant, Queue};

fn period(sensor: u8) -> Duration {
    Duration::from_secs_f64(0.1 * 600_f64.powf(f64::from(sensor) / 19.0))
}

/// On a clock that a loop moves as a board's alarm would.
fn wakes(slack: u8) -> u32 {
    let mut queue: Queue<u8, WithPolicy, NoLimit, Fixed<20>> = Queue::new(NoLimit);
    let (mut now, mut wakes, mut getter) = (Instant::EPOCH, 0, Getter::new());
    let _ = queue.at(now).add_many(0..20, |_| {});
    while now < Instant::EPOCH + Duration::from_secs(3600) {
        match queue.at(now).poll_get(&mut getter) {
            Next::Work(sensor) => {
                let again = Action::RequeueAfter(period(sensor.key)).with_slack(slack);
                queue.at(now).finish(sensor.ticket, again);
            }
            Next::Wait { until } => (now, wakes) = (until.unwrap_or(Instant::NEVER), wakes + 1),
            Next::Closed => break,
        }
    }
    wakes
}

fn main() {
    for (slack, name) in [
        (0, "exact"),
        (10, "10 % later"),
        (20, "20 % later"),
        (50, "50 % later"),
    ] {
        println!("{name}: {} wakes", wakes(slack));
    }
}

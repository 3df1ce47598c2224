//! A limiter replaces the figures of client-go's, in whichever order both are given.

use std::time::Duration;

use requeue::std::WorkQueue;
use requeue::std::limiter::NoLimit;

fn main() {
    let (base, max) = (Duration::from_millis(1), Duration::from_secs(1));
    let _ = WorkQueue::<String>::builder().backoff(base, max).limiter(NoLimit);
    let _ = WorkQueue::<String>::builder().limiter(NoLimit).retry_rate(2.0, 1);
}

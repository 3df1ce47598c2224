//! The delays of each limiter after a number of failures. The arguments choose the numbers.
//!
//! ```text
//! failure                   1        2        3        4        5       10       15       20
//! default_controller      5ms     10ms     20ms     40ms     80ms    2.56s   81.92s    1000s
//! default_item_based      1ms      2ms      4ms      8ms     16ms    512ms  16.384s 524.288s
//! WithMaxWait, 20 s       5ms     10ms     20ms     40ms     80ms    2.56s      20s      20s
//! FastSlow                 1s       1s       1s      60s      60s      60s      60s      60s
//! TokenBucket             0ns      0ns      0ns       2s       2s       2s       2s       2s
//! NoLimit                 0ns      0ns      0ns      0ns      0ns      0ns      0ns      0ns
//! ```

use std::env;
use std::time::Duration;

use requeue::Instant;
use requeue::limiter::{
    FastSlow, NoLimit, RateLimiter, TokenBucket, WithMaxWait, default_controller,
    default_item_based,
};

fn show<L: RateLimiter>(name: &str, failures: &[u32], mut limiter: L) {
    let (mut record, mut now) = (L::Record::default(), Instant::EPOCH);
    print!("{name:18}");
    for failure in 1..=20 {
        let delay = limiter.when(&mut record, now);
        now = now + delay; // It fails again as soon as it may run.
        if failures.contains(&failure) {
            print!(" {:>8}", format!("{delay:?}"));
        }
    }
    println!();
}

fn main() {
    let asked = env::args().filter_map(|word| word.parse().ok());
    let failures = Some(asked.collect()).filter(|asked: &Vec<u32>| !asked.is_empty());
    let failures = &failures.unwrap_or(vec![1, 2, 3, 4, 5, 10, 15, 20]);
    let names = failures.iter().map(|failure| format!(" {failure:>8}"));
    println!("failure           {}", names.collect::<String>());
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let at_most = WithMaxWait::new(default_controller(), 20 * second);
    show("default_controller", failures, default_controller());
    show("default_item_based", failures, default_item_based());
    show("WithMaxWait, 20 s", failures, at_most);
    let fast_slow = FastSlow::new(second, minute, 3);
    show("FastSlow", failures, fast_slow);
    show("TokenBucket", failures, TokenBucket::new(0.5, 3));
    show("NoLimit", failures, NoLimit);
}

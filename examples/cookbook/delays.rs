//! How long a key waits after its first, second and further failures, by limiter.
//!
//! ```text
//! failure               1         2         3         4         5        10        15        20
//! controller          5ms      10ms      20ms      40ms      80ms     2.56s    81.92s     1000s
//! item based          1ms       2ms       4ms       8ms      16ms     512ms   16.384s  524.288s
//! at most 20 s        5ms      10ms      20ms      40ms      80ms     2.56s       20s       20s
//! fast, slow           1s        1s        1s       60s       60s       60s       60s       60s
//! bucket              0ns       0ns       0ns        2s        2s        2s        2s        2s
//! none                0ns       0ns       0ns       0ns       0ns       0ns       0ns       0ns
//! ```

use std::time::Duration;

use requeue::{
    Bucket, Instant, ItemFastSlow, NoLimit, RateLimiter, WithMaxWait, default_controller,
    default_item_based,
};

fn show<L: RateLimiter>(name: &str, mut limiter: L) {
    let (mut record, mut now) = (L::Record::default(), Instant::EPOCH);
    print!("{name:13}");
    for failure in 1..=20 {
        let delay = limiter.when(&mut record, now);
        now = now + delay; // It fails again as soon as it may run.
        if failure < 6 || failure % 5 == 0 {
            print!(" {:>9}", format!("{delay:?}"));
        }
    }
    println!();
}

fn main() {
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    print!("failure      ");
    for failure in [1, 2, 3, 4, 5, 10, 15, 20] {
        print!(" {failure:>9}");
    }
    println!();
    show("controller", default_controller());
    show("item based", default_item_based());
    show(
        "at most 20 s",
        WithMaxWait::new(default_controller(), 20 * second),
    );
    show("fast, slow", ItemFastSlow::new(second, minute, 3));
    show("bucket", Bucket::new(0.5, 3));
    show("none", NoLimit);
}

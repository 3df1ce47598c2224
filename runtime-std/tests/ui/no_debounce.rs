use std::time::Duration;

use requeue_std::WorkQueue;
use requeue_std::limiter::DefaultController;
use requeue_std::priority::Plain;
use requeue_std::storage::Fixed;

fn changed(queue: &WorkQueue<&str, Plain, DefaultController, Fixed<8>>) {
    let second = Duration::from_secs(1);
    let _ = queue.add_debounced("etc/hosts", second, second);
}

fn main() {}

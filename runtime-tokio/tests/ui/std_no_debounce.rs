use std::time::Duration;

use requeue::std::WorkQueue;
use requeue::std::limiter::DefaultController;
use requeue::std::priority::Plain;
use requeue::std::storage::Fixed;

fn changed(queue: &WorkQueue<&str, Plain, DefaultController, Fixed<8>>) {
    let second = Duration::from_secs(1);
    let _ = queue.add_debounced("etc/hosts", second, second);
}

fn main() {}

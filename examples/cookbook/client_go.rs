//! `processNextWorkItem` of a controller in Go, line by line.
//!
//! ```text
//! syncing default/web
//! syncing default/cron
//! default/cron: no such image
//! syncing default/cron
//! default/cron is given up: no such image
//! ```

use requeue::std::WorkQueue;

const MAX_RETRIES: u32 = 1;

fn main() {
    let queue = WorkQueue::new(); // workqueue.NewTypedRateLimitingQueue(…)
    let _ = queue.add("default/web"); // queue.Add(key)
    let _ = queue.add("default/cron");
    while process_next_work_item(&queue) {
        if queue.is_settled() {
            queue.shut_down(); // queue.ShutDown()
        }
    }
}

fn process_next_work_item(queue: &WorkQueue<&'static str>) -> bool {
    // key, quit := queue.Get(); if quit { return false }; defer queue.Done(key)
    let Ok(key) = queue.get() else { return false };
    match sync(*key) {
        Ok(()) => key.success(), // queue.Forget(key)
        Err(error) if key.failures() < MAX_RETRIES => {
            println!("{}: {error}", *key); // queue.NumRequeues(key) < maxRetries
            key.retry() // queue.AddRateLimited(key)
        }
        Err(error) => {
            println!("{} is given up: {error}", *key);
            key.give_up() // queue.Forget(key); utilruntime.HandleError(err)
        }
    };
    true
}

fn sync(key: &str) -> Result<(), &'static str> {
    println!("syncing {key}");
    (key != "default/cron").then_some(()).ok_or("no such image")
}

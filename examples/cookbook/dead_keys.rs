//! After three failures a key is given up. It stays in a list, from which you can retry it.
//!
//! ```text
//! node-7, attempt 1
//! node-7, attempt 2
//! node-7, attempt 3
//! dead: ["node-7: no route"]
//! node-7, attempt 1
//! dead: []
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use requeue::std::{Action, DeadKeys, RunContext, WorkQueue, Workers};

fn main() -> std::io::Result<()> {
    let dead = DeadKeys::new(1000, |key, why| eprintln!("{key} is forgotten: {why}"));
    let (queue, has_route) = (WorkQueue::new(), AtomicBool::new(false));
    let reconcile = |node: &String, run: RunContext| {
        println!("{node}, attempt {}", run.attempt);
        let is_up = has_route.load(Ordering::Relaxed);
        is_up.then_some(Action::Success).ok_or("no route")
    };
    let workers = Workers::new(1)
        .max_retries(2)
        .on_give_up(|key: &String, failure| {
            dead.insert(key.clone(), failure.to_string());
        });

    std::thread::scope(|scope| {
        let service = scope.spawn(|| queue.run_with(workers, reconcile));
        let _ = queue.add(String::from("node-7"));
        queue.wait_settled();
        println!(
            "dead: {:?}",
            dead.map(10, |key, why| format!("{key}: {why}"))
        );

        has_route.store(true, Ordering::Relaxed);
        let _ = dead.retry("node-7", &queue);
        queue.wait_settled();
        println!("dead: {:?}", dead.map(10, |key, _| key.clone()));
        queue.shut_down();
        service.join().unwrap_or_else(|_| Ok(Vec::new())).map(drop)
    })
}

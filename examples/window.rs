//! A queue to look at, at `http://127.0.0.1:8181/`: two tenants, one of them with a backlog and a
//! limit; a key that always fails; one that is debounced; one whose run hangs. It ends when you
//! press enter.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use requeue::metrics::Times;
use requeue::std::{DeadKeys, GroupLimits, WorkQueue, Workers};
use requeue_inspect::{Inspector, Registry};

fn main() -> io::Result<()> {
    let seconds = Duration::from_secs;
    let tenant = |key: &String| key.split('/').next().unwrap_or_default().to_owned();
    let queue = WorkQueue::builder()
        .backoff(Duration::from_millis(100), seconds(60))
        .report_to(Times)
        .build_with_groups(tenant);
    let _ = queue.limit_group("acme".to_owned(), GroupLimits::new().max_active(2));

    let dead = DeadKeys::new(100, |_, _| {});
    let orders = Inspector::new("orders", &queue)
        .with_groups()
        .with_dead_keys(&dead);
    let graveyard = dead.clone();
    let workers = orders
        .watch(Workers::new(4).drain_timeout(Duration::ZERO))
        .give_up_if(|_, error: &String| error.contains("no such order"))
        .on_give_up(move |key: &String, failure| {
            let _ = graveyard.insert(key.clone(), failure.to_string());
        });

    let address = SocketAddr::from(([127, 0, 0, 1], 8181));
    let window = Registry::new()
        .with(orders)
        .allow_control()
        .listen(address)?;
    println!(
        "http://{}/ shows the queue. Press enter to stop.",
        window.address()
    );

    let keys = (1..=400).map(|n| format!("acme/order-{n}"));
    let _ = queue.add_many(keys.chain((1..=5).map(|n| format!("zeta/order-{n}"))));
    for key in ["zeta/flaky", "zeta/lost", "zeta/hangs"] {
        let _ = queue.add(key.to_owned());
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            queue.run(workers, |key: &String| match &**key {
                "zeta/flaky" => Err("the shop does not answer".to_owned()),
                "zeta/lost" => Err("no such order".to_owned()),
                "zeta/hangs" => {
                    while !queue.is_shutting_down() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    Ok(())
                }
                _ => {
                    std::thread::sleep(Duration::from_millis(250));
                    Ok(())
                }
            })
        });
        scope.spawn(|| {
            for n in 0.. {
                // A burst of changes, of which one run comes; and the usual traffic.
                let _ = queue.add_debounced("zeta/typed".to_owned(), seconds(2), seconds(10));
                let added = queue.add(format!("zeta/order-{}", n % 50));
                if added.is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let read = io::stdin().read_line(&mut String::new());
        queue.shut_down();
        read.map(drop)
    })
}

//! The memory that the window takes: of a queue with many keys, groups and dead keys, and for
//! readers that do not read. One test, because it counts what the whole program allocates.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::fmt::{self, Display};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::serve::Listener;
use http_body_util::BodyExt;
use peak_alloc::PeakAlloc;
use requeue::limiter::NoLimit;
use requeue::tokio::{DeadKeys, WorkQueue, Workers};
use requeue_inspect::{Inspector, Registry};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tower::ServiceExt;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const KEYS: u32 = 200_000;
const GROUPS: u32 = 20_000;
/// As many as the window serves at once.
const READERS: usize = 64;
const KB: usize = 1024;

/// A key that allocates nothing. The first have long ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Order(u32);

impl Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..2_000 => write!(f, "{:0>10000}", self.0),
            order => write!(f, "{order}"),
        }
    }
}

/// How much more memory was in use at once while this was done.
async fn peak(done: impl Future<Output = ()>) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    done.await;
    HEAP.peak_usage().saturating_sub(before)
}

async fn get(app: &Router, path: &str) -> usize {
    let request = Request::get(path).header("host", "localhost");
    let request = request.body(Body::empty()).unwrap();
    let answer = app.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    let mut body = answer.into_body();
    let mut length = 0;
    while let Some(part) = body.frame().await {
        length += part.unwrap().into_data().unwrap().len();
    }
    length
}

/// Connections that exist in memory alone.
struct Duplexes(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Duplexes {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_takes_bounded_memory() {
    let queue = WorkQueue::builder()
        .limiter(NoLimit)
        .build_with_groups(|order: &Order| order.0 % GROUPS);
    assert!(queue.add_many((0..KEYS).map(Order)).rejected.is_empty());
    let dead = DeadKeys::new(10_000, |_, _| {});
    for order in 0..10_000 {
        dead.insert(Order(order), "no such order");
    }
    let orders = Inspector::new("orders", &queue)
        .with_groups()
        .with_dead_keys(&dead);
    // Ends of runs to show, with errors as long as they may be.
    let workers = orders.watch(Workers::new(1).max_retries(0).on_error(|_, _, _| {}));
    let running = tokio::spawn(queue.run(workers, |order: Order| async move {
        match order.0 {
            0..500 => Err::<(), String>("x".repeat(10_000)),
            500..1_000 => Ok(()),
            _ => std::future::pending().await,
        }
    }));
    sleep(Duration::from_secs(1)).await;
    let app = Registry::new().with(orders).allow_control().router();

    // What each takes at once, and not more with more keys, groups or dead keys.
    let last = format!("/queues/orders/key?id={}", KEYS - 1);
    for (path, most) in [
        ("/", 512),
        ("/queues/orders", 8_000),
        ("/queues/orders?search=99999", 5_000),
        ("/queues/orders?sort=failures&offset=9800&limit=200", 5_000),
        (
            "/queues/orders?sort=group&offset=1000000&limit=1000000",
            5_000,
        ),
        ("/queues/orders?group=7", 5_000),
        (&last, 512),
        (
            "/api/queues/orders/keys?sort=next&offset=1000000&limit=1000000",
            4_000,
        ),
        ("/api/queues/orders/groups?limit=1000000", 1_000),
        // A thousand ids of 10 KB.
        ("/api/queues/orders/dead?limit=1000000", 50_000),
        ("/api/queues/orders/ends?limit=1000000", 80_000),
    ] {
        let mut length = 0;
        let taken = peak(async { length = get(&app, path).await }).await / KB;
        println!("{taken:>8} KB for {:>6} KB of {path}", length / KB);
        assert!(taken < most, "{taken} KB for {path}");
    }

    // Clients that ask for events, and never read one: each has an event that it did not take.
    let page = get(&app, "/queues/orders").await;
    let (connect, connected) = mpsc::unbounded_channel();
    let server = axum::serve(Duplexes(connected), app.clone());
    tokio::spawn(async move { server.await });
    let mut readers = Vec::new();
    let asks = b"GET /queues/orders/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let taken = peak(async {
        for _ in 0..READERS {
            let (mut reader, other) = duplex(4 * KB);
            connect.send(other).unwrap();
            reader.write_all(asks).await.unwrap();
            readers.push(reader);
        }
        sleep(Duration::from_secs(30)).await;
    });
    let taken = taken.await;
    println!(
        "{:>8} KB for {READERS} readers that do not read",
        taken / KB
    );
    assert!(
        taken < READERS * page,
        "{taken} bytes for {READERS} readers"
    );
    let mut head = [0; 15];
    readers[0].read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    running.abort();
}

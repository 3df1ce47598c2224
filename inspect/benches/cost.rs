//! What a window costs a queue of a million keys: a page that is open, the first paint, a search, and workers that
//! are watched. Prints figures, and asserts nothing about them.
//!
//! A page that is open is measured in two ways that a busy machine does not disturb. Both are upper bounds:
//!
//! - The instructions of an update, under callgrind, as if the worker had to wait for all of them.
//! - The CPU time of the working thread in short rounds, in turn without and with a page that is updated many times a
//!   second.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use cpu_time::ThreadTime;
use http_body_util::BodyExt;
use requeue::limiter::NoLimit;
use requeue::priority::Groups;
use requeue::std::{WorkQueue, Workers};
use requeue_inspect::{Inspector, Registry};
use tower::ServiceExt;

#[allow(unreachable_pub, reason = "it is public where it lives")]
#[path = "../../examples/bench/src/callgrind.rs"]
mod callgrind;

const KEYS: u32 = 1_000_000;
const GROUPS: u32 = 1_000;
/// The pause between two updates in the rounds with a page. A page pauses for a second; with so much less, what an
/// update costs is not lost in what else the machine does.
const PAUSE: Duration = Duration::from_millis(10);
const ROUNDS: usize = 200;
const ROUND: Duration = Duration::from_millis(50);

type Queue = WorkQueue<u32, Groups<u32>, NoLimit>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, updates, cycles] = &*arguments
        && what == "count"
    {
        return count(updates.parse().unwrap(), cycles.parse().unwrap());
    }
    let queue = queue();
    let inspector = inspector(&queue);
    let window = Registry::new()
        .with(inspector.clone())
        .listen("127.0.0.1:0")
        .unwrap();
    let address = window.address();
    for (what, path) in [
        ("first paint", "/queues/keys"),
        ("the style, for scale", "/style.css"),
        ("a search through all keys", "/queues/keys?search=99999"),
        (
            "the keys in order of their failures",
            "/queues/keys?sort=failures",
        ),
    ] {
        let mut times: Vec<Duration> = (0..9).map(|_| get(address, path)).collect();
        times.sort();
        println!("{what}: {:?}, at most {:?}", times[4], times[8]);
    }
    drop(window);

    let nanos = rounds(&queue, inspector);
    instructions(nanos);

    let mut ratios = Vec::new();
    for _ in 0..9 {
        let (plain, watched) = (runs(false), runs(true));
        ratios.push(watched / plain);
        println!("a run that does nothing: {plain:.0} ns, {watched:.0} ns watched");
    }
    ratios.sort_by(f64::total_cmp);
    println!("watched: {:.2} times as long", ratios[ratios.len() / 2]);
}

/// A million keys in a thousand groups.
fn queue() -> Queue {
    let builder = WorkQueue::builder().limiter(NoLimit);
    let queue = builder.build_with_groups(|key: &u32| key % GROUPS);
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    queue
}

fn inspector(queue: &Queue) -> Inspector<Queue> {
    Inspector::new("keys", queue).with_groups()
}

/// Takes a key, ends its run and adds it again, so often. The queue stays as long.
fn cycles(queue: &Queue, times: u32) {
    for _ in 0..times {
        let guard = queue.try_get().unwrap();
        let key = *guard;
        let _ = guard.success();
        queue.add(key).unwrap();
    }
}

/// Compares rounds of cycles without and with a page. Returns the nanoseconds of CPU time of a cycle.
fn rounds(queue: &Queue, inspector: Inspector<Queue>) -> f64 {
    let is_open = Arc::new(AtomicBool::new(false));
    let (is_read, ends) = (Arc::clone(&is_open), Arc::new(AtomicBool::new(false)));
    let is_over = Arc::clone(&ends);
    let reader = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = Registry::new().with(inspector).router();
            let mut updates = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                if is_read.load(Ordering::Relaxed) {
                    updates += events(&app, 1).await as u32;
                }
                tokio::time::sleep(PAUSE).await;
            }
            updates
        })
    });
    let round = || {
        let (begin, cpu) = (Instant::now(), ThreadTime::now());
        let mut count = 0;
        while begin.elapsed() < ROUND {
            cycles(queue, 200);
            count += 200;
        }
        cpu.elapsed().as_nanos() as f64 / f64::from(count)
    };
    let _ = round();
    let (mut closed, mut slower) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let without = round();
        is_open.store(true, Ordering::Relaxed);
        let with = round();
        is_open.store(false, Ordering::Relaxed);
        closed.push(without);
        slower.push((with / without - 1.0) * 100.0);
    }
    ends.store(true, Ordering::Relaxed);
    let a_second = f64::from(reader.join().unwrap()) / (ROUND * ROUNDS as u32).as_secs_f64();
    closed.sort_by(f64::total_cmp);
    slower.sort_by(f64::total_cmp);
    // The ranks between which the median is with 95 %.
    let (middle, aside) = (ROUNDS / 2, (0.98 * (ROUNDS as f64).sqrt()) as usize);
    let [low, median, high] = [middle - aside, middle, middle + aside].map(|rank| slower[rank]);
    println!("a cycle: {:.0} ns of CPU time", closed[middle]);
    println!(
        "with {a_second:.0} updates a second: {median:+.2} % ({low:+.2} % to {high:+.2} %, with 95 %)"
    );
    let [low, median, high] = [low, median, high].map(|slower| slower / a_second);
    println!("so with one update a second: {median:+.3} % ({low:+.3} % to {high:+.3} %)");
    closed[middle]
}

/// Counts the instructions of an update and of a cycle.
fn instructions(nanos: f64) {
    let counted =
        |updates: &str, cycles: &str| callgrind::instructions(&["count", updates, cycles]);
    // By then the picture has all its five minutes.
    let base = counted("300", "0");
    let (Some(base), Some(more), Some(cycles)) =
        (base, counted("400", "0"), counted("300", "100000"))
    else {
        println!("without valgrind no instructions are counted");
        return;
    };
    let update = (more - base) as f64 / 100.0;
    let cycle = (cycles - base) as f64 / 100_000.0;
    let a_second = cycle * 1e9 / nanos;
    println!(
        "an update: {update:.0} instructions; a cycle: {cycle:.0}, so {a_second:.2e} in a second of CPU time"
    );
    println!(
        "an update a second: at most {:.4} % of a worker's time",
        update / a_second * 100.0
    );
}

/// What callgrind counts: on virtual time, which needs no waiting.
fn count(updates: usize, times: u32) {
    let queue = queue();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let app = Registry::new().with(inspector(&queue)).router();
        assert_eq!(events(&app, updates).await, updates);
    });
    cycles(&queue, times);
}

/// Reads the events of a page that is open.
async fn events(app: &Router, most: usize) -> usize {
    let request = Request::get("/queues/keys/live").header("host", "localhost");
    let request = request.body(Body::empty()).unwrap();
    let mut body = app.clone().oneshot(request).await.unwrap().into_body();
    let mut count = 0;
    while count < most {
        let part = body.frame().await.unwrap().unwrap().into_data().unwrap();
        // What keeps the connection alive is no event.
        count += usize::from(part.starts_with(b"data: "));
    }
    count
}

/// Nanoseconds for a key of a `run` by one worker.
fn runs(watched: bool) -> f64 {
    const RUNS: u32 = 300_000;
    let queue = WorkQueue::builder().limiter(NoLimit).build();
    let inspector = Inspector::new("runs", &queue);
    assert!(queue.add_many(0..RUNS).rejected.is_empty());
    queue.shut_down();
    let workers: Workers<'_, u32, std::convert::Infallible> = Workers::new(1);
    let workers = if watched {
        inspector.watch(workers)
    } else {
        workers
    };
    let begin = Instant::now();
    let _ = queue.run(workers, |_| ());
    begin.elapsed().as_nanos() as f64 / f64::from(RUNS)
}

fn get(address: SocketAddr, path: &str) -> Duration {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    begin.elapsed()
}

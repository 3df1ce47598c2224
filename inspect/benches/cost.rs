//! What a window costs a queue of a million keys: a page that is open, the first paint, a search, and workers that
//! are watched. Prints figures, and asserts nothing about them.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use requeue::limiter::NoLimit;
use requeue::priority::Plain;
use requeue::std::{WorkQueue, Workers};
use requeue_inspect::{Inspector, Registry};

const KEYS: u32 = 1_000_000;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_secs(2);

type Queue = WorkQueue<u32, Plain, NoLimit>;

fn main() {
    let queue: Queue = WorkQueue::builder().limiter(NoLimit).build();
    assert!(queue.add_many(0..KEYS).rejected.is_empty());
    let registry = Registry::new().with(Inspector::new("keys", &queue));
    let window = registry.listen("127.0.0.1:0").unwrap();
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

    // Taken in turn, so that what else the machine does falls on both.
    let mut ratios = Vec::new();
    let _ = cycles(&queue);
    for _ in 0..ROUNDS {
        let closed = cycles(&queue);
        let reader = open(address);
        let open = cycles(&queue);
        reader.shutdown(std::net::Shutdown::Both).unwrap();
        ratios.push(open / closed);
        println!("a cycle: {closed:.1} ns, {open:.1} ns with a page that is open");
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "with a page that is open: {:.4} times as long",
        ratios[ROUNDS / 2]
    );

    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (plain, watched) = (runs(false), runs(true));
        ratios.push(watched / plain);
        println!("a run that does nothing: {plain:.1} ns, {watched:.1} ns watched");
    }
    ratios.sort_by(f64::total_cmp);
    println!("watched: {:.2} times as long", ratios[ROUNDS / 2]);
}

/// Nanoseconds for taking a key, ending its run and adding it again, in a queue that stays as long.
fn cycles(queue: &Queue) -> f64 {
    let begin = Instant::now();
    let mut count = 0_u32;
    while begin.elapsed() < ROUND {
        for _ in 0..1_000 {
            let guard = queue.try_get().unwrap();
            let key = *guard;
            let _ = guard.success();
            queue.add(key).unwrap();
        }
        count += 1_000;
    }
    begin.elapsed().as_nanos() as f64 / f64::from(count)
}

/// Nanoseconds for a key of a `run` by one worker.
fn runs(watched: bool) -> f64 {
    const RUNS: u32 = 300_000;
    let queue: Queue = WorkQueue::builder().limiter(NoLimit).build();
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
    let mut stream = send(address, path, "close");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    begin.elapsed()
}

/// Opens the events of the page, and reads them until it is shut.
fn open(address: SocketAddr) -> TcpStream {
    let stream = send(address, "/queues/keys/live", "keep-alive");
    let mut reader = stream.try_clone().unwrap();
    thread::spawn(move || {
        let mut part = [0; 65_536];
        while reader.read(&mut part).is_ok_and(|read| read > 0) {}
    });
    stream
}

fn send(address: SocketAddr, path: &str, connection: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

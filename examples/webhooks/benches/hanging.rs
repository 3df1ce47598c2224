//! How long deliveries take from the request to the receiver, with and without a receiver that
//! never answers and is owed 100,000 objects.
//!
//! Two services run side by side, one with that receiver and one without it, so that what else the
//! machine does concerns both. Objects are put at a fixed pace, whatever the answers take.
#![cfg(unix)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "support is shared")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, body::Bytes};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use support::{Manner, Place, Receiver, Service, User};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep};

const OWED: u64 = 100_000;
const RECEIVERS: u64 = 4;
/// The changes that are measured, those before them, and the time from one to the next.
const CHANGES: u64 = 3_000;
const WARM_UP: u64 = 500;
const PACE: Duration = Duration::from_millis(20);

/// Microseconds since an object was put.
type Latencies = Arc<Mutex<Histogram<u64>>>;

/// A service and its receivers.
struct Side {
    _place: Place,
    service: Service,
    start: Instant,
    delivered: Latencies,
}

/// Receives deliveries of objects that say when they were put, and returns its URL.
async fn receiver(start: Instant, latencies: Latencies) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let latencies = Arc::clone(&latencies);
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let latencies = Arc::clone(&latencies);
                async move {
                    let body = request.into_body().collect().await?.to_bytes();
                    let taken = start.elapsed().as_micros() as u64;
                    let event: Value = serde_json::from_slice(&body).unwrap();
                    let put = event["data"]["at"].as_u64().unwrap();
                    *latencies.lock().unwrap() += taken - put;
                    Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::default()))
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    url
}

impl Side {
    async fn new(user: &User) -> Self {
        let (place, start) = (Place::new(), Instant::now());
        let delivered = Latencies::new(Mutex::new(Histogram::new(3).unwrap()));
        let service = place.start(&["--allow-private"]);
        for id in 0..RECEIVERS {
            let json = json!({ "url": receiver(start, Arc::clone(&delivered)).await });
            let path = format!("/subscriptions/steady{id}");
            user.put(&service, &path, &json).await;
        }
        drop(service);
        // Owed to later subscriptions alone.
        let database = rusqlite::Connection::open(place.database()).unwrap();
        let sql = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {OWED})
             INSERT INTO objects SELECT printf('o%06d', i), i, '1' FROM n;
             UPDATE versions SET newest = {OWED};"
        );
        database.execute_batch(&sql).unwrap();
        drop(database);
        let service = place.start(&["--allow-private"]);
        Self {
            _place: place,
            service,
            start,
            delivered,
        }
    }

    /// Puts objects, and waits until every receiver has each of them.
    async fn put(&self, user: &User, changes: u64) {
        self.delivered.lock().unwrap().reset();
        let mut ticks = interval(PACE);
        for object in 0..changes {
            ticks.tick().await;
            let (user, address) = (user.clone(), self.service.address);
            let start = self.start;
            tokio::spawn(async move {
                let put = start.elapsed().as_micros() as u64;
                let (path, body) = (format!("/objects/c{object}"), json!({ "at": put }));
                let answer = user.ask(address, Method::PUT, &path, body.to_string());
                assert!(answer.await.unwrap().status.is_success());
            });
        }
        while self.delivered.lock().unwrap().len() < changes * RECEIVERS {
            sleep(PACE).await;
        }
    }
}

fn millis(latencies: &Latencies, quantile: f64) -> f64 {
    latencies.lock().unwrap().value_at_quantile(quantile) as f64 / 1000.0
}

#[tokio::main]
async fn main() {
    let user = User::new();
    let (without, with) = (Side::new(&user).await, Side::new(&user).await);
    let hanging = Receiver::new(Manner::Slow(Arc::new(Semaphore::new(0)))).await;
    user.subscribe(&with.service, "hanging", &hanging).await;
    while user.owed(&with.service, "pending").await < OWED {
        sleep(PACE).await;
    }
    for changes in [WARM_UP, CHANGES] {
        tokio::join!(without.put(&user, changes), with.put(&user, changes));
    }
    let owed = user.owed(&with.service, "pending").await;
    println!(
        "owed to the receiver that never answers: {owed}; {:?}",
        hanging.calls()
    );
    for quantile in [0.5, 0.99] {
        let (p, without) = (quantile * 100.0, millis(&without.delivered, quantile));
        let with = millis(&with.delivered, quantile);
        let times = with / without;
        println!("p{p:.0}: {without:.2} ms without it, {with:.2} ms with it: {times:.2} times");
    }
}

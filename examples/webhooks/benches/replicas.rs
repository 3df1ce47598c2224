//! How many changes and deliveries there are per second, with one process and with replicas.
//!
//! All of it shares this machine: the replicas, PostgreSQL, etcd, the users and the receivers.
#![cfg(unix)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "support is shared")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use support::etcd::Etcd;
use support::postgres::Server;
use support::{Manner, Place, Receiver, Service, User};
use tokio::task::JoinSet;
use tokio::time::sleep;

const RECEIVERS: u64 = 24;
const OBJECTS: u64 = 2_000;
const WRITERS: u64 = 64;
const SHARDS: u64 = 64;

#[tokio::main]
async fn main() {
    let server = Server::durable().unwrap();
    let place = Place::new();
    measure("one process, SQLite", &[place.start(&["--allow-private"])]).await;
    let database = server.database().await;
    let alone = [place.start_on(&database, &["--allow-private"])];
    measure("one process, PostgreSQL", &alone).await;
    drop(alone);
    for count in 1..=3 {
        let (database, etcd) = (server.database().await, Etcd::start().unwrap());
        let options = ["--allow-private", "--etcd", &etcd.url];
        let start = |_| place.start_on(&database, &options);
        let replicas: Vec<Service> = (0..count).map(start).collect();
        spread(&replicas).await;
        measure(&format!("replicas: {count}"), &replicas).await;
    }
}

/// Puts objects at all of them, and waits until every receiver has each of them.
async fn measure(what: &str, services: &[Service]) {
    let user = User::new();
    let mut receivers = Vec::new();
    for n in 0..RECEIVERS {
        let receiver = Receiver::new(Manner::Steady).await;
        user.subscribe(&services[0], &format!("s{n}"), &receiver)
            .await;
        receivers.push(receiver);
    }
    let addresses: Vec<SocketAddr> = services.iter().map(|service| service.address).collect();
    let begun = Instant::now();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (user, addresses) = (user.clone(), addresses.clone());
        writers.spawn(async move {
            for object in (writer..OBJECTS).step_by(WRITERS as usize) {
                let address = addresses[object as usize % addresses.len()];
                let path = format!("/objects/o{object}");
                let answer = user.ask(address, Method::PUT, &path, "1").await;
                assert!(answer.unwrap().status.is_success());
            }
        });
    }
    writers.join_all().await;
    let changed = begun.elapsed().as_secs_f64();
    for receiver in &receivers {
        receiver
            .until("taken", |receiver| receiver.knows_count() as u64 == OBJECTS)
            .await;
    }
    let delivered = begun.elapsed().as_secs_f64();
    let taken: u64 = receivers.iter().map(Receiver::taken).sum();
    println!(
        "{what}: {:.0} changes per second, {:.0} deliveries per second \
         ({taken} in {delivered:.1} s)",
        OBJECTS as f64 / changed,
        taken as f64 / delivered,
    );
}

/// Waits until every shard is owned, and each replica has its part.
async fn spread(replicas: &[Service]) {
    let user = User::new();
    for replica in replicas {
        loop {
            let team = user.get(replica, "/shards").await.json;
            let owned = |member: &serde_json::Value| member["shards"].as_u64().unwrap();
            let owned: Vec<u64> = team["members"]
                .as_array()
                .unwrap()
                .iter()
                .map(owned)
                .collect();
            let is_even = owned.len() == replicas.len() && owned.iter().all(|owned| *owned > 0);
            if is_even && owned.iter().sum::<u64>() == SHARDS {
                println!("{}", json!({ "shards": owned }));
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

//! Three replicas, a flood of changes, and a kill: every receiver gets the last version of every
//! object.
//!
//! It needs the feature `replicas`.

use std::net::SocketAddr;
use std::time::Instant;

use hyper::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::is_selected;
use crate::support::etcd::Etcd;
use crate::support::postgres::Server;
use crate::support::{BROKEN_AFTER, Manner, Place, Receiver, Service, User};

mod engine;

const RECEIVERS: usize = 12;
const OBJECTS: u64 = 40;
const ROUNDS: u64 = 10;
const WRITERS: u64 = 16;
const SHARDS: usize = 16;

pub async fn run() {
    let first = "replicas::every_receiver_gets_the_last_version_though_a_replica_is_killed";
    if let Some((server, etcd)) = servers(first) {
        every_receiver_gets_the_last_version_though_a_replica_is_killed(&server, &etcd).await;
        println!("test {first} ... ok");
    }
    let second = "replicas::all_is_delivered_after_etcd_was_emptied_and_restored";
    if let Some((server, mut etcd)) = servers(second) {
        engine::all_is_delivered_after_etcd_was_emptied_and_restored(&server, &mut etcd).await;
        println!("test {second} ... ok");
    }
    let third = "replicas::values_that_cannot_be_read_block_nothing_else";
    if let Some((server, mut etcd)) = servers(third) {
        engine::values_that_cannot_be_read_block_nothing_else(&server, &mut etcd).await;
        println!("test {third} ... ok");
    }
}

/// Starts what a test needs, if it is selected and can run here.
fn servers(name: &str) -> Option<(Server, Etcd)> {
    if !is_selected(name) {
        return None;
    }
    if !cfg!(feature = "replicas") {
        println!("NOT RUN: {name}: built without `--features replicas`");
        return None;
    }
    match (Server::start(), Etcd::start()) {
        (Ok(server), Ok(etcd)) => Some((server, etcd)),
        (Err(why), _) | (_, Err(why)) => {
            println!("NOT RUN: {name}: {why}");
            None
        }
    }
}

async fn every_receiver_gets_the_last_version_though_a_replica_is_killed(
    server: &Server,
    etcd: &Etcd,
) {
    let (user, database) = (User::new(), server.database().await);
    let places = [Place::new(), Place::new(), Place::new()];
    let mut replicas: Vec<Service> = (0..3)
        .map(|n| start(&places[n], &database, etcd, n))
        .collect();
    spread(&user, &replicas.iter().collect::<Vec<_>>()).await;

    let mut receivers = Vec::new();
    for n in 0..RECEIVERS {
        let receiver = Receiver::new(Manner::Steady).await;
        user.subscribe(&replicas[n % 3], &format!("s{n}"), &receiver)
            .await;
        receivers.push(receiver);
    }
    let addresses: Vec<SocketAddr> = replicas.iter().map(|replica| replica.address).collect();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(user.clone(), addresses.clone(), writer));
    }
    // In the middle of changes and of deliveries.
    let half = OBJECTS * ROUNDS / 2;
    receivers[0]
        .until("taken", |receiver| receiver.taken() > half / 4)
        .await;
    let killed = Instant::now();
    replicas.remove(0).kill();
    timeout(BROKEN_AFTER, writers.join_all()).await.unwrap();
    user.settled(&replicas[0]).await;
    let seconds = killed.elapsed().as_secs_f64();
    println!("webhooks: all is delivered {seconds:.1} s after a replica was killed");

    let mut versions = Vec::new();
    for object in 0..OBJECTS {
        let path = format!("/objects/o{object}");
        let answer = user.get(&replicas[1], &path).await;
        assert_eq!(answer.json["data"], json!({ "round": ROUNDS - 1 }));
        versions.push(answer.json["version"].as_u64().unwrap());
    }
    for receiver in &receivers {
        for (object, version) in versions.iter().enumerate() {
            let known = receiver.knows(&format!("o{object}"));
            assert_eq!(
                known.map(|(version, _)| version),
                Some(*version),
                "o{object}"
            );
        }
    }
    restart(&user, &mut replicas, &places[0], &database, etcd).await;
    pause(&user, &replicas).await;
    let refused = replicas.remove(0);
    refuse(&user, etcd).await;
    assert_eq!(refused.ended().await.code(), Some(2));
    let said = places[1].said();
    assert!(said.contains("this is no replica any more"), "{said}");
    for replica in replicas {
        replica.kill();
    }
    for place in &places {
        let said = place.said();
        assert!(!said.contains("panic"), "{said}");
    }
}

/// A replica comes back, and has its share of the shards again.
async fn restart(
    user: &User,
    replicas: &mut Vec<Service>,
    place: &Place,
    database: &str,
    etcd: &Etcd,
) {
    replicas.push(start(place, database, etcd, 3));
    spread(user, &replicas.iter().collect::<Vec<_>>()).await;
    let answer = user.put(&replicas[2], "/objects/last", &json!(1)).await;
    assert_eq!(answer.json["subscriptions"], RECEIVERS);
    user.settled(&replicas[0]).await;
}

/// A replica that does not run for longer than its TTL is replaced, and comes back.
async fn pause(user: &User, replicas: &[Service]) {
    replicas[1].signal("STOP");
    spread(user, &[&replicas[0], &replicas[2]]).await;
    let answer = user.put(&replicas[0], "/objects/paused", &json!(1)).await;
    assert_eq!(answer.json["subscriptions"], RECEIVERS);
    user.settled(&replicas[0]).await;
    replicas[1].signal("CONT");
    spread(user, &replicas.iter().collect::<Vec<_>>()).await;
}

/// Gives the set another count of shards, and ends every session.
async fn refuse(user: &User, etcd: &Etcd) {
    let address: SocketAddr = etcd.url.trim_start_matches("http://").parse().unwrap();
    let call = async |path: &str, body: Value| {
        let answer = user
            .ask(address, Method::POST, path, body.to_string())
            .await;
        answer.unwrap().json
    };
    // In base64: `/requeue/webhooks/count`, and `2 7`.
    let count = json!({ "key": "L3JlcXVldWUvd2ViaG9va3MvY291bnQ=", "value": "MiA3" });
    call("/v3/kv/put", count).await;
    let sessions = call("/v3/lease/leases", json!({})).await;
    for session in sessions["leases"].as_array().unwrap() {
        call("/v3/lease/revoke", session.clone()).await;
    }
}

fn start(place: &Place, database: &str, etcd: &Etcd, n: usize) -> Service {
    let name = format!("replica-{n}");
    let options = [
        "--allow-private",
        "--pause",
        "20",
        "--ttl",
        "2",
        "--shards",
        "16",
    ];
    let options = [&options[..], &["--etcd", &etcd.url, "--name", &name]].concat();
    place.start_on(database, &options)
}

/// Waits until every shard is owned, and every replica owns one.
async fn spread(user: &User, replicas: &[&Service]) {
    let wait = async {
        for replica in replicas {
            while !is_spread(&user.get(replica, "/shards").await.json, replicas.len()) {
                user.second(replica).await;
            }
        }
    };
    timeout(BROKEN_AFTER, wait).await.unwrap();
}

fn is_spread(team: &Value, count: usize) -> bool {
    let (members, shards) = (team["members"].as_array(), team["shards"].as_array());
    let (members, shards) = (members.unwrap(), shards.unwrap());
    let is_member = |name: &Value| members.iter().any(|member| member["name"] == *name);
    members.len() == count
        && members.iter().all(|member| member["shards"] != 0)
        && shards.len() == SHARDS
        && shards.iter().all(|owner| is_member(&owner["member"]))
}

/// Changes its objects, round by round, at any replica that answers.
async fn write(user: User, addresses: Vec<SocketAddr>, writer: u64) {
    for round in 0..ROUNDS {
        for object in (writer..OBJECTS).step_by(WRITERS as usize) {
            let path = format!("/objects/o{object}");
            let body = json!({ "round": round }).to_string();
            let mut at = usize::try_from(object + round).unwrap();
            loop {
                let address = addresses[at % addresses.len()];
                let asked = user.ask(address, Method::PUT, &path, body.clone()).await;
                if asked.is_ok_and(|answer| answer.status.is_success()) {
                    break;
                }
                at += 1;
            }
        }
    }
}

//! A disk that is full, twice, while objects are put and delivered: what was acknowledged is there,
//! and everything is delivered once there is room again.
//!
//! `cargo xtask ci full_disk` makes a small disk for it.

use std::collections::{HashMap, HashSet};
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::is_selected;
use crate::support::{Answer, BROKEN_AFTER, Manner, Place, Receiver, Service, User};

/// Names a folder on a disk of a few megabytes that nothing else uses.
const SMALL_DISK: &str = "WEBHOOKS_SMALL_DISK";

const WRITERS: usize = 48;

/// Every second writer's objects are that long, the others a few bytes.
const LONG: usize = 240_000;

/// How much room there is in the beginning, of a round each.
const ROOM: u64 = 4 << 20;

/// A round ends after so many puts that were answered with an error.
const ERRORS: u64 = 500;

/// What was put after what, and the versions that were acknowledged.
type Puts = Vec<(u64, Option<u64>)>;

pub async fn run() {
    let name = "full_disk::what_is_acknowledged_survives_a_full_disk";
    if !is_selected(name) {
        return;
    }
    let Some(folder) = env::var_os(SMALL_DISK) else {
        return println!("NOT RUN: {name}: no small disk: see `cargo xtask ci full_disk`");
    };
    what_is_acknowledged_survives_a_full_disk(folder.as_ref()).await;
    println!("test {name} ... ok");
}

async fn what_is_acknowledged_survives_a_full_disk(disk: &Path) {
    let (place, user) = (Place::within(disk), User::new());
    let service = place.start(&["--allow-private", "--pause", "20"]);
    let receiver = Receiver::new(Manner::Steady).await;
    user.subscribe(&service, "s", &receiver).await;
    let (mut puts, mut versions) = (HashMap::new(), HashSet::new());
    for round in 0..2 {
        let ballast = place.path("ballast");
        fill(&ballast);
        puts.extend(storm(&user, &service, round).await);
        assert_there(&user, &service, &puts).await;
        assert!(
            puts.values()
                .flatten()
                .any(|(_, version)| version.is_some())
        );
        fs::remove_file(ballast).unwrap();
        for (object, puts) in &mut puts {
            let last = puts.last().map_or(0, |(n, _)| n + 1);
            let put = put(&user, service.address, object, last).await;
            assert!(put.is_some(), "there is room again");
            puts.push((last, put));
        }
    }
    for version in puts.values().flatten().filter_map(|(_, version)| *version) {
        assert!(
            versions.insert(version),
            "version {version} was given twice"
        );
    }
    user.settled(&service).await;
    assert_known(&user, &service, &receiver, &puts).await;
    service.kill();
    let service = place.start(&["--allow-private"]);
    assert_there(&user, &service, &puts).await;
    assert_eq!(user.owed(&service, "pending").await, 0);
    assert_eq!(service.terminate().await.code(), Some(0));
}

/// Leaves little room on the disk.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    let chunk = [1; 1 << 16];
    while file.write_all(&chunk).is_ok() {
        let len = file.metadata().unwrap().len();
        assert!(len < 1 << 30, "this is no small disk");
    }
    let len = file.metadata().unwrap().len();
    file.set_len(len.saturating_sub(ROOM)).unwrap();
}

/// Puts new objects, each writer its own, until enough of that has failed.
async fn storm(user: &User, service: &Service, round: usize) -> Vec<(String, Puts)> {
    let errors = Arc::new(watch::Sender::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let object = format!("r{round}-o{writer}");
        let (user, errors) = (user.clone(), Arc::clone(&errors));
        writers.spawn(write(user, service.address, object, errors));
    }
    timeout(BROKEN_AFTER, writers.join_all()).await.unwrap()
}

async fn write(
    user: User,
    address: SocketAddr,
    object: String,
    errors: Arc<watch::Sender<u64>>,
) -> (String, Puts) {
    let mut puts = Puts::new();
    while *errors.borrow() < ERRORS {
        let n = puts.last().map_or(0, |(n, _)| n + 1);
        let put = put(&user, address, &object, n).await;
        if put.is_none() {
            errors.send_modify(|errors| *errors += 1);
        }
        puts.push((n, put));
    }
    (object, puts)
}

/// Returns the version that was acknowledged.
async fn put(user: &User, address: SocketAddr, object: &str, n: u64) -> Option<u64> {
    let is_long = object.ends_with(['0', '2', '4', '6', '8']);
    let pad = "x".repeat(if is_long { LONG } else { 1 });
    let body = json!({ "n": n, "pad": pad }).to_string();
    let path = format!("/objects/{object}");
    let answer = user.ask(address, Method::PUT, &path, body).await.unwrap();
    if answer.status == StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    assert!(answer.status.is_success(), "{answer:?}");
    answer.json["version"].as_u64()
}

/// Looks an object up. That fails, too, if it shared a transaction with what did not fit.
async fn get(user: &User, service: &Service, object: &str) -> Answer {
    let get = async {
        loop {
            let answer = user.get(service, &format!("/objects/{object}")).await;
            if answer.status != StatusCode::SERVICE_UNAVAILABLE {
                return answer;
            }
        }
    };
    timeout(BROKEN_AFTER, get).await.unwrap()
}

/// Each object is what was acknowledged last, or what was put after that.
async fn assert_there(user: &User, service: &Service, puts: &HashMap<String, Puts>) {
    for (object, puts) in puts {
        let answer = get(user, service, object).await;
        let found = (
            answer.json["data"]["n"].as_u64(),
            answer.json["version"].as_u64(),
        );
        let last = puts.iter().rposition(|(_, version)| version.is_some());
        let Some(last) = last else { continue };
        let fits = |(n, version): &(u64, Option<u64>)| {
            found.0 == Some(*n) && version.is_none_or(|version| found.1 == Some(version))
        };
        assert!(
            puts[last..].iter().any(fits),
            "{object} is {found:?}: {:?}",
            puts[last]
        );
    }
}

async fn assert_known(
    user: &User,
    service: &Service,
    receiver: &Receiver,
    puts: &HashMap<String, Puts>,
) {
    for object in puts.keys() {
        let answer = get(user, service, object).await;
        let known: Option<(u64, Value)> = receiver.knows(object);
        let expected = (
            answer.json["version"].as_u64().unwrap(),
            answer.json["data"].clone(),
        );
        assert_eq!(
            known.map(|(version, _)| version),
            Some(expected.0),
            "{object}"
        );
    }
}

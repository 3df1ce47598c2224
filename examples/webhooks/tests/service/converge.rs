//! A storm of changes, a receiver of each kind, and a kill in the middle: every live receiver ends
//! with the newest version of everything.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::support::{Dead, Manner, Place, Receiver, Service, User};
use hyper::Method;
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

const OBJECTS: u64 = 500;
const ROUNDS: u64 = 10;
const CHANGES: u64 = OBJECTS * ROUNDS;

/// How many users change objects at once, each their own.
const WRITERS: u64 = 32;

/// The slow receiver takes one delivery per so many changes, until there are no more.
const SLOWNESS: u64 = 10;

const OPTIONS: [&str; 7] = [
    "--allow-private",
    "--tries",
    "4",
    "--pause",
    "20",
    "--timeout",
    "60000",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_live_receiver_ends_with_the_newest_version_of_everything() {
    let begun = Instant::now();
    let place = Place::new();
    let user = User::new();
    let permits = Arc::new(Semaphore::new(0));
    let steady = Receiver::new(Manner::Steady).await;
    let flaky = Receiver::new(Manner::Flaky).await;
    let slow = Receiver::new(Manner::Slow(Arc::clone(&permits))).await;
    let dead = Dead::new();

    let service = place.start(&OPTIONS);
    let urls = [steady.url(), flaky.url(), slow.url(), dead.url.clone()];
    for (id, url) in ["steady", "flaky", "slow", "dead"].iter().zip(urls) {
        let path = format!("/subscriptions/{id}");
        let answer = user.put(&service, &path, &json!({ "url": url })).await;
        assert_eq!(answer.status, 201);
    }

    let storm = Storm::begin(&user, service.address, &permits);
    storm.until(CHANGES / 2).await;
    // In the middle of changes and of deliveries.
    service.kill();
    let service = place.start(&OPTIONS);
    let versions = storm.end(service.address).await;
    let stormed = begun.elapsed();

    user.settled(&service).await;
    for (name, receiver) in [("steady", &steady), ("flaky", &flaky), ("slow", &slow)] {
        assert_eq!(receiver.knows_count() as u64, OBJECTS, "{name}");
        for (object, version) in versions.iter().enumerate() {
            let known = receiver.knows(&format!("o{object}"));
            let expected = (*version, json!({ "round": ROUNDS - 1 }));
            assert_eq!(known, Some(expected), "{name} of o{object}");
        }
    }
    assert_dead_is_listed(&user, &service).await;
    let answer = user.get(&service, "/objects/o7").await;
    assert_eq!(answer.json["version"], versions[7]);

    let made = [&steady, &flaky, &slow].map(Receiver::taken);
    tell(made, begun.elapsed().as_secs_f64(), stormed.as_secs_f64());
    // Each delivery took a permit; after the last change, each object at most one of the newest
    // version, and each that was under way one more.
    let under_way_max = 64;
    assert!(made[2] <= CHANGES / SLOWNESS + OBJECTS + under_way_max);
    // A delivery that the kill left unrecorded is made once more, and no other.
    assert!(made.iter().all(|made| *made <= CHANGES + under_way_max));

    assert_eq!(service.terminate().await.code(), Some(0));
    crate::support::assert_no_secret(&place.said(), &place.path("stderr"));
}

/// What was given up is listed, page by page, and comes to life again with its receiver.
async fn assert_dead_is_listed(user: &User, service: &Service) {
    assert_eq!(user.owed(service, "failed").await, OBJECTS);
    let page = format!("/deliveries?state=failed&limit={}", OBJECTS / 2);
    let mut after = String::new();
    for is_last in [false, false, true] {
        let answer = user.get(service, &format!("{page}{after}")).await;
        for delivery in answer.json["deliveries"].as_array().unwrap() {
            assert_eq!(delivery["subscription"], "dead");
            let error = delivery["error"].as_str().unwrap();
            assert!(error.contains("cannot connect"), "{error}");
        }
        match answer.json["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => assert!(is_last),
        }
    }
    let living = Receiver::new(Manner::Steady).await;
    let json = json!({"url": living.url(), "rate": 10_000});
    user.put(service, "/subscriptions/dead", &json).await;
    user.settled(service).await;
    assert_eq!(living.knows_count() as u64, OBJECTS);
    assert_eq!(user.owed(service, "failed").await, 0);
}

/// Prints the figures even if the output of tests is captured.
fn tell(made: [u64; 3], seconds: f64, storm_seconds: f64) {
    let (due, made_all) = (CHANGES * 3, made.iter().sum::<u64>());
    let saved = due.saturating_sub(made_all);
    let [steady, flaky, slow] = made;
    let _ = writeln!(
        std::io::stderr(),
        "webhooks: {CHANGES} changes of {OBJECTS} objects in {storm_seconds:.1} s, a kill in the \
         middle; to three receivers {made_all} deliveries (steady {steady}, flaky {flaky}, slow \
         {slow}) in place of {due}: {saved} saved, {} %; {seconds:.1} s in all",
        saved * 100 / due,
    );
}

/// Users who change all objects, round after round, and go on wherever the service is.
struct Storm {
    writers: JoinSet<Vec<(usize, u64)>>,
    address: watch::Sender<SocketAddr>,
    changed: watch::Receiver<u64>,
    permits: Arc<Semaphore>,
}

impl Storm {
    fn begin(user: &User, address: SocketAddr, permits: &Arc<Semaphore>) -> Self {
        let address = watch::Sender::new(address);
        let (changes, changed) = watch::channel(0);
        let changes = Arc::new(changes);
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let writer = Writer {
                user: user.clone(),
                objects: (writer..OBJECTS).step_by(WRITERS as usize).collect(),
                address: address.subscribe(),
                changes: Arc::clone(&changes),
                permits: Arc::clone(permits),
            };
            writers.spawn(writer.write());
        }
        Self {
            writers,
            address,
            changed,
            permits: Arc::clone(permits),
        }
    }

    async fn until(&self, changes: u64) {
        let mut changed = self.changed.clone();
        let wait = changed.wait_for(|changed| *changed >= changes);
        let waited = tokio::time::timeout(crate::support::BROKEN_AFTER, wait).await;
        waited.unwrap().unwrap();
    }

    /// Continues at a new address to the end. Returns each object's version.
    async fn end(self, address: SocketAddr) -> Vec<u64> {
        self.address.send_replace(address);
        let written = tokio::time::timeout(crate::support::BROKEN_AFTER, self.writers.join_all());
        let mut versions: Vec<_> = written.await.unwrap().into_iter().flatten().collect();
        versions.sort_unstable();
        // Nothing changes any more: the slow receiver takes what comes.
        self.permits.add_permits(1_000_000);
        versions.into_iter().map(|(_, version)| version).collect()
    }
}

struct Writer {
    user: User,
    objects: Vec<u64>,
    address: watch::Receiver<SocketAddr>,
    changes: Arc<watch::Sender<u64>>,
    permits: Arc<Semaphore>,
}

impl Writer {
    async fn write(mut self) -> Vec<(usize, u64)> {
        let mut versions = Vec::new();
        for round in 0..ROUNDS {
            versions.clear();
            for object in self.objects.clone() {
                let version = self.change(object, round).await;
                versions.push((object as usize, version));
                self.changes.send_modify(|changes| {
                    *changes += 1;
                    if *changes % SLOWNESS == 0 {
                        self.permits.add_permits(1);
                    }
                });
            }
        }
        versions
    }

    /// Changes an object until that is answered: a service that was killed may have done so, too.
    async fn change(&mut self, object: u64, round: u64) -> u64 {
        let (path, body) = (
            format!("/objects/o{object}"),
            json!({ "round": round }).to_string(),
        );
        loop {
            let address = *self.address.borrow_and_update();
            let asked = self.user.ask(address, Method::PUT, &path, body.clone());
            match asked.await {
                Ok(answer) => {
                    assert!(answer.status.is_success(), "{answer:?}");
                    return answer.json["version"].as_u64().unwrap();
                }
                Err(_) => self.address.changed().await.unwrap(),
            }
        }
    }
}

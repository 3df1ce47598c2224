//! Three replicas whose etcd loses what it has acknowledged, or holds what they cannot read.

use std::net::SocketAddr;
use std::time::Instant;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{spread, start};
use crate::support::etcd::Etcd;
use crate::support::postgres::Server;
use crate::support::{BROKEN_AFTER, Manner, Place, Receiver, Service, User};

const RECEIVERS: usize = 6;

/// What both tests begin with.
struct Scene {
    user: User,
    database: String,
    places: Vec<Place>,
    replicas: Vec<Service>,
    receivers: Vec<Receiver>,
}

impl Scene {
    async fn new(server: &Server, etcd: &Etcd) -> Self {
        let (user, database) = (User::new(), server.database().await);
        let places = vec![Place::new(), Place::new(), Place::new()];
        let replicas = (0..3).map(|n| start(&places[n], &database, etcd, n));
        let replicas: Vec<Service> = replicas.collect();
        let mut receivers = Vec::new();
        for n in 0..RECEIVERS {
            let receiver = Receiver::new(Manner::Steady).await;
            let id = format!("s{n}");
            user.subscribe(&replicas[n % 3], &id, &receiver).await;
            receivers.push(receiver);
        }
        let scene = Self {
            user,
            database,
            places,
            replicas,
            receivers,
        };
        scene.is_spread().await;
        scene.deliver("first").await;
        scene
    }

    async fn is_spread(&self) {
        spread(&self.user, &self.replicas.iter().collect::<Vec<_>>()).await;
    }

    /// Puts an object, and waits until every receiver has it.
    async fn deliver(&self, object: &str) {
        let path = format!("/objects/{object}");
        let answer = self.user.put(&self.replicas[0], &path, &json!(1)).await;
        assert_eq!(answer.json["subscriptions"], RECEIVERS);
        self.user.settled(&self.replicas[0]).await;
        for receiver in &self.receivers {
            assert!(receiver.knows(object).is_some(), "{object}");
        }
    }

    /// How many shards each replica has lost.
    async fn lost(&self) -> Vec<u64> {
        let mut lost = Vec::new();
        for replica in &self.replicas {
            let shown = self.user.get(replica, "/shards").await.json;
            lost.push(shown["lost"].as_u64().unwrap());
        }
        lost
    }

    /// Waits until every replica has lost shards since then.
    async fn have_noticed(&self, before: &[u64]) {
        let wait = async {
            let has_lost =
                |lost: Vec<u64>| lost.iter().zip(before).all(|(now, before)| now > before);
            while !has_lost(self.lost().await) {}
        };
        timeout(BROKEN_AFTER, wait).await.unwrap();
    }

    /// Checks that all replicas deliver again, and that no write was refused.
    async fn is_well(&self) {
        self.is_spread().await;
        for replica in &self.replicas {
            let metrics = self.user.get(replica, "/metrics").await.json;
            let refused = "outcome=\"refused\"";
            assert!(!metrics.as_str().unwrap().contains(refused), "{metrics}");
            self.answers(replica, StatusCode::OK).await;
        }
    }

    /// Waits until a health check is answered with this status, and returns the answer.
    async fn answers(&self, replica: &Service, status: StatusCode) -> Value {
        let wait = async {
            loop {
                let answer = self.user.get(replica, "/healthz").await;
                if answer.status == status {
                    return answer.json;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(BROKEN_AFTER, wait).await.unwrap()
    }

    /// Waits until so many replicas have said this on standard error.
    async fn have_said(&self, replicas: usize, what: &str) {
        let wait = async {
            while self
                .places
                .iter()
                .filter(|place| place.said().contains(what))
                .count()
                < replicas
            {
                tokio::task::yield_now().await;
            }
        };
        timeout(BROKEN_AFTER, wait).await.unwrap();
    }
}

pub(super) async fn all_is_delivered_after_etcd_was_emptied_and_restored(
    server: &Server,
    etcd: &mut Etcd,
) {
    let mut scene = Scene::new(server, etcd).await;
    let lost = scene.lost().await;
    etcd.empty();
    let emptied = Instant::now();
    scene.deliver("emptied").await;
    scene.have_noticed(&lost).await;
    scene.deliver("noticed").await;
    let seconds = emptied.elapsed().as_secs_f64();
    println!("webhooks: all is delivered {seconds:.1} s after etcd was emptied");
    scene.is_well().await;
    scene
        .have_said(
            1,
            "the engine has lost acknowledged writes: its revision is",
        )
        .await;

    // What the backup holds of members and owners is not so any more when it is restored.
    etcd.back_up();
    scene.is_well().await;
    scene.replicas.remove(2).kill();
    scene
        .replicas
        .push(start(&scene.places[2], &scene.database, etcd, 3));
    scene.deliver("moved").await;
    scene.is_well().await;
    let lost = scene.lost().await;
    etcd.restore();
    scene.deliver("restored").await;
    scene.have_noticed(&lost).await;
    scene.deliver("again").await;
    scene.is_well().await;
}

pub(super) async fn values_that_cannot_be_read_block_nothing_else(
    server: &Server,
    etcd: &mut Etcd,
) {
    // In base64.
    const MEMBER: &str = "L3JlcXVldWUvd2ViaG9va3MvbWVtYmVyL3g=";
    const OWNER: &str = "L3JlcXVldWUvd2ViaG9va3Mvb3duZXIvMw==";
    let mut scene = Scene::new(server, etcd).await;
    let address: SocketAddr = etcd.url.trim_start_matches("http://").parse().unwrap();
    let user = scene.user.clone();
    let call = async |path: &str, body: Value| {
        let answer = user.ask(address, Method::POST, path, body.to_string());
        assert!(answer.await.unwrap().status.is_success());
    };
    // Bytes that are no text, and text that is no owner.
    call("/v3/kv/put", json!({ "key": MEMBER, "value": "//4=" })).await;
    call("/v3/kv/put", json!({ "key": OWNER, "value": "e30=" })).await;
    scene.replicas.remove(0).kill();
    scene.deliver("beside").await;
    scene.is_spread().await;
    for replica in &scene.replicas {
        let why = scene.answers(replica, StatusCode::SERVICE_UNAVAILABLE);
        let why = why.await.to_string();
        assert!(why.contains("/requeue/webhooks/member/x"), "{why}");
    }
    scene.have_said(2, "/requeue/webhooks/member/x").await;
    call("/v3/kv/deleterange", json!({ "key": MEMBER })).await;
    scene.is_well().await;
}

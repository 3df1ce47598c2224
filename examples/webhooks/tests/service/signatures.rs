//! Signatures, verified as a receiver does it: by the library that Standard Webhooks publishes.

use crate::support::{Manner, Place, Receiver, Service, User};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

/// In base64, both contain the word that no log may contain.
const SECRET: &str = "whsec_hushAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const OTHER: &str = "whsec_hushBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

/// Changes the object, and returns which of the secrets the delivery is signed with.
async fn signed_with(user: &User, service: &Service, receiver: &Receiver) -> Vec<&'static str> {
    let taken = receiver.taken();
    user.put(service, "/objects/o", &json!(taken)).await;
    let is_taken = |receiver: &Receiver| receiver.taken() > taken;
    receiver.until("delivered", is_taken).await;
    user.settled(service).await;
    let (headers, body) = receiver.last();
    let is_good = |secret: &&str| {
        let webhook = Webhook::new(secret).unwrap();
        webhook.verify(&body, &headers).is_ok()
    };
    let good: Vec<_> = [SECRET, OTHER].into_iter().filter(is_good).collect();
    // It holds for this delivery and no other.
    for secret in &good {
        let webhook = Webhook::new(secret).unwrap();
        let mut forged = body.to_vec();
        forged.push(b' ');
        assert!(webhook.verify(&forged, &headers).is_err());
    }
    good
}

#[tokio::test]
async fn a_receiver_can_verify_deliveries() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--allow-private"]);
    let receiver = Receiver::new(Manner::Steady).await;
    let put = async |json: &Value| {
        let answer = user.put(&service, "/subscriptions/s", json).await;
        assert!(answer.status.is_success(), "{answer:?}");
        let shown = user.get(&service, "/subscriptions/s").await;
        assert_eq!(answer.json, shown.json);
        crate::support::assert_no_secret(&shown.json["signed"].to_string(), "signed".as_ref());
        shown.json["signed"].as_bool().unwrap()
    };
    let url = receiver.url();
    assert!(!put(&json!({ "url": url })).await);
    let unsigned: [&str; 0] = [];
    assert_eq!(signed_with(&user, &service, &receiver).await, unsigned);
    assert!(put(&json!({"url": url, "secret": SECRET})).await);
    assert_eq!(signed_with(&user, &service, &receiver).await, [SECRET]);
    // A put that says nothing of the secret leaves it.
    assert!(put(&json!({"url": url, "rate": 100})).await);
    assert_eq!(signed_with(&user, &service, &receiver).await, [SECRET]);
    assert!(put(&json!({"url": format!("{url}2")})).await);
    assert_eq!(signed_with(&user, &service, &receiver).await, [SECRET]);
    assert!(put(&json!({"url": url, "secret": OTHER})).await);
    assert_eq!(signed_with(&user, &service, &receiver).await, [OTHER]);
    assert_eq!(service.terminate().await.code(), Some(0));
    crate::support::assert_no_secret(&place.said(), &place.path("stderr"));
}

/// A secret is shared with one receiver: another one does not get what it signs.
#[tokio::test]
async fn another_receiver_does_not_get_the_secret_of_the_first() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--allow-private"]);
    let (first, second) = (
        Receiver::new(Manner::Steady).await,
        Receiver::new(Manner::Steady).await,
    );
    let put = async |json: Value| {
        let answer = user.put(&service, "/subscriptions/s", &json).await;
        assert!(answer.status.is_success(), "{answer:?}");
        answer.json["signed"].as_bool().unwrap()
    };
    assert!(put(json!({"url": first.url(), "secret": SECRET})).await);
    assert_eq!(signed_with(&user, &service, &first).await, [SECRET]);
    let unsigned: [&str; 0] = [];
    assert!(!put(json!({"url": second.url()})).await);
    assert_eq!(signed_with(&user, &service, &second).await, unsigned);
    // The first receiver is another one for the second, too.
    assert!(!put(json!({"url": first.url()})).await);
    assert!(put(json!({"url": second.url(), "secret": OTHER})).await);
    assert_eq!(signed_with(&user, &service, &second).await, [OTHER]);
    // A secret can be removed.
    assert!(!put(json!({"url": second.url(), "secret": null})).await);
    assert_eq!(signed_with(&user, &service, &second).await, unsigned);
}

#[tokio::test]
async fn one_secret_signs_for_those_that_have_none() {
    let (place, user) = (Place::new(), User::new());
    let file = place.path("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let options = ["--allow-private", "--secret-file", file.to_str().unwrap()];
    let service = place.start(&options);
    let receiver = Receiver::new(Manner::Steady).await;
    for (secret, expected) in [(None, SECRET), (Some(OTHER), OTHER)] {
        let mut json = json!({"url": receiver.url()});
        if let Some(secret) = secret {
            json["secret"] = secret.into();
        }
        let answer = user.put(&service, "/subscriptions/s", &json).await;
        assert_eq!(answer.json["signed"], true);
        let signed = signed_with(&user, &service, &receiver).await;
        assert_eq!(signed, [expected]);
    }
}

#[tokio::test]
async fn a_retry_is_the_same_message() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--allow-private", "--pause", "10"]);
    let receiver = Receiver::new(Manner::Flaky).await;
    let json = json!({"url": receiver.url(), "secret": SECRET});
    user.put(&service, "/subscriptions/s", &json).await;
    assert_eq!(signed_with(&user, &service, &receiver).await, [SECRET]);
    assert_eq!(receiver.ids().len(), 3);
    assert!(receiver.ids().iter().all(|id| *id == receiver.ids()[0]));
}

//! Which requests are served, which are refused, and what is never shown.

use crate::support::{Dead, Manner, Place, Receiver, User, assert_no_secret};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

/// Failures are over soon.
const QUICK: [&str; 5] = ["--allow-private", "--tries", "2", "--pause", "10"];

#[tokio::test]
async fn a_change_reaches_a_receiver_and_so_does_an_end() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&QUICK);
    let receiver = Receiver::new(Manner::Steady).await;
    let url = receiver.url().replace("http://", "http://me:hush@");
    let json = json!({"url": url, "rate": 100});
    let answer = user.put(&service, "/subscriptions/s", &json).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let shown = json!({
        "id": "s",
        "receiver": format!("http://{}/…", receiver.address),
        "rate": 100.0,
        "signed": false,
    });
    assert_eq!(answer.json, shown);
    assert_eq!(user.get(&service, "/subscriptions/s").await.json, shown);

    let data = json!({"name": "ä", "list": [1, 2.5, null]});
    let answer = user.put(&service, "/objects/o", &data).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let version = answer.json["version"].as_u64().unwrap();
    let knows = |receiver: &Receiver| receiver.knows("o");
    receiver
        .until("delivered", |receiver| knows(receiver).is_some())
        .await;
    assert_eq!(knows(&receiver), Some((version, data.clone())));
    assert_eq!(receiver.authorization().unwrap(), "Basic bWU6aHVzaA==");
    let answer = user.get(&service, "/objects/o").await;
    assert_eq!(
        answer.json,
        json!({"id": "o", "version": version, "data": data})
    );

    let answer = user.delete(&service, "/objects/o").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let is_null = |receiver: &Receiver| knows(receiver).is_some_and(|(_, data)| data.is_null());
    receiver.until("ended", is_null).await;
    assert!(knows(&receiver).unwrap().0 > version);
    assert_eq!(user.get(&service, "/objects/o").await.status, 404);
    assert_eq!(user.delete(&service, "/objects/o").await.status, 404);

    assert_eq!(user.delete(&service, "/subscriptions/s").await.status, 204);
    assert_eq!(user.get(&service, "/subscriptions/s").await.status, 404);
    assert_eq!(user.delete(&service, "/subscriptions/s").await.status, 404);
    assert_eq!(service.terminate().await.code(), Some(0));
    assert_no_secret(&place.said(), &place.path("stderr"));
}

/// What is asked for, and how it is refused: status, and words of the error.
type Case = (Method, String, String, u16, &'static str);

async fn assert_refused(cases: impl IntoIterator<Item = Case>) {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&[]);
    for (method, path, body, status, why) in cases {
        let asked = user.ask(service.address, method.clone(), &path, body.clone());
        let answer = asked.await.unwrap();
        let error = answer.json["error"].as_str().unwrap_or_default();
        assert_eq!(answer.status, status, "{method} {path} {body}: {error}");
        assert!(error.contains(why), "{method} {path} {body}: {error}");
        assert_no_secret(error, path.as_ref());
    }
    assert_no_secret(&place.said(), &place.path("stderr"));
}

#[tokio::test]
async fn objects_have_limits() {
    let case = |path: &str, body: &str, status, why| {
        let path = format!("/objects/{path}");
        (Method::PUT, path, body.to_owned(), status, why)
    };
    // One byte too long: of a request that is longer, an answer may be lost with the rest.
    let long = format!("\"{}\"", "x".repeat(256 * 1024 - 1));
    let cases = [
        case("o", "", 400, "no JSON"),
        case("o", "{", 400, "no JSON"),
        case("o", "1 2", 400, "no JSON"),
        case("o", &long, 413, "262144"),
        case("a%20b", "{}", 400, "letters"),
        case("", "{}", 404, "path"),
        case(&"x".repeat(129), "{}", 400, "128"),
        case("o/p", "{}", 404, "path"),
        case(".", "{}", 400, "neither"),
        case("..", "{}", 400, "neither"),
    ];
    assert_refused(cases).await;
}

/// JSON that some receivers read and others refuse is refused here, where its author learns of it.
#[tokio::test]
async fn json_that_receivers_cannot_read_is_refused() {
    let case = |body: String, why| (Method::PUT, "/objects/o".to_owned(), body, 400, why);
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let cases = [
        case(
            r#"{"a": "\ud800"}"#.into(),
            "can read: unexpected end of hex escape at line 1 column 14",
        ),
        case(r#"{"\udc00x": 1}"#.into(), "line 1 column 8"),
        case("{\n\"a\": 1e400}".into(), "number out of range at line 2"),
        case("-1e400".into(), "number out of range at line 1"),
        case(
            r#"{"a": 1, "b": 2, "a": 3}"#.into(),
            "the same name twice in one object at line 1 column 20",
        ),
        // Names are compared as receivers read them, at any depth.
        case(
            "[{\"x\":\n{\"a\": 1, \"\\u0061\": 1}}]".into(),
            "the same name twice in one object at line 2 column 17",
        ),
        case(nested(65), "nested deeper than 64 at line 1 column 66"),
        case(nested(100_000), "nested deeper than 64 at line 1 column 65"),
        case(
            format!("{{\n\"a\": {}}}", nested(64)),
            "deeper than 64 at line 2 column 70",
        ),
    ];
    assert_refused(cases).await;

    let (place, user) = (Place::new(), User::new());
    let service = place.start(&[]);
    for body in [
        nested(64),
        r#""\ud83d\ude00""#.into(),
        r#""[[[\"[[[\\""#.into(),
        r#"{"a": {"a": [{"a": null}, {"a": true}]}, "A": 1}"#.into(),
        "1e308".into(),
        "123456789012345678901234567890".into(),
    ] {
        let put = user.ask(service.address, Method::PUT, "/objects/o", body.clone());
        assert!(put.await.unwrap().status.is_success(), "{body}");
    }
}

#[tokio::test]
async fn so_have_subscriptions() {
    let case = |body: String, status, why| {
        let path = "/subscriptions/s".to_owned();
        (Method::PUT, path, body, status, why)
    };
    let long_url = format!("http://a.example/{}", "x".repeat(2048));
    let mut cases = vec![
        case(r#"{"url": "hush"}"#.into(), 400, "http://"),
        case(r#"{"url": "ftp://hush/"}"#.into(), 400, "http://"),
        case(r#"{"url": ["hush"]}"#.into(), 400, "like"),
        case(r#"{"hush": 1}"#.into(), 400, "like"),
        case(
            r#"{"url": "http://a/", "url": "http://b/"}"#.into(),
            400,
            "line 1 column 26",
        ),
        case(
            r#"{"url": "http://hush\ud800/"}"#.into(),
            400,
            "line 1 column 27",
        ),
        case(
            r#"{"url": "http://a/", "rate": 1e999}"#.into(),
            400,
            "line 1 column 34",
        ),
        case(json!({ "url": long_url }).to_string(), 400, "2048"),
        case("x".repeat(6 * 2048 + 1025), 413, "too long"),
    ];
    for secret in ["hush", "whsec_hush", "whsec_AAAA"] {
        let body = json!({"url": "http://a.example/", "secret": secret});
        cases.push(case(body.to_string(), 400, "24 to 64 bytes"));
    }
    for rate in ["0", "-1", "1e9"] {
        let body = format!(r#"{{"url": "http://a.example/", "rate": {rate}}}"#);
        cases.push(case(body, 400, "between"));
    }
    for host in [
        "127.0.0.1:1",
        "[::1]",
        "10.1.2.3",
        "169.254.169.254",
        "[fd00::1]",
        "224.0.0.1",
    ] {
        let body = json!({ "url": format!("http://{host}/hush") });
        cases.push(case(body.to_string(), 400, "not public"));
    }
    assert_refused(cases).await;
}

#[tokio::test]
async fn there_is_nothing_else() {
    let case =
        |method, path: &str, status, why| (method, path.to_owned(), String::new(), status, why);
    let cases = [
        case(Method::POST, "/objects/o", 405, "method"),
        case(Method::PATCH, "/subscriptions/s", 405, "method"),
        case(Method::POST, "/", 405, "method"),
        case(Method::GET, "/objects", 404, "path"),
        case(Method::GET, "/page.html", 404, "path"),
        case(Method::POST, "/shards", 405, "method"),
        case(Method::GET, "/window/api/x", 404, "page"),
        case(Method::GET, "/deliveries", 400, "state"),
        case(Method::GET, "/deliveries?state=x", 400, "failed"),
        case(
            Method::GET,
            "/deliveries?state=failed&limit=x",
            400,
            "limit",
        ),
        case(
            Method::GET,
            "/deliveries?state=failed&after=x",
            400,
            "after",
        ),
    ];
    assert_refused(cases).await;
}

#[tokio::test]
async fn a_name_for_a_private_address_is_not_called() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--tries", "1"]);
    let receiver = Receiver::new(Manner::Steady).await;
    // What a name stands for shows when it is called.
    let url = format!("http://localhost:{}/hush", receiver.address.port());
    let json = json!({ "url": url });
    let answer = user.put(&service, "/subscriptions/s", &json).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    user.put(&service, "/objects/o", &json!(1)).await;
    user.settled(&service).await;
    let answer = user.get(&service, "/deliveries?state=failed").await;
    let error = answer.json["deliveries"][0]["error"].as_str().unwrap();
    assert!(error.ends_with("the host has no public address"), "{error}");
    assert_no_secret(error, "the answer".as_ref());
    assert_no_secret(&place.said(), &place.path("stderr"));
    assert_eq!(receiver.tried(), 0);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&QUICK);
    let elsewhere = Receiver::new(Manner::Steady).await;
    let receiver = Receiver::new(Manner::Redirecting(elsewhere.url())).await;
    user.put(
        &service,
        "/subscriptions/s",
        &json!({"url": receiver.url()}),
    )
    .await;
    user.put(&service, "/objects/o", &json!(1)).await;
    user.settled(&service).await;
    assert_eq!((receiver.tried(), elsewhere.tried()), (2, 0));
    let answer = user.get(&service, "/deliveries?state=failed").await;
    let error = answer.json["deliveries"][0]["error"].as_str().unwrap();
    assert!(error.ends_with("answered 307"), "{error}");
}

#[tokio::test]
async fn what_was_given_up_comes_back_with_a_change() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&QUICK);
    let dead = Dead::new();
    user.put(&service, "/subscriptions/s", &json!({"url": dead.url}))
        .await;
    for _ in 0..2 {
        let put = user.put(&service, "/objects/o", &json!(1)).await;
        user.settled(&service).await;
        let answer = user.get(&service, "/deliveries?state=failed").await;
        assert_eq!(answer.json["total"], 1);
        assert_eq!(answer.json["deliveries"][0]["version"], put.json["version"]);
    }
    let text = user.get(&service, "/metrics").await.json;
    let figure = "webhooks_deliveries_total{outcome=\"given_up\"} 2";
    assert!(text.as_str().unwrap().contains(figure), "{text}");
    // As a new receiver, it is owed everything again; as none, nothing.
    let receiver = Receiver::new(Manner::Steady).await;
    user.put(
        &service,
        "/subscriptions/s",
        &json!({"url": receiver.url()}),
    )
    .await;
    receiver
        .until("delivered", |receiver| receiver.taken() == 1)
        .await;
    user.settled(&service).await;
    assert_eq!(user.owed(&service, "failed").await, 0);
}

#[tokio::test]
async fn it_shows_how_it_is() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&QUICK);
    assert_eq!(user.get(&service, "/healthz").await.json, json!("ok\n"));
    let metrics = user.get(&service, "/metrics").await.json;
    for name in [
        "workqueue_depth{name=\"webhooks\"} 0",
        "workqueue_depth_max",
        "workqueue_delayed",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_coalesced_total",
    ] {
        assert!(
            metrics.as_str().unwrap().contains(name),
            "{name}: {metrics}"
        );
    }
    assert_eq!(user.get(&service, "/shards").await.json, Value::Null);
    // The window only looks.
    let shown = user.get(&service, "/window/api/queues").await.json;
    let queue = &shown["queues"][0];
    assert_eq!(
        (&queue["name"], &queue["ready"]),
        (&json!("webhooks"), &json!(0))
    );
    assert_eq!(
        (&queue["workers"], &shown["token"]),
        (&json!(32), &Value::Null)
    );
    let answer = user.get(&service, "/").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
}

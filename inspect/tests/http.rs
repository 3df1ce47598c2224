//! The window as a program sees it: pages, JSON and what describes it, events, and who may change
//! what.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use requeue::metrics::Times;
use requeue::priority::Groups;
use requeue::tokio::{DeadKeys, GroupLimits, WorkQueue, Workers};
use requeue_inspect::{Inspect, Inspector, Registry};
use serde_json::{Value, json};
use tower::ServiceExt;

type Queue = WorkQueue<String, Groups<String>>;

fn queue() -> Queue {
    let minute = std::time::Duration::from_secs(60);
    let builder = WorkQueue::builder()
        .backoff(minute, minute)
        .report_to(Times);
    builder.build_with_groups(|key: &String| key.split('/').next().unwrap().to_owned())
}

/// Something of each kind: ready, active, delayed, failed, dead and grouped.
async fn busy() -> (Queue, DeadKeys<String, String>, Inspector<Queue>) {
    let queue = queue();
    let dead = DeadKeys::new(10, |_, _| {});
    let inspector = Inspector::new("orders", &queue)
        .with_groups()
        .with_dead_keys(&dead);
    let limits = GroupLimits::new().max_active(2).rate(10.0, 5).weight(3);
    queue.limit_group("acme".to_owned(), limits).unwrap();
    let _ = queue.add_many(["acme/1", "acme/2", "zeta/bad", "zeta/3"].map(str::to_owned));
    queue
        .add_after(
            "zeta/later".to_owned(),
            std::time::Duration::from_secs(3_600),
        )
        .unwrap();
    dead.insert("zeta/dead".to_owned(), "no such order".to_owned());

    let workers = inspector.watch(Workers::new(1));
    let (begun, begins) = async_channel();
    let run = queue.run(workers, move |key: String| {
        let begun = begun.clone();
        async move {
            match &*key {
                "zeta/bad" => Err("the shop does not answer"),
                "zeta/3" => {
                    begun.notify_one();
                    std::future::pending().await
                }
                _ => Ok(()),
            }
        }
    });
    tokio::spawn(run);
    begins.notified().await;
    queue.add("acme/4".to_owned()).unwrap();
    (queue, dead, inspector)
}

fn async_channel() -> (Arc<tokio::sync::Notify>, Arc<tokio::sync::Notify>) {
    let notify = Arc::new(tokio::sync::Notify::new());
    (Arc::clone(&notify), notify)
}

fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost:81")
}

async fn send(app: &Router, request: Request<Body>) -> Response<Body> {
    app.clone().oneshot(request).await.unwrap()
}

async fn text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn get(app: &Router, path: &str) -> (StatusCode, String) {
    let answer = send(app, request("GET", path).body(Body::empty()).unwrap()).await;
    (answer.status(), text(answer).await)
}

async fn get_json(app: &Router, path: &str) -> Value {
    let (status, text) = get(app, path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        write!(all, "%{byte:02x}").unwrap();
        all
    })
}

/// Checks an answer against the description of its path.
fn check(document: &Value, method: &str, path: &str, status: u16, answer: &Value) {
    let pointer = format!(
        "/paths/{}/{method}/responses/{status}/content/application~1json/schema",
        path.replace('/', "~1")
    );
    let schema = document
        .pointer(&pointer)
        .unwrap_or_else(|| panic!("{pointer}"));
    let whole = json!({ "components": document["components"], "allOf": [schema] });
    let validator = jsonschema::validator_for(&whole).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{path}: {errors:?} in {answer}");
    described(document, schema, answer, path);
}

/// Checks that an answer has nothing that its description leaves out.
fn described(document: &Value, schema: &Value, answer: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(&name[1..]).unwrap();
        return described(document, schema, answer, at);
    }
    // What may be absent.
    let mut present = schema["oneOf"].as_array().into_iter().flatten();
    if let Some(present) = present.rfind(|one| one["type"] != "null") {
        if !answer.is_null() {
            described(document, present, answer, at);
        }
        return;
    }
    for (field, value) in answer.as_object().into_iter().flatten() {
        let schema = schema["properties"].get(field);
        let schema = schema.unwrap_or_else(|| panic!("{at}: {field} is not described"));
        described(document, schema, value, &format!("{at}/{field}"));
    }
    for value in answer.as_array().into_iter().flatten() {
        described(document, &schema["items"], value, at);
    }
}

#[tokio::test]
async fn every_answer_is_as_it_is_described() {
    let (_queue, _dead, inspector) = busy().await;
    let app = Registry::new().with(inspector).allow_control().router();
    let document = get_json(&app, "/api/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let mut checked = 0;
    for (path, methods) in paths.iter().filter(|(path, _)| !path.ends_with("/events")) {
        if methods.get("get").is_some() {
            let own = path.replace("{queue}", "orders");
            let own = if own.ends_with("/key") {
                own + "?id=zeta/bad"
            } else {
                own
            };
            let answer = get_json(&app, &own).await;
            check(&document, "get", path, 200, &answer);
            assert!(!answer.is_null() && answer != json!({}), "{path}");
            checked += 1;
        }
    }
    assert_eq!(checked, 10);

    let token = get_json(&app, "/api/queues").await["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = "/api/queues/{queue}/control";
    for (order, status) in [
        (json!({ "action": "pause" }), 200),
        (json!({ "action": "expedite", "id": "zeta/later" }), 200),
        (json!({ "action": "expedite", "id": "zeta/3" }), 409),
        (json!({ "action": "cancel", "id": "no such key" }), 404),
        (
            json!({ "action": "limit_group", "group": "acme", "limits": { "max_active": 9 } }),
            200,
        ),
    ] {
        let post = request("POST", "/api/queues/orders/control")
            .header("x-requeue-token", &token)
            .header("content-type", "application/json");
        let answer = send(&app, post.body(Body::from(order.to_string())).unwrap()).await;
        assert_eq!(answer.status(), status, "{order}");
        let answer = serde_json::from_str(&text(answer).await).unwrap();
        check(&document, "post", path, status, &answer);
    }
}

#[tokio::test]
async fn json_says_what_the_queue_does() {
    let (_queue, _dead, inspector) = busy().await;
    let app = Registry::new().with(inspector).router();
    let queue = get_json(&app, "/api/queues/orders").await;
    for (field, value) in [
        ("ready", 1),
        ("active", 1),
        ("delayed", 2),
        ("workers", 1),
        ("runs", 3),
        ("failures", 1),
        ("dead", 1),
    ] {
        assert_eq!(queue[field], value, "{field}");
    }
    let finding =
        "No worker is free: the only worker is busy, and there is a backlog of 1 ready key.";
    assert_eq!(queue["findings"], json!([finding]));

    let failed = get_json(&app, "/api/queues/orders/keys?sort=failures&limit=1").await;
    assert_eq!(failed["keys"][0]["id"], "zeta/bad");
    assert_eq!(
        (&failed["matching"], &failed["more"]),
        (&json!(4), &json!(true))
    );
    let why = failed["keys"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("backs off after 1 failure") && why.ends_with("the shop does not answer"),
        "{why}"
    );

    let acme = get_json(&app, "/api/queues/orders/keys?group=acme").await;
    assert_eq!(
        (
            acme["keys"].as_array().unwrap().len(),
            &acme["keys"][0]["id"]
        ),
        (1, &json!("acme/4"))
    );
    let next = get_json(&app, "/api/queues/orders/keys?sort=next&phase=delayed").await;
    assert_eq!(
        [&next["keys"][0]["id"], &next["keys"][1]["id"]],
        ["zeta/bad", "zeta/later"]
    );
    let searched = get_json(
        &app,
        "/api/queues/orders/keys?search=late&phase=&sort=&group=",
    )
    .await;
    assert_eq!(searched["keys"][0]["id"], "zeta/later");

    let groups = get_json(&app, "/api/queues/orders/groups").await;
    assert_eq!(groups["total"], 2);
    let limits =
        json!({ "max_active": 2, "weight": 3, "rate": { "per_second": 10.0, "burst": 5 } });
    assert_eq!(groups["groups"][0]["limits"], limits);
    assert_eq!(
        get_json(&app, "/api/queues/orders/runs").await[0]["id"],
        "zeta/3"
    );
    let ends = get_json(&app, "/api/queues/orders/ends?limit=1").await;
    assert_eq!(
        (&ends[0]["id"], &ends[0]["outcome"]),
        (&json!("zeta/bad"), &json!("failed"))
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_in_a_sentence() {
    let (_queue, _dead, inspector) = busy().await;
    let app = Router::new().nest("/ops/queues", Registry::new().with(inspector).router());
    for (path, sentence) in [
        ("/api/queues/nodes", "there is no queue named `nodes` here"),
        (
            "/api/queues/nodes/events",
            "there is no queue named `nodes` here",
        ),
        (
            "/api/queues/orders/key?id=x",
            "the queue has no key `x`, and none like it has run of late",
        ),
        ("/api/nothing", "there is no such page"),
    ] {
        let (status, answer) = get(&app, &format!("/ops/queues{path}")).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (status, &answer["error"]),
            (StatusCode::NOT_FOUND, &json!(sentence))
        );
    }
    for (path, sentence) in [
        ("/queues/nodes", "There is no queue named `nodes` here."),
        (
            "/queues/orders/key?id=%3Cb%3E",
            "The queue has no key `&lt;b&gt;`, and",
        ),
        ("/nothing", "There is no such page."),
    ] {
        let (status, page) = get(&app, &format!("/ops/queues{path}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(
            page.contains(sentence) && page.contains("href=\"/ops/queues\""),
            "{page}"
        );
    }
    let (status, answer) = get(&app, "/ops/queues/api/queues/orders/keys?limit=many").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(answer.contains("invalid digit"), "{answer}");
}

#[tokio::test]
async fn links_of_a_nested_window_lead_to_its_pages() {
    let (_queue, _dead, inspector) = busy().await;
    let app = Router::new().nest("/ops", Registry::new().with(inspector).router());
    let mut paths = vec!["/ops".to_owned()];
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        let (status, page) = get(&app, &path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        for link in page.split("href=\"").skip(1) {
            let link = link.split(['"', '#']).next().unwrap().replace("&amp;", "&");
            if !link.is_empty() && !paths.contains(&link) && paths.len() < 50 {
                paths.push(link);
            }
        }
        at += 1;
    }
    assert!(paths.len() > 10, "{paths:?}");
}

#[tokio::test]
async fn hostile_ids_do_no_harm() {
    let queue: WorkQueue<String> = WorkQueue::new();
    let dead = DeadKeys::new(10, |_, _| {});
    let app = Registry::new()
        .with(Inspector::new("<i>", &queue).with_dead_keys(&dead))
        .allow_control()
        .router();
    let hostile = [
        "</td><script>alert(1)</script>".to_owned(),
        "\" onmouseover=\"alert(1)".to_owned(),
        "nul \0 escape \u{1b}[2J turn \u{202e} line \r\n feed".to_owned(),
        format!("{}end", "ä<&\"'".repeat(1_200)),
        "../..?id=x&y#z/".to_owned(),
        String::new(),
    ];
    for id in &hostile {
        queue.add_rate_limited(id.clone()).unwrap();
        dead.insert(id.clone(), id.clone());
    }
    let (status, page) = get(&app, "/queues/%3Ci%3E").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        !page.contains("<script>") && !page.contains("\" onmouseover") && !page.contains("<i>")
    );
    let strange = |c: char| c.is_control() && c != '\r' && c != '\n' || c == '\u{202e}';
    assert_eq!(page.chars().filter(|c| strange(*c)).count(), 0);
    assert!(page.len() < 150_000, "{}", page.len());

    for id in &hostile {
        let path = format!("/queues/%3Ci%3E/key?id={}", encode(id));
        assert!(
            page.contains(&path.to_uppercase()[..20].to_lowercase()) || page.contains("key?id=")
        );
        let (status, page) = get(&app, &path).await;
        assert_eq!(status, StatusCode::OK, "{id:?}");
        assert!(!page.contains("<script>"), "{page}");
        let detail = get_json(&app, &format!("/api{path}")).await;
        assert_eq!(detail["key"]["id"], **id);
    }
    // Too long to be kept whole: shown, and not found.
    queue.add("x".repeat(100_000)).unwrap();
    let (status, page) = get(&app, "/queues/%3Ci%3E").await;
    assert!(
        status == StatusCode::OK && page.len() < 200_000,
        "{}",
        page.len()
    );
}

#[tokio::test]
async fn only_a_page_of_its_own_changes_a_queue() {
    let queue: WorkQueue<String> = WorkQueue::new();
    let inspector = Inspector::new("orders", &queue);
    let app = Registry::new()
        .with(inspector.clone())
        .allow_control()
        .allow_host("Ops.example")
        .user_header("x-user".parse().unwrap())
        .router();
    let token = get_json(&app, "/api/queues").await["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let form = |token: &str| Body::from(format!("token={token}&action=pause"));
    let post = || {
        let kind = "application/x-www-form-urlencoded";
        request("POST", "/queues/orders/control").header("content-type", kind)
    };
    let wrong = "0".repeat(token.len());
    for (request, sentence) in [
        (post().body(form("")), "The token is wrong"),
        (post().body(form(&wrong)), "The token is wrong"),
        (
            post()
                .header("origin", "http://evil.example")
                .body(form(&token)),
            "another origin",
        ),
        (
            post().header("origin", "null").body(form(&token)),
            "another origin",
        ),
        (
            post()
                .header("origin", "http://localhost:82")
                .body(form(&token)),
            "another origin",
        ),
    ] {
        let answer = send(&app, request.unwrap()).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{sentence}");
        let page = text(answer).await;
        assert!(page.contains(sentence) && !queue.is_paused(), "{page}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:81",
    ] {
        let get = Request::builder().uri("/api/queues").header("host", host);
        let answer = send(&app, get.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
        assert!(!text(answer).await.contains(&token));
    }
    for host in ["127.0.0.1:81", "[::1]", "ops.example:99", "LOCALHOST"] {
        let get = Request::builder().uri("/api/queues").header("host", host);
        let answer = send(&app, get.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
    }
    let nameless = Request::builder().uri("/").body(Body::empty()).unwrap();
    assert_eq!(send(&app, nameless).await.status(), StatusCode::BAD_REQUEST);
    for path in ["/queues/orders/control", "/api/queues/orders/control"] {
        assert_eq!(get(&app, path).await.0, StatusCode::METHOD_NOT_ALLOWED);
    }
    assert!(!queue.is_paused());

    let own = post()
        .header("origin", "http://localhost:81")
        .header("x-user", "ada");
    let answer = send(&app, own.body(form(&token)).unwrap()).await;
    assert_eq!(
        (answer.status(), &answer.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/queues/orders".parse().unwrap())
    );
    assert!(queue.is_paused());
    let actions = get_json(&app, "/api/actions").await;
    let done = ["who", "queue", "what", "outcome"].map(|field| actions[0][field].as_str().unwrap());
    assert_eq!(
        done,
        [
            "ada",
            "orders",
            "{\"action\":\"pause\"}",
            "paused the queue"
        ]
    );

    // A window that only looks has no token, and takes none.
    let app = Registry::new().with(inspector).router();
    assert_eq!(get_json(&app, "/api/queues").await["token"], Value::Null);
    let answer = send(&app, post().body(form(&token)).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(
        !get(&app, "/queues/orders")
            .await
            .1
            .contains("<form class=\"control\"")
    );
}

#[tokio::test]
async fn every_answer_has_a_strict_policy() {
    let app = Registry::new()
        .with(Inspector::new("orders", &queue()))
        .router();
    for path in [
        "/",
        "/queues/orders",
        "/style.css",
        "/script.js",
        "/api/queues",
        "/nothing",
    ] {
        let answer = send(&app, request("GET", path).body(Body::empty()).unwrap()).await;
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{path}"
        );
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let text = text(answer).await;
        assert!(
            !text.contains("://") && !text.contains("style="),
            "{path} has what is from elsewhere, or inline"
        );
    }
}

/// Every action of the page, by the field names of its forms.
#[tokio::test]
async fn each_form_does_what_it_says() {
    let queue = queue();
    let dead = DeadKeys::new(10, |_, _| {});
    let inspector = Inspector::new("orders", &queue)
        .with_groups()
        .with_dead_keys(&dead);
    let _workers = inspector.watch(Workers::<_, String>::new(2));
    let app = Registry::new()
        .with(inspector.clone())
        .allow_control()
        .router();
    let token = get_json(&app, "/api/queues").await["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let act = async |fields: &str| {
        let post = request("POST", "/queues/orders/control");
        let post = post.header("content-type", "application/x-www-form-urlencoded");
        let body = Body::from(format!("token={token}&{fields}"));
        send(&app, post.body(body).unwrap()).await.status()
    };
    let done = StatusCode::SEE_OTHER;
    let minute = std::time::Duration::from_secs(60);
    queue.add_after("a/1".to_owned(), minute).unwrap();
    assert_eq!(act("action=expedite&id=a/1").await, done);
    assert!(queue.state("a/1").unwrap().ready);
    assert_eq!(act("action=expedite&id=a/1").await, StatusCode::CONFLICT);
    assert_eq!(act("action=cancel&id=a/1").await, done);
    assert!(!queue.contains("a/1"));
    assert_eq!(act("action=cancel&id=a/1").await, StatusCode::NOT_FOUND);

    for id in ["a/2", "a/3"] {
        dead.insert(id.to_owned(), "no such order".to_owned());
    }
    assert_eq!(act("action=retry_dead&id=a/2").await, done);
    assert_eq!(act("action=drop_dead&id=a/3").await, done);
    assert!(dead.is_empty() && queue.contains("a/2") && !queue.contains("a/3"));
    assert_eq!(act("action=retry_dead&id=a/2").await, StatusCode::NOT_FOUND);

    assert_eq!(act("action=pause").await, done);
    assert!(queue.is_paused());
    assert_eq!(act("action=unpause").await, done);
    assert!(!queue.is_paused());
    assert_eq!(act("action=pause_group&group=a").await, done);
    assert!(queue.group("a").unwrap().paused);
    assert_eq!(act("action=unpause_group&group=a").await, done);
    assert!(!queue.group("a").unwrap().paused);
    assert_eq!(
        act("action=pause_group&group=b").await,
        StatusCode::NOT_FOUND
    );
    let limits = "max_active=3&weight=2&per_second=0.5&burst=4";
    assert_eq!(
        act(&format!("action=limit_group&group=a&{limits}")).await,
        done
    );
    let group = queue.group("a").unwrap();
    assert_eq!(
        (group.max_active, group.weight, group.rate),
        (Some(3), 2, Some((0.5, 4)))
    );
    assert_eq!(
        act("action=limit_group&group=a&max_active=&weight=&per_second=&burst=").await,
        done
    );
    assert_eq!(queue.group("a").unwrap().max_active, None);
    assert_eq!(
        act("action=limit_group&group=a&max_active=few").await,
        StatusCode::BAD_REQUEST
    );

    assert_eq!(act("action=set_workers&workers=7").await, done);
    assert_eq!(inspector.view().workers, Some(7));
    assert_eq!(
        act("action=set_workers&workers=").await,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(act("action=dance").await, StatusCode::BAD_REQUEST);
}

/// A reader that does not read makes the window compute nothing, and 64 of them are enough.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_events_holds_no_memory() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use requeue_inspect::{
        Command, ControlError, DeadKeyView, EndView, GroupPage, KeyDetail, KeyPage, KeyQuery,
        QueueView, RunView,
    };

    /// Counts how often it is looked at.
    struct Counting(Arc<AtomicUsize>);

    impl Inspect for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn view(&self) -> QueueView {
            self.0.fetch_add(1, Ordering::Relaxed);
            QueueView::default()
        }
        fn keys(&self, _: &KeyQuery) -> KeyPage {
            KeyPage::default()
        }
        fn key(&self, _: &str) -> Option<KeyDetail> {
            None
        }
        fn runs(&self, _: usize) -> Vec<RunView> {
            Vec::new()
        }
        fn ends(&self, _: usize) -> Vec<EndView> {
            Vec::new()
        }
        fn dead_keys(&self, _: usize) -> Vec<DeadKeyView> {
            Vec::new()
        }
        fn groups(&self, _: usize) -> GroupPage {
            GroupPage::default()
        }
        fn control(&self, _: &Command) -> Result<String, ControlError> {
            Err(ControlError::NoKey)
        }
    }

    let looks = Arc::new(AtomicUsize::new(0));
    let app = Registry::new().with(Counting(Arc::clone(&looks))).router();
    let path = "/api/queues/counting/events";
    let mut readers = Vec::new();
    for _ in 0..64 {
        let answer = send(&app, request("GET", path).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        readers.push(answer.into_body());
    }
    let answer = send(&app, request("GET", path).body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);

    let before = looks.load(Ordering::Relaxed);
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    let sampled = looks.load(Ordering::Relaxed) - before;
    assert!(
        sampled <= 101,
        "{sampled} looks in 100 seconds, one a second is the picture's"
    );
    // One that reads gets one event, not a hundred. What keeps the connection alive is none.
    let mut reader = readers.pop().unwrap();
    let event = loop {
        let part = reader.frame().await.unwrap().unwrap().into_data().unwrap();
        if part.starts_with(b"data: ") {
            break String::from_utf8(part.to_vec()).unwrap();
        }
    };
    assert_eq!(event.matches("data: ").count(), 1, "{event}");
    // Whoever leaves makes room.
    drop(reader);
    let answer = send(&app, request("GET", path).body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

/// The log of the program says who did what, also of what was refused.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn actions_are_logged_with_who_and_what() {
    use std::fmt::Debug;
    use std::sync::Mutex;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// The fields of each event of the window.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    struct Fields(String);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0, "{field}={value:?} ").unwrap();
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "requeue_inspect"
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let mut fields = Fields(String::new());
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    // Of the whole program, because actions run on threads of the runtime.
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let queue: WorkQueue<String> = WorkQueue::new();
    let app = Registry::new()
        .with(Inspector::new("logged", &queue))
        .allow_control()
        .user_header("x-user".parse().unwrap())
        .router();
    let token = get_json(&app, "/api/queues").await["token"].clone();
    for order in [
        json!({ "action": "pause" }),
        json!({ "action": "cancel", "id": "gone" }),
    ] {
        let post = request("POST", "/api/queues/logged/control")
            .header("x-requeue-token", token.as_str().unwrap())
            .header("x-user", "ada")
            .header("content-type", "application/json");
        send(&app, post.body(Body::from(order.to_string())).unwrap()).await;
    }
    let mut logged = log.0.lock().unwrap().clone();
    logged.retain(|fields| fields.contains("logged"));
    let expected = [
        r#"message=action queue="logged" who="ada" what="{\"action\":\"pause\"}" outcome="paused the queue" "#,
        r#"message=action queue="logged" who="ada" what="{\"action\":\"cancel\",\"id\":\"gone\"}" outcome="the queue does not have this key" "#,
    ];
    assert_eq!(logged, expected);
}

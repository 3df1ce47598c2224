//! Which browsers are let in: those on the service's own page, under a name that is its own.

use crate::support::{Place, Service, User};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends a request with these headers and returns the status and the whole answer.
async fn status_for(service: &Service, method: &str, path: &str, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test]
async fn a_foreign_host_is_refused() {
    let place = Place::new();
    let service = place.start(&["--host", "hooks.example"]);
    let local = service.address.to_string();
    for host in [
        &local,
        "localhost",
        "LOCALHOST:1",
        "[::1]",
        "hooks.example",
        "Hooks.Example:99",
    ] {
        for path in ["/healthz", "/window/queues/webhooks"] {
            let head = format!("Host: {host}\r\n");
            let (status, answer) = status_for(&service, "GET", path, &head).await;
            assert_eq!(status, 200, "{host}: {answer}");
        }
    }
    let foreign = "evil.example";
    for host in [
        foreign,
        "127.0.0.1.evil.example",
        "hooks.example.evil.example",
        "localhost.",
    ] {
        for (method, path) in [
            ("GET", "/healthz"),
            ("GET", "/"),
            ("GET", "/window/api/queues"),
            ("DELETE", "/objects/o"),
        ] {
            let head = format!("Host: {host}\r\n");
            let (status, answer) = status_for(&service, method, path, &head).await;
            assert_eq!(status, 421, "{method} {host}: {answer}");
            assert!(answer.contains("--host"), "{answer}");
        }
    }
    // What the target names counts as much as the header.
    let head = format!("Host: {local}\r\n");
    let elsewhere = format!("http://{foreign}/healthz");
    assert_eq!(status_for(&service, "GET", &elsewhere, &head).await.0, 421);
    let here = format!("http://{local}/healthz");
    assert_eq!(status_for(&service, "GET", &here, &head).await.0, 200);
    for head in ["", "Host: a b\r\n", "Host: me@localhost\r\n", "Host:\r\n"] {
        assert_eq!(
            status_for(&service, "GET", "/healthz", head).await.0,
            400,
            "{head}"
        );
    }
    let twice = format!("Host: {local}\r\nHost: {foreign}\r\n");
    assert_eq!(status_for(&service, "GET", "/healthz", &twice).await.0, 400);
}

#[tokio::test]
async fn a_write_from_another_origin_is_refused() {
    let (place, user) = (Place::new(), User::new());
    let service = place.start(&["--host", "hooks.example"]);
    user.put(&service, "/objects/o", &json!(1)).await;
    let local = service.address.to_string();
    for (host, origin) in [
        (local.as_str(), "http://evil.example".to_owned()),
        (
            &local,
            format!("http://localhost:{}", service.address.port()),
        ),
        (&local, "http://127.0.0.1".into()),
        (&local, "null".into()),
        (
            &local,
            format!("http://{local}\r\nOrigin: http://evil.example"),
        ),
        ("hooks.example", "https://hooks.example:1".into()),
    ] {
        let head = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        let (status, answer) = status_for(&service, "DELETE", "/objects/o", &head).await;
        assert_eq!(status, 403, "{origin}: {answer}");
        assert!(answer.contains("another origin"), "{answer}");
    }
    assert_eq!(user.get(&service, "/objects/o").await.status, 200);
    for (host, origin) in [
        (local.as_str(), format!("http://{local}")),
        ("hooks.example", "https://hooks.example".into()),
    ] {
        user.put(&service, "/objects/o", &json!(1)).await;
        let head = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        let (status, answer) = status_for(&service, "DELETE", "/objects/o", &head).await;
        assert_eq!(status, 204, "{origin}: {answer}");
    }
}

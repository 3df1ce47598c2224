//! Which receivers are called, over TLS and without.

use std::sync::Mutex;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use reqwest::Certificate;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn target(url: &str) -> Target {
    Target::parse(url, true).unwrap()
}

#[test]
fn the_innermost_cause_of_an_error_is_shown() {
    #[derive(Debug)]
    struct Outer(io::Error);
    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }
    let outer = Outer(io::Error::other("x".repeat(999)));
    assert_eq!(cause(&outer), "x".repeat(200));
}

#[test]
fn of_several_addresses_the_public_ones_are_called() {
    let found = ["10.0.0.1:80", "1.1.1.1:80", "[::1]:80", "[2606:4700::1]:80"];
    let found = || found.iter().map(|address| address.parse().unwrap());
    let expected: Vec<_> = found().skip(1).step_by(2).collect();
    assert_eq!(permitted(found(), false), expected);
    assert_eq!(permitted(found(), true).len(), 4);
}

#[tokio::test]
async fn what_a_name_stands_for_is_checked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://localhost:{}/",
        listener.local_addr().unwrap().port()
    );
    let poster = Poster::new(false, LONG, None).unwrap();
    let refusal = poster.post(&target(&url), Bytes::new(), None).await;
    let expected = "cannot connect: the host has no public address";
    assert_eq!(refusal.unwrap_err().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_answer_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let poster = Poster::new(true, LONG, None).unwrap();
    let posted = poster.post(&target(&url), Bytes::new(), None).await;
    assert!(matches!(posted, Err(Refusal::TimedOut)), "{posted:?}");
}

/// Takes one delivery over TLS, as `localhost`, and returns its headers.
async fn receive(listener: TcpListener, config: ServerConfig) -> HeaderMap {
    let (stream, _) = listener.accept().await.unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let seen = Arc::new(Mutex::new(HeaderMap::new()));
    // A client that does not trust the certificate leaves.
    if let Ok(stream) = acceptor.accept(stream).await {
        let shared = Arc::clone(&seen);
        let take = post(async move |headers| *shared.lock().unwrap() = headers);
        let service = TowerToHyperService::new(Router::new().route("/x", take));
        let connection = http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
    }
    seen.lock().unwrap().clone()
}

#[tokio::test]
async fn over_tls_a_receiver_has_to_prove_who_it_is() {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = || signing_key.serialize_der().try_into().unwrap();
    let server = || {
        let config = ServerConfig::builder().with_no_client_auth();
        let chain = vec![cert.der().clone()];
        config.with_single_cert(chain, key()).unwrap()
    };
    let root = Certificate::from_der(cert.der()).unwrap();
    let trusting = client(true, LONG).add_root_certificate(root);
    let posters = [
        Poster {
            client: trusting.build().unwrap(),
            secret: None,
        },
        Poster::new(true, LONG, None).unwrap(),
    ];
    for (poster, is_trusted) in posters.iter().zip([true, false]) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = target(&format!("https://me@localhost:{port}/x"));
        let post = poster.post(&target, Bytes::from_static(b"{}"), None);
        let (posted, headers) = tokio::join!(post, receive(listener, server()));
        match posted {
            Ok(()) => assert!(is_trusted),
            Err(refusal) => assert!(!is_trusted, "{refusal}"),
        }
        assert_eq!(headers.contains_key(AUTHORIZATION), is_trusted);
    }
}

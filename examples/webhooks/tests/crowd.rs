//! More connections than there may be, from one address, and a health check that gets through.
#![cfg(unix)]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

mod support;

use support::{BROKEN_AFTER, Place, Service, User};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// No connection ends by itself while a test runs.
const PATIENT: [&str; 2] = ["--idle", "86400"];

async fn assert_healthy(service: &Service) {
    for _ in 0..3 {
        let user = User::new();
        let answered = timeout(BROKEN_AFTER, user.get(service, "/healthz")).await;
        assert!(answered.is_ok(), "no answer");
        assert_eq!(answered.unwrap().status, 200);
    }
}

async fn assert_healthy_among_idle(service: &Service) {
    let mut idle = Vec::new();
    for _ in 0..600 {
        idle.push(TcpStream::connect(service.address).await.unwrap());
    }
    assert_healthy(service).await;
}

#[tokio::test]
async fn idle_connections_do_not_keep_a_health_check_out() {
    let place = Place::new();
    assert_healthy_among_idle(&place.start(&PATIENT)).await;
}

#[tokio::test]
async fn nor_do_they_where_file_descriptors_are_fewer() {
    let place = Place::new();
    assert_healthy_among_idle(&place.start_with_files(64, &PATIENT)).await;
}

#[tokio::test]
async fn nor_do_connections_that_never_read() {
    let place = Place::new();
    let service = place.start(&PATIENT);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", service.address);
    let requests = request.repeat(1000);
    let mut deaf = Vec::new();
    for _ in 0..520 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(service.address).await.unwrap();
        // One that was closed to make room takes no more.
        let _ = stream.write_all(requests.as_bytes()).await;
        deaf.push(stream);
    }
    assert_healthy(&service).await;
}

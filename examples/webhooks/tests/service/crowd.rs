//! More connections than there may be, from one address, and a health check that gets through.

use crate::support::{BROKEN_AFTER, Place, Service, User};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// No connection ends by itself while a test runs.
const PATIENT: [&str; 2] = ["--idle", "86400"];

/// As above, and there may be few connections.
const SMALL: [&str; 4] = ["--idle", "86400", "--connections", "48"];

/// More than there may be; few enough for a system that lets a process open 256 files.
const CROWD: usize = 60;

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
    for _ in 0..CROWD {
        idle.push(TcpStream::connect(service.address).await.unwrap());
    }
    assert_healthy(service).await;
}

#[tokio::test]
async fn idle_connections_do_not_keep_a_health_check_out() {
    let place = Place::new();
    assert_healthy_among_idle(&place.start(&SMALL)).await;
}

#[tokio::test]
async fn nor_do_they_where_file_descriptors_are_fewer() {
    let place = Place::new();
    assert_healthy_among_idle(&place.start_with_files(48, &PATIENT)).await;
}

#[tokio::test]
async fn nor_do_connections_that_never_read() {
    let place = Place::new();
    let service = place.start(&SMALL);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", service.address);
    let requests = request.repeat(1000);
    let mut deaf = Vec::new();
    for _ in 0..CROWD {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(service.address).await.unwrap();
        // One that was closed to make room takes no more.
        let _ = stream.write_all(requests.as_bytes()).await;
        deaf.push(stream);
    }
    assert_healthy(&service).await;
}

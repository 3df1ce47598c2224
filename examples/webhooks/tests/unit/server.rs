//! Clients that take what they can, over real sockets; and the time that each thing may take, over
//! a pipe whose clock stands still.

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::args::Options;

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(86_400);

/// Long after what is tested should have happened.
const BROKEN_AFTER: Duration = Duration::from_secs(120);

/// A body that does not fit into what is buffered on the way.
const LONG: usize = 1_000_000;

fn router() -> Router {
    Router::new()
        .route("/", get("ok"))
        .route("/long", get(async || "x".repeat(LONG)))
}

/// Serves with room for eight connections, none of which ends by itself.
async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits {
        connections: 8.try_into().unwrap(),
        per_client: 8.try_into().unwrap(),
        idle: NEVER,
        age: NEVER,
    };
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, limits, stop, router()));
    address
}

async fn assert_answered(address: SocketAddr) {
    let ask = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(HEAD).await.unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    };
    let asked = timeout(BROKEN_AFTER, ask).await;
    assert!(asked.is_ok(), "no answer");
}

#[tokio::test]
async fn idle_connections_make_room() {
    let address = start().await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    for _ in 0..9 {
        assert_answered(address).await;
    }
    // The oldest of them was closed.
    let ended = timeout(BROKEN_AFTER, idle[0].read(&mut [0])).await;
    assert_eq!(ended.unwrap().unwrap_or(0), 0);
}

#[tokio::test]
async fn connections_that_never_read_make_room() {
    let address = start().await;
    let mut deaf = Vec::new();
    for _ in 0..40 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let head = b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n";
        // One that was closed already takes no more.
        let _ = stream.write_all(&head.repeat(64)).await;
        deaf.push(stream);
    }
    assert_answered(address).await;
}

/// A client of a connection with the usual limits, and when it ends.
fn connect() -> (DuplexStream, tokio::task::JoinHandle<Duration>) {
    let (client, server) = duplex(1024);
    let limits = Options::default().limits;
    let mut connections = Connections::new(limits.clone());
    let (progress, given) = tokio::sync::oneshot::channel();
    connections.admit(Client::from(std::net::IpAddr::from([1, 1, 1, 1])), |p| {
        let _ = progress.send(p);
        std::future::ready(())
    });
    let ended = tokio::spawn(async move {
        let (begun, progress) = (Instant::now(), given.await.unwrap());
        let stop = CancellationToken::new();
        converse(server, progress, limits, stop, router()).await;
        begun.elapsed()
    });
    (client, ended)
}

async fn seconds(ended: tokio::task::JoinHandle<Duration>) -> u64 {
    ended.await.unwrap().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_head_has_to_come() {
    let (_silent, ended) = connect();
    assert_eq!(seconds(ended).await, 10);
    // A byte now and then is no head either.
    let (mut slow, ended) = connect();
    for byte in HEAD {
        sleep(Duration::from_secs(1)).await;
        if slow.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    assert_eq!(seconds(ended).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_head_has_its_limit() {
    let (mut client, ended) = connect();
    let head = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(2 * BUFFER_BYTES_MAX));
    let _ = client.write_all(head.as_bytes()).await;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(seconds(ended).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let (mut client, ended) = connect();
    client.write_all(HEAD).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    client.write_all(HEAD).await.unwrap();
    assert_eq!(seconds(ended).await, 15);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_left() {
    let (mut deaf, ended) = connect();
    deaf.write_all(&HEAD.repeat(30)).await.unwrap();
    assert_eq!(seconds(ended).await, 10);
}

#[tokio::test(start_paused = true)]
async fn one_that_reads_too_slowly_is_left_in_the_end() {
    let (mut slow, ended) = connect();
    let head = b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n";
    slow.write_all(head).await.unwrap();
    let mut some = [0; 16];
    while slow.read(&mut some).await.is_ok_and(|len| len > 0) {
        sleep(Duration::from_secs(1)).await;
    }
    let expected = Options::default().limits.age + LAST_REQUEST;
    assert_eq!(seconds(ended).await, expected.as_secs());
}

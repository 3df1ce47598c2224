//! Connections from clients: how many there are, and how long they last.

mod connections;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use requeue::tokio::CancellationToken;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::io::{InspectReader, InspectWriter};

use connections::{Client, Connections, Progress};

/// What a client may take up. The time for a body and for an answer is limited in `api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many connections there are at once.
    pub(crate) connections: usize,
    /// How many of them are of one client.
    pub(crate) per_client: usize,
    /// How long a client may take from one request to the head of the next, and to read some of
    /// an answer.
    pub(crate) idle: Duration,
    /// When a connection ends after its present request: a client that reads a byte now and then
    /// does not stay.
    pub(crate) age: Duration,
}

/// How large a request's head may be, and how much of the answers waits for the client.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How long the last request of a connection may still take; also when the service stops.
const LAST_REQUEST: Duration = Duration::from_secs(5);

/// How much of the answers the system keeps for a client that does not read, about: its own limit
/// is megabytes for each connection.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;

/// How many connections the system keeps until they are accepted.
const BACKLOG: u32 = 1024;

/// The pause after a failed accept, in which a closed connection gives its descriptor back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(1);

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            per_client: 128,
            idle: Duration::from_secs(10),
            age: Duration::from_secs(300),
        }
    }
}

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // As `TcpListener::bind` does it: elsewhere this would let another program listen here, too.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Connections inherit it.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` is cancelled, and then what was begun. `answer` gets a request and the
/// address at which it came in.
pub(crate) async fn serve<A, F>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    answer: A,
) where
    A: Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut connections = Connections::new(limits.clone());
    let accept = async {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Unless the client has left, file descriptors are short.
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        connections.close_one();
                    }
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // It has no address if the client is gone already.
            let Ok(local) = stream.local_addr() else {
                continue;
            };
            // Responses are small, so each is sent at once (no Nagle delay).
            let _ = stream.set_nodelay(true);
            let (answer, limits, stop) = (answer.clone(), limits.clone(), stop.clone());
            connections.admit(Client::from(peer.ip()), |progress| async move {
                let answer = |request| answer(local, request);
                converse(stream, progress, limits, stop, answer).await;
            });
        }
    };
    stop.run_until_cancelled(accept).await;
    drop(listener);
    connections.ended().await;
}

/// Serves one connection.
async fn converse<S, A, F>(
    stream: S,
    progress: Progress,
    limits: Limits,
    stop: CancellationToken,
    answer: A,
) where
    S: AsyncRead + AsyncWrite,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let stream = InspectReader::new(stream, |_: &[u8]| progress.step());
    let stream = InspectWriter::new(stream, |_: &[u8]| progress.step());
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.idle));
    let service = service_fn(|request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // The client caused the error, and knows of it.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
        () = sleep(limits.age) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_REQUEST, connection).await;
}

#[cfg(test)]
mod tests;

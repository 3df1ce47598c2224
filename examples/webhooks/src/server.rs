//! Connections from clients: how many there are, and how long they last.

mod connections;

use std::convert::Infallible;
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
use tokio::net::TcpListener;
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
    /// How long a request's head may take, and with it how long a connection may idle.
    pub(crate) head: Duration,
    /// How long a client may take to read something of its answer.
    pub(crate) write: Duration,
    /// When a connection ends after its present request: a client that reads a byte now and then
    /// does not stay.
    pub(crate) age: Duration,
}

/// How large a request's head may be, and how much of the answers waits for the client.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How long the last request of a connection may still take; also when the service stops.
const LAST_REQUEST: Duration = Duration::from_secs(5);

/// The pause after a failed accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            per_client: 128,
            head: Duration::from_secs(10),
            write: Duration::from_secs(10),
            age: Duration::from_secs(300),
        }
    }
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
            let Ok((stream, peer)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // It has no address if the client is gone already.
            let Ok(local) = stream.local_addr() else {
                continue;
            };
            // Answers are small: they are sent at once, and not held back for more to come.
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
    stream.set_write_timeout(Some(limits.write));
    let service = service_fn(|request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
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

//! Connections from clients: how many there are, and how long they last.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use clap::Args;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use requeue::tokio::CancellationToken;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::io::{InspectReader, InspectWriter};

use crate::args::seconds;

use crate::connections::{Client, Connections, Progress};

/// What a client may take up. The time for a body and for an answer is limited in `api`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct Limits {
    /// How long a client may take for the head of its next request, or to read some of an answer
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) idle: Duration,
    /// How many connections at once. At the limit the one that was silent longest makes room
    #[arg(long, value_name = "N", default_value = "512")]
    pub(crate) connections: NonZeroUsize,
    /// How many of these from one address
    #[arg(long, value_name = "N", default_value = "128")]
    pub(crate) per_client: NonZeroUsize,
    /// When a connection ends after its present request: a client that reads a byte now and then
    /// does not stay.
    #[arg(skip = Duration::from_secs(300))]
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

/// Serves until `stop` is cancelled, and then requests that were begun.
pub(crate) async fn serve(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    router: Router,
) {
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
            // Responses are small, so each is sent at once (no Nagle delay).
            let _ = stream.set_nodelay(true);
            let (router, limits, stop) = (router.clone(), limits.clone(), stop.clone());
            connections.admit(Client::from(peer.ip()), |progress| {
                converse(stream, progress, limits, stop, router)
            });
        }
    };
    stop.run_until_cancelled(accept).await;
    drop(listener);
    connections.ended().await;
}

/// Serves one connection.
async fn converse<S: AsyncRead + AsyncWrite>(
    stream: S,
    progress: Progress,
    limits: Limits,
    stop: CancellationToken,
    router: Router,
) {
    let stream = InspectReader::new(stream, |_: &[u8]| progress.step());
    let stream = InspectWriter::new(stream, |_: &[u8]| progress.step());
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.idle));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(
            TokioIo::new(Box::pin(stream)),
            TowerToHyperService::new(router),
        );
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
#[path = "../tests/unit/server.rs"]
mod tests;

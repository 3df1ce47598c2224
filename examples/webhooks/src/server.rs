//! Connections from users: how many there are, and how long they last.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use requeue::tokio::CancellationToken;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api::Api;

/// More wait in the system's backlog until one ends.
const CONNECTIONS_MAX: usize = 512;

/// How long a request's head may take, and with it how long a connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Then a connection ends after its present request, and its client makes a new one: whoever reads
/// its answers too slowly does not stay for ever.
const AGE_MAX: Duration = Duration::from_secs(300);

/// How long the present request may still take then; also when the service stops.
const LAST_REQUEST: Duration = Duration::from_secs(5);

/// How long nobody is accepted after that has failed, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is cancelled, and what was begun by then.
pub(crate) async fn serve(listener: TcpListener, api: Arc<Api>, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let accept = async {
        // Nobody closes the semaphore.
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let served = converse(stream, Arc::clone(&api), stop.clone());
                    connections.spawn(async move {
                        served.await;
                        drop(permit);
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
            while connections.try_join_next().is_some() {}
        }
    };
    stop.run_until_cancelled(accept).await;
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection.
async fn converse(stream: TcpStream, api: Arc<Api>, stop: CancellationToken) {
    // Answers are small and are not to wait for more.
    let _ = stream.set_nodelay(true);
    // It has none if the client is gone already.
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let service = service_fn(|request| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(api.answer(local, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // An error is the client's, who knows.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
        () = sleep(AGE_MAX) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_REQUEST, connection).await;
}

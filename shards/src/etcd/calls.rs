//! Calls that skip nodes that do not reply.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error};
use tokio::time::{Instant, sleep_until, timeout};

use super::history::History;
use crate::backoff::Backoff;
use crate::error::{EngineError, Source};

/// The nodes of a cluster. Calls go to one of them.
///
/// One etcd-client for all nodes would also send calls to dead nodes. So each node has its own
/// client, which is dropped with its connection when a call fails.
pub(super) struct Calls {
    pub(super) endpoints: Vec<String>,
    /// How long a call may take over all endpoints.
    pub(super) timeout: Duration,
    options: ConnectOptions,
    current: Mutex<Current>,
    pub(super) history: Arc<History>,
}

/// The node that is called.
#[derive(Default)]
struct Current {
    /// Its index in `endpoints` plus whole laps. Rises each time a node is skipped.
    node: u64,
    client: Option<Client>,
}

/// Pauses after each endpoint has failed once.
pub(super) struct Laps {
    failed: usize,
    backoff: Backoff,
}

/// Why a call failed, and at which node.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{endpoint}: {error}")]
    Call {
        endpoint: String,
        #[source]
        error: Error,
    },
    #[error("{endpoint}: no reply in {after:?}")]
    Silence { endpoint: String, after: Duration },
    #[error("{endpoint}: {why}")]
    Ended { endpoint: String, why: String },
    #[error("no endpoint was given")]
    NoEndpoint,
}

const TIMEOUT: Duration = Duration::from_secs(4);
const ATTEMPT_MIN: Duration = Duration::from_millis(100);
/// The longest pause after each endpoint has failed once.
const PAUSE_MAX: Duration = Duration::from_millis(500);

impl Calls {
    pub(super) fn new(
        endpoints: Vec<String>,
        options: ConnectOptions,
        first: u64,
        history: Arc<History>,
    ) -> Result<Self, EngineError> {
        if endpoints.is_empty() {
            return Err(EngineError::Refused(Arc::new(Failure::NoEndpoint)));
        }
        let current = Current {
            node: first,
            client: None,
        };
        Ok(Self {
            endpoints,
            timeout: TIMEOUT,
            options,
            current: Mutex::new(current),
            history,
        })
    }

    /// Calls nodes until one replies with a result, or with an error that every node would return.
    /// `call` has to be repeatable, because it is called again after a lost reply.
    pub(super) async fn call<T, F>(
        &self,
        limit: Duration,
        call: impl Fn(Client) -> F,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let end = Instant::now() + limit;
        let attempt = self.attempt(limit);
        let mut laps = self.laps();
        loop {
            let node = self.node();
            // On the heap, because the client's futures are large and part of the callers' futures.
            let called = Box::pin(async { call(self.client(node).await?).await });
            let error = match timeout(attempt, called).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => self.translated(node, error),
                Err(_) => self.silence(node, attempt),
            };
            if !matches!(error, EngineError::Unreachable(_)) {
                return Err(error);
            }
            self.pass_over(node);
            laps.pause(self.endpoints.len(), end).await;
            if Instant::now() >= end {
                return Err(error);
            }
        }
    }

    pub(super) fn laps(&self) -> Laps {
        let backoff = Backoff::new(PAUSE_MAX, self.node());
        Laps { failed: 0, backoff }
    }

    /// How long one node may take to reply, so that every node can be tried within the limit.
    pub(super) fn attempt(&self, limit: Duration) -> Duration {
        let turns = u32::try_from(self.endpoints.len() + 1).unwrap_or(u32::MAX);
        (limit / turns).max(ATTEMPT_MIN)
    }

    /// The node that is called now: its index in `endpoints` plus whole laps.
    pub(super) fn node(&self) -> u64 {
        self.current().node
    }

    /// Returns the client of a node. The only I/O is to authenticate.
    pub(super) async fn client(&self, node: u64) -> Result<Client, Error> {
        {
            let current = self.current();
            if let Some(client) = current.client.clone().filter(|_| current.node == node) {
                return Ok(client);
            }
        }
        let endpoint = self.endpoint(node);
        let client = Client::connect([endpoint], Some(self.options.clone())).await?;
        let mut current = self.current();
        if current.node == node {
            current.client = Some(client.clone());
        }
        Ok(client)
    }

    /// Moves on to the next node, unless another call already has.
    pub(super) fn pass_over(&self, node: u64) {
        let mut current = self.current();
        if current.node == node {
            tracing::debug!(endpoint = self.endpoint(node), "skipped");
            current.node = node.wrapping_add(1);
            current.client = None;
        }
    }

    /// The error of a node that did not reply.
    pub(super) fn silence(&self, node: u64, after: Duration) -> EngineError {
        let endpoint = self.endpoint(node).to_owned();
        EngineError::Unreachable(Arc::new(Failure::Silence { endpoint, after }))
    }

    /// The error of a stream that a node ended.
    pub(super) fn ended(&self, node: u64, why: &str) -> EngineError {
        let endpoint = self.endpoint(node).to_owned();
        let why = why.to_owned();
        let kind = match why.contains("permission denied") {
            true => EngineError::Denied,
            false => EngineError::Unreachable,
        };
        kind(Arc::new(Failure::Ended { endpoint, why }))
    }

    /// The engine's error for an error of the client.
    pub(super) fn translated(&self, node: u64, error: Error) -> EngineError {
        let kind = match &error {
            Error::GRpcStatus(status) => kind(i32::from(status.code()), status.message()),
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
                EngineError::Refused
            }
            _ => EngineError::Unreachable,
        };
        let endpoint = self.endpoint(node).to_owned();
        kind(Arc::new(Failure::Call { endpoint, error }))
    }

    fn endpoint(&self, node: u64) -> &str {
        let count = u64::try_from(self.endpoints.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(node % count.max(1)).unwrap_or(0);
        self.endpoints.get(index).map_or("", String::as_str)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Laps {
    /// Counts a failure. If it was the last of a lap, sleeps, until `end` at most.
    pub(super) async fn pause(&mut self, endpoints: usize, end: Instant) {
        self.failed += 1;
        if self.failed.is_multiple_of(endpoints) {
            sleep_until(end.min(Instant::now() + self.backoff.next())).await;
        }
    }
}

/// The kind of error for a gRPC code, by etcd's `rpctypes`.
fn kind(code: i32, message: &str) -> fn(Source) -> EngineError {
    const INVALID_ARGUMENT: i32 = 3;
    const PERMISSION_DENIED: i32 = 7;
    const UNAUTHENTICATED: i32 = 16;
    /// Codes of the client, such as a broken connection, and of a node without a leader.
    const PASSING: [i32; 6] = [1, 2, 4, 10, 13, 14];
    match code {
        PERMISSION_DENIED | UNAUTHENTICATED => EngineError::Denied,
        // A wrong password, or a missing user.
        INVALID_ARGUMENT if message.contains("authentication") || message.contains("user name") => {
            EngineError::Denied
        }
        code if PASSING.contains(&code) => EngineError::Unreachable,
        _ => EngineError::Refused,
    }
}

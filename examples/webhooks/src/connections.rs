//! Which connections are open, and which one is closed to make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{AbortHandle, Id, JoinSet};

use crate::server::Limits;

/// The open connections, each a task.
///
/// There is always room for one more: at a limit the connection that has been silent longest is
/// closed, of that client or of the client that has most. Hence a health check gets through however
/// many connections others hold open, and none of them can hold one that another client needs.
pub(crate) struct Connections {
    limits: Limits,
    tasks: JoinSet<()>,
    open: HashMap<Id, Connection>,
    steps: Arc<AtomicU64>,
}

struct Connection {
    client: Client,
    progress: Progress,
    handle: AbortHandle,
}

/// Who is at the other end: an IPv4 address, or the 64 bits of an IPv6 address that belong to one
/// network, in which a host may take as many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

/// When a connection last moved a byte, counted in such steps of all connections.
#[derive(Clone)]
pub(crate) struct Progress {
    steps: Arc<AtomicU64>,
    last: Arc<AtomicU64>,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            tasks: JoinSet::new(),
            open: HashMap::new(),
            steps: Arc::default(),
        }
    }

    /// Runs a connection, and closes another if that is needed. O(n) in the open connections.
    pub(crate) fn admit<F>(&mut self, client: Client, serve: impl FnOnce(Progress) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.remove_ended();
        self.make_room(client);
        let progress = Progress {
            steps: Arc::clone(&self.steps),
            last: Arc::default(),
        };
        progress.step();
        let handle = self.tasks.spawn(serve(progress.clone()));
        let connection = Connection {
            client,
            progress,
            handle,
        };
        self.open.insert(connection.handle.id(), connection);
    }

    /// Waits until all have ended.
    pub(crate) async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Closes the connection that was silent longest, of the client that has most.
    pub(crate) fn close_one(&mut self) {
        self.remove_ended();
        let mut counts: HashMap<Client, usize> = HashMap::new();
        for connection in self.open.values() {
            *counts.entry(connection.client).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        if let Some((client, _)) = most {
            self.close_one_of(client);
        }
    }

    fn remove_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            // A task that panicked has ended as well.
            let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
            self.open.remove(&id);
        }
    }

    fn make_room(&mut self, client: Client) {
        let of_client = self.open.values().filter(|c| c.client == client);
        if of_client.count() >= self.limits.per_client.get() {
            self.close_one_of(client);
        } else if self.open.len() >= self.limits.connections.get() {
            self.close_one();
        }
    }

    fn close_one_of(&mut self, client: Client) {
        let of_client = self.open.iter().filter(|(_, c)| c.client == client);
        let quietest = of_client.min_by_key(|(_, c)| c.progress.last.load(Ordering::Relaxed));
        let quietest = quietest.map(|(id, _)| *id);
        if let Some(connection) = quietest.and_then(|id| self.open.remove(&id)) {
            connection.handle.abort();
        }
    }
}

impl Progress {
    /// Marks that a byte was read or written just now.
    pub(crate) fn step(&self) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        self.last.store(step, Ordering::Relaxed);
    }
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        const NETWORK: u128 = u128::MAX << 64;
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & NETWORK).into()),
            address => address,
        })
    }
}

#[cfg(test)]
#[path = "../tests/unit/connections.rs"]
mod tests;

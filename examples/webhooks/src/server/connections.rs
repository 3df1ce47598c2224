//! Which connections are open, and which one is closed to make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{AbortHandle, Id, JoinSet};

use super::Limits;

/// The open connections, each a task.
///
/// There is always room for one more: at a limit the connection that has been silent longest is
/// closed, of that client or of the client that has most. Hence a health check gets through however
/// many connections others hold open, and none of them can hold one that another client needs.
pub(super) struct Connections {
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
pub(super) struct Client(IpAddr);

/// When a connection last moved a byte, counted in such steps of all connections.
#[derive(Clone)]
pub(super) struct Progress {
    steps: Arc<AtomicU64>,
    last: Arc<AtomicU64>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            tasks: JoinSet::new(),
            open: HashMap::new(),
            steps: Arc::default(),
        }
    }

    /// Runs a connection, and closes another if that is needed. O(n) in the open connections.
    pub(super) fn admit<F>(&mut self, client: Client, serve: impl FnOnce(Progress) -> F)
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
    pub(super) async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Closes the connection that was silent longest, of the client that has most.
    pub(super) fn close_one(&mut self) {
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
    pub(super) fn step(&self) {
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
mod tests {
    use super::*;
    use crate::args::Options;

    /// Connections that last until they are closed, of the clients `1.1.1.N`.
    struct Crowd {
        connections: Connections,
        steps: Vec<Progress>,
    }

    impl Crowd {
        fn new(connections: usize, per_client: usize) -> Self {
            let limits = Limits {
                connections: connections.try_into().unwrap(),
                per_client: per_client.try_into().unwrap(),
                ..Options::default().limits
            };
            Self {
                connections: Connections::new(limits),
                steps: Vec::new(),
            }
        }

        fn admit(&mut self, client: u8) {
            let client = IpAddr::from([1, 1, 1, client]).into();
            self.connections.admit(client, |progress| {
                self.steps.push(progress);
                std::future::pending()
            });
        }

        /// Which are open, by the order in which they came.
        fn open(&self) -> Vec<usize> {
            let is_open = |progress: &Progress| {
                let mut open = self.connections.open.values();
                open.any(|c| Arc::ptr_eq(&c.progress.last, &progress.last))
            };
            let steps = self.steps.iter().enumerate();
            steps
                .filter(|(_, p)| is_open(p))
                .map(|(at, _)| at)
                .collect()
        }
    }

    #[tokio::test]
    async fn at_its_limit_a_client_loses_what_was_silent_longest() {
        let mut crowd = Crowd::new(9, 3);
        for client in [1, 2, 1, 1, 2] {
            crowd.admit(client);
        }
        crowd.steps[0].step();
        crowd.admit(1);
        assert_eq!(crowd.open(), [0, 1, 3, 4, 5]);
        crowd.admit(1);
        assert_eq!(crowd.open(), [0, 1, 4, 5, 6]);
    }

    #[tokio::test]
    async fn at_the_limit_of_all_the_client_with_most_makes_room() {
        let mut crowd = Crowd::new(5, 4);
        for client in [1, 2, 2, 2, 3] {
            crowd.admit(client);
        }
        crowd.admit(4);
        assert_eq!(crowd.open(), [0, 2, 3, 4, 5]);
        crowd.steps[2].step();
        crowd.admit(4);
        assert_eq!(crowd.open(), [0, 2, 4, 5, 6]);
    }

    #[tokio::test]
    async fn an_ended_connection_takes_no_room() {
        let mut crowd = Crowd::new(2, 2);
        crowd.admit(1);
        let client = IpAddr::from([1, 1, 1, 1]).into();
        crowd.connections.admit(client, |_| std::future::ready(()));
        tokio::task::yield_now().await;
        crowd.admit(1);
        assert_eq!(crowd.open(), [0, 1]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(client("2606:4700::1"), client("2606:4700::ffff:1"));
        assert_ne!(client("2606:4700::1"), client("2606:4700:0:1::1"));
        assert_eq!(client("::ffff:1.1.1.1"), client("1.1.1.1"));
        assert_ne!(client("1.1.1.1"), client("1.1.1.2"));
    }
}

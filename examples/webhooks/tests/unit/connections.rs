//! Which connection makes room.

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

//! A way to a PostgreSQL that can be made to hang: connections stay, and nothing comes through.

use std::path::PathBuf;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

use super::BROKEN_AFTER;

/// It ends with the test program.
pub struct Proxy {
    pub port: u16,
    hangs: watch::Sender<bool>,
    accepted: watch::Receiver<usize>,
}

impl Proxy {
    /// Passes everything on to a socket.
    pub async fn new(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (hangs, (count, accepted)) = (watch::Sender::new(false), watch::channel(0));
        let hung = hangs.subscribe();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                tokio::spawn(pass(stream, socket.clone(), hung.clone()));
            }
        });
        Self {
            port,
            hangs,
            accepted,
        }
    }

    /// From now on nothing comes through.
    pub fn hang(&self) {
        self.hangs.send_replace(true);
    }

    /// Waits until there was a connection.
    pub async fn until_connected(&self) {
        let mut accepted = self.accepted.clone();
        let wait = accepted.wait_for(|count| *count > 0);
        tokio::time::timeout(BROKEN_AFTER, wait)
            .await
            .unwrap()
            .unwrap();
    }
}

async fn pass(mut client: TcpStream, socket: PathBuf, mut hung: watch::Receiver<bool>) {
    let mut server = UnixStream::connect(socket).await.unwrap();
    tokio::select! {
        biased;
        Ok(()) = async { hung.wait_for(|hangs| *hangs).await.map(drop) } => {
            // Both connections are held.
            std::future::pending().await
        }
        _ = copy_bidirectional(&mut client, &mut server) => {}
    }
}

//! A network between a replica and the nodes of etcd, which can be cut.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A network between one replica and all nodes. While it is cut, bytes wait. They arrive when it
/// heals, as in a connection that TCP has kept.
pub(crate) struct Network {
    is_cut: watch::Sender<bool>,
    pub(crate) endpoints: Vec<String>,
}

impl Network {
    /// Begins to listen, once for each node.
    pub(crate) async fn new(nodes: &[SocketAddr]) -> io::Result<Self> {
        let is_cut = watch::Sender::new(false);
        let mut endpoints = Vec::new();
        for node in nodes.iter().copied() {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            endpoints.push(format!("http://{}", listener.local_addr()?));
            tokio::spawn(serve(listener, node, is_cut.subscribe()));
        }
        Ok(Self { is_cut, endpoints })
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

async fn serve(listener: TcpListener, node: SocketAddr, is_cut: watch::Receiver<bool>) {
    while let Ok((client, _)) = listener.accept().await {
        let mut cut = is_cut.clone();
        tokio::spawn(async move {
            heal(&mut cut).await?;
            let server = TcpStream::connect(node).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let there = pass_on(from_client, to_server, cut.clone());
            let back = pass_on(from_server, to_client, cut);
            // When one direction ends, both connections are closed.
            tokio::select! {
                ended = there => ended,
                ended = back => ended,
            }
        });
    }
}

async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut cut: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        heal(&mut cut).await?;
        let Some(read) = bytes.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(());
        };
        to.write_all(read).await?;
    }
}

/// Waits while the network is cut.
async fn heal(cut: &mut watch::Receiver<bool>) -> io::Result<()> {
    let healed = cut.wait_for(|is_cut| !is_cut).await;
    healed.map(drop).map_err(io::Error::other)
}

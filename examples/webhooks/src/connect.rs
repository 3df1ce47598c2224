//! Connections to receivers, only to addresses that were checked.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::address::is_public;
use crate::target::bare;

/// Makes connections for the client, beneath TLS if there is any.
///
/// A name is resolved once per connection, its addresses are checked, and the connection is made to
/// an address that was checked. A name server cannot return another one in between.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) allow_private: bool,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The URL names no host. URLs are checked before they come here.
    NoHost,
    /// The name stands for no public address.
    NotPublic,
    /// The name cannot be resolved.
    Unknown(io::Error),
    /// No address accepts a connection.
    Unreachable(io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost => f.write_str("the URL names no host"),
            Self::NotPublic => f.write_str("the host has no public address"),
            Self::Unknown(error) => write!(f, "cannot resolve the host: {error}"),
            Self::Unreachable(error) => write!(f, "cannot connect: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(connect(uri, self.allow_private))
    }
}

async fn connect(uri: Uri, allow_private: bool) -> Result<TokioIo<TcpStream>, ConnectError> {
    let host = uri.host().map(bare).ok_or(ConnectError::NoHost)?;
    let default_port = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let port = uri.port_u16().unwrap_or(default_port);
    let found = lookup_host((host, port)).await;
    let found = found.map_err(ConnectError::Unknown)?;
    let addresses = permitted(found, allow_private);
    if addresses.is_empty() {
        return Err(ConnectError::NotPublic);
    }
    let stream = TcpStream::connect(&*addresses).await;
    let stream = stream.map_err(ConnectError::Unreachable)?;
    // A delivery is one small write that should not wait for more. An error only makes it slower.
    let _ = stream.set_nodelay(true);
    Ok(TokioIo::new(stream))
}

fn permitted(found: impl Iterator<Item = SocketAddr>, allow_private: bool) -> Vec<SocketAddr> {
    found
        .filter(|address| allow_private || is_public(address.ip()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(url: &str) -> ConnectError {
        connect(url.parse().unwrap(), false).await.unwrap_err()
    }

    #[tokio::test]
    async fn what_a_name_stands_for_is_checked() {
        // No server is needed, because no connection is made.
        for url in [
            "http://localhost:1/",
            "http://127.0.0.1:1/",
            "https://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            // A resolver takes these for 127.0.0.1, or for nothing.
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
        ] {
            let error = refused(url).await;
            let is_refused = matches!(error, ConnectError::NotPublic | ConnectError::Unknown(_));
            assert!(is_refused, "{url}: {error}");
        }
    }

    #[test]
    fn of_several_addresses_the_public_ones_are_called() {
        let found = ["10.0.0.1:80", "1.1.1.1:80", "[::1]:80", "[2606:4700::1]:80"];
        let found = || found.iter().map(|address| address.parse().unwrap());
        let expected: Vec<_> = found().skip(1).step_by(2).collect();
        assert_eq!(permitted(found(), false), expected);
        assert_eq!(permitted(found(), true).len(), 4);
    }

    #[tokio::test]
    async fn private_addresses_are_called_if_allowed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        assert!(connect(uri.clone(), true).await.is_ok());
        assert!(connect(uri, false).await.is_err());
    }
}

//! One delivery: a POST, and which answers count as success.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, StatusCode};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use tokio::net::lookup_host;

use crate::address::is_public;
use crate::sign::{self, Secret};
use crate::target::Target;

/// Calls receivers, with and without TLS. Follows no redirect and uses no proxy, so that the
/// address that was checked is the one that is called.
pub(crate) struct Poster {
    client: Client,
    /// Signs for subscriptions that have no secret of their own.
    secret: Option<Secret>,
}

/// Why a delivery failed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There was no answer in time.
    TimedOut,
    /// The answer was not 200 to 299.
    Answered(StatusCode),
    /// There was no answer at all.
    Broken(String),
}

/// How much of a foreign error is shown, in characters.
const ERROR_LEN_MAX: usize = 200;

/// How much of an answer is read so that its connection can be used again. It is discarded.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How many idle connections to a receiver are kept, and for how long.
const IDLE_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

impl Poster {
    /// Creates a client that trusts the certificates that browsers trust.
    pub(crate) fn new(
        allow_private: bool,
        timeout: Duration,
        secret: Option<Secret>,
    ) -> reqwest::Result<Self> {
        let client = client(allow_private, timeout).build()?;
        Ok(Self { client, secret })
    }

    /// Returns whether deliveries are signed even if the subscription has no secret.
    pub(crate) fn always_signs(&self) -> bool {
        self.secret.is_some()
    }

    /// Posts JSON, signed with the subscription's secret if it has one. Fails unless the answer is
    /// 200 to 299.
    pub(crate) async fn post(
        &self,
        target: &Target,
        json: Bytes,
        secret: Option<&Secret>,
    ) -> Result<(), Refusal> {
        // Each attempt has its own timestamp, because receivers refuse old ones.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let timestamp = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let id = sign::id(&json);
        let secret = secret.or(self.secret.as_ref());
        let signature = secret.and_then(|secret| secret.sign(&id, timestamp, &json));
        let mut request = self
            .client
            .post(target.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(HEADER_WEBHOOK_TIMESTAMP, timestamp)
            .header(HEADER_WEBHOOK_ID, id);
        if let Some(signature) = signature {
            request = request.header(HEADER_WEBHOOK_SIGNATURE, signature);
        }
        let mut answer = request.body(json).send().await?;
        let (status, mut rest) = (answer.status(), ANSWER_BYTES_MAX);
        // The status decides. A body that does not end costs only the connection.
        while let Ok(Some(chunk)) = answer.chunk().await
            && chunk.len() < rest
        {
            rest -= chunk.len();
        }
        match status.is_success() {
            true => Ok(()),
            false => Err(Refusal::Answered(status)),
        }
    }
}

fn client(allow_private: bool, timeout: Duration) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("requeue-webhooks/", env!("CARGO_PKG_VERSION")))
        .timeout(timeout)
        .redirect(Policy::none())
        .no_proxy()
        .http1_only()
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .dns_resolver(Arc::new(Resolver { allow_private }))
}

/// Resolves a name once per connection, and leaves out addresses that are not public. The connection
/// is made to an address that was checked: a name server cannot return another one in between.
/// Addresses in a URL do not come here: they are checked by [`Target::parse`].
struct Resolver {
    allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await;
            let found = found
                .map_err(|error| io::Error::other(format!("cannot resolve the host: {error}")))?;
            let addresses = permitted(found, allow_private);
            if addresses.is_empty() {
                return Err("the host has no public address".into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn permitted(found: impl Iterator<Item = SocketAddr>, allow_private: bool) -> Vec<SocketAddr> {
    found
        .filter(|address| allow_private || is_public(address.ip()))
        .collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Answered(status) => write!(f, "answered {}", status.as_u16()),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl From<reqwest::Error> for Refusal {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        let prefix = match error.is_connect() {
            true => "cannot connect: ",
            false => "",
        };
        Self::Broken(format!("{prefix}{}", cause(&error)))
    }
}

/// Returns an error's innermost cause, because the outer ones only say that there is one. None of
/// the inner ones contains the URL.
fn cause(error: &dyn Error) -> String {
    let inner = std::iter::successors(error.source(), |error| (*error).source()).last();
    let text = inner.map_or("the delivery failed".into(), ToString::to_string);
    text.chars().take(ERROR_LEN_MAX).collect()
}

#[cfg(test)]
#[path = "../tests/unit/post.rs"]
mod tests;

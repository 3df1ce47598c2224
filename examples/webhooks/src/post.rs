//! One delivery: a POST, and what counts as an answer.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use crate::connect::Connector;
use crate::target::Target;

/// Calls receivers, with and without TLS. Redirects are not followed, and no proxy is asked: the
/// address that was checked is the one that is called.
pub(crate) struct Poster {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    timeout: Duration,
}

/// Why a delivery does not count.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There was no answer in time.
    TimedOut,
    /// The answer was not one of success.
    Answered(StatusCode),
    /// There was no answer at all.
    Broken(String),
}

/// What is told of an error that came from outside.
const ERROR_LEN_MAX: usize = 200;

/// How much of an answer is read so that its connection can be used again. Nobody needs it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Connections that are kept for a receiver while nothing is sent to it, and for how long.
const IDLE_MAX: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

impl Poster {
    /// A client that trusts the certificates that browsers trust.
    pub(crate) fn new(allow_private: bool, timeout: Duration) -> Self {
        let https = HttpsConnectorBuilder::new().with_webpki_roots();
        let connector = https
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector { allow_private });
        Self::from_parts(connector, timeout)
    }

    fn from_parts(connector: HttpsConnector<Connector>, timeout: Duration) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(connector);
        Self { client, timeout }
    }

    /// Posts JSON. Only an answer of success, 200 to 299, counts.
    pub(crate) async fn post(&self, target: &Target, json: Bytes) -> Result<(), Refusal> {
        let mut request = Request::new(Full::new(json));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.uri().clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("requeue-webhooks/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(authorization) = target.authorization() {
            headers.insert(AUTHORIZATION, authorization.clone());
        }

        let deadline = Instant::now() + self.timeout;
        let answer = timeout_at(deadline, self.client.request(request)).await;
        let answer = answer.map_err(|_| Refusal::TimedOut)?;
        let answer = answer.map_err(|error| Refusal::Broken(causes(&error)))?;
        let status = answer.status();
        // The verdict is in. A body that does not end costs the connection and nothing else.
        let rest = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let _ = timeout_at(deadline, rest).await;
        if status.is_success() {
            Ok(())
        } else {
            Err(Refusal::Answered(status))
        }
    }
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

/// An error's innermost cause: those around it say that there is one. None of them knows the URL.
fn causes(error: &dyn std::error::Error) -> String {
    let innermost = std::iter::successors(Some(error), |error| error.source()).last();
    let text = innermost.unwrap_or(error).to_string();
    text.chars().take(ERROR_LEN_MAX).collect()
}

//! One delivery: a POST, and which answers count as success.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout_at};

use crate::connect::Connector;
use crate::sign::{self, Secret};
use crate::target::Target;

/// Calls receivers, with and without TLS. Follows no redirect and uses no proxy, so that the
/// address that was checked is the one that is called.
pub(crate) struct Poster {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    timeout: Duration,
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
    pub(crate) fn new(allow_private: bool, timeout: Duration, secret: Option<Secret>) -> Self {
        let https = HttpsConnectorBuilder::new().with_webpki_roots();
        let connector = https
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector { allow_private });
        let poster = Self::from_parts(connector, timeout);
        Self { secret, ..poster }
    }

    fn from_parts(connector: HttpsConnector<Connector>, timeout: Duration) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(connector);
        Self {
            client,
            timeout,
            secret: None,
        }
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
        let mut request = Request::new(Full::new(json.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.uri().clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("requeue-webhooks/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        // Each attempt has its own timestamp, because receivers refuse old ones.
        let timestamp = SystemTime::UNIX_EPOCH.elapsed();
        let timestamp = timestamp.map_or(0, |since| since.as_secs());
        sign::add_headers(headers, secret.or(self.secret.as_ref()), timestamp, &json);
        if let Some(authorization) = target.authorization() {
            headers.insert(AUTHORIZATION, authorization.clone());
        }

        let deadline = Instant::now() + self.timeout;
        let answer = timeout_at(deadline, self.client.request(request)).await;
        let answer = answer.map_err(|_| Refusal::TimedOut)?;
        let answer = answer.map_err(|error| Refusal::Broken(causes(&error)))?;
        let status = answer.status();
        // The status decides. A body that does not end costs only the connection.
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

/// Returns an error's innermost cause, because the outer ones only say that there is one. None of
/// them contains the URL.
fn causes(error: &dyn std::error::Error) -> String {
    let innermost = std::iter::successors(Some(error), |error| error.source()).last();
    let text = innermost.unwrap_or(error).to_string();
    text.chars().take(ERROR_LEN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use hyper::Response;
    use hyper::body::Incoming;
    use hyper::header::HeaderMap;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn target(url: &str) -> Target {
        Target::parse(url, true).unwrap()
    }

    #[test]
    fn the_innermost_cause_of_an_error_is_shown() {
        let inner = std::io::Error::other("x".repeat(999));
        let outer = crate::connect::ConnectError::Unreachable(inner);
        assert_eq!(
            causes(&outer),
            format!("cannot connect: {}", "x".repeat(184))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_answer_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let poster = Poster::new(true, LONG, None);
        let posted = poster.post(&target(&url), Bytes::new(), None).await;
        assert!(matches!(posted, Err(Refusal::TimedOut)), "{posted:?}");
    }

    /// Takes one delivery over TLS, as `localhost`, and returns its headers.
    async fn receive(listener: TcpListener, config: ServerConfig) -> HeaderMap {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        // A client that does not trust the certificate leaves.
        let Ok(stream) = acceptor.accept(stream).await else {
            return HeaderMap::new();
        };
        let headers = Mutex::new(HeaderMap::new());
        let service = service_fn(async |request: hyper::Request<Incoming>| {
            *headers.lock().unwrap() = request.headers().clone();
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let connection = http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
        headers.into_inner().unwrap()
    }

    #[tokio::test]
    async fn over_tls_a_receiver_has_to_prove_who_it_is() {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = || signing_key.serialize_der().try_into().unwrap();
        let server = || {
            let config = ServerConfig::builder().with_no_client_auth();
            let chain = vec![cert.der().clone()];
            config.with_single_cert(chain, key()).unwrap()
        };
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let trusting = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trusting)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector {
                allow_private: true,
            });
        let posters = [
            Poster::from_parts(connector, LONG),
            Poster::new(true, LONG, None),
        ];
        for (poster, is_trusted) in posters.iter().zip([true, false]) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let target = target(&format!("https://me@localhost:{port}/x"));
            let post = poster.post(&target, Bytes::from_static(b"{}"), None);
            let (posted, headers) = tokio::join!(post, receive(listener, server()));
            match posted {
                Ok(()) => assert!(is_trusted),
                Err(refusal) => assert!(!is_trusted, "{refusal}"),
            }
            assert_eq!(headers.contains_key(AUTHORIZATION), is_trusted);
        }
    }
}

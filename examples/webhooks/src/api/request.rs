//! What comes in, and how much of it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::{Request, StatusCode, Uri};
use tokio::time::timeout;

use super::response::Refused;
use crate::key::{Key, parse_key};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a body of at most `bytes_max`.
pub(super) async fn body<B>(request: Request<B>, bytes_max: usize) -> Result<Bytes, Refused>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let collect = Limited::new(request.into_body(), bytes_max).collect();
    let collected = timeout(BODY_TIMEOUT, collect).await.map_err(|_| {
        let why = "the body did not come in time";
        Refused::new(StatusCode::REQUEST_TIMEOUT, why)
    })?;
    let collected = collected.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let why = format!("too long: {bytes_max} bytes at most");
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        } else {
            Refused::input("the body is broken off")
        }
    })?;
    Ok(collected.to_bytes())
}

/// The query string. No known value needs percent-encoding.
pub(super) struct Query<'a>(&'a str);

/// How many deliveries are listed at once.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;

impl<'a> Query<'a> {
    pub(super) fn of(uri: &'a Uri) -> Self {
        Self(uri.query().unwrap_or_default())
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Refused> {
        let number = self.get(name).map(str::parse).transpose();
        number.map_err(|_| Refused::input(format!("{name} has to be a number")))
    }

    pub(super) fn limit(&self) -> Result<usize, Refused> {
        let limit = self.number("limit")?.map(usize::try_from);
        let limit = limit.unwrap_or(Ok(LIMIT_DEFAULT)).unwrap_or(LIMIT_MAX);
        Ok(limit.min(LIMIT_MAX))
    }

    pub(super) fn after(&self) -> Result<Option<Key>, Refused> {
        let key = |text| parse_key(text).ok_or("after has to be SUBSCRIPTION/OBJECT");
        self.get("after")
            .map(key)
            .transpose()
            .map_err(Refused::input)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    fn query(text: &'static str) -> Query<'static> {
        Query(text)
    }

    /// A body that never arrives.
    struct Never;

    impl Body for Never {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_come() {
        let begun = Instant::now();
        let refused = body(Request::new(Never), 1).await.unwrap_err();
        let status = refused.into_response().status();
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed(), BODY_TIMEOUT);
    }

    #[test]
    fn words_are_found() {
        let query = query("state=failed&limit=7&after=s/o&x");
        assert_eq!(query.get("state"), Some("failed"));
        assert_eq!(query.get("x"), None);
        assert_eq!(query.limit().unwrap(), 7);
        assert_eq!(query.after().unwrap(), Some(Key::new("s", "o")));
    }

    #[test]
    fn limits_have_a_limit() {
        for (text, expected) in [("", 100), ("limit=0", 0), ("limit=9999", 1000)] {
            assert_eq!(query(text).limit().unwrap(), expected);
        }
        for text in ["limit=", "limit=-1", "limit=x"] {
            assert!(query(text).limit().is_err());
        }
        assert!(query("after=s").after().is_err());
    }
}

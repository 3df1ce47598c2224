//! What comes in, and how much of it.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, StatusCode, Uri};

use super::response::Refused;
use crate::key::{Key, parse_key};

/// Reads a body of at most `bytes_max`.
pub(super) async fn body(request: Request<Incoming>, bytes_max: usize) -> Result<Bytes, Refused> {
    let collected = Limited::new(request.into_body(), bytes_max).collect().await;
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

/// The words after the question mark. None of the values that are known needs an encoding.
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
    use super::*;

    fn query(text: &'static str) -> Query<'static> {
        Query(text)
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

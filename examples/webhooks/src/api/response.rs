//! What goes out.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::origin::Foreign;
use crate::say;
use crate::store::StoreError;

/// Why a request failed, as shown to the client.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    why: Cow<'static, str>,
    /// The methods that are allowed, if the request used another.
    allow: Option<&'static str>,
}

#[derive(Serialize)]
struct ShownError<'a> {
    error: &'a str,
}

/// The page contains its script and style, and may contact only this service.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

impl Refused {
    pub(super) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            why: why.into(),
            allow: None,
        }
    }

    /// The client made a mistake.
    pub(super) fn input(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    pub(super) fn missing(why: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    pub(super) fn method(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "no such method here")
        }
    }

    /// The service failed. The operator learns why, the client does not.
    pub(super) fn fault(error: &dyn fmt::Display) -> Self {
        say(&error.to_string());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "something is wrong here")
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = json(self.status, &ShownError { error: &self.why });
        if let Some(allow) = self.allow {
            set(&mut response, ALLOW, allow);
        }
        response
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        say(&error.to_string());
        let why = "the database does not answer";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

impl From<Foreign> for Refused {
    fn from(foreign: Foreign) -> Self {
        let status = match foreign {
            Foreign::NoHost => StatusCode::BAD_REQUEST,
            Foreign::Host => StatusCode::MISDIRECTED_REQUEST,
            Foreign::Origin => StatusCode::FORBIDDEN,
        };
        Self::new(status, foreign.to_string())
    }
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    // Strings and numbers always serialize; if not, the answer is empty.
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    response(status, "application/json", bytes)
}

pub(super) fn text(text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    response(StatusCode::OK, "text/plain; charset=utf-8", text)
}

pub(super) fn html(page: &'static str) -> Response<Full<Bytes>> {
    let mut response = response(StatusCode::OK, "text/html; charset=utf-8", page);
    set(&mut response, CONTENT_SECURITY_POLICY, PAGE_POLICY);
    response
}

pub(super) fn empty() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, content_type);
    set(&mut response, CACHE_CONTROL, "no-store");
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn set(response: &mut Response<Full<Bytes>>, name: HeaderName, value: &'static str) {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

//! What the API server answers, and how it refuses.

use std::io;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};

/// A request that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Value,
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: Value::Null,
        }
    }

    /// Names the object in the details, as storage does: by its resource.
    pub(crate) fn about(mut self, resource: &str, name: &str) -> Self {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.details["kind"] = json!(plural);
        if !name.is_empty() {
            self.details["name"] = json!(name);
        }
        if !group.is_empty() {
            self.details["group"] = json!(group);
        }
        self
    }

    /// Names a field that is wrong, and why: the end of a `FieldValue…`.
    pub(crate) fn field(field: &str, why: &str, message: &str) -> Self {
        let mut refusal = Self::invalid(format!("{field}: {message}"));
        let reason = format!("FieldValue{why}");
        refusal.details =
            json!({"causes": [{"reason": reason, "message": message, "field": field}]});
        refusal
    }

    pub(crate) fn missing(resource: &str, name: &str) -> Self {
        let message = format!("{resource} {name:?} not found");
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn invalid(message: String) -> Self {
        let mut refusal = Self::new(422, "Invalid", message);
        refusal.details = json!({});
        refusal
    }

    pub(crate) fn bad(message: String) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn forbidden(message: String) -> Self {
        Self::new(403, "Forbidden", message)
    }

    pub(crate) fn expired(message: &str) -> Self {
        Self::new(410, "Expired", message.to_owned())
    }

    /// The request is one that the real server may do and this one does not.
    pub(crate) fn unsupported(what: &str) -> Self {
        let message = format!("requeue-kube-testing does not do this: {what}");
        Self::new(501, UNSUPPORTED, message)
    }

    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": self.code, "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

pub(crate) const UNSUPPORTED: &str = "NotImplemented";

/// A status code and an object.
pub(crate) type Answer = Result<(u16, Value), Refusal>;

pub(crate) type ResponseBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

pub(crate) fn respond(answer: &Answer) -> Response<ResponseBody> {
    let (code, value) = match answer {
        Ok((code, value)) => (*code, value.clone()),
        Err(refusal) => (refusal.code, refusal.status()),
    };
    let frame = Frame::data(Bytes::from(value.to_string()));
    let mut response = Response::new(StreamBody::new(stream::iter([Ok(frame)]).boxed()));
    if let Ok(code) = http::StatusCode::from_u16(code) {
        *response.status_mut() = code;
    }
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

/// An answer of a server that asks the client to come again later.
pub(crate) fn busy(seconds: u32) -> Response<ResponseBody> {
    let mut refusal = Refusal::new(429, "TooManyRequests", "try again later".to_owned());
    refusal.details = json!({"retryAfterSeconds": seconds});
    let mut response = respond(&Err(refusal));
    let header = http::HeaderValue::from(seconds);
    response
        .headers_mut()
        .insert(http::header::RETRY_AFTER, header);
    response
}

//! What the API answers.

use std::io;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};

/// What the API says if it refuses.
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str, pub(super) String);

pub(super) type Answer = Result<Value, Refusal>;

pub(super) fn status(Refusal(code, reason, message): &Refusal) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

pub(super) type ResponseBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

pub(super) fn respond(answer: &Answer) -> Response<ResponseBody> {
    let (code, value) = match answer {
        Ok(value) => (200, value.clone()),
        Err(refusal) => (refusal.0, status(refusal)),
    };
    let frame = Frame::data(Bytes::from(value.to_string()));
    let body = StreamBody::new(stream::iter([Ok(frame)]).boxed());
    Response::builder().status(code).body(body).unwrap()
}

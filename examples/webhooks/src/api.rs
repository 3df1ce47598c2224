//! What users ask for over HTTP.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::dispatch::Dispatcher;
use crate::document;
use crate::key::{Key, parse_id};
use crate::origin::{self, Host};
use crate::say;
use crate::sign::Secret;
use crate::store::{
    NewSecret, NewSubscription, Object, PutSubscription, State as Owed, StoreError, Subscription,
};
use crate::target::{Target, URL_LEN_MAX};

/// What the handlers share.
pub(crate) struct Api {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) prometheus: PrometheusHandle,
    pub(crate) hosts: Vec<Host>,
}

type Shared = State<Arc<Api>>;
type Answer = Result<Response, Refused>;

/// How long a request may take, its body included, and how long the body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const OBJECT_BYTES_MAX: usize = 256 * 1024;

/// A subscription's JSON: a URL, each of whose bytes may be written as `\u00xx`, and little more.
const SUBSCRIPTION_BYTES_MAX: usize = 6 * URL_LEN_MAX + 1024;

/// Deliveries per second that can be asked for.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 10_000.0;

/// How many deliveries are listed at once.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// Returns everything that is served. `window` shows the queue.
pub(crate) fn router(api: Arc<Api>, window: Router) -> Router {
    let subscription = put(put_subscription)
        .get(get_subscription)
        .delete(delete_subscription);
    Router::new()
        .route("/subscriptions/{id}", subscription)
        .route(
            "/objects/{id}",
            put(put_object).get(get_object).delete(delete_object),
        )
        .route("/deliveries", get(deliveries))
        .route("/shards", get(shards))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/", get(async || Redirect::to("/window/queues/webhooks")))
        .method_not_allowed_fallback(async || {
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, "no such method here")
        })
        .fallback(async || Refused::missing("there is no such path"))
        .with_state(Arc::clone(&api))
        .nest("/window", window)
        .layer(from_fn_with_state(api, guard))
}

/// Refuses what web sites elsewhere send, and limits the time of a request.
async fn guard(State(api): Shared, request: Request, next: Next) -> Response {
    let (method, uri) = (request.method(), request.uri());
    if let Err(refused) = origin::check(&api.hosts, method, uri, request.headers()) {
        return refused.into_response();
    }
    let answer = timeout(REQUEST_TIMEOUT, next.run(request)).await;
    let mut answer = answer.unwrap_or_else(|_| {
        let why = "that took too long";
        Refused::new(StatusCode::REQUEST_TIMEOUT, why).into_response()
    });
    let headers = answer.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let cached = headers.entry(CACHE_CONTROL);
    cached.or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Why a request failed, as shown to the client.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    why: Cow<'static, str>,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        let why = why.into();
        Self { status, why }
    }

    /// The client made a mistake.
    pub(crate) fn input(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    fn missing(why: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    /// The service failed. The operator learns why, the client does not.
    fn fault(error: &dyn Display) -> Self {
        say(&error.to_string());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "something is wrong here")
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.why }))).into_response()
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        say(&error.to_string());
        let why = "the database does not answer";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self::input(rejection.body_text())
    }
}

/// The id in a path.
struct Id(Arc<str>);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(text)| parse_id(&text));
        let why = "an id is 1 to 128 letters, digits, dots, dashes and underscores, \
                   and neither . nor ..";
        id.map(Self).ok_or(Refused::input(why))
    }
}

/// Reads a body of at most `bytes_max`.
async fn body(body: Body, bytes_max: usize) -> Result<Bytes, Refused> {
    let read = timeout(BODY_TIMEOUT, to_bytes(body, bytes_max)).await;
    let read = read.map_err(|_| {
        let why = "the body did not come in time";
        Refused::new(StatusCode::REQUEST_TIMEOUT, why)
    })?;
    read.map_err(|error| {
        if error.into_inner().is::<LengthLimitError>() {
            let why = format!("too long: {bytes_max} bytes at most");
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        } else {
            Refused::input("the body is broken off")
        }
    })
}

/// Runs something to its end, even if its client goes away: a key has to be added for each change
/// in the database.
async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, Refused> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| Refused::fault(&error))?
        .map_err(Refused::from)
}

/// A subscription, as it is put.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutBody {
    url: String,
    rate: Option<f64>,
    /// `None` if it says nothing of the secret.
    #[serde(default, deserialize_with = "some")]
    secret: Option<Option<String>>,
}

/// Tells `null` from a field that is missing.
fn some<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}

async fn put_subscription(State(api): Shared, Id(id): Id, request: Request) -> Answer {
    let bytes = body(request.into_body(), SUBSCRIPTION_BYTES_MAX).await?;
    let new: PutBody = serde_json::from_slice(&bytes).map_err(|error| {
        // Serde's own message may quote the URL, so only the place is shown.
        let (line, column) = (error.line(), error.column());
        let like = "this is no JSON like {\"url\": \"…\", \"rate\": 10}";
        Refused::input(format!("{like}: see line {line} column {column}"))
    })?;
    let target = Target::parse(&new.url, api.dispatcher.allow_private);
    target.map_err(Refused::input)?;
    let is_rate = |rate| (RATE_MIN..=RATE_MAX).contains(&rate);
    if !new.rate.is_none_or(is_rate) {
        return Err(Refused::input("the rate has to be between 0.001 and 10000"));
    }
    if let Some(Some(secret)) = &new.secret {
        Secret::parse(secret).map_err(Refused::input)?;
    }
    let subscription = NewSubscription {
        url: new.url,
        rate: new.rate,
        secret: new.secret.map_or(NewSecret::Kept, NewSecret::Given),
    };
    let (dispatcher, name) = (Arc::clone(&api.dispatcher), Arc::clone(&id));
    let put = whole(async move { dispatcher.put_subscription(name, subscription).await });
    let status = match put.await? {
        PutSubscription::Created => StatusCode::CREATED,
        PutSubscription::Changed => StatusCode::OK,
        PutSubscription::TooMany => {
            let why = "there are too many subscriptions";
            return Err(Refused::new(StatusCode::CONFLICT, why));
        }
    };
    // It may have kept a secret that it had before.
    let shown = get_subscription(State(api), Id(id)).await?;
    Ok((status, shown).into_response())
}

/// Shows of the URL only what is no secret, and of the secret nothing.
async fn get_subscription(State(api): Shared, Id(id): Id) -> Answer {
    let found = api.dispatcher.store.subscription(Arc::clone(&id)).await?;
    let found = found.ok_or(Refused::missing("there is no such subscription"))?;
    let Subscription { url, rate, secret } = found;
    // Private or not, it may be shown.
    let receiver = Target::parse(&url, true).map_err(Refused::input)?;
    let signed = secret.is_some() || api.dispatcher.poster.always_signs();
    let receiver = receiver.to_string();
    let shown = json!({ "id": id, "receiver": receiver, "rate": rate, "signed": signed });
    Ok(Json(shown).into_response())
}

async fn delete_subscription(State(api): Shared, Id(id): Id) -> Answer {
    let dispatcher = Arc::clone(&api.dispatcher);
    match whole(async move { dispatcher.delete_subscription(id).await }).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Refused::missing("there is no such subscription")),
    }
}

async fn put_object(State(api): Shared, Id(id): Id, request: Request) -> Answer {
    let bytes = body(request.into_body(), OBJECT_BYTES_MAX).await?;
    let data = document::parse(&bytes).map_err(|error| {
        Refused::input(format!("no JSON that every receiver can read: {error}"))
    })?;
    let (dispatcher, name) = (Arc::clone(&api.dispatcher), Arc::clone(&id));
    let change = whole(async move { dispatcher.put_object(name, data).await }).await?;
    let status = match change.is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let (version, count) = (change.version, change.subscriptions.len());
    let shown = json!({ "id": id, "version": version, "subscriptions": count });
    Ok((status, Json(shown)).into_response())
}

async fn get_object(State(api): Shared, Id(id): Id) -> Answer {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: &'a str,
        version: i64,
        data: &'a RawValue,
    }

    let found = api.dispatcher.store.object(Arc::clone(&id)).await?;
    let Object { version, body } = found.ok_or(Refused::missing("there is no such object"))?;
    let data = serde_json::from_str(&body);
    let data = data.map_err(|error| Refused::fault(&error))?;
    let shown = Shown {
        id: &id,
        version,
        data,
    };
    Ok(Json(shown).into_response())
}

async fn delete_object(State(api): Shared, Id(id): Id) -> Answer {
    let dispatcher = Arc::clone(&api.dispatcher);
    match whole(async move { dispatcher.delete_object(id).await }).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Refused::missing("there is no such object")),
    }
}

/// Which deliveries are listed.
#[derive(Deserialize)]
struct Listed {
    state: Owed,
    limit: Option<usize>,
    after: Option<Key>,
}

async fn deliveries(State(api): Shared, query: Result<Query<Listed>, QueryRejection>) -> Answer {
    let Query(Listed {
        state,
        limit,
        after,
    }) = query?;
    let limit = limit.unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX);
    let (store, queue) = (&api.dispatcher.store, &api.dispatcher.queue);
    let total = store.owed_len(state).await?;
    let owed = store.owed(state, after, limit).await?;
    let is_full = limit > 0 && owed.len() == limit;
    let next = owed.last().filter(|_| is_full);
    let next = next.map(|owed| owed.key.to_string());
    let deliveries = owed.iter().map(|owed| {
        json!({
            "subscription": owed.key.subscription,
            "object": owed.key.object,
            "version": owed.version,
            "delivered": owed.delivered,
            "failures": queue.failures(&owed.key),
            "error": owed.error,
        })
    });
    let deliveries: Vec<_> = deliveries.collect();
    let shown = json!({ "total": total, "deliveries": deliveries, "next": next });
    Ok(Json(shown).into_response())
}

/// Shows who owns the shards; `null` if this process alone delivers.
async fn shards(State(api): Shared) -> Json<serde_json::Value> {
    Json(api.dispatcher.team.get().map(|team| team.shown()).into())
}

async fn metrics(State(api): Shared) -> String {
    api.dispatcher.queue.report_running();
    api.prometheus.render()
}

async fn health(State(api): Shared) -> Result<&'static str, Refused> {
    let unavailable = |why: String| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why);
    let Dispatcher {
        store, queue, team, ..
    } = &*api.dispatcher;
    store.check().await?;
    if queue.is_shutting_down() {
        return Err(unavailable("the service is stopping".into()));
    }
    team.get()
        .map_or(Ok(()), |team| team.health())
        .map_err(unavailable)?;
    Ok("ok\n")
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_come() {
        let begun = Instant::now();
        let never = stream::pending::<Result<Bytes, std::io::Error>>();
        let refused = body(Body::from_stream(never), 1).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed(), BODY_TIMEOUT);
    }
}

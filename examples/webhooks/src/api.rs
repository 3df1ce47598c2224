//! What users ask for over HTTP.

mod document;
mod request;
mod response;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::dispatch::Dispatcher;
use crate::key::parse_id;
use crate::origin::Hosts;
use crate::sign::Secret;
use crate::snapshot::snapshot;
use crate::stats::{Look, Stats};
use crate::store::{
    NewSecret, NewSubscription, Object, Owed, PutSubscription, State, Subscription,
};
use crate::target::{Target, URL_LEN_MAX};
use crate::team::ShownTeam;

use request::{Query, body};
use response::{Refused, empty, html, json, text};

/// Answers requests.
pub(crate) struct Api {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) hosts: Hosts,
}

type Answer = Result<Response<Full<Bytes>>, Refused>;

/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

const OBJECT_BYTES_MAX: usize = 256 * 1024;

/// A subscription's JSON: a URL, each of whose bytes may be written as `\u00xx`, and little more.
const SUBSCRIPTION_BYTES_MAX: usize = 6 * URL_LEN_MAX + 1024;

/// Deliveries per second that can be asked for.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 10_000.0;

const PAGE: &str = include_str!("page.html");

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

/// A subscription, as it is shown: of the URL only what is no secret, and of the secret nothing.
#[derive(Serialize)]
struct ShownSubscription<'a> {
    id: &'a str,
    receiver: String,
    rate: Option<f64>,
    signed: bool,
}

#[derive(Serialize)]
struct ShownChange<'a> {
    id: &'a str,
    version: i64,
    subscriptions: usize,
}

#[derive(Serialize)]
struct ShownObject<'a> {
    id: &'a str,
    version: i64,
    data: &'a RawValue,
}

#[derive(Serialize)]
struct ShownDeliveries<'a> {
    total: i64,
    deliveries: Vec<ShownDelivery<'a>>,
    /// The next page is asked for with this as `after`.
    next: Option<String>,
}

#[derive(Serialize)]
struct ShownDelivery<'a> {
    subscription: &'a str,
    object: &'a str,
    version: i64,
    delivered: i64,
    /// How often it failed since it last succeeded or was given up.
    failures: u32,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ShownStats {
    now: Look,
    history: Vec<Look>,
    /// `None` if this process alone delivers.
    team: Option<ShownTeam>,
}

impl Api {
    /// Handles a request received at the address `local`.
    pub(crate) async fn answer(
        &self,
        local: SocketAddr,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        if let Err(foreign) = self.hosts.check(local, &request) {
            return Refused::from(foreign).into_response();
        }
        let answer = timeout(REQUEST_TIMEOUT, self.route(request)).await;
        let answer = answer.unwrap_or(Err(Refused::new(
            StatusCode::REQUEST_TIMEOUT,
            "that took too long",
        )));
        answer.unwrap_or_else(Refused::into_response)
    }

    async fn route(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let method = request.method().clone();
        match (&segments[..], &method) {
            (["subscriptions", id], _) => {
                let id = named(id)?;
                match method {
                    Method::PUT => self.put_subscription(id, request).await,
                    Method::GET => self.subscription(id).await,
                    Method::DELETE => self.delete_subscription(id).await,
                    _ => Err(Refused::method("GET, PUT, DELETE")),
                }
            }
            (["objects", id], _) => {
                let id = named(id)?;
                match method {
                    Method::PUT => self.put_object(id, request).await,
                    Method::GET => self.object(id).await,
                    Method::DELETE => self.delete_object(id).await,
                    _ => Err(Refused::method("GET, PUT, DELETE")),
                }
            }
            (["" | "deliveries" | "queue" | "stats" | "healthz" | "metrics"], method) => {
                if method != Method::GET {
                    return Err(Refused::method("GET"));
                }
                self.look(segments[0], &Query::of(request.uri())).await
            }
            _ => Err(Refused::new(StatusCode::NOT_FOUND, "there is no such path")),
        }
    }

    async fn look(&self, at: &str, query: &Query<'_>) -> Answer {
        match at {
            "deliveries" => self.deliveries(query).await,
            "queue" => Ok(json(
                StatusCode::OK,
                &snapshot(&self.stats.queue, query.limit()?),
            )),
            "stats" => self.stats(query).await,
            "healthz" => self.health().await,
            "metrics" => Ok(text(self.stats.prometheus.render())),
            _ => Ok(html(PAGE)),
        }
    }

    async fn put_subscription(&self, id: Arc<str>, request: Request<Incoming>) -> Answer {
        let bytes = body(request, SUBSCRIPTION_BYTES_MAX).await?;
        let new: PutBody = serde_json::from_slice(&bytes).map_err(|error| {
            // Serde's own message may quote the URL, so only the place is shown.
            let (line, column) = (error.line(), error.column());
            let like = "this is no JSON like {\"url\": \"…\", \"rate\": 10}";
            Refused::input(format!("{like}: see line {line} column {column}"))
        })?;
        let target = Target::parse(&new.url, self.dispatcher.allow_private);
        let target = target.map_err(Refused::input)?;
        if new
            .rate
            .is_some_and(|rate| !(RATE_MIN..=RATE_MAX).contains(&rate))
        {
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
        let (dispatcher, name) = (Arc::clone(&self.dispatcher), Arc::clone(&id));
        let put = whole(async move { dispatcher.put_subscription(name, subscription).await });
        let status = match put.await?? {
            PutSubscription::Created => StatusCode::CREATED,
            PutSubscription::Changed => StatusCode::OK,
            PutSubscription::TooMany => {
                let why = "there are too many subscriptions";
                return Err(Refused::new(StatusCode::CONFLICT, why));
            }
        };
        // It may have kept a secret that it had before.
        let kept = self.dispatcher.store.subscription(Arc::clone(&id)).await?;
        let shown = ShownSubscription {
            id: &id,
            receiver: target.to_string(),
            rate: new.rate,
            signed: kept.is_some_and(|kept| self.is_signed(&kept)),
        };
        Ok(json(status, &shown))
    }

    async fn subscription(&self, id: Arc<str>) -> Answer {
        let found = self.dispatcher.store.subscription(Arc::clone(&id)).await?;
        let subscription = found.ok_or(Refused::missing("there is no such subscription"))?;
        // Private or not, it may be shown.
        let target = Target::parse(&subscription.url, true).map_err(Refused::input)?;
        let shown = ShownSubscription {
            id: &id,
            receiver: target.to_string(),
            rate: subscription.rate,
            signed: self.is_signed(&subscription),
        };
        Ok(json(StatusCode::OK, &shown))
    }

    fn is_signed(&self, subscription: &Subscription) -> bool {
        subscription.secret.is_some() || self.dispatcher.poster.always_signs()
    }

    async fn delete_subscription(&self, id: Arc<str>) -> Answer {
        let dispatcher = Arc::clone(&self.dispatcher);
        let deleted = whole(async move { dispatcher.delete_subscription(id).await });
        match deleted.await?? {
            true => Ok(empty()),
            false => Err(Refused::missing("there is no such subscription")),
        }
    }

    async fn put_object(&self, id: Arc<str>, request: Request<Incoming>) -> Answer {
        let bytes = body(request, OBJECT_BYTES_MAX).await?;
        let data = document::parse(&bytes)?;
        let (dispatcher, name) = (Arc::clone(&self.dispatcher), Arc::clone(&id));
        let change = whole(async move { dispatcher.put_object(name, data).await });
        let change = change.await??;
        let status = match change.is_new {
            true => StatusCode::CREATED,
            false => StatusCode::OK,
        };
        let shown = ShownChange {
            id: &id,
            version: change.version,
            subscriptions: change.subscriptions.len(),
        };
        Ok(json(status, &shown))
    }

    async fn object(&self, id: Arc<str>) -> Answer {
        let found = self.dispatcher.store.object(Arc::clone(&id)).await?;
        let Object { version, body } = found.ok_or(Refused::missing("there is no such object"))?;
        let data = serde_json::from_str(&body);
        let data = data.map_err(|error| Refused::fault(&error))?;
        let shown = ShownObject {
            id: &id,
            version,
            data,
        };
        Ok(json(StatusCode::OK, &shown))
    }

    async fn delete_object(&self, id: Arc<str>) -> Answer {
        let dispatcher = Arc::clone(&self.dispatcher);
        let deleted = whole(async move { dispatcher.delete_object(id).await });
        match deleted.await?? {
            true => Ok(empty()),
            false => Err(Refused::missing("there is no such object")),
        }
    }

    async fn deliveries(&self, query: &Query<'_>) -> Answer {
        let state = match query.get("state") {
            Some("pending") => State::Pending,
            Some("failed") => State::Failed,
            _ => {
                return Err(Refused::input(
                    "state=pending or state=failed has to be given",
                ));
            }
        };
        let (limit, after) = (query.limit()?, query.after()?);
        let (store, queue) = (&self.dispatcher.store, &self.dispatcher.queue);
        let total = store.owed_len(state).await?;
        let owed = store.owed(state, after, limit).await?;
        let is_full = limit > 0 && owed.len() == limit;
        let shown = |owed: &'_ Owed| queue.failures(&owed.key);
        let failures: Vec<u32> = owed.iter().map(shown).collect();
        let deliveries = owed
            .iter()
            .zip(failures)
            .map(|(owed, failures)| ShownDelivery {
                subscription: &owed.key.subscription,
                object: &owed.key.object,
                version: owed.version,
                delivered: owed.delivered,
                failures,
                error: owed.error.as_deref(),
            });
        let shown = ShownDeliveries {
            total,
            deliveries: deliveries.collect(),
            next: owed
                .last()
                .filter(|_| is_full)
                .map(|owed| owed.key.to_string()),
        };
        Ok(json(StatusCode::OK, &shown))
    }

    async fn stats(&self, query: &Query<'_>) -> Answer {
        let (now, history) = self.stats.show(query.number("after")?).await;
        let team = self.dispatcher.team.get().map(|team| team.shown());
        let shown = ShownStats { now, history, team };
        Ok(json(StatusCode::OK, &shown))
    }

    async fn health(&self) -> Answer {
        self.dispatcher.store.check().await?;
        if self.dispatcher.queue.is_shutting_down() {
            let why = "the service is stopping";
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        if let Some(Err(why)) = self.dispatcher.team.get().map(|team| team.health()) {
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        Ok(text("ok\n"))
    }
}

/// Tells `null` from a field that is missing.
fn some<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}

fn named(id: &str) -> Result<Arc<str>, Refused> {
    let why = "an id is 1 to 128 letters, digits, dots, dashes and underscores, \
               and neither . nor ..";
    parse_id(id).ok_or(Refused::input(why))
}

/// Runs something to its end, even if its client goes away: a key has to be added for each change
/// in the database.
async fn whole<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refused> {
    tokio::spawn(work)
        .await
        .map_err(|error| Refused::fault(&error))
}
